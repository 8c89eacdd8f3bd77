// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a tokenizer.json: refused in one sentence, or a tokenizer that encodes a text and decodes
 * what it made. */
#include "runtime/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/tokenizer", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfTokenizer) tokenizer =
        mtf_tokenizer_parse("fuzz.json", (const char *)data, size, &error);
    mtf_fuzz_judge(tokenizer != NULL, error);
    if (tokenizer == NULL)
        return -1;
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    bool good = mtf_tokenizer_encode(tokenizer, " ab don't\xff [a] \xc3\xa9 12", true, ids, &error);
    mtf_fuzz_judge(good, error);
    for (guint i = 0; i < ids->len; i++)
        g_assert(g_array_index(ids, int, i) >= 0 &&
                 g_array_index(ids, int, i) < mtf_tokenizer_vocabulary(tokenizer));
    g_autofree char *text =
        mtf_tokenizer_decode(tokenizer, (const int *)(const void *)ids->data, ids->len);
    g_assert(g_utf8_validate(text, -1, NULL));
    return 0;
}
