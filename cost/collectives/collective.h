// SPDX-License-Identifier: GPL-3.0-or-later
/* The price of a collective: the seconds every algorithm that applies would take on a
 * network, the cheapest of them, and a lower bound that no algorithm can beat.
 *
 *     seconds = latencies of the hops in a row + bytes over the busiest link / its bandwidth
 *
 * Symbols in the formulas: n the places of an axis, N of the network, D the axes, B one link in one
 * direction, alpha one hop, S or V the payload of a rank (see cost/machine/collective_kind.h). */
#ifndef MTF_COLLECTIVE_H
#define MTF_COLLECTIVE_H

#include "cost/machine/collective_kind.h"
#include "cost/machine/mesh_map.h"

/* A collective on a network. Zeros are the usual case everywhere but in kind and bytes. */
typedef struct {
    MtfCollectiveKind kind;
    double bytes;
    int64_t segments; /* parts a pipelined algorithm cuts its payload in; 0: as many as are best */
    int64_t stride;   /* the group holds every stride-th place of one axis, and so do the others */
    int64_t shift;    /* permute: rank r sends to r + shift */
    int64_t from, to; /* broadcast's root; p2p's ends, the farthest from `from` when equal */
    int faces;        /* halo: bytes of each axis' face; axes beyond them take `bytes` */
    double face[MTF_NETWORK_AXES_MAX];
} MtfCollective;

#define MTF_ALGORITHM_MAX 48

typedef struct {
    char algorithm[MTF_ALGORITHM_MAX];
    bool idealised; /* no algorithm to choose: an idealisation, or a second name of another */
    double seconds;
} MtfCollectivePrice;

/* A lower bound on the seconds of any algorithm. */
double mtf_collective_bound(const MtfNetwork *network, const MtfCollective *collective);

/* The cheapest algorithm; "none" and 0 seconds on a network of one rank or without bytes. */
MtfCollectivePrice mtf_collective_best(const MtfNetwork *network, const MtfCollective *collective);

/* Every algorithm that applies, the cheapest first, as an array of MtfCollectivePrice to be freed by
 * g_array_unref. Idealised prices are left out when they are below the cheapest real one. */
GArray *mtf_collective_prices(const MtfNetwork *network, const MtfCollective *collective);

/* The price of the algorithm of that name, with or without hyphens and underscores; a number at its
 * end sets the segments ("line_reduce_bcast_k128") or the stride ("strided_s2"), one in front the
 * shift ("shift2 single path"), and these are written into `collective`. Fails when there is no
 * such algorithm or it does not apply. */
bool mtf_collective_named(const MtfNetwork *network, MtfCollective *collective, const char *name,
                          MtfCollectivePrice *price, GError **error);

/* What the step-time model asks: the seconds of a collective over the mesh axes of a mask while all
 * groups of the mesh run it at once, `bytes` its payload per rank. Measured tables of the
 * machine ("allreduce/2") go before the formulas (measured_collective.h). */
double mtf_collective_seconds(const MtfMachine *machine, const MtfMeshMap *map,
                              MtfCollectiveKind kind, unsigned mesh_axes_mask, double bytes);

/* The same where every rank sends to the one `shift` places on; mtf_collective_seconds takes 1. */
double mtf_permute_seconds(const MtfMachine *machine, const MtfMeshMap *map,
                           unsigned mesh_axes_mask, double bytes, int64_t shift);

/* Bytes that one rank puts on links for that collective, on average over ranks, counting a byte
 * once for each hop it makes in the best case. */
double mtf_collective_link_bytes(const MtfMeshMap *map, MtfCollectiveKind kind,
                                 unsigned mesh_axes_mask, double bytes);

#endif
