// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/step_model/run_memory.h"

#include <math.h>

/* Elements of one layer's tensors on a device, for one micro-batch. */
typedef struct {
    double input, whole_input, inner, heads, scores;
} LayerElements;

static LayerElements elements_of(const MtfTrainingRun *run, const MtfSoftware *software) {
    const MtfModelSizes *model = &run->model;
    double tokens = run->micro * (double)model->length / (double)run->cp, t = (double)run->tp;
    double rows = model->experts > 0 ? tokens * (double)model->chosen * model->capacity : tokens;
    bool split = run->sequence_parallel || software->sequence_split;
    double heads = (double)(model->heads + 2 * model->kv_heads) * (double)model->head_width;
    LayerElements e = { .whole_input = tokens * (double)model->width };
    e.input = e.whole_input / (split ? t : 1);
    e.inner = rows * (double)model->inner / t * (model->gated ? 1.5 : 1);
    e.heads = tokens * heads / t;
    e.scores = run->micro * (double)model->heads / t * (double)model->length / (double)run->cp *
               (double)model->length;
    return e;
}

/* All that the backward pass of a layer reads. */
static double layer_bytes(const LayerElements *e, const MtfSoftware *software) {
    double scores = software->fused_attention ? 0 : software->kept.scores * e->scores;
    return software->kept.layer * e->input + software->kept.inner * e->inner +
           software->kept.heads * e->heads + scores;
}

/* What is kept of it where parts are redone: the layer's input, and what is not redone. */
static double kept_bytes(const MtfTrainingRun *run, const LayerElements *e,
                         const MtfSoftware *software) {
    const double *redone = software->redone[run->redo];
    double scores = software->fused_attention ? 0 : software->kept.scores * e->scores;
    if (run->redo == MTF_REDO_SELECTIVE && software->kept.offloads)
        return 0;
    return (redone[MTF_PART_SWEEPS] > 0 ? 2 * e->input : 0) +
           (1 - redone[MTF_PART_SWEEPS]) * software->kept.layer * e->input +
           (1 - redone[MTF_PART_UP]) * software->kept.inner * e->inner +
           (1 - redone[MTF_PART_QUERIES]) * software->kept.heads * e->heads +
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

MtfRunMemory mtf_run_memory(const MtfTrainingRun *run, const MtfSoftware *software) {
    MtfRunMemory memory = { 0 };
    LayerElements e = elements_of(run, software);
    double vocab = (double)run->model.vocab / (double)run->tp;
    double tokens = e.whole_input / (double)run->model.width;
    double redone = layer_bytes(&e, software) - kept_bytes(run, &e, software);
    add_parameters(run, software, &memory);
    memory.kept = layers_in_flight(run) * kept_bytes(run, &e, software);
    memory.working += fmax(redone, 0);
    if (run->pp == 1)
        memory.working = fmax(memory.working, tokens * vocab * software->kept.logits);
    double sum =
        memory.weights + memory.gradients + memory.optimizer + memory.kept + memory.working;
    memory.beside = sum * software->kept.slack + software->kept.context_bytes;
    memory.total = sum + memory.beside;
    return memory;
}
