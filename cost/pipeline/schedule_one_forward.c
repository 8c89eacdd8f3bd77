// SPDX-License-Identifier: GPL-3.0-or-later
/* Schedules of the kind "some forwards first, then backward and forward in turn": rank s begins with
 * w(s) forwards, and its weight gradients lag d(s) micro-batches behind its input gradients.
 *
 *     schedule   w(s), of p ranks        d(s)     source
 *     gpipe      m                       fused    GPipe, arXiv 1811.06965
 *     1f1b       p - s                   fused    PipeDream-flush, Megatron arXiv 2104.04473
 *     eager      2(p - s) - 1            fused    arXiv 2211.05322, section 3.3
 *     zb-h1      p - s                   s        arXiv 2401.10241, section 2.1
 *     zb-h2      2(p - s) - 1            2s       arXiv 2401.10241, section 2.2
 *
 *     1f1b, p = 2   F0 F1 B0 F2 B1 F3 B2 B3         zb-h1, s = 1 of 2   F0 I0 F1 I1 W0 F2 I2 W1 …
 *                   F0 B0 F1 B1 F2 B2 F3 B3 */
#include "cost/pipeline/schedule_rows.h"

#include "layouts/base/error.h"

#define FUSED (-1) /* the lag of weight gradients that are part of the backward */

/* One rank of one stage. */
static void add_rank(MtfPipelineOrder *order, int rank, int warmup, int lag) {
    int m = order->microbatches, forwards = MIN(warmup, m), weights = 0;
    for (int i = 0; i < forwards; i++)
        mtf_pipeline_order_add(order, MTF_WORK_FORWARD, rank, i);
    for (int i = 0; i < m; i++) {
        mtf_pipeline_order_add(order, lag == FUSED ? MTF_WORK_BACKWARD : MTF_WORK_INPUT_GRADIENT,
                               rank, i);
        if (lag != FUSED && i >= lag)
            mtf_pipeline_order_add(order, MTF_WORK_WEIGHT_GRADIENT, rank, weights++);
        if (forwards < m)
            mtf_pipeline_order_add(order, MTF_WORK_FORWARD, rank, forwards++);
    }
    while (lag != FUSED && weights < m)
        mtf_pipeline_order_add(order, MTF_WORK_WEIGHT_GRADIENT, rank, weights++);
}

static MtfPipelineOrder *new_order(const MtfPipelineCase *c) {
    return mtf_pipeline_order_new(c->ranks, c->ranks, c->microbatches, MTF_STAGES_LOOP);
}

MtfPipelineOrder *mtf_schedule_gpipe(const MtfPipelineCase *c, GError **error) {
    (void)error;
    MtfPipelineOrder *order = new_order(c);
    for (int s = 0; s < c->ranks; s++)
        add_rank(order, s, c->microbatches, FUSED);
    return order;
}

MtfPipelineOrder *mtf_schedule_one_forward(const MtfPipelineCase *c, GError **error) {
    (void)error;
    MtfPipelineOrder *order = new_order(c);
    for (int s = 0; s < c->ranks; s++)
        add_rank(order, s, c->ranks - s, FUSED);
    return order;
}

MtfPipelineOrder *mtf_schedule_eager(const MtfPipelineCase *c, GError **error) {
    (void)error;
    MtfPipelineOrder *order = new_order(c);
    for (int s = 0; s < c->ranks; s++)
        add_rank(order, s, 2 * (c->ranks - s) - 1, FUSED);
    return order;
}

MtfPipelineOrder *mtf_schedule_zero_bubble_h1(const MtfPipelineCase *c, GError **error) {
    (void)error;
    MtfPipelineOrder *order = new_order(c);
    for (int s = 0; s < c->ranks; s++)
        add_rank(order, s, c->ranks - s, s);
    return order;
}

MtfPipelineOrder *mtf_schedule_zero_bubble_h2(const MtfPipelineCase *c, GError **error) {
    (void)error;
    MtfPipelineOrder *order = new_order(c);
    for (int s = 0; s < c->ranks; s++)
        add_rank(order, s, 2 * (c->ranks - s) - 1, 2 * s);
    return order;
}

/* Interleaved 1F1B (arXiv 2104.04473, section 2.2) with PyTorch's rounds, which let m be no multiple
 * of p: micro-batches go round after round, r = m / max(1, floor(m / p)) of them through all chunks
 * before the next r. Rank s begins with (v - 1) r + 2 (p - 1 - s) forwards; the k-th forward is of
 * chunk floor(k / r) mod v, the k-th backward of the chunk as far from the end. */
typedef struct {
    MtfPipelineOrder *order;
    int rank, chunks, round;
} Interleaving;

static void add_chunk_work(const Interleaving *at, MtfPipelineWork work, int k) {
    int chunk = k / at->round % at->chunks;
    if (work == MTF_WORK_BACKWARD)
        chunk = at->chunks - 1 - chunk;
    int microbatch = k / (at->round * at->chunks) * at->round + k % at->round;
    mtf_pipeline_order_add(at->order, work, chunk * at->order->ranks + at->rank, microbatch);
}

static void add_interleaved_rank(const Interleaving *at) {
    int total = at->order->microbatches * at->chunks, p = at->order->ranks;
    int warmup = MIN((at->chunks - 1) * at->round + 2 * (p - 1 - at->rank), total);
    for (int k = 0; k < warmup; k++)
        add_chunk_work(at, MTF_WORK_FORWARD, k);
    for (int k = 0; k < total; k++) {
        if (warmup + k < total)
            add_chunk_work(at, MTF_WORK_FORWARD, warmup + k);
        add_chunk_work(at, MTF_WORK_BACKWARD, k);
    }
}

MtfPipelineOrder *mtf_schedule_interleaved(const MtfPipelineCase *c, GError **error) {
    int rounds = MAX(1, c->microbatches / c->ranks);
    if (c->microbatches % rounds != 0) {
        mtf_input_error(error,
                        "interleaved 1F1B sends %d micro-batches through %d stages in %d rounds, "
                        "which does not divide; take a multiple of %d micro-batches",
                        c->microbatches, c->ranks, rounds, c->ranks);
        return NULL;
    }
    MtfPipelineOrder *order =
        mtf_pipeline_order_new(c->ranks, c->ranks * c->chunks, c->microbatches, MTF_STAGES_LOOP);
    for (int s = 0; s < c->ranks; s++)
        add_interleaved_rank(&(Interleaving){ order, s, c->chunks, c->microbatches / rounds });
    return order;
}
