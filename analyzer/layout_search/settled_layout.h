// SPDX-License-Identifier: GPL-3.0-or-later
/* What a plan's layout has besides its placements: the order of its instructions, buckets for small exchanges,
 * algorithms of collectives, and the program that it is lowered to with these. */
#ifndef MTF_SETTLED_LAYOUT_H
#define MTF_SETTLED_LAYOUT_H

#include "analyzer/solver/problem/search_control.h"
#include "cost/price/price.h"

/* Both NULL: none. */
typedef struct {
    MtfLayout *layout;
    MtfProgram *program; /* of that layout */
} MtfSettledLayout;

void mtf_settled_layout_clear(MtfSettledLayout *settled);

typedef struct {
    int64_t memory_limit;            /* bytes of a device */
    const char *collectives;         /* as of mtf_layout_choose_algorithms; or NULL */
    int64_t bucket_bytes;            /* the one size that buckets may have; 0: any */
    const MtfSearchControl *control; /* or NULL */
} MtfSettling;

/* Gives a layout what a plan's has besides its placements: a better order of instructions where that lowers
 * the peak (as mtf_layout_improve_order says), buckets for small exchanges where they shorten the step, both (but an
 * order that makes it fit) where the search has time left, and algorithms of collectives. Returns what it is lowered
 * to then. */
MtfProgram *mtf_layout_settle(const MtfGraph *graph, MtfLayout *layout, const MtfPricer *pricer,
                              const MtfSettling *how);

#endif
