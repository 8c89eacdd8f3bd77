// SPDX-License-Identifier: GPL-3.0-or-later
/* A training run passed from hand to hand: each link trains some steps on its own number of ranks
 * under its own layout, from the checkpoint of the link before it. Its losses must be those of one
 * undisturbed run.
 *
 *     1 rank   ───────────────────────────────────────────────►   losses 1 … 12
 *     chain    rows:2 ──► all:3 ──► rows:2;cols:3 ──► all:1        losses 1 … 12 */
#ifndef MTF_TESTS_RESUME_CHAIN_H
#define MTF_TESTS_RESUME_CHAIN_H

#include "tests/support/cases/training_plan.h"

typedef struct {
    const char *mesh, *rules; /* as in MtfTrainingPlan */
    guint32 seed;
} MtfChainLink;

typedef struct {
    const char *graph, *sizes;
    MtfDtype dtype;
    int n_links;
    const MtfChainLink *links;
    int steps;  /* of each link */
    bool exact; /* the undisturbed run has the first link's layout, and losses are equal to the bit
                   instead of to 1e-10 (float64) or 1e-4 (float32) */
} MtfChain;

/* Collective over MPI_COMM_WORLD, whose first ranks do the work; says with mtf_expect which loss
 * differs. Links with more processors than there are ranks are left out. */
void mtf_check_chain(const MtfChain *chain);

#endif
