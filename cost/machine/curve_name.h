// SPDX-License-Identifier: GPL-3.0-or-later
/* The names of a machine's measured tables, all of which give seconds:
 *
 *     allreduce/2          over payload bytes, a collective of that many ranks, going directly
 *     allreduce/4/ring     the same by another algorithm
 *     gelu/f32             over the bytes it reads and writes, the kernel of an operation
 *     gelu/f32/32          the same, where its rows have 32 elements (layouts/kernel_work/row_length.h)
 *     move/f32             the same, every kernel and copy of a class without a table of its own
 *     product/f32/16x64    over k, one matrix product of 16 x k by k x 64, row by row
 *     product_nt/f32/16x64, product_tn/f32/16x64
 *                          the same with the right or the left matrix column by column
 *     attention/f32/16x64, attention_grad/f32/16x64
 *                          over k, one head of 16 queries that look at 64 keys of k features each
 *     product/f32          one point: what a sum of products takes beside its products */
#ifndef MTF_CURVE_NAME_H
#define MTF_CURVE_NAME_H

#include "cost/machine/collective_kind.h"
#include "layouts/exchange/exchange_algorithm.h"
#include "layouts/graph/operation_table.h"
#include "layouts/kernel_work/product_work.h"

/* Kernels that go row by row are measured with short rows, too; elsewhere rows are this long. */
#define MTF_SHORT_ROW 32
#define MTF_LONG_ROW 256

typedef enum {
    MTF_CURVE_COLLECTIVE,
    MTF_CURVE_OPERATION,
    MTF_CURVE_CLASS,
    MTF_CURVE_PRODUCT,
    MTF_CURVE_PRODUCT_CALL,
} MtfCurveKind;

typedef struct {
    MtfCurveKind kind;
    MtfCollectiveKind collective;
    MtfExchangeAlgorithm algorithm;
    int64_t ranks;
    int operation; /* MtfOperationKind */
    MtfKernelClass class;
    MtfDtype dtype;
    MtfProductForm form;
    int64_t m, n; /* of products; m also the length of short rows, 0: of long ones */
} MtfCurveName;

/* Reads a table's name; false when it is none. Fields that do not belong to its kind are zero. */
bool mtf_curve_name_parse(const char *text, MtfCurveName *name);

/* The name; free with g_free. */
char *mtf_curve_name_format(const MtfCurveName *name);

/* "matmul", "elementwise", "reduction", "gather", "move". */
const char *mtf_kernel_class_name(MtfKernelClass class);

#endif
