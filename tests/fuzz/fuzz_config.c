// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a published model's config.json: refused in one sentence, or a network whose graph is
 * built, or refused in one sentence where its sizes do not go together. */
#include "analyzer/models/architecture_config.h"
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/config", NULL };

/* Whether the graph is small enough to be built thousands of times. */
static bool is_small(const MtfArchitecture *a) {
    const MtfStack *const stacks[] = { &a->encoder, &a->decoder };
    for (int i = 0; i < 2; i++)
        if (stacks[i]->layers > 8 || stacks[i]->experts_per_token > 8 || stacks[i]->buckets > 64)
            return false;
    for (int i = 0; i < a->windows.stages; i++)
        if (a->windows.depths[i] > 8)
            return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(MtfJsonDocument) document = mtf_fuzz_document(data, size);
    if (document == NULL)
        return -1;
    MtfJson root = mtf_json_root(document);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) left_out = g_ptr_array_new_with_free_func(g_free);
    MtfArchitecture architecture;
    bool good = cJSON_IsObject(root.node) &&
                mtf_architecture_config_read(&root, &architecture, left_out, &error);
    if (cJSON_IsObject(root.node))
        mtf_fuzz_judge(good, error);
    if (!good || !is_small(&architecture))
        return -1;
    architecture.batch = 2;
    architecture.length = architecture.source_length = 4;
    g_autoptr(MtfGraph) graph = mtf_architecture_build(&architecture, &error);
    mtf_fuzz_judge(graph != NULL, error);
    g_assert(graph == NULL || graph->loss >= 0);
    return 0;
}
