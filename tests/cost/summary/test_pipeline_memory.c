// SPDX-License-Identifier: GPL-3.0-or-later
/* Domains of pipelines made by hand, whose bytes are counted action by action in comments. */
#include "cost/summary/pipeline_memory.h"
#include "tests/support/cmocka.h"

/* A pipeline of nothing but its order and what its stages take. */
typedef struct {
    MtfPipelinePlan pipeline;
    MtfPlan plans[2];
} Bare;

static void bare_init(Bare *bare, MtfPipelineOrder *order, const MtfFrameworkMemory *stages) {
    *bare = (Bare){ .pipeline = { .order = order, .stages = g_ptr_array_new() } };
    for (int s = 0; s < order->stages; s++) {
        bare->plans[s].predicted = cJSON_CreateObject();
        mtf_framework_memory_add(bare->plans[s].predicted, &stages[s]);
        g_ptr_array_add(bare->pipeline.stages, &bare->plans[s]);
    }
}

static MtfFrameworkMemory memory_of(MtfPipelineOrder *order, const MtfFrameworkMemory *stages) {
    MtfSoftware software = { .kept = { .slack = 0.5, .context_bytes = 7 } };
    Bare bare;
    bare_init(&bare, order, stages);
    MtfFrameworkMemory memory = mtf_pipeline_memory(&bare.pipeline, &software);
    for (int s = 0; s < order->stages; s++)
        cJSON_Delete(bare.plans[s].predicted);
    g_ptr_array_unref(bare.pipeline.stages);
    return memory;
}

static void add(MtfPipelineOrder *order, const char *actions) {
    static const char letters[] = "FIWB";
    for (const char *at = actions; *at != '\0'; at += 3 + (at[3] == ' '))
        mtf_pipeline_order_add(order, (MtfPipelineWork)(strchr(letters, at[1]) - letters),
                               at[0] - '0', at[2] - '0');
}

/* Stage 0 of 1F1B holds two micro-batches of 8 while the second runs: 100 + 16 + 10; stage 1 one: 100 + 8 + 10. */
TEST(the_first_stage_holds_most) {
    const MtfFrameworkMemory stage = { .standing = 100, .passing = 10, .left = { 3, 5, 0 } };
    g_autoptr(MtfPipelineOrder) order = mtf_pipeline_order_new(2, 2, 2, MTF_STAGES_LOOP);
    add(order, "0F0 0F1 0B0 0B1 1F0 1B0 1F1 1B1");
    MtfFrameworkMemory memory = memory_of(order, (MtfFrameworkMemory[]){ stage, stage });
    assert_true(memory.given == 126);
    assert_true(memory.reserved == 189 && memory.device == 196);
}

/* When stage 1 runs first, 2 x 8 of stage 0, its own 20 and 1: 200 + 37. The most of each alone would be 26 and 21. */
TEST(stages_of_a_domain_take_turns) {
    const MtfFrameworkMemory stages[] = { { .standing = 100, .passing = 10, .left = { 8, 0, 0 } },
                                          { .standing = 100, .passing = 1, .left = { 20, 0, 0 } } };
    g_autoptr(MtfPipelineOrder) order = mtf_pipeline_order_new(1, 2, 2, MTF_STAGES_LOOP);
    add(order, "0F0 0F1 1F0 1B0 0B0 1F1 1B1 0B1");
    assert_true(memory_of(order, stages).given == 237);
}

/* A forward pass leaves 8. The input gradient takes 3 of them, and leaves 2 for that of the weights, which takes 7:
 * F0 8, F1 16, I0 15, I1 14, F2 22, W0 15, W1 8, I2 7, W2 0. Three whole ones would be 24. */
TEST(weight_gradients_wait_with_less) {
    const MtfFrameworkMemory stage = { .left = { 3, 5, 2 } };
    g_autoptr(MtfPipelineOrder) order = mtf_pipeline_order_new(1, 1, 3, MTF_STAGES_LOOP);
    add(order, "0F0 0F1 0I0 0I1 0F2 0W0 0W1 0I2 0W2");
    assert_true(memory_of(order, &stage).given == 22);
}
