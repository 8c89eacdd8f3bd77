// SPDX-License-Identifier: GPL-3.0-or-later
/* Solves a core of small width by bucket elimination: tables of what is left of the nodes' values
 * within a cutoff (bucket_tuples.h), and labels with the memory of the rows that matter
 * (bucket_labels.h). At first those are the rows with a price; while the cheapest choice overfills
 * another one, that joins them. What leaves rows out bounds the core from below, and a choice that
 * fits them all is the optimum:
 *
 *     prices ──► terms ──► order ──► tuples ──► labels in rows {200} ──► choice ──► fits? the optimum
 *                                                  ▲                                │ no
 *                                                  └──────── row 731, too ──────────┘
 *
 * All is in whole numbers. This closes cores whose memory comes in large pieces, which no prices do:
 * the gap between the best choice and the best prices is none here. */
#ifndef MTF_BUCKET_ELIMINATION_H
#define MTF_BUCKET_ELIMINATION_H

#include "analyzer/solver/problem/search_control.h"
#include "analyzer/solver/reduce/layout_core.h"

typedef struct MtfElimination {
    int64_t cutoff;                  /* in core costs; choices that cost more are of no use */
    const double *prices;            /* [rows] core costs per unit of memory, at least 0 */
    int64_t work;                    /* values tried and labels combined, at most */
    const MtfSearchControl *control; /* or NULL */
    int64_t known; /* no choice costs less: a bound up to this one goes into no certificate */
} MtfElimination;

typedef enum {
    MTF_ELIMINATION_FOUND, /* the optimum */
    MTF_ELIMINATION_NONE,  /* no choice is within the cutoff: proven */
    MTF_ELIMINATION_OPEN,  /* the work is used up */
    MTF_ELIMINATION_WIDE,  /* no work would do: too wide, or costs too large */
} MtfEliminationStatus;

/* Fills `values`, indexed as in the core, where the optimum was found. `*bound`: no choice costs less
 * than this or, where that is less, than one more than the cutoff; -MTF_CORE_IMPOSSIBLE: unknown. The core's
 * certificate, where it has one, gets what proves it. */
MtfEliminationStatus mtf_bucket_eliminate(const MtfCore *core, const MtfElimination *elimination,
                                          int *values, int64_t *bound);

#endif
