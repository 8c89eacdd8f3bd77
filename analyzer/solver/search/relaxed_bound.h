// SPDX-License-Identifier: GPL-3.0-or-later
/* The bound of a core that is too wide to come to rest: of a copy in which only those of its rows count that
 * have a price, few of thousands. In the copy most nodes have no memory, so that it shrinks to half or less;
 * what is left is joined pair by pair (node_pairs.h) as far as there is room, since the gap of such cores
 * lies in cycles:
 *
 *     core      10072 nodes, 7131 rows      copy     5859 nodes, 9 rows ──join──► 4855 nodes
 *
 * What the copy's choices cost at least, those of the core do; its own may overfill rows of the core. */
#ifndef MTF_RELAXED_BOUND_H
#define MTF_RELAXED_BOUND_H

#include "analyzer/solver/bounds/dual_ascent.h"

typedef struct MtfRelaxedBound MtfRelaxedBound;

/* Of the dual's core as it is, which must outlive it unchanged; choices of at most `cutoff` count, and none is
 * known to cost less than `known`. */
MtfRelaxedBound *mtf_relaxed_bound_new(MtfDual *dual, int64_t cutoff, int64_t known,
                                       const MtfSearchControl *control);

/* Frees it, or NULL. Where it proved more than was known, the core's certificate says how. */
void mtf_relaxed_bound_free(MtfRelaxedBound *relaxed);

/* Some steps, and joining or shrinking the copy when that is due. Returns what no choice of the core that costs
 * at most `cutoff` costs less than, or one more than the cutoff where there is no such choice. */
int64_t mtf_relaxed_bound_raise(MtfRelaxedBound *relaxed, int64_t cutoff);

/* Whether it has come to rest with nothing more to join, or nothing is left of the copy. */
bool mtf_relaxed_bound_is_stuck(const MtfRelaxedBound *relaxed);

/* The copy's dual, with the prices of its rows; the values that the last step decoded, as values of the core,
 * and whether they are possible edge by edge. */
const MtfDual *mtf_relaxed_bound_dual(const MtfRelaxedBound *relaxed);
bool mtf_relaxed_bound_decode(const MtfRelaxedBound *relaxed, int *values);

#endif
