// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a profile for the division into stages, of PipeDream, of Piper or a table of layers:
 * refused in one sentence, or a graph without circles that is divided for three devices into stages
 * that together hold every node. */
#include "analyzer/stages/layer_table.h"
#include "analyzer/stages/pipedream_profile.h"
#include "analyzer/stages/piper_profile.h"
#include "analyzer/stages/throughput_search.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/stages", NULL };

static MtfStageGraph *read_profile(const uint8_t *data, size_t size, GError **error) {
    g_autofree char *text = g_strndup((const char *)data, size);
    if (*text != '{')
        return (strstr(text, " -- ") != NULL ? mtf_pipedream_profile_parse
                                             : mtf_layer_table_parse)("fuzz", text, error);
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("fuzz", text, strlen(text), error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_piper_profile_read(&root, error);
}

static void check_stages(const MtfStageGraph *graph, const MtfStagePlan *plan) {
    int from = 0;
    for (guint i = 0; i < plan->stages->len; i++) {
        const MtfStage *stage = &g_array_index(plan->stages, MtfStage, i);
        g_assert(stage->from == from && stage->to > from);
        from = stage->to;
    }
    g_assert(from > 0);
    g_assert(plan->bound <= plan->seconds * (1 + 1e-9));
    g_assert(mtf_stage_graph_size(graph) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfStageGraph) graph = read_profile(data, size, &error);
    mtf_fuzz_judge(graph != NULL, error);
    if (graph == NULL)
        return -1;
    if (mtf_stage_graph_size(graph) > 12)
        return 0;
    MtfStageMachine machine = { 3, 1e12, 1e9, 12, false };
    g_autoptr(MtfDownsets) cuts = mtf_downsets_new(graph, 40);
    g_autoptr(MtfStagePlan) plan = mtf_throughput_search(graph, cuts, &machine, &error);
    g_assert((plan == NULL) == (error != NULL));
    if (plan != NULL)
        check_stages(graph, plan);
    return 0;
}
