// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/graph/operation_table.h"
#include "layouts/placement/rules.h"
#include "layouts/program/program.h"
#include "tests/support/drawn/random_graph.h"

static MtfRandomGraph options_of(guint32 seed) {
    return (MtfRandomGraph){ .seed = seed,
                             .dimensions = 2 + (int)(seed % 6),
                             .operations = 12,
                             .largest_size = 7,
                             .dtype = MTF_F32 };
}

TEST(every_seed_gives_a_graph_that_can_be_lowered) {
    for (guint32 seed = 0; seed < 300; seed++) {
        MtfRandomGraph options = options_of(seed);
        g_autoptr(MtfGraph) graph = mtf_random_graph(&options);
        MtfMesh mesh;
        assert_true(mtf_mesh_parse("a:2;b:3", 0, &mesh, NULL));
        g_autoptr(MtfRules) rules = mtf_rules_new(graph);
        rules->axis[0] = 1;
        rules->axis[1] = 0;
        g_autoptr(MtfLayout) layout = mtf_layout_from_rules(graph, &mesh, rules);
        assert_true(mtf_layout_check(graph, layout, NULL));
        g_autoptr(MtfProgram) program = mtf_lower(graph, layout);
        assert_true(mtf_program_length(program) >= (int)graph->operations->len);
    }
}

TEST(many_rows_of_the_table_are_drawn) {
    bool drawn[MTF_OPERATIONS] = { false };
    int rows = 0;
    for (guint32 seed = 0; seed < 100; seed++) {
        MtfRandomGraph options = options_of(seed);
        options.composites = seed % 2 == 0;
        g_autoptr(MtfGraph) graph = mtf_random_graph(&options);
        for (int i = 0; i < (int)graph->operations->len; i++)
            drawn[mtf_graph_operation(graph, i)->kind] = true;
    }
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        rows += drawn[kind];
    assert_true(rows >= 35);
}

/* What layers may be asked for: all rows but those that the search, generation or optimizers add. */
TEST(every_row_that_users_write_is_drawn) {
    static const int others[] = {
        MTF_OP_EQUAL,       MTF_OP_RAISE,           MTF_OP_SIGN,
        MTF_OP_RANGE,       MTF_OP_TO_HOST,         MTF_OP_FROM_HOST,
        MTF_OP_SUM_EXP,     MTF_OP_RESAMPLE,        MTF_OP_ATTENTION_FURTHER,
        MTF_OP_CAUSAL_ZERO, MTF_OP_CONV_FILTER_GRAD
    };
    bool drawn[MTF_OPERATIONS] = { false };
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        drawn[others[i]] = true;
    for (guint32 seed = 0; seed < 600; seed++) {
        MtfRandomGraph options = options_of(seed);
        options.composites = options.more = options.layers = true;
        g_autoptr(MtfGraph) graph = mtf_random_graph(&options);
        for (int i = 0; i < (int)graph->operations->len; i++)
            drawn[mtf_graph_operation(graph, i)->kind] = true;
    }
    for (int kind = 0; kind <= MTF_OP_SOFTMAX_CROSS_ENTROPY; kind++)
        if (!drawn[kind])
            fail_msg("no graph has %s", mtf_operation_row(kind)->name);
}

TEST(the_same_seed_gives_the_same_graph) {
    MtfRandomGraph options = options_of(11);
    g_autoptr(MtfGraph) a = mtf_random_graph(&options);
    g_autoptr(MtfGraph) b = mtf_random_graph(&options);
    assert_int_equal(a->operations->len, b->operations->len);
    assert_int_equal(a->tensors->len, b->tensors->len);
    for (int t = 0; t < (int)a->tensors->len; t++)
        assert_string_equal(mtf_graph_tensor(a, t)->name, mtf_graph_tensor(b, t)->name);
}
