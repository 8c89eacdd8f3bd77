// SPDX-License-Identifier: GPL-3.0-or-later
/* Element types. Arithmetic is done in float32 or float64; int32 holds token ids, labels and
 * positions and is never differentiated. */
#ifndef MTF_DTYPE_H
#define MTF_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum { MTF_F32, MTF_F64, MTF_I32, MTF_DTYPES } MtfDtype;

/* "float32", "float64" or "int32"; and its short form "f32", "f64", "i32". */
const char *mtf_dtype_name(MtfDtype dtype);
const char *mtf_dtype_short_name(MtfDtype dtype);

/* Accepts both forms. Leaves `*dtype` untouched and returns false for any other text. */
bool mtf_dtype_from_name(const char *name, MtfDtype *dtype);

/* Bytes of one element. */
int64_t mtf_dtype_bytes(MtfDtype dtype);

bool mtf_dtype_is_float(MtfDtype dtype);

#endif
