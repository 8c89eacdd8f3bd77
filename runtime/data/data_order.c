// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_order.h"

#include "layouts/graph/random.h"

#define ROUNDS 4
#define STREAM "data/order"

static uint64_t permute(uint64_t seed, int64_t epoch, int bits, uint64_t pair) {
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    uint64_t left = pair >> bits, right = pair & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        MtfRandom random = mtf_random_stream(seed, STREAM, (uint64_t)epoch * ROUNDS + round);
        uint64_t next = left ^ (mtf_random_word(&random, (int64_t)right) & mask);
        left = right;
        right = next;
    }
    return left << bits | right;
}

int64_t mtf_data_order(uint64_t seed, int64_t epoch, int64_t n, int64_t place) {
    int bits = 1;
    while ((INT64_C(1) << 2 * bits) < n)
        bits++;
    uint64_t pair = (uint64_t)place;
    do
        pair = permute(seed, epoch, bits, pair);
    while (pair >= (uint64_t)n);
    return (int64_t)pair;
}
