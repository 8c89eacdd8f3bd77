// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/step_model/run_memory.h"

#include <math.h>

/* Elements of one layer's tensors on a device, for one micro-batch. */
typedef struct {
    double input, whole_input, inner, heads, scores;
    double input_bytes, inner_bytes, heads_bytes; /* kept of an element of these */
} LayerElements;

/* Of two bytes that a product reads and keeps, one where it reads numbers of 8 bits. */
static double spared_bytes(const MtfTrainingRun *run) {
    return run->narrow ? 1 : 0;
}

static LayerElements elements_of(const MtfTrainingRun *run, const MtfSoftware *software) {
    const MtfModelSizes *model = &run->model;
    double tokens = run->micro * (double)model->length / (double)run->cp, t = (double)run->tp;
    double rows = model->experts > 0 ? tokens * (double)model->chosen * model->capacity : tokens;
    bool split = run->sequence_parallel || software->sequence_split;
    double heads = 2 * (double)(model->heads + model->kv_heads) * (double)model->head_width;
    LayerElements e = { .whole_input = tokens * (double)model->width };
    e.input = e.whole_input / (split ? t : 1);
    e.inner = rows * (double)model->inner / t;
    /* Both norms' results, and the activation's; what attention gives it keeps itself, too. */
    e.input_bytes = software->kept.layer - 2 * spared_bytes(run);
    e.inner_bytes =
        (model->gated ? software->kept.gated : software->kept.inner) - spared_bytes(run);
    e.heads = tokens * heads / t;
    double given = (double)model->heads / (2 * (double)(model->heads + model->kv_heads));
    e.heads_bytes = software->kept.heads + spared_bytes(run) * given;
    e.scores = run->micro * (double)model->heads / t * (double)model->length / (double)run->cp *
               (double)model->length;
    return e;
}

/* All that the backward pass of a layer reads. */
static double layer_bytes(const LayerElements *e, const MtfSoftware *software) {
    double scores = software->fused_attention ? 0 : software->kept.scores * e->scores;
    return e->input_bytes * e->input + e->inner_bytes * e->inner + e->heads_bytes * e->heads +
           scores;
}

/* What is kept of it where parts are redone: the layer's input, and what is not redone. */
static double kept_bytes(const MtfTrainingRun *run, const LayerElements *e,
                         const MtfSoftware *software) {
    const double *redone = software->redone[run->redo];
    double scores = software->fused_attention ? 0 : software->kept.scores * e->scores;
    if (run->redo == MTF_REDO_SELECTIVE && software->kept.offloads)
        return 0;
    return (redone[MTF_PART_SWEEPS] > 0 ? 2 * e->input : 0) +
           (1 - redone[MTF_PART_SWEEPS]) * e->input_bytes * e->input +
           (1 - redone[MTF_PART_UP]) * e->inner_bytes * e->inner +
           (1 - redone[MTF_PART_QUERIES]) * e->heads_bytes * e->heads +
           (1 - redone[MTF_PART_ATTENTION]) * scores;
}

/* Micro-batches in flight on stage 0, or one fewer on stage 1. */
static double in_flight(const MtfTrainingRun *run, double stage) {
    double p = (double)run->pp, m = mtf_run_micro_batches(run), v = (double)MAX(run->vp, 1);
    double flight = v > 1 ? p * (1 + (p - 1) / (p * v)) : p;
    if (run->order == MTF_ORDER_ZERO_BUBBLE_2P)
        flight = 2 * p - 1;
    return fmin(flight - stage, m);
}

/* Layers times micro-batches in flight: the first stage may hold a layer less than the second. */
static double layers_in_flight(const MtfTrainingRun *run) {
    double ends, layers = mtf_run_stage_layers(run, &ends);
    double first = ends * in_flight(run, 0);
    return run->pp > 2 ? fmax(first, layers * in_flight(run, 1)) : first;
}

/* Parameters of the fullest stage, and of one of its layers; those of a device's experts apart, which
 * fewer ranks have. */
typedef struct {
    double dense, experts, layer;
} StageParameters;

static StageParameters stage_parameters(const MtfTrainingRun *run) {
    double t = (double)run->tp, ends, layers = mtf_run_stage_layers(run, &ends);
    double inner = mtf_run_inner_parameters(&run->model), experts = 0;
    double dense = mtf_run_attention_parameters(&run->model) / t;
    if (run->model.experts > 0)
        experts = inner / ((double)run->ep * (run->whole_experts ? 1 : t));
    else
        dense += inner / t;
    double tables = mtf_run_embedding_parameters(&run->model) / t, layer = dense + experts;
    if (run->pp == 1)
        return (StageParameters){ layers * dense + 2 * tables, layers * experts, layer };
    if (layers * layer > ends * layer + tables)
        return (StageParameters){ layers * dense, layers * experts, layer };
    return (StageParameters){ ends * dense + tables, ends * experts, layer };
}

/* What a rank keeps of what is shared out: over all data-parallel ranks, of experts over those that
 * have the same ones. */
static double shared_out(const MtfTrainingRun *run, StageParameters own) {
    double group = (double)(run->dp * run->cp / run->slices);
    double copies = group * (run->whole_experts ? (double)run->tp : 1) / (double)run->ep;
    return own.dense / group + own.experts / fmax(copies, 1);
}

/* Parameters, and what is at work beside what a layer redoes: weights and gradients of one that is
 * gathered. */
static void add_parameters(const MtfTrainingRun *run, const MtfSoftware *software,
                           MtfRunMemory *memory) {
    StageParameters own = stage_parameters(run);
    double parameters = own.dense + own.experts, part = shared_out(run, own);
    double kept = software->gradient_bytes;
    bool all = run->sharding == MTF_SHARD_ALL;
    memory->weights = (all ? part : parameters) * software->weight_bytes;
    memory->gradients = (run->sharding >= MTF_SHARD_GRADIENTS ? part : parameters) * kept;
    memory->optimizer =
        (run->sharding >= MTF_SHARD_OPTIMIZER ? part : parameters) * software->optimizer_bytes;
    if (all)
        memory->working += own.layer * (2 * software->weight_bytes + software->reduce_bytes);
}

/* Weights in the type that products read, which the backward pass reads again: of the layers but those
 * that are redone, and of the head. */
static double copies_bytes(const MtfTrainingRun *run, const MtfSoftware *software) {
    StageParameters own = stage_parameters(run);
    double tables = mtf_run_embedding_parameters(&run->model) / (double)run->tp;
    double layers = own.dense + own.experts - (run->pp == 1 ? 2 * tables : 0);
    double copied = (run->redo == MTF_REDO_FULL ? 0 : layers) + tables;
    double copies = software->kept.copies - fmin(software->kept.copies, spared_bytes(run));
    return run->sharding == MTF_SHARD_ALL ? 0 : copies * copied;
}

/* Gradients come as activations go. Most stands either where the loss is derived, with all that is kept,
 * or at the end, with all gradients and the embedding's as products made it, or before that one in the
 * first layer; and of the other, whose blocks have other sizes, the allocator holds a share as well. */
static void add_phases(const MtfTrainingRun *run, const MtfSoftware *software, double logits,
                       MtfRunMemory *memory) {
    double tables = mtf_run_embedding_parameters(&run->model) / (double)run->tp;
    double loss = memory->kept + logits, last = memory->working;
    if (run->sharding != MTF_SHARD_ALL)
        last = fmax(last - software->gradient_bytes * tables, software->kept.copies * tables);
    double end = memory->gradients + last;
    memory->beside = software->kept.unfit * fmin(loss, end);
    memory->working = fmax(loss, end) - memory->kept - memory->gradients;
}

MtfRunMemory mtf_run_memory(const MtfTrainingRun *run, const MtfSoftware *software) {
    MtfRunMemory memory = { 0 };
    LayerElements e = elements_of(run, software);
    double vocab = (double)run->model.vocab / (double)run->tp;
    double tokens = e.whole_input / (double)run->model.width;
    double redone = layer_bytes(&e, software) - kept_bytes(run, &e, software);
    double logits = run->pp == 1 ? tokens * vocab * software->kept.logits : 0;
    add_parameters(run, software, &memory);
    memory.kept =
        layers_in_flight(run) * kept_bytes(run, &e, software) + copies_bytes(run, software);
    memory.working += fmax(redone, 0);
    if (software->kept.comes_and_goes)
        add_phases(run, software, logits, &memory);
    else
        memory.working = fmax(memory.working, logits);
    double sum =
        memory.weights + memory.gradients + memory.optimizer + memory.kept + memory.working;
    if (!software->kept.comes_and_goes)
        memory.beside = sum * software->kept.slack;
    memory.reserved = sum + memory.beside;
    memory.beside += software->kept.context_bytes;
    memory.total = sum + memory.beside;
    return memory;
}
