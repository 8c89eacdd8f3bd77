// SPDX-License-Identifier: GPL-3.0-or-later
/* The resharding algebra: how to get one tensor from any placement to any other. A path is a short
 * list of reshard ops, each of them one local copy or one collective:
 *
 *     slice          replicated -> split d     each keeps its part; no traffic
 *     conceal        replicated -> partial     the first along the axis keeps its term, the others
 *                                              hold the reduction's neutral element; no traffic
 *     allreduce      partial -> replicated
 *     reduce-scatter partial -> split d
 *     allgather      split d -> replicated
 *     all-to-all     any splits -> any other splits, over a set of axes: each processor sends every
 *                    other exactly the box it lacks, from the nearest copy
 *     halo           split d -> the same, read with margins (margins.h), over the axes along which
 *                    processors lack some of them: each sends every other the box that it reads
 *
 * Splits nest major to minor in mesh order, so an axis can be sliced, gathered or scattered alone
 * only where it is the minor-most on its dimension; everything else is an all-to-all over the axes
 * concerned, which is always correct. Neighbouring axes of one source and one target change in one
 * call, as one axis would. Paths are found by Dijkstra over the placements between, weighing what
 * enters the links and nothing else, so the same placements always give the same path. */
#ifndef MTF_RESHARD_H
#define MTF_RESHARD_H

#include "layouts/graph/operation_table.h"
#include "layouts/placement/margins.h"
#include "layouts/placement/placement.h"
#include "layouts/placement/reshard_table.h"

typedef struct {
    MtfReshardKind kind;
    unsigned axes;          /* mesh axes that take part; 0 for local ops */
    MtfReduction reduction; /* of conceal, allreduce and reduce-scatter */
    MtfPlacement from, to;
    MtfReader reader; /* of a halo: whose windows reach over the edges */
    int64_t
        column; /* of an exchange of columns (sort_columns.h) for `reader`: places of each; else 0 */
} MtfReshardOp;

#define MTF_MAX_RESHARD_OPS (2 * MTF_MAX_MESH_AXES)

typedef struct {
    int n_ops;
    MtfReshardOp ops[MTF_MAX_RESHARD_OPS];
    double cost; /* elements entering links on the busiest processor, plus a little an op */
} MtfReshardPath;

/* The cheapest path between any two placements of a tensor of `shape`. Equal placements give no
 * ops. Never fails. */
void mtf_reshard_path(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                      const MtfPlacement *from, const MtfPlacement *to, MtfReshardPath *path);

/* A collective's payload on processor `rank` in elements: allreduce and reduce-scatter the
 * full input, allgather the gathered output, all-to-all the whole send buffer (what it keeps for
 * itself included), halo what it sends to others. 0 for local ops. */
int64_t mtf_reshard_payload(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                            const MtfReshardOp *op, int rank);

/* An upper bound of mtf_reshard_payload over all processors, in closed form (exact where sizes
 * divide). */
int64_t mtf_reshard_largest_payload(const MtfGraph *graph, const MtfMesh *mesh,
                                    const MtfShape *shape, const MtfReshardOp *op);

/* From one processor to another of its group, or to itself. */
typedef struct {
    int from, to;
} MtfRoute;

/* The elements of an exchange of columns that travel `route`, of the rows that both have. */
int64_t mtf_reshard_column_elements(const MtfGraph *graph, const MtfMesh *mesh,
                                    const MtfShape *shape, const MtfReshardOp *op, MtfRoute route);

/* The box of an all-to-all or a halo that travels `route`: one range a dimension of `shape`, in global
 * indexes. Returns its elements, 0 when nothing is sent. */
int64_t mtf_reshard_box(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                        const MtfReshardOp *op, MtfRoute route, MtfRange *box);

#endif
