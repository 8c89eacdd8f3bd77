// SPDX-License-Identifier: GPL-3.0-or-later
/* A layout says where every tensor is and how every operation runs. For a result the tensor's
 * placement is the one it is kept in: where the producer's strategy leaves another (say a partial
 * sum), lowering reshards right after the operation. A consumer that wants yet another placement
 * fetches a copy of its own from there.
 *
 * What several consumers of one phase want is moved once: a layout may give a tensor a *gathered
 * copy* in a phase, in a placement of its own that lowering makes before the phase's first consumer
 * and from which all its consumers fetch.
 *
 *     producer ──► kept ──► copy (forward) ──► q, k, v         one allgather, not three
 *                    └────► copy (backward) ─► grad/wq, grad/wk, grad/wv */
#ifndef MTF_LAYOUT_H
#define MTF_LAYOUT_H

#include "layouts/placement/execution.h"
#include "layouts/placement/strategy.h"

typedef struct {
    bool given;
    MtfPlacement placement;
} MtfGatheredCopy;

typedef struct {
    MtfMesh mesh;
    char *rules; /* "batch:rows;d_ff:cols" when the layout follows from global rules, else NULL */
    int n_tensors, n_operations;
    MtfPlacement *tensors;            /* one a tensor of the graph */
    MtfStrategy *operations;          /* one an operation */
    MtfGatheredCopy *gathered_copies; /* MTF_PHASES a tensor, or NULL when there are none at all */
    MtfExecution execution;           /* owned: how it is run */
} MtfLayout;

/* Everything replicated, every operation duplicated: always legal. It is run in the micro-batches that
 * the graph's sizes ask for. */
MtfLayout *mtf_layout_new(const MtfGraph *graph, const MtfMesh *mesh);
MtfLayout *mtf_layout_copy(const MtfLayout *layout);
void mtf_layout_free(MtfLayout *layout);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLayout, mtf_layout_free)

/* Where the consumers of `phase` fetch a tensor from: the placement of its gathered copy, or the one
 * it is kept in when it has none. */
const MtfPlacement *mtf_layout_phase_placement(const MtfLayout *layout, int tensor, MtfPhase phase);
void mtf_layout_set_gathered_copy(MtfLayout *layout, int tensor, MtfPhase phase,
                                  const MtfPlacement *placement);

/* Whether the phase has a gathered copy, in another placement than the kept one. */
bool mtf_layout_has_gathered_copy(const MtfLayout *layout, int tensor, MtfPhase phase);

/* Gives the execution another order of instructions, or with NULL the order of operations. Takes over
 * `order`, which must be legal (mtf_order_check). */
void mtf_layout_set_order(MtfLayout *layout, int *order, int length);

/* Names the algorithms of the program's collectives (algorithm_list.h). Takes over `algorithms`,
 * NULL for direct ones. They belong to the instructions as they are now: a program of another order
 * or other buckets goes directly. */
void mtf_layout_set_algorithms(MtfLayout *layout, unsigned char *algorithms, int length);

/* What people read of the layout: its rules, "free", or that it has no rule. */
const char *mtf_layout_title(const MtfLayout *layout);

/* A tensor with a dimension that is split into unequal parts, or -1; `*dim` is that
 * dimension. */
int mtf_layout_find_uneven(const MtfGraph *graph, const MtfLayout *layout, int *dim);

/* Checks every placement and strategy against the graph, and that no input or variable is partial,
 * nor what another pipeline stage reads or is compared to the bit. */
bool mtf_layout_check(const MtfGraph *graph, const MtfLayout *layout, GError **error);

#endif
