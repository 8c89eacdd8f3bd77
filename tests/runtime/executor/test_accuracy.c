// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/placement/rules.h"
#include "runtime/executor/accuracy.h"
#include "runtime/kernels/base/slice.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/losses/lockstep.h"

/* 4 examples of 3 scores times w = 1; the second loss, of a head for training, is not counted. */
static const char text[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 4, 'c': 3}, 'inputs': [{'name': 'x', "
    "'dims': ['b', 'c'], 'feed': 'features'}, {'name': 'labels', 'dims': ['b'], 'dtype': 'int32', "
    "'feed': 'labels'}, {'name': 'mask', 'dims': ['b'], 'feed': 'mask'}], 'variables': [{'name': "
    "'w', 'dims': [], 'init': 'ones'}], 'operations': [{'name': 's', 'op': 'multiply', 'inputs': "
    "['x', 'w']}, {'name': 'l', 'op': 'softmax_cross_entropy', 'inputs': ['s', 'labels', 'mask'], "
    "'dims': ['b']}, {'name': 'n', 'op': 'negate', 'inputs': ['s']}, {'name': 'm', 'op': "
    "'softmax_cross_entropy', 'inputs': ['n', 'labels'], 'dims': ['b']}, {'name': 'both', 'op': "
    "'add', 'inputs': ['l', 'm']}, {'name': 'loss', 'op': 'reduce_mean', 'inputs': ['both'], "
    "'dims': []}], 'loss': 'loss', 'optimizer': {'kind': 'sgd', 'rate': 0.1}}";

/* Highest scores: classes 2, 0, 1, 1. */
static const double scores[] = { 1, 2, 3, 5, 4, 0, -3, -1, -2, 0, 8, 7 };
static const double labels[] = { 2, 1, 1, 1 };
static const double counted[] = { 1, 1, 1, 0 };

static void fill(const MtfWorker *worker, const char *name, const double *values) {
    const MtfGraph *graph = worker->program->graph;
    const MtfOperand *slice = mtf_worker_tensor(worker, mtf_graph_find_tensor(graph, name));
    for (int64_t i = 0; i < mtf_slice_elements(slice); i++)
        mtf_slice_set(slice, i, values[mtf_slice_global_index(slice, i)]);
}

/* What all processors count together. */
static MtfAccuracy count(const char *mesh_text, const char *rules_text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) forward = mtf_test_graph(text);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, &error);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse(mesh_text, 0, &mesh, NULL));
    g_autoptr(MtfRules) rules = mtf_rules_parse(graph, &mesh, rules_text, NULL, NULL);
    g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, &mesh, rules);
    g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
    g_autoptr(MtfLockstep) lockstep = mtf_lockstep_new(program, 1, &error);
    MtfAccuracy accuracy = { 0 };
    for (int r = 0; r < lockstep->n; r++) {
        mtf_worker_initialise(lockstep->workers[r], 1);
        fill(lockstep->workers[r], "x", scores);
        fill(lockstep->workers[r], "labels", labels);
        fill(lockstep->workers[r], "mask", counted);
    }
    for (int i = 0; i < mtf_program_length(program); i++) {
        for (int r = 0; r < lockstep->n; r++)
            mtf_accuracy_look(&accuracy, lockstep->workers[r], i);
        mtf_lockstep_instruction(lockstep, i, 1);
    }
    return accuracy;
}

/* Examples 0 and 2 are right, 1 is wrong, 3 is masked. */
TEST(the_share_of_labels_that_score_highest_is_counted) {
    static const struct {
        const char *mesh, *rules;
        double copies;
    } cases[] = { { "", "", 1 },       { "r:2", "b:r", 1 },     { "r:3", "b:r", 1 },
                  { "r:3", "c:r", 3 }, { "r:2;s:2", "b:r", 2 }, { "r:2;s:3", "b:r;c:s", 3 } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfAccuracy accuracy = count(cases[i].mesh, cases[i].rules);
        assert_true(accuracy.right == 2 * cases[i].copies);
        assert_true(accuracy.all == 3 * cases[i].copies);
    }
}
