// SPDX-License-Identifier: GPL-3.0-or-later
/* A training step in parts that people can look at one by one: each run of layers laid out alike is
 * a part, and so is what lies before, between and after the layers. Every part has its three phases
 * (clipping counts as update):
 *
 *                       forward        backward       update
 *     before layer 0       │ ▲            ▲
 *     layer 0–22 (× 23)    ▼              │             …        each with its time, and what it
 *     layer 23             │              │             …        sends over the network
 *     after layer 23       ▼ ──► loss ──► │
 *
 * Operations belong to the part of the forward tensor they are named after. Those of the forward pass from
 * which nothing but new values of variables comes, as of running statistics, count as update. */
#ifndef MTF_STEP_PARTS_H
#define MTF_STEP_PARTS_H

#include "reports/drawing/layer_runs.h"
#include "reports/facts/step_facts.h"

#define MTF_PART_PHASES 3 /* forward, backward, update */

/* What a part does in one phase, all its layers together. */
typedef struct {
    int operations;      /* of the program: kernels */
    int64_t nanoseconds; /* of the step's time, MtfStepFacts.wall */
    int64_t network;     /* of that, collectives */
    int64_t payload;     /* bytes of the collectives */
    int64_t collectives; /* calls */
} MtfPartFigures;

typedef struct {
    char *title; /* "layer 0–22", "before layer 0" */
    int run;     /* of the fold; -1 outside of layers */
    int layers;  /* 1 outside of them */
    int alike;   /* the first part laid out like this one; often itself */
    MtfPartFigures figures[MTF_PART_PHASES];
} MtfStepPart;

typedef struct {
    const MtfStepFacts *facts; /* borrowed */
    MtfLayerRuns *layers_found;
    GArray *parts; /* MtfStepPart, in order of the forward pass */
    int *of;       /* an operation's part */
    int *phases;   /* an operation's phase: 0 forward, 1 backward, 2 clipping and update */
    bool *keeps;   /* whether it but keeps a loop's iterations for the backward pass */
} MtfStepParts;

/* The facts must outlive the parts. */
MtfStepParts *mtf_step_parts_new(const MtfStepFacts *facts);
void mtf_step_parts_free(MtfStepParts *parts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfStepParts, mtf_step_parts_free)

/* Typed access; the index must be valid. */
const MtfStepPart *mtf_step_part(const MtfStepParts *parts, int part);

/* "forward", "backward", "update" */
const char *mtf_part_phase_name(int phase);

#endif
