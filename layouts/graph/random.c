// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/random.h"

#include "layouts/graph/operation_table.h"

#include <Random123/philox.h>
#include <math.h>
#include <string.h>

#define TWO_TO_32 4294967296.0

static uint64_t fnv1a(const char *text) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* The finalizer of splitmix64, a bijection of 64-bit numbers. */
static uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

bool mtf_operation_is_random(const MtfOperation *operation) {
    const MtfOperationRow *row = mtf_operation_row(operation->kind);
    if (!row->random)
        return false;
    for (int i = 0; row->attributes[i].name != NULL; i++)
        if (strcmp(row->attributes[i].name, "dropout") == 0)
            return operation->attributes.rate > 0;
    return true;
}

MtfRandom mtf_random_stream(uint64_t seed, const char *name, uint64_t step) {
    return (MtfRandom){ .key = mix(mix(seed) + fnv1a(name)), .step = step };
}

MtfRandom mtf_random_initial_stream(uint64_t seed, const char *tensor) {
    return mtf_random_stream(seed, tensor, UINT64_MAX);
}

void mtf_random_block(const MtfRandom *random, int64_t block, uint32_t words[4]) {
    uint64_t b = (uint64_t)block;
    philox4x32_ctr_t counter = { { (uint32_t)b, (uint32_t)(b >> 32), (uint32_t)random->step,
                                   (uint32_t)(random->step >> 32) } };
    philox4x32_key_t key = { { (uint32_t)random->key, (uint32_t)(random->key >> 32) } };
    philox4x32_ctr_t result = philox4x32(counter, key);
    for (int i = 0; i < 4; i++)
        words[i] = result.v[i];
}

uint32_t mtf_random_word(const MtfRandom *random, int64_t index) {
    uint32_t words[4];
    mtf_random_block(random, index / 4, words);
    return words[index % 4];
}

double mtf_random_uniform(const MtfRandom *random, int64_t index) {
    return mtf_random_word(random, index) / TWO_TO_32;
}

/* Two elements, an even and an odd one, of a pair of words. */
static void normal_pair(const uint32_t words[2], double values[2]) {
    double radius = sqrt(-2 * log((words[0] + 1.0) / TWO_TO_32));
    double angle = 2 * G_PI * words[1] / TWO_TO_32;
    values[0] = radius * cos(angle);
    values[1] = radius * sin(angle);
}

double mtf_random_normal(const MtfRandom *random, int64_t index) {
    uint32_t words[4];
    double pair[2];
    mtf_random_block(random, index / 4, words);
    normal_pair(words + index % 4 / 2 * 2, pair);
    return pair[index % 2];
}

/* A rate below 1 gives less than 2^32. */
uint32_t mtf_random_dropped_below(double rate) {
    return (uint32_t)(rate * TWO_TO_32);
}

bool mtf_random_keeps(const MtfRandom *random, double rate, int64_t index) {
    return mtf_random_word(random, index) >= mtf_random_dropped_below(rate);
}

double mtf_random_initial(const MtfRandom *random, const MtfInit *init, int64_t index) {
    switch (init->kind) {
    case MTF_INIT_CONSTANT:
        return init->value;
    case MTF_INIT_NORMAL:
        return init->value * mtf_random_normal(random, index);
    case MTF_INIT_UNIFORM:
        return init->value * (2 * mtf_random_uniform(random, index) - 1);
    }
    g_return_val_if_reached(0);
}

static void initial_block(const MtfRandom *random, const MtfInit *init, int64_t block,
                          double values[4]) {
    uint32_t words[4];
    mtf_random_block(random, block, words);
    normal_pair(words, values);
    normal_pair(words + 2, values + 2);
    for (int i = 0; i < 4; i++)
        values[i] *= init->value;
}

void mtf_random_initial_run(const MtfRandom *random, const MtfInit *init, int64_t index, int64_t n,
                            double *values) {
    double block[4];
    for (int64_t i = 0; i < n; i++) {
        int64_t at = index + i;
        if (init->kind != MTF_INIT_NORMAL) {
            values[i] = mtf_random_initial(random, init, at);
            continue;
        }
        if (i == 0 || at % 4 == 0)
            initial_block(random, init, at / 4, block);
        values[i] = block[at % 4];
    }
}
