// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as the header of a safetensors file with 24 bytes of data: refused in one sentence, or
 * tensors that fill the data without holes and a header that reads back as it was written. */
#include "runtime/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define LENGTH_BYTES 8
#define DATA_BYTES 24

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/safetensors", NULL };

static MtfSafetensors *read_header(const char *header, gsize length) {
    g_autoptr(GError) error = NULL;
    MtfSafetensors *file =
        mtf_safetensors_parse("fuzz", header, length, (int64_t)length + DATA_BYTES, &error);
    mtf_fuzz_judge(file != NULL, error);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autofree char *header = g_malloc0(size + LENGTH_BYTES);
    memcpy(header + LENGTH_BYTES, data, size);
    g_autoptr(MtfSafetensors) file = read_header(header, size + LENGTH_BYTES);
    if (file == NULL)
        return -1;
    int64_t end = 0;
    for (guint i = 0; i < file->tensors->len; i++) {
        const MtfStoredTensor *tensor = &g_array_index(file->tensors, MtfStoredTensor, i);
        g_assert_cmpint(tensor->begin, ==, end);
        g_assert(mtf_safetensors_find(file, tensor->name) == tensor);
        end = tensor->end;
    }
    g_assert_cmpint(end, ==, DATA_BYTES);
    gsize length, length_again;
    g_autofree char *text = mtf_safetensors_print(file, &length);
    g_autoptr(MtfSafetensors) again = read_header(text, length);
    g_assert(again != NULL);
    g_autofree char *text_again = mtf_safetensors_print(again, &length_again);
    g_assert(length == length_again && memcmp(text, text_again, length) == 0);
    return 0;
}
