// SPDX-License-Identifier: GPL-3.0-or-later
/* In which order the nodes of a core are eliminated, and what each leaves behind. A bucket (Dechter,
 * Artificial Intelligence 113, 1999) belongs to a node: its scope are the neighbours that are still
 * there when the node goes, which are neighbours of one another from then on:
 *
 *     a - b - c        bucket of b: scope {c, a}      parent: the bucket of the first of its scope
 *     |       |        bucket of a: scope {d, c}        b ──► a ──► c ──► d
 *     +-- d --+        bucket of c: scope {d}
 *
 * Buckets stand in the order of elimination; each but the last has one later bucket for a parent, also
 * where the core falls into several components, so they are one tree. */
#ifndef MTF_ELIMINATION_TREE_H
#define MTF_ELIMINATION_TREE_H

#include "analyzer/solver/reduce/layout_core.h"

typedef struct MtfBucket {
    int node;
    int parent;       /* bucket; -1: of the last one */
    GArray *scope;    /* int, nodes, those that go last first */
    GArray *children; /* int, buckets, ascending */
} MtfBucket;

typedef struct MtfEliminationTree {
    int count; /* of living nodes */
    MtfBucket *buckets;
    int *position; /* [nodes] the bucket of a node; -1: not alive */
} MtfEliminationTree;

/* The order that fills in the fewest edges from step to step (min-fill), of equal ones that with the
 * fewest values. NULL where a scope has more than `most_width` nodes, or the core more than 2000. The
 * caller frees it; the core must outlive it unchanged. */
MtfEliminationTree *mtf_elimination_tree_new(const MtfCore *core, int most_width);
void mtf_elimination_tree_free(MtfEliminationTree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfEliminationTree, mtf_elimination_tree_free)

#endif
