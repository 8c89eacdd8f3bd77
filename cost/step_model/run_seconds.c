// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/step_model/run_seconds.h"

#include <math.h>

/* One pass of one layer or stage, split by what it waits for. */
typedef struct {
    double kernels, redone, tensor, context, expert, host, sharded;
} Pass;

static double pass_seconds(const Pass *pass) {
    return pass->kernels + pass->redone + pass->tensor + pass->context + pass->expert + pass->host +
           pass->sharded;
}

static Pass add_passes(Pass a, Pass b, double times) {
    a.kernels += times * b.kernels;
    a.redone += times * b.redone;
    a.tensor += times * b.tensor;
    a.context += times * b.context;
    a.expert += times * b.expert;
    a.host += times * b.host;
    a.sharded += times * b.sharded;
    return a;
}

/* What of a message is not hidden. */
static double exposed(const MtfRunDevice *device, MtfHidden kind, double seconds) {
    return seconds * fmax(1 - device->software->hidden[kind], 0);
}

/* Beside the other micro-batch's kernels a fifth still shows, an assumption. */
static double routing_exposed(const MtfRunDevice *device, double seconds) {
    double share = device->run->experts_beside ? 0.2 : 1;
    return share * exposed(device, MTF_HIDDEN_EXPERT, seconds);
}

static double kernels_of(const MtfLayerSeconds *layer, MtfPassKind pass) {
    double seconds = 0;
    for (int i = 0; i < MTF_PART_MESSAGES; i++)
        seconds += layer->part[pass][i];
    return seconds;
}

/* ---- Weights that are gathered layer by layer ------------------------------------------------- */

/* Parameters that a rank of the sharding group would hold whole: those that all data-parallel ranks
 * have, and those of experts, that only the ranks with the same experts have. */
typedef struct {
    double dense, experts;
} Parameters;

static Parameters layer_parameters(const MtfTrainingRun *run) {
    double t = (double)run->tp, inner = mtf_run_inner_parameters(&run->model);
    Parameters sum = { mtf_run_attention_parameters(&run->model) / t, 0 };
    if (run->model.experts > 0)
        sum.experts = inner / ((double)run->ep * (run->whole_experts ? 1 : t));
    else
        sum.dense += inner / t;
    return sum;
}

static unsigned data_axes(void) {
    return MTF_AXIS_BIT(MTF_RUN_DATA) | MTF_AXIS_BIT(MTF_RUN_EXPERT) |
           MTF_AXIS_BIT(MTF_RUN_CONTEXT);
}

/* Of a collective over the ranks that have the same parameters, `bytes` a parameter. */
static double shared_seconds(const MtfRunDevice *device, MtfCollectiveKind kind, Parameters own,
                             double bytes) {
    double seconds = mtf_run_collective_seconds(device, kind, data_axes(), own.dense * bytes);
    unsigned copies = MTF_AXIS_BIT(MTF_RUN_DATA) | MTF_AXIS_BIT(MTF_RUN_CONTEXT);
    if (own.experts <= 0)
        return seconds;
    if (device->run->whole_experts)
        return seconds + mtf_collective_seconds(device->machine, &device->experts, kind,
                                                MTF_AXIS_BIT(1), own.experts * bytes);
    return seconds + mtf_run_collective_seconds(device, kind, copies, own.experts * bytes);
}

/* Times that a layer's weights are gathered in a pass: they are let go after a pass that is redone. */
static double gathers_in(const MtfRunDevice *device, MtfPassKind pass) {
    const MtfSoftware *software = device->software;
    bool redone = software->redone[device->run->redo][MTF_PART_SWEEPS] > 0;
    if (device->run->sharding != MTF_SHARD_ALL)
        return 0;
    return pass == MTF_PASS_BACKWARD && redone && software->gathered_again ? 2 : 1;
}

/* Messages of one layer's weights in a pass: gathered in both, gradients scattered in the second;
 * with replicated weights (ZeRO-2) only the latter. Where parts of ranks are put in their places one by
 * one, the host launches that for each before the next message. */
static double sharded_seconds(const MtfRunDevice *device, MtfPassKind pass) {
    const MtfTrainingRun *run = device->run;
    const MtfSoftware *software = device->software;
    Parameters part = layer_parameters(run);
    double messages = software->gathers;
    double gathers = gathers_in(device, pass), scatters = pass == MTF_PASS_BACKWARD ? 1 : 0;
    double ranks = (double)(run->dp * run->cp);
    if (run->sharding < MTF_SHARD_GRADIENTS)
        return 0;
    double gather = shared_seconds(device, MTF_ALLGATHER, part, software->weight_bytes / messages);
    double scatter =
        shared_seconds(device, MTF_REDUCE_SCATTER, part, device->software->reduce_bytes / messages);
    double launches = (gathers + scatters) * ranks * software->part_launches;
    return messages * (gathers * gather + scatters * scatter + launches * software->host_seconds);
}

/* A share runs beside the pass's other work, which slows down meanwhile; the rest, and what is longer,
 * waits. */
static double sharded_exposed(const MtfRunDevice *device, double messages, double work) {
    double hidden = device->software->hidden[MTF_HIDDEN_SHARDED];
    double beside = fmin(hidden * messages, work);
    return messages - beside + device->software->contention * beside;
}

/* Exposed messages of groups inside one of several nodes: they leave the links between nodes to the
 * sharded weights, which travel meanwhile. */
static double inner_messages(const MtfRunDevice *device, const Pass *pass) {
    const MtfTrainingRun *run = device->run;
    const MtfNetwork *slice = &device->map.slice;
    int64_t node = slice->axis[slice->axes - 1].size;
    int64_t experts = run->whole_experts ? run->ep : run->ep * run->cp * run->tp;
    if (!slice->switched || mtf_network_ranks(slice) <= node)
        return 0;
    return (run->tp <= node ? pass->tensor : 0) + (experts <= node ? pass->expert : 0);
}

/* ---- Passes ------------------------------------------------------------------------------------ */

static double redone_kernels(const MtfRunDevice *device, const MtfLayerSeconds *layer) {
    const double *share = device->software->redone[device->run->redo];
    double seconds = 0;
    for (int i = 0; i < MTF_PART_MESSAGES; i++)
        seconds += share[i] * layer->part[MTF_PASS_FORWARD][i];
    return seconds;
}

/* Launches of a routed layer, which wait for how many tokens its experts get. */
static double routing_host_seconds(const MtfSoftware *software, double experts, MtfPassKind pass) {
    return experts > 0 ? software->routed_seconds[pass] + experts * software->expert_seconds[pass]
                       : 0;
}

/* Host: a launch a kernel (as many again where the forward pass is redone), and its collectives. */
static double host_seconds(const MtfRunDevice *device, const MtfLayerSeconds *layer,
                           MtfPassKind pass) {
    const MtfSoftware *software = device->software;
    const double *share = software->redone[device->run->redo];
    double launches = software->host_kernels[pass] * software->host_seconds +
                      routing_host_seconds(software, layer->experts, pass);
    double collectives = device->run->tp > 1 ? 2 : 0;
    if (pass == MTF_PASS_BACKWARD) {
        launches += share[MTF_PART_SWEEPS] *
                    (software->host_kernels[MTF_PASS_FORWARD] * software->host_seconds +
                     routing_host_seconds(software, layer->experts, MTF_PASS_FORWARD));
        collectives *= 1 + share[MTF_PART_MESSAGES];
    }
    return launches + collectives * software->host_collective_seconds;
}

static Pass layer_pass(const MtfRunDevice *device, const MtfLayerSeconds *layer, MtfPassKind pass) {
    const MtfSoftware *software = device->software;
    const double *share = software->redone[device->run->redo];
    const MtfKernelRates *rates = &device->machine->kernels;
    Pass sum = { .kernels = kernels_of(layer, pass) };
    double launches = software->host_kernels[pass];
    sum.tensor = exposed(device, MTF_HIDDEN_TENSOR, layer->part[pass][MTF_PART_MESSAGES]);
    sum.context = exposed(device, MTF_HIDDEN_CONTEXT, layer->context[pass]);
    sum.expert = routing_exposed(device, layer->routing[pass]);
    if (pass == MTF_PASS_BACKWARD) {
        double again = share[MTF_PART_MESSAGES];
        sum.redone = redone_kernels(device, layer);
        sum.tensor += again * exposed(device, MTF_HIDDEN_TENSOR,
                                      layer->part[MTF_PASS_FORWARD][MTF_PART_MESSAGES]);
        sum.expert += again * routing_exposed(device, layer->routing[MTF_PASS_FORWARD]);
        launches += share[MTF_PART_SWEEPS] * software->host_kernels[MTF_PASS_FORWARD];
    }
    sum.kernels += launches * rates->launch_seconds;
    sum.sharded = sharded_exposed(device, sharded_seconds(device, pass),
                                  sum.kernels + sum.redone + inner_messages(device, &sum));
    double host = host_seconds(device, layer, pass);
    sum.host = software->blocked_seconds > 0 ? host + launches * software->blocked_seconds
                                             : fmax(host - pass_seconds(&sum), 0);
    return sum;
}

/* All layers of a stage: of a routed model some may be dense. */
static Pass layers_pass(const MtfRunDevice *device, MtfPassKind pass, double layers) {
    const MtfModelSizes *model = &device->run->model;
    MtfLayerSeconds usual = mtf_layer_seconds(device, false);
    double dense =
        model->experts > 0 ? layers * (double)model->dense_layers / (double)model->layers : 0;
    Pass sum = add_passes((Pass){ 0 }, layer_pass(device, &usual, pass), layers - dense);
    if (dense > 0) {
        MtfLayerSeconds other = mtf_layer_seconds(device, true);
        sum = add_passes(sum, layer_pass(device, &other, pass), dense);
    }
    return sum;
}

/* Logits and their loss, of this device's part of the vocabulary. */
static Pass head_pass(const MtfRunDevice *device, MtfPassKind pass) {
    const MtfTrainingRun *run = device->run;
    double tokens = mtf_run_tokens(run), vocab = (double)run->model.vocab / (double)run->tp;
    MtfProductShape shape = { 1, tokens, vocab, (double)run->model.width, 2, 0 };
    Pass sum = { .kernels = mtf_run_product_seconds(device, pass, shape, true) };
    sum.kernels += mtf_run_swept_seconds(device, pass, MTF_SWEPT_LOGITS, tokens * vocab);
    if (pass == MTF_PASS_BACKWARD && run->tp > 1)
        sum.tensor = mtf_run_collective_seconds(device, MTF_ALLREDUCE, MTF_AXIS_BIT(MTF_RUN_TENSOR),
                                                tokens * (double)run->model.width * 2);
    return sum;
}

/* A lookup and, backwards, its scattered sum; three passes over the layer's input. */
static Pass embedding_pass(const MtfRunDevice *device) {
    const MtfTrainingRun *run = device->run;
    double bytes = 3 * 2 * mtf_run_tokens(run) * (double)run->model.width;
    return (Pass){ .kernels = mtf_sweep_seconds(&device->machine->kernels, &device->wide,
                                                MTF_SWEEP_GATHER, bytes) };
}

/* ---- The pipeline ------------------------------------------------------------------------------ */

/* Both passes of a stage. */
static Pass stage_passes(const MtfRunDevice *device, double layers, bool first, bool last) {
    Pass sum = { 0 };
    for (int p = 0; p < MTF_PASSES; p++) {
        sum = add_passes(sum, layers_pass(device, (MtfPassKind)p, layers), 1);
        if (first)
            sum = add_passes(sum, embedding_pass(device), 1);
        if (last)
            sum = add_passes(sum, head_pass(device, (MtfPassKind)p), 1);
    }
    return sum;
}

/* One activation from stage to stage; the tensor group's ranks send their parts of it. */
static double transfer_seconds(const MtfRunDevice *device) {
    const MtfTrainingRun *run = device->run;
    double bytes = 2 * mtf_run_tokens(run) * (double)run->model.width / (double)run->tp;
    if (run->pp == 1)
        return 0;
    return mtf_run_collective_seconds(device, MTF_PERMUTE, MTF_AXIS_BIT(MTF_RUN_PIPELINE), bytes);
}

/* Of what the other stages do once: all of it (1F1B), over the chunks of a device, a third (weight
 * gradients in the bubble: (p-1)(F+B-W) of F = B = W), or nothing. */
static double bubble_share(const MtfTrainingRun *run) {
    double share = 1 / (double)MAX(run->vp, 1);
    if (run->order == MTF_ORDER_ZERO_BUBBLE_1P)
        return share / 3;
    return run->order == MTF_ORDER_ZERO_BUBBLE_2P ? 0 : share;
}

static double layers_held(const MtfTrainingRun *run, double inner, double ends, int stage) {
    double rest = (double)run->model.layers - 2 * ends - inner * (double)(run->pp - 2);
    if (stage == 0)
        return ends;
    return stage < run->pp - 1 ? inner : fmax(inner > ends ? ends : rest + ends, 0);
}

/* Adds waiting for the other stages and for transfers to the slowest stage's passes. */
static void add_pipeline(const MtfRunDevice *device, MtfRunSeconds *seconds, Pass *slowest) {
    const MtfTrainingRun *run = device->run;
    double ends, inner = mtf_run_stage_layers(run, &ends), sum = 0, most = -1;
    double last = run->pp > 1 ? layers_held(run, inner, ends, (int)run->pp - 1) : ends;
    Pass first = stage_passes(device, ends, true, run->pp == 1);
    Pass middle = stage_passes(device, inner, false, false);
    Pass end = run->pp > 1 ? stage_passes(device, last, false, true) : first;
    const Pass *all[] = { &first, &end, &middle };
    const double times[] = { 1, run->pp > 1 ? 1 : 0, (double)MAX(run->pp - 2, 0) };
    for (int i = 0; i < 3; i++) {
        double own = times[i] > 0 ? pass_seconds(all[i]) : 0;
        sum += times[i] * own;
        if (own > most) {
            most = own;
            *slowest = *all[i];
        }
    }
    double m = mtf_run_micro_batches(run), chunks = (double)MAX(run->vp, 1);
    double transfer = transfer_seconds(device);
    double filling = (sum - most) * bubble_share(run) + 2 * (double)(run->pp - 1) * transfer;
    seconds->pipeline = filling + 2 * m * chunks * exposed(device, MTF_HIDDEN_PIPELINE, transfer);
}

/* ---- Gradients and optimizer ------------------------------------------------------------------ */

/* Parameters that one device keeps whole: of the stage with most of them. */
static Parameters device_parameters(const MtfTrainingRun *run) {
    double ends, layers = mtf_run_stage_layers(run, &ends);
    double tables = mtf_run_embedding_parameters(&run->model) / (double)run->tp;
    Parameters layer = layer_parameters(run);
    Parameters inner = { layers * layer.dense, layers * layer.experts };
    Parameters first = { ends * layer.dense + tables, ends * layer.experts };
    if (run->pp == 1)
        return (Parameters){ inner.dense + 2 * tables, inner.experts };
    return inner.dense + inner.experts > first.dense + first.experts ? inner : first;
}

/* Over the networks between slices: every device its part of the gradients. */
static double slices_seconds(const MtfRunDevice *device, double bytes) {
    const MtfTrainingRun *run = device->run;
    const MtfSliceNetwork *between = &device->machine->between_slices;
    double slices = (double)run->slices, inside = (double)(run->dp / run->slices);
    if (run->slices == 1)
        return 0;
    return 2 * (slices - 1) * between->latency +
           2 * (slices - 1) / slices * bytes / inside /
               (between->bandwidth * device->machine->derate.network);
}

/* Once a step: sums of gradients, and weights of a sharded optimizer gathered. */
static double gradient_seconds(const MtfRunDevice *device) {
    const MtfTrainingRun *run = device->run;
    Parameters own = device_parameters(run);
    double seconds =
        slices_seconds(device, (own.dense + own.experts) * device->software->gradient_bytes);
    if (run->sharding == MTF_SHARD_NONE)
        return seconds + shared_seconds(device, MTF_ALLREDUCE, own, device->software->reduce_bytes);
    bool whole = device->software->whole_sums;
    if (run->sharding == MTF_SHARD_OPTIMIZER)
        seconds += shared_seconds(device, whole ? MTF_ALLREDUCE : MTF_REDUCE_SCATTER, own,
                                  device->software->reduce_bytes);
    if (run->sharding != MTF_SHARD_ALL)
        seconds += shared_seconds(device, MTF_ALLGATHER, own, device->software->weight_bytes);
    return seconds;
}

/* Hidden beside the last micro-batch's backward pass at most. */
static double gradient_exposed(const MtfRunDevice *device, double backward) {
    double seconds = gradient_seconds(device);
    double beside = fmin(seconds - exposed(device, MTF_HIDDEN_DATA, seconds), backward);
    return seconds - beside + device->software->contention * beside;
}

static double update_seconds(const MtfRunDevice *device) {
    const MtfTrainingRun *run = device->run;
    Parameters held = device_parameters(run);
    double parameters = held.dense + held.experts, m = mtf_run_micro_batches(run);
    double own = parameters, ranks = (double)(run->dp / run->slices);
    if (run->sharding >= MTF_SHARD_OPTIMIZER)
        own = held.dense / ranks + held.experts / fmax(ranks / (double)run->ep, 1);
    double gradients = run->sharding >= MTF_SHARD_GRADIENTS ? own : parameters;
    double bytes = own * device->software->update_bytes +
                   (m - 1) * gradients * device->software->accumulate_bytes;
    return mtf_sweep_seconds(&device->machine->kernels, &device->wide, MTF_SWEEP_UPDATE, bytes);
}

/* Nodes or slices that a step waits for. */
static double joined(const MtfRunDevice *device) {
    const MtfNetwork *network = &device->map.slice;
    double inside = network->switched ? (double)network->axis[network->axes - 1].size
                                      : (double)mtf_network_ranks(network);
    return fmax((double)device->run->devices / inside, 1);
}

MtfRunSeconds mtf_run_seconds(const MtfRunDevice *device) {
    MtfRunSeconds seconds = { 0 };
    Pass stage = { 0 };
    double m = mtf_run_micro_batches(device->run);
    add_pipeline(device, &seconds, &stage);
    seconds.compute = m * (stage.kernels + stage.redone);
    seconds.redone = m * stage.redone;
    seconds.tensor = m * stage.tensor;
    seconds.context = m * stage.context;
    seconds.expert = m * stage.expert;
    seconds.data =
        m * stage.sharded + gradient_exposed(device, (stage.kernels + stage.redone) * 0.6);
    seconds.optimizer = update_seconds(device);
    seconds.host = m * stage.host + device->software->step_seconds;
    double sum = seconds.compute + seconds.tensor + seconds.context + seconds.expert +
                 seconds.pipeline + seconds.data + seconds.optimizer + seconds.host;
    seconds.host += sum * device->software->spread * log2(joined(device));
    seconds.step = sum * (1 + device->software->spread * log2(joined(device)));
    return seconds;
}
