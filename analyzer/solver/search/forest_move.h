// SPDX-License-Identifier: GPL-3.0-or-later
/* A large move: a random forest of a core's nodes is chosen anew, all at once and best beside the
 * rest, by dynamic programming under memory prices.
 *
 *     o--o  x--o        x = kept as it is
 *     |     |  |        o = the forest: no cycle among them; each tree is solved leaves to root
 *     x--o  o  x
 */
#ifndef MTF_FOREST_MOVE_H
#define MTF_FOREST_MOVE_H

#include "analyzer/solver/reduce/layout_core.h"

/* Changes `values` (indexed as in the core) in place. The cost and the priced memory together
 * never rise; a row may overfill. price[r] is in cost per unit of memory. */
void mtf_forest_move(const MtfCore *core, GRand *rand, const double *price, int *values);

#endif
