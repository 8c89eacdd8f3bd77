// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/step_model/layer_seconds.h"

#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>

/* ---- Laying a run on a machine ---------------------------------------------------------------- */

static bool check_devices(const MtfTrainingRun *run, GError **error) {
    double devices = (double)run->tp * (double)run->pp * (double)run->cp * (double)run->dp;
    if (devices > (double)run->devices || devices < (double)run->devices)
        return mtf_input_error(error,
                               "tp %" PRId64 " x pp %" PRId64 " x cp %" PRId64 " x dp %" PRId64
                               " are %.10g devices, not %" PRId64,
                               run->tp, run->pp, run->cp, run->dp, devices, run->devices);
    if (run->dp % run->slices != 0)
        return mtf_input_error(error, "dp %" PRId64 " does not divide over %" PRId64 " slices",
                               run->dp, run->slices);
    int64_t spread = run->whole_experts ? run->dp * run->cp * run->tp : run->dp;
    return spread % run->ep == 0 ||
           mtf_input_error(error, "ep %" PRId64 " does not divide the %" PRId64 " ranks it lies on",
                           run->ep, spread);
}

bool mtf_run_device_init(MtfRunDevice *device, const MtfTrainingRun *run, const MtfMachine *machine,
                         const MtfSoftware *software, GError **error) {
    if (!machine->kernels.known)
        return mtf_input_error(
            error, "machine %s does not say what its kernels reach (\"kernels\")", machine->name);
    if (!check_devices(run, error))
        return false;
    if (run->slices > 1 && machine->between_slices.bandwidth <= 0)
        return mtf_input_error(error,
                               "machine %s does not say what joins its slices "
                               "(\"between_slices\")",
                               machine->name);
    int64_t dp = run->dp / run->slices, ep = run->whole_experts ? 1 : run->ep;
    int64_t sizes[MTF_RUN_AXES] = { run->pp, dp / ep, ep, run->cp, run->tp };
    int64_t whole[] = { run->pp, dp * run->cp * run->tp / run->ep, run->ep };
    bool narrow = run->narrow && mtf_machine_names_rate(machine, "fp8");
    device->run = run;
    device->machine = machine;
    device->software = software;
    const char *half = mtf_machine_names_rate(machine, "bf16") ? "bf16" : "fp16";
    device->wide = mtf_machine_peaks(machine, half);
    device->products = mtf_machine_peaks(machine, narrow ? "fp8" : half);
    return mtf_mesh_map_init(&device->map, machine, MTF_RUN_AXES, sizes, error) &&
           (!run->whole_experts || mtf_mesh_map_init(&device->experts, machine, 3, whole, error));
}

double mtf_run_tokens(const MtfTrainingRun *run) {
    return run->micro * (double)run->model.length / (double)run->cp;
}

/* ---- Kernels ----------------------------------------------------------------------------------- */

double mtf_run_product_seconds(const MtfRunDevice *device, MtfPassKind pass, MtfProductShape shape,
                               bool wide) {
    const MtfKernelRates *rates = &device->machine->kernels;
    const MtfPeaks *peaks = wide ? &device->wide : &device->products;
    if (!device->software->pads && mtf_rows_are_unaligned(shape.n, shape.k, shape.bytes))
        shape.traits |= MTF_PRODUCT_UNALIGNED;
    if (pass == MTF_PASS_FORWARD)
        return mtf_product_seconds(rates, peaks, &shape);
    MtfProductShape input = shape, weight = shape;
    input.n = shape.k;
    input.k = shape.n;
    weight.m = shape.k;
    weight.k = shape.m;
    return mtf_product_seconds(rates, peaks, &input) + mtf_product_seconds(rates, peaks, &weight);
}

double mtf_run_swept_seconds(const MtfRunDevice *device, MtfPassKind pass, MtfSwept swept,
                             double elements) {
    bool rows = swept == MTF_SWEPT_NORM || swept == MTF_SWEPT_SCORES || swept == MTF_SWEPT_LOGITS;
    MtfSweep usual = rows ? MTF_SWEEP_ROWS : MTF_SWEEP_ELEMENTWISE;
    double bytes = 2 * elements * device->software->swept[swept][pass];
    return mtf_sweep_seconds(&device->machine->kernels, &device->wide,
                             swept == MTF_SWEPT_ROUTED ? MTF_SWEEP_GATHER : usual, bytes);
}

static double product(const MtfRunDevice *device, MtfPassKind pass, double m, double n, double k) {
    return mtf_run_product_seconds(device, pass, (MtfProductShape){ 1, m, n, k, 2, 0 }, false);
}

/* Keys that a query is multiplied with on average. Kernels that leave out masked keys do so by
 * blocks of b: of s keys (s + b) / 2 remain, of a window w + b; scores are written whole. */
static double mean_keys(const MtfRunDevice *device) {
    const MtfModelSizes *model = &device->run->model;
    double s = (double)model->length, block = device->software->attention_block;
    if (!device->software->fused_attention || !device->software->causal_skips)
        return s - model->window_share * fmax(s - 2 * model->window, 0);
    double whole = (s + fmin(block, s)) / 2;
    return whole - model->window_share * fmax(whole - model->window - block, 0);
}

/* Fused: 4 flops a query, key and feature forward, two and a half times that backward (scores are
 * made again). Else two products forward and four backward, of all scores. */
static double attention_seconds(const MtfRunDevice *device, MtfPassKind pass) {
    const MtfTrainingRun *run = device->run;
    const MtfModelSizes *model = &run->model;
    double heads = (double)model->heads / (double)run->tp, d = (double)model->head_width;
    double queries = mtf_run_tokens(run) / run->micro, keys = mean_keys(device);
    if (!device->software->fused_attention) {
        MtfProductShape scores = { run->micro * heads, queries, keys, d, 2, 0 };
        MtfProductShape values = { run->micro * heads, queries, d, keys, 2, 0 };
        return mtf_run_product_seconds(device, pass, scores, true) +
               mtf_run_product_seconds(device, pass, values, true) +
               mtf_run_swept_seconds(device, pass, MTF_SWEPT_SCORES,
                                     run->micro * heads * queries * keys);
    }
    double flops = 4 * run->micro * heads * queries * keys * d;
    flops *= pass == MTF_PASS_BACKWARD ? 2.5 : 1;
    MtfAttentionShape shape = { flops, queries, d, pass == MTF_PASS_BACKWARD,
                                device->software->portable_attention };
    return mtf_attention_seconds(&device->machine->kernels, &device->wide, &shape) /
           device->software->attention_share;
}

static double sweeps_seconds(const MtfRunDevice *device, MtfPassKind pass, bool dense) {
    const MtfTrainingRun *run = device->run;
    const MtfModelSizes *model = &run->model;
    double t = (double)run->tp, tokens = mtf_run_tokens(run), h = (double)model->width;
    double inner = tokens * (double)model->inner / t;
    double heads = tokens * (double)((model->heads + 2 * model->kv_heads) * model->head_width) / t;
    bool split = run->sequence_parallel || device->software->sequence_split;
    double input = tokens * h / (split ? t : 1);
    double routed = (double)model->experts > 0 && !dense ? (double)model->chosen : 1;
    double seconds =
        mtf_run_swept_seconds(device, pass, MTF_SWEPT_NORM, input) +
        mtf_run_swept_seconds(device, pass, MTF_SWEPT_RESIDUAL, input) +
        mtf_run_swept_seconds(device, pass, MTF_SWEPT_HEADS, heads) +
        mtf_run_swept_seconds(device, pass, model->gated ? MTF_SWEPT_GATED : MTF_SWEPT_ACTIVATION,
                              inner * routed);
    if (run->narrow)
        seconds += mtf_run_swept_seconds(device, pass, MTF_SWEPT_CAST,
                                         2 * tokens * h + heads + inner * routed);
    if (model->experts > 0 && !dense)
        seconds += mtf_run_swept_seconds(device, pass, MTF_SWEPT_ROUTED,
                                         (double)model->chosen * tokens * h / t);
    return seconds;
}

/* The products of a device's experts: each gets its part of the rows that all ranks send. */
static double expert_products(const MtfRunDevice *device, MtfPassKind pass, bool up) {
    const MtfTrainingRun *run = device->run;
    const MtfModelSizes *model = &run->model;
    double own = (double)model->experts / (double)run->ep, t = (double)run->tp;
    double rows = mtf_run_tokens(run) * (double)model->chosen * model->capacity / own;
    double inner = (double)model->inner, h = (double)model->width;
    if (run->whole_experts)
        rows /= t;
    else
        inner /= t;
    double outer = inner * (up && model->gated ? 2 : 1);
    unsigned traits = model->drops ? 0 : MTF_PRODUCT_GROUPED;
    MtfProductShape shape = up ? (MtfProductShape){ own, rows, outer, h, 2, traits }
                               : (MtfProductShape){ own, rows, h, inner, 2, traits };
    return mtf_run_product_seconds(device, pass, shape, false);
}

/* ---- Messages ---------------------------------------------------------------------------------- */

double mtf_run_collective_seconds(const MtfRunDevice *device, MtfCollectiveKind kind, unsigned axes,
                                  double bytes) {
    return mtf_collective_seconds(device->machine, &device->map, kind, axes, bytes);
}

/* The tensor group's sums after attention and feed-forward part; split ones are gathered before the
 * next products, and once more for the gradients of weights. */
static double sums_seconds(const MtfRunDevice *device, MtfPassKind pass) {
    const MtfTrainingRun *run = device->run;
    unsigned axes = MTF_AXIS_BIT(MTF_RUN_TENSOR);
    double bytes = mtf_run_tokens(run) * (double)run->model.width * 2;
    if (run->tp == 1)
        return 0;
    if (!run->sequence_parallel && !device->software->sequence_split)
        return 2 * mtf_run_collective_seconds(device, MTF_ALLREDUCE, axes, bytes);
    double gathers = pass == MTF_PASS_BACKWARD ? 4 : 2;
    return gathers * mtf_run_collective_seconds(device, MTF_ALLGATHER, axes, bytes) +
           2 * mtf_run_collective_seconds(device, MTF_REDUCE_SCATTER, axes, bytes);
}

/* Keys and values round the context group, and their gradients back. */
static double context_seconds(const MtfRunDevice *device, MtfPassKind pass) {
    const MtfTrainingRun *run = device->run;
    const MtfModelSizes *model = &run->model;
    double heads = 2 * (double)(model->kv_heads * model->head_width) / (double)run->tp;
    double bytes = mtf_run_tokens(run) * heads * 2 * (double)run->cp;
    if (run->cp == 1)
        return 0;
    double gather =
        mtf_run_collective_seconds(device, MTF_ALLGATHER, MTF_AXIS_BIT(MTF_RUN_CONTEXT), bytes);
    return pass == MTF_PASS_BACKWARD ? 2 * gather : gather;
}

/* Of a token's copies, the share that travels: to every node of the group at most one where that is
 * sent once; k copies over N nodes reach N (1 - (1 - 1/N)^k) of them. */
static double travelling_share(const MtfRunDevice *device, const MtfMeshMap *map, unsigned axes) {
    MtfNetwork group = mtf_mesh_map_group(map, axes);
    double copies = (double)device->run->model.chosen;
    double inside = (double)map->slice.axis[map->slice.axes - 1].size;
    double nodes = fmax((double)mtf_network_ranks(&group) / inside, 1);
    if (group.axes > 1)
        nodes = (double)mtf_network_ranks(&group) / (double)group.axis[group.axes - 1].size;
    if (!device->run->token_once || nodes <= 1)
        return 1;
    return fmin(nodes * (1 - pow(1 - 1 / nodes, copies)) / copies, 1);
}

/* Tokens go to their experts and back; where experts are split their inputs are gathered over the
 * tensor group and their outputs summed. */
static double routing_seconds(const MtfRunDevice *device) {
    const MtfTrainingRun *run = device->run;
    double rows = mtf_run_tokens(run) * (double)run->model.chosen * run->model.capacity;
    double bytes = rows * (double)run->model.width * 2, own = bytes / (double)run->tp;
    unsigned tensor = MTF_AXIS_BIT(MTF_RUN_TENSOR), experts = MTF_AXIS_BIT(MTF_RUN_EXPERT);
    if (run->whole_experts)
        return 2 * mtf_collective_seconds(
                       device->machine, &device->experts, MTF_ALLTOALL, MTF_AXIS_BIT(2),
                       own * travelling_share(device, &device->experts, MTF_AXIS_BIT(2)));
    own *= travelling_share(device, &device->map, experts);
    return 2 * mtf_run_collective_seconds(device, MTF_ALLTOALL, experts, own) +
           mtf_run_collective_seconds(device, MTF_ALLGATHER, tensor, bytes) +
           mtf_run_collective_seconds(device, MTF_REDUCE_SCATTER, tensor, bytes);
}

MtfLayerSeconds mtf_layer_seconds(const MtfRunDevice *device, bool dense) {
    const MtfTrainingRun *run = device->run;
    const MtfModelSizes *model = &run->model;
    double tokens = mtf_run_tokens(run), h = (double)model->width, t = (double)run->tp;
    double d = (double)model->head_width, heads = (double)model->heads * d / t;
    double queries = heads + 2 * fmax((double)model->kv_heads / t, 1) * d;
    bool routed = model->experts > 0 && !dense;
    double inner =
        (double)model->inner / t * (model->experts > 0 && dense ? (double)model->chosen : 1);
    MtfLayerSeconds seconds = { .experts = routed ? (double)model->experts / (double)run->ep : 0 };
    for (int p = 0; p < MTF_PASSES; p++) {
        MtfPassKind pass = (MtfPassKind)p;
        double *part = seconds.part[p];
        part[MTF_PART_QUERIES] = product(device, pass, tokens, queries, h);
        part[MTF_PART_ATTENTION] = attention_seconds(device, pass);
        part[MTF_PART_OUTPUT] = product(device, pass, tokens, h, heads);
        part[MTF_PART_UP] = routed
                                ? expert_products(device, pass, true)
                                : product(device, pass, tokens, inner * (model->gated ? 2 : 1), h);
        part[MTF_PART_DOWN] =
            routed ? expert_products(device, pass, false) : product(device, pass, tokens, h, inner);
        part[MTF_PART_SWEEPS] = sweeps_seconds(device, pass, dense);
        part[MTF_PART_MESSAGES] = sums_seconds(device, pass);
        seconds.context[p] = context_seconds(device, pass);
        seconds.routing[p] = routed ? routing_seconds(device) : 0;
    }
    return seconds;
}
