// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/standard_layouts.h"
#include "analyzer/models/model_family.h"
#include "analyzer/planner/planning.h"
#include "cost/price/predict.h"
#include "cost/price/price.h"
#include "cost/price/schedule.h"
#include "cost/price/software_price.h"
#include "layouts/graph/operation_table.h"
#include "layouts/placement/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A tiny GPT in bfloat16, its layers redone, four micro-batches, on data:2;model:2 by Megatron's split with ZeRO-1
 * or ZeRO-3. */
typedef struct {
    MtfGraph *graph;
    MtfMachine *machine;
    MtfSoftware *software; /* the machine's */
    MtfPricer pricer;
    MtfLayout *layout;
    MtfProgram *program;
} Case;

static MtfGraph *executed_graph(void) {
    const MtfModelPreset *preset = mtf_model_preset_find(&mtf_model_gpt, "tiny", NULL);
    MtfModelSettings settings = mtf_model_settings(preset);
    settings.clip_norm = 0;
    g_autoptr(MtfGraph) written = mtf_model_build(&mtf_model_gpt, preset, &settings, NULL);
    MtfStepVariant variant = {
        .microbatches = 4, .precision = "bf16", .recompute = MTF_RECOMPUTE_LAYERS, .fuses = true
    };
    MtfGraph *graph = mtf_planning_executed_graph(written, &variant, NULL);
    assert_non_null(graph);
    return graph;
}

static void sharded_case_init(Case *c, const char *software, MtfStandardSharding sharding) {
    MtfMesh mesh;
    c->graph = executed_graph();
    c->machine = mtf_machine_load("a100", NULL);
    assert_true(mtf_machine_set_software(c->machine, software, NULL));
    c->software = c->machine->software;
    assert_true(mtf_mesh_parse("data:2;model:2", 0, &mesh, NULL));
    assert_true(mtf_pricer_init(&c->pricer, c->machine, &mesh, NULL));
    g_autoptr(MtfFreeProblem) problem =
        mtf_free_problem_new(c->graph, &mesh, &c->pricer, NULL, 0, NULL);
    int style = mtf_standard_style(MTF_STANDARD_TENSOR, sharding, 2);
    g_autoptr(MtfStandardLayout) standard = mtf_standard_layout(problem, style);
    c->layout = mtf_free_problem_layout(problem, standard->choice);
    c->program = mtf_lower(c->graph, c->layout);
}

static void case_init(Case *c, const char *software) {
    sharded_case_init(c, software, MTF_STANDARD_ZERO_1);
}

static void case_clear(Case *c) {
    mtf_program_free(c->program);
    mtf_layout_free(c->layout);
    mtf_graph_free(c->graph);
    mtf_machine_free(c->machine);
}

static const MtfInstruction *instruction_at(const Case *c, int i) {
    return mtf_program_instruction(c->program, i);
}

static const MtfOperation *operation_at(const Case *c, int i) {
    return mtf_graph_operation(c->graph, instruction_at(c, i)->operation);
}

static bool is_kernel(const Case *c, int i) {
    return instruction_at(c, i)->kind == MTF_INSTRUCTION_KERNEL;
}

/* Bytes that kernels move which make copies of variables in a narrower type. */
static double copied_bytes(const Case *c) {
    double bytes = 0;
    for (int i = 0; i < mtf_program_length(c->program); i++) {
        const MtfOperation *op = operation_at(c, i);
        if (is_kernel(c, i) && mtf_operation_row(op->kind)->converts &&
            mtf_graph_tensor(c->graph, op->inputs[0])->source == MTF_SOURCE_VARIABLE)
            bytes += mtf_software_traffic(c->software, c->program, instruction_at(c, i));
    }
    return bytes;
}

TEST(narrow_weights_are_there_where_the_framework_keeps_them) {
    Case keeps, casts;
    case_init(&keeps, "megatron-core");
    case_init(&casts, "torchtitan");
    assert_true(copied_bytes(&keeps) == 0);
    assert_true(copied_bytes(&casts) > 0);
    case_clear(&keeps);
    case_clear(&casts);
}

/* Nanoseconds that renames and reshapes take the device and, added to `host`, its host. */
static int64_t view_nanoseconds(const Case *c, int64_t *host) {
    int64_t device = 0;
    for (int i = 0; i < mtf_program_length(c->program); i++) {
        MtfDimsRule dims = mtf_operation_row(operation_at(c, i)->kind)->dims;
        if (!is_kernel(c, i) || (dims != MTF_DIMS_RENAMED && dims != MTF_DIMS_RESHAPED))
            continue;
        device += mtf_price_device(&c->pricer, c->program, i);
        *host += mtf_price_host(&c->pricer, c->program, i);
    }
    return device;
}

TEST(frameworks_look_at_elements_under_other_names_without_a_kernel) {
    static const char *const profiles[] = { "megatron-core", "pytorch", "pytorch-eager", "meshtf" };
    for (int i = 0; i < 4; i++) {
        Case c;
        int64_t host = 0;
        case_init(&c, profiles[i]);
        int64_t device = view_nanoseconds(&c, &host);
        assert_true((device == 0) == (i < 3));
        assert_true((host > 0) == (i < 3));
        case_clear(&c);
    }
}

/* w1 of [64, 256] is split along d_ff, a sum is read and written in 8 bytes. */
TEST(gradients_add_up_in_the_bytes_of_the_framework) {
    Case c;
    int found = 0;
    case_init(&c, "megatron-core");
    for (int i = 0; i < mtf_program_length(c.program); i++)
        if (is_kernel(&c, i) && strcmp(operation_at(&c, i)->name, "grad/layer/0/ffn/w1") == 0) {
            assert_true(mtf_software_traffic(c.software, c.program, instruction_at(&c, i)) ==
                        8 * 64 * 256 / 2);
            found++;
        }
    assert_int_equal(found, 1);
    case_clear(&c);
}

static double traffic_of(const Case *c, const char *name) {
    for (int i = 0; i < mtf_program_length(c->program); i++)
        if (is_kernel(c, i) && strcmp(operation_at(c, i)->name, name) == 0)
            return mtf_software_traffic(c->software, c->program, instruction_at(c, i));
    return 0;
}

/* A device has 1 text of 32 places and 128 words of a micro-batch. Of each logit the profile reads and writes 10
 * numbers of two bytes forward and 5 backward, whatever the program has: those that find the largest, in one kernel
 * with the sum, and those of the gradient. */
TEST(a_loss_goes_over_logits_as_often_as_the_framework) {
    Case c;
    case_init(&c, "megatron-core");
    double largest = traffic_of(&c, "losses/max"), gradient = traffic_of(&c, "grad/logits");
    assert_true(traffic_of(&c, "losses/sum") == 0);
    assert_true(largest > 0 && gradient > largest);
    assert_true(largest + gradient == 2 * (10 + 5) * 32 * 128);
    case_clear(&c);
}

/* The most that is sent of what the program sends, by kind. */
static void find_shares(const Case *c, double *sums, double *gathers) {
    *sums = *gathers = 0;
    for (int i = 0; i < mtf_program_length(c->program); i++) {
        const MtfInstruction *instruction = instruction_at(c, i);
        MtfCollectiveKind kind;
        if (!mtf_instruction_collective_kind(instruction, &kind))
            continue;
        double share = mtf_software_sent_share(c->software, c->program, instruction);
        if (kind == MTF_REDUCE_SCATTER)
            *sums = fmax(*sums, share);
        else if (kind == MTF_ALLGATHER && operation_at(c, i)->phase == MTF_PHASE_UPDATE)
            *gathers = fmax(*gathers, share);
        else
            assert_true(share == 1 || kind == MTF_ALLREDUCE);
    }
}

static int summed_whole(const Case *c) {
    int count = 0;
    for (int i = 0; i < mtf_program_length(c->program); i++)
        count += mtf_instruction_is_collective(instruction_at(c, i)) &&
                 mtf_software_sums_whole(c->software, c->program, instruction_at(c, i));
    return count;
}

/* Here gradients are float32 when they are summed, and new values; megatron-core sums and gathers 2 bytes. */
TEST(messages_are_the_frameworks_own_where_that_is_asked_for) {
    Case c;
    double sums, gathers;
    case_init(&c, "megatron-core");
    find_shares(&c, &sums, &gathers);
    assert_true(sums == 1 && gathers == 1);
    c.software->own_messages = true;
    find_shares(&c, &sums, &gathers);
    assert_true(sums == 0.5 && gathers == 0.5);
    assert_int_equal(summed_whole(&c), 0);
    c.software->whole_sums = true;
    assert_true(summed_whole(&c) > 0);
    c.software->own_messages = false;
    assert_int_equal(summed_whole(&c), 0);
    case_clear(&c);
}

/* Each kernel and collective waits for the host, which all others run ahead of. */
TEST(a_host_that_waits_for_kernels_takes_its_time_beside_theirs) {
    Case c;
    case_init(&c, "megatron-2021");
    g_autofree int64_t *free = g_new(int64_t, mtf_program_length(c.program));
    for (int i = 0; i < mtf_program_length(c.program); i++)
        free[i] = mtf_price_device(&c.pricer, c.program, i);
    c.software->blocked_seconds = 4e-5;
    for (int i = 0; i < mtf_program_length(c.program); i++) {
        double waits = mtf_software_blocked_seconds(c.software, c.program, instruction_at(&c, i)) *
                       mtf_software_times(c.software, c.program, instruction_at(&c, i));
        assert_true(
            fabs((double)(mtf_price_device(&c.pricer, c.program, i) - free[i]) - 1e9 * waits) <= 1);
        if (mtf_instruction_is_collective(instruction_at(&c, i)))
            assert_true(waits >= c.software->host_collective_seconds);
    }
    case_clear(&c);
}

/* The table of collectives and the sum above it tell one time, whatever of it the framework hides in products. */
TEST(communication_counts_what_products_hide) {
    Case c;
    int64_t alone = 0;
    case_init(&c, "maxtext");
    assert_true(c.software->hidden[MTF_HIDDEN_TENSOR] > 0);
    g_autoptr(GArray) rows = mtf_predict_traffic(&c.pricer, c.program, -1);
    for (guint i = 0; i < rows->len; i++)
        alone += g_array_index(rows, MtfTrafficRow, i).nanoseconds;
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c.pricer, c.program);
    assert_int_equal(schedule->transfers, alone);
    assert_in_range(schedule->hidden, 1, alone - schedule->exposed);
    case_clear(&c);
}

/* Over `data` gradients are scattered in every micro-batch, in the framework's type, and weights gathered in the
 * products' two bytes, where layers are redone, too. */
TEST(weights_in_pieces_are_exchanged_in_every_pass) {
    Case c;
    int scattered = 0, gathered = 0, redone = 0;
    sharded_case_init(&c, "megatron-core", MTF_STANDARD_ZERO_3);
    c.software->own_messages = true;
    for (int i = 0; i < c.program->n_repeated; i++) {
        const MtfInstruction *instruction = instruction_at(&c, i);
        MtfCollectiveKind kind;
        if (!mtf_instruction_collective_kind(instruction, &kind) || instruction->reshard.axes != 1)
            continue;
        const MtfTensor *tensor = mtf_reshard_tensor(c.program, instruction);
        bool part = g_str_has_prefix(tensor->name, "part/");
        if (!part && kind != MTF_ALLGATHER)
            continue;
        assert_int_equal(mtf_software_hidden_kind(c.program, instruction), MTF_HIDDEN_SHARDED);
        assert_int_equal(tensor->dtype, MTF_BF16);
        assert_true(mtf_software_sent_share(c.software, c.program, instruction) == 1);
        scattered += part;
        gathered += !part;
        redone += g_str_has_prefix(tensor->name, "recompute/");
    }
    assert_true(scattered > 0 && gathered > 0 && redone > 0);
    case_clear(&c);
}

/* Nanoseconds of the passes' kernels in one micro-batch, and of what is exchanged once a step. */
static void find_beside(const Case *c, int64_t *kernels, int64_t *messages) {
    *kernels = *messages = 0;
    for (int i = 0; i < mtf_program_length(c->program); i++) {
        int64_t device = mtf_price_device(&c->pricer, c->program, i);
        if (mtf_instruction_is_collective(instruction_at(c, i)))
            *messages += i < c->program->n_repeated ? 0 : device;
        else if (operation_at(c, i)->phase <= MTF_PHASE_BACKWARD)
            *kernels += device;
    }
}

static int64_t step_of(const Case *c) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(&c->pricer, c->program);
    assert_int_equal(schedule->transfers + schedule->compute,
                     mtf_price_program(&c->pricer, c->program));
    return schedule->nanoseconds;
}

/* Gradients and new weights travel beside the last micro-batch, as far as that has kernels. */
TEST(gradients_travel_beside_the_kernels_of_one_micro_batch) {
    Case c;
    int64_t kernels, messages;
    case_init(&c, "megatron-core");
    c.software->host_seconds = c.software->host_collective_seconds = c.software->contention = 0;
    c.software->hidden[MTF_HIDDEN_TENSOR] = c.software->hidden[MTF_HIDDEN_DATA] = 0;
    find_beside(&c, &kernels, &messages);
    int64_t bare = step_of(&c);
    c.software->hidden[MTF_HIDDEN_DATA] = 1;
    assert_true(llabs(bare - step_of(&c) - MIN(kernels, messages)) <=
                mtf_program_length(c.program));
    c.software->hidden[MTF_HIDDEN_DATA] = 0.5 * (double)MIN(kernels, messages) / (double)messages;
    c.software->contention = 0.5;
    assert_true(llabs(bare - step_of(&c) - MIN(kernels, messages) / 4) <=
                mtf_program_length(c.program));
    case_clear(&c);
}

/* Nanoseconds of the host for a step of a tiny Mixtral under the rules, whose launches take nothing. */
static int64_t host_under(const char *rules) {
    const MtfModelPreset *preset = mtf_model_preset_find(&mtf_model_mixtral, "tiny", NULL);
    g_autoptr(MtfGraph) written = mtf_model_build(&mtf_model_mixtral, preset, NULL, NULL);
    MtfStepVariant variant = { .microbatches = 1, .precision = "bf16", .fuses = true };
    Case c = { .graph = mtf_planning_executed_graph(written, &variant, NULL),
               .machine = mtf_machine_load("h100", NULL) };
    MtfMesh mesh;
    assert_true(mtf_machine_set_software(c.machine, "megatron-core", NULL));
    c.machine->software->host_seconds = c.machine->software->host_collective_seconds = 0;
    assert_true(mtf_mesh_parse("a:2", 0, &mesh, NULL));
    assert_true(mtf_pricer_init(&c.pricer, c.machine, &mesh, NULL));
    g_autoptr(MtfRules) read = mtf_rules_parse(c.graph, &mesh, rules, NULL, NULL);
    c.layout = mtf_layout_from_rules(c.graph, &mesh, read);
    c.program = mtf_lower(c.graph, c.layout);
    int64_t sum = 0;
    for (int i = 0; i < mtf_program_length(c.program); i++)
        sum += mtf_price_host(&c.pricer, c.program, i);
    case_clear(&c);
    return sum;
}

/* Two layers of four experts, for each of which megatron-core's host takes 180 us forward and 220 us back, and 2.2 and
 * 2.8 ms for the way there; on two devices a layer's experts are all on both, or two on each. */
TEST(the_host_takes_time_for_the_experts_that_a_device_has) {
    const int64_t routed = 2 * (2200000 + 2800000), expert = 2 * (180000 + 220000);
    assert_true(llabs(host_under("batch:a") - routed - 4 * expert) < 50); /* rounded a product */
    assert_true(llabs(host_under("experts:a") - routed - 2 * expert) < 50);
}
