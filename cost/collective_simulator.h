// SPDX-License-Identifier: GPL-3.0-or-later
/* The schedules of collective_schedule.h played on the link simulator, transfer by transfer. Where
 * a formula claims to be exact the two agree; where it is an estimate the play says how far off. */
#ifndef MTF_COLLECTIVE_SIMULATOR_H
#define MTF_COLLECTIVE_SIMULATOR_H

#include "cost/collective.h"

/* How well a formula describes its schedule. */
typedef enum {
    MTF_PLAY_EXACT,       /* to rounding, when all links and hops are alike */
    MTF_PLAY_EXACT_ALONE, /* likewise, unless other groups share its links */
    MTF_PLAY_ESTIMATE,    /* pipes that fill, phases that wait for the slowest */
} MtfPlayClaim;

/* Plays the schedule of that name (as the price tables spell it, no parameters in it) and sets the
 * seconds. False when it does not apply, or has no play: schedules on switches, Swing, Hamiltonian
 * rings. */
bool mtf_collective_play(const MtfNetwork *network, const MtfCollective *collective,
                         const char *algorithm, double *seconds);

/* The i-th schedule that has a play, with its kinds (bits) and claim; NULL beyond the last. A claim
 * of exactness of an all-to-all holds for rings only. */
const char *mtf_collective_play_name(int i, unsigned *kinds, MtfPlayClaim *claim);

/* The bucket schedule (multiring_bucket_nminus1) without any barrier, between phases or between the
 * reduce-scatter and the allgather of an allreduce: each rank goes on as soon as it can, links
 * serve in the order in which messages come, and parts collide. What an implementation without
 * barriers or priorities pays. 0 where the schedule does not apply. */
double mtf_collective_play_unsynchronised(const MtfNetwork *network,
                                          const MtfCollective *collective);

#endif
