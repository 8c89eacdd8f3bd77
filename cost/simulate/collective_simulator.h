// SPDX-License-Identifier: GPL-3.0-or-later
/* The algorithms of collective_algorithm.h simulated on the link simulator, transfer by transfer. Where
 * a formula claims to be exact the two agree; where it is an estimate the simulation says how far off. */
#ifndef MTF_COLLECTIVE_SIMULATOR_H
#define MTF_COLLECTIVE_SIMULATOR_H

#include "cost/collectives/collective.h"

/* How well a formula describes its algorithm. */
typedef enum {
    MTF_SIMULATION_EXACT,       /* to rounding, when all links and hops are alike */
    MTF_SIMULATION_EXACT_PLAIN, /* likewise on plain networks: without other groups on the links, of one
                                   level */
    MTF_SIMULATION_ESTIMATE, /* pipes that fill, phases that wait for the slowest */
} MtfSimulationClaim;

/* An algorithm that has a simulation. The simulation returns the seconds on a prepared network, or NAN where
 * the algorithm does not apply. */
typedef struct {
    const char *name;         /* as the price tables spell it, no parameters in it */
    unsigned kinds;           /* bits of MtfCollectiveKind */
    bool switched;            /* for levels instead of a torus */
    MtfSimulationClaim claim; /* of exactness of an all-to-all on a torus: for rings only */
    double (*simulate)(const MtfNetwork *network, const MtfCollective *collective);
} MtfSimulationRow;

/* The i-th of them; NULL beyond the last. */
const MtfSimulationRow *mtf_collective_simulation_row(int i);

/* Simulates the algorithm of that name and sets the seconds. False when it does not apply, or has no
 * simulation: Swing, Hamiltonian rings, halos on switches. What arithmetic and sending a message cost is
 * not simulated. */
bool mtf_collective_simulate(const MtfNetwork *network, const MtfCollective *collective,
                             const char *algorithm, double *seconds);

/* The bucket algorithm (multiring_bucket_nminus1) without any barrier, between phases or between the
 * reduce-scatter and the allgather of an allreduce: each rank goes on as soon as it can, links
 * serve in the order in which messages come, and parts collide. What an implementation without
 * barriers or priorities pays. 0 where the algorithm does not apply. */
double mtf_collective_simulate_unsynchronised(const MtfNetwork *network,
                                              const MtfCollective *collective);

#endif
