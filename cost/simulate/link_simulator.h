// SPDX-License-Identifier: GPL-3.0-or-later
/* A torus simulated link by link. An algorithm is a set of transfers, each of some bytes over one
 * directed link, and of orders between them: a transfer becomes ready when all that it waits for
 * have been delivered. A link serves its transfers one at a time in the order in which they become
 * ready, by number among equals; it is busy for bytes / bandwidth and delivers one latency later.
 * So messages contend for links, and a message over several hops is stored and forwarded at each:
 *
 *     rank 0 ──link──► rank 1 ──link──► rank 2        transfer B waits for transfer A
 *           transfer A        transfer B
 *
 * A network of every stride-th place of an axis, or of two pieces of one axis, shares its links
 * with other groups. Then the algorithm is simulated by all groups at once on the links that there are,
 * each transfer stored and forwarded at every place between two members:
 *
 *     group 0   0 ─────────► 2 ─────────► 4          ring of 6, stride 2: both groups' transfers
 *     group 1         1 ─────────► 3 ─────────► 5    queue for the links 1 -> 2, 2 -> 3, …
 *
 * Nothing here knows a formula: the simulator is the formulas' second witness. */
#ifndef MTF_LINK_SIMULATOR_H
#define MTF_LINK_SIMULATOR_H

#include "cost/machine/network.h"

#include <glib.h>

typedef struct MtfLinkSimulator MtfLinkSimulator;

/* An empty algorithm on a torus of at most 2^20 ranks, which is copied. */
MtfLinkSimulator *mtf_link_simulator_new(const MtfNetwork *network);
void mtf_link_simulator_free(MtfLinkSimulator *simulator);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLinkSimulator, mtf_link_simulator_free)

/* Adds a transfer of `bytes` from `rank` one place forward or backward along `axis`; returns its
 * number. The link must exist (a line's ends have one). */
int mtf_link_simulator_send(MtfLinkSimulator *simulator, int64_t rank, int axis, bool forward,
                            double bytes);

/* Adds a mere point in time, delivered when all it waits for are. */
int mtf_link_simulator_join(MtfLinkSimulator *simulator);

/* Lets transfer `later` wait for `earlier`; a negative `earlier` means nothing. */
void mtf_link_simulator_order(MtfLinkSimulator *simulator, int earlier, int later);

/* Simulates the algorithm and returns the seconds until the last delivery. An order that runs in a
 * circle is our own mistake and aborts. */
double mtf_link_simulator_run(const MtfLinkSimulator *simulator);

/* The same algorithm backwards: every transfer over the opposite link, every order turned, and each
 * link serves in the reverse of the order in which it served, waiting for the next in that order: time
 * reversed, so it takes no longer. An allgather becomes a reduce-scatter. */
MtfLinkSimulator *mtf_link_simulator_reverse(const MtfLinkSimulator *simulator);

/* The rank one place on; -1 beyond the end of a line. */
int64_t mtf_network_neighbor(const MtfNetwork *network, int64_t rank, int axis, bool forward);

#endif
