// SPDX-License-Identifier: GPL-3.0-or-later
/* What this process has in memory. */
#ifndef MTF_RESIDENT_MEMORY_H
#define MTF_RESIDENT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of memory, 0 when the system does not say. With `shares`, for ranks whose arenas the others
 * have mapped, this process's part of what is there now: a page that k processes have mapped counts
 * as a k-th of one, so that the ranks of a host add up to what is in use (what a rank has read of
 * another's arena is no memory of its own). Linux walks all pages for that: about a millisecond for
 * 100 MiB of small ones. Without, or where Linux does not say, the most there ever was, shared
 * pages whole. */
int64_t mtf_resident_bytes(bool shares);

#endif
