// SPDX-License-Identifier: GPL-3.0-or-later
/* The schedules of collective_schedule.h played on the link simulator, transfer by transfer. Where
 * a formula claims to be exact the two agree; where it is an estimate the play says how far off. */
#ifndef MTF_COLLECTIVE_SIMULATOR_H
#define MTF_COLLECTIVE_SIMULATOR_H

#include "cost/collectives/collective.h"

/* How well a formula describes its schedule. */
typedef enum {
    MTF_PLAY_EXACT,       /* to rounding, when all links and hops are alike */
    MTF_PLAY_EXACT_PLAIN, /* likewise on plain networks: without other groups on the links, of one
                             level */
    MTF_PLAY_ESTIMATE,    /* pipes that fill, phases that wait for the slowest */
} MtfPlayClaim;

/* A schedule that has a play. The play returns the seconds on a prepared network, or NAN where the
 * schedule does not apply. */
typedef struct {
    const char *name;   /* as the price tables spell it, no parameters in it */
    unsigned kinds;     /* bits of MtfCollectiveKind */
    bool switched;      /* for levels instead of a torus */
    MtfPlayClaim claim; /* of exactness of an all-to-all on a torus: for rings only */
    double (*play)(const MtfNetwork *network, const MtfCollective *collective);
} MtfPlayRow;

/* The i-th of them; NULL beyond the last. */
const MtfPlayRow *mtf_collective_play_row(int i);

/* Plays the schedule of that name and sets the seconds. False when it does not apply, or has no
 * play: Swing, Hamiltonian rings, halos on switches. What arithmetic and sending a message cost is
 * not played. */
bool mtf_collective_play(const MtfNetwork *network, const MtfCollective *collective,
                         const char *algorithm, double *seconds);

/* The bucket schedule (multiring_bucket_nminus1) without any barrier, between phases or between the
 * reduce-scatter and the allgather of an allreduce: each rank goes on as soon as it can, links
 * serve in the order in which messages come, and parts collide. What an implementation without
 * barriers or priorities pays. 0 where the schedule does not apply. */
double mtf_collective_play_unsynchronised(const MtfNetwork *network,
                                          const MtfCollective *collective);

#endif
