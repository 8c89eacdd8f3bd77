// SPDX-License-Identifier: GPL-3.0-or-later
/* Long results written past the caches. A store to memory that the cache does not hold first
 * fetches the line it is about to overwrite: a third of a copy's traffic, which these stores do
 * without. It pays where the result is longer than what a core's cache keeps until it is read. */
#ifndef MTF_KERNEL_STREAMING_STORES_H
#define MTF_KERNEL_STREAMING_STORES_H

#include <stdbool.h>
#include <stdint.h>

#define MTF_STREAM_BYTES (INT64_C(4) << 20)

/* Whether `bytes` bytes at `to` are enough and aligned for streaming stores, and the processor has them. */
bool mtf_streams(const void *to, int64_t bytes);

/* memcpy, past the caches where it can. */
void mtf_stream_copy(void *to, const void *from, int64_t bytes);

/* to[i] = a[i] + b[i] of float32; `bytes` at `to`, which is neither a nor b, for which mtf_streams
 * holds. */
void mtf_stream_sum(void *to, const void *a, const void *b, int64_t bytes);

#endif
