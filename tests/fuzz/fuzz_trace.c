// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as the trace of a run: refused in one sentence, or a trace whose events lie within its
 * ranks and its time. */
#include "reports/facts/run_trace.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/trace", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(MtfJsonDocument) document = mtf_fuzz_document(data, size);
    if (document == NULL)
        return -1;
    MtfJson root = mtf_json_root(document);
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfRunTrace) trace = mtf_run_trace_from_json(&root, &error);
    mtf_fuzz_judge(trace != NULL, error);
    if (trace == NULL)
        return -1;
    double end = trace->seconds * (1 + 1e-9);
    for (guint i = 0; i < trace->events->len; i++) {
        const MtfRunEvent *event = &g_array_index(trace->events, MtfRunEvent, i);
        g_assert(event->rank >= 0 && event->rank < trace->ranks);
        g_assert(event->start >= 0 && event->seconds >= 0);
        g_assert(event->start + event->seconds <= end);
    }
    return 0;
}
