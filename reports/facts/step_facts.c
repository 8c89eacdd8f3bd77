// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/facts/step_facts.h"

#include "cost/machine/mapping_json.h"
#include "cost/price/predict.h"
#include "layouts/base/json_writer.h"
#include "layouts/layers/layers.h"

#include <string.h>

/* ---- Trees --------------------------------------------------------------------------------- */

const char *mtf_tree_text(const cJSON *tree, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* ---- The machine and how the mesh lies on it --------------------------------------------------
 */

static MtfMachine *machine_of(const MtfPlan *plan, GError **error) {
    if (plan->machine == NULL)
        return mtf_machine_load("cpu-cluster", error);
    MtfJson root = { .file = "the plan's machine", .node = plan->machine, .index = -1 };
    return mtf_machine_from_json(&root, error);
}

/* Lays the plan's mesh as its mapping says. */
static bool read_mapping(const MtfPlan *plan, MtfPricer *pricer, GError **error) {
    if (plan->mapping == NULL)
        return true;
    MtfJson root = { .file = "the plan's mapping", .node = plan->mapping, .index = -1 };
    return mtf_mapping_from_json(&root, &plan->layout->mesh, &pricer->map, error);
}

MtfMachine *mtf_plan_lay(const MtfPlan *plan, MtfPricer *pricer, GError **error) {
    g_autoptr(MtfMachine) machine = machine_of(plan, error);
    if (machine == NULL || !mtf_pricer_init(pricer, machine, &plan->layout->mesh, error) ||
        !read_mapping(plan, pricer, error))
        return NULL;
    return g_steal_pointer(&machine);
}

static bool price(MtfStepFacts *facts, GError **error) {
    facts->machine = mtf_plan_lay(facts->plan, &facts->pricer, error);
    if (facts->machine == NULL)
        return false;
    facts->schedule = mtf_schedule_new(&facts->pricer, facts->program);
    facts->traffic = mtf_predict_traffic(&facts->pricer, facts->program, -1);
    facts->limit = (int64_t)mtf_json_number_of(facts->plan->search, "memory_limit",
                                               (double)facts->machine->memory_bytes);
    for (int i = 0; i < mtf_program_length(facts->program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(facts->program, i);
        int times = mtf_program_times(facts->program, i);
        facts->flops += times * instruction->flops;
        facts->multiply_adds += times * instruction->multiply_adds;
    }
    return true;
}

/* ---- Memory -------------------------------------------------------------------------------- */

/* Storages enter at their first instruction and leave after their last: prefix sums. */
static int64_t *live_bytes(const MtfProgram *program) {
    int n = mtf_program_length(program);
    int64_t *live = g_new0(int64_t, ((gsize)n + 1) * MTF_MEMORY_KINDS);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage != b || mtf_buffer_is_on_host(program, b))
            continue;
        live[buffer->first * MTF_MEMORY_KINDS + (int)buffer->memory] += buffer->bytes;
        live[(buffer->last + 1) * MTF_MEMORY_KINDS + (int)buffer->memory] -= buffer->bytes;
    }
    for (int i = MTF_MEMORY_KINDS; i < (n + 1) * MTF_MEMORY_KINDS; i++)
        live[i] += live[i - MTF_MEMORY_KINDS];
    return live;
}

int64_t mtf_step_facts_live(const MtfStepFacts *facts, int instruction) {
    int64_t sum = 0;
    for (int k = 0; k < MTF_MEMORY_KINDS; k++)
        sum += facts->live[instruction * MTF_MEMORY_KINDS + k];
    return sum;
}

static int find_peak(const MtfStepFacts *facts) {
    int peak = 0;
    for (int i = 1; i < mtf_program_length(facts->program); i++)
        if (mtf_step_facts_live(facts, i) > mtf_step_facts_live(facts, peak))
            peak = i;
    return peak;
}

/* ---- Entry --------------------------------------------------------------------------------- */

MtfStepFacts *mtf_step_facts_new(const MtfPlan *plan, GError **error) {
    g_autoptr(MtfStepFacts) facts = g_new0(MtfStepFacts, 1);
    facts->plan = plan;
    facts->program = mtf_plan_lower(plan, error);
    if (facts->program == NULL || !price(facts, error))
        return NULL;
    facts->arena = mtf_arena_pack(facts->program);
    facts->live = live_bytes(facts->program);
    facts->peak = find_peak(facts);
    facts->wall = mtf_step_wall(facts->schedule, facts->program);
    return g_steal_pointer(&facts);
}

void mtf_step_facts_free(MtfStepFacts *facts) {
    if (facts == NULL)
        return;
    mtf_schedule_free(facts->schedule);
    mtf_arena_free(facts->arena);
    mtf_program_free(facts->program);
    mtf_machine_free(facts->machine);
    if (facts->traffic != NULL)
        g_array_unref(facts->traffic);
    g_free(facts->live);
    g_free(facts->wall);
    g_free(facts);
}

bool mtf_step_facts_is_collective(const MtfStepFacts *facts, int instruction) {
    const MtfInstruction *i = mtf_program_instruction(facts->program, instruction);
    return mtf_instruction_is_collective(i);
}

GPtrArray *mtf_step_shares(const MtfStepFacts *facts) {
    return mtf_step_shares_of(&facts->pricer, facts->program, facts->schedule, facts->wall);
}

/* ---- The peak ------------------------------------------------------------------------------ */

static void free_peak_row(void *data) {
    MtfPeakRow *row = data;
    g_free(row->name);
    g_free(row);
}

static int compare_peak_rows(const void *left, const void *right) {
    const MtfPeakRow *a = *(MtfPeakRow *const *)left, *b = *(MtfPeakRow *const *)right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (int)a->memory - (int)b->memory;
}

static char *storage_name(const MtfProgram *program, const MtfBuffer *buffer) {
    if (buffer->tensor < 0)
        return g_strdup("scratch");
    const MtfTensor *tensor = mtf_graph_tensor(program->graph, buffer->tensor);
    return mtf_layer_star(program->graph, tensor->name, tensor->layer);
}

static void add_storage(GHashTable *by_key, GPtrArray *rows, const MtfProgram *program,
                        const MtfBuffer *buffer) {
    g_autofree char *name = storage_name(program, buffer);
    g_autofree char *key = g_strdup_printf("%d %s", (int)buffer->memory, name);
    MtfPeakRow *row = g_hash_table_lookup(by_key, key);
    if (row == NULL) {
        row = g_new0(MtfPeakRow, 1);
        row->name = g_steal_pointer(&name);
        row->memory = buffer->memory;
        g_ptr_array_add(rows, row);
        g_hash_table_insert(by_key, g_steal_pointer(&key), row);
    }
    row->count++;
    row->bytes += buffer->bytes;
}

GPtrArray *mtf_peak_rows(const MtfStepFacts *facts) {
    GPtrArray *rows = g_ptr_array_new_with_free_func(free_peak_row);
    g_autoptr(GHashTable) by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int b = 0; b < (int)facts->program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(facts->program, b);
        if (buffer->storage == b && buffer->bytes > 0 && buffer->first <= facts->peak &&
            buffer->last >= facts->peak)
            add_storage(by_key, rows, facts->program, buffer);
    }
    g_ptr_array_sort(rows, compare_peak_rows);
    return rows;
}
