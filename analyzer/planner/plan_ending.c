// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/plan_ending.h"

#include "analyzer/planner/next_best.h"
#include "analyzer/solver/problem/in_parallel.h"
#include "cost/collectives/measured_collective.h"
#include "cost/memory/arena.h"
#include "cost/price/schedule.h"
#include "layouts/base/command_line.h"
#include "layouts/base/json_writer.h"

#include <math.h>

/* What is made side by side: each maker writes to places of its own, of the plan and of these. */
typedef struct {
    const MtfPlanEnding *ending;
    MtfPlan *plan;
    MtfDivision division; /* of the training graph */
    GError *error;        /* why there is none */
    cJSON *next_best, *passed_over;
    int64_t bytes_as_written;  /* the arena, were instructions in the order as written */
    int64_t nanoseconds_alone; /* the step, were no exchanges joined */
    GString *unmeasured;       /* lines */
} Parts;

static void make_training_graph(Parts *parts) {
    const MtfPlanEnding *ending = parts->ending;
    if (parts->plan->training == NULL)
        parts->plan->training = mtf_planning_training_graph(ending->written, ending->variant,
                                                            &parts->division, &parts->error);
    if (parts->plan->training != NULL && parts->plan->graph_text == NULL && ending->file)
        mtf_plan_print_graph(parts->plan);
}

static void print_layout(Parts *parts) {
    if (parts->ending->file)
        mtf_plan_print_layout(parts->plan);
}

static void predict(Parts *parts) {
    mtf_planning_plan_predict(parts->plan, parts->ending->program, parts->ending->pricer);
}

static void digest(Parts *parts) {
    parts->plan->program_sha256 = mtf_program_digest(parts->ending->program);
}

static void find_next_best(Parts *parts) {
    const MtfPlanEnding *ending = parts->ending;
    if (ending->answer == NULL)
        return;
    parts->next_best = mtf_next_best(ending->answer, ending->program, ending->memory_limit);
    parts->passed_over = mtf_passed_over(ending->answer, ending->program, ending->memory_limit);
}

/* ---- Notes --------------------------------------------------------------------------------------- */

static void pack_as_written(Parts *parts) {
    const MtfPlan *plan = parts->plan;
    if (!parts->ending->notes || plan->layout->execution.order == NULL)
        return;
    g_autoptr(MtfLayout) layout = mtf_layout_copy(plan->layout);
    mtf_layout_set_order(layout, NULL, 0);
    g_autoptr(MtfProgram) written = mtf_lower(plan->graph, layout);
    g_autoptr(MtfArena) arena = mtf_arena_pack(written);
    parts->bytes_as_written = arena->bytes;
}

static void schedule_alone(Parts *parts) {
    const MtfPlan *plan = parts->plan;
    if (!parts->ending->notes || plan->layout->execution.bucket_bytes == 0)
        return;
    g_autoptr(MtfLayout) layout = mtf_layout_copy(plan->layout);
    layout->execution.bucket_bytes = 0;
    g_autoptr(MtfProgram) alone = mtf_lower(plan->graph, layout);
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(parts->ending->pricer, alone);
    parts->nanoseconds_alone = schedule->nanoseconds;
}

/* Each kind and size once. */
static void find_unmeasured(Parts *parts) {
    const MtfPricer *pricer = parts->ending->pricer;
    const MtfProgram *program = parts->ending->program;
    if (!parts->ending->notes || pricer->machine->curves->len == 0)
        return;
    g_autoptr(GHashTable) said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        MtfCollectiveKind kind;
        if (!mtf_instruction_collective_kind(instruction, &kind))
            continue;
        MtfNetwork group = mtf_mesh_map_group(&pricer->map, instruction->reshard.axes);
        char *text = mtf_unmeasured_collective(pricer->machine, &group, kind);
        if (text != NULL && !g_hash_table_contains(said, text))
            g_string_append_printf(parts->unmeasured, "not measured   %s\n", text);
        if (text != NULL)
            g_hash_table_add(said, text);
    }
}

/* Messages of several tensors, and how many these are. */
static int count_joined(const MtfProgram *program, int *tensors) {
    int messages = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        bool several = instruction->kind == MTF_INSTRUCTION_RESHARD && instruction->n_inputs > 1;
        messages += several;
        *tensors += several ? instruction->n_inputs : 0;
    }
    return messages;
}

static void note_order(const Parts *parts, GString *notes) {
    if (parts->plan->layout->execution.order == NULL)
        return;
    double peak = mtf_json_number_of(parts->plan->predicted, "peak_memory_bytes", 0);
    g_autofree char *bytes = mtf_bytes_format(peak);
    g_autofree char *saved = mtf_bytes_format((double)parts->bytes_as_written - peak);
    g_string_append_printf(
        notes, "order          another than written, for a peak of %s, %s lower\n", bytes, saved);
}

/* How many exchanges were joined, and how much shorter that makes the step. */
static void note_buckets(const Parts *parts, GString *notes) {
    int64_t limit = parts->plan->layout->execution.bucket_bytes;
    if (limit == 0)
        return;
    double step = mtf_json_number_of(parts->plan->predicted, "step_seconds", 0);
    double won = (double)(parts->nanoseconds_alone - llround(step * 1e9));
    int joined = 0, messages = count_joined(parts->ending->program, &joined);
    g_autofree char *bytes = mtf_bytes_format((double)limit);
    g_autofree char *saved = mtf_seconds_format(won * 1e-9);
    g_string_append_printf(
        notes, "buckets        %d small exchanges travel as %d, of at most %s each%s%s\n", joined,
        messages, bytes, won > 0 ? ", which saves " : "", won > 0 ? saved : "");
}

static char *notes_of(const Parts *parts) {
    GString *notes = g_string_new(NULL);
    const cJSON *doubt = cJSON_GetObjectItemCaseSensitive(parts->plan->predicted, "doubt");
    note_order(parts, notes);
    note_buckets(parts, notes);
    g_string_append(notes, parts->unmeasured->str);
    if (doubt != NULL)
        g_string_append_printf(notes, "doubt          %s\n", mtf_json_text_of(doubt, "text"));
    return g_string_free(notes, FALSE);
}

/* ---- All of it ----------------------------------------------------------------------------------- */

/* Those that take longest come first, so that no thread waits long for the last. */
static void (*const makers[])(Parts *parts) = {
    find_next_best, make_training_graph, predict, pack_as_written,
    schedule_alone, print_layout,        digest,  find_unmeasured,
};

static void make_part(int i, void *data) {
    makers[i](data);
}

MtfPlan *mtf_plan_end(const MtfPlanEnding *ending, MtfGraph *graph, MtfLayout *layout,
                      cJSON *search, char **notes, GError **error) {
    layout->execution.kept = mtf_step_variant_kept(ending->variant, 0);
    g_autoptr(MtfPlan) plan = mtf_planning_plan_begin(graph, layout, ending->pricer, search);
    g_autoptr(GString) unmeasured = g_string_new(NULL);
    plan->training = ending->training;
    plan->graph_text = ending->training_text;
    Parts parts = {
        .ending = ending, .plan = plan, .division = ending->division, .unmeasured = unmeasured
    };
    mtf_in_parallel(G_N_ELEMENTS(makers), make_part, &parts);
    if (parts.next_best != NULL)
        cJSON_AddItemToObject(plan->search, "next_best", parts.next_best);
    if (parts.passed_over != NULL)
        cJSON_AddItemToObject(plan->search, "passed_over", parts.passed_over);
    if (plan->training == NULL) {
        g_propagate_error(error, parts.error);
        return NULL;
    }
    layout->execution.division = parts.division;
    *notes = ending->notes ? notes_of(&parts) : NULL;
    return g_steal_pointer(&plan);
}
