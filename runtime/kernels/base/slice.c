// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/slice.h"

#include "runtime/kernels/base/kernel_bfloat16.h"

#include <math.h>

int8_t mtf_int8_rounded(double value) {
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
    default:
        return ((const int32_t *)slice->data)[position];
    }
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
        ((int8_t *)slice->data)[position] = mtf_int8_rounded(value);
        return;
    default:
        ((int32_t *)slice->data)[position] = (int32_t)value;
    }
}
