// SPDX-License-Identifier: GPL-3.0-or-later
/* The algorithms of collective_switch.c simulated on the flow simulator, message by message, on one
 * switch or on switches within switches: a message leaves through the uplinks of all children that
 * it leaves, up to the switch that it turns at, and comes in through the downlinks on the other
 * side. Its latency is that of the level at which it turns. What sending a message costs its sender
 * is not simulated. */
#ifndef MTF_SWITCH_SIMULATOR_H
#define MTF_SWITCH_SIMULATOR_H

#include "cost/simulate/collective_simulator.h"

/* The i-th algorithm on switches that has a simulation; NULL beyond the last. */
const MtfSimulationRow *mtf_switch_simulation_row(int i);

#endif
