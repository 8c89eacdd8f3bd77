// SPDX-License-Identifier: GPL-3.0-or-later
/* Formula against simulation: trial number i draws a torus, a collective, a size and one of the algorithms
 * that have a simulation there, always the same for the same number. Tests judge some hundred trials,
 * `meshtf-plan simulate --random` tables any number. */
#ifndef MTF_COLLECTIVE_TRIAL_H
#define MTF_COLLECTIVE_TRIAL_H

#include "cost/simulate/collective_simulator.h"

typedef struct {
    MtfNetwork network;
    MtfCollective collective;
    const char *algorithm;
    MtfSimulationClaim claim;  /* EXACT or ESTIMATE */
    double formula, simulated; /* seconds */
} MtfCollectiveTrial;

/* Draws and simulates trial `number` of a seed. Levels are one to three switches deep, of at most 125
 * ranks. Tori have one to three axes and at most 400 ranks, each
 * axis a ring or a line, sizes from 2; payloads run from 16 bytes to 1 GiB. A third of the small
 * ones hold every 2nd to 4th place of an axis only, with the other groups at work on the same
 * links. */
MtfCollectiveTrial mtf_collective_trial(uint64_t seed, uint64_t number);

/* Whether other groups share the links. */
bool mtf_collective_trial_shares(const MtfCollectiveTrial *trial);

/* "allreduce shortest_bidir torus 8x4- 65536 B": one line that says what was simulated; a minus marks
 * a line, "4/2" every second place of 8. Free with g_free. */
char *mtf_collective_trial_text(const MtfCollectiveTrial *trial);

#endif
