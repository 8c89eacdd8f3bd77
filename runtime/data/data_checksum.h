// SPDX-License-Identifier: GPL-3.0-or-later
/* The checksum of a checkpoint's data: over all elements, the sum modulo 2^64 of
 *
 *     mix(bits + 0x9e3779b97f4a7c15 (place + 1))
 *
 * where `bits` are an element's bytes as a little-endian number, `place` the offset of its first
 * byte in the data, and mix the finalizer of splitmix64. A sum can be taken in any order, so every
 * rank adds up the part of the file it reads or writes, whatever the layout. It finds damage, not
 * forgery. */
#ifndef MTF_DATA_CHECKSUM_H
#define MTF_DATA_CHECKSUM_H

#include <stdint.h>

/* The sum over `n` elements of `element_bytes` (1, 2, 4 or 8) that begin at `place`. */
uint64_t mtf_data_checksum(int64_t place, const void *elements, int64_t n, int64_t element_bytes);

#endif
