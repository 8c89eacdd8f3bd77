// SPDX-License-Identifier: GPL-3.0-or-later
/* Layers that are found in graphs of files that know none, by hand-made ONNX files. */
#include "tests/support/cmocka.h"

#include "analyzer/import/find_layers.h"
#include "analyzer/onnx/onnx_import.h"
#include "analyzer/rewriting/shallow_graph.h"
#include "tests/support/cases/onnx_maker.h"

#include <string.h>

/* A node in whose names # stands for the layer. */
static void add_node(GByteArray *g, int layer, const char *op, const char *inputs,
                     const char *output) {
    g_autofree char *number = g_strdup_printf("%d", layer);
    g_auto(GStrv) in = g_strsplit(inputs, "#", -1);
    g_auto(GStrv) out = g_strsplit(output, "#", -1);
    g_autofree char *ins = g_strjoinv(number, in);
    g_autofree char *outs = g_strjoinv(number, out);
    mtf_make_node(g, op, ins, outs, "");
}

/* x of layer l + 1 = x + (sigmoid(x up) * factor) down: every layer has its `up` and `down`, all have one `scale`,
 * of which each works out its factor itself. */
static void add_layer(GByteArray *g, int layer, const char *activation) {
    g_autofree char *up = g_strdup_printf("blocks.%d.up", layer);
    g_autofree char *down = g_strdup_printf("blocks.%d.down", layer);
    g_autofree char *next = g_strdup_printf("x%d", layer + 1);
    mtf_make_weight(g, up, 8, 32);
    mtf_make_weight(g, down, 32, 8);
    add_node(g, layer, "MatMul", "x#,blocks.#.up", "/blocks.#/up/MatMul_output_0");
    add_node(g, layer, activation, "/blocks.#/up/MatMul_output_0", "/blocks.#/act");
    add_node(g, layer, "Exp", "scale", "/blocks.#/factor");
    add_node(g, layer, "Mul", "/blocks.#/act,/blocks.#/factor", "/blocks.#/scaled");
    add_node(g, layer, "MatMul", "/blocks.#/scaled,blocks.#.down", "/blocks.#/y");
    add_node(g, layer, "Add", "x#,/blocks.#/y", next);
}

/* Layers between what begins and ends them; layer `odd` has another activation. */
static MtfGraph *network(int layers, int odd, const char *output) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "input", MTF_ONNX_FLOAT, "4,8");
    mtf_make_weight(g, "scale", 1, 32);
    mtf_make_weight(g, "head", 8, 5);
    mtf_make_node(g, "Softmax", "input", "x0", "axis=1");
    for (int l = 0; l < layers; l++)
        add_layer(g, l, l == odd ? "Tanh" : "Sigmoid");
    g_autofree char *last = g_strdup_printf("x%d,head", layers);
    mtf_make_node(g, "MatMul", last, "scores", "");
    mtf_make_input(g, 12, output, MTF_ONNX_FLOAT, "4,5");
    g_autoptr(GByteArray) bytes = mtf_make_model(g, 17);
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfOnnxModel) model = mtf_onnx_model_parse("m.onnx", bytes->data, bytes->len, &error);
    const MtfOnnxImport request = { .loss = "cross-entropy:labels" }, none = { 0 };
    bool trained = strcmp(output, "scores") == 0;
    MtfGraph *graph =
        model == NULL ? NULL : mtf_onnx_import(model, trained ? &request : &none, NULL, &error);
    if (graph == NULL)
        fail_msg("%s", error->message);
    return graph;
}

static MtfLayer layer_of(const MtfGraph *graph, const char *tensor) {
    int t = mtf_graph_find_tensor(graph, tensor);
    if (t < 0)
        fail_msg("there is no %s", tensor);
    return mtf_graph_tensor(graph, t)->layer;
}

static void assert_block(const MtfGraph *graph, guint block, const char *name, int count) {
    assert_true(block < graph->repeats->len);
    assert_string_equal(g_array_index(graph->repeats, MtfRepeat, block).name, name);
    assert_int_equal(g_array_index(graph->repeats, MtfRepeat, block).count, count);
}

/* Names and layers change, and nothing else. */
static void assert_same_network(const MtfGraph *before, const MtfGraph *after) {
    assert_int_equal(before->operations->len, after->operations->len);
    assert_int_equal(before->tensors->len, after->tensors->len);
    for (int o = 0; o < (int)before->operations->len; o++) {
        const MtfOperation *a = mtf_graph_operation(before, o), *b = mtf_graph_operation(after, o);
        const MtfTensor *result = mtf_graph_tensor(after, b->outputs[0]);
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->n_inputs, b->n_inputs);
        for (int k = 0; k < a->n_inputs; k++)
            assert_int_equal(a->inputs[k], b->inputs[k]);
        assert_string_equal(b->name, result->name);
        assert_true(mtf_layer_equal(b->layer, result->layer));
    }
    for (int t = 0; t < (int)after->tensors->len; t++)
        assert_int_equal(mtf_graph_find_tensor(after, mtf_graph_tensor(after, t)->name), t);
}

TEST(layers_are_found_and_named) {
    g_autoptr(MtfGraph) graph = network(5, -1, "scores");
    g_autoptr(MtfGraph) before = mtf_graph_copy(graph);
    mtf_graph_find_layers(graph);
    assert_same_network(before, graph);
    assert_int_equal(graph->repeats->len, 1);
    assert_block(graph, 0, "blocks", 5);
    static const char *const places[] = { "up/MatMul", "act", "factor", "scaled",
                                          "y",         "up",  "down",   "add" };
    for (int l = 0; l < 5; l++)
        for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
            g_autofree char *name = g_strdup_printf("blocks/%d/%s", l, places[i]);
            assert_true(mtf_layer_equal(layer_of(graph, name), (MtfLayer){ 1, l }));
        }
    int up = mtf_graph_find_tensor(graph, "blocks/3/up");
    assert_string_equal(mtf_graph_tensor(graph, up)->stored, "blocks.3.up[8,32]");
    /* What all share and what is around is of none. */
    static const char *const outside[] = { "scale", "head", "x0", "input", "scores", "loss" };
    for (gsize i = 0; i < G_N_ELEMENTS(outside); i++)
        assert_int_equal(layer_of(graph, outside[i]).block, 0);
    g_autoptr(MtfGraph) shallow = mtf_graph_shallow(graph, 2);
    assert_non_null(shallow);
    assert_int_equal(mtf_graph_find_tensor(shallow, "blocks/2/y"), -1);
}

/* Of seven layers the fourth is another: the three before and the three behind are blocks of their own. */
TEST(another_layer_between_parts_them) {
    g_autoptr(MtfGraph) graph = network(7, 3, "scores");
    mtf_graph_find_layers(graph);
    assert_int_equal(graph->repeats->len, 2);
    assert_block(graph, 0, "blocks", 3);
    assert_block(graph, 1, "blocks_2", 3);
    assert_int_equal(layer_of(graph, "/blocks.3/act").block, 0);
    assert_true(mtf_layer_equal(layer_of(graph, "blocks_2/0/act"), (MtfLayer){ 2, 0 }));
}

TEST(outputs_keep_their_names) {
    g_autoptr(MtfGraph) graph = network(4, -1, "x3");
    mtf_graph_find_layers(graph);
    assert_int_equal(graph->repeats->len, 1);
    assert_block(graph, 0, "blocks", 3);
    assert_true(mtf_layer_equal(layer_of(graph, "x3"), (MtfLayer){ 1, 2 }));
    assert_true(mtf_layer_equal(layer_of(graph, "blocks/1/add"), (MtfLayer){ 1, 1 }));
}

TEST(one_layer_is_none) {
    g_autoptr(MtfGraph) graph = network(1, -1, "scores");
    mtf_graph_find_layers(graph);
    assert_int_equal(graph->repeats->len, 0);
    assert_int_equal(layer_of(graph, "/blocks.0/y").block, 0);
}
