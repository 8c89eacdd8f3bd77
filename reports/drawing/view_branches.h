// SPDX-License-Identifier: GPL-3.0-or-later
/* What a drawing sets below each other though no arrow says so. Where many branches begin at one box, side by side
 * they would be as wide as all of them together; in columns they are as wide as the widest few:
 *
 *            fork                           fork
 *     ┌────┬───┴┬────┐                   ┌───┴┐
 *     a    b    c    d         for       a    b
 *     │         │                        │    c
 *     a'        c'                       a'   │
 *                                        d    c'
 *
 * A branch is a box that one arrow leads to, from the fork, and all that only it leads to. */
#ifndef MTF_VIEW_BRANCHES_H
#define MTF_VIEW_BRANCHES_H

#include "reports/drawing/partition_view.h"

typedef struct {
    int upper, lower; /* boxes */
} MtfViewPlace;

/* MtfViewPlace for the branches of all boxes at which more than `columns` begin that go on, each in the column that
 * is the shortest so far, in the order of arrows. Together with the arrows they make no circle. Free with
 * g_array_unref. */
GArray *mtf_view_branches(const MtfPartitionView *view, int columns);

#endif
