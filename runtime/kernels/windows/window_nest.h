// SPDX-License-Identifier: GPL-3.0-or-later
/* The windows of one call, as its slices hold them (layouts/graph/window.h). */
#ifndef MTF_WINDOW_NEST_H
#define MTF_WINDOW_NEST_H

#include "runtime/kernels/base/kernel.h"

/* One side of the windows along its dimension: elements held, the first of them in the whole tensor,
 * the whole's size, and how far apart neighbours lie. A dimension that the operand lacks has one. */
typedef struct {
    int64_t size, begin, global, stride;
} MtfSide;

typedef struct {
    MtfSide large, small;
    int64_t places, place_begin,
        place_stride; /* within the window; of the filter, where there is one */
    int64_t stride, dilation, before, after;
} MtfWindowLoop;

typedef struct {
    int n;
    MtfWindowLoop loop[MTF_MAX_WINDOWS];
} MtfWindowNest;

/* How an operand lies along `dim`. */
MtfSide mtf_side_of(const MtfOperand *operand, int dim);

/* The loops over a call's windows; `filter` may be NULL. */
MtfWindowNest mtf_window_nest(const MtfKernelCall *call, const MtfOperand *large,
                              const MtfOperand *small, const MtfOperand *filter);

/* The large side's element, counted in its slice, that `place` of window `small` (counted in its
 * slice) meets; -1 where the slice has none. */
int64_t mtf_window_large(const MtfWindowLoop *loop, int64_t small, int64_t place);

/* The window, counted in its slice, whose `place` meets element `large`; -1 where there is none. */
int64_t mtf_window_small(const MtfWindowLoop *loop, int64_t large, int64_t place);

#endif
