// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/losses/attention_training.h"

#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/reference/reference.h"

#include <math.h>

MtfGraph *mtf_test_attention_training(int queries, const char *attributes, const char *added) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'h': 2, 'l': %d, 'm': 12, 'd': 3}, "
        "'variables': [{'name': 'q', 'dims': ['b', 'l', 'h', 'd'], 'dtype': 'float64', 'init': "
        "{'normal': 1}}, {'name': 'k', 'dims': ['b', 'm', 'd'], 'dtype': 'float64', 'init': "
        "{'normal': 1}}, {'name': 'v', 'dims': ['b', 'm', 'd'], 'dtype': 'float64', 'init': "
        "{'normal': 1}}, {'name': 'u', 'dims': ['h', 'm'], 'dtype': 'float64', 'init': {'normal': 1}}, "
        "{'name': 'w', 'dims': ['l', 'm'], 'dtype': 'float64', 'init': {'normal': 1}}, {'name': 'c', "
        "'dims': ['b', 'l', 'm'], 'dtype': 'float64', 'init': {'normal': 1}, 'frozen': true}], "
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

void mtf_test_attention_alike(const MtfGraph *whole, const MtfGraph *rewritten) {
    static const char *const compared[] = { "y",      "loss",   "grad/q", "grad/k",
                                            "grad/v", "grad/u", "grad/w" };
    g_autoptr(MtfReference) one = mtf_reference_new(whole, 1);
    g_autoptr(MtfReference) other = mtf_reference_new(rewritten, 1);
    mtf_reference_run(one, 0);
    mtf_reference_run(other, 0);
    for (gsize k = 0; k < G_N_ELEMENTS(compared); k++)
        check_tensor(one, other, compared[k]);
}

static double loss_at(MtfReference *reference, const char *variable, int64_t i, double by) {
    double *value = mtf_reference_find(reference, variable) + i;
    *value += by;
    mtf_reference_run(reference, 0);
    *value -= by;
    return mtf_reference_find(reference, "loss")[0];
}

/* Those of a variable that learns, else none. */
static int64_t learned_elements(const MtfGraph *graph, const char *variable) {
    g_autofree char *name = g_strdup_printf("grad/%s", variable);
    int t = mtf_graph_find_tensor(graph, name);
    return t < 0 ? 0 : mtf_graph_elements(graph, &mtf_graph_tensor(graph, t)->shape);
}

/* (f(x + e) - f(x - e)) / 2e is f' to e^2 and what rounding leaves, 1e-16 / e. */
void mtf_test_attention_slopes(MtfGraph *graph) {
    static const char *const variables[] = { "q", "k", "v", "u", "w" };
    double e = 1e-5;
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 1);
    for (gsize v = 0; v < G_N_ELEMENTS(variables); v++) {
        g_autofree char *name = g_strdup_printf("grad/%s", variables[v]);
        int64_t n = learned_elements(graph, variables[v]);
        for (int64_t i = 0; i < n; i += 5) {
            double slope =
                (loss_at(reference, variables[v], i, e) - loss_at(reference, variables[v], i, -e)) /
                (2 * e);
            mtf_reference_run(reference, 0);
            assert_true(fabs(mtf_reference_find(reference, name)[i] - slope) <= 1e-8);
        }
    }
}
