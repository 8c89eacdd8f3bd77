// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_checksum.h"

#include <glib.h>
#include <string.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t sum_words(uint64_t place, const unsigned char *elements, int64_t n) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        guint64 word;
        memcpy(&word, elements + 8 * i, sizeof word);
        sum += mix(GUINT64_FROM_LE(word) + GOLDEN * (place + 1 + 8 * (uint64_t)i));
    }
    return sum;
}

static uint64_t sum_halves(uint64_t place, const unsigned char *elements, int64_t n) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        guint32 half;
        memcpy(&half, elements + 4 * i, sizeof half);
        sum += mix(GUINT32_FROM_LE(half) + GOLDEN * (place + 1 + 4 * (uint64_t)i));
    }
    return sum;
}

static uint64_t sum_small(uint64_t place, const unsigned char *elements, int64_t n,
                          int64_t element_bytes) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        for (int64_t b = element_bytes - 1; b >= 0; b--)
            bits = bits << 8 | elements[element_bytes * i + b];
        sum += mix(bits + GOLDEN * (place + 1 + (uint64_t)(element_bytes * i)));
    }
    return sum;
}

uint64_t mtf_data_checksum(int64_t place, const void *elements, int64_t n, int64_t element_bytes) {
    switch (element_bytes) {
    case 8:
        return sum_words((uint64_t)place, elements, n);
    case 4:
        return sum_halves((uint64_t)place, elements, n);
    default:
        return sum_small((uint64_t)place, elements, n, element_bytes);
    }
}
