// SPDX-License-Identifier: GPL-3.0-or-later
/* Threads that improve the best choice by large neighbourhoods (neighbourhoods.h) while the caller
 * raises the bound:
 *
 *     caller       begin ---- steps of the bound ---- end: the best of all
 *     improver 0     o o o o o o o o o o o o o o o o |
 *     improver 1     o o o o o o o o o o o o o o o o |
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

/* What they begin with from now on: legal values, indexed as in the core, and the rows' prices. */
void mtf_improvers_set(MtfImprovers *improvers, const int *values, const double *prices);

/* Each begins in a thread of its own and goes on until mtf_improvers_end. */
void mtf_improvers_begin(MtfImprovers *improvers);

/* Instead of that: the first one works so much in the calling thread. */
void mtf_improvers_work(MtfImprovers *improvers, int64_t work);

/* Waits for all that began. Returns the cheapest values found, or NULL when nothing got cheaper;
 * owned by the improvers, until they begin again. */
const int *mtf_improvers_end(MtfImprovers *improvers);

#endif
