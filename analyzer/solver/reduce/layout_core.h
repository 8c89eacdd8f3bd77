// SPDX-License-Identifier: GPL-3.0-or-later
/* The core: a layout problem while it shrinks. Nodes lose values, merge and disappear; every step
 * leaves a record on the trail, so that a choice for what is left lifts back to the whole problem:
 *
 *     problem --shrink--> --shrink--> ... core --solve--> choice
 *        ^                                                  |
 *        +------------------- trail, backwards -------------+
 *
 * Memory is kept by rows, one for each maximal clique of the interval graph (the only time points
 * that can bind), and pieces: a node uses usage[value] in the rows first <= r < last. A node that
 * swallowed others has several pieces. The least usage of a piece is subtracted from its rows'
 * limits, so piece usages start at zero and `capacity` is what is left.
 *
 *     rows     0   1   2   3   4
 * capacity    50  20  35  20  60
 *     node 7      [=======)           piece {1, 3, usage {0, 4, 9}}
 *
 * Numbers are int64 and cannot overflow: when all costs (or usages) together exceed 2^60 they are
 * divided by a power of two and rounded down, which keeps every bound a bound; choices are always
 * priced again on the problem itself. Between nodes there is at most one edge.
 *
 * Equal costs, usages and matrices are one shared block, and each step on them is computed once
 * (shared_blocks.h): where a network repeats a layer, shrinking the other layers is looking up what
 * the first one came to. That is exact whatever the layers' ends or the memory in use. */
#ifndef MTF_LAYOUT_CORE_H
#define MTF_LAYOUT_CORE_H

#include "analyzer/solver/problem/certificate.h"
#include "analyzer/solver/problem/layout_problem.h"
#include "analyzer/solver/reduce/core_matrices.h"

/* What stands in a node, piece or edge points to a shared block; mtf_core_set_* replace it. */
typedef struct MtfCorePiece {
    int first, last;
    const int64_t *usage; /* [values] */
} MtfCorePiece;

typedef struct MtfCoreNode {
    bool alive;
    int values;
    const int64_t *cost; /* [values] */
    GArray *pieces;      /* MtfCorePiece, no two with the same rows */
    GArray *edges;       /* int, indices of its edges */
} MtfCoreNode;

typedef struct MtfCoreEdge {
    int a, b;            /* a = -1 when the edge is gone */
    const int64_t *cost; /* [values of a][values of b] */
} MtfCoreEdge;

typedef struct MtfCore {
    int node_count;
    MtfCoreNode *nodes; /* indexed as in the problem */
    GArray *edges;      /* MtfCoreEdge */
    int rows;
    int64_t *capacity; /* [rows] */
    int64_t *row_time; /* [rows] a time point of the problem */
    int64_t constant;  /* cost already decided */
    int cost_shift;    /* costs are those of the problem divided by 2^cost_shift, rounded down */
    int usage_shift;
    bool infeasible; /* proven: no choice of the problem is legal */
    GArray *trail;
    MtfShared *shared;           /* all costs, usages and matrices */
    MtfCertificate *certificate; /* where the steps on it are said, not owned; NULL: nowhere. Copies
                                  * and excerpts have none */
} MtfCore;

/* The core of a problem before any reduction; the caller frees it. `problem` must outlive it. */
MtfCore *mtf_core_new(const MtfLayoutProblem *problem);

/* A core of `count` nodes, dead ones, without edges and rows. */
MtfCore *mtf_core_new_empty(int count);
void mtf_core_free(MtfCore *core);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfCore, mtf_core_free)

/* The core as it is, with an empty trail: choices of the copy lift to those of the core, and edges
 * keep their indices. It shares the core's blocks. */
MtfCore *mtf_core_copy(const MtfCore *core);

/* The nodes v with keep[v], at their own indices, and the edges between them; the rows are the
 * core's. It shares the core's blocks, and its choices are not lifted. */
MtfCore *mtf_core_excerpt(const MtfCore *core, const bool *keep);

/* Adds an edge between two nodes that have none; `cost` is a shared block, which stays the
 * caller's, too. Returns its index. */
int mtf_core_join(MtfCore *core, int a, int b, const int64_t *cost);

/* Typed access; the index must be valid. */
MtfCoreEdge *mtf_core_edge(const MtfCore *core, int edge);

/* Goes on from edge `*edge`, or from -1 to the first, to the next one that is alive; false behind
 * the last. */
bool mtf_core_next_edge(const MtfCore *core, int *edge);

/* Entries of the edge's matrix. */
gsize mtf_core_edge_entries(const MtfCore *core, const MtfCoreEdge *edge);

/* The edge's other end. */
int mtf_core_other_end(const MtfCoreEdge *edge, int node);

/* The edge's cost for `node` at value p and its other end at value q. */
int64_t mtf_core_edge_cost(const MtfCore *core, const MtfCoreEdge *edge, int node, int p, int q);

/* The index of the edge between two nodes, or -1. */
int mtf_core_find_edge(const MtfCore *core, int u, int v);

/* Space for costs or usages that the two functions below take over once they are filled. */
int64_t *mtf_core_new_costs(gsize count);

/* Puts a shared block in the place of another; the core becomes an owner of it. */
void mtf_core_set_cost(MtfCore *core, int node, int64_t *cost);
void mtf_core_set_matrix(MtfCore *core, int edge, int64_t *matrix);
void mtf_core_set_usage(MtfCore *core, MtfCorePiece *piece, int64_t *usage);

/* An edge's matrix as one of its ends sees it. */
MtfCoreView mtf_core_view(const MtfCore *core, const MtfCoreEdge *edge, int node);

/* Keeps only the values p of `node` with keep[p]; without any left the core becomes infeasible. */
void mtf_core_keep_values(MtfCore *core, int node, const bool *keep);

/* The same from a list of the values to keep, in increasing order. */
void mtf_core_keep_listed(MtfCore *core, int node, const int16_t *from, int count);

/* Merges `follower` into `leader`: value p of the leader implies value map[p] of the follower.
 * Costs, pieces and edges of the follower move to the leader. */
void mtf_core_contract(MtfCore *core, int leader, int follower, const int16_t *map);

/* A core in which every node v takes the value of leader[v], a living node with leader[leader[v]] ==
 * leader[v] and as many values; v itself where it is free. Only leaders are left, which have the
 * costs, edges and pieces of all that follow them:
 *
 *     0 --A-- 1 --B-- 2 --A-- 3           0 --2 A + B'-- 1        leader 0 1 0 1
 *
 * `core` has an empty trail, is left as it is, and shares its blocks; choices of the result lift to
 * those of the core's problem. */
MtfCore *mtf_core_tie(const MtfCore *core, const int *leader);

/* Removes an edge whose entries were moved to its ends, so that they are all zero now, whatever its
 * matrix says. */
void mtf_core_drop_edge(MtfCore *core, int edge);

/* Removes a node without pieces and of at most two neighbours: its best value for each choice of
 * theirs is folded into the constant, the neighbour or the edge between the two neighbours. */
void mtf_core_eliminate(MtfCore *core, int node);

/* Turns a choice of values for the living nodes, indexed by node, into a choice for the problem. */
void mtf_core_lift(const MtfCore *core, const int *values, int *choice);

/* The same with the steps from number `from` down to `to` alone, of those on the trail: from values of
 * the core as it was after `from` steps to values of the core as it was after `to`. */
void mtf_core_lift_steps(const MtfCore *core, guint from, guint to, const int *values, int *choice);

/* The other way: the living nodes' values of a choice for the problem. False when the choice needs
 * a value that is gone; `values` is then unspecified. */
bool mtf_core_project(const MtfCore *core, const int *choice, int *values);

#endif
