// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a message catalogue: refused in one sentence, or pairs of texts that begin and end
 * inside and hold none of the bytes that have a meaning. */
#include "runtime/data/data_catalogue.h"
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/catalogue", NULL };

static void check_text(GBytes *text) {
    gsize n;
    const guint8 *bytes = g_bytes_get_data(text, &n);
    g_assert(n > 0);
    for (gsize i = 0; i < n; i++)
        g_assert(bytes[i] > 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) pairs = mtf_text_pairs_new();
    bool good = mtf_catalogue_parse("fuzz", data, size, pairs, &error);
    mtf_fuzz_judge(good, error);
    for (guint i = 0; i < pairs->len; i++) {
        check_text(g_array_index(pairs, MtfTextPair, i).source);
        check_text(g_array_index(pairs, MtfTextPair, i).target);
    }
    return good ? 0 : -1;
}
