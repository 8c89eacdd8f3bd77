// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/kernel_combine.h"
#include "runtime/kernels/base/kernel_streaming_stores.h"

#include <math.h>

#define MOST_TERMS 5
#define MOST 5000

/* Element i of an array of any type. */
static double get(MtfDtype dtype, const char *array, int64_t i) {
    return dtype == MTF_F32    ? (double)((const float *)(const void *)array)[i]
           : dtype == MTF_F64  ? ((const double *)(const void *)array)[i]
           : dtype == MTF_I64  ? (double)((const int64_t *)(const void *)array)[i]
           : dtype == MTF_BOOL ? (double)((const uint8_t *)(const void *)array)[i]
                               : (double)((const int32_t *)(const void *)array)[i];
}

static void set(MtfDtype dtype, char *array, int64_t i, double value) {
    if (dtype == MTF_F32)
        ((float *)(void *)array)[i] = (float)value;
    else if (dtype == MTF_F64)
        ((double *)(void *)array)[i] = value;
    else if (dtype == MTF_I64)
        ((int64_t *)(void *)array)[i] = (int64_t)value;
    else if (dtype == MTF_BOOL)
        ((uint8_t *)(void *)array)[i] = (uint8_t)value;
    else
        ((int32_t *)(void *)array)[i] = (int32_t)value;
}

/* Terms of small whole numbers, the first target in place of term 1, the second elsewhere. */
static void check(MtfDtype dtype, MtfReduction reduction, int n_terms, int64_t n) {
    char *terms[MOST_TERMS] = { 0 }, *elsewhere = g_malloc(8 * MOST);
    g_autofree double *expected = g_new(double, MOST);
    for (int k = 0; k < n_terms; k++) {
        terms[k] = g_malloc(8 * MOST);
        for (int64_t i = 0; i < n; i++) {
            double number = (double)((i * 7 + k * 13) % 31 - 15);
            double value = dtype == MTF_BOOL ? number > 5 : number;
            bool largest = reduction == MTF_REDUCE_MAX || dtype == MTF_BOOL;
            set(dtype, terms[k], i, value);
            expected[i] = k == 0 ? value : largest ? fmax(expected[i], value) : expected[i] + value;
        }
    }
    char *const targets[] = { terms[1], elsewhere };
    mtf_combine(
        &(MtfCombination){ dtype, reduction, n_terms, 2, (const char *const *)terms, targets }, n);
    for (int64_t i = 0; i < n; i++) {
        assert_true(get(dtype, terms[1], i) == expected[i]);
        assert_true(get(dtype, elsewhere, i) == expected[i]);
    }
    for (int k = 0; k < n_terms; k++)
        g_free(terms[k]);
    g_free(elsewhere);
}

TEST(sums_and_maxima_are_those_of_a_plain_loop) {
    const int64_t lengths[] = { 0, 1, 15, 1024, 2048, 2049, MOST };
    const MtfDtype types[] = { MTF_F32, MTF_F64, MTF_I32, MTF_I64, MTF_BOOL };
    for (gsize l = 0; l < G_N_ELEMENTS(lengths); l++)
        for (gsize t = 0; t < G_N_ELEMENTS(types); t++)
            for (int n_terms = 2; n_terms <= MOST_TERMS; n_terms++) {
                check(types[t], MTF_REDUCE_SUM, n_terms, lengths[l]);
                check(types[t], MTF_REDUCE_MAX, n_terms, lengths[l]);
            }
}

/* Longer than what goes past the caches, beginning at places that are and are not aligned, and
 * ending anywhere. Only what belongs to the result is written. */
TEST(long_results_are_those_of_short_ones) {
    const int64_t n = MTF_STREAM_BYTES / 4 + 21;
    g_autofree float *a = g_new(float, n), *b = g_new(float, n), *sum = g_new(float, n + 8);
    for (int64_t i = 0; i < n; i++) {
        a[i] = (float)(i % 1000);
        b[i] = (float)(i % 7);
    }
    for (int shift = 0; shift < 5; shift++) {
        for (int64_t i = 0; i < n + 8; i++)
            sum[i] = -1;
        const char *const terms[] = { (char *)a, (char *)b };
        char *const targets[] = { (char *)(sum + shift) };
        mtf_combine(&(MtfCombination){ MTF_F32, MTF_REDUCE_SUM, 2, 1, terms, targets }, n);
        for (int64_t i = 0; i < n; i++)
            assert_true(sum[shift + i] == a[i] + b[i]);
        assert_true((shift == 0 || sum[shift - 1] == -1) && sum[shift + n] == -1);
        mtf_stream_copy(sum + shift, b, 4 * n);
        assert_memory_equal(sum + shift, b, (gsize)(4 * n));
        assert_true((shift == 0 || sum[shift - 1] == -1) && sum[shift + n] == -1);
    }
}

TEST(a_long_sum_in_place_of_its_terms) {
    const int64_t n = MTF_STREAM_BYTES / 4 + 3;
    g_autofree float *a = g_new(float, n), *b = g_new(float, n);
    for (int64_t i = 0; i < n; i++) {
        a[i] = (float)(i % 1000);
        b[i] = (float)(i % 7);
    }
    const char *const terms[] = { (char *)a, (char *)b };
    char *const targets[] = { (char *)a, (char *)b };
    mtf_combine(&(MtfCombination){ MTF_F32, MTF_REDUCE_SUM, 2, 2, terms, targets }, n);
    for (int64_t i = 0; i < n; i++)
        assert_true(a[i] == (float)(i % 1000) + (float)(i % 7) && b[i] == a[i]);
    mtf_combine(&(MtfCombination){ MTF_F32, MTF_REDUCE_SUM, 2, 1, terms, targets }, n);
    for (int64_t i = 0; i < n; i++)
        assert_true(a[i] == 2 * b[i]);
}

TEST(terms_are_added_in_their_order) {
    float a = 1e8f, b = -1e8f, c = 1, sum;
    const char *const terms[] = { (char *)&a, (char *)&b, (char *)&c };
    char *const targets[] = { (char *)&sum };
    mtf_combine(&(MtfCombination){ MTF_F32, MTF_REDUCE_SUM, 3, 1, terms, targets }, 1);
    assert_true(sum == 1);
}

TEST(a_maximum_with_nan_is_nan) {
    float a[] = { NAN, 1 }, b[] = { 1, NAN }, maximum[2];
    const char *const terms[] = { (char *)a, (char *)b };
    char *const targets[] = { (char *)maximum };
    mtf_combine(&(MtfCombination){ MTF_F32, MTF_REDUCE_MAX, 2, 1, terms, targets }, 2);
    assert_true(isnan(maximum[0]) && isnan(maximum[1]));
}
