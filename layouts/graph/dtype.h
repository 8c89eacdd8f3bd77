// SPDX-License-Identifier: GPL-3.0-or-later
/* Element types. Arithmetic is done in float32 or float64; bfloat16, the upper half of a float32,
 * is only stored and sent; int32 and int64 hold token ids, labels, positions and counts and are
 * never differentiated, nor is bool, a byte that is 0 or 1; int8 holds weights in units of a scale
 * (quantized_einsum) and is only read. */
#ifndef MTF_DTYPE_H
#define MTF_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    MTF_F32,
    MTF_F64,
    MTF_I32,
    MTF_BF16,
    MTF_I8,
    MTF_I64,
    MTF_BOOL,
    MTF_DTYPES
} MtfDtype;

/* "float32", "float64", "int32", "bfloat16", "int8", "int64" or "bool"; and its short form "f32",
 * "f64", "i32", "bf16", "i8", "i64", "bool". */
const char *mtf_dtype_name(MtfDtype dtype);
const char *mtf_dtype_short_name(MtfDtype dtype);

/* Accepts both forms. Leaves `*dtype` untouched and returns false for any other text. */
bool mtf_dtype_from_name(const char *name, MtfDtype *dtype);

/* Bytes of one element. */
int64_t mtf_dtype_bytes(MtfDtype dtype);

/* Whether values of the type have fractions: float32, float64 and bfloat16. */
bool mtf_dtype_is_float(MtfDtype dtype);

/* Whether it is int32 or int64, which count and choose. */
bool mtf_dtype_is_integer(MtfDtype dtype);

/* The largest n such that the type has all whole numbers from -n to n; 1 for bool, which has 0 and 1. */
double mtf_dtype_most(MtfDtype dtype);

/* The type in which numbers of a type are computed with and added up: float32 for bfloat16, the
 * type itself for all others. */
MtfDtype mtf_dtype_wide(MtfDtype dtype);

#endif
