// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_move.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/slice.h"

#include <string.h>

/* Rows and columns of the square that a transposing copy moves at once: its lines stay in the
 * nearest cache while they are read one way and written the other. */
#define TILE 16

/* Copies out[i t + j] = in[i + j s], the inner loops of two that are transposed to each other. */
typedef struct {
    void *out;
    const void *in;
    int64_t rows, columns;         /* of i, of j */
    int64_t out_stride, in_stride; /* t, s */
} Transpose;

#define DEFINE_COPIES(T, bits)                                                             \
    static void tile_##bits(const Transpose *t, int64_t row, int64_t column, int64_t rows, \
                            int64_t columns) {                                             \
        const T *in = (const T *)t->in + row + column * t->in_stride;                      \
        T *out = (T *)t->out + row * t->out_stride + column;                               \
        for (int64_t i = 0; i < rows; i++)                                                 \
            for (int64_t j = 0; j < columns; j++)                                          \
                out[i * t->out_stride + j] = in[i + j * t->in_stride];                     \
    }                                                                                      \
    static void copy_strided_##bits(void *out, const void *in, int64_t n, int64_t step) {  \
        for (int64_t i = 0; i < n; i++)                                                    \
            ((T *)out)[i] = ((const T *)in)[i * step];                                     \
    }

DEFINE_COPIES(uint16_t, 16)
DEFINE_COPIES(uint32_t, 32)
DEFINE_COPIES(uint64_t, 64)

static void transpose(const Transpose *t, int64_t bytes) {
    for (int64_t row = 0; row < t->rows; row += TILE)
        for (int64_t column = 0; column < t->columns; column += TILE)
            (bytes == 8   ? tile_64
             : bytes == 4 ? tile_32
                          : tile_16)(t, row, column, MIN(TILE, t->rows - row),
                                     MIN(TILE, t->columns - column));
}

/* The outer loop along which the input is contiguous, or -1. Operand 1 is the input. */
static int find_contiguous_loop(const MtfNest *nest) {
    for (int i = 0; i < nest->n_loops; i++)
        if (nest->stride[1][i] == 1 && nest->size[i] > 1)
            return i;
    return -1;
}

static void copy_row(const MtfNest *nest, void *out, const void *in, int64_t bytes) {
    if (nest->step[1] == 1)
        memmove(out, in, (size_t)(nest->count * bytes));
    else
        (bytes == 8   ? copy_strided_64
         : bytes == 4 ? copy_strided_32
                      : copy_strided_16)(out, in, nest->count, nest->step[1]);
}

void mtf_operand_copy(const MtfOperand *out, const MtfOperand *in) {
    int64_t bytes = mtf_dtype_bytes(out->dtype);
    MtfNest nest;
    mtf_nest_init(&nest);
    mtf_nest_add_loops(&nest, out);
    mtf_nest_add(&nest, out);
    mtf_nest_add(&nest, in);
    bool more = mtf_nest_first(&nest);
    int turned = more && nest.step[1] > 1 ? find_contiguous_loop(&nest) : -1;
    Transpose t = { .rows = 0 };
    if (turned >= 0) {
        t = (Transpose){ .rows = nest.size[turned],
                         .columns = nest.count,
                         .out_stride = nest.stride[0][turned],
                         .in_stride = nest.step[1] };
        nest.size[turned] = 1;
    }
    for (; more; more = mtf_nest_next(&nest)) {
        t.out = mtf_operand_at(out, nest.offset[0]);
        t.in = mtf_operand_at(in, nest.offset[1]);
        if (turned >= 0)
            transpose(&t, bytes);
        else
            copy_row(&nest, t.out, t.in, bytes);
    }
}

static void copy_kernel(const MtfKernelCall *call) {
    mtf_operand_copy(&call->outputs[0], &call->inputs[0]);
}

/* Renamed, merged or divided dimensions stand where they stood. */
static void in_train_phase_kernel(const MtfKernelCall *call) {
    mtf_operand_copy(&call->outputs[0], &call->inputs[call->step > 0 ? 0 : 1]);
}

static void rename_kernel(const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0];
    int64_t elements = mtf_operand_elements(out);
    if (elements > 0 && out->data != call->inputs[0].data)
        memcpy(out->data, call->inputs[0].data, (size_t)(elements * mtf_dtype_bytes(out->dtype)));
}

static double read_number(const MtfOperand *in, int64_t i) {
    switch (in->dtype) {
    case MTF_F32:
        return (double)((const float *)in->data)[i];
    case MTF_F64:
        return ((const double *)in->data)[i];
    case MTF_BF16:
        return (double)mtf_bf16_wide(((const uint16_t *)in->data)[i]);
    case MTF_I8:
        return (double)((const int8_t *)in->data)[i];
    default:
        return (double)((const int32_t *)in->data)[i];
    }
}

/* Towards zero; what no int32 can hold becomes the nearest, and NaN 0. */
static int32_t to_integer(double value) {
    if (value != value)
        return 0;
    return (int32_t)CLAMP(value, (double)INT32_MIN, (double)INT32_MAX);
}

static void write_number(const MtfOperand *out, int64_t i, double value) {
    switch (out->dtype) {
    case MTF_F32:
        ((float *)out->data)[i] = (float)value;
        break;
    case MTF_F64:
        ((double *)out->data)[i] = value;
        break;
    case MTF_BF16:
        ((uint16_t *)out->data)[i] = mtf_bf16_rounded((float)value);
        break;
    case MTF_I8:
        ((int8_t *)out->data)[i] = mtf_int8_rounded(value);
        break;
    default:
        ((int32_t *)out->data)[i] = to_integer(value);
    }
}

static void cast_kernel(const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0], *in = &call->inputs[0];
    if (mtf_dtype_wide(out->dtype) == MTF_F32 && mtf_dtype_wide(in->dtype) == MTF_F32) {
        mtf_operand_convert(out, in);
        return;
    }
    int64_t elements = mtf_operand_elements(out);
    for (int64_t i = 0; i < elements; i++)
        write_number(out, i, read_number(in, i));
}

static void constant_kernel(const MtfKernelCall *call) {
    int64_t elements = mtf_operand_elements(&call->outputs[0]);
    for (int64_t i = 0; i < elements; i++)
        write_number(&call->outputs[0], i, call->operation->attributes.value);
}

static void range_kernel(const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0];
    for (int64_t i = 0; i < out->size[0]; i++)
        write_number(out, i, (double)(out->begin[0] + i));
}

const MtfKernelRow mtf_move_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_RENAME, rename_kernel, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_TRANSPOSE, copy_kernel, { "rc" }, "cr", MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_RESHAPE, rename_kernel, { "rc" }, "tk", MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_BROADCAST, copy_kernel, { "c" }, "rc", MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_CAST, cast_kernel, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_STOP_GRADIENT, copy_kernel, { "rc" }, NULL, MTF_FIRST_FRESH),
    { .kind = MTF_OP_TO_HOST, .kernel = copy_kernel },
    { .kind = MTF_OP_FROM_HOST, .kernel = copy_kernel },
    MTF_TIMED_KERNEL(MTF_OP_IN_TRAIN_PHASE, in_train_phase_kernel, { "rc", "rc" }, NULL,
                     MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_CONSTANT, constant_kernel, { NULL }, "rc", MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_RANGE, range_kernel, { NULL }, "c", MTF_NOTHING_FRESH),
    { .kernel = NULL },
};
