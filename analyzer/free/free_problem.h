// SPDX-License-Identifier: GPL-3.0-or-later
/* The free layouts of a training graph as a layout problem.
 *
 *     node of an operation   one strategy each way to run it; costs its kernel
 *     node of a tensor       one strategy each placement it may be kept in; costs nothing
 *     node of a copy         one strategy each placement that a phase may fetch it from
 *     edge                   the price of the cheapest resharding between what one end leaves and
 *                            what the other end wants
 *
 *        producer ──reshard──► tensor ──reshard──► copy ──reshard──► consumer
 *           │                    │                    └────reshard──► consumer
 *           │                    └─────reshard──► only consumer of another phase
 *           └────────reshard────────► only consumer            (tensor kept as produced)
 *
 * Variables, inputs and results with several consumers have a node; other results are kept as they
 * are produced and resharded by their consumer. Where several consumers belong to one phase, and
 * others to another, the phase has a gathered copy (layout.h), which is paid once and serves them; in
 * the kept placement it costs nothing. The next value of a variable is resharded into the
 * variable's placement; where the kernel can write it in place that is free. Every term is the
 * price of instructions that lowering emits for that choice, so the value of a choice is the price
 * of its program.
 *
 * What lies in the host's memory takes none of the device's, and no edge reshards it.
 *
 * With micro-batches a term counts as often as a step runs its instructions.
 *
 * Memory: a tensor's slice from its producer to its last consumer (operations are the time points),
 * variables and optimizer state always. In the last phase that reads it the copy stands for it.
 * Other gathered copies, copies made while resharding and scratch are left out, so the limit in the
 * problem is a relaxation: its bounds hold, and a choice is checked by packing (left_out.h). */
#ifndef MTF_FREE_PROBLEM_H
#define MTF_FREE_PROBLEM_H

#include "analyzer/free/known_paths.h"
#include "analyzer/free/strategies.h"
#include "analyzer/solver/problem/layout_problem.h"
#include "cost/price/price.h"
#include "layouts/placement/layout.h"

typedef struct MtfFreeProblem MtfFreeProblem;

/* Builds the problem. Graph, mesh and pricer must outlive it. Fails when pins leave an operation
 * without a strategy, naming it. */
MtfFreeProblem *mtf_free_problem_new(const MtfGraph *graph, const MtfMesh *mesh,
                                     const MtfPricer *pricer, const MtfPin *pins, int n_pins,
                                     GError **error);

/* The same without pins, for one of several graphs on the mesh, laid alike: prices of reshardings are taken
 * from what the others found, and added to it. NULL where an operation has no strategy. */
MtfFreeProblem *mtf_free_problem_new_sharing(const MtfGraph *graph, const MtfMesh *mesh,
                                             const MtfPricer *pricer, MtfKnownPaths *paths);
void mtf_free_problem_free(MtfFreeProblem *problem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfFreeProblem, mtf_free_problem_free)

/* The layout problem, without a limit; owned by `problem`. */
const MtfLayoutProblem *mtf_free_problem_get(const MtfFreeProblem *problem);

/* What an edge stands for where its ends take such strategies. */
typedef struct {
    int kind; /* edges of one kind move alike */
    int tensor;
    const MtfPlacement *from, *to;
} MtfFreeMove;
MtfFreeMove mtf_free_problem_move(const MtfFreeProblem *problem, int edge, int from, int to);

/* What it was built for. */
const MtfGraph *mtf_free_problem_graph(const MtfFreeProblem *problem);
const MtfMesh *mtf_free_problem_mesh(const MtfFreeProblem *problem);
const MtfPricer *mtf_free_problem_pricer(const MtfFreeProblem *problem);

/* Says how its layouts are run: what a pipeline asks of them; nothing, unless this is called. */
void mtf_free_problem_set_stage(MtfFreeProblem *problem, const MtfStageExecution *stage);

/* The layout of a choice of strategies. */
MtfLayout *mtf_free_problem_layout(const MtfFreeProblem *problem, const int *choice);

/* The choice nearest to a layout (of rules, say); false when one of its strategies or kept
 * placements is not among the problem's. */
bool mtf_free_problem_choice(const MtfFreeProblem *problem, const MtfLayout *layout, int *choice);

/* What a node stands for: an operation (>= 0) with its strategies, else a tensor, or a gathered copy
 * of it. */
int mtf_free_problem_node_operation(const MtfFreeProblem *problem, int node);
int mtf_free_problem_node_tensor(const MtfFreeProblem *problem, int node);

/* The node of a tensor, or -1 when it has none. */
int mtf_free_problem_tensor_node(const MtfFreeProblem *problem, int tensor);

/* The number of `placement` among a tensor node's strategies, or -1. */
int mtf_free_problem_find_placement(const MtfFreeProblem *problem, int node,
                                    const MtfPlacement *placement);

/* Whether the strategies of two nodes of a kind are the same, in the same order. */
bool mtf_free_problem_nodes_alike(const MtfFreeProblem *problem, int a, int b);

/* The name of the operation or tensor that a node stands for, "TENSOR@PHASE" of a copy; owned by
 * the problem. */
const char *mtf_free_problem_node_name(const MtfFreeProblem *problem, int node);

/* The first node of that name (operations come first); -1 when there is none. */
int mtf_free_problem_find_node(const MtfFreeProblem *problem, const char *name);

/* A node's strategy as text, "rows=batch cols=duplicated"; free with g_free. */
char *mtf_free_problem_strategy_format(const MtfFreeProblem *problem, int node, int strategy);

#endif
