// SPDX-License-Identifier: GPL-3.0-or-later
/* A target with a planted bug, for test_driver.sh: it aborts on what no seed holds. */
#include "tests/fuzz/fuzz.h"

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/mesh", NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (size_t i = 1; i < size; i++)
        g_assert(data[i - 1] != ':' || data[i] != '9');
    return 0;
}
