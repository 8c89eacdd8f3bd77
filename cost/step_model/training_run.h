// SPDX-License-Identifier: GPL-3.0-or-later
/* A training run as tables of published runs describe it: a decoder-only transformer, how its step is
 * divided, and nothing about machines. `tp` x `cp` x `dp` x `pp` devices, `tp` the innermost; `ep`
 * lies inside `dp`, or over tp x cp x dp where experts are whole (`whole_experts`). */
#ifndef MTF_TRAINING_RUN_H
#define MTF_TRAINING_RUN_H

#include "cost/machine/software.h"

typedef enum {
    MTF_SHARD_NONE,
    MTF_SHARD_OPTIMIZER,
    MTF_SHARD_GRADIENTS,
    MTF_SHARD_ALL
} MtfSharding;

/* Order of forward and backward passes; interleaved 1F1B is 1F1B with several chunks a device. */
typedef enum {
    MTF_ORDER_1F1B,
    MTF_ORDER_ZERO_BUBBLE_1P, /* weight gradients fill the bubble, memory of 1F1B */
    MTF_ORDER_ZERO_BUBBLE_2P, /* of twice the memory */
} MtfRunOrder;

typedef struct {
    int64_t layers, width, heads, kv_heads, head_width, inner, vocab, length;
    bool gated, untied; /* the head of one without gates and shared keys has weights of its own */
    int64_t experts, chosen; /* 0: dense */
    int64_t dense_layers;    /* of a routed model, with `dense_inner` or else chosen x inner */
    double capacity;         /* rows an expert computes over rows it is sent */
    bool drops;              /* experts compute as many rows as each other, and drop what is more */
    double window, window_share; /* keys seen in local layers, and the share of layers so */
} MtfModelSizes;

typedef struct {
    MtfModelSizes model;
    double batch, micro; /* sequences of a step, and of a data-parallel rank's pass */
    int64_t devices, tp, pp, vp, cp, ep, dp, slices;
    bool whole_experts;  /* experts are not split by tp */
    bool experts_beside; /* tokens travel beside the other half of a micro-batch */
    bool token_once;     /* a token goes to a node once, however many of its experts are there */
    MtfSharding sharding;
    bool sequence_parallel;
    MtfRedo redo;
    MtfRunOrder order;
    bool blocking;         /* launches wait for one another: nothing hides */
    bool narrow;           /* products of 8-bit numbers */
    double gradient_bytes; /* kept of a parameter's gradient; 0: the profile's */
    double reduce_bytes;   /* sent of it; 0: the profile's */
} MtfTrainingRun;

/* Parameters of one layer's attention, norms and router; of its feed-forward part (all experts); and
 * of the embedding (as many again in an untied head). */
double mtf_run_attention_parameters(const MtfModelSizes *model);
double mtf_run_inner_parameters(const MtfModelSizes *model);
double mtf_run_embedding_parameters(const MtfModelSizes *model);

/* Micro-batches of a step on one pipeline. */
double mtf_run_micro_batches(const MtfTrainingRun *run);

/* The profile as the run has it: what its table says of gradients and launches, in place of the profile's. It
 * borrows all of `software`. */
MtfSoftware mtf_run_software(const MtfTrainingRun *run, const MtfSoftware *software);

/* Layers of the busiest stage: an even share, or, where it is none, with embedding and head counted
 * as a layer each if that comes out even, else rounded up. `*ends` are those of the first stage. */
double mtf_run_stage_layers(const MtfTrainingRun *run, double *ends);

#endif
