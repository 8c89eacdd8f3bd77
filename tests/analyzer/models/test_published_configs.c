// SPDX-License-Identifier: GPL-3.0-or-later
/* config.json files of tiny models as transformers 5.17 itself wrote them, a line each in
 * tests/golden/transformers/configs.tsv: a name, how many parameters transformers counts, and the file. */
#include "tests/support/cmocka.h"

#include "analyzer/import/model_import.h"
#include "layouts/base/json_reader.h"

#include <string.h>

#define CONFIGS "tests/golden/transformers/configs.tsv"

/* The graph of a config's text; fails the test where there is none. */
static MtfGraph *import(const char *name, const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse(name, text, strlen(text), &error);
    assert_non_null(document);
    MtfJson root = mtf_json_root(document);
    MtfImport how = { .path = name, .batch = 2, .length = 12 };
    MtfGraph *graph = mtf_import_model(&how, &root, NULL, &error);
    if (graph == NULL)
        fail_msg("%s: %s", name, error->message);
    return graph;
}

static int64_t untrained(const MtfGraph *graph) {
    int64_t sum = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source == MTF_SOURCE_VARIABLE && tensor->frozen)
            sum += mtf_graph_elements(graph, &tensor->shape);
    }
    return sum;
}

/* What nobody trains counts in some of transformers' types and not in others. */
TEST(each_has_as_many_parameters_as_transformers_counts) {
    char *text = NULL;
    assert_true(g_file_get_contents(CONFIGS, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(g_strchomp(text), "\n", -1);
    g_free(text);
    assert_true(g_strv_length(lines) > 40);
    for (int i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], "\t", 3);
        g_autoptr(MtfGraph) graph = import(parts[0], parts[2]);
        int64_t wanted = g_ascii_strtoll(parts[1], NULL, 10), ours = mtf_graph_parameters(graph);
        if (wanted != ours && wanted != ours - untrained(graph))
            fail_msg("%s: %s parameters, not %" G_GINT64_FORMAT, parts[0], parts[1], ours);
    }
}
