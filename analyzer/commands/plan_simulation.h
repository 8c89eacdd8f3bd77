// SPDX-License-Identifier: GPL-3.0-or-later
/* A plan's collectives simulated link by link, each beside its formula: every kind, set of mesh axes
 * and payload of a step once, on the network of one group as the plan's mapping lays it (a group
 * that holds every s-th place of a ring has links of 1 / s of the bandwidth, since s groups share
 * them).
 *
 * Of the algorithms that have a simulation the cheapest is simulated, mostly the one that the price chose,
 * and set beside its own formula; on switches nothing is. Both are of the wires alone: the price
 * also counts adding up what arrives, and what sending a message costs its sender. */
#ifndef MTF_PLAN_SIMULATION_H
#define MTF_PLAN_SIMULATION_H

#include "cost/price/price.h"
#include "cost/simulate/collective_simulator.h"

typedef struct {
    MtfCollectiveKind kind;
    unsigned axes; /* of the mesh */
    double bytes, calls;
    char chosen[MTF_ALGORITHM_MAX]; /* by the price; "measured" where a table says the seconds */
    char simulated_algorithm[MTF_ALGORITHM_MAX]; /* "" where nothing was */
    double seconds;                              /* that the price says of one call */
    double formula, simulated; /* of one call under the simulated algorithm; NAN where none was */
} MtfPlanSimulationRow;

/* The rows of a program, as an array of MtfPlanSimulationRow to be freed by g_array_unref, the costliest
 * first. */
GArray *mtf_plan_simulate(const MtfPricer *pricer, const MtfProgram *program);

#endif
