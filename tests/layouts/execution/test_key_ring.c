// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention by a ring is attention, forward and backward, by the witness that shares no code with the kernels;
 * and what it cannot be done to stays. That layouts of it give its losses is shown in
 * tests/runtime/session/test_ring.c. */
#include "tests/support/cmocka.h"

#include "layouts/execution/key_ring.h"
#include "layouts/graph/iteration.h"
#include "tests/support/losses/attention_training.h"

#include <math.h>
#include <string.h>

/* Of 12 positions of memory in 2, 3, 6 and 12 parts. A window of 3 ends the turns early where a part is as
 * short as that; of 7, not where there are two parts of 6. */
static const struct {
    int queries;
    const char *attributes, *added;
} cases[] = {
    { 12, "", "" },
    { 24, "", "" },
    { 12, ", 'softcap': 0.8", "" },
    { 12, ", 'causal': 1", "" },
    { 24, ", 'causal': 1", "" },
    { 12, ", 'causal': 1, 'window': 1", "" },
    { 12, ", 'causal': 1, 'window': 3", "" },
    { 12, ", 'causal': 1, 'window': 7, 'softcap': 0.8", "" },
    { 24, "", ", 'u'" },
    { 12, ", 'causal': 1", ", 'u'" },
    { 12, "", ", 'w'" },
    { 24, ", 'causal': 1", ", 'w'" },
    { 12, ", 'causal': 1, 'dropout': 0.3", ", 'w'" },
    { 12, "", ", 'c', 'u'" },
    { 24, "", ", 'u', 'c'" },
    { 12, ", 'causal': 1", ", 'w', 'c'" },
    { 12, ", 'causal': 1, 'softcap': 0.8", ", 'w', 'c'" },
    { 24, ", 'dropout': 0.3", "" },
    { 12, ", 'causal': 1, 'window': 7, 'dropout': 0.3", "" },
    { 12, ", 'causal': 1, 'dropout': 0.3, 'stream': 'other'", ", 'u'" },
};

TEST(a_ring_gives_results_and_gradients_of_the_whole) {
    static const int counts[] = { 2, 3, 6, 12 };
    for (gsize i = 0; i < G_N_ELEMENTS(cases) * G_N_ELEMENTS(counts); i++) {
        gsize c = i / G_N_ELEMENTS(counts);
        g_autoptr(MtfGraph) graph =
            mtf_test_attention_training(cases[c].queries, cases[c].attributes, cases[c].added);
        g_autoptr(MtfGraph) ring = mtf_graph_copy(graph);
        assert_true(mtf_graph_ring_keys(ring, counts[i % G_N_ELEMENTS(counts)], NULL));
        assert_true(mtf_graph_find_operation(ring, "y/0/parts") >= 0);
        mtf_test_attention_alike(graph, ring);
    }
}

TEST(gradients_are_the_slopes_of_what_the_ring_gives) {
    static const char *const kinds[][2] = { { ", 'causal': 1, 'window': 5", "" },
                                            { "", ", 'u'" },
                                            { "", ", 'w'" },
                                            { ", 'causal': 1", ", 'w'" },
                                            { ", 'causal': 1", ", 'u', 'c'" } };
    for (gsize k = 0; k < G_N_ELEMENTS(kinds); k++) {
        g_autoptr(MtfGraph) graph = mtf_test_attention_training(12, kinds[k][0], kinds[k][1]);
        assert_true(mtf_graph_ring_keys(graph, 3, NULL));
        mtf_test_attention_slopes(graph);
    }
}

/* Of 12 positions in 6 parts of 2, a window of 4 looks 3 back: from the first of a part into the second before,
 * which it meets in turn 2. */
TEST(a_window_ends_the_turns) {
    g_autoptr(MtfGraph) graph = mtf_test_attention_training(12, ", 'causal': 1, 'window': 4", "");
    assert_true(mtf_graph_ring_keys(graph, 6, NULL));
    assert_true(mtf_graph_find_operation(graph, "y/2/parts") >= 0);
    assert_true(mtf_graph_find_operation(graph, "y/3/parts") < 0);
    g_autoptr(MtfGraph) whole = mtf_test_attention_training(12, ", 'causal': 1", "");
    assert_true(mtf_graph_ring_keys(whole, 6, NULL));
    assert_true(mtf_graph_find_operation(whole, "y/5/parts") >= 0);
    assert_true(mtf_graph_find_operation(whole, "y/6/parts") < 0);
}

TEST(what_cannot_go_round_stays) {
    static const struct {
        int queries, parts;
        const char *attributes, *added;
    } refused[] = {
        { 5, 2, "", "" },                            /* parts do not divide queries */
        { 15, 5, "", "" },                           /* … nor memory */
        { 24, 2, ", 'causal': 1, 'window': 5", "" }, /* positions of parts would not be alike */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(MtfGraph) graph = mtf_test_attention_training(
            refused[i].queries, refused[i].attributes, refused[i].added);
        g_autoptr(GError) error = NULL;
        int operations = (int)graph->operations->len;
        assert_false(mtf_graph_ring_keys(graph, refused[i].parts, &error));
        assert_non_null(
            strstr(error->message, "--ring: \"g\" has no attention whose queries and memory"));
        assert_int_equal(graph->operations->len, operations);
        assert_true(mtf_graph_ring_keys(graph, 1, NULL));
    }
}

static double share_of(const MtfGraph *graph, const char *name, int held) {
    int operation = mtf_graph_find_operation(graph, name);
    int parts = mtf_graph_find_dimension(graph, "l/parts");
    MtfIteration iteration;
    int64_t sizes[MTF_MAX_INDEXES];
    mtf_operation_iteration(graph, operation, &iteration);
    for (int i = 0; i < iteration.n; i++)
        sizes[i] = iteration.index[i].dim == parts ? held : iteration.index[i].size;
    return mtf_operation_share(graph, operation, &iteration, sizes);
}

/* Of 12 causal positions in 3 parts of 4 neighbours, as a window has them: in turn 0 each sees half of its own,
 * 4 * 4 / 2 of 16; in turn 1 the last one all of the part before, and of three together two; in turn 2 the
 * last one alone. A window of 6 looks 5 back, and as areas go: of the 16 pairs of turn 1 those are hidden of which the query is further
 * behind than its window, (4 - 2)^2 / 2. */
TEST(the_part_that_sees_most_is_priced) {
    g_autoptr(MtfGraph) graph = mtf_test_attention_training(12, ", 'causal': 1, 'window': 12", "");
    assert_true(mtf_graph_ring_keys(graph, 3, NULL));
    assert_true(fabs(share_of(graph, "y/0/parts", 1) - 1.0 / 2) < 1e-12);
    assert_true(fabs(share_of(graph, "y/1/parts", 1) - 1) < 1e-12);
    assert_true(fabs(share_of(graph, "y/1/parts", 3) - 2.0 / 3) < 1e-12);
    assert_true(fabs(share_of(graph, "y/2/parts", 1) - 1) < 1e-12);
    assert_true(fabs(share_of(graph, "y/2/parts", 3) - 1.0 / 3) < 1e-12);
    g_autoptr(MtfGraph) dropped =
        mtf_test_attention_training(12, ", 'causal': 1, 'dropout': 0.3", "");
    assert_true(mtf_graph_ring_keys(dropped, 3, NULL));
    assert_true(fabs(share_of(dropped, "y/0/parts", 1) - 1.0 / 2) < 1e-12);
    g_autoptr(MtfGraph) window = mtf_test_attention_training(12, ", 'causal': 1, 'window': 6", "");
    assert_true(mtf_graph_ring_keys(window, 3, NULL));
    assert_true(fabs(share_of(window, "y/1/parts", 1) - 14.0 / 16) < 1e-12);
}

/* Position p + 3 i of 12 is number i of part p: in each turn a part looks at those of the other that are not
 * behind its own, which are half, whichever parts a processor has. */
TEST(stripes_see_half_in_every_turn) {
    g_autoptr(MtfGraph) graph = mtf_test_attention_training(12, ", 'causal': 1", "");
    assert_true(mtf_graph_ring_keys(graph, 3, NULL));
    for (int held = 1; held <= 3; held++)
        for (int turn = 0; turn < 3; turn++) {
            g_autofree char *name = g_strdup_printf("y/%d/parts", turn);
            assert_true(fabs(share_of(graph, name, held) - 1.0 / 2) < 1e-12);
        }
}
