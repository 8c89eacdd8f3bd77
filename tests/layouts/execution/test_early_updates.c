// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/execution/early_updates.h"
#include "tests/support/cases/microbatch_training.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/training_case.h"

#define LAYERS 6
#define SIDE 64

/* Six square layers and a small batch: weights are what takes memory. */
static MtfGraph *forward(double clip_norm) {
    MtfGraph *graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'd': 64, 'e': 64}, 'inputs': "
        "[{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}], 'operations': [{'repeat': "
        "{'name': 'layer', 'count': 6, 'carry': [{'name': 'h', 'init': 'x', 'next': 'n'}], "
        "'variables': [{'name': 'w', 'dims': ['d', 'e'], 'init': {'normal': 0.1}}], 'operations': "
        "[{'name': 'p', 'op': 'einsum', 'inputs': ['h', 'w'], 'dims': ['b', 'e']}, {'name': 'r', "
        "'op': 'rename', 'inputs': ['p'], 'from': 'e', 'to': 'd'}, {'name': 'n', 'op': 'tanh', "
        "'inputs': ['r']}]}}, {'name': 'l', 'op': 'reduce_mean', 'inputs': ['layer/h'], 'dims': "
        "[]}], 'variables': [], 'loss': 'l', 'optimizer': {'kind': 'adam', 'rate': 0.1}}");
    graph->optimizer.clip_norm = clip_norm;
    return graph;
}

/* A second time nothing is left to move. */
static MtfGraph *early_updates(const MtfGraph *late) {
    MtfGraph *early = mtf_graph_copy(late);
    mtf_update_early(early);
    g_autoptr(MtfGraph) again = mtf_graph_copy(early);
    mtf_update_early(again);
    for (int i = 0; i < (int)late->operations->len; i++)
        assert_string_equal(mtf_graph_operation(early, i)->name,
                            mtf_graph_operation(again, i)->name);
    return early;
}

static int first_update(const MtfGraph *graph) {
    int i = 0;
    while (mtf_graph_operation(graph, i)->kind != MTF_OP_ADAM)
        i++;
    return i;
}

static int last_backward(const MtfGraph *graph) {
    int i = (int)graph->operations->len - 1;
    while (mtf_graph_operation(graph, i)->phase != MTF_PHASE_BACKWARD)
        i--;
    return i;
}

/* Weights, m and v take 3 * 6 squares either way. The gradients of all but one or two layers need
 * not be there at once. */
TEST(gradients_are_not_all_there_at_once) {
    const int64_t square = SIDE * SIDE * (int64_t)sizeof(float);
    g_autoptr(MtfGraph) written = forward(0);
    g_autoptr(MtfGraph) late = mtf_training_graph(written, NULL);
    g_autoptr(MtfGraph) early = early_updates(late);
    assert_true(mtf_test_arena_bytes(late) >= (3 * LAYERS + LAYERS) * square);
    assert_true(mtf_test_arena_bytes(early) < (3 * LAYERS + 2) * square);
}

/* The last layer's gradient comes first; its update waits for the product that reads the weights.
 */
TEST(an_update_follows_what_reads_its_variable) {
    g_autoptr(MtfGraph) written = forward(0);
    g_autoptr(MtfGraph) late = mtf_training_graph(written, NULL);
    g_autoptr(MtfGraph) graph = early_updates(late);
    int update = mtf_graph_find_operation(graph, "update/layer/5/w");
    assert_int_equal(first_update(graph), update);
    assert_true(update < last_backward(graph));
    int variable = mtf_graph_find_tensor(graph, "layer/5/w");
    for (int i = update + 1; i < (int)graph->operations->len; i++)
        for (int k = 0; k < mtf_graph_operation(graph, i)->n_inputs; k++)
            assert_int_not_equal(mtf_graph_operation(graph, i)->inputs[k], variable);
}

TEST(what_needs_all_gradients_stays_behind_them) {
    g_autoptr(MtfGraph) clipping = forward(1);
    g_autoptr(MtfGraph) late = mtf_training_graph(clipping, NULL);
    g_autoptr(MtfGraph) clipped = early_updates(late);
    assert_true(first_update(clipped) > last_backward(clipped));
    g_autoptr(MtfGraph) parts = forward(0);
    g_autoptr(MtfGraph) accumulated = mtf_test_microbatches(parts, 2, NULL);
    assert_true(first_update(accumulated) > last_backward(accumulated));
}
