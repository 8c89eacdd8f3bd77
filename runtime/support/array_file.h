// SPDX-License-Identifier: GPL-3.0-or-later
/* Arrays of float32 in NumPy's format (.npy, version 1), written piece by piece: a magic, the length of a text
 * in Python's syntax that ends at a multiple of 64 bytes, and the elements, the last dimension fastest. */
#ifndef MTF_ARRAY_FILE_H
#define MTF_ARRAY_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What stands before the elements of an array of that shape. False where it cannot be written. */
bool mtf_array_file_begin(FILE *file, int rank, const int64_t *shape);

/* The next `n` elements. */
bool mtf_array_file_append(FILE *file, const double *values, int64_t n);

#endif
