// SPDX-License-Identifier: GPL-3.0-or-later
/* The tensors of a plan in the one-line notation, layers taken together:
 *
 *     f32[batch:64@rows, d_ff:2048@cols]          split
 *     f32[vocab:64@(rows,cols), d_model:512]      one dimension over two axes, major to minor
 *     f32[batch:64@rows, d_model:512] sum@cols    kept as partial sums                        */
#ifndef MTF_TENSOR_ROWS_H
#define MTF_TENSOR_ROWS_H

#include "layouts/placement/layout.h"

typedef struct {
    char *name;     /* starred */
    char *notation; /* as above */
    char *local;    /* shape of the largest slice, "[32, 1024]" */
    int tensor;     /* the first of them */
    int count;
    int64_t bytes; /* of the largest slice of one of them */
} MtfTensorRow;

/* The notation of a tensor in a placement; free with g_free. */
char *mtf_tensor_notation(const MtfGraph *graph, const MtfMesh *mesh, int tensor,
                          const MtfPlacement *placement);

/* The shape of its largest slice, "[32, 1024]"; free with g_free. */
char *mtf_tensor_local_shape(const MtfGraph *graph, const MtfLayout *layout, int tensor);

/* All tensors (MtfTensorRow *), those that take most bytes together first; free with
 * g_ptr_array_unref. */
GPtrArray *mtf_tensor_rows_new(const MtfGraph *graph, const MtfLayout *layout);

/* For each tensor the first one of its row, which names the row on the page ("t12"). Free with
 * g_free. */
int *mtf_tensor_anchors(const MtfGraph *graph, const MtfLayout *layout);

#endif
