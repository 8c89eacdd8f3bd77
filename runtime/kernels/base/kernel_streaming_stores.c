// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_streaming_stores.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

#define WORD 16 /* bytes of a store */
#define LINE 64

bool mtf_streams(const void *to, int64_t bytes) {
    return bytes >= MTF_STREAM_BYTES && (uintptr_t)to % WORD == 0;
}

static __m128 load(const char *from) {
    return _mm_loadu_ps((const float *)(const void *)from);
}

static void store(char *to, __m128 word) {
    _mm_stream_ps((float *)(void *)to, word);
}

void mtf_stream_copy(void *to, const void *from, int64_t bytes) {
    const char *source = from;
    char *target = to;
    int64_t i = 0;
    for (; mtf_streams(to, bytes) && i + LINE <= bytes; i += LINE) {
        __m128 words[LINE / WORD];
        for (int k = 0; k < LINE / WORD; k++)
            words[k] = load(source + i + (int64_t)k * WORD);
        for (int k = 0; k < LINE / WORD; k++)
            store(target + i + (int64_t)k * WORD, words[k]);
    }
    /* Before anybody learns that it is there. */
    _mm_sfence();
    memcpy(target + i, source + i, (size_t)(bytes - i));
}

void mtf_stream_sum(void *to, const void *a, const void *b, int64_t bytes) {
    const char *left = a, *right = b;
    char *target = to;
    int64_t i = 0;
    for (; i + WORD <= bytes; i += WORD)
        store(target + i, _mm_add_ps(load(left + i), load(right + i)));
    _mm_sfence();
    for (; i < bytes; i += (int64_t)sizeof(float))
        *(float *)(void *)(target + i) =
            *(const float *)(const void *)(left + i) + *(const float *)(const void *)(right + i);
}

#else

bool mtf_streams(const void *to, int64_t bytes) {
    (void)to;
    (void)bytes;
    return false;
}

void mtf_stream_copy(void *to, const void *from, int64_t bytes) {
    memcpy(to, from, (size_t)bytes);
}

void mtf_stream_sum(void *to, const void *a, const void *b, int64_t bytes) {
    for (int64_t i = 0; i < bytes / (int64_t)sizeof(float); i++)
        ((float *)to)[i] = ((const float *)a)[i] + ((const float *)b)[i];
}

#endif
