// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention to memory in parts is attention, forward and backward, by the witness that shares no code with
 * the kernels; and what it cannot be done to stays. That layouts of it give its losses is shown in
 * tests/runtime/session/test_split_keys.c. */
#include "tests/support/cmocka.h"

#include "layouts/execution/key_parts.h"
#include "layouts/graph/iteration.h"
#include "tests/support/losses/attention_training.h"

#include <math.h>
#include <string.h>

static const struct {
    int queries;
    const char *attributes, *added;
} cases[] = {
    { 5, "", "" },
    { 5, "", ", 'w'" },
    { 5, ", 'softcap': 0.8", ", 'w'" },
    { 12, ", 'causal': 1", "" },
    { 12, ", 'causal': 1, 'window': 3", "" },
    { 12, ", 'causal': 1, 'window': 7, 'softcap': 0.8", "" },
    { 17, ", 'causal': 1", "" },
    { 3, ", 'causal': 1, 'softcap': 0.8", "" },
    { 12, ", 'causal': 1, 'dropout': 0.3", "" },
    { 5, ", 'dropout': 0.5, 'stream': 'other'", ", 'w'" },
};

TEST(parts_give_results_and_gradients_of_the_whole) {
    static const int counts[] = { 2, 3, 12 };
    for (gsize i = 0; i < G_N_ELEMENTS(cases) * G_N_ELEMENTS(counts); i++) {
        gsize c = i / G_N_ELEMENTS(counts);
        g_autoptr(MtfGraph) graph =
            mtf_test_attention_training(cases[c].queries, cases[c].attributes, cases[c].added);
        g_autoptr(MtfGraph) split = mtf_graph_copy(graph);
        assert_true(mtf_graph_split_keys(split, counts[i % G_N_ELEMENTS(counts)], NULL));
        assert_true(mtf_graph_find_operation(split, "y/parts") >= 0);
        mtf_test_attention_alike(graph, split);
    }
}

TEST(gradients_are_the_slopes_of_what_the_parts_give) {
    g_autoptr(MtfGraph) graph = mtf_test_attention_training(12, ", 'causal': 1, 'window': 5", "");
    assert_true(mtf_graph_split_keys(graph, 3, NULL));
    mtf_test_attention_slopes(graph);
}

TEST(what_so_many_parts_do_not_divide_stays) {
    g_autoptr(MtfGraph) graph = mtf_test_attention_training(5, "", "");
    g_autoptr(GError) error = NULL;
    int operations = (int)graph->operations->len;
    assert_true(mtf_graph_split_keys(graph, 1, NULL));
    assert_false(mtf_graph_split_keys(graph, 5, &error));
    assert_non_null(strstr(error->message, "no attention whose memory 5 parts divide"));
    assert_int_equal(graph->operations->len, operations);
    g_autoptr(MtfGraph) biased = mtf_test_attention_training(12, ", 'causal': 1", ", 'w'");
    assert_false(mtf_graph_split_keys(biased, 2, NULL));
}

/* 12 queries and 12 positions, causal, have 72 points of 144. Of six positions in the first of two parts
 * six queries see some and six see all: 6 * 6 / 2 + 6 * 6 of 72; of both parts together as of the whole. */
TEST(the_part_that_most_queries_see_is_priced) {
    g_autoptr(MtfGraph) graph = mtf_test_attention_training(12, ", 'causal': 1", "");
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
