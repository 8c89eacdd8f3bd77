// SPDX-License-Identifier: GPL-3.0-or-later
/* Weight gradients apart from input gradients. That the losses stay the same is shown in
 * tests/e2e/pipelines.sh; here a naive twin follows from each instruction who reads what it writes. */
#include "tests/support/cmocka.h"

#include "analyzer/planner/planning.h"
#include "analyzer/training/stage_cut.h"
#include "cost/pipeline/pipeline_schedule.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/plan_file/pipeline_plan.h"

/* One of two stages of a graph of the library, under a schedule, on one device. */
typedef struct {
    MtfPipelinePlan *pipeline;
    MtfLayout *layout;
    MtfProgram *program;
} Stage;

static Stage stage_of(const char *file, const char *schedule, int stage) {
    MtfStepVariant variant = { .microbatches = 4 };
    MtfMesh one;
    g_autoptr(MtfGraph) written = mtf_graph_load(file, NULL, NULL);
    assert_true(mtf_cut_stages(written, 2, NULL));
    assert_true(mtf_mesh_parse("all:1", 0, &one, NULL));
    MtfGraph *training = mtf_planning_executed_graph(written, &variant, NULL);
    MtfPipelineOrder *order = mtf_pipeline_schedule_order(schedule, 2, 4, 1, NULL);
    Stage last = { .pipeline = mtf_pipeline_plan_new(training, schedule, order, NULL) };
    assert_non_null(last.pipeline);
    const MtfGraph *graph = mtf_pipeline_stage_graph(last.pipeline, stage);
    last.layout = mtf_layout_new(graph, &one);
    last.layout->execution.stage = mtf_pipeline_stage_execution(last.pipeline, stage);
    last.program = mtf_lower(graph, last.layout);
    return last;
}

static Stage last_of(const char *schedule) {
    return stage_of("layouts/library/graphs/mlp.json", schedule, 1);
}

static void stage_clear(Stage *last) {
    mtf_program_free(last->program);
    mtf_layout_free(last->layout);
    mtf_pipeline_plan_free(last->pipeline);
}

static bool reads(const MtfInstruction *instruction, int buffer) {
    for (int k = 0; k < instruction->n_inputs; k++)
        if (instruction->inputs[k] == buffer)
            return true;
    return false;
}

/* Whether some tensor that is sent to the stage before follows from instruction i. */
static bool leads_out(const MtfProgram *program, int i) {
    const MtfInstruction *instruction = mtf_program_instruction(program, i);
    for (int k = 0; k < instruction->n_outputs; k++) {
        int tensor = mtf_program_buffer(program, instruction->outputs[k])->tensor;
        if (tensor >= 0 && mtf_graph_tensor(program->graph, tensor)->is_sent)
            return true;
        for (int j = i + 1; j < program->n_repeated; j++)
            if (reads(mtf_program_instruction(program, j), instruction->outputs[k]) &&
                leads_out(program, j))
                return true;
    }
    return false;
}

TEST(what_the_stage_before_waits_for_comes_first) {
    Stage last = last_of("zb-h1");
    const MtfProgram *program = last.program;
    int forward = mtf_program_forward(program), half = program->weight_gradients;
    assert_in_range(half, forward + 1, program->n_repeated - 1);
    for (int i = forward; i < program->n_repeated; i++)
        assert_int_equal(leads_out(program, i), i < half);
    stage_clear(&last);
}

TEST(other_backward_passes_are_not_split) {
    Stage last = last_of("1f1b");
    assert_int_equal(last.program->weight_gradients, last.program->n_repeated);
    stage_clear(&last);
}

/* What input gradients leave for weight gradients is there once for each micro-batch in flight. */
TEST(what_waits_for_weight_gradients_has_slots) {
    Stage last = last_of("zb-h1");
    const MtfProgram *program = last.program;
    int waiting = 0, half = program->weight_gradients;
    int in_flight = last.layout->execution.stage.in_flight;
    assert_true(in_flight > 1);
    for (int i = mtf_program_forward(program); i < half; i++) {
        int buffer = mtf_program_instruction(program, i)->outputs[0];
        bool waits = false;
        for (int j = half; j < program->n_repeated; j++)
            waits |= reads(mtf_program_instruction(program, j), buffer);
        const MtfBuffer *owner =
            mtf_program_buffer(program, mtf_program_buffer(program, buffer)->storage);
        if (waits)
            assert_int_equal(owner->slots, in_flight);
        waiting += waits;
    }
    assert_true(waiting > 0);
    stage_clear(&last);
}

/* The gradient of the last micro-batch may be on its way while sums over micro-batches are made and
 * variables updated: nothing takes its bytes before the step ends, nor what stood in them. */
TEST(what_is_sent_keeps_its_bytes) {
    const char *schedules[] = { "1f1b", "gpipe", "zb-h1" };
    (void)state;
    for (int i = 0; i < (int)G_N_ELEMENTS(schedules); i++) {
        Stage last = last_of(schedules[i]);
        const MtfProgram *program = last.program;
        int sent = 0;
        for (int b = 0; b < (int)program->buffers->len; b++) {
            const MtfBuffer *buffer = mtf_program_buffer(program, b);
            const MtfBuffer *owner = mtf_program_buffer(program, buffer->storage);
            bool own =
                buffer->tensor >= 0 && mtf_graph_tensor(program->graph, buffer->tensor)->is_sent;
            sent += own;
            if (own)
                assert_int_equal(owner->last, mtf_program_length(program) - 1);
            assert_true(buffer->storage == b || owner->tensor < 0 ||
                        !mtf_graph_tensor(program->graph, owner->tensor)->is_sent);
        }
        assert_true(sent > 0);
        stage_clear(&last);
    }
}

/* The last instruction beside which every storage with slots lives that one micro-batch leaves for later. */
static int lives_until(const char *schedule) {
    Stage first = stage_of("layouts/library/graphs/gpt-small.json", schedule, 0);
    const MtfProgram *program = first.program;
    int until = mtf_program_length(program), waiting = 0;
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *owner = mtf_program_buffer(program, b);
        if (owner->storage != b || owner->persistent || owner->slots < 2)
            continue;
        until = MIN(until, owner->last);
        waiting++;
    }
    assert_true(waiting > 0);
    until = until == mtf_program_length(program) - 1 ? -1 : until - (program->n_repeated - 1);
    stage_clear(&first);
    return until;
}

/* Until micro-batches end (0), and where those of the next step are in flight meanwhile, until updates do (-1). */
TEST(what_is_in_flight_lives_beside_updates_where_steps_overlap) {
    assert_int_equal(lives_until("1f1b"), 0);
    assert_int_equal(lives_until("pipedream"), -1);
    assert_int_equal(lives_until("pipedream-2bw"), -1);
}
