// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/price/software_price.h"

#include "cost/price/price.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/operation_table.h"

#include <math.h>

/* Of the reference (software_price.h). */
static const double reference_passes[MTF_PASSES] = { 16, 22 };
static const double reference_kernels[MTF_PASSES] = { 9, 14 };

/* Bytes that Adam reads and writes a parameter there: four numbers, and three of them again. */
static const double reference_update = 28;

/* Products of a decoder layer; their launches are counted as those of other kernels. */
static const double reference_products[MTF_PASSES] = { 5, 10 };

/* Products of experts with gates; what a layer's experts take of the host is divided among them. */
static const double expert_products[MTF_PASSES] = { 3, 6 };

static const MtfOperation *operation_of(const MtfProgram *program,
                                        const MtfInstruction *instruction) {
    return mtf_graph_operation(program->graph, instruction->operation);
}

static MtfPassKind pass_of(const MtfOperation *op) {
    bool forward = op->phase == MTF_PHASE_FORWARD || op->origin == MTF_ORIGIN_CLONE;
    return forward ? MTF_PASS_FORWARD : MTF_PASS_BACKWARD;
}

static double bytes_of(const MtfProgram *program, const int *buffers, int count, unsigned mask) {
    double bytes = 0;
    for (int k = 0; k < MIN(count, 32); k++)
        if (mask >> k & 1)
            bytes += (double)mtf_program_buffer(program, buffers[k])->bytes;
    return bytes;
}

/* How often the profile's kernels go over a layer, over how often the reference's do. */
static double passes_share(const MtfSoftware *software, MtfPassKind pass) {
    double passes = software->swept[MTF_SWEPT_NORM][pass] +
                    software->swept[MTF_SWEPT_RESIDUAL][pass] +
                    4 * software->swept[MTF_SWEPT_ACTIVATION][pass];
    return passes / reference_passes[pass];
}

/* ---- Operation by operation ---------------------------------------------------------------------- */

static bool is_eager(const MtfSoftware *software, const MtfProgram *program,
                     const MtfInstruction *instruction) {
    if (software == NULL || !software->eager || instruction->kind != MTF_INSTRUCTION_KERNEL)
        return false;
    const MtfOperation *op = operation_of(program, instruction);
    return op->phase <= MTF_PHASE_BACKWARD && (op->loop == 0 || !software->loops_at_once);
}

/* Of those buffers in the mask whose type is narrow. */
static double narrow_bytes(const MtfProgram *program, const int *buffers, int count,
                           unsigned mask) {
    double bytes = 0;
    for (int k = 0; k < MIN(count, 32); k++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, buffers[k]);
        MtfDtype dtype = mtf_graph_tensor(program->graph, buffer->tensor)->dtype;
        if (mask >> k & 1 && mtf_dtype_bytes(dtype) == 2)
            bytes += (double)buffer->bytes;
    }
    return bytes;
}

/* What is float32 there has twice the bytes; a norm over a batch takes as long as if it moved more. */
static double eager_traffic(const MtfSoftware *software, const MtfProgram *program,
                            const MtfInstruction *instruction) {
    const MtfEagerMarks *marks = &operation_of(program, instruction)->eager;
    const int *buffers[] = { instruction->inputs, instruction->outputs };
    const int counts[] = { instruction->n_inputs, instruction->n_outputs };
    double bytes = instruction->traffic_bytes;
    for (int side = 0; side < 2; side++)
        bytes += narrow_bytes(program, buffers[side], counts[side],
                              marks->wide[side] & ~marks->skipped[side]) -
                 bytes_of(program, buffers[side], counts[side], marks->skipped[side]);
    return fmax(bytes, 0) / (marks->over_batch ? software->batch_norm_share : 1);
}

double mtf_software_pooling_seconds(const MtfMachine *machine, const MtfProgram *program,
                                    const MtfInstruction *instruction) {
    const MtfSoftware *software = machine->software;
    if (software == NULL || instruction->kind != MTF_INSTRUCTION_KERNEL)
        return 0;
    const MtfOperation *op = operation_of(program, instruction);
    if (mtf_operation_row(op->kind)->windows == MTF_WINDOWS_NONE ||
        instruction->kernel_class != MTF_CLASS_REDUCTION)
        return 0;
    MtfPeaks peaks = mtf_machine_peaks(machine, mtf_dtype_short_name(MTF_F32));
    return instruction->flops * software->pooled[pass_of(op)] / peaks.flops;
}

/* The same elements in the same order under other names or sizes: frameworks look at what is there, by a call that
 * takes their host as long as others. */
static bool is_view(const MtfProgram *program, const MtfInstruction *instruction) {
    if (instruction->kind != MTF_INSTRUCTION_KERNEL)
        return false;
    MtfDimsRule dims = mtf_operation_row(operation_of(program, instruction)->kind)->dims;
    return dims == MTF_DIMS_RENAMED || dims == MTF_DIMS_RESHAPED;
}

bool mtf_software_leaves_out(const MtfSoftware *software, const MtfProgram *program,
                             const MtfInstruction *instruction) {
    bool view = software != NULL && is_view(program, instruction);
    return view || (is_eager(software, program, instruction) &&
                    operation_of(program, instruction)->eager.skipped[0] == ~0U);
}

/* A cast reads the one type and writes the other. */
double mtf_software_cast_bytes(const MtfSoftware *software, const MtfProgram *program,
                               const MtfInstruction *instruction) {
    if (!is_eager(software, program, instruction))
        return 0;
    const MtfEagerMarks *marks = &operation_of(program, instruction)->eager;
    return 3 *
           (narrow_bytes(program, instruction->inputs, instruction->n_inputs, marks->cast[0]) +
            narrow_bytes(program, instruction->outputs, instruction->n_outputs, marks->cast[1]));
}

int mtf_software_kernels(const MtfSoftware *software, const MtfProgram *program,
                         const MtfInstruction *instruction) {
    if (software == NULL || instruction->kind != MTF_INSTRUCTION_KERNEL)
        return 1;
    const MtfOperation *op = operation_of(program, instruction);
    if (!is_eager(software, program, instruction))
        return op->near_inputs == 0 ? 1 : 0;
    return (op->eager.joined ? 0 : 1) + __builtin_popcount(op->eager.cast[0]) +
           __builtin_popcount(op->eager.cast[1]);
}

/* ---- Fused ---------------------------------------------------------------------------------------- */

static double elements_of(const MtfProgram *program, int buffer) {
    const MtfBuffer *b = mtf_program_buffer(program, buffer);
    return (double)b->bytes /
           (double)mtf_dtype_bytes(mtf_graph_tensor(program->graph, b->tensor)->dtype);
}

/* A weight's copy in the type that products read, which frameworks that keep one write with the update. */
static bool copies_weight(const MtfSoftware *software, const MtfProgram *program,
                          const MtfInstruction *instruction) {
    const MtfOperation *op = operation_of(program, instruction);
    return software != NULL && software->narrow_weights && mtf_operation_row(op->kind)->converts &&
           op->near_inputs != 0 && op->phase <= MTF_PHASE_BACKWARD;
}

/* The loss and its gradient go over logits as often as the profile says, most of it in float32; one other kernel of
 * the program reads them, for the largest and the sum. */
static double loss_traffic(const MtfSoftware *software, const MtfProgram *program,
                           const MtfInstruction *instruction) {
    const double *swept = software->swept[MTF_SWEPT_LOGITS];
    double logits = elements_of(program, instruction->outputs[0]);
    double elsewhere = passes_share(software, MTF_PASS_FORWARD) *
                       (double)mtf_program_buffer(program, instruction->outputs[0])->bytes;
    double all = 2 * (swept[MTF_PASS_FORWARD] + swept[MTF_PASS_BACKWARD]) * logits;
    return fmax(instruction->traffic_bytes, all - elsewhere);
}

double mtf_software_traffic(const MtfSoftware *software, const MtfProgram *program,
                            const MtfInstruction *instruction) {
    const MtfOperation *op = operation_of(program, instruction);
    bool swept = instruction->kernel_class == MTF_CLASS_ELEMENTWISE ||
                 instruction->kernel_class == MTF_CLASS_REDUCTION;
    if (software == NULL || instruction->kind != MTF_INSTRUCTION_KERNEL)
        return instruction->traffic_bytes;
    if (is_eager(software, program, instruction) && instruction->kernel_class != MTF_CLASS_MATMUL)
        return eager_traffic(software, program, instruction);
    if (copies_weight(software, program, instruction))
        return 0;
    if (mtf_operation_row(op->kind)->scratch == MTF_SCRATCH_LABELS)
        return loss_traffic(software, program, instruction);
    if (software->accumulate_bytes > 0 && mtf_operation_row(op->kind)->accumulates)
        return software->accumulate_bytes * elements_of(program, instruction->outputs[0]);
    if (!swept)
        return instruction->traffic_bytes;
    if (op->phase > MTF_PHASE_BACKWARD)
        return instruction->traffic_bytes *
               (op->phase == MTF_PHASE_UPDATE ? software->update_bytes / reference_update : 1);
    double near = bytes_of(program, instruction->inputs, instruction->n_inputs, op->near_inputs) +
                  bytes_of(program, instruction->outputs, instruction->n_outputs, op->near_outputs);
    return fmax(instruction->traffic_bytes - near, 0) * passes_share(software, pass_of(op));
}

/* The sum of a product that is redone. */
static double message_times(const MtfSoftware *software, const MtfProgram *program,
                            const MtfInstruction *instruction) {
    int producer = mtf_reshard_tensor(program, instruction)->producer;
    bool redone = software->own_messages && producer >= 0 &&
                  mtf_graph_operation(program->graph, producer)->near_redone;
    return redone ? 1 + software->redone[MTF_REDO_FULL][MTF_PART_MESSAGES] : 1;
}

double mtf_software_times(const MtfSoftware *software, const MtfProgram *program,
                          const MtfInstruction *instruction) {
    bool attention = instruction->products.form == MTF_PRODUCT_ATTENTION;
    if (software == NULL)
        return 1;
    if (mtf_instruction_is_collective(instruction))
        return message_times(software, program, instruction);
    if (instruction->kind != MTF_INSTRUCTION_KERNEL)
        return 1;
    if (!operation_of(program, instruction)->near_redone)
        return attention ? 1 + software->attention_again : 1;
    MtfLayerPart part = attention ? MTF_PART_ATTENTION : MTF_PART_DOWN;
    return 1 + software->redone[MTF_REDO_FULL][part];
}

double mtf_software_launch_seconds(const MtfSoftware *software, const MtfOperation *op) {
    MtfPassKind pass = pass_of(op);
    if (software == NULL || op->phase > MTF_PHASE_BACKWARD ||
        (op->loop != 0 && software->loops_at_once))
        return 0;
    double reference = reference_kernels[pass] + reference_products[pass];
    return software->host_seconds * software->host_kernels[pass] / reference;
}

/* Experts whose products the instruction is, as its weights or their gradient have them. */
static double experts_here(const MtfProgram *program, const MtfInstruction *instruction) {
    const MtfOperation *op = operation_of(program, instruction);
    bool back = op->inputs[1] >= 0 &&
                mtf_shape_find(&mtf_graph_tensor(program->graph, op->inputs[1])->shape,
                               op->attributes.experts) < 0;
    int weights = back ? instruction->outputs[0] : instruction->inputs[1];
    MtfShape all = { .rank = 1, .dims = { op->attributes.experts } };
    return (double)mtf_largest_elements(program->graph, &program->layout->mesh, &all,
                                        &mtf_program_buffer(program, weights)->placement);
}

/* What a layer with experts takes beside its kernels' launches: where its rows are sent, and each expert's share of
 * the products. */
static double routing_seconds(const MtfSoftware *software, const MtfProgram *program,
                              const MtfInstruction *instruction) {
    const MtfOperation *op = operation_of(program, instruction);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    MtfPassKind pass = pass_of(op);
    if (software == NULL || instruction->kind != MTF_INSTRUCTION_KERNEL ||
        op->phase > MTF_PHASE_BACKWARD)
        return 0;
    if (row->routes)
        return software->routed_seconds[pass];
    return row->products == MTF_PRODUCTS_EXPERTS && software->expert_seconds[pass] > 0
               ? experts_here(program, instruction) * software->expert_seconds[pass] /
                     expert_products[pass]
               : 0;
}

double mtf_software_host_seconds(const MtfSoftware *software, const MtfProgram *program,
                                 const MtfInstruction *instruction) {
    if (software != NULL && mtf_instruction_is_collective(instruction))
        return software->host_collective_seconds;
    return mtf_software_times(software, program, instruction) *
           (mtf_software_kernels(software, program, instruction) *
                mtf_software_launch_seconds(software, operation_of(program, instruction)) +
            routing_seconds(software, program, instruction));
}

double mtf_software_blocked_seconds(const MtfSoftware *software, const MtfProgram *program,
                                    const MtfInstruction *instruction) {
    if (software == NULL || software->blocked_seconds <= 0 ||
        mtf_software_leaves_out(software, program, instruction))
        return 0;
    if (mtf_instruction_is_collective(instruction))
        return software->host_collective_seconds;
    return mtf_software_kernels(software, program, instruction) *
           mtf_software_launch_seconds(software, operation_of(program, instruction)) *
           (1 + software->blocked_seconds / fmax(software->host_seconds, 1e-9));
}

bool mtf_software_scores(const MtfSoftware *software, const MtfOperation *op) {
    return software != NULL &&
           !(software->fused_attention && (software->biased_attention || !op->near_biased));
}

/* Products of all scores, masked ones too, and passes over the scores. */
static double scored_seconds(const MtfMachine *machine, const MtfProductWork *work,
                             const MtfPeaks *peaks, bool backward) {
    double keys = fmax(work->m, work->n), times = backward ? 2 : 1;
    const MtfKernelRates *rates = &machine->kernels;
    MtfProductShape scores = { work->calls, work->m, keys, work->k, 2, 0 };
    MtfProductShape values = { work->calls, work->m, work->k, keys, 2, 0 };
    double swept = machine->software->swept[MTF_SWEPT_SCORES][backward];
    return times * (mtf_product_seconds(rates, peaks, &scores) +
                    mtf_product_seconds(rates, peaks, &values)) +
           mtf_sweep_seconds(rates, peaks, MTF_SWEEP_ROWS,
                             2 * swept * work->calls * work->m * keys);
}

/* The queries of a causal head see `seen` of the keys on average, half of them or a window. Kernels leave
 * masked keys out by blocks: the diagonal cuts one block of a row in halves, a window's edge another. */
static double computed_keys(const MtfSoftware *software, double length, double seen) {
    double edges = 2 * seen < length ? 1 : 0.5;
    if (!software->causal_skips || seen >= length)
        return length;
    return fmin(seen + edges * software->attention_block, length);
}

double mtf_software_attention_seconds(const MtfMachine *machine, const MtfProgram *program,
                                      const MtfInstruction *instruction, const MtfPeaks *peaks,
                                      double bytes) {
    const MtfSoftware *software = machine->software;
    const MtfProductWork *work = &instruction->products;
    bool backward = work->form == MTF_PRODUCT_ATTENTION_GRAD;
    if (mtf_software_scores(software, operation_of(program, instruction)))
        return scored_seconds(machine, work, peaks, backward);
    double length = fmax(work->m, work->n);
    double whole = software != NULL ? computed_keys(software, length, work->n) / work->n : 1;
    MtfAttentionShape head = { .flops = instruction->flops * whole,
                               .length = length,
                               .features = work->k,
                               .backward = backward,
                               .portable = software != NULL && software->portable_attention };
    double seconds = mtf_attention_seconds(&machine->kernels, peaks, &head) /
                     (software != NULL ? software->attention_share : 1);
    /* A few queries at a long memory take as long as that takes to be read. */
    return fmax(mtf_sweep_seconds(&machine->kernels, peaks, MTF_SWEEP_ELEMENTWISE, bytes), seconds);
}

/* Whether a micro-batch's share of a gradient is brought to where the sum over micro-batches is. */
static bool adds_gradient(const MtfProgram *program, const MtfInstruction *instruction) {
    return operation_of(program, instruction)->phase == MTF_PHASE_BACKWARD &&
           mtf_operation_accumulates(program->graph, instruction->operation);
}

/* Whether the variable that a gradient is of is in pieces on those axes. */
static bool shards_variable(const MtfProgram *program, const MtfInstruction *instruction) {
    const MtfTensor *tensor = mtf_reshard_tensor(program, instruction);
    int gradient = mtf_graph_operation(program->graph, tensor->producer)->outputs[0];
    int variable = mtf_graph_gradient_of(program->graph, gradient);
    if (variable < 0)
        return false;
    const MtfPlacement *kept = &program->layout->tensors[variable];
    for (int a = 0; a < program->layout->mesh.n_axes; a++)
        if (instruction->reshard.axes >> a & 1 && kept->axis[a] < 0)
            return false;
    return true;
}

static bool sums_gradients(const MtfProgram *program, const MtfInstruction *instruction) {
    MtfCollectiveKind kind;
    return mtf_instruction_collective_kind(instruction, &kind) &&
           (kind == MTF_ALLREDUCE || kind == MTF_REDUCE_SCATTER) &&
           (mtf_reshard_tensor(program, instruction)->memory == MTF_MEMORY_GRADIENT ||
            adds_gradient(program, instruction));
}

/* New values of variables, which every rank is to have whole. */
static bool gathers_weights(const MtfProgram *program, const MtfInstruction *instruction) {
    MtfCollectiveKind kind;
    return mtf_instruction_collective_kind(instruction, &kind) && kind == MTF_ALLGATHER &&
           operation_of(program, instruction)->phase == MTF_PHASE_UPDATE;
}

double mtf_software_sent_share(const MtfSoftware *software, const MtfProgram *program,
                               const MtfInstruction *instruction) {
    double bytes = software == NULL || !software->own_messages ? 0
                   : sums_gradients(program, instruction)      ? software->reduce_bytes
                   : gathers_weights(program, instruction)     ? software->weight_bytes
                                                               : 0;
    return bytes > 0
               ? bytes / (double)mtf_dtype_bytes(mtf_reshard_tensor(program, instruction)->dtype)
               : 1;
}

bool mtf_software_sums_whole(const MtfSoftware *software, const MtfProgram *program,
                             const MtfInstruction *instruction) {
    return software != NULL && software->own_messages && software->whole_sums &&
           sums_gradients(program, instruction);
}

MtfHidden mtf_software_hidden_kind(const MtfProgram *program, const MtfInstruction *instruction) {
    const MtfTensor *tensor = mtf_reshard_tensor(program, instruction);
    const MtfOperation *op = operation_of(program, instruction);
    bool copy =
        tensor->producer >= 0 &&
        mtf_operation_row(mtf_graph_operation(program->graph, tensor->producer)->kind)->converts &&
        mtf_graph_operation(program->graph, tensor->producer)->near_inputs != 0;
    if (tensor->memory == MTF_MEMORY_GRADIENT || op->phase > MTF_PHASE_BACKWARD)
        return tensor->memory == MTF_MEMORY_GRADIENT && shards_variable(program, instruction)
                   ? MTF_HIDDEN_SHARDED
                   : MTF_HIDDEN_DATA;
    if (adds_gradient(program, instruction))
        return MTF_HIDDEN_SHARDED;
    if (tensor->source == MTF_SOURCE_VARIABLE || copy)
        return MTF_HIDDEN_SHARDED;
    return mtf_reshard_row(instruction->reshard.kind)->exchanges ? MTF_HIDDEN_EXPERT
                                                                 : MTF_HIDDEN_TENSOR;
}
