// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a table of pairs: refused in one sentence that names the line, or as many pairs as
 * lines at most. */
#include "runtime/data/data_catalogue.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/pairs", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) pairs = mtf_text_pairs_new();
    bool good = mtf_pair_table_parse("fuzz", data, size, pairs, &error);
    mtf_fuzz_judge(good, error);
    guint lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    g_assert(pairs->len <= lines);
    g_assert(good || strstr(error->message, "line ") != NULL);
    return good ? 0 : -1;
}
