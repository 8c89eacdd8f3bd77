// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/rules/plain_rules.h"
#include "tests/support/drawn/random_graph.h"

#define SHARE 0.01

/* The header's example: of x [64 8], w [8 32] and h [64 32] on rows:4, batch takes 3/4 of 512 + 2048
 * numbers, d_ff of 256 + 2048, d_model of 512 + 256. On cols, d_ff takes half of 256 + 512. */
TEST(the_largest_dimensions_are_laid_first) {
    g_autoptr(MtfGraph) graph = mtf_graph_new("example");
    int batch = mtf_graph_add_dimension(graph, "batch", 64, NULL);
    int d_model = mtf_graph_add_dimension(graph, "d_model", 8, NULL);
    int d_ff = mtf_graph_add_dimension(graph, "d_ff", 32, NULL);
    const int dims[3][2] = { { batch, d_model }, { d_model, d_ff }, { batch, d_ff } };
    for (int t = 0; t < 3; t++) {
        MtfShape shape = { .rank = 2, .dims = { dims[t][0], dims[t][1] } };
        mtf_graph_add_input(graph, (const char *[]){ "x", "w", "h" }[t], &shape, MTF_F32,
                            MTF_FEED_FEATURES, NULL);
    }
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("rows:4;cols:2", 0, &mesh, NULL));
    const unsigned any[] = { 7, 7, 7 };
    g_autoptr(MtfRules) rules = mtf_plain_rules(graph, &mesh, any, SHARE);
    assert_int_equal(rules->axis[batch], 0);
    assert_int_equal(rules->axis[d_ff], 1);
    assert_int_equal(rules->axis[d_model], -1);
    g_autoptr(MtfRules) none = mtf_plain_rules(graph, &mesh, any, 1);
    for (int d = 0; d < 3; d++)
        assert_int_equal(none->axis[d], -1);
    const unsigned pinned[] = { 7, 2, 5 }; /* d_model on rows, d_ff not there */
    g_autoptr(MtfRules) kept = mtf_plain_rules(graph, &mesh, pinned, SHARE);
    assert_int_equal(kept->axis[d_model], 0);
    assert_int_equal(kept->axis[batch], 1);
    assert_int_equal(kept->axis[d_ff], -1);
}

TEST(they_are_legal_for_random_graphs) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("rows:4;cols:2", 0, &mesh, NULL));
    for (guint32 seed = 0; seed < 200; seed++) {
        MtfRandomGraph options = {
            .seed = seed, .dimensions = 8, .operations = 12, .largest_size = 9, .more = true
        };
        g_autoptr(MtfGraph) graph = mtf_random_graph(&options);
        g_autofree unsigned *any = g_new(unsigned, graph->dimensions->len);
        for (guint d = 0; d < graph->dimensions->len; d++)
            any[d] = 7;
        g_autoptr(MtfRules) rules = mtf_plain_rules(graph, &mesh, any, 0);
        assert_true(mtf_rules_check(graph, &mesh, rules, NULL));
    }
}
