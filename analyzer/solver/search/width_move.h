// SPDX-License-Identifier: GPL-3.0-or-later
/* A large move: nearly all of a core's nodes are chosen anew, all at once and best beside the rest,
 * by eliminating one after the other under memory prices (Bertele and Brioschi, Nonserial Dynamic
 * Programming, 1972).
 *
 *     o--o--x--o        x = kept as it is, so that no table gets too large
 *     |  |  |  |        o = chosen anew: its best value for every choice of those that it shares an
 *     o--o--x--o            edge with when its turn comes, or that earlier turns brought to it */
#ifndef MTF_WIDTH_MOVE_H
#define MTF_WIDTH_MOVE_H

#include "analyzer/solver/reduce/layout_core.h"

/* Changes `values` (indexed as in the core) in place. The cost and the priced memory together
 * never rise; a row may overfill. price[r] is in cost per unit of memory. No table has more than
 * `most` entries; what is kept for that is drawn. With `others`, each node takes its own value or
 * the one there: the best that two choices make together. */
void mtf_width_move(const MtfCore *core, GRand *rand, const double *price, double most,
                    const int *others, int *values);

#endif
