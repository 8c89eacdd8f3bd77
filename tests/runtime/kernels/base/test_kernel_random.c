// SPDX-License-Identifier: GPL-3.0-or-later
/* Many elements at a time against one at a time, which layouts/graph/random.h does with Random123. */
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/kernel_random.h"

#include <string.h>

#define MOST 700

static void check(const MtfRandom *random, double rate, int64_t first, int64_t n) {
    uint8_t keep[MOST + 1];
    memset(keep, 99, sizeof keep);
    mtf_kernel_random_keep(random, rate, first, n, keep);
    for (int64_t i = 0; i < n; i++)
        if (keep[i] != mtf_random_keeps(random, rate, first + i))
            fail_msg("element %d of %d from %d", (int)i, (int)n, (int)first);
    assert_int_equal(keep[n], 99);
}

static void check_words(const MtfRandom *random, int64_t first, int64_t n) {
    uint32_t words[MOST + 1];
    words[n] = 99;
    mtf_kernel_random_words(random, first, n, words);
    for (int64_t i = 0; i < n; i++)
        if (words[i] != mtf_random_word(random, first + i))
            fail_msg("word %d of %d from %d", (int)i, (int)n, (int)first);
    assert_int_equal(words[n], 99);
}

TEST(words_agree_with_single_ones) {
    MtfRandom random = mtf_random_stream(5, "features", 2);
    for (int64_t first = 0; first < 9; first++)
        for (int64_t n = 0; n < 11; n++)
            check_words(&random, first, n);
    for (int64_t first = 120; first < 137; first++)
        for (int64_t n = 100; n <= MOST; n += 97)
            check_words(&random, first, n);
}

TEST(runs_agree_with_single_elements) {
    MtfRandom random = mtf_random_stream(5, "drop", 2);
    for (int64_t first = 0; first < 9; first++)
        for (int64_t n = 0; n < 11; n++)
            check(&random, 0.4, first, n);
    for (int64_t first = 120; first < 137; first++)
        for (int64_t n = 100; n <= MOST; n += 97)
            check(&random, 0.4, first, n);
}

/* Both words of the block's number, of the step and of the key count. */
TEST(runs_agree_wherever_they_begin) {
    const int64_t first[] = { 0, INT64_C(0xffffffff) * 4 - 50, INT64_C(1) << 52 };
    const uint64_t steps[] = { 0, UINT64_C(1) << 40, UINT64_MAX };
    for (int f = 0; f < 3; f++)
        for (int s = 0; s < 3; s++) {
            MtfRandom random = mtf_random_stream((uint64_t)s * 77, "x", steps[s]);
            check(&random, 0.5, first[f], MOST);
        }
}

TEST(the_ends_of_the_rate_are_exact) {
    MtfRandom random = mtf_random_stream(1, "drop", 1);
    check(&random, 0, 3, MOST);
    check(&random, 1 - 0x1p-32, 3, MOST);
}
