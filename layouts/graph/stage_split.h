// SPDX-License-Identifier: GPL-3.0-or-later
/* Pipeline stages: a training graph whose operations say which stage runs them is split into one
 * graph a stage. What one stage computes and another reads becomes an input of the reader, fed by a
 * transfer:
 *
 *     stage 1     x ─► embed ─► layer 0 ─► h          grad/h ─► back/layer 0 ─► update
 *                                          │ transfer    ▲ transfer
 *     stage 2                              h ─► layer 1 ─► loss ─► … grad/h ─► update
 *
 * Results of the forward and backward pass travel once a micro-batch, sums over micro-batches, variables that
 * several stages read (tied embeddings) and what clipping asks for once a step; of a graph without a loss,
 * which is not trained, such a variable is one in each of these stages, and travels before the first step.
 * Operations without inputs (constants, the learning rate) are repeated in every stage that reads them, and
 * so are those that only cast or move a variable, which then travels instead. Tensors keep their names. */
#ifndef MTF_STAGE_SPLIT_H
#define MTF_STAGE_SPLIT_H

#include "layouts/graph/graph.h"

/* A tensor that travels from one stage to another. Stages count from 0 here. */
typedef struct {
    int from, to;
    int sent;     /* tensor of the graph of stage `from` */
    int received; /* input, or variable, of the graph of stage `to` */
    bool once;    /* a step, of variables on both sides once and for all; else once a micro-batch */
    int way;      /* MtfTransferWay: how it goes; the split says 0, directly */
} MtfStageTransfer;

typedef struct {
    GPtrArray *graphs; /* MtfGraph, one a stage, in canonical order */
    GArray *transfers; /* MtfStageTransfer, in the order in which their tensors are made */
} MtfStageSplit;

/* The number of stages: the highest that an operation has; 0 when the graph is not cut. */
int mtf_graph_stages(const MtfGraph *graph);

/* For each tensor the stage (from 1) it belongs to: of results their operation's, of variables and inputs
 * that of the first operation with a stage that reads them, of variables that none reads that of their next
 * value; 0 where there is none. Free with g_free. */
int *mtf_graph_tensor_stages(const MtfGraph *graph);

/* Gives every operation without a stage one, in a graph where some have one: where it works out what a
 * variable becomes that of the variable, else that of the first of its inputs that is no scalar and has
 * one, else the highest of its scalars', else that of its first reader. A loop is of one stage, the highest
 * of what it reads, or that which one of its operations says. */
void mtf_graph_complete_stages(MtfGraph *graph);

/* Splits a graph in which every operation has a stage. Fails (bad input) where a stage of the
 * forward pass reads what a later one computes, or one of the backward pass what an earlier one
 * does, where a variable becomes what another stage computes, and where a stage has no operation that reads
 * something. */
MtfStageSplit *mtf_stage_split(const MtfGraph *graph, GError **error);
void mtf_stage_split_free(MtfStageSplit *split);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfStageSplit, mtf_stage_split_free)

#endif
