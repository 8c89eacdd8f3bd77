// SPDX-License-Identifier: GPL-3.0-or-later
/* Matrices that a published folder keeps in few bits. In eight bits, and beside them what one unit is worth,
 * a float for every block of rows and columns:
 *
 *     "w"            [rows, columns]     F8_E4M3, F8_E5M2 or I8
 *     "w_scale_inv"  [rows / block_rows, columns / block_columns], rounded up    (DeepSeek-V3: 128 by 128)
 *     "w_scale"      [rows, 1], [rows], [1] or []: a row is a block, or all is   (FBGEMM, compressed-tensors)
 *
 *     value[i, j] = w[i, j] * scale[i / block_rows, j / block_columns] */
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

/* Element `place` of the matrix, where one unit is worth this much; `values` are what was read. */
static inline float mtf_block_scales_at(const MtfBlockScales *scales, const float *values,
                                        int64_t place) {
    int64_t row = place / scales->width / scales->block_rows;
    int64_t column = place % scales->width / scales->block_columns;
    return values[row * scales->columns + column];
}

/* ---- Four bits ----------------------------------------------------------------------------- */

/* Matrices of numbers of four bits, eight a word, or in GPTQ of eight, four a word, that lie [in, out] where
 * the model has [out, in]; with n a word:
 *
 *     GPTQ   "w.qweight" [in / n, out]   number k of word [r, o] is of input n r + k and output o
 *     AWQ    "w.qweight" [in, out / 8]   number k of word [i, c] is of input i and output 8 c + (0 2 4 6 1 3 5 7)[k]
 *     both   "w.scales" [groups, out];  "w.qzeros" [groups, out / n], of AWQ as above, else in order and, but in
 *            version 2 of the format, less 1 (of 16 or 256);  "w.g_idx" [in] of GPTQ, the group of each input, else i / group_size
 *
 *     value[o, i] = (number[i, o] - zero[group(i), o]) scale[group(i), o]
 *
 * And those of experts, two numbers a byte, that lie [experts, out, in] where the model has [experts, in, out]:
 *
 *     MXFP4  "w_blocks" [experts, out, in / 32, 16]  byte b of a block holds those of its inputs 2 b (low) and 2 b + 1
 *            "w_scales" [experts, out, in / 32]
 *
 *     value[e, i, o] = E2M1(number) 2^(scale[e, o, i / 32] - 127)          (OCP Microscaling Formats 1.0, 2023) */
typedef enum {
    MTF_PACKED_NONE,
    MTF_PACKED_GPTQ,
    MTF_PACKED_GPTQ_V2,
    MTF_PACKED_AWQ,
    MTF_PACKED_MXFP4,
} MtfPacking;

#define MTF_MXFP4_INPUTS 32 /* of a block */

/* A tensor's place. */
typedef struct {
    const char *path; /* NULL: it is not there */
    int64_t place;    /* bytes before its data */
    MtfStoredType type;
} MtfStoredData;

typedef struct {
    MtfPacking packing; /* MTF_PACKED_NONE: the matrix is not packed */
    int bits;           /* of a number: 4, or of GPTQ 8 */
    int64_t in, out, groups, group_size;
    int64_t experts; /* of MXFP4 */
    MtfStoredData scales, zeros, order;
} MtfPackedMatrix;

/* What its numbers are worth. */
typedef struct {
    float *scale, *zero; /* [groups, out] */
    int *group;          /* [in] */
} MtfPackedUnits;

/* Units of a matrix without values yet, and freed. */
MtfPackedUnits mtf_packed_units_new(const MtfPackedMatrix *matrix);
void mtf_packed_units_clear(MtfPackedUnits *units);

/* Reads them; fails (bad input) where they cannot be read, or an input is of no group. */
bool mtf_packed_units_read(const MtfPackedMatrix *matrix, MtfPackedUnits *units, GError **error);

/* The scales of an expert of MXFP4, out * groups bytes; fails (bad input) where they cannot be read. */
bool mtf_expert_scales_read(const MtfPackedMatrix *matrix, int64_t expert, guint8 *scales,
                            GError **error);

/* A number of an expert of MXFP4, of whose blocks and scales these are. */
float mtf_expert_value(const MtfPackedMatrix *matrix, const guint8 *blocks, const guint8 *scales,
                       int64_t input, int64_t output);

/* Numbers in a word. */
static inline int mtf_packed_numbers(const MtfPackedMatrix *matrix) {
    return 32 / matrix->bits;
}

/* The output within its eight that number k of a word is of. */
static inline int mtf_packed_output(MtfPacking packing, int k) {
    return packing == MTF_PACKED_AWQ ? k % 4 * 2 + k / 4 : k;
}

/* What a number of an input and an output says. */
static inline float mtf_packed_value(const MtfPackedMatrix *matrix, const MtfPackedUnits *units,
                                     int64_t input, int64_t output, unsigned number) {
    int64_t unit = units->group[input] * matrix->out + output;
    return ((float)number - units->zero[unit]) * units->scale[unit];
}

#endif
