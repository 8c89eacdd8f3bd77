// SPDX-License-Identifier: GPL-3.0-or-later
/* How much the links of the machine carry in one step. All groups of a mesh axis do the same at the
 * same time, so on a torus the load of a link depends on its physical axis and its place there
 * alone, and is the same in both directions:
 *
 *     axis of 8 places, mesh axes rows (4 neighbours) and cols (every fourth place)
 *
 *         0 ── 1 ── 2 ── 3 ── 4 ── 5 ── 6 ── 7 ──(0)
 *           r    r    r    ·    r    r    r    ·         a line of 4, twice
 *           c    c    c    c    c    c    c    c         4 rings of 2 that pass every link
 *
 * What a rank puts on links (MtfTrafficRow.link_bytes) is spread over the physical axes of its
 * group in proportion to their bandwidth, and evenly over the hops of each. On switches the load is
 * what one child of a level sends through its port. */
#ifndef MTF_LINK_LOADS_H
#define MTF_LINK_LOADS_H

#include "reports/facts/step_facts.h"

typedef struct {
    int64_t size;
    bool wrap;        /* of switches never */
    double bandwidth; /* of a link (a port), one direction */
    double *bytes;    /* by place: the link from place i to i + 1, one direction; of switches one */
    double busiest;   /* the most of them */
} MtfLinkAxis;

typedef struct {
    bool switched;
    int axes;
    MtfLinkAxis axis[MTF_NETWORK_AXES_MAX];
    double step_seconds;
} MtfLinkLoads;

/* Bytes that each link of the machine carries in a step; the caller frees it. */
MtfLinkLoads *mtf_link_loads_new(const MtfStepFacts *facts);
void mtf_link_loads_free(MtfLinkLoads *loads);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLinkLoads, mtf_link_loads_free)

/* The share of the step that a link which carries `bytes` is busy, 0 to 1 and more where the network
 * is asked for more than it has. */
double mtf_link_utilisation(const MtfLinkLoads *loads, int axis, double bytes);

#endif
