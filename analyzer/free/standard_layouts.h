// SPDX-License-Identifier: GPL-3.0-or-later
/* The layouts that the field makes by hand, on one mesh: the search begins with them, so that it is
 * never worse, and its frontier shows where they lie.
 *
 *     data parallelism              every axis splits the batch
 *     Megatron                      some axes split the batch, the others heads, d_ff and vocab
 *     Megatron, sequence parallel   likewise, and the positions where an operation has none of
 *     spatial parallelism           every axis splits space, a dimension that windows go over, in turn
 *     hybrid parallelism            some axes split the batch, the others space (Dryden and others,
 *                                   2019); where space is too small, the batch
 *     each of these with ZeRO-1     optimizer state in pieces over all axes: gradients are
 *                                   reduce-scattered, new values gathered
 *     each of these with ZeRO-3     variables too; they are gathered where they are used
 *
 * The batch is the dimension that all inputs share. Megatron's dimensions are known by their names, those
 * of space by the convolutions and pools that go over them. Such a layout says how operations run; tensors
 * are then kept and read where that costs least. */
#ifndef MTF_STANDARD_LAYOUTS_H
#define MTF_STANDARD_LAYOUTS_H

#include "analyzer/free/free_problem.h"

#define MTF_STANDARD_STYLES 16

typedef enum {
    MTF_STANDARD_DATA,
    MTF_STANDARD_TENSOR,
    MTF_STANDARD_SEQUENCE,
    MTF_STANDARD_SPATIAL,
    MTF_STANDARD_KINDS
} MtfStandardKind;

typedef enum {
    MTF_STANDARD_REPLICATED,
    MTF_STANDARD_ZERO_1,
    MTF_STANDARD_ZERO_3,
    MTF_STANDARD_SHARDINGS
} MtfStandardSharding;

typedef struct {
    const char *name; /* "Megatron, ZeRO-1": several of one name differ in which axes do what */
    int style;        /* which axes do what and what is in pieces: the same number, the same of
                         every graph on the mesh; below MTF_STANDARD_STYLES << axes of the mesh */
    bool megatron; /* Megatron-LM has it: axes split the batch or the model, variables are whole */
    int *choice;   /* one strategy a node of the problem */
    MtfLayoutValue value;
} MtfStandardLayout;

/* The number of a style: the axes in `model_axes` (a bit each) split heads, d_ff, d_expert and vocab, positions or
 * space, the others the batch. */
int mtf_standard_style(MtfStandardKind kind, MtfStandardSharding sharding, unsigned model_axes);

/* All that the problem has strategies for (pins may leave none), the cheapest first
 * (MtfStandardLayout *). */
GPtrArray *mtf_standard_layouts(MtfFreeProblem *problem);

/* The one of that style; NULL where there is none. Free with mtf_standard_layout_free. */
MtfStandardLayout *mtf_standard_layout(MtfFreeProblem *problem, int style);
void mtf_standard_layout_free(MtfStandardLayout *standard);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfStandardLayout, mtf_standard_layout_free)

#endif
