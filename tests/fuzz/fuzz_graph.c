// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a graph: refused in one sentence, or a graph that writes itself to a file which
 * reads back to the same file; whose legal strategies give legal placements; and that becomes a
 * training graph of which the same holds, or is refused in one sentence. */
#include "analyzer/training/training_graph.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/placement/strategy.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const char *const mtf_fuzz_corpus[] = { "layouts/library/graphs", "tests/fuzz/corpus/graph", NULL };

static char *print(const MtfGraph *graph) {
    cJSON *tree = mtf_graph_to_json(graph);
    char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    return text;
}

/* Whether a block of the graph is unrolled so often that one input would take seconds. */
static bool is_costly(const cJSON *root) {
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "operations")) {
        const cJSON *block = cJSON_GetObjectItemCaseSensitive(item, "repeat");
        const cJSON *count = cJSON_GetObjectItemCaseSensitive(block, "count");
        if (cJSON_IsNumber(count) && count->valuedouble > 100 && count->valuedouble < 3e6)
            return true;
    }
    return false;
}

static MtfGraph *read_graph(const char *text, size_t size) {
    g_autoptr(MtfJsonDocument) document = mtf_fuzz_document((const uint8_t *)text, size);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    if (is_costly(root.node))
        return NULL;
    g_autoptr(GError) error = NULL;
    MtfGraph *graph = mtf_graph_from_json(&root, NULL, &error);
    mtf_fuzz_judge(graph != NULL, error);
    return graph;
}

static void check_placements(const MtfGraph *graph, const MtfMesh *mesh, int i,
                             const MtfIteration *iteration, const MtfStrategy *strategy) {
    const MtfOperation *operation = mtf_graph_operation(graph, i);
    for (int k = 0; k < operation->n_inputs; k++) {
        MtfPlacement placement = mtf_strategy_input(graph, i, iteration, strategy, k);
        g_assert(mtf_placement_check(graph, mesh, operation->inputs[k], &placement, NULL));
    }
    for (int k = 0; k < operation->n_outputs; k++) {
        MtfPlacement placement = mtf_strategy_output(graph, i, iteration, strategy, k);
        g_assert(mtf_placement_check(graph, mesh, operation->outputs[k], &placement, NULL));
    }
}

static void check_strategies(const MtfGraph *graph) {
    MtfMesh mesh;
    g_assert(mtf_mesh_parse("m:2", 0, &mesh, NULL));
    for (int i = 0; i < (int)graph->operations->len; i++) {
        MtfIteration iteration;
        mtf_operation_iteration(graph, i, &iteration);
        for (int choice = MTF_PARTIAL_INPUT - 2; choice < iteration.n; choice++) {
            MtfStrategy strategy = mtf_strategy_duplicated();
            strategy.axis[0] = (int8_t)choice;
            if (mtf_strategy_check(graph, &mesh, i, &strategy, NULL))
                check_placements(graph, &mesh, i, &iteration, &strategy);
        }
    }
}

static void check_round_trip(const MtfGraph *graph) {
    g_autofree char *text = print(graph);
    g_autoptr(MtfGraph) again = read_graph(text, strlen(text));
    g_assert(again != NULL);
    g_autofree char *text_again = print(again);
    g_assert_cmpstr(text, ==, text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(MtfGraph) graph = read_graph((const char *)data, size);
    if (graph == NULL)
        return -1;
    check_round_trip(graph);
    check_strategies(graph);
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, &error);
    mtf_fuzz_judge(training != NULL, error);
    if (training != NULL) {
        check_round_trip(training);
        check_strategies(training);
    }
    return 0;
}
