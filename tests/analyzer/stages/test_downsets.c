// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "tests/support/problems/stage_graphs.h"

/* All sets of nodes that hold what comes before them, counted one by one. */
static int count_closed(const MtfStageGraph *graph) {
    int count = 0;
    for (int set = 0; set < 1 << mtf_stage_graph_size(graph); set++) {
        bool closed = true;
        for (guint e = 0; e < graph->edges->len; e++) {
            const MtfStageEdge *edge = mtf_stage_graph_edge(graph, (int)e);
            closed = closed && !((set >> edge->to & 1) && !(set >> edge->from & 1));
        }
        count += closed;
    }
    return count;
}

static void check_family(const MtfStageGraph *graph, const MtfDownsets *cuts) {
    int last = cuts->count - 1;
    for (int v = 0; v < cuts->nodes; v++)
        assert_true(!mtf_downsets_has(cuts, 0, v) && mtf_downsets_has(cuts, last, v));
    for (int d = 0; d < cuts->count; d++) {
        assert_true(mtf_downsets_nested(cuts, 0, d) && mtf_downsets_nested(cuts, d, last));
        for (guint e = 0; e < graph->edges->len; e++) {
            const MtfStageEdge *edge = mtf_stage_graph_edge(graph, (int)e);
            assert_true(mtf_downsets_has(cuts, d, edge->from) ||
                        !mtf_downsets_has(cuts, d, edge->to));
        }
        for (int other = 0; other < d; other++)
            assert_false(mtf_downsets_nested(cuts, d, other));
    }
}

TEST(every_downset_is_found_once) {
    for (guint64 seed = 0; seed < 200; seed++) {
        g_autoptr(MtfStageGraph) graph = mtf_test_stage_graph(MTF_STAGE_PIPEDREAM, seed, 9);
        g_autoptr(MtfDownsets) cuts = mtf_downsets_new(graph, 1000);
        assert_true(cuts->complete);
        assert_int_equal(cuts->count, count_closed(graph));
        check_family(graph, cuts);
    }
}

TEST(a_small_family_holds_downsets_only) {
    for (guint64 seed = 0; seed < 200; seed++) {
        g_autoptr(MtfStageGraph) graph = mtf_test_stage_graph(MTF_STAGE_PIPEDREAM, seed, 9);
        g_autoptr(MtfDownsets) cuts = mtf_downsets_new(graph, 14);
        assert_true(cuts->count <= 14 && cuts->count > cuts->nodes);
        assert_int_equal(cuts->complete, cuts->count == count_closed(graph));
        check_family(graph, cuts);
    }
}
