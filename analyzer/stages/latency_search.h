// SPDX-License-Identifier: GPL-3.0-or-later
/* Stages of a chain of layers for the shortest batch of B micro-batches under a synchronous schedule
 * (Alpa, OSDI 2022, section 5):
 *
 *     T* = min  Σ t_i + (B − 1) max t_j
 *
 * over cuts of the chain and a size of submesh for each stage. For a fixed t_max the sum is a dynamic
 * program over (stages from the end, first layer, devices); a stage that is s-th from the end holds
 * min(s, B) micro-batches. Alpa tries every t_max in ascending order and stops when B t_max ≥ best.
 * Here intervals (a, b] of t_max are halved: F falls as t_max grows, so F(b) + (B − 1) a bounds all
 * that lies between, and most are never looked into. The answer is the optimum. */
#ifndef MTF_LATENCY_SEARCH_H
#define MTF_LATENCY_SEARCH_H

#include "analyzer/stages/stage_plan.h"

/* What the layers first … end-1 cost as one stage on a submesh of a size. */
typedef struct {
    double seconds;       /* of a micro-batch; INFINITY where it cannot be */
    double fixed, flight; /* bytes on a device, and more for each micro-batch in flight */
} MtfChainPrice;

typedef struct {
    int layers;
    int sizes;
    const int64_t *size;  /* devices of each size of submesh */
    MtfChainPrice *price; /* at mtf_chain_index */
    int64_t devices;
    bool all_devices; /* every device is to be used */
    int64_t batch;    /* micro-batches */
    double memory;    /* bytes of a device; INFINITY without a limit */
    int most_stages;  /* 0: as many as there are layers */
    int least_stages; /* 0: one; above 0 with most_stages */
    /* NULL, or what kind of way each size is, and which the stages from the first on are to have, of
     * which there are most_stages, no fewer. */
    const int *kind_of_size, *kind_of_stage;
} MtfChain;

/* Where the price of layers first … end-1 on the submesh of number `size` stands. */
gsize mtf_chain_index(const MtfChain *chain, int first, int end, int size);
gsize mtf_chain_prices(const MtfChain *chain);

/* The best plan (degree 1, replicas = devices of the submesh); a fit error when none fits. */
MtfStagePlan *mtf_latency_search(const MtfChain *chain, GError **error);

#endif
