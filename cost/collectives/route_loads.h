// SPDX-License-Identifier: GPL-3.0-or-later
/* What each directed link of a network carries, and the busiest:
 *
 *     torus    a message takes its axes in order, each the shorter way:  (0,0) ─► (1,0) ─► (1,1)
 *     levels   it goes up to the innermost switch that both ranks are below, and down again: out of
 *              its sender and each child it leaves, into each child it enters, and its receiver */
#ifndef MTF_ROUTE_LOADS_H
#define MTF_ROUTE_LOADS_H

#include "cost/machine/network.h"

typedef struct {
    const MtfNetwork *network; /* not owned */
    double *amount;            /* [(rank * axes + axis) * 2 + 1 backward, or into it]: of levels the
                                  rank is the first of the child whose link it is */
    double route_seconds;      /* the latencies of the longest route */
} MtfRouteLoads;

/* One link, and how long it takes to carry what it has to. */
typedef struct {
    int64_t rank;
    int axis;
    bool second; /* backward, or into the child */
    double amount, seconds;
} MtfBusyLink;

/* Nothing on any link. Clear it after use; the network must outlive it. */
void mtf_route_loads_init(MtfRouteLoads *loads, const MtfNetwork *network);
void mtf_route_loads_clear(MtfRouteLoads *loads);

/* Sends `amount` from one rank to another. */
void mtf_route_loads_add(MtfRouteLoads *loads, int64_t from, int64_t to, double amount);

/* The link that takes longest, of several the first; seconds 0 where nothing was sent. */
MtfBusyLink mtf_route_loads_busiest(const MtfRouteLoads *loads);

#endif
