// SPDX-License-Identifier: GPL-3.0-or-later
/* Threads that improve the best choice while the caller raises the bound: by moves of nearly all
 * nodes at once (O, width_move.h) and by searching neighbourhoods of dozens (o, neighbourhoods.h).
 *
 *     caller       begin ---- steps of the bound ---- end: the best of all
 *     improver 0     O o o o o o O o o o o o O o o o |
 *     improver 1     O o o o o o o o O o o o o o o o |
 *
 * They work on a core of their own, to which nothing is done while they do. */
#ifndef MTF_IMPROVERS_H
#define MTF_IMPROVERS_H

#include "analyzer/solver/reduce/layout_core.h"

typedef struct MtfImprovers MtfImprovers;

/* `count` improvers of choices of the core, which must outlive them. */
MtfImprovers *mtf_improvers_new(const MtfCore *core, int count, guint64 seed);
void mtf_improvers_free(MtfImprovers *improvers);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfImprovers, mtf_improvers_free)

/* What they begin with from now on: legal values, indexed as in the core, others that the bound made
 * (legal or not; NULL: none), and the rows' prices. */
void mtf_improvers_set(MtfImprovers *improvers, const int *values, const int *decoded,
                       const double *prices);

/* Each begins in a thread of its own and goes on until mtf_improvers_end. */
void mtf_improvers_begin(MtfImprovers *improvers);

/* Waits for all that began. Returns the cheapest values found, or NULL when nothing got cheaper;
 * owned by the improvers, until they begin again. */
const int *mtf_improvers_end(MtfImprovers *improvers);

#endif
