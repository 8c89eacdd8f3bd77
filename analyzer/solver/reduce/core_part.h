// SPDX-License-Identifier: GPL-3.0-or-later
/* A part of a core beside the rest of a choice: some nodes are free, all others keep their values.
 *
 *     fixed --- fixed              costs of the edges to fixed nodes become costs of the node,
 *       |         |                what fixed nodes use is taken from the rows' capacity
 *     free ---- free --- fixed
 *
 * A part shares nothing with its core, so several threads may work on parts of one core at once. */
#ifndef MTF_CORE_PART_H
#define MTF_CORE_PART_H

#include "analyzer/solver/reduce/layout_core.h"

/* The part of `count` different living nodes of the core, which are its nodes 0, 1, ... in this order;
 * `values` is a choice of the core's (indexed as in it) and use[r] what that uses of each row. Its
 * cost is that of the free nodes and of the edges at them. */
MtfCore *mtf_core_part(const MtfCore *core, const int *nodes, int count, const int *values,
                       const int64_t *use);

#endif
