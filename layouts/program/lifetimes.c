// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/lifetimes.h"

#include "layouts/graph/loops.h"
#include "layouts/graph/microbatches.h"

#include <string.h>

int mtf_program_storage(const MtfProgram *program, int buffer) {
    while (mtf_program_buffer(program, buffer)->storage != buffer)
        buffer = mtf_program_buffer(program, buffer)->storage;
    return buffer;
}

static MtfBuffer *owner_of(const MtfProgram *program, int buffer) {
    return mtf_program_buffer(program, mtf_program_storage(program, buffer));
}

static void touch(MtfProgram *program, int buffer, int instruction) {
    MtfBuffer *owner = owner_of(program, buffer);
    owner->first = MIN(owner->first, instruction);
    owner->last = MAX(owner->last, instruction);
}

/* A sum is written by every micro-batch and must outlive them all. */
static void touch_repetition(MtfProgram *program, int buffer) {
    touch(program, buffer, 0);
    touch(program, buffer, program->n_repeated - 1);
}

/* What another stage reads is on its way for as long as that stage does not take it: what a micro-batch
 * sends beside all later ones, and (keep_sent) beside what is done once a step; sums and variables until
 * the step ends. */
static void touch_until_sent(MtfProgram *program, int tensor) {
    const MtfGraph *graph = program->graph;
    int producer = mtf_graph_tensor(graph, tensor)->producer;
    bool once = producer < 0 || mtf_operation_accumulates(graph, producer) ||
                !mtf_phase_repeats(graph, mtf_graph_operation(graph, producer)->phase);
    int buffer = program->tensor_buffers[tensor];
    if (once)
        touch(program, buffer, mtf_program_length(program) - 1);
    else
        touch_repetition(program, buffer);
}

/* What an iteration touches of buffer `b`: where something outside of instructions [begin, end) touches
 * it too, or every iteration leaves an element there, it lives through them all. */
static void touch_loop(MtfProgram *program, int b, int begin, int end, bool stacks) {
    MtfBuffer *owner = owner_of(program, b);
    if (!stacks && owner->first >= begin && owner->last < end)
        return;
    owner->carried = true;
    touch(program, b, begin);
    touch(program, b, end - 1);
}

static void read_loop(MtfProgram *program, int begin, int end) {
    for (int i = begin; i < end; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        bool stacks =
            instruction->kind == MTF_INSTRUCTION_KERNEL &&
            mtf_operation_loop_part(program->graph, instruction->operation) == MTF_LOOP_STACKS;
        for (int k = 0; k < instruction->n_inputs; k++)
            touch_loop(program, instruction->inputs[k], begin, end, false);
        for (int k = 0; k < instruction->n_outputs; k++)
            touch_loop(program, instruction->outputs[k], begin, end, stacks);
    }
}

static void read_loops(MtfProgram *program) {
    if (program->graph->loops->len == 0)
        return;
    for (int i = 0, end; i < mtf_program_length(program); i = end) {
        end = mtf_program_loop_end(program, i);
        if (mtf_program_instruction(program, i)->loop > 0)
            read_loop(program, i, end);
    }
}

static void read_all(MtfProgram *program) {
    int n = mtf_program_length(program);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        mtf_program_buffer(program, b)->carried = false;
        mtf_program_buffer(program, b)->first = n;
        mtf_program_buffer(program, b)->last = -1;
    }
    for (int i = 0; i < n; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        for (int k = 0; k < instruction->n_inputs; k++)
            touch(program, instruction->inputs[k], i);
        for (int k = 0; k < instruction->n_outputs; k++)
            touch(program, instruction->outputs[k], i);
        if (instruction->scratch >= 0)
            touch(program, instruction->scratch, i);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL &&
            mtf_operation_accumulates(program->graph, instruction->operation))
            touch_repetition(program, instruction->outputs[0]);
    }
    read_loops(program);
    for (int t = 0; t < (int)program->graph->tensors->len; t++)
        if (mtf_graph_tensor(program->graph, t)->is_sent && program->tensor_buffers[t] >= 0)
            touch_until_sent(program, t);
    int loss = program->graph->loss;
    if (loss >= 0 && program->tensor_buffers[loss] >= 0)
        touch(program, program->tensor_buffers[loss], n - 1);
}

/* Whether input buffer `a` and output buffer `b` of an instruction hold the same elements in the
 * same order on every rank: the same dimensions, a renamed one under its new name, split alike. */
static bool same_slices(const MtfProgram *program, const MtfInstruction *instruction, int a,
                        int b) {
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    const MtfBuffer *x = mtf_program_buffer(program, a), *y = mtf_program_buffer(program, b);
    const MtfTensor *s = mtf_graph_tensor(program->graph, x->tensor);
    const MtfTensor *t = mtf_graph_tensor(program->graph, y->tensor);
    bool renames = instruction->kind == MTF_INSTRUCTION_KERNEL &&
                   mtf_operation_row(op->kind)->dims == MTF_DIMS_RENAMED;
    if (s->dtype != t->dtype || s->shape.rank != t->shape.rank)
        return false;
    for (int i = 0; i < s->shape.rank; i++) {
        int d = s->shape.dims[i], e = t->shape.dims[i];
        bool renamed = renames && d == op->attributes.from && e == op->attributes.to;
        if ((d != e && !renamed) || mtf_placement_split_axes(&x->placement, d) !=
                                        mtf_placement_split_axes(&y->placement, e))
            return false;
    }
    return true;
}

/* The output that may take the place of an input: of a step the one that holds the same tensor. */
static int output_over(const MtfInstruction *instruction, int input) {
    return instruction->outputs[instruction->kind == MTF_INSTRUCTION_RESHARD ? input : 0];
}

/* Bit k: an output may overwrite input k of the instruction. */
static unsigned overwritable(const MtfProgram *program, const MtfInstruction *instruction) {
    if (instruction->kind == MTF_INSTRUCTION_KERNEL)
        return mtf_operation_row(mtf_graph_operation(program->graph, instruction->operation)->kind)
            ->in_place;
    return mtf_reshard_row(instruction->reshard.kind)->in_place;
}

/* Whether an output may overwrite whatever the instruction reads from `buffer`. */
static bool reads_only_overwritable(const MtfProgram *program, const MtfInstruction *instruction,
                                    int buffer) {
    unsigned mask = overwritable(program, instruction);
    for (int k = 0; k < instruction->n_inputs; k++)
        if (instruction->inputs[k] == buffer &&
            !(mask >> MIN(k, 31) & 1 &&
              same_slices(program, instruction, buffer, output_over(instruction, k))))
            return false;
    return true;
}

/* What another stage reads has bytes of its own, before and after: it may still be on its way when what
 * its inputs held, or its readers make, is written. */
static bool is_sent(const MtfProgram *program, const MtfBuffer *buffer) {
    return buffer->tensor >= 0 && mtf_graph_tensor(program->graph, buffer->tensor)->is_sent;
}

bool mtf_instruction_may_overwrite(const MtfProgram *program, int index, int input) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    const MtfBuffer *from = mtf_program_buffer(program, instruction->inputs[input]);
    int output = output_over(instruction, input);
    const MtfBuffer *to = mtf_program_buffer(program, output);
    return !owner_of(program, instruction->inputs[input])->persistent &&
           !owner_of(program, output)->persistent && !is_sent(program, from) &&
           !is_sent(program, to) && from->bytes >= to->bytes &&
           reads_only_overwritable(program, instruction, instruction->inputs[input]);
}

/* Output 0 of a kernel takes the storage of the first input that dies here and may be overwritten,
 * every output of a step that of its own. What shares a variable's storage already stays there. */
static void share_storage(MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    for (int k = 0; k < instruction->n_inputs; k++) {
        MtfBuffer *output = mtf_program_buffer(program, output_over(instruction, k));
        MtfBuffer *owner = owner_of(program, instruction->inputs[k]);
        if (owner->last != index || (instruction->loop > 0 && owner->carried) ||
            !mtf_instruction_may_overwrite(program, index, k))
            continue;
        if (instruction->loop > 0 && owner_of(program, output_over(instruction, k))->carried)
            continue;
        output->storage = mtf_program_storage(program, instruction->inputs[k]);
        owner->carried |= output->carried;
        owner->first = MIN(owner->first, output->first);
        owner->last = MAX(owner->last, output->last);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL)
            return;
    }
}

/* Points every buffer at the owner of its bytes and gives persistent ones the whole step. */
static void resolve_storages(MtfProgram *program) {
    int n = mtf_program_length(program);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        MtfBuffer *buffer = mtf_program_buffer(program, b);
        buffer->storage = mtf_program_storage(program, b);
        if (buffer->persistent) {
            buffer->first = 0;
            buffer->last = MAX(n - 1, 0);
        }
    }
}

/* ---- Pipeline stages ------------------------------------------------------------------------ */

bool mtf_buffer_is_fed(const MtfProgram *program, const MtfBuffer *buffer) {
    const MtfTensor *tensor = mtf_graph_tensor(program->graph, buffer->tensor);
    return tensor->source == MTF_SOURCE_INPUT && tensor->feed != MTF_FEED_TRANSFER_ONCE;
}

static bool is_updated(const MtfGraph *graph, int variable) {
    for (guint i = 0; i < graph->updates->len; i++)
        if (g_array_index(graph->updates, MtfUpdate, i).variable == variable)
            return true;
    return false;
}

/* Variables that a step changes and micro-batches read: steps that overlap read different versions. */
static void give_versions(MtfProgram *program) {
    for (int i = 0; i < program->n_repeated; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        for (int k = 0; k < instruction->n_inputs; k++) {
            MtfBuffer *owner = owner_of(program, instruction->inputs[k]);
            if (owner->persistent && !mtf_buffer_is_fed(program, owner) &&
                is_updated(program->graph, owner->tensor))
                owner->slots = program->layout->execution.stage.weight_versions;
        }
    }
}

/* Storages that hold sums over micro-batches: one for the whole step, whatever is in flight. */
static bool *find_sums(const MtfProgram *program) {
    bool *sums = g_new0(bool, program->buffers->len + 1);
    for (int i = 0; i < program->n_repeated; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL &&
            mtf_operation_accumulates(program->graph, instruction->operation))
            sums[mtf_program_storage(program, instruction->outputs[0])] = true;
    }
    return sums;
}

/* Whether a storage is written by one pass of a micro-batch (forward, input gradients, weight
 * gradients) and read by a later one, or leaves the stage: then other micro-batches come in
 * between. */
static bool waits_in_flight(const MtfProgram *program, const MtfBuffer *owner, int forward) {
    if (owner->persistent)
        return mtf_buffer_is_fed(program, owner);
    int half = program->weight_gradients;
    return owner->last < program->n_repeated &&
           (is_sent(program, owner) || (owner->first < forward && owner->last >= forward) ||
            (owner->first < half && owner->last >= half));
}

/* What one micro-batch leaves for later has a slot for each that may be in flight, and each lives
 * as long as micro-batches do:
 *
 *     micro-batch        0 F      1 F      0 B      2 F      1 B
 *     slot 0             [================]         [=============
 *     slot 1                      [=======================]
 *
 * and where steps overlap, beside what is done once a step: micro-batches of the next are in flight then. */
static void give_slots(MtfProgram *program) {
    g_autofree bool *sums = find_sums(program);
    int forward = mtf_program_forward(program);
    bool overlap = program->layout->execution.stage.weight_versions > 1;
    int last = overlap ? mtf_program_length(program) - 1 : program->n_repeated - 1;
    for (int b = 0; b < (int)program->buffers->len; b++) {
        MtfBuffer *owner = mtf_program_buffer(program, b);
        if (owner->storage != b || sums[b] || !waits_in_flight(program, owner, forward))
            continue;
        owner->slots = program->layout->execution.stage.in_flight;
        owner->first = 0;
        owner->last = owner->persistent ? owner->last : last;
    }
}

static void add_slots(MtfProgram *program) {
    if (program->layout->execution.stage.in_flight > 1)
        give_slots(program);
    if (program->layout->execution.stage.weight_versions > 1)
        give_versions(program);
}

/* What the last micro-batch sends may still be on its way while the stage does what it does once a step:
 * at the end of the step all has been taken, and before the next is written it is waited for. */
static void keep_sent(MtfProgram *program) {
    for (int t = 0; t < (int)program->graph->tensors->len; t++)
        if (mtf_graph_tensor(program->graph, t)->is_sent && program->tensor_buffers[t] >= 0)
            owner_of(program, program->tensor_buffers[t])->last = mtf_program_length(program) - 1;
}

static void wait_for_stages(MtfProgram *program) {
    add_slots(program);
    keep_sent(program);
}

void mtf_program_find_lifetimes(MtfProgram *program) {
    read_all(program);
    resolve_storages(program);
    wait_for_stages(program);
}

/* The buffers as lowering emitted them: kept at the first call, restored at every other. */
static void restore_buffers(MtfProgram *program) {
    gsize size = sizeof(MtfBuffer) * program->buffers->len;
    if (program->emitted_buffers == NULL)
        program->emitted_buffers = g_memdup2(program->buffers->data, size);
    else
        memcpy(program->buffers->data, program->emitted_buffers, size);
}

void mtf_program_alias_buffers(MtfProgram *program) {
    restore_buffers(program);
    read_all(program);
    for (int i = 0; i < mtf_program_length(program); i++)
        share_storage(program, i);
    resolve_storages(program);
    wait_for_stages(program);
}

int64_t *mtf_program_live(const MtfProgram *program) {
    int n = mtf_program_length(program);
    int64_t *live = g_new0(int64_t, n + 1);
    for (int b = 0; b < (int)program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(program, b);
        if (buffer->storage != b || buffer->first > buffer->last ||
            mtf_buffer_is_on_host(program, b))
            continue;
        live[buffer->first] += mtf_buffer_aligned_bytes(buffer);
        live[buffer->last + 1] -= mtf_buffer_aligned_bytes(buffer);
    }
    for (int i = 1; i < n; i++)
        live[i] += live[i - 1];
    return live;
}

int64_t mtf_program_most_live(const MtfProgram *program) {
    g_autofree int64_t *live = mtf_program_live(program);
    int64_t most = 0;
    for (int i = 0; i < mtf_program_length(program); i++)
        most = MAX(most, live[i]);
    return most;
}

static bool touches(const MtfProgram *program, const int *buffers, int n, int storage) {
    for (int k = 0; k < n; k++)
        if (mtf_program_buffer(program, buffers[k])->storage == storage)
            return true;
    return false;
}

bool mtf_instruction_depends(const MtfProgram *program, const MtfInstruction *early,
                             const MtfInstruction *late) {
    for (int k = 0; k < late->n_inputs; k++)
        if (touches(program, early->outputs, early->n_outputs,
                    mtf_program_buffer(program, late->inputs[k])->storage))
            return true;
    for (int k = 0; k < late->n_outputs; k++) {
        int storage = mtf_program_buffer(program, late->outputs[k])->storage;
        if (touches(program, early->outputs, early->n_outputs, storage) ||
            touches(program, early->inputs, early->n_inputs, storage))
            return true;
    }
    return false;
}
