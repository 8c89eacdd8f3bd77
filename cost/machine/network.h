// SPDX-License-Identifier: GPL-3.0-or-later
/* The network as prices see it: a whole machine, a slice of one, or the part that one group of
 * ranks may use. Two families share one description:
 *
 *     torus   axes of a grid; an axis is a closed ring (wrap) or a line; `bandwidth` is one link
 *             in one direction, `latency` one hop. An axis of two places is a line; with wrap its
 *             link is doubled.
 *     levels  switches within switches, the outermost first (the innermost counts fastest);
 *             `bandwidth` is what one child of that level sends in one direction (a device into
 *             the node's switch, a node into the leaf), `latency` one message through it.
 *
 * Ranks are numbered row-major, last axis fastest. */
#ifndef MTF_NETWORK_H
#define MTF_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#define MTF_NETWORK_AXES_MAX 16

typedef struct {
    int64_t size;
    bool wrap;
    int link; /* axes with the same number share their links and never work at once */
    double bandwidth;
    double latency;
    /* Of an axis that is every stride-th place of a longer one, whose other places belong to groups
     * that work at the same time: bandwidth is that of a link divided by the stride, latency that
     * of a hop times it. 0 and 1: every place. */
    int64_t stride;
    int64_t places; /* of the longer axis; 0: size */
    bool closed;    /* the longer axis is a ring */
    double pair; /* of a level that is a mesh: the slowest link between two children; 0: a switch.
                    `bandwidth` is then that of a child's links to all others together */
    bool undivided; /* a slice of more than one device holds all places: the chiplets of a chip */
} MtfNetworkAxis;

typedef struct {
    bool switched; /* levels instead of axes */
    int axes;
    MtfNetworkAxis axis[MTF_NETWORK_AXES_MAX];
    double message_seconds;         /* o: what sending one message costs its sender */
    double reduce_seconds_per_byte; /* gamma: what adding one received byte costs */
} MtfNetwork;

/* The number of ranks: the product of the sizes. */
int64_t mtf_network_ranks(const MtfNetwork *network);

/* What one child of a mesh sends to the others of a group that has not all of them. */
double mtf_network_links(const MtfNetworkAxis *level);

/* Removes the axes of size 1. */
void mtf_network_drop_trivial(MtfNetwork *network);

/* "torus 4x4x2, axis 0 wraps", "switches 4x8"; free with g_free. */
char *mtf_network_format(const MtfNetwork *slice);

#endif
