// SPDX-License-Identifier: GPL-3.0-or-later
/* Does once more what a bucket elimination claims: that no choice of at most K is left, by the memory of a few
 * rows alone. Upon the tables (elimination_tables.h) each tuple gets labels, what the nodes below it may come
 * to together: terms, cost, and the use of those rows. Of two labels of a tuple one that is more in nothing
 * makes the other one needless; what cannot but overfill a row, or hold more than the slack, goes:
 *
 *     tuple (2, 0) of table a:   cost 17, use 30 5      cost 19, use 12 5
 *
 * Only if the last table keeps no label of at most K, no choice of at most K is left. */
#ifndef MTF_ELIMINATION_CHECK_H
#define MTF_ELIMINATION_CHECK_H

#include "analyzer/certificate/point_bound.h"

typedef struct MtfEliminationClaim {
    const GArray *order; /* int, living nodes, each once */
    const GArray *rows;  /* int, those whose memory counts */
    int64_t cutoff;      /* K */
} MtfEliminationClaim;

/* Whether the claim holds of the problem at a point. False with an error where it does not, where the order
 * is none, or where the tables grow beyond use. */
bool mtf_elimination_holds(const MtfPointBound *bound, const MtfCertifiedProblem *problem,
                           const MtfEliminationClaim *claim, GError **error);

#endif
