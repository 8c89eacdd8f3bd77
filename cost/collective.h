// SPDX-License-Identifier: GPL-3.0-or-later
/* The price of a collective: the seconds every schedule (algorithm) that applies would take on a
 * network, the cheapest of them, and a lower bound that no schedule can beat.
 *
 *     seconds = latencies of the hops in a row + bytes over the busiest link / its bandwidth
 *
 * Symbols in the formulas: n the places of an axis, N of the network, D the axes, B one link in one
 * direction, alpha one hop, S or V the payload of a rank (see layouts/collective_kind.h). */
#ifndef MTF_COLLECTIVE_H
#define MTF_COLLECTIVE_H

#include "cost/mesh_map.h"
#include "layouts/collective_kind.h"

typedef struct {
    MtfCollectiveKind kind;
    double bytes;
} MtfCollective;

typedef struct {
    const char *algorithm; /* static */
    double seconds;
} MtfCollectivePrice;

/* A lower bound on the seconds of any schedule. */
double mtf_collective_bound(const MtfNetwork *network, const MtfCollective *collective);

/* The cheapest schedule; "none" and 0 seconds on a network of one rank or without bytes. */
MtfCollectivePrice mtf_collective_best(const MtfNetwork *network, const MtfCollective *collective);

/* What the step-time model asks: the seconds of a collective over the mesh axes of a mask while all
 * groups of the mesh run it at once, `bytes` its payload per rank. A measured table of the machine
 * ("allreduce/2") goes before the formulas. */
double mtf_collective_seconds(const MtfMachine *machine, const MtfMeshMap *map,
                              MtfCollectiveKind kind, unsigned mesh_axes_mask, double bytes);

/* Bytes that one rank puts on links for that collective, on average over ranks, counting a byte
 * once for each hop it makes in the best case. */
double mtf_collective_link_bytes(const MtfMeshMap *map, MtfCollectiveKind kind,
                                 unsigned mesh_axes_mask, double bytes);

#endif
