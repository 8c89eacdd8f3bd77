// SPDX-License-Identifier: GPL-3.0-or-later
/* Raises the lower bound of a core: message passing for the costs, and a price for each memory row
 * that moves with the memory that the decoded values use there:
 *
 *     rows    . . . ! . . . . ! . .      ! = overfull in some decoded choice: the row gets a price
 *
 *     price_r += step_r  while the row is overfull,   price_r -= step_r  while it has room
 *
 * A step grows while its row keeps its side and halves when it changes it (resilient propagation,
 * Riedmiller and Braun 1993), so nothing depends on the scale of costs or memory. Every decoded
 * choice is a candidate answer; the caller sees them all. */
#ifndef MTF_DUAL_ASCENT_H
#define MTF_DUAL_ASCENT_H

#include "analyzer/solver/bounds/message_passing.h"
#include "analyzer/solver/problem/row_prices.h"
#include "analyzer/solver/problem/search_control.h"

typedef struct MtfDual MtfDual;

/* The core must outlive the ascent and stay unchanged, but for mtf_dual_shrink. */
MtfDual *mtf_dual_new(MtfCore *core);
void mtf_dual_free(MtfDual *dual);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfDual, mtf_dual_free)

/* Where the core repeats layers, goes on with a quotient of it (layer_quotient.h), whose steps take the
 * time of a few layers: values are those of the whole core, and the bound is -INFINITY as nothing
 * is proven. False when nothing repeats. */
bool mtf_dual_quotient(MtfDual *dual);

/* What the bound would come to if all copies of a layer were alike; a guess, while folded. */
double mtf_dual_guess(const MtfDual *dual);

/* Goes back to the whole core with the messages and the best prices of the quotient. */
void mtf_dual_expand(MtfDual *dual);

/* One step: a pass, a decoded choice, new prices. Fills `values` (indexed as in the core) and
 * returns whether they are possible edge by edge; memory may still be overfull. */
bool mtf_dual_step(MtfDual *dual, int *values);

/* The best bound so far, in core costs, as far as doubles can tell; how many steps ago it last rose
 * noticeably. */
double mtf_dual_bound(const MtfDual *dual);
int mtf_dual_stall(const MtfDual *dual);

/* What the best bounds prove, in whole numbers (exact_bound.h): no choice of the core costs less,
 * but for choices that earlier cutoffs excluded. -MTF_CORE_IMPOSSIBLE: nothing. */
int64_t mtf_dual_prove(MtfDual *dual);

/* The prices of the best bound, one for each row. Owned by the ascent. */
const double *mtf_dual_prices(const MtfDual *dual);

/* The prices of the best bound that are not zero, to carry over to another core. The caller frees them. */
MtfRowPrices *mtf_dual_row_prices(const MtfDual *dual);

/* Begins with these prices, each at the last row that is not later. */
void mtf_dual_set_prices(MtfDual *dual, const MtfRowPrices *prices);

/* Forbids values by probing (probing.h) at the prices of the best bound; returns how many. Shrink
 * afterwards. */
int mtf_dual_probe(MtfDual *dual, int64_t cutoff, const MtfSearchControl *control);

/* Forbids what cannot be below `cutoff`, writes the messages into the core, and shrinks it with
 * all exact steps; then goes on with the smaller core at the same prices. */
void mtf_dual_shrink(MtfDual *dual, int64_t cutoff, const MtfSearchControl *control);

/* The same, and joins pairs of nodes (node_pairs.h), for a better bound on a larger core; false when
 * there was nothing to join. */
bool mtf_dual_pair(MtfDual *dual, int64_t cutoff, double most_entries, int most_values,
                   const MtfSearchControl *control);

/* While folded: joins pairs that lie alike in repeated layers, at the quotient's messages, on the whole core, and goes
 * on with a quotient of that, whose bound is better. False where nothing is to be joined, or no longer repeats: it
 * goes on with the whole core. Nothing is pruned, so that layers stay alike. */
bool mtf_dual_pair_alike(MtfDual *dual, double most_entries, int most_values,
                         const MtfSearchControl *control);

/* An ascent on a copy of the core, `*core`, which the caller frees after it: shrunk as if no choice
 * that costs more than `cutoff` were of use, at the same prices; NULL, without a core, where more
 * than `most_entries` of its matrices would be left. The ascent itself stays as it is. Not while
 * folded. Where the core has a certificate, the copy has a part of it, the caller's, too. */
MtfDual *mtf_dual_copy_below(MtfDual *dual, int64_t cutoff, double most_entries, MtfCore **core,
                             const MtfSearchControl *control);

/* The same, whatever is left, where only the rows that have a price count: a bound of the copy is one of the
 * core, whose nodes outside of those rows have no memory, so that more of them go. */
MtfDual *mtf_dual_copy_relaxed(MtfDual *dual, int64_t cutoff, MtfCore **core,
                               const MtfSearchControl *control);

/* Messages of its own for the core as it is, which must outlive them, with the best bound's messages
 * and prices. Not while folded. */
MtfMessages *mtf_dual_messages(const MtfDual *dual);

/* The core it works on. */
const MtfCore *mtf_dual_core(const MtfDual *dual);

#endif
