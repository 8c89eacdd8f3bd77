// SPDX-License-Identifier: GPL-3.0-or-later
/* Joining two neighbours into one node whose values are the possible pairs of theirs. That makes a
 * core larger and its bound better: messages see nothing of a cycle, and a pair that is part of
 * triangles and squares makes them shorter.
 *
 *     a ----- b             ab       values of ab: the possible (p, q)
 *      \     /       ->      |
 *       \   /                |
 *         c                  c                                       */
#ifndef MTF_NODE_PAIRS_H
#define MTF_NODE_PAIRS_H

#include "analyzer/solver/reduce/layout_core.h"

/* Joins pairs of neighbours of at most `most_values` values together, first those whose triangles, each
 * alone, would raise the bound most for what it costs, then those on most such cycles and of fewest
 * values, each node once, while all matrices together have at most `most_entries`. With leaders (of
 * mtf_layer_leaders) pairs that lie alike in repeated layers are joined all or none, and only those of which a
 * triangle says that it pays: layers stay alike. Every choice keeps its cost. Returns how many pairs it joined. */
int mtf_core_pair_nodes(MtfCore *core, const int *leader, double most_entries, int most_values);

#endif
