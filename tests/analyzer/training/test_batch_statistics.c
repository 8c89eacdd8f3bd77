// SPDX-License-Identifier: GPL-3.0-or-later
/* Batch normalisation with the statistics of each micro-batch, against a graph that says the same by
 * hand and is never cut: its examples have a dimension of groups, and each group its statistics. The
 * interpreter of tests/support/reference/reference.h, which shares no code with what runs, trains that one. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/graph/microbatches.h"
#include "runtime/kernels/base/slice.h"
#include "tests/support/cases/microbatch_training.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/random_layout.h"
#include "tests/support/losses/layout_losses.h"
#include "tests/support/losses/lockstep.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <string.h>

#define SEED 11
#define STEPS 12
#define BATCH 12

/* w x is normalised, and so is a product of what comes of that. `examples` are the dimensions of
 * examples, `group` those that statistics keep, `per` what reductions say beside, `over` makes a
 * statistic one of the step. */
static char *network(const char *dims, const char *examples, const char *group, const char *per,
                     const char *mean_now, const char *over) {
    return g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {%s, 'd': 5, 'e': 4}, 'inputs': [{'name': "
        "'x', 'dims': [%s, 'd'], 'feed': 'features'}, {'name': 'y', 'dims': [%s, 'e'], 'feed': "
        "'targets'}], 'variables': [{'name': 'w', 'dims': ['d', 'e'], 'init': {'normal': 0.5}}, "
        "{'name': 'scale', 'dims': ['e'], 'init': 'ones'}, {'name': 'bias', 'dims': ['e'], 'init': "
        "'zeros'}, {'name': 'running', 'dims': ['e'], 'init': 'ones', 'frozen': true}], "
        "'operations': [{'name': 'p', 'op': 'einsum', 'inputs': ['x', 'w'], 'dims': [%s, 'e']}, "
        "{'name': 'mean', 'op': 'reduce_mean', 'inputs': ['p'], 'dims': [%s 'e'] %s}, {'name': "
        "'variance', 'op': 'variance', 'inputs': ['p', 'mean'], 'dims': [%s 'e'] %s}, {'name': 'n', "
        "'op': 'normalize', 'inputs': ['p', 'mean', 'variance', 'scale', 'bias'], 'epsilon': "
        "0.01}, {'name': 'h', 'op': 'tanh', 'inputs': ['n']}, {'name': 'z', 'op': 'subtract', "
        "'inputs': ['h', 'y']}, {'name': 'q', 'op': 'square', 'inputs': ['z']}, {'name': 'l', "
        "'op': 'reduce_mean', 'inputs': ['q'], 'dims': []}, {'name': 'kept', 'op': 'scale', "
        "'inputs': ['running'], 'factor': 0.75}, %s {'name': 'now', 'op': 'scale', 'inputs': "
        "['%s'], 'factor': 0.25}, {'name': 'next', 'op': 'add', 'inputs': ['kept', 'now'], 'dims': "
        "['e']}], 'loss': 'l', 'updates': [{'variable': 'running', 'value': 'next'}], 'optimizer': "
        "{'kind': 'momentum', 'rate': 0.3}}",
        dims, examples, examples, examples, group, per, group, per, over, mean_now);
}

static MtfGraph *training_graph(const char *text, int microbatches) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) forward = mtf_test_graph(text);
    mtf_graph_set_precision(forward, MTF_F64);
    MtfGraph *graph = mtf_test_microbatches(forward, microbatches, &error);
    if (graph == NULL)
        fail_msg("%s", error->message);
    return graph;
}

/* Statistics over 12 / microbatches examples, which the operations say. */
static MtfGraph *in_parts(int microbatches) {
    g_autofree char *text = network("'b': 12", "'b'", "", ", 'per_microbatch': 1", "mean", "");
    return training_graph(text, microbatches);
}

/* The same by hand. */
static MtfGraph *in_groups(int groups) {
    g_autofree char *dims = g_strdup_printf("'g': %d, 'b': %d", groups, BATCH / groups);
    g_autofree char *text =
        network(dims, "'g', 'b'", "'g', ", "", "all",
                "{'name': 'all', 'op': 'reduce_mean', 'inputs': ['mean'], 'dims': ['e']},");
    return training_graph(text, 1);
}

/* Groups are micro-batches: example i of 12 is element i of the groups' examples, too. */
static void copy_inputs(MtfData *data, const MtfLockstep *lockstep, int microbatch, int parts,
                        MtfReference *reference) {
    static const char *const names[] = { "x", "y" };
    const MtfGraph *graph = lockstep->workers[0]->program->graph;
    mtf_worker_set_microbatch(lockstep->workers[0], microbatch);
    assert_true(mtf_data_fill_inputs(data, lockstep->workers[0], 1, NULL));
    for (int k = 0; k < 2; k++) {
        int tensor = mtf_graph_find_tensor(graph, names[k]);
        int64_t n = mtf_graph_elements(graph, &mtf_graph_tensor(graph, tensor)->shape);
        const MtfOperand *slice = mtf_worker_tensor(lockstep->workers[0], tensor);
        double *values = mtf_reference_find(reference, names[k]);
        for (int64_t i = 0; i < n; i++)
            values[microbatch * n + i] = mtf_slice_get(slice, i);
    }
    assert_int_equal(parts, mtf_graph_microbatches(graph));
}

/* Trains both on the examples of step 1; the losses and the running mean. */
static void train(int parts, double *losses, double *witness, double *running,
                  double *running_witness) {
    g_autoptr(MtfGraph) graph = in_parts(parts), groups = in_groups(parts);
    g_autoptr(GError) error = NULL;
    MtfMesh mesh = { 0 };
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, SEED, &error);
    g_autoptr(MtfReference) reference = mtf_reference_new(groups, SEED);
    MtfData *data = mtf_data_open(graph, NULL, SEED, NULL);
    for (int k = 0; k < parts; k++)
        copy_inputs(data, lockstep, k, parts, reference);
    lockstep->data = data;
    mtf_worker_initialise(lockstep->workers[0], SEED);
    for (int s = 0; s < STEPS; s++) {
        mtf_worker_set_microbatch(lockstep->workers[0], 0);
        assert_true(mtf_data_fill_inputs(data, lockstep->workers[0], 1, NULL));
        mtf_lockstep_step(lockstep, 1);
        losses[s] = mtf_lockstep_scalar(lockstep, graph->loss);
        mtf_reference_run(reference, 0);
        witness[s] = reference->values[groups->loss][0];
        mtf_reference_update(reference);
    }
    const MtfOperand *kept =
        mtf_worker_tensor(lockstep->workers[0], mtf_graph_find_tensor(graph, "running"));
    for (int i = 0; i < 4; i++)
        running[i] = mtf_slice_get(kept, i);
    memcpy(running_witness, mtf_reference_find(reference, "running"), 4 * sizeof(double));
    mtf_data_close(data);
}

static void assert_close(double x, double y) {
    if (!(fabs(x - y) <= 1e-11 * (1 + fabs(y))))
        fail_msg("%.17g is not %.17g", x, y);
}

TEST(statistics_of_micro_batches_are_those_of_groups_by_hand) {
    static const int counts[] = { 1, 2, 3, 4, 6 };
    double losses[STEPS], witness[STEPS], running[4], by_hand[4];
    double last = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(counts); i++) {
        train(counts[i], losses, witness, running, by_hand);
        for (int s = 0; s < STEPS; s++)
            assert_close(losses[s], witness[s]);
        for (int k = 0; k < 4; k++)
            assert_close(running[k], by_hand[k]);
        assert_true(losses[STEPS - 1] < losses[0]);
        assert_true(fabs(losses[1] - last) > 1e-6); /* another count is another result */
        last = losses[1];
    }
}

/* The witness's own gradients, of statistics by group. */
TEST(the_gradients_by_hand_are_finite_differences) {
    g_autoptr(MtfGraph) graph = in_groups(3);
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, SEED);
    mtf_reference_fill_inputs(reference, 4);
    mtf_reference_run(reference, 0);
    double gradient[20], *w = mtf_reference_find(reference, "w");
    memcpy(gradient, mtf_reference_find(reference, "grad/w"), sizeof gradient);
    for (int i = 0; i < 20; i++) {
        double loss[2], old = w[i];
        for (int side = 0; side < 2; side++) {
            w[i] = old + (side == 0 ? -1e-5 : 1e-5);
            mtf_reference_run(reference, 0);
            loss[side] = reference->values[graph->loss][0];
        }
        w[i] = old;
        assert_true(fabs((loss[1] - loss[0]) / 2e-5 - gradient[i]) < 1e-8);
    }
}

TEST(no_layout_changes_what_statistics_are_of) {
    static const int devices[] = { 2, 3, 4, 6 };
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    MtfLossModel model = { .graph = in_parts(3) };
    model.data = mtf_data_open(model.graph, NULL, SEED, NULL);
    MtfMesh one = { 0 };
    g_autoptr(MtfLayout) whole = mtf_layout_new(model.graph, &one);
    mtf_layout_losses(&model, whole, LAYOUT_STEPS, false, model.losses);
    for (int draw = 0; draw < 24; draw++) {
        MtfMesh mesh = mtf_random_mesh(random, devices[draw % 4]);
        g_autoptr(MtfLayout) layout = draw % 2 == 0
                                          ? mtf_random_rule_layout(random, model.graph, &mesh)
                                          : mtf_random_free_layout(random, model.graph, &mesh);
        mtf_check_layout_losses(&model, layout, draw < 8 ? LAYOUT_STEPS : 5, MTF_F64);
    }
    mtf_loss_model_clear(&model);
}

static void refuse(const char *text, int microbatches, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) forward = mtf_test_graph_parse(text, NULL, &error);
    if (forward != NULL)
        assert_null(mtf_test_microbatches(forward, microbatches, &error));
    if (error == NULL || strstr(error->message, why) == NULL)
        fail_msg("%s", error == NULL ? "no error" : error->message);
}

TEST(what_has_no_meaning_is_refused) {
    g_autofree char *step = network("'b': 12", "'b'", "", "", "mean", "");
    g_autofree char *half = network("'b': 12", "'b'", "", ", 'per_microbatch': 0.5", "mean", "");
    refuse(step, 3, "operation \"variance\" (variance) reads \"mean\", which sums over the batch");
    refuse(half, 1, "\"per_microbatch\" is 0.5 and must be 0 or 1");
    refuse("{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 12}, 'inputs': [{'name': 'x', "
           "'dims': ['b'], 'feed': 'features'}], 'variables': [{'name': 'w', 'dims': [], 'init': "
           "'ones'}], 'operations': [{'name': 'p', 'op': 'multiply', 'inputs': ['x', 'w']}, "
           "{'name': 'l', 'op': 'reduce_mean', 'inputs': ['p'], 'dims': [], 'per_microbatch': 1}], "
           "'loss': 'l', 'optimizer': {'kind': 'sgd', 'rate': 0.1}}",
           3, "the loss \"l\" is of one micro-batch (\"per_microbatch\"), no sum over the batch");
}

TEST(the_form_of_a_step_names_its_statistics) {
    g_autoptr(MtfGraph) graph = in_parts(3);
    g_autofree char *text = mtf_graph_step_format(graph);
    assert_string_equal(text, "in 3 micro-batches of 4, batch statistics of each");
}
