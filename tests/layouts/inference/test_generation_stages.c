// SPDX-License-Identifier: GPL-3.0-or-later
/* The pipeline that generates, from one that trains: stages run one after the other by the reference,
 * which knows no kernels, with what they send copied by hand, give the scores of the whole. */
#include "layouts/inference/generation_stages.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cmocka.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <string.h>

#define STAGES 3
#define BATCH 2
#define VOCABULARY 7
#define TOKENS 4

/* Three layers; learned positions, and a table that embeds and scores, in the first and the last stage. */
static const char *const configs[] = {
    "{'model_type': 'gpt2', 'vocab_size': 7, 'n_embd': 8, 'n_layer': 3, 'n_head': 2, "
    "'n_positions': 16}",
    "{'model_type': 'llama', 'vocab_size': 7, 'max_position_embeddings': 16, 'hidden_size': 8, "
    "'intermediate_size': 12, 'num_hidden_layers': 3, 'num_attention_heads': 4, "
    "'num_key_value_heads': 2, 'rms_norm_eps': 1e-5, 'hidden_act': 'silu', "
    "'tie_word_embeddings': true}",
};

/* A layer a stage: what comes before belongs to the first, what comes behind to the last. */
static void cut(MtfGraph *graph) {
    int stage = 1;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(graph, i);
        if (op->layer.block > 0)
            stage = MAX(stage, op->layer.iteration + 1);
        op->stage = stage;
    }
}

static MtfPipelinePlan *trained_pipeline(const char *config) {
    MtfGraph *graph = mtf_test_model(config, BATCH, 6);
    cut(graph);
    int batch = mtf_graph_find_dimension(graph, "batch");
    mtf_graph_dimension(graph, batch)->step_size = 2 * mtf_graph_size(graph, batch);
    MtfPipelineOrder *order = mtf_pipeline_order_new(STAGES, STAGES, 2, MTF_STAGES_LOOP);
    for (int s = 0; s < STAGES; s++)
        for (int m = 0; m < 2; m++) {
            mtf_pipeline_order_add(order, MTF_WORK_FORWARD, s, m);
            mtf_pipeline_order_add(order, MTF_WORK_BACKWARD, s, m);
        }
    GError *error = NULL;
    MtfPipelinePlan *pipeline = mtf_pipeline_plan_new(graph, "1f1b", order, &error);
    if (pipeline == NULL)
        fail_msg("%s", error->message);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("rows:1", 0, &mesh, NULL));
    for (int s = 0; s < STAGES; s++) {
        MtfPlan *plan = g_new0(MtfPlan, 1);
        plan->graph = mtf_graph_copy(mtf_pipeline_stage_graph(pipeline, s));
        plan->layout = mtf_layout_new(plan->graph, &mesh);
        assert_true(mtf_pipeline_plan_add(pipeline, plan, NULL));
    }
    return pipeline;
}

static int token(int example, int place) {
    return (3 * example + place * place + place) % VOCABULARY;
}

static void set_input(MtfReference *reference, MtfFeed feed, int place) {
    int tensor = mtf_generation_input(reference->graph, feed);
    for (int b = 0; tensor >= 0 && b < BATCH; b++)
        reference->values[tensor][b] = feed == MTF_FEED_TOKENS     ? token(b, place)
                                       : feed == MTF_FEED_POSITION ? place
                                                                   : 0;
}

static void run(MtfReference *reference, int place) {
    set_input(reference, MTF_FEED_TOKENS, place);
    set_input(reference, MTF_FEED_POSITION, place);
    set_input(reference, MTF_FEED_LAST, place);
    mtf_reference_run(reference, 0);
}

/* What stage `to` receives, as the stages before have it. */
static void receive(const MtfPipelinePlan *pipeline, MtfReference *const *stages, int to) {
    for (guint i = 0; i < pipeline->split->transfers->len; i++) {
        const MtfStageTransfer *t = &g_array_index(pipeline->split->transfers, MtfStageTransfer, i);
        const MtfGraph *graph = stages[t->from]->graph;
        if (t->to == to)
            memcpy(stages[to]->values[t->received], stages[t->from]->values[t->sent],
                   sizeof(double) *
                       (size_t)mtf_graph_elements(graph, &mtf_graph_tensor(graph, t->sent)->shape));
    }
}

static void stages_score_like_the_whole(const char *config) {
    GError *error = NULL;
    g_autoptr(MtfPipelinePlan) trained = trained_pipeline(config);
    const MtfGenerationSizes sizes = { .length = 1, .context = 8 };
    g_autoptr(MtfGraph) graph = mtf_generation_graph(trained->graph, &sizes, NULL);
    g_autoptr(MtfPipelinePlan) pipeline = mtf_generation_pipeline(trained, &sizes, &error);
    if (pipeline == NULL)
        fail_msg("%s", error->message);
    g_autoptr(MtfReference) whole = mtf_reference_new(graph, 3);
    MtfReference *stages[STAGES];
    for (int s = 0; s < STAGES; s++)
        stages[s] = mtf_reference_new(mtf_pipeline_stage(pipeline, s)->graph, 3);
    const double *expected = whole->values[mtf_generation_scores(graph)];
    for (int place = 0; place < TOKENS; place++) {
        run(whole, place);
        mtf_reference_update(whole);
        for (int s = 0; s < STAGES; s++) {
            receive(pipeline, stages, s);
            run(stages[s], place);
            mtf_reference_update(stages[s]);
        }
        const MtfReference *last = stages[STAGES - 1];
        const double *scores = last->values[mtf_generation_scores(last->graph)];
        for (int i = 0; i < BATCH * VOCABULARY; i++)
            if (!(fabs(scores[i] - expected[i]) < 1e-12))
                fail_msg("%s: score %d behind token %d: %g, not %g", config, i, place, scores[i],
                         expected[i]);
    }
    for (int s = 0; s < STAGES; s++)
        mtf_reference_free(stages[s]);
}

TEST(stages_give_the_scores_of_the_whole) {
    for (gsize i = 0; i < G_N_ELEMENTS(configs); i++)
        stages_score_like_the_whole(configs[i]);
}

static MtfPipelinePlan *generating(void) {
    g_autoptr(MtfPipelinePlan) trained = trained_pipeline(configs[1]);
    const MtfGenerationSizes sizes = { .batch = 5, .length = 1, .context = 8 };
    MtfPipelinePlan *pipeline = mtf_generation_pipeline(trained, &sizes, NULL);
    assert_non_null(pipeline);
    return pipeline;
}

static int count_variables(const MtfGraph *graph, MtfMemoryKind memory) {
    int n = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        n += tensor->source == MTF_SOURCE_VARIABLE && tensor->memory == memory;
    }
    return n;
}

/* A layer's keys and values; scores at the end. */
TEST(a_stage_keeps_the_caches_of_its_layers) {
    g_autoptr(MtfPipelinePlan) pipeline = generating();
    for (int s = 0; s < STAGES; s++) {
        const MtfPlan *plan = mtf_pipeline_stage(pipeline, s);
        assert_int_equal(count_variables(plan->graph, MTF_MEMORY_CACHE), 2);
        assert_int_equal(count_variables(plan->graph, MTF_MEMORY_OUTPUT), s == STAGES - 1);
        assert_true(mtf_layout_check(plan->graph, plan->layout, NULL));
    }
}

/* The table of the first stage is sent to the last once, where it is a variable, too. */
TEST(a_shared_table_is_a_variable_of_both) {
    g_autoptr(MtfPipelinePlan) pipeline = generating();
    int once = 0;
    for (guint i = 0; i < pipeline->split->transfers->len; i++) {
        const MtfStageTransfer *t = &g_array_index(pipeline->split->transfers, MtfStageTransfer, i);
        if (!t->once)
            continue;
        once++;
        assert_int_equal(t->from, 0);
        assert_int_equal(t->to, STAGES - 1);
        const MtfGraph *to = pipeline->split->graphs->pdata[t->to];
        assert_int_equal(mtf_graph_tensor(to, t->received)->source, MTF_SOURCE_VARIABLE);
    }
    assert_int_equal(once, 1);
}

/* A piece of a prompt is as long in all stages, also in those that read no tokens. */
TEST(all_stages_bring_as_many_tokens) {
    g_autoptr(MtfPipelinePlan) pipeline = generating();
    g_autoptr(MtfPipelinePlan) longer = mtf_generation_pipeline_at(pipeline, 4);
    int length = mtf_generation_length(longer->graph);
    for (int s = 0; s < STAGES; s++) {
        const MtfPlan *plan = mtf_pipeline_stage(longer, s);
        assert_int_equal(mtf_graph_size(plan->graph, length), 4);
        assert_true(mtf_layout_check(plan->graph, plan->layout, NULL));
    }
}
