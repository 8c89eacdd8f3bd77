// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/parse_graph.h"

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
