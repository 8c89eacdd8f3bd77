// SPDX-License-Identifier: GPL-3.0-or-later
/* What the kernels of a graph's operations take on the largest processor of a mesh. Alike operations, as
 * repeated layers have, are worked out once:
 *
 *     operation ──row, attributes, operands──► iteration space ──strategy──► flops, products, scratch …
 */
#ifndef MTF_KERNEL_MEASURES_H
#define MTF_KERNEL_MEASURES_H

#include "layouts/kernel_work/product_work.h"
#include "layouts/placement/mesh.h"
#include "layouts/placement/strategy.h"

/* Fields as of MtfInstruction. */
typedef struct {
    MtfStrategy strategy;
    double flops, multiply_adds;
    MtfProductWork products;
    double block_side, row_length;
    int64_t scratch_bytes;
} MtfKernelMeasure;

typedef struct {
    const MtfGraph *graph;
    const MtfOperation *operation; /* that stands for those like it */
    MtfIteration iteration;
    GArray *measures; /* MtfKernelMeasure, one a strategy met; NULL before the first */
} MtfAlikeOperations;

typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    GHashTable *known;          /* MtfAlikeOperations; NULL: nothing is kept */
    MtfAlikeOperations scratch; /* of the operation asked for last, where nothing is kept */
} MtfKernelMeasures;

/* Graph and mesh must outlive it. `keeps` pays where many operations are asked for. */
void mtf_kernel_measures_init(MtfKernelMeasures *measures, const MtfGraph *graph,
                              const MtfMesh *mesh, bool keeps);
void mtf_kernel_measures_clear(MtfKernelMeasures *measures);

/* The operation, or one like it: its iteration space is that of `operation`. Where nothing is kept it is valid
 * until the next call. */
MtfAlikeOperations *mtf_kernel_measures_of(MtfKernelMeasures *measures, int operation);

/* Of its kernel run by a strategy. */
MtfKernelMeasure mtf_kernel_measures_find(MtfKernelMeasures *measures, MtfAlikeOperations *alike,
                                          int operation, const MtfStrategy *strategy);

#endif
