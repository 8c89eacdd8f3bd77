// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/slice.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_math.h"

#include <math.h>

/* The nearest that int8 holds, ties to even; NaN becomes 0. */
static int8_t int8_rounded(double value) {
    return (int8_t)(value != value ? 0 : rint(CLAMP(value, -MTF_INT8_MOST, MTF_INT8_MOST)));
}

int64_t mtf_slice_elements(const MtfOperand *slice) {
    int64_t elements = 1;
    for (int i = 0; i < slice->rank; i++)
        elements *= slice->size[i];
    return elements;
}

int64_t mtf_slice_global_index(const MtfOperand *slice, int64_t position) {
    int64_t index = 0;
    int64_t stride = 1;
    for (int i = slice->rank - 1; i >= 0; i--) {
        int64_t place = slice->begin[i] + position % slice->size[i];
        index += place % slice->global[i] * stride; /* what turns goes on behind its end */
        position /= slice->size[i];
        stride *= slice->global[i];
    }
    return index;
}

double mtf_slice_get(const MtfOperand *slice, int64_t position) {
    switch (slice->dtype) {
    case MTF_F32:
        return ((const float *)slice->data)[position];
    case MTF_F64:
        return ((const double *)slice->data)[position];
    case MTF_BF16:
        return (double)mtf_bf16_wide(((const uint16_t *)slice->data)[position]);
    case MTF_I8:
        return ((const int8_t *)slice->data)[position];
    case MTF_I64:
        return (double)((const int64_t *)slice->data)[position];
    case MTF_BOOL:
        return ((const uint8_t *)slice->data)[position];
    default:
        return ((const int32_t *)slice->data)[position];
    }
}

/* Towards zero; what no int32 can hold becomes the nearest, and NaN 0. */
static int32_t to_int32(double value) {
    return value != value ? 0 : (int32_t)CLAMP(value, (double)INT32_MIN, (double)INT32_MAX);
}

/* Likewise; 2^63 itself is no int64. */
static int64_t to_int64(double value) {
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value < -0x1p63)
        return INT64_MIN;
    return value != value ? 0 : (int64_t)value;
}

void mtf_slice_set(const MtfOperand *slice, int64_t position, double value) {
    switch (slice->dtype) {
    case MTF_F32:
        ((float *)slice->data)[position] = (float)value;
        return;
    case MTF_F64:
        ((double *)slice->data)[position] = value;
        return;
    case MTF_BF16:
        ((uint16_t *)slice->data)[position] = mtf_bf16_rounded((float)value);
        return;
    case MTF_I8:
        ((int8_t *)slice->data)[position] = int8_rounded(value);
        return;
    case MTF_I64:
        ((int64_t *)slice->data)[position] = to_int64(value);
        return;
    case MTF_BOOL:
        ((uint8_t *)slice->data)[position] = value != 0;
        return;
    default:
        ((int32_t *)slice->data)[position] = to_int32(value);
    }
}

MTF_EACH_VECTOR_UNIT static void set_floats(float *to, int64_t n, const double *values) {
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)values[i];
}

void mtf_slice_set_run(const MtfOperand *slice, int64_t position, int64_t n, const double *values) {
    if (slice->dtype == MTF_F32) {
        set_floats((float *)slice->data + position, n, values);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        mtf_slice_set(slice, position + i, values[i]);
}
