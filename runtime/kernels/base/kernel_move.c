// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_move.h"

#include "layouts/graph/reshape.h"
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/slice.h"

#include <string.h>

/* Rows and columns of the square that a transposing copy moves at once: its lines stay in the
 * nearest cache while they are read one way and written the other. */
#define TILE 16

/* Elements that a cast holds as doubles on their way. */
#define CAST_BLOCK 512

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

DEFINE_COPIES(uint8_t, 8)
DEFINE_COPIES(uint16_t, 16)
DEFINE_COPIES(uint32_t, 32)
DEFINE_COPIES(uint64_t, 64)

static void transpose(const Transpose *t, int64_t bytes) {
    for (int64_t row = 0; row < t->rows; row += TILE)
        for (int64_t column = 0; column < t->columns; column += TILE)
            (bytes == 8   ? tile_64
             : bytes == 4 ? tile_32
             : bytes == 2 ? tile_16
                          : tile_8)(t, row, column, MIN(TILE, t->rows - row),
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
         : bytes == 2 ? copy_strided_16
                      : copy_strided_8)(out, in, nest->count, nest->step[1]);
}

void mtf_operand_copy(const MtfOperand *out, const MtfOperand *in) {
    int64_t bytes = mtf_dtype_bytes(out->dtype);
    MtfNest nest;
    mtf_nest_over(&nest, out, 2, (const MtfOperand *[]){ out, in });
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

/* What is given of a reshape's input, along the result's dimensions and from where that begins: of those that several
 * merge to it may be more than the result has, since elements of the first of these are given whole. */
static MtfOperand given_of(const MtfKernelCall *call) {
    MtfReshapeGroup groups[2 * MTF_MAX_RANK];
    const MtfOperand *in = &call->inputs[0];
    MtfOperand given = call->outputs[0];
    int n = mtf_reshape_groups(
        call->graph, mtf_operation_operand_shape(call->graph, call->operation, 0),
        mtf_operation_operand_shape(call->graph, call->operation, MTF_OUTPUT), groups);
    for (int g = 0; g < n; g++) {
        const MtfReshapeGroup *group = &groups[g];
        int j = group->first_out, i = group->first_in;
        if (group->n_out != 1 || group->n_in < 2)
            continue;
        given.size[j] = in->size[i];
        given.begin[j] = in->begin[i];
        for (int k = 1; k < group->n_in; k++) {
            given.size[j] *= in->size[i + k];
            given.begin[j] *= in->size[i + k];
        }
    }
    int64_t first = 0;
    for (int j = 0; j < given.rank; j++)
        first += (call->outputs[0].begin[j] - given.begin[j]) * mtf_operand_stride(&given, j);
    given.data = mtf_operand_at(in, first);
    return given;
}

/* Renamed where all that is given is made. */
static void reshape_kernel(const MtfKernelCall *call) {
    int64_t elements = mtf_operand_elements(&call->outputs[0]);
    if (mtf_operand_elements(&call->inputs[0]) == elements) {
        rename_kernel(call);
        return;
    }
    if (elements == 0)
        return;
    MtfOperand given = given_of(call);
    mtf_operand_copy(&call->outputs[0], &given);
}

/* Elements [first, first + n) as doubles, and the other way round. */
#define READ(type)                  \
    for (int64_t i = 0; i < n; i++) \
    to[i] = (double)((const type *)in->data)[first + i]

static void read_numbers(double *to, const MtfOperand *in, int64_t first, int64_t n) {
    switch (in->dtype) {
    case MTF_F32:
        READ(float);
        return;
    case MTF_F64:
        READ(double);
        return;
    case MTF_I32:
        READ(int32_t);
        return;
    case MTF_BOOL:
        READ(uint8_t);
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            to[i] = mtf_slice_get(in, first + i);
    }
}

static void write_numbers(const MtfOperand *out, const double *from, int64_t first, int64_t n) {
    if (out->dtype == MTF_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)out->data)[first + i] = (float)from[i];
    else if (out->dtype == MTF_BOOL)
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)out->data)[first + i] = from[i] != 0;
    else
        for (int64_t i = 0; i < n; i++)
            mtf_slice_set(out, first + i, from[i]);
}

static void cast_kernel(const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0], *in = &call->inputs[0];
    if (out->dtype == in->dtype ||
        (mtf_dtype_wide(out->dtype) == MTF_F32 && mtf_dtype_wide(in->dtype) == MTF_F32)) {
        mtf_operand_convert(out, in);
        return;
    }
    double numbers[CAST_BLOCK];
    int64_t elements = mtf_operand_elements(out);
    for (int64_t i = 0; i < elements; i += CAST_BLOCK) {
        int64_t n = MIN(CAST_BLOCK, elements - i);
        read_numbers(numbers, in, i, n);
        write_numbers(out, numbers, i, n);
    }
}

static void constant_kernel(const MtfKernelCall *call) {
    int64_t elements = mtf_operand_elements(&call->outputs[0]);
    for (int64_t i = 0; i < elements; i++)
        mtf_slice_set(&call->outputs[0], i, call->operation->attributes.value);
}

static void range_kernel(const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0];
    for (int64_t i = 0; i < out->size[0]; i++)
        mtf_slice_set(out, i, (double)(out->begin[0] + i));
}

const MtfKernelRow mtf_move_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_RENAME, rename_kernel, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_TRANSPOSE, copy_kernel, { "rc" }, "cr", MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_RESHAPE, reshape_kernel, { "rc" }, "tk", MTF_FIRST_KEPT),
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
