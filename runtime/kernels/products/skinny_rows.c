// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/skinny_rows.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/products/skinny_pairs.h"

#include <string.h>

#define LINE 16      /* elements */
#define LINES 8      /* of a matrix whose lines are added */
#define DOT_LINES 4  /* … are multiplied with the rows */
#define DOT_ROWS 4   /* at a time */
#define COLUMNS 4096 /* of the result that stay near */

/* Lines behind are asked for early, but where one row takes wide ones: nothing is computed there that
 * the processor's own prefetching would wait for. */
#define ASKS_EARLY(T, rows) ((rows) > 1 || sizeof(T) < sizeof(float))

#define ONE_F32(p) (*(p))
#define ONE_BF16(p) mtf_bf16_wide(*(p))
#define ONE_I8(p) ((float)*(p))
typedef MtfSkinny Piece;

#define VECTOR_BYTES 64
#define VECTOR_UNIT MTF_UNIT_OF_LINES
#define VECTORS(name) name##_of_lines
#include "runtime/kernels/products/skinny_loops.inc"
#undef VECTOR_BYTES
#undef VECTOR_UNIT
#undef VECTORS

#define VECTOR_BYTES 32
#define VECTOR_UNIT MTF_UNIT_OF_HALVES
#define VECTORS(name) name##_of_halves
#include "runtime/kernels/products/skinny_loops.inc"
#undef VECTOR_BYTES
#undef VECTOR_UNIT
#undef VECTORS

#define VECTOR_BYTES 16
#define VECTOR_UNIT
#define VECTORS(name) name##_of_quarters
#include "runtime/kernels/products/skinny_loops.inc"
#undef VECTOR_BYTES
#undef VECTOR_UNIT
#undef VECTORS

void mtf_skinny_widened(const MtfSkinny *piece, MtfDtype dtype, const MtfProgressHook *progress) {
    /* Of 16, 32 and 64 bytes. */
    static void (*const multiply[])(const MtfSkinny *, MtfDtype, const MtfProgressHook *) = {
        multiply_of_quarters, multiply_of_halves, multiply_of_lines
    };
    multiply[mtf_vector_bytes() / 32](piece, dtype, progress);
}

/* One row waits for memory either way. */
void mtf_skinny_rows(const MtfSkinny *piece, MtfDtype dtype, const MtfProgressHook *progress) {
    if (dtype == MTF_BF16 && piece->m > 1 && mtf_skinny_pairs_pay())
        mtf_skinny_pairs(piece, progress);
    else
        mtf_skinny_widened(piece, dtype, progress);
}
