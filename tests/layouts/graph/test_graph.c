// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/graph/graph.h"
#include "layouts/graph/operation_table.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

static MtfGraph *new_graph(void) {
    MtfGraph *graph = mtf_graph_new("g");
    assert_int_equal(mtf_graph_add_dimension(graph, "a", 4, NULL), 0);
    assert_int_equal(mtf_graph_add_dimension(graph, "b", 6, NULL), 1);
    return graph;
}

static int add_input(MtfGraph *graph, const char *name, MtfShape shape, GError **error) {
    return mtf_graph_add_input(graph, name, &shape, MTF_F32, MTF_FEED_FEATURES, error);
}

static int add_relu(MtfGraph *graph, const char *name, int input) {
    MtfNewOperation operation = { .name = name,
                                  .kind = MTF_OP_RELU,
                                  .n_inputs = 1,
                                  .inputs = &input,
                                  .attributes = MTF_NO_ATTRIBUTES };
    return mtf_graph_add_operation(graph, &operation, NULL);
}

static void assert_dimension_fails(const char *name, int64_t size, const char *message) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = new_graph();
    assert_int_equal(mtf_graph_add_dimension(graph, name, size, &error), -1);
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_string_equal(error->message, message);
    assert_int_equal(graph->dimensions->len, 2);
}

TEST(wrong_dimensions_are_told) {
    assert_dimension_fails("a", 4, "dimension \"a\" is given twice");
    assert_dimension_fails("c", 0, "dimension \"c\": size 0 is not from 1 to 2^53");
    assert_dimension_fails("c", -1, "dimension \"c\": size -1 is not from 1 to 2^53");
    assert_dimension_fails("c", (INT64_C(1) << 53) + 1,
                           "dimension \"c\": size 9007199254740993 is not from 1 to 2^53");
    assert_dimension_fails("", 1,
                           "dimension \"\": a name holds no space , . ; : or control character and "
                           "is not empty");
    assert_dimension_fails("a b", 1,
                           "dimension \"a b\": a name holds no space , . ; : or control character "
                           "and is not empty");
    assert_dimension_fails("partial", 1, "dimension \"partial\": that is a word of layouts");
}

TEST(wrong_tensors_are_told) {
    g_autoptr(MtfGraph) graph = new_graph();
    static const struct {
        const char *name, *message;
        MtfShape shape;
    } cases[] = {
        { "x", "the name \"x\" is given to two tensors", { 0 } },
        { "", "tensor \"\": a name is not empty and holds no control character", { 0 } },
        { "y", "tensor \"y\" has dimension \"b\" twice", { 3, { 1, 0, 1 } } },
    };
    assert_int_equal(add_input(graph, "x", (MtfShape){ 1, { 0 } }, NULL), 0);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_int_equal(add_input(graph, cases[i].name, cases[i].shape, &error), -1);
        assert_string_equal(error->message, cases[i].message);
    }
    assert_int_equal(graph->tensors->len, 1);
}

/* (2^18)^3 = 2^54. */
TEST(a_tensor_beyond_2_to_the_53_is_told) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) graph = mtf_graph_new("g");
    static const char *const names[] = { "p", "q", "r" };
    for (int i = 0; i < 3; i++)
        mtf_graph_add_dimension(graph, names[i], 1 << 18, NULL);
    assert_int_equal(add_input(graph, "x", (MtfShape){ 2, { 0, 1 } }, NULL), 0);
    assert_int_equal(add_input(graph, "y", (MtfShape){ 3, { 0, 1, 2 } }, &error), -1);
    assert_string_equal(error->message, "tensor \"y\" has more than 2^53 elements");
}

TEST(names_lead_to_indexes) {
    g_autoptr(MtfGraph) graph = new_graph();
    int x = add_input(graph, "x", (MtfShape){ 2, { 1, 0 } }, NULL);
    int y = add_relu(graph, "y", x);
    assert_int_equal(mtf_graph_find_dimension(graph, "b"), 1);
    assert_int_equal(mtf_graph_find_dimension(graph, "c"), -1);
    assert_int_equal(mtf_graph_find_tensor(graph, "y"), y);
    assert_int_equal(mtf_graph_find_tensor(graph, "z"), -1);
    assert_int_equal(mtf_graph_find_operation(graph, "y"), 0);
    assert_int_equal(mtf_graph_find_operation(graph, "x"), -1);
    assert_int_equal(mtf_graph_tensor(graph, y)->producer, 0);
    g_autofree char *text = mtf_graph_tensor_format(graph, y);
    assert_string_equal(text, "f32[b:6, a:4]");
}

/* w[a, b] has 24 elements of 4 bytes; the optimizer's m is no parameter. */
TEST(parameters_and_bytes_are_counted) {
    g_autoptr(MtfGraph) graph = new_graph();
    MtfShape shape = { 2, { 0, 1 } };
    MtfInit zeros = { MTF_INIT_CONSTANT, 0 };
    mtf_graph_add_variable(graph, "w", &shape, MTF_F32, zeros, MTF_MEMORY_VARIABLE, NULL);
    int m = mtf_graph_add_variable(graph, "m", &shape, MTF_F64, zeros, MTF_MEMORY_OPTIMIZER, NULL);
    assert_int_equal(mtf_graph_parameters(graph), 24);
    assert_int_equal(mtf_graph_tensor_bytes(graph, m), 192);
}

/* adam's further outputs hang below its name. */
TEST(further_outputs_have_suffixes) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 4}, 'variables': [{'name': 'w', "
        "'dims': ['a'], 'init': 'ones'}, {'name': 'g', 'dims': ['a'], 'init': 'ones'}, {'name': "
        "'m', 'dims': ['a'], 'init': 'ones'}, {'name': 'v', 'dims': ['a'], 'init': 'ones'}, "
        "{'name': 'r', 'dims': [], 'init': 'ones'}], 'operations': [{'name': 'y', 'op': 'adam', "
        "'inputs': ['w', 'g', 'm', 'v', 'r']}]}");
    const MtfOperation *operation = mtf_graph_operation(graph, 0);
    assert_int_equal(operation->n_outputs, 3);
    assert_int_equal(operation->outputs[0], mtf_graph_find_tensor(graph, "y"));
    assert_int_equal(operation->outputs[1], mtf_graph_find_tensor(graph, "y/m"));
    assert_int_equal(operation->outputs[2], mtf_graph_find_tensor(graph, "y/v"));
    assert_int_equal(mtf_graph_find_operation(graph, "y/m"), -1);
}

TEST(an_element_has_the_other_dimensions_in_their_order_or_in_the_order_that_is_given) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 4, 'b': 3, 'c': 2}, 'inputs': "
        "[{'name': 'x', 'dims': ['a', 'b', 'c'], 'feed': 'features'}], 'operations': [{'name': "
        "'p', 'op': 'select', 'inputs': ['x'], 'dimension': 'b', 'index': 2}, {'name': 'q', "
        "'op': 'select', 'inputs': ['x'], 'dimension': 'b', 'index': 2, 'dims': ['c', 'a']}]}");
    MtfShape p = mtf_graph_tensor(graph, 1)->shape, q = mtf_graph_tensor(graph, 2)->shape;
    assert_true(mtf_shape_equal(&p, &(MtfShape){ 2, { 0, 2 } }));
    assert_true(mtf_shape_equal(&q, &(MtfShape){ 2, { 2, 0 } }));
}

/* x is read by p, by q (twice) and by r; p by r. */
TEST(consumers_are_listed_once_and_in_order) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'a': 4}, 'inputs': [{'name': 'x', "
        "'dims': ['a'], 'feed': 'features'}], 'operations': [{'name': 'p', 'op': 'relu', "
        "'inputs': ['x']}, {'name': 'q', 'op': 'multiply', 'inputs': ['x', 'x']}, {'name': 'r', "
        "'op': 'add', 'inputs': ['p', 'x', 'p']}]}");
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(graph);
    static const int starts[] = { 0, 3, 4, 4, 4 };
    static const int operations[] = { 0, 1, 2, 2 };
    assert_memory_equal(consumers->starts, starts, sizeof starts);
    assert_memory_equal(consumers->operations, operations, sizeof operations);
}

TEST(a_copy_stands_alone) {
    g_autoptr(MtfGraph) graph = new_graph();
    int x = add_input(graph, "x", (MtfShape){ 1, { 0 } }, NULL);
    int y = add_relu(graph, "y", x);
    mtf_graph_add_repeat(graph, "layer", 3);
    graph->loss = y;
    graph->optimizer.kind = g_strdup("sgd");
    MtfGraph *copy = mtf_graph_copy(graph);
    mtf_graph_free(g_steal_pointer(&graph));
    assert_int_equal(mtf_graph_find_operation(copy, "y"), 0);
    assert_int_equal(mtf_graph_operation(copy, 0)->inputs[0], mtf_graph_find_tensor(copy, "x"));
    assert_int_equal(copy->loss, y);
    assert_string_equal(copy->optimizer.kind, "sgd");
    assert_string_equal(g_array_index(copy->repeats, MtfRepeat, 0).name, "layer");
    mtf_graph_free(copy);
}

/* Built as x, y = relu(x), w, z = w + y; read back as x, w, y, z. */
TEST(canonical_order_is_that_of_files) {
    g_autoptr(MtfGraph) graph = new_graph();
    MtfShape shape = { 1, { 0 } };
    int y = add_relu(graph, "y", add_input(graph, "x", shape, NULL));
    int w = mtf_graph_add_variable(graph, "w", &shape, MTF_F32, (MtfInit){ 0 }, MTF_MEMORY_VARIABLE,
                                   NULL);
    MtfNewOperation sum = { .name = "z",
                            .kind = MTF_OP_ADD,
                            .n_inputs = 2,
                            .inputs = (int[]){ w, y },
                            .attributes = MTF_NO_ATTRIBUTES };
    int z = mtf_graph_add_operation(graph, &sum, NULL);
    mtf_graph_add_update(graph, w, z);
    mtf_graph_canonicalize(graph);
    static const char *const names[] = { "x", "w", "y", "z" };
    for (int t = 0; t < 4; t++) {
        assert_string_equal(mtf_graph_tensor(graph, t)->name, names[t]);
        assert_int_equal(mtf_graph_find_tensor(graph, names[t]), t);
    }
    const MtfOperation *operation = mtf_graph_operation(graph, 1);
    assert_int_equal(operation->inputs[0], 1);
    assert_int_equal(operation->inputs[1], 2);
    assert_int_equal(operation->outputs[0], 3);
    assert_int_equal(g_array_index(graph->updates, MtfUpdate, 0).variable, 1);
    assert_int_equal(g_array_index(graph->updates, MtfUpdate, 0).value, 3);
}
