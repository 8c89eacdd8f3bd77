// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a PNG file: refused in one sentence that says nothing of a library, or pixels of the
 * size that was said. */
#include "runtime/data/data_pictures.h"
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/picture", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    g_autoptr(GError) error = NULL;
    MtfPictures pictures = { 0 };
    g_autofree unsigned char *pixels = mtf_picture_decode("fuzz", data, size, &pictures, &error);
    mtf_fuzz_judge(pixels != NULL, error);
    if (pixels == NULL)
        return -1;
    g_assert(pictures.channels == 1 || pictures.channels == 3);
    unsigned sum = 0;
    for (int64_t i = 0; i < pictures.channels * pictures.rows * pictures.columns; i++)
        sum += pixels[i];
    return sum > 0 ? 0 : -1;
}
