// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_random.h"

#include "runtime/kernels/base/kernel_math.h"

#include <glib.h>

#define LANES 32
#define ELEMENTS (4 * LANES)
#define ROUNDS 10

/* Philox4x32 of Salmon and others (see layouts/graph/random.h): its multipliers, and what is added to the
 * key after each round. */
#define MULTIPLIER_0 UINT32_C(0xD2511F53)
#define MULTIPLIER_1 UINT32_C(0xCD9E8D57)
#define WEYL_0 UINT32_C(0x9E3779B9)
#define WEYL_1 UINT32_C(0xBB67AE85)

/* The counters of LANES blocks, and after the rounds their words. */
typedef struct {
    uint32_t word[4][LANES];
} Blocks;

/* The upper half of a product; compilers know the pattern. */
MTF_INLINE uint32_t high(uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)a * b >> 32);
}

MTF_INLINE void one_round(Blocks *b, uint32_t key_0, uint32_t key_1) {
    for (int i = 0; i < LANES; i++) {
        uint32_t left = b->word[0][i], right = b->word[2][i];
        b->word[0][i] = high(MULTIPLIER_1, right) ^ b->word[1][i] ^ key_0;
        b->word[1][i] = MULTIPLIER_1 * right;
        b->word[2][i] = high(MULTIPLIER_0, left) ^ b->word[3][i] ^ key_1;
        b->word[3][i] = MULTIPLIER_0 * left;
    }
}

/* The words of blocks block, block + 1, … */
MTF_INLINE void draw(Blocks *b, const MtfRandom *random, uint64_t block) {
    for (int i = 0; i < LANES; i++) {
        b->word[0][i] = (uint32_t)(block + (uint64_t)i);
        b->word[1][i] = (uint32_t)((block + (uint64_t)i) >> 32);
        b->word[2][i] = (uint32_t)random->step;
        b->word[3][i] = (uint32_t)(random->step >> 32);
    }
    uint32_t key_0 = (uint32_t)random->key, key_1 = (uint32_t)(random->key >> 32);
    for (int r = 0; r < ROUNDS; r++, key_0 += WEYL_0, key_1 += WEYL_1)
        one_round(b, key_0, key_1);
}

/* keep[i] for the ELEMENTS elements of blocks block, block + 1, … */
MTF_EACH_VECTOR_UNIT static void keep_blocks(const MtfRandom *random, uint32_t threshold,
                                             uint64_t block, uint8_t *keep) {
    Blocks b;
    draw(&b, random, block);
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < 4; j++)
            keep[4 * i + j] = b.word[j][i] >= threshold;
}

/* The words of the same elements. */
MTF_EACH_VECTOR_UNIT static void word_blocks(const MtfRandom *random, uint64_t block,
                                             uint32_t *words) {
    Blocks b;
    draw(&b, random, block);
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < 4; j++)
            words[4 * i + j] = b.word[j][i];
}

/* How many of n elements from `first` on the blocks at hand reach. */
static int64_t reach(int64_t first, int64_t n) {
    return MIN(ELEMENTS - first % 4, n);
}

void mtf_kernel_random_keep(const MtfRandom *random, double rate, int64_t first, int64_t n,
                            uint8_t *keep) {
    uint32_t threshold = mtf_random_dropped_below(rate);
    uint8_t whole[ELEMENTS] = { 0 };
    for (int64_t count; n > 0; first += count, keep += count, n -= count) {
        count = reach(first, n);
        keep_blocks(random, threshold, (uint64_t)(first / 4), count == ELEMENTS ? keep : whole);
        if (count < ELEMENTS)
            memcpy(keep, whole + first % 4, (size_t)count);
    }
}

void mtf_kernel_random_words(const MtfRandom *random, int64_t first, int64_t n, uint32_t *words) {
    uint32_t whole[ELEMENTS];
    for (int64_t count; n > 0; first += count, words += count, n -= count) {
        count = reach(first, n);
        word_blocks(random, (uint64_t)(first / 4), whole);
        memcpy(words, whole + first % 4, (size_t)count * sizeof *words);
    }
}
