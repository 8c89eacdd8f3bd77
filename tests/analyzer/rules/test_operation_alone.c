// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/free/strategies.h"
#include "analyzer/models/model_family.h"
#include "analyzer/planner/planning.h"
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

TEST(an_operation_does_alone_what_it_does_in_its_graph) {
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

static void append_operand(GString *text, const MtfGraph *graph, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    g_string_append_printf(text, "|%d", (int)t->dtype);
    for (int i = 0; i < t->shape.rank; i++)
        g_string_append_printf(text, " %d", t->shape.dims[i]);
}

/* A framework's price of an operation tells forward passes, gradients and recomputation apart. */
TEST(operations_of_equal_facts_and_operands_cost_the_same) {
    g_autoptr(MtfGraph) forward =
        mtf_model_build(&mtf_model_llama, &mtf_model_llama.presets[0], NULL, NULL);
    MtfStepVariant variant = { .recompute = MTF_RECOMPUTE_LAYERS, .fuses = true };
    g_autoptr(MtfGraph) graph = mtf_planning_executed_graph(forward, &variant, NULL);
    g_autoptr(MtfMachine) machine = mtf_planning_machine("a100", "megatron-core", NULL);
    MtfMesh mesh;
    MtfPricer pricer;
    assert_true(mtf_mesh_parse("all:2", 0, &mesh, NULL));
    assert_true(mtf_pricer_init(&pricer, machine, &mesh, NULL));
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    int equal = 0;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        GString *text = g_string_new(NULL);
        mtf_operation_append_facts(text, graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            append_operand(text, graph, op->inputs[k]);
        append_operand(text, graph, op->outputs[0]);
        g_autoptr(MtfProgram) program = mtf_lower_operation(graph, layout, i);
        int64_t price = mtf_price_program(&pricer, program);
        gpointer before = g_hash_table_lookup(known, text->str);
        if (before != NULL && GPOINTER_TO_INT(before) != (int)price + 1)
            fail_msg("%s costs %" G_GINT64_FORMAT " ns, one of equal facts %d", op->name, price,
                     GPOINTER_TO_INT(before) - 1);
        equal += before != NULL;
        g_hash_table_insert(known, g_string_free(text, FALSE), GINT_TO_POINTER((int)price + 1));
    }
    assert_true(equal > 0);
}
