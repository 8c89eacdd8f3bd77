// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a graph: refused in one sentence, or a graph that writes itself to a file which
 * reads back to the same file. */
#include "layouts/graph_json.h"
#include "layouts/json_writer.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const char *const mtf_fuzz_corpus[] = { "layouts/library/graphs", "tests/fuzz/corpus/graph", NULL };

static char *print(const MtfGraph *graph) {
    cJSON *tree = mtf_graph_to_json(graph);
    char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    return text;
}

static MtfGraph *read_graph(const char *text, size_t size) {
    g_autoptr(MtfJsonDocument) document = mtf_fuzz_document((const uint8_t *)text, size);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    g_autoptr(GError) error = NULL;
    MtfGraph *graph = mtf_graph_from_json(&root, NULL, &error);
    mtf_fuzz_judge(graph != NULL, error);
    return graph;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(MtfGraph) graph = read_graph((const char *)data, size);
    if (graph == NULL)
        return -1;
    g_autofree char *text = print(graph);
    g_autoptr(MtfGraph) again = read_graph(text, strlen(text));
    g_assert(again != NULL);
    g_autofree char *text_again = print(again);
    g_assert_cmpstr(text, ==, text_again);
    return 0;
}
