// SPDX-License-Identifier: GPL-3.0-or-later
/* What a drawing of a partition shows, before anything is drawn: boxes for operations, the tensors
 * they take inside them, pills for what is sent on the way, and arrows. It is read off the program,
 * so it shows what runs.
 *
 *     layer 0–22 (× 23), forward                    a section: one phase of layers laid out alike
 *       ┌──────────────────────────┐
 *       │ ffn/norm · normalize     │                a box, with the tensor it makes:
 *       │ batch 64/4 │ length 128  │                its cells, tinted by the axis that splits them
 *       └────────────┬─────────────┘
 *         (allgather cols 1.0 MiB)                  a pill: the tensor is laid out otherwise
 *       ┌────────────┴─────────────┐
 *       │ ffn/hidden · einsum      │
 *       │ batch 64/2 │ d_ff 2048/2 │
 *       │ w1: d_model │ d_ff 2048/2│                a row: a variable, or what another phase made
 *       │   allgather rows 4.0 MiB │                and what is sent to have it
 *       │ reduce-scatter cols …    │                a note: what is sent once the tensor is made
 *       └──────────────────────────┘
 *
 * The pieces of a composite (softmax's maximum and sum) are folded into the box that carries the
 * user's name. Of layers laid out alike the first is shown. */
#ifndef MTF_PARTITION_VIEW_H
#define MTF_PARTITION_VIEW_H

#include "reports/drawing/step_parts.h"

typedef enum {
    MTF_BOX_OPERATION,
    MTF_BOX_TENSOR,   /* comes from another section of the same phase */
    MTF_BOX_TRANSFER, /* a pill */
} MtfBoxKind;

typedef enum {
    MTF_CELL_DIMENSION,  /* "batch 64/4" */
    MTF_CELL_PARTIAL,    /* "Σ cols": kept as terms of a sum (or maximum) along these axes */
    MTF_CELL_REPLICATED, /* "≡ rows": the same along these axes */
} MtfCellKind;

typedef struct {
    MtfCellKind kind;
    char *text;
    unsigned axes; /* the mesh axes it is about; 0 = none */
} MtfViewCell;

/* A tensor that a box takes and no box makes. */
typedef struct {
    int tensor;
    char *name;
    GArray *cells;    /* MtfViewCell */
    GPtrArray *notes; /* char *, what is sent to have it */
} MtfViewRow;

typedef struct {
    MtfBoxKind kind;
    int section;         /* -1: between stages */
    int tensor;          /* what it makes or stands for */
    char *title;         /* name without the layer */
    char *detail;        /* kind of operation */
    GArray *cells;       /* MtfViewCell */
    GArray *rows;        /* MtfViewRow */
    GPtrArray *notes;    /* char *; of pills the lines */
    int64_t nanoseconds; /* of its kernels; of pills and their chain, of the transfer */
} MtfViewBox;

typedef struct {
    int from, to;        /* boxes */
    int64_t nanoseconds; /* of the transfer on the way; 0 = none */
} MtfViewArrow;

/* One phase of a part; or a stage of a pipeline, with phase -1. */
typedef struct {
    int part, phase;
    char *title;
    char *fill, *url; /* its colour, "#rrggbb", and a page; NULL = none */
} MtfViewSection;

typedef struct {
    const MtfStepParts *parts; /* borrowed; NULL of pipelines (cut_view.h) */
    GArray *sections;          /* MtfViewSection */
    GArray *boxes;             /* MtfViewBox */
    GArray *arrows;            /* MtfViewArrow */
} MtfPartitionView;

/* How much of a step is shown. */
typedef enum {
    MTF_VIEW_STEP,    /* all parts and phases */
    MTF_VIEW_FORWARD, /* all parts, forward only */
    MTF_VIEW_PARTS,   /* a box a section, without their operations */
    MTF_VIEW_LEVELS,
} MtfViewLevel;

/* The view of a whole step, and of one section of it. The parts must outlive it; freed by
 * mtf_partition_view_free. */
MtfPartitionView *mtf_partition_view_new(const MtfStepParts *parts, MtfViewLevel level);
MtfPartitionView *mtf_partition_view_section(const MtfStepParts *parts, int part, int phase);
/* A view of nothing; boxes without tensors are added to it. The box's number; title and detail are taken over. */
MtfPartitionView *mtf_partition_view_blank(void);
int mtf_partition_view_add_box(MtfPartitionView *view, MtfBoxKind kind, int section, char *title,
                               char *detail);
void mtf_partition_view_free(MtfPartitionView *view);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfPartitionView, mtf_partition_view_free)

/* "f32[batch:64@rows, …]" of a box's tensor, and more lines on where time and bytes go: for a
 * tooltip. Free with g_free. */
char *mtf_view_box_tooltip(const MtfPartitionView *view, const MtfViewBox *box);

#endif
