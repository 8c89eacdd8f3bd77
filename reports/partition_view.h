// SPDX-License-Identifier: GPL-3.0-or-later
/* What a drawing of a partition shows, before anything is drawn: boxes for variables, inputs and
 * forward operations, grouped by layer, and arrows for tensors.
 *
 *     layer 0 – 23 (× 24)                       a group: layers laid out alike, drawn once
 *       ┌──────────────────────────┐
 *       │ h · einsum               │            a box
 *       │ batch 64/4 │ d_ff 2048/2 │            its cells, tinted by the mesh axis that splits them
 *       │ allreduce cols 1.0 MiB   │            its notes: collectives it causes
 *       │ ∇ allreduce rows 4.0 MiB │            and those of its gradient
 *       └──────────────────────────┘
 *
 * The pieces of a composite (softmax's maximum and sum) are folded into the box that carries the
 * user's name. Backward traffic is noted on the forward box whose gradient it carries, clipping and
 * optimizer traffic on one box of their own. */
#ifndef MTF_PARTITION_VIEW_H
#define MTF_PARTITION_VIEW_H

#include "layouts/plan.h"

typedef enum { MTF_BOX_OPERATION, MTF_BOX_VARIABLE, MTF_BOX_INPUT, MTF_BOX_UPDATE } MtfBoxKind;

typedef struct {
    char *text;    /* "batch 64/4", "Σ over cols" */
    unsigned axes; /* the mesh axes that split it, or over which it is partial; 0 = none */
    bool partial;  /* says that the tensor is kept as partial sums */
    char *tooltip;
} MtfViewCell;

typedef struct {
    MtfBoxKind kind;
    char *name;       /* full name of the tensor it stands for */
    char *title;      /* name without the layer */
    char *detail;     /* kind of operation, "variable", "input" */
    int group;        /* index of a group, or -1 */
    GArray *cells;    /* MtfViewCell */
    GPtrArray *notes; /* char *, collectives */
} MtfViewBox;

typedef struct {
    int from, to;    /* boxes */
    bool next_layer; /* runs to the same group's next layer */
    char *reshard;   /* what is done to the tensor on the way, or NULL */
    double bytes;    /* payload of that, on one processor */
} MtfViewArrow;

/* A run of layers that are laid out alike. */
typedef struct {
    char *title;
    int repeat; /* index into graph->repeats */
    int first, count;
} MtfViewGroup;

typedef struct {
    GArray *boxes;  /* MtfViewBox */
    GArray *arrows; /* MtfViewArrow */
    GArray *groups; /* MtfViewGroup */
} MtfPartitionView;

/* The view of a plan and its program; freed by mtf_partition_view_free. */
MtfPartitionView *mtf_partition_view_new(const MtfPlan *plan, const MtfProgram *program);
void mtf_partition_view_free(MtfPartitionView *view);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPartitionView, mtf_partition_view_free)

#endif
