// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/models/model_family.h"
#include "analyzer/training/mixed_precision.h"
#include "analyzer/training/training_graph.h"
#include "layouts/base/error.h"
#include "layouts/execution/recompute.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/layers/layers.h"
#include "tests/support/cases/parse_graph.h"

#include <string.h>

#define LAYERS                                                                                  \
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'batch': 8, 'd': 4}, 'inputs': [{'name': " \
    "'x', 'dims': ['batch', 'd'], 'feed': 'features'}], 'operations': [{'repeat': {'name': "    \
    "'layer', 'count': 3, 'carry': [{'name': 'h', 'init': 'x', 'next': 'y'}], 'variables': "    \
    "[{'name': 'w', 'dims': ['d'], 'init': 'ones'}], 'operations': [{'name': 'm', 'op': "       \
    "'multiply', 'inputs': ['h', 'w']}, {'name': 'y', 'op': 'relu', 'inputs': ['m']}]}}, "

/* Behind the block: operations whose names look like those that other code makes. */
#define LOSS(square, result)                                                                    \
    LAYERS "{'name': '" square "', 'op': 'square', 'inputs': ['layer/h']}, {'name': '" result   \
           "', 'op': 'relu', 'inputs': ['" square "']}, {'name': 'loss', 'op': 'reduce_mean', " \
           "'inputs': ['" result                                                                \
           "'], 'dims': []}], 'loss': 'loss', 'optimizer': {'kind': 'adam', "                   \
           "'rate': 0.1}}"

static MtfGraph *training_of(const char *text, MtfRecompute recompute) {
    g_autoptr(MtfGraph) forward = mtf_test_graph(text);
    g_autoptr(GError) error = NULL;
    MtfGraph *graph = mtf_training_graph(forward, &error);
    assert_non_null(graph);
    if (recompute != MTF_RECOMPUTE_NONE)
        assert_true(mtf_graph_recompute(graph, &(MtfKept){ .recompute = recompute }, 1, &error));
    return graph;
}

TEST(only_what_is_of_a_layer_is_starred) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(LOSS("s", "r"));
    static const struct {
        const char *name;
        MtfLayer layer;
        const char *starred, *twin;
    } cases[] = {
        { "layer/0/y", { 1, 0 }, "layer/*/y", "layer/2/y" },
        { "grad/layer/1/y", { 1, 1 }, "grad/layer/*/y", "grad/layer/2/y" },
        { "layer/1", { 1, 1 }, "layer/*", "layer/2" },
        { "layer/1/y@forward", { 1, 1 }, "layer/*/y@forward", "layer/2/y@forward" },
        { "sublayer/1/layer/1/y", { 1, 1 }, "sublayer/1/layer/*/y", "sublayer/1/layer/2/y" },
        { "layer/11/y", { 1, 1 }, "layer/11/y", "layer/11/y" },
        { "layer/0/y", { 0, 0 }, "layer/0/y", "layer/0/y" },
        { "anything", { 1, 1 }, "anything", "anything" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *starred = mtf_layer_star(graph, cases[i].name, cases[i].layer);
        g_autofree char *twin = mtf_layer_twin(graph, cases[i].name, cases[i].layer, 2);
        assert_string_equal(starred, cases[i].starred);
        assert_string_equal(twin, cases[i].twin);
    }
}

TEST(a_place_is_what_follows_the_layer) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(LOSS("s", "r"));
    gsize before;
    assert_string_equal(mtf_layer_place(graph, "adam/m/layer/1/w", (MtfLayer){ 1, 1 }, &before),
                        "w");
    assert_int_equal(before, strlen("adam/m/"));
    assert_string_equal(mtf_layer_place(graph, "adam/m/layer/1/w", (MtfLayer){ 0 }, &before),
                        "adam/m/layer/1/w");
    assert_int_equal(before, 0);
}

/* An independent reading of names, which those who make graphs give by the rule "…BLOCK/7/…". */
static MtfLayer layer_by_name(const MtfGraph *graph, const char *name) {
    g_auto(GStrv) parts = g_strsplit(name, "/", -1);
    for (int i = 0; parts[i] != NULL && parts[i + 1] != NULL; i++) {
        int block = mtf_graph_find_repeat(graph, parts[i]);
        if (block > 0 && g_ascii_isdigit(*parts[i + 1]))
            return (MtfLayer){ block, (int)g_ascii_strtoll(parts[i + 1], NULL, 10) };
    }
    return (MtfLayer){ 0 };
}

static void assert_layers_follow_names(const MtfGraph *graph) {
    int found = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        MtfLayer named = layer_by_name(graph, tensor->name);
        if (!mtf_layer_equal(named, tensor->layer))
            fail_msg("%s: layer %d of block %d", tensor->name, tensor->layer.iteration,
                     tensor->layer.block);
        if (tensor->producer >= 0)
            assert_true(
                mtf_layer_equal(mtf_graph_operation(graph, tensor->producer)->layer, named));
        found += named.block > 0;
    }
    assert_true(found > 0);
}

static MtfGraph *small_model(const char *family, const char *preset) {
    g_autoptr(GError) error = NULL;
    const MtfModelFamily *row = mtf_model_family_find(family, &error);
    assert_non_null(row);
    const MtfModelPreset *found = mtf_model_preset_find(row, preset, &error);
    assert_non_null(found);
    MtfGraph *graph = mtf_model_build(row, found, NULL, &error);
    assert_non_null(graph);
    return graph;
}

/* Gradients, clones, updates, the optimizer's state and casts are of the layer of what they are for, and
 * stay so in a file. */
TEST(layers_pass_to_all_that_follows) {
    static const char *const kinds[] = { "sgd", "adam", "adafactor", "lamb", "muon" };
    g_autoptr(GError) error = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(MtfGraph) forward = small_model("transformer-lm", "demo");
        g_free(forward->optimizer.kind);
        forward->optimizer.kind = g_strdup(kinds[i]);
        forward->optimizer.clip_norm = 1;
        forward->optimizer.rate = 0.1;
        g_autoptr(MtfGraph) training = mtf_training_graph(forward, &error);
        assert_non_null(training);
        assert_layers_follow_names(training);
        g_autoptr(MtfGraph) mixed = mtf_mixed_precision(training, &error);
        assert_true(
            mtf_graph_recompute(mixed, &(MtfKept){ .recompute = MTF_RECOMPUTE_LAYERS }, 1, &error));
        assert_layers_follow_names(mixed);
        cJSON *tree = mtf_graph_to_json(mixed);
        g_autofree char *text = cJSON_PrintUnformatted(tree);
        cJSON_Delete(tree);
        g_autoptr(MtfGraph) read = mtf_test_graph(text);
        assert_layers_follow_names(read);
    }
}

static void assert_same_shape(const MtfGraph *a, const MtfGraph *b) {
    assert_int_equal(a->operations->len, b->operations->len);
    for (int i = 0; i < (int)a->operations->len; i++) {
        const MtfOperation *one = mtf_graph_operation(a, i), *other = mtf_graph_operation(b, i);
        assert_int_equal(one->kind, other->kind);
        assert_int_equal(one->phase, other->phase);
        assert_int_equal(one->origin, other->origin);
        assert_true(mtf_layer_equal(one->layer, other->layer));
        assert_int_equal(one->n_inputs, other->n_inputs);
        for (int k = 0; k < one->n_inputs; k++)
            assert_int_equal(one->inputs[k], other->inputs[k]);
    }
}

TEST(a_users_names_change_nothing) {
    for (int recompute = 0; recompute < MTF_RECOMPUTES; recompute++) {
        g_autoptr(MtfGraph) plain = training_of(LOSS("s", "r"), (MtfRecompute)recompute);
        g_autoptr(MtfGraph) traps =
            training_of(LOSS("grad/x", "layer/7/y"), (MtfRecompute)recompute);
        g_autoptr(MtfGraph) others =
            training_of(LOSS("recompute/layer/1/q", "update/layer/1/w/x"), (MtfRecompute)recompute);
        assert_same_shape(plain, traps);
        assert_same_shape(plain, others);
    }
}

static void assert_refused(const char *text, const char *what) {
    g_autoptr(GError) error = NULL;
    assert_null(mtf_test_graph_parse(text, NULL, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_non_null(strstr(error->message, what));
}

TEST(unrolled_blocks_without_layers_are_refused) {
    assert_refused(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'d': 2}, 'inputs': [{'name': 'x', 'dims': "
        "['d'], 'feed': 'features'}], 'operations': [{'name': 'layer/0/y', 'op': 'relu', 'inputs': "
        "['x']}], 'repeats': {'layer': 1}}",
        "no operation or variable says that it is of this \"block\"");
    assert_refused(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'d': 2}, 'inputs': [{'name': 'x', 'dims': "
        "['d'], 'feed': 'features'}], 'operations': [{'name': 'y', 'op': 'relu', 'inputs': ['x'], "
        "'block': 'layer', 'iteration': 3}], 'repeats': {'layer': 2}}",
        "iteration");
}
