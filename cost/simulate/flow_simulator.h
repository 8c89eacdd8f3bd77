// SPDX-License-Identifier: GPL-3.0-or-later
/* Switches simulated flow by flow. A message is a flow of bytes through the links on its way, all at
 * the same time, since switches pass on what comes in; flows that meet on a link share it fairly:
 *
 *     a ──up──► ( switch ) ──down──► c        both flows get half of c's downlink,
 *     b ──up──►     "      ──down──►  "       and use half of their uplinks
 *
 * Rates are max-min fair and change whenever a flow begins or ends. A flow is delivered one latency
 * after its last byte was sent, and one that waits for others begins when they have been delivered.
 * Nothing here knows a formula. */
#ifndef MTF_FLOW_SIMULATOR_H
#define MTF_FLOW_SIMULATOR_H

#include <glib.h>
#include <stdint.h>

#define MTF_FLOW_LINKS_MAX 32

typedef struct MtfFlowSimulator MtfFlowSimulator;

/* A network without links; the caller frees it. */
MtfFlowSimulator *mtf_flow_simulator_new(void);
void mtf_flow_simulator_free(MtfFlowSimulator *simulator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfFlowSimulator, mtf_flow_simulator_free)

/* Adds a link of `bandwidth` bytes a second in each direction; returns the number of one direction,
 * the other's is one more. */
int mtf_flow_simulator_link(MtfFlowSimulator *simulator, double bandwidth);

/* Adds a flow through at most MTF_FLOW_LINKS_MAX links; returns its number. Without links it is a
 * mere point in time. */
int mtf_flow_simulator_send(MtfFlowSimulator *simulator, double bytes, double latency,
                            const int *links, int n_links);

/* Lets flow `later` wait for `earlier`; a negative `earlier` means nothing. */
void mtf_flow_simulator_order(MtfFlowSimulator *simulator, int earlier, int later);

/* Simulates the flows and returns the seconds until the last delivery. */
double mtf_flow_simulator_run(const MtfFlowSimulator *simulator);

/* The same with every flow and every order turned round: an allgather becomes a reduce-scatter. */
MtfFlowSimulator *mtf_flow_simulator_reverse(const MtfFlowSimulator *simulator);

#endif
