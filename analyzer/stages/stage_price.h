// SPDX-License-Identifier: GPL-3.0-or-later
/* What a stage costs: the nodes between two downsets, on d replicas of t devices, with y
 * micro-batches in flight. In steady state a stage works on a micro-batch every
 *
 *     seconds = (Σ p + 2 Σ c / B) / d + 4 (d−1) W / (d B q)
 *
 * p seconds and W bytes of parameters of its nodes in the ways chosen, c bytes over each edge that is
 * cut, both ways, B bandwidth of a device. Gradients are exchanged every q micro-batches: q = d in
 * PipeDream's planner (a minibatch each, msr-fiddle/pipedream, optimizer_graph_hierarchical.py),
 * q = the batch in Piper's (NeurIPS 2021, section 3). A device holds Σ y A + B_fixed ≤ memory;
 * where nodes may run in several ways, the cheapest choice that fits is looked for (a knapsack). */
#ifndef MTF_STAGE_PRICE_H
#define MTF_STAGE_PRICE_H

#include "analyzer/stages/downsets.h"

typedef struct {
    int64_t devices;
    double memory;    /* bytes of a device; INFINITY without a limit */
    double bandwidth; /* bytes a second */
    int64_t batch;    /* micro-batches; 0 for a stream without end */
    bool transfers; /* PipeDream: a cut must also be carried, 2 × its bytes / (B d), in that time */
} MtfStageMachine;

typedef struct {
    int from, to;     /* downsets: the stage's nodes are what lies between */
    int degree;       /* t */
    int64_t replicas; /* d */
    int64_t flight;   /* y */
} MtfStageSpan;

typedef struct MtfStagePricer MtfStagePricer;

/* Keeps graph, cuts and machine, which must outlive it. */
MtfStagePricer *mtf_stage_pricer_new(const MtfStageGraph *graph, const MtfDownsets *cuts,
                                     const MtfStageMachine *machine);
void mtf_stage_pricer_free(MtfStagePricer *pricer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfStagePricer, mtf_stage_pricer_free)

/* The different degrees of the graph, ascending, of int. */
const GArray *mtf_stage_pricer_degrees(const MtfStagePricer *pricer);

/* Seconds without regard to memory (a bound from below); INFINITY where a node has no way. */
double mtf_stage_least_seconds(MtfStagePricer *pricer, const MtfStageSpan *span);

/* Seconds of the choice of ways that was found to fit; INFINITY where none fits. */
double mtf_stage_seconds(MtfStagePricer *pricer, const MtfStageSpan *span);

/* A bound from below on the seconds of every choice that fits. */
double mtf_stage_relaxed_seconds(MtfStagePricer *pricer, const MtfStageSpan *span);

/* Bytes that a device holds under that choice, and for each node of the graph the number of its way
 * (-1 outside the stage), where `ways` is not NULL. */
double mtf_stage_bytes(MtfStagePricer *pricer, const MtfStageSpan *span, int *ways);

/* Sums over a stage whose nodes have one way each: seconds on one device, parameters in bytes. */
double mtf_stage_work(const MtfStagePricer *pricer, int from, int to);
double mtf_stage_parameters(const MtfStagePricer *pricer, int from, int to);

#endif
