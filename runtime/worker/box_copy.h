// SPDX-License-Identifier: GPL-3.0-or-later
/* Copies a box of elements between two row-major arrays. Each array is a *frame*: the range of
 * global indexes it covers along each dimension. Frames of a tensor's slices, and packed messages
 * (whose frame is the box itself), are all the same to it:
 *
 *     from: rows [0,4) cols [0,6)      box: rows [1,3) cols [2,5)      to: the box, packed
 *        . . . . . .
 *        . . a b c .                                                     a b c
 *        . . d e f .                                                     d e f
 *        . . . . . .
 *
 * Dimensions that lie one after the other in both arrays are merged once, when the copy is made
 * ready, so that running it is a few loops around memmove. */
#ifndef MTF_BOX_COPY_H
#define MTF_BOX_COPY_H

#include "layouts/placement/placement.h"

typedef struct {
    int64_t size;                   /* repetitions */
    int64_t from_stride, to_stride; /* bytes */
} MtfCopyLoop;

typedef struct {
    int64_t from_offset, to_offset; /* bytes */
    int64_t run;                    /* bytes that lie together in both arrays; 0 = an empty box */
    int n_loops;
    MtfCopyLoop loops[MTF_MAX_RANK]; /* outermost first */
} MtfBoxCopy;

/* Makes ready the copy of `box`, which both frames contain, over `rank` dimensions. */
void mtf_box_copy_init(MtfBoxCopy *copy, int rank, int64_t element_bytes, const MtfRange *box,
                       const MtfRange *from, const MtfRange *to);

/* Copies. `from` and `to` may be one array when every element moves to a lower address or stays. */
void mtf_box_copy_run(const MtfBoxCopy *copy, const void *from, void *to);

/* The bytes that it copies. */
int64_t mtf_box_copy_bytes(const MtfBoxCopy *copy);

/* Elements of a box; 1 over no dimensions. */
int64_t mtf_box_elements(int rank, const MtfRange *box);

/* Whether the box lies in one piece in the frame; then `*offset` is the index of its first element
 * there. */
bool mtf_box_is_contiguous(int rank, const MtfRange *box, const MtfRange *frame, int64_t *offset);

#endif
