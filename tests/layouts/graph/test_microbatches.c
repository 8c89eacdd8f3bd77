// SPDX-License-Identifier: GPL-3.0-or-later
// seconds: 300
/* Micro-batches do not affect results: a step that works through its batch in parts has the loss of
 * one that takes it whole, under any layout. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/placement/rules.h"
#include "tests/support/cases/microbatch_training.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/cases/training_plan.h"
#include "tests/support/draws.h"
#include "tests/support/losses/layout_losses.h"
#include "tests/support/losses/lockstep.h"

#include <math.h>

#define SEED 11
#define MLP "batch:12;features:7;hidden:12;targets:5"
#define TRANSFORMER "batch:8;length:8;memory_length:8;d_model:16;heads:4;d_kv:4;d_ff:24"

/* The losses of the whole batch, and the graph of micro-batches that must give them. */
static void init_parts(MtfLossModel *parts, const MtfLossModel *whole, const char *graph,
                       const char *sizes, MtfDtype dtype, int microbatches) {
    g_autoptr(GError) error = NULL;
    MtfTrainingPlan wanted = { .graph = graph,
                               .sizes = sizes,
                               .dtype = dtype,
                               .mesh = "",
                               .rules = "",
                               .microbatches = microbatches };
    g_autoptr(MtfPlan) plan = mtf_training_plan(&wanted, &error);
    if (plan == NULL)
        fail_msg("%s", error->message);
    *parts = *whole;
    parts->graph = g_steal_pointer(&plan->graph);
    parts->data =
        mtf_data_open(parts->graph, g_str_equal(graph, "mlp") ? NULL : "LICENSE", SEED, &error);
    assert_non_null(parts->data);
    assert_int_equal(mtf_data_items(parts->data), mtf_data_items(whole->data));
}

static void check_layouts(const MtfLossModel *parts, MtfDtype dtype, int rules, int free) {
    static const int devices[] = { 1, 2, 3, 4, 6, 8 };
    g_autoptr(GRand) random = g_rand_new_with_seed(17);
    for (int draw = 0; draw < rules + free; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 6]);
        g_autoptr(MtfLayout) layout = draw < rules
                                          ? mtf_random_rule_layout(random, parts->graph, &mesh)
                                          : mtf_random_free_layout(random, parts->graph, &mesh);
        layout->execution.bucket_bytes = draw % 3 * 100000;
        mtf_check_layout_losses(parts, layout, draw < rules ? LAYOUT_STEPS : 5, dtype);
    }
}

static void check_model(const char *graph, const char *sizes, const int *counts, int draws) {
    for (int f = 0; f < 2; f++) {
        MtfDtype dtype = f == 0 ? MTF_F64 : MTF_F32;
        MtfLossModel whole, parts;
        mtf_loss_model_init(&whole, graph, sizes, dtype);
        for (const int *count = counts; *count > 0; count++) {
            init_parts(&parts, &whole, graph, sizes, dtype, *count);
            check_layouts(&parts, dtype, mtf_draws(draws), mtf_draws(draws / 2));
            mtf_loss_model_clear(&parts);
        }
        mtf_loss_model_clear(&whole);
    }
}

TEST(an_mlp_gives_its_losses_in_any_number_of_parts) {
    check_model("mlp", MLP, (const int[]){ 1, 2, 3, 4, 12, 0 }, 12);
}

TEST(a_transformer_gives_its_losses_in_any_number_of_parts) {
    check_model("transformer-small", TRANSFORMER, (const int[]){ 2, 4, 0 }, 6);
}

/* Dropout of a tensor whose batch comes second, a term that passes through linear operations, a sum
 * instead of a mean, and clipping. */
static const char strange[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 12, 'd': 5, 'e': 4}, 'inputs': "
    "[{'name': 'x', 'dims': ['batch', 'd'], 'feed': 'features'}, {'name': 'y', 'dims': ['batch', "
    "'e'], 'feed': 'targets'}], 'variables': [{'name': 'w', 'dims': ['d', 'e'], 'init': {'normal': "
    "0.5}}, {'name': 's', 'dims': ['e'], 'init': 'ones'}], 'operations': [{'name': 'p', 'op': "
    "'einsum', 'inputs': ['x', 'w'], 'dims': ['e', 'batch']}, {'name': 'h', 'op': 'dropout', "
    "'inputs': ['p'], 'rate': 0.3}, {'name': 'z', 'op': 'subtract', 'inputs': ['h', 'y'], 'dims': "
    "['batch', 'e']}, {'name': 'q', 'op': 'square', 'inputs': ['z']}, {'name': 't', 'op': "
    "'reduce_sum', 'inputs': ['q'], 'dims': ['e']}, {'name': 'u', 'op': 'multiply', 'inputs': "
    "['t', 's']}, {'name': 'm', 'op': 'reduce_mean', 'inputs': ['z'], 'dims': ['e']}, {'name': "
    "'v', 'op': 'add', 'inputs': ['u', 'm']}, {'name': 'loss', 'op': 'reduce_sum', 'inputs': "
    "['v'], 'dims': []}], 'loss': 'loss', 'optimizer': {'kind': 'adam', 'rate': 0.01, "
    "'clip_norm': 3}}";

static void losses_of_strange(int microbatches, const char *mesh_text, const char *rules_text,
                              double *losses) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) forward = mtf_test_graph(strange);
    mtf_graph_set_precision(forward, MTF_F64);
    MtfLossModel model = { .graph = mtf_test_microbatches(forward, microbatches, &error) };
    if (model.graph == NULL)
        fail_msg("%s", error->message);
    model.data = mtf_data_open(model.graph, NULL, SEED, NULL);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(model.graph, &mesh, rules_text, NULL, NULL);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(model.graph, &mesh, rules);
    mtf_layout_losses(&model, layout, LAYOUT_STEPS, false, losses);
    mtf_loss_model_clear(&model);
}

TEST(dropout_sums_and_clipping_do_not_see_the_parts) {
    double whole[LAYOUT_STEPS], parts[LAYOUT_STEPS];
    losses_of_strange(1, "", "", whole);
    assert_true(whole[LAYOUT_STEPS - 1] < whole[0]);
    for (int count = 2; count <= 4; count++) {
        losses_of_strange(count, "r:2;c:3", "batch:r;e:c", parts);
        for (int s = 0; s < LAYOUT_STEPS; s++)
            assert_true(fabs(parts[s] - whole[s]) <= 1e-10 * fabs(whole[s]));
    }
}

/* A worker that does not turn to the second micro-batch sees the first one's examples twice. */
TEST(examples_seen_twice_are_noticed) {
    MtfLossModel whole, parts;
    mtf_loss_model_init(&whole, "mlp", MLP, MTF_F64);
    init_parts(&parts, &whole, "mlp", MLP, MTF_F64, 2);
    MtfMesh mesh = { 0 };
    g_autoptr(MtfLayout) layout = mtf_layout_new(parts.graph, &mesh);
    g_autoptr(MtfProgram) program = mtf_lower(parts.graph, layout);
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, SEED, NULL);
    mtf_worker_initialise(lockstep->workers[0], SEED);
    assert_true(mtf_data_fill_inputs(parts.data, lockstep->workers[0], 1, NULL));
    for (int k = 0; k < 2; k++) {
        lockstep->workers[0]->microbatch = k;
        for (int i = 0; i < program->n_repeated; i++)
            mtf_lockstep_instruction(lockstep, i, 1);
    }
    double loss = mtf_lockstep_scalar(lockstep, parts.graph->loss);
    assert_int_equal(mtf_losses_differ(&whole, &loss, 1, MTF_F64), 0);
    g_clear_pointer(&lockstep, mtf_lockstep_free);
    mtf_loss_model_clear(&parts);
    mtf_loss_model_clear(&whole);
}
