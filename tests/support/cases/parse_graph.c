// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/parse_graph.h"

#include "analyzer/import/model_import.h"
#include "layouts/placement/mesh.h"

#include <string.h>

MtfGraph *mtf_test_graph_parse(const char *text, const MtfSizeOverrides *overrides,
                               GError **error) {
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("g.json", json, strlen(json), error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_graph_from_json(&root, overrides, error);
}

MtfGraph *mtf_test_graph(const char *text) {
    g_autoptr(GError) error = NULL;
    MtfGraph *graph = mtf_test_graph_parse(text, NULL, &error);
    if (graph == NULL)
        g_error("%s", error->message);
    return graph;
}

MtfGraph *mtf_test_layers(int count, int b, int d, int e) {
    g_autofree char *text = g_strdup_printf(
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'b': %d, 'd': %d, 'e': %d}, 'inputs': "
        "[{'name': 'x', 'dims': ['b', 'd'], 'feed': 'features'}], 'operations': [{'repeat': "
        "{'name': 'layer', 'count': %d, 'carry': [{'name': 'h', 'init': 'x', 'next': 'n'}], "
        "'variables': [{'name': 'w', 'dims': ['d', 'e'], 'init': 'ones'}, {'name': 'v', 'dims': "
        "['e', 'd'], 'init': 'ones'}], 'operations': [{'name': 'p', 'op': 'einsum', 'inputs': "
        "['h', 'w'], 'dims': ['b', 'e']}, {'name': 'a', 'op': 'gelu', 'inputs': ['p']}, {'name': "
        "'q', 'op': 'einsum', 'inputs': ['a', 'v'], 'dims': ['b', 'd']}, {'name': 'n', 'op': "
        "'add', 'inputs': ['h', 'q']}]}}, {'name': 'sq', 'op': 'square', 'inputs': ['layer/h']}, "
        "{'name': 'l', 'op': 'reduce_mean', 'inputs': ['sq'], 'dims': []}], 'loss': 'l', "
        "'optimizer': {'kind': 'sgd', 'rate': 0.1}}",
        b, d, e, count);
    return mtf_test_graph(text);
}

MtfGraph *mtf_test_model(const char *config, int batch, int length) {
    g_autoptr(GError) error = NULL;
    g_autofree char *json = g_strdelimit(g_strdup(config), "'", '"');
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("config.json", json, strlen(json), &error);
    MtfImport request = {
        .path = "config.json", .batch = batch, .length = length, .optimizer = "none"
    };
    MtfGraph *graph = NULL;
    if (document != NULL) {
        MtfJson root = mtf_json_root(document);
        graph = mtf_import_model(&request, &root, NULL, &error);
    }
    if (graph == NULL)
        g_error("%s", error->message);
    return graph;
}

GArray *mtf_test_meshes(const char *text) {
    g_auto(GStrv) each = g_strsplit(text, " ", 0);
    GArray *meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    for (int i = 0; each[i] != NULL; i++) {
        g_autoptr(GError) error = NULL;
        MtfMesh mesh;
        if (!mtf_mesh_parse(each[i], 0, &mesh, &error))
            g_error("%s", error->message);
        g_array_append_val(meshes, mesh);
    }
    return meshes;
}

bool mtf_test_is_read_back(const MtfGraph *graph, const char *tensor) {
    int t = mtf_graph_find_tensor(graph, tensor);
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            if (op->phase == MTF_PHASE_BACKWARD && op->inputs[k] == t)
                return true;
    }
    return false;
}
