// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention that remembers few features computes what it did, by the witness that shares no code with the kernels.
 * That plans which remember so little say what PyTorch says is shown in tests/e2e/every_model_type.sh. */
#include "tests/support/cmocka.h"

#include "analyzer/rewriting/latent_keys.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/losses/attention_training.h"

/* Two heads whose keys have 5 still features and 3 turned ones, from 4 features of a token and a turned key for both.
 * Values have `values` features, 8 or fewer. `weights` multiply the features to keys. */
static MtfGraph *latent_attention(int values, const char *weights) {
    const char *narrow =
        "{'name': 'filled', 'op': 'pad', 'inputs': ['u'], 'from': 'v', 'to': 'd'}, "
        "{'name': 'value', 'op': 'rename', 'inputs': ['filled'], 'from': 'l', 'to': 'm'}, "
        "{'name': 'o', 'op': 'attention', 'inputs': ['q', 'key', 'value'], 'query': 'l', 'memory': 'm', "
        "'dimension': 'd', 'factor': 0.7, 'causal': 1, 'window': 4}, "
        "{'name': 'y', 'op': 'slice', 'inputs': ['o'], 'from': 'd', 'to': 'v'}, ";
    const char *wide =
        "{'name': 'value', 'op': 'rename', 'inputs': ['u'], 'from': 'l', 'to': 'm'}, "
        "{'name': 'y', 'op': 'attention', 'inputs': ['q', 'key', 'value'], 'query': 'l', 'memory': 'm', "
        "'dimension': 'd', 'factor': 0.7, 'causal': 1}, ";
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': 2, 'h': 2, 'l': 6, 'm': 6, 'c': 4, 's': 5, 'r': 3, "
        "'d': 8%s}, 'variables': ["
        "{'name': 'x', 'dims': ['b', 'l', 'c'], 'dtype': 'float64', 'init': {'normal': 1}}, "
        "{'name': 'turned', 'dims': ['b', 'l', 'r'], 'dtype': 'float64', 'init': {'normal': 1}}, "
        "{'name': 'q0', 'dims': ['b', 'l', 'h', 's'], 'dtype': 'float64', 'init': {'normal': 1}}, "
        "{'name': 'q1', 'dims': ['b', 'l', 'h', 'r'], 'dtype': 'float64', 'init': {'normal': 1}}, "
        "{'name': 'wk', 'dims': ['h', 's', 'c'], 'dtype': 'float64', 'init': {'normal': 1}}, "
        "{'name': 'wv', 'dims': ['h', '%s', 'c'], 'dtype': 'float64', 'init': {'normal': 1}}], "
        "'operations': [{'name': 'few', 'op': 'tanh', 'inputs': ['x']}, "
        "{'name': 'w', 'op': 'square', 'inputs': ['wk']}, "
        "{'name': 'q', 'op': 'concat', 'inputs': ['q0', 'q1'], 'dims': ['b', 'l', 'h', 'd']}, "
        "{'name': 'still', 'op': 'einsum', 'inputs': ['few', '%s'], 'dims': ['b', 'l', 'h', 's']}, "
        "{'name': 'same', 'op': 'broadcast', 'inputs': ['turned'], 'dims': ['b', 'l', 'h', 'r']}, "
        "{'name': 'k', 'op': 'concat', 'inputs': ['still', 'same'], 'dims': ['b', 'l', 'h', 'd']}, "
        "{'name': 'u', 'op': 'einsum', 'inputs': ['few', 'wv'], 'dims': ['b', 'l', 'h', '%s']}, "
        "{'name': 'key', 'op': 'rename', 'inputs': ['k'], 'from': 'l', 'to': 'm'}, %s"
        "{'name': 'z', 'op': 'square', 'inputs': ['y']}, {'name': 'loss', 'op': 'reduce_mean', 'inputs': ['z'], "
        "'dims': []}], 'loss': 'loss'}",
        values < 8 ? ", 'v': 2" : "", values < 8 ? "v" : "d", weights, values < 8 ? "v" : "d",
        values < 8 ? narrow : wide);
    return mtf_test_graph(text);
}

/* The dimensions of what is called by memory's name now: nothing with heads. */
static void check_memory(const MtfGraph *graph) {
    int remembered = mtf_graph_find_tensor(graph, "y/remembered");
    assert_true(remembered >= 0);
    const MtfShape *shape = &mtf_graph_tensor(graph, remembered)->shape;
    assert_int_equal(shape->rank, 3);
    assert_int_equal(mtf_graph_elements(graph, shape), 2 * 6 * (4 + 3));
}

TEST(few_features_give_what_keys_and_values_of_all_heads_give) {
    static const int values[] = { 2, 8 }, queries[] = { 1, 1000 };
    for (int i = 0; i < 4; i++) {
        g_autoptr(MtfGraph) graph = latent_attention(values[i / 2], "wk");
        g_autoptr(MtfGraph) lean = mtf_graph_copy(graph);
        assert_true(mtf_graph_remember_latents(lean, queries[i % 2], 10, NULL));
        check_memory(lean);
        assert_int_equal(mtf_graph_find_tensor(lean, "y/keys") >= 0, queries[i % 2] == 1000);
        mtf_test_attention_alike(graph, lean);
    }
}

/* Of a head, with n queries and m positions: n (4 (5 + 2) + 2 m 7) multiplications of what is remembered, or
 * 4 (5 + 2) m + 2 n m 8: with m = 10 the first is 168 n, the second 280 + 160 n, equal at 35. */
TEST(what_takes_fewer_multiplications_is_done) {
    for (int queries = 34; queries <= 36; queries++) {
        g_autoptr(MtfGraph) graph = latent_attention(2, "wk");
        assert_true(mtf_graph_remember_latents(graph, queries, 10, NULL));
        assert_int_equal(mtf_graph_find_tensor(graph, "y/keys") >= 0, queries > 35);
    }
}

TEST(other_attention_stays) {
    g_autoptr(MtfGraph) graph = latent_attention(2, "w"); /* no variable */
    g_autoptr(MtfGraph) plain = mtf_test_attention_training(5, "", "");
    guint operations[] = { graph->operations->len, plain->operations->len };
    assert_true(mtf_graph_remember_latents(graph, 1, 10, NULL));
    assert_true(mtf_graph_remember_latents(plain, 1, 10, NULL));
    assert_int_equal(graph->operations->len, operations[0]);
    assert_int_equal(plain->operations->len, operations[1]);
}
