// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as an ONNX file: refused in one sentence, or a graph. */
#include "analyzer/onnx/onnx_import.h"
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/onnx", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfOnnxModel) model = mtf_onnx_model_parse("fuzz.onnx", data, size, &error);
    mtf_fuzz_judge(model != NULL, error);
    if (model == NULL)
        return -1;
    const MtfOnnxImport request = { .standard_batch = 2,
                                    .batch = size % 3 == 0 ? 3 : 0,
                                    .standard_length = 4,
                                    .loss = size % 2 == 0 ? "cross-entropy:labels" : NULL };
    g_autoptr(MtfGraph) graph = mtf_onnx_import(model, &request, NULL, &error);
    mtf_fuzz_judge(graph != NULL, error);
    g_assert(graph == NULL || request.loss == NULL || graph->loss >= 0);
    return 0;
}
