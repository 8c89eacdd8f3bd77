// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention to memory in parts is attention, forward and backward, by the witness that shares no code with
 * the kernels; and what it cannot be done to stays. That layouts of it give its losses is shown in
 * tests/runtime/session/test_split_keys.c. */
#include "tests/support/cmocka.h"

#include "analyzer/rewriting/key_parts.h"
#include "analyzer/training/training_graph.h"
#include "layouts/graph/iteration.h"
#include "layouts/graph/operation_table.h"
#include "tests/support/parse_graph.h"
#include "tests/support/reference.h"

#include <math.h>
#include <string.h>

/* The mean of the squares of attention from `queries` positions to 12, of two examples. */
static MtfGraph *training(int queries, const char *attributes, const char *added) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'h': 2, 'l': %d, 'm': 12, 'd': 3}, "
        "'variables': [{'name': 'q', 'dims': ['b', 'l', 'h', 'd'], 'dtype': 'float64', 'init': "
        "{'normal': 1}}, {'name': 'k', 'dims': ['b', 'm', 'd'], 'dtype': 'float64', 'init': "
        "{'normal': 1}}, {'name': 'v', 'dims': ['b', 'm', 'd'], 'dtype': 'float64', 'init': "
        "{'normal': 1}}, {'name': 'w', 'dims': ['l', 'm'], 'dtype': 'float64', 'init': {'normal': 1}}], "
        "'operations': [{'name': 'y', 'op': 'attention', 'inputs': ['q', 'k', 'v'%s], 'query': "
        "'l', 'memory': 'm', 'dimension': 'd', 'factor': 0.7%s}, {'name': 's', 'op': 'square', "
        "'inputs': ['y']}, {'name': 'loss', 'op': 'reduce_mean', 'inputs': ['s'], 'dims': []}], "
        "'loss': 'loss'}",
        queries, added, attributes);
    g_autoptr(MtfGraph) forward = mtf_test_graph(text);
    MtfGraph *graph = mtf_training_graph(forward, NULL);
    assert_non_null(graph);
    return graph;
}

static const struct {
    int queries;
    const char *attributes, *added;
} cases[] = {
    { 5, "", "" },
    { 5, "", ", 'w'" },
    { 12, ", 'causal': 1", "" },
    { 12, ", 'causal': 1, 'window': 3", "" },
    { 12, ", 'causal': 1, 'window': 7, 'softcap': 0.8", "" },
    { 17, ", 'causal': 1", "" },
    { 3, ", 'causal': 1, 'softcap': 0.8", "" },
    { 12, ", 'causal': 1, 'dropout': 0.3", "" },
    { 5, ", 'dropout': 0.5, 'stream': 'other'", ", 'w'" },
};

static void check_tensor(const MtfReference *whole, const MtfReference *parts, const char *name) {
    int t = mtf_graph_find_tensor(whole->graph, name);
    if (t < 0)
        return;
    const double *expected = whole->values[t], *found = mtf_reference_find(parts, name);
    const MtfShape *shape = &mtf_graph_tensor(whole->graph, t)->shape;
    for (int64_t i = 0; i < mtf_graph_elements(whole->graph, shape); i++)
        if (!(fabs(found[i] - expected[i]) <= 1e-12))
            fail_msg("%s: %.17g, not %.17g", name, found[i], expected[i]);
}

static void parts_give_results_and_gradients_of_the_whole(void **state) {
    (void)state;
    static const char *const compared[] = { "y", "loss", "grad/q", "grad/k", "grad/v", "grad/w" };
    static const int counts[] = { 2, 3, 12 };
    for (gsize i = 0; i < G_N_ELEMENTS(cases) * G_N_ELEMENTS(counts); i++) {
        gsize c = i / G_N_ELEMENTS(counts);
        g_autoptr(MtfGraph) graph = training(cases[c].queries, cases[c].attributes, cases[c].added);
        g_autoptr(MtfGraph) split = mtf_graph_copy(graph);
        assert_true(mtf_graph_split_keys(split, counts[i % G_N_ELEMENTS(counts)], NULL));
        assert_true(mtf_graph_find_operation(split, "y/parts") >= 0);
        g_autoptr(MtfReference) whole = mtf_reference_new(graph, 1);
        g_autoptr(MtfReference) parts = mtf_reference_new(split, 1);
        mtf_reference_run(whole, 0);
        mtf_reference_run(parts, 0);
        for (gsize k = 0; k < G_N_ELEMENTS(compared); k++)
            check_tensor(whole, parts, compared[k]);
    }
}

static double loss_at(MtfReference *reference, const char *variable, int64_t i, double by) {
    double *value = mtf_reference_find(reference, variable) + i;
    *value += by;
    mtf_reference_run(reference, 0);
    *value -= by;
    return mtf_reference_find(reference, "loss")[0];
}

/* (f(x + e) - f(x - e)) / 2e is f' to e^2 and what rounding leaves, 1e-16 / e. */
static void gradients_are_the_slopes_of_what_the_parts_give(void **state) {
    (void)state;
    static const char *const variables[] = { "q", "k", "v" };
    double e = 1e-5;
    g_autoptr(MtfGraph) graph = training(12, ", 'causal': 1, 'window': 5", "");
    assert_true(mtf_graph_split_keys(graph, 3, NULL));
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 1);
    for (gsize v = 0; v < G_N_ELEMENTS(variables); v++)
        for (int64_t i = 0; i < 12 * 2 * 3; i += 5) {
            g_autofree char *name = g_strdup_printf("grad/%s", variables[v]);
            double slope =
                (loss_at(reference, variables[v], i, e) - loss_at(reference, variables[v], i, -e)) /
                (2 * e);
            mtf_reference_run(reference, 0);
            assert_true(fabs(mtf_reference_find(reference, name)[i] - slope) <= 1e-8);
        }
}

static void what_so_many_parts_do_not_divide_stays(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = training(5, "", "");
    g_autoptr(GError) error = NULL;
    int operations = (int)graph->operations->len;
    assert_true(mtf_graph_split_keys(graph, 1, NULL));
    assert_false(mtf_graph_split_keys(graph, 5, &error));
    assert_non_null(strstr(error->message, "no attention whose memory 5 parts divide"));
    assert_int_equal(graph->operations->len, operations);
    g_autoptr(MtfGraph) biased = training(12, ", 'causal': 1", ", 'w'");
    assert_false(mtf_graph_split_keys(biased, 2, NULL));
}

/* 12 queries and 12 positions, causal, have 72 points of 144. Of six positions in the first of two parts
 * six queries see some and six see all: 6 * 6 / 2 + 6 * 6 of 72; of both parts together as of the whole. */
static void the_part_that_most_queries_see_is_priced(void **state) {
    (void)state;
    g_autoptr(MtfGraph) graph = training(12, ", 'causal': 1", "");
    assert_true(mtf_graph_split_keys(graph, 2, NULL));
    int operation = mtf_graph_find_operation(graph, "y/parts");
    int parts = mtf_graph_find_dimension(graph, "m/parts");
    MtfIteration iteration;
    int64_t sizes[MTF_MAX_INDEXES];
    mtf_operation_iteration(graph, operation, &iteration);
    for (int held = 1; held <= 2; held++) {
        for (int i = 0; i < iteration.n; i++)
            sizes[i] = iteration.index[i].dim == parts ? held : iteration.index[i].size;
        double share = mtf_operation_share(graph, operation, &iteration, sizes);
        assert_true(fabs(share - (held == 1 ? 54.0 / 72 : 72.0 / 144)) < 1e-12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_give_results_and_gradients_of_the_whole),
        cmocka_unit_test(gradients_are_the_slopes_of_what_the_parts_give),
        cmocka_unit_test(what_so_many_parts_do_not_divide_stays),
        cmocka_unit_test(the_part_that_most_queries_see_is_priced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
