// SPDX-License-Identifier: GPL-3.0-or-later
/* A layout says where every tensor is and how every operation runs. For a result the tensor's
 * placement is the one it is kept in: where the producer's strategy leaves another (say a partial
 * sum), lowering reshards right after the operation. A consumer that wants yet another placement
 * fetches a copy from the one that is kept; what several consumers want is therefore best kept. */
#ifndef MTF_LAYOUT_H
#define MTF_LAYOUT_H

#include "layouts/strategy.h"

typedef struct {
    MtfMesh mesh;
    char *rules; /* "batch:rows;d_ff:cols" when the layout follows from global rules, else NULL */
    int n_tensors, n_operations;
    MtfPlacement *tensors;   /* one a tensor of the graph */
    MtfStrategy *operations; /* one an operation */
} MtfLayout;

/* Everything whole, every operation in copies: always legal. */
MtfLayout *mtf_layout_new(const MtfGraph *graph, const MtfMesh *mesh);
MtfLayout *mtf_layout_copy(const MtfLayout *layout);
void mtf_layout_free(MtfLayout *layout);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLayout, mtf_layout_free)

/* Checks every placement and strategy against the graph, and that no input or variable is partial.
 */
bool mtf_layout_check(const MtfGraph *graph, const MtfLayout *layout, GError **error);

#endif
