// SPDX-License-Identifier: GPL-3.0-or-later
/* The layout problem: pick one strategy for each node so that the sum of node and edge costs is
 * least and the memory in use never exceeds the limit at any time point.
 *
 *     minimise   sum_v cost_v[s_v]  +  sum_(u,v) cost_uv[s_u, s_v]
 *     subject to sum over nodes v with start_v <= t < end_v of usage_v[s_v]  <=  limit  for all t
 *
 *        node 0          edge (0,1)          node 1
 *      cost usage      | 0     7 |         cost usage        time ->
 *   s=0  15   10   ----| 3     0 |----  s=0  55   25         0 [=====)
 *   s=1  20    5       | 10^18 2 |      s=1  65   20         1    [=====)
 *   s=2   1    9
 *
 * Several edges may join one pair; all of them are paid. A cost of 10^18 or more is a flag,
 * "impossible", and never enters a sum. Totals are 128-bit. The same shape as the problem of the
 * ASPLOS/EuroSys 2025 contest on intra-operator parallelism (IOPDDL). */
#ifndef MTF_LAYOUT_PROBLEM_H
#define MTF_LAYOUT_PROBLEM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MTF_IMPOSSIBLE INT64_C(1000000000000000000)
#define MTF_NO_LIMIT INT64_MAX
#define MTF_LAYOUT_MAX_COST (INT64_C(1) << 53)
#define MTF_LAYOUT_MAX_STRATEGIES 32767

__extension__ typedef __int128 MtfInt128;

typedef struct MtfLayoutProblem MtfLayoutProblem;

/* Views into the problem; valid as long as it. */
typedef struct MtfLayoutNode {
    int64_t start, end; /* in memory for start <= t < end; start == end uses none */
    int strategies;
    const int64_t *costs;  /* [strategies]; MTF_IMPOSSIBLE is the flag */
    const int64_t *usages; /* [strategies] */
} MtfLayoutNode;

typedef struct MtfLayoutEdge {
    int from, to;
    const int64_t *costs; /* [strategies of from][strategies of to], row major */
} MtfLayoutEdge;

/* What a choice of strategies costs. */
typedef struct MtfLayoutValue {
    MtfInt128 cost;    /* without the impossible terms */
    int impossible;    /* how many impossible terms it has */
    MtfInt128 peak;    /* most memory in use at any time; 0 when no node has an interval */
    int64_t peak_time; /* the first time point of that peak */
} MtfLayoutValue;

/* An empty problem without a limit. `name` is copied. */
MtfLayoutProblem *mtf_layout_problem_new(const char *name);
void mtf_layout_problem_free(MtfLayoutProblem *problem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLayoutProblem, mtf_layout_problem_free)

/* Adds a node of at least one strategy and returns its index, counted from 0; arrays are copied.
 * Costs of MTF_IMPOSSIBLE and more are flagged; others are at most 2^53 in size, usages between 0
 * and 2^53, start <= end (these are asserted: files are checked by the reader). */
int mtf_layout_problem_add_node(MtfLayoutProblem *problem, MtfLayoutNode node);

/* Adds an edge between two different nodes and returns its index; the matrix is copied. Edges of
 * equal matrices share one, and their `costs` are the same pointer. */
int mtf_layout_problem_add_edge(MtfLayoutProblem *problem, MtfLayoutEdge edge);

/* Adds an edge with the matrix of an edge that is there already, whose ends have as many strategies
 * as the new one's; costs no time that grows with the matrix. */
int mtf_layout_problem_repeat_edge(MtfLayoutProblem *problem, int edge, int from, int to);

/* Limits the memory at every time point; MTF_NO_LIMIT takes the limit away. */
void mtf_layout_problem_set_limit(MtfLayoutProblem *problem, int64_t limit);

/* A copy with a limit of its own, which costs no time that grows with the matrices. Of one problem
 * several may be made and freed at once. */
MtfLayoutProblem *mtf_layout_problem_copy(const MtfLayoutProblem *problem);

/* A copy for nodes and edges to be added to, whatever else is done with the problem, which must outlive it. */
MtfLayoutProblem *mtf_layout_problem_extend(const MtfLayoutProblem *problem);

/* A copy without a limit where all that is possible costs nothing; edges that forbid nothing are left out. */
MtfLayoutProblem *mtf_layout_problem_without_costs(const MtfLayoutProblem *problem);

/* A copy in which the strategies s of `node` with forbidden[s] are impossible. */
MtfLayoutProblem *mtf_layout_problem_forbid(const MtfLayoutProblem *problem, int node,
                                            const bool *forbidden);

/* Typed access; indexes must be valid, and pointers stay valid until something is added. */
const char *mtf_layout_problem_name(const MtfLayoutProblem *problem);
int64_t mtf_layout_problem_limit(const MtfLayoutProblem *problem);
int mtf_layout_problem_node_count(const MtfLayoutProblem *problem);
int mtf_layout_problem_edge_count(const MtfLayoutProblem *problem);
const MtfLayoutNode *mtf_layout_problem_node(const MtfLayoutProblem *problem, int index);
const MtfLayoutEdge *mtf_layout_problem_edge(const MtfLayoutProblem *problem, int index);

/* Prices a choice, one strategy for each node, each in range. */
MtfLayoutValue mtf_layout_problem_evaluate(const MtfLayoutProblem *problem, const int *choice);

/* Whether a value is one of a legal choice: nothing impossible and the peak within the limit. */
bool mtf_layout_problem_allows(const MtfLayoutProblem *problem, const MtfLayoutValue *value);

/* The number in decimal digits; free with g_free. */
char *mtf_int128_format(MtfInt128 value);

#endif
