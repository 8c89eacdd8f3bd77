// SPDX-License-Identifier: GPL-3.0-or-later
/* One way to run one operation: for each mesh axis, what the axis does there.
 *
 *     index i    the axis splits index i of the operation's iteration space
 *     duplicated every processor along the axis does the same work
 *     partial k  input k is partial by sum and stays so: the operation is linear in it. In a joint
 *                sum all inputs are partial, and k is 0.
 *
 * The placements that the inputs must have and that the outputs get follow from the strategy and
 * the operation's row alone. Where an index is a window's, inputs that have its other dimension are
 * split along that and read with margins (margins.h); where inputs are joined along it, each is split
 * along its own dimension and read likewise. */
#ifndef MTF_STRATEGY_H
#define MTF_STRATEGY_H

#include "layouts/graph/operation_table.h"
#include "layouts/placement/placement.h"

enum { MTF_DUPLICATED = -1, MTF_PARTIAL_INPUT = -2 }; /* partial k is MTF_PARTIAL_INPUT - k */

typedef struct {
    int8_t axis[MTF_MAX_MESH_AXES]; /* axes beyond the mesh's are MTF_DUPLICATED */
} MtfStrategy;

/* The strategy in which all axes do the same work, and whether two are the same over all axes. */
MtfStrategy mtf_strategy_duplicated(void);
bool mtf_strategy_equal(const MtfStrategy *a, const MtfStrategy *b);

/* The placement input `k` must have, and the one output `k` gets. */
MtfPlacement mtf_strategy_input(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                                const MtfStrategy *strategy, int k);
MtfPlacement mtf_strategy_output(const MtfGraph *graph, int operation,
                                 const MtfIteration *iteration, const MtfStrategy *strategy, int k);

/* Whether the operation is linear in input `k` with the others replicated, or jointly; an input
 * given twice is not. */
bool mtf_operation_passes_partial(const MtfGraph *graph, int operation, int k);

/* Fails, naming operation and axis, unless every axis's choice exists for this operation: index in
 * range, reduced indexes only where the row has a reduction, partial only where it is linear. */
bool mtf_strategy_check(const MtfGraph *graph, const MtfMesh *mesh, int operation,
                        const MtfStrategy *strategy, GError **error);

/* One axis's choice as text, "batch", "duplicated", "partial" (input 0) or "partial:2"; free
 * with g_free. And back; fails naming the operation. */
char *mtf_strategy_axis_format(const MtfGraph *graph, int operation, int choice);
bool mtf_strategy_axis_parse(const MtfGraph *graph, int operation, const char *text, int *choice,
                             GError **error);

#endif
