// SPDX-License-Identifier: GPL-3.0-or-later
/* Threads that improve the best choice while the caller raises the bound: by moves of nearly all
 * nodes at once (O, width_move.h) and by searching neighbourhoods of dozens (o, neighbourhoods.h).
 *
 *     caller       begin ---- round ---- take, tell ---- round ---- take, tell ---- round ---- end
 *     improver 0     O o o o o o O o o o o o O o o o o O o o o o o O o o o o o O o o o o o O o |
 *     improver 1     O o o o o o o O o o o o o o O o o o o o o o O o o o o o o O o o o o o O o |
 *
 * They work on a core of their own, to which nothing is done while they do, and wait for nobody. */
#ifndef MTF_IMPROVERS_H
#define MTF_IMPROVERS_H

#include "analyzer/solver/reduce/layout_core.h"

typedef struct MtfImprovers MtfImprovers;

/* Begins `count` improvers, each in a thread of its own, of legal values indexed as in the core,
 * which must outlive them, at these prices of its rows. */
MtfImprovers *mtf_improvers_begin(const MtfCore *core, int count, guint64 seed, const int *values,
                                  const double *prices);

/* What they may go on from: legal values, where these are cheaper than their own, others that the bound
 * made (legal or not; NULL: none), and the rows' prices. */
void mtf_improvers_tell(MtfImprovers *improvers, const int *values, const int *decoded,
                        const double *prices);

/* Fills `values` with the cheapest they know, which are legal, where they found them since this was last
 * asked; false where they found nothing cheaper than what they were told. */
bool mtf_improvers_take(MtfImprovers *improvers, int *values);

/* Waits until each has ended what it is about. */
void mtf_improvers_end(MtfImprovers *improvers);

/* Ends and frees them. */
void mtf_improvers_free(MtfImprovers *improvers);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfImprovers, mtf_improvers_free)

#endif
