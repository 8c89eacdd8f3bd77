// SPDX-License-Identifier: GPL-3.0-or-later
/* Probing: lets a node take one value alone and passes messages on. A bound above the cutoff then
 * proves that no choice below it uses that value. Where the bound of a core no longer rises, this
 * closes gaps that would cost the integer program much longer. Doubles say where a bound rises that
 * far, whole numbers whether it did (exact_bound.h):
 *
 *     node v:   p0 | p1 | p2 | p3      bound with each alone: above, below, above, above the cutoff
 *               x    .    x    x         only p1 is left */
#ifndef MTF_PROBING_H
#define MTF_PROBING_H

#include "analyzer/solver/bounds/message_passing.h"
#include "analyzer/solver/problem/search_control.h"

/* Forbids in the core, exactly, values that no choice of at most `cutoff` can use, at the prices of
 * the messages, which must be those of the core, and whose bound is `bound`. Ends when a sweep over
 * all nodes forbids little, early where it begins so. Returns how many values it forbade; prune and
 * shrink afterwards. */
int mtf_probe(MtfMessages *messages, MtfCore *core, double bound, int64_t cutoff,
              const MtfSearchControl *control);

#endif
