// SPDX-License-Identifier: GPL-3.0-or-later
/* Matrices that a published folder keeps in eight bits, and beside them what one unit is worth, a float for
 * every block of rows and columns:
 *
 *     "w"            [rows, columns]     F8_E4M3, F8_E5M2 or I8
 *     "w_scale_inv"  [rows / block_rows, columns / block_columns], rounded up    (DeepSeek-V3: 128 by 128)
 *     "w_scale"      [rows, 1], [rows], [1] or []: a row is a block, or all is   (FBGEMM, compressed-tensors)
 *
 *     value[i, j] = w[i, j] * scale[i / block_rows, j / block_columns]                                     */
#ifndef MTF_BLOCK_SCALES_H
#define MTF_BLOCK_SCALES_H

#include "runtime/checkpoint/stored_value.h"

typedef struct {
    const char *path; /* the file that has the scales; NULL: the matrix is not in units */
    int64_t place;    /* bytes before the first */
    MtfStoredType type;
    int64_t rows, columns; /* of scales */
    int64_t width;         /* columns of the matrix */
    int64_t block_rows, block_columns;
} MtfBlockScales;

/* Sets shapes and blocks; `block` is what the model's config says of a block's rows and columns, or {0, 0}.
 * Returns whether the two tensors go together. */
bool mtf_block_scales_set(const MtfStoredTensor *matrix, const MtfStoredTensor *scale,
                          const int64_t block[2], MtfBlockScales *scales);

/* Reads them, rows * columns floats to be freed with g_free; NULL with a bad-input error. */
float *mtf_block_scales_read(const MtfBlockScales *scales, GError **error);

/* Element `place` of the matrix, of which one unit is worth this much; `values` are what was read. */
static inline float mtf_block_scales_at(const MtfBlockScales *scales, const float *values,
                                        int64_t place) {
    int64_t row = place / scales->width / scales->block_rows;
    int64_t column = place % scales->width / scales->block_columns;
    return values[row * scales->columns + column];
}

#endif
