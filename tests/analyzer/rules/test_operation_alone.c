// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/strategies.h"
#include "analyzer/rules/operation_alone.h"
#include "analyzer/training/training_graph.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/program/program.h"

/* Random placements, the same in both graphs. */
static void place_at_random(GRand *rand, const MtfOperationAlone *alone, MtfLayout *own,
                            MtfLayout *whole) {
    for (guint t = 0; t < alone->tensors->len; t++) {
        const MtfShape *shape = &mtf_graph_tensor(alone->graph, (int)t)->shape;
        MtfPlacement placement = mtf_placement_replicated();
        for (int a = 0; a < own->mesh.n_axes && shape->rank > 0; a++)
            if (g_rand_boolean(rand))
                placement.axis[a] = (int16_t)shape->dims[g_rand_int_range(rand, 0, shape->rank)];
        own->tensors[t] = placement;
        whole->tensors[g_array_index(alone->tensors, int, t)] = placement;
    }
}

static void assert_same_work(const MtfProgram *a, const MtfProgram *b) {
    assert_int_equal(mtf_program_length(a), mtf_program_length(b));
    for (int i = 0; i < mtf_program_length(a); i++) {
        const MtfInstruction *one = mtf_program_instruction(a, i);
        const MtfInstruction *other = mtf_program_instruction(b, i);
        assert_int_equal(one->kind, other->kind);
        assert_int_equal(one->reshard.kind, other->reshard.kind);
        assert_int_equal(one->reshard.axes, other->reshard.axes);
        assert_int_equal(one->payload_bytes, other->payload_bytes);
        assert_true(one->flops == other->flops && one->traffic_bytes == other->traffic_bytes);
    }
}

/* For each tensor the variable whose next value it is, or -1. */
static int *updated_variables(const MtfGraph *graph) {
    int *updated = g_new(int, graph->tensors->len);
    for (guint t = 0; t < graph->tensors->len; t++)
        updated[t] = -1;
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        updated[update->value] = update->variable;
    }
    return updated;
}

static void an_operation_does_alone_what_it_does_in_its_graph(void **state) {
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    g_autoptr(MtfGraph) forward =
        mtf_graph_load("layouts/library/graphs/transformer-small.json", NULL, NULL);
    g_autoptr(MtfGraph) graph = mtf_training_graph(forward, NULL);
    g_autofree int *updated = updated_variables(graph);
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("rows:2;cols:4", 0, &mesh, NULL));
    g_autoptr(MtfLayout) whole = mtf_layout_new(graph, &mesh);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        g_auto(MtfOperationAlone) alone;
        mtf_operation_alone_init(&alone, graph, i, updated);
        g_autoptr(MtfLayout) own = mtf_layout_new(alone.graph, &mesh);
        g_autoptr(GArray) strategies = mtf_strategies(graph, &mesh, i, NULL, 0);
        place_at_random(rand, &alone, own, whole);
        own->operations[0] = whole->operations[i] = g_array_index(
            strategies, MtfStrategy, g_rand_int_range(rand, 0, (gint32)strategies->len));
        g_autoptr(MtfProgram) there = mtf_lower_operation(graph, whole, i);
        g_autoptr(MtfProgram) here = mtf_lower_operation(alone.graph, own, 0);
        assert_same_work(here, there);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_does_alone_what_it_does_in_its_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
