// SPDX-License-Identifier: GPL-3.0-or-later
/* Lowering: for each operation in turn, bring its inputs into the placements its strategy wants,
 * run its kernel, and bring its outputs into the placements the layout keeps them in. Then
 * exchanges get room (overlap_windows.h), lifetimes are read off, outputs take the place of inputs
 * that die (lifetimes.h), and kernels that go over the same rows are brought together (fused_groups.h). */
#include "layouts/graph/loops.h"
#include "layouts/graph/microbatches.h"
#include "layouts/kernel_work/kernel_scratch.h"
#include "layouts/placement/sort_columns.h"
#include "layouts/program/kernel_measures.h"
#include "layouts/program/kernel_traffic.h"
#include "layouts/program/lifetimes.h"
#include "layouts/program/split_backward.h"

#include <string.h>

typedef struct {
    MtfProgram *program;
    const MtfGraph *graph;
    const MtfMesh *mesh;
    int *last_reader;      /* for each variable that is updated: the last operation that reads it */
    int *updated_variable; /* for each tensor: the variable whose next value it is, or -1 */
    int *gathered_copies;  /* MTF_PHASES a tensor: the buffer its consumers fetch from, or -1 */
    GArray *sums;          /* Kept: what micro-batches add up, until the last is done */
    MtfKernelMeasures measures;
    int loop;       /* whose iterations run what is emitted; 0: none */
    GArray *stacks; /* Kept: what the iterations of that loop leave, until the last is done */
    int **ready;    /* for each operation of that loop: the buffers of its inputs that were
                       brought into place before it, -1 for the others; else NULL */
} Lowering;

/* A result that has been computed and not yet been brought to where it is kept. */
typedef struct {
    int operation, tensor;
    int produced; /* the buffer that the kernel writes */
} Kept;

static MtfBuffer *buffer_at(const Lowering *lowering, int buffer) {
    return mtf_program_buffer(lowering->program, buffer);
}

static int new_buffer(Lowering *lowering, const MtfBuffer *buffer) {
    int id = (int)lowering->program->buffers->len;
    MtfBuffer copy = *buffer;
    copy.storage = id;
    g_array_append_val(lowering->program->buffers, copy);
    return id;
}

static int new_scratch(Lowering *lowering, int64_t bytes, MtfMemoryKind memory) {
    return new_buffer(lowering, &(MtfBuffer){ .tensor = -1,
                                              .placement = mtf_placement_replicated(),
                                              .memory = memory,
                                              .bytes = bytes });
}

static int new_copy(Lowering *lowering, int tensor, const MtfPlacement *placement,
                    MtfMemoryKind memory) {
    const MtfTensor *t = mtf_graph_tensor(lowering->graph, tensor);
    int64_t elements = mtf_largest_elements(lowering->graph, lowering->mesh, &t->shape, placement);
    return new_buffer(lowering, &(MtfBuffer){ .tensor = tensor,
                                              .placement = *placement,
                                              .memory = memory,
                                              .bytes = elements * mtf_dtype_bytes(t->dtype) });
}

/* What a buffer that holds a tensor counts as. */
static MtfMemoryKind memory_of(const Lowering *lowering, int tensor) {
    return mtf_tensor_is_on_host(lowering->graph, tensor)
               ? MTF_MEMORY_HOST
               : mtf_graph_tensor(lowering->graph, tensor)->memory;
}

/* The buffer of an input or variable, made on first use; results must have been computed. */
static int stored_buffer(Lowering *lowering, int tensor) {
    int *stored = &lowering->program->tensor_buffers[tensor];
    if (*stored >= 0)
        return *stored;
    const MtfTensor *t = mtf_graph_tensor(lowering->graph, tensor);
    *stored = new_copy(lowering, tensor, &lowering->program->layout->tensors[tensor],
                       memory_of(lowering, tensor));
    buffer_at(lowering, *stored)->persistent = t->producer < 0;
    return *stored;
}

static void emit(const Lowering *lowering, MtfInstruction *instruction) {
    instruction->loop = lowering->loop;
    g_array_append_vals(lowering->program->instructions, instruction, 1);
}

/* ---- Resharding ---------------------------------------------------------------------------- */

/* Elements of a reshard op: that it works in, and that a processor sends at most; and of margins how much of that
 * goes to one side, and how many parts on. */
typedef struct {
    int64_t scratch, payload, side, places;
} ReshardElements;

static ReshardElements reshard_elements(const Lowering *lowering, const MtfReshardOp *op,
                                        int source) {
    const MtfShape *shape =
        &mtf_graph_tensor(lowering->graph, buffer_at(lowering, source)->tensor)->shape;
    return (ReshardElements){
        .scratch = mtf_reshard_scratch(lowering->graph, lowering->mesh, shape, op),
        .payload = mtf_reshard_largest_payload(lowering->graph, lowering->mesh, shape, op)
    };
}

static void emit_reshard_op(Lowering *lowering, int operation, const MtfReshardOp *op, int source,
                            int target, ReshardElements elements) {
    const MtfTensor *tensor =
        mtf_graph_tensor(lowering->graph, buffer_at(lowering, source)->tensor);
    int64_t element = mtf_dtype_bytes(tensor->dtype);
    MtfInstruction instruction = {
        .kind = MTF_INSTRUCTION_RESHARD,
        .operation = operation,
        .reshard = *op,
        .n_inputs = 1,
        .inputs = g_memdup2(&source, sizeof source),
        .n_outputs = 1,
        .outputs = g_memdup2(&target, sizeof target),
        .scratch = -1,
        .kernel_class = MTF_CLASS_MOVE,
        .payload_bytes = elements.payload * element,
        .side_bytes = elements.side * element,
        .places = elements.places,
        .traffic_bytes = 2.0 * (double)(elements.scratch * element),
    };
    if (elements.scratch > 0)
        instruction.scratch =
            new_scratch(lowering, elements.scratch * element, MTF_MEMORY_COMMUNICATION);
    if (mtf_reshard_row(op->kind)->margins &&
        op->column == 0) /* what a processor has itself is copied as well */
        instruction.traffic_bytes += 2.0 * (double)buffer_at(lowering, target)->bytes;
    if (!mtf_reshard_row(op->kind)->collective)
        instruction.traffic_bytes = 2.0 * (double)buffer_at(lowering, target)->bytes;
    emit(lowering, &instruction);
}

/* Walks `path` from buffer `source`; the last step writes `target`, or a new buffer when that is
 * -1. Returns the buffer at the end. */
static int emit_path(Lowering *lowering, int operation, const MtfReshardPath *path, int source,
                     int target, MtfMemoryKind memory) {
    int tensor = buffer_at(lowering, source)->tensor;
    for (int i = 0; i < path->n_ops; i++) {
        bool last = i + 1 == path->n_ops;
        int next =
            last && target >= 0 ? target : new_copy(lowering, tensor, &path->ops[i].to, memory);
        emit_reshard_op(lowering, operation, &path->ops[i], source, next,
                        reshard_elements(lowering, &path->ops[i], source));
        source = next;
    }
    return source;
}

static void find_path(const Lowering *lowering, int buffer, const MtfPlacement *placement,
                      MtfReshardPath *path) {
    const MtfBuffer *source = buffer_at(lowering, buffer);
    const MtfShape *shape = &mtf_graph_tensor(lowering->graph, source->tensor)->shape;
    mtf_reshard_path(lowering->graph, lowering->mesh, shape, &source->placement, placement, path);
}

static int reshard(Lowering *lowering, int operation, int source, const MtfPlacement *placement) {
    MtfReshardPath path;
    find_path(lowering, source, placement, &path);
    return emit_path(lowering, operation, &path, source, -1, MTF_MEMORY_COMMUNICATION);
}

/* The buffer that the operation's phase reads `tensor` from: the stored one, or a copy that the
 * phase's first consumer makes for all. */
static int gathered_buffer(Lowering *lowering, int operation, int tensor) {
    MtfPhase phase = mtf_graph_operation(lowering->graph, operation)->phase;
    int stored = stored_buffer(lowering, tensor);
    int *gathered_copy = &lowering->gathered_copies[tensor * MTF_PHASES + (int)phase];
    if (*gathered_copy < 0)
        *gathered_copy =
            reshard(lowering, operation, stored,
                    mtf_layout_phase_placement(lowering->program->layout, tensor, phase));
    return *gathered_copy;
}

/* A buffer that holds `tensor` in `placement`. */
static int obtain(Lowering *lowering, int operation, int tensor, const MtfPlacement *placement) {
    return reshard(lowering, operation, gathered_buffer(lowering, operation, tensor), placement);
}

/* Input `k` of an operation in `placement`; where its windows reach over the edges of what some
 * processor holds, with margins, which nothing else reads. */
static int obtain_input(Lowering *lowering, int operation, int k, const MtfPlacement *placement) {
    const MtfOperation *op = mtf_graph_operation(lowering->graph, operation);
    const MtfTensor *tensor = mtf_graph_tensor(lowering->graph, op->inputs[k]);
    const MtfReader reader = { operation, k };
    int source = obtain(lowering, operation, op->inputs[k], placement);
    unsigned axes =
        mtf_margins_axes(lowering->graph, lowering->mesh, &tensor->shape, placement, reader);
    if (axes == 0)
        return source;
    MtfMarginsMost most =
        mtf_margins_most(lowering->graph, lowering->mesh, &tensor->shape, placement, reader);
    int target =
        new_buffer(lowering, &(MtfBuffer){ .tensor = op->inputs[k],
                                           .placement = *placement,
                                           .margined = true,
                                           .reader = reader,
                                           .memory = MTF_MEMORY_COMMUNICATION,
                                           .bytes = most.read * mtf_dtype_bytes(tensor->dtype) });
    bool turns = op->attributes.wrap != 0;
    MtfReshardOp halo = { .kind = turns ? MTF_RESHARD_PERMUTE : MTF_RESHARD_HALO,
                          .axes = axes,
                          .from = *placement,
                          .to = *placement,
                          .reader = reader };
    emit_reshard_op(lowering, operation, &halo, source, target,
                    (ReshardElements){ most.exchanged, most.sent, most.side, most.places });
    return target;
}

/* ---- Kernels ------------------------------------------------------------------------------- */

/* Of a kernel that runs as the strategy says. */
static void measure_kernel(Lowering *lowering, MtfAlikeOperations *alike,
                           const MtfStrategy *strategy, MtfInstruction *instruction) {
    const MtfOperation *op = mtf_graph_operation(lowering->graph, instruction->operation);
    MtfKernelMeasure measure =
        mtf_kernel_measures_find(&lowering->measures, alike, instruction->operation, strategy);
    instruction->kernel_class = mtf_operation_row(op->kind)->kernel_class;
    instruction->flops = measure.flops;
    instruction->multiply_adds = measure.multiply_adds;
    instruction->products = measure.products;
    instruction->block_side = measure.block_side;
    instruction->row_length = measure.row_length;
    instruction->traffic_bytes = mtf_kernel_traffic(lowering->program, instruction);
    if (measure.scratch_bytes > 0)
        instruction->scratch = new_scratch(lowering, measure.scratch_bytes, MTF_MEMORY_WORKSPACE);
}

static const MtfStrategy *strategy_of(const Lowering *lowering, int operation) {
    return &lowering->program->layout->operations[operation];
}

static void emit_kernel(Lowering *lowering, int operation, MtfAlikeOperations *alike,
                        const MtfStrategy *strategy, int *inputs) {
    const MtfOperation *op = mtf_graph_operation(lowering->graph, operation);
    MtfInstruction instruction = {
        .kind = MTF_INSTRUCTION_KERNEL,
        .operation = operation,
        .n_inputs = op->n_inputs,
        .inputs = inputs,
        .n_outputs = op->n_outputs,
        .outputs = g_new(int, op->n_outputs),
        .scratch = -1,
    };
    for (int k = 0; k < op->n_outputs; k++) {
        MtfPlacement placement =
            mtf_strategy_output(lowering->graph, operation, &alike->iteration, strategy, k);
        instruction.outputs[k] =
            new_copy(lowering, op->outputs[k], &placement, memory_of(lowering, op->outputs[k]));
    }
    measure_kernel(lowering, alike, strategy, &instruction);
    emit(lowering, &instruction);
}

/* Brings an output into the placement it is kept in. */
static void keep_output(Lowering *lowering, const Kept *kept) {
    MtfReshardPath path;
    find_path(lowering, kept->produced, &lowering->program->layout->tensors[kept->tensor], &path);
    MtfMemoryKind memory = memory_of(lowering, kept->tensor);
    lowering->program->tensor_buffers[kept->tensor] =
        emit_path(lowering, kept->operation, &path, kept->produced, -1, memory);
}

/* Keeps the outputs of the kernel just emitted; sums over micro-batches when the last is done. */
static void keep_outputs(Lowering *lowering, int operation) {
    const MtfOperation *op = mtf_graph_operation(lowering->graph, operation);
    int produced[MTF_MAX_OUTPUTS];
    int kernel = mtf_program_length(lowering->program) - 1;
    memcpy(produced, mtf_program_instruction(lowering->program, kernel)->outputs,
           sizeof *produced * (gsize)op->n_outputs);
    for (int k = 0; k < op->n_outputs; k++) {
        Kept kept = { operation, op->outputs[k], produced[k] };
        if (mtf_operation_accumulates(lowering->graph, operation))
            g_array_append_val(lowering->sums, kept);
        else if (mtf_operation_loop_part(lowering->graph, operation) == MTF_LOOP_STACKS)
            g_array_append_val(lowering->stacks, kept);
        else
            keep_output(lowering, &kept);
    }
}

/* All that runs once a micro-batch has been emitted. */
static void end_repetition(Lowering *lowering) {
    lowering->program->n_repeated = mtf_program_length(lowering->program);
    for (guint i = 0; i < lowering->sums->len; i++)
        keep_output(lowering, &g_array_index(lowering->sums, Kept, i));
}

/* ---- Updates of variables ------------------------------------------------------------------ */

/* Whether the kernel that wrote `value` may write it over `variable`: it does not read the
 * variable, or reads it only as the input that this output may overwrite. */
static bool may_overwrite(const Lowering *lowering, const MtfInstruction *kernel, int value,
                          int variable) {
    const MtfOperation *op = mtf_graph_operation(lowering->graph, kernel->operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    int output = 0;
    while (kernel->outputs[output] != value)
        output++;
    for (int k = 0; k < kernel->n_inputs; k++) {
        bool allowed = row->separate ? false
                       : output == 0 ? k < 32 && (row->in_place >> k & 1)
                                     : row->outputs_like[output] == k;
        if (kernel->inputs[k] == variable && !allowed)
            return false;
    }
    return true;
}

/* The kernel among the newest instructions that wrote `buffer`, or NULL when a step did. */
static const MtfInstruction *writing_kernel(const Lowering *lowering, int buffer) {
    for (int i = mtf_program_length(lowering->program) - 1; i >= 0; i--) {
        const MtfInstruction *instruction = mtf_program_instruction(lowering->program, i);
        for (int k = 0; k < instruction->n_outputs; k++)
            if (instruction->outputs[k] == buffer)
                return instruction->kind == MTF_INSTRUCTION_KERNEL ? instruction : NULL;
    }
    return NULL;
}

/* Moves a variable's next value into the variable's buffer; where the kernel can write it there
 * itself, by sharing the storage. */
static void emit_update(Lowering *lowering, int operation, int variable, int value) {
    int target = stored_buffer(lowering, variable);
    int source = lowering->program->tensor_buffers[value];
    MtfReshardPath path;
    find_path(lowering, source, &buffer_at(lowering, target)->placement, &path);
    if (path.n_ops > 0) {
        emit_path(lowering, operation, &path, source, target, MTF_MEMORY_COMMUNICATION);
        return;
    }
    const MtfInstruction *kernel = writing_kernel(lowering, source);
    if (lowering->last_reader[variable] <= operation && kernel != NULL &&
        kernel->operation == operation && kernel->loop == lowering->loop &&
        may_overwrite(lowering, kernel, source, target)) {
        buffer_at(lowering, source)->storage = target;
        return;
    }
    MtfPlacement placement = buffer_at(lowering, source)->placement;
    MtfReshardOp op = { .kind = MTF_RESHARD_COPY, .from = placement, .to = placement };
    emit_reshard_op(lowering, operation, &op, source, target,
                    reshard_elements(lowering, &op, source));
}

/* A state takes its next value, which nothing in the loop reads any more. */
static void hand_on(Lowering *lowering, int operation, int state, int next) {
    emit_update(lowering, operation, state, next);
    buffer_at(lowering, stored_buffer(lowering, state))->carried = true;
}

/* Updates whose variable is not read any more run at once; the others when the step ends, and so do those by
 * what a loop leaves, which is complete behind its last iteration. */
static void emit_ripe_updates(Lowering *lowering, int operation) {
    const MtfOperation *op = mtf_graph_operation(lowering->graph, operation);
    if (mtf_operation_loop_part(lowering->graph, operation) == MTF_LOOP_HANDS_ON)
        hand_on(lowering, operation, op->inputs[0], op->outputs[0]);
    for (int k = 0; k < op->n_outputs; k++) {
        int variable = lowering->updated_variable[op->outputs[k]];
        if (variable >= 0 && op->loop == 0 && lowering->last_reader[variable] <= operation)
            emit_update(lowering, operation, variable, op->outputs[k]);
    }
}

static void emit_late_updates(Lowering *lowering) {
    const GArray *updates = lowering->graph->updates;
    for (guint i = 0; i < updates->len; i++) {
        const MtfUpdate *update = &g_array_index(updates, MtfUpdate, i);
        int producer = mtf_graph_tensor(lowering->graph, update->value)->producer;
        if (producer < 0 || mtf_graph_operation(lowering->graph, producer)->loop > 0 ||
            lowering->last_reader[update->variable] > producer)
            emit_update(lowering, MAX(producer, 0), update->variable, update->value);
    }
}

/* ---- Along a split dimension --------------------------------------------------------------- */

/* What an operation does along its dimension, where that is split. */
typedef struct {
    Lowering *lowering;
    int operation;
    MtfAlikeOperations *alike;
    MtfPlacement placement; /* of what it reads and makes */
    unsigned axes;
    int64_t column;
    int tensors[2]; /* whose elements columns hold, and their places */
} Along;

static int new_column(const Along *s, int k) {
    const MtfTensor *t = mtf_graph_tensor(s->lowering->graph, s->tensors[k]);
    int dim = mtf_column_dimension(mtf_graph_operation(s->lowering->graph, s->operation));
    int64_t rows =
        mtf_sort_rows(s->lowering->graph, s->lowering->mesh, &t->shape, &s->placement, dim, -1);
    return new_buffer(s->lowering,
                      &(MtfBuffer){ .tensor = s->tensors[k],
                                    .placement = s->placement,
                                    .reader = { s->operation, 0 },
                                    .column = s->column,
                                    .memory = MTF_MEMORY_COMMUNICATION,
                                    .bytes = rows * s->column * mtf_dtype_bytes(t->dtype) });
}

/* One of several kernels: its number and its operands. */
typedef struct {
    int part, n_inputs, n_outputs;
    const int *inputs, *outputs;
} Part;

/* With scratch to sort `places` elements in. */
static void emit_part(const Along *s, const Part *part, int64_t places) {
    MtfInstruction instruction = {
        .kind = MTF_INSTRUCTION_KERNEL,
        .operation = s->operation,
        .part = part->part,
        .columns = mtf_mesh_group_size(s->lowering->mesh, s->axes),
        .n_inputs = part->n_inputs,
        .inputs = g_memdup2(part->inputs, sizeof *part->inputs * (gsize)part->n_inputs),
        .n_outputs = part->n_outputs,
        .outputs = g_memdup2(part->outputs, sizeof *part->outputs * (gsize)part->n_outputs),
        .scratch = -1,
    };
    measure_kernel(s->lowering, s->alike, strategy_of(s->lowering, s->operation), &instruction);
    if (places > 0 && instruction.scratch < 0)
        instruction.scratch = new_scratch(s->lowering, 0, MTF_MEMORY_WORKSPACE);
    if (places > 0)
        buffer_at(s->lowering, instruction.scratch)->bytes = mtf_sort_scratch_bytes(places);
    emit(s->lowering, &instruction);
}

/* Sends n columns: of elements, and of places; `columns` becomes what arrives. */
static void emit_column_exchange(const Along *s, MtfReshardKind kind, int n, int *columns) {
    MtfReshardOp op = { .kind = kind,
                        .axes = s->axes,
                        .from = s->placement,
                        .to = s->placement,
                        .reader = { s->operation, 0 },
                        .column = s->column };
    for (int k = 0; k < n; k++) {
        int target = new_column(s, k);
        ReshardElements elements = reshard_elements(s->lowering, &op, columns[k]);
        elements.side = elements.payload / 2;
        elements.places = 1;
        emit_reshard_op(s->lowering, s->operation, &op, columns[k], target, elements);
        columns[k] = target;
    }
}

static void emit_by_columns(const Along *s, const int *inputs) {
    const MtfOperation *op = mtf_graph_operation(s->lowering->graph, s->operation);
    int columns[4], outputs[MTF_MAX_OUTPUTS];
    for (int part = 1; part <= 3; part++) {
        int made[2] = { new_column(s, 0), new_column(s, 1) };
        emit_part(
            s, &(Part){ part, part == 1 ? op->n_inputs : 2, 2, part == 1 ? inputs : columns, made },
            s->column);
        memcpy(columns, made, sizeof made);
        if (part < 3)
            emit_column_exchange(s, MTF_RESHARD_ALLTOALL, 2, columns);
    }
    columns[2] = columns[0];
    columns[3] = columns[1];
    emit_column_exchange(s, MTF_RESHARD_HALO, 2, columns + 2);
    for (int k = 0; k < op->n_outputs; k++)
        outputs[k] = new_copy(s->lowering, op->outputs[k], &s->placement,
                              memory_of(s->lowering, op->outputs[k]));
    emit_part(s, &(Part){ 4, 4, op->n_outputs, columns, outputs }, 2 * s->column);
}

/* Each part looks among all elements for its own; of a gradient, which is a sum of what they have, each makes all
 * with what it has. */
static void emit_by_all(const Along *s, const int *given) {
    Lowering *lowering = s->lowering;
    MtfPlacement whole = s->placement, partial = s->placement;
    for (int a = 0; a < lowering->mesh->n_axes; a++)
        if (s->axes >> a & 1) {
            whole.axis[a] = MTF_REPLICATED;
            partial.axis[a] = MTF_PARTIAL_SUM;
        }
    const MtfOperation *op = mtf_graph_operation(lowering->graph, s->operation);
    bool adds = op->n_outputs == 1;
    int *inputs = g_memdup2(given, sizeof *given * (gsize)op->n_inputs);
    inputs[0] = adds ? inputs[0] : reshard(lowering, s->operation, inputs[0], &whole);
    emit_kernel(lowering, s->operation, s->alike, strategy_of(lowering, s->operation), inputs);
    if (!adds)
        return;
    int kernel = mtf_program_length(lowering->program) - 1;
    int sum = mtf_program_instruction(lowering->program, kernel)->outputs[0];
    const MtfTensor *result = mtf_graph_tensor(lowering->graph, op->outputs[0]);
    buffer_at(lowering, sum)->placement = partial;
    buffer_at(lowering, sum)->bytes =
        mtf_dtype_bytes(result->dtype) *
        mtf_largest_elements(lowering->graph, lowering->mesh, &result->shape, &partial);
    reshard(lowering, s->operation, sum, &s->placement);
}

static void emit_sorted(Along *s, const int *inputs) {
    const MtfOperation *op = mtf_graph_operation(s->lowering->graph, s->operation);
    s->column =
        mtf_sort_column(s->lowering->graph, op, mtf_mesh_group_size(s->lowering->mesh, s->axes));
    if (s->column > 0)
        emit_by_columns(s, inputs);
    else
        emit_by_all(s, inputs);
}

/* Each part tells all others its total, once to each of them: a column of as many places, or as many times those that a
 * total takes. */
static void emit_with_totals(Along *s, const int *inputs) {
    const MtfOperation *op = mtf_graph_operation(s->lowering->graph, s->operation);
    MtfDtype dtype = mtf_graph_tensor(s->lowering->graph, op->outputs[0])->dtype;
    s->column = mtf_mesh_group_size(s->lowering->mesh, s->axes) * mtf_total_places(dtype);
    int totals = new_column(s, 0);
    emit_part(s, &(Part){ 1, 1, 1, inputs, &totals }, 0);
    emit_column_exchange(s, MTF_RESHARD_ALLTOALL, 1, &totals);
    int output = new_copy(s->lowering, op->outputs[0], &s->placement,
                          memory_of(s->lowering, op->outputs[0]));
    const int read[] = { inputs[0], totals };
    emit_part(s, &(Part){ 2, 2, 1, read, &output }, 0);
}

/* All elements, of which each part chooses: as where its strategy splits nothing there. */
static void choose_of_all(const Along *s, int input) {
    MtfPlacement whole = s->placement;
    MtfStrategy strategy = *strategy_of(s->lowering, s->operation);
    for (int a = 0; a < s->lowering->mesh->n_axes; a++)
        if (s->axes >> a & 1) {
            whole.axis[a] = MTF_REPLICATED;
            strategy.axis[a] = MTF_DUPLICATED;
        }
    int *inputs = g_new(int, 1);
    inputs[0] = reshard(s->lowering, s->operation, input, &whole);
    emit_kernel(s->lowering, s->operation, s->alike, &strategy, inputs);
}

/* Each part tells all others its best, of which each chooses. */
static void emit_with_candidates(Along *s, int input) {
    Lowering *lowering = s->lowering;
    const MtfOperation *op = mtf_graph_operation(lowering->graph, s->operation);
    int parts = mtf_mesh_group_size(lowering->mesh, s->axes);
    int64_t candidates = mtf_choice_candidates(lowering->graph, op, parts);
    if (candidates == 0) {
        choose_of_all(s, input);
        return;
    }
    for (int a = 0; a < lowering->mesh->n_axes; a++)
        s->placement.axis[a] =
            (int16_t)(s->axes >> a & 1 ? op->attributes.to : s->placement.axis[a]);
    s->column = candidates;
    int columns[2] = { new_column(s, 0), new_column(s, 1) }, outputs[2];
    emit_part(s, &(Part){ 1, 1, 2, &input, columns }, 0);
    s->column = parts * candidates;
    emit_column_exchange(s, MTF_RESHARD_ALLGATHER, 2, columns);
    for (int k = 0; k < 2; k++) {
        MtfPlacement placement =
            mtf_strategy_output(lowering->graph, s->operation, &s->alike->iteration,
                                strategy_of(lowering, s->operation), k);
        outputs[k] =
            new_copy(lowering, op->outputs[k], &placement, memory_of(lowering, op->outputs[k]));
    }
    emit_part(s, &(Part){ 2, 2, 2, columns, outputs }, 0);
}

static void emit_along(Along *s, const int *inputs) {
    const MtfOperation *op = mtf_graph_operation(s->lowering->graph, s->operation);
    MtfAlong along = mtf_operation_row(op->kind)->along;
    int first = mtf_program_length(s->lowering->program);
    s->tensors[0] = op->outputs[0];
    s->tensors[1] = op->n_outputs > 1 ? op->outputs[1] : op->inputs[0];
    if (along == MTF_ALONG_SUMS)
        emit_with_totals(s, inputs);
    else if (along == MTF_ALONG_CHOOSES)
        emit_with_candidates(s, inputs[0]);
    else
        emit_sorted(s, inputs);
    for (int i = first; i < mtf_program_length(s->lowering->program); i++)
        mtf_program_instruction(s->lowering->program, i)->inner =
            mtf_program_instruction(s->lowering->program, i)->kind == MTF_INSTRUCTION_RESHARD;
}

/* Fetches the inputs and runs the kernel, or kernels. */
static void emit_inputs_and_kernel(Lowering *lowering, int operation) {
    const MtfOperation *op = mtf_graph_operation(lowering->graph, operation);
    const MtfStrategy *strategy = strategy_of(lowering, operation);
    MtfAlikeOperations *alike = mtf_kernel_measures_of(&lowering->measures, operation);
    Along along = { .lowering = lowering, .operation = operation, .alike = alike };
    int *inputs = g_new(int, op->n_inputs);
    for (int k = 0; k < op->n_inputs; k++) {
        MtfPlacement placement =
            mtf_strategy_input(lowering->graph, operation, &alike->iteration, strategy, k);
        const int *ready = lowering->ready != NULL ? lowering->ready[operation] : NULL;
        inputs[k] = ready != NULL && ready[k] >= 0
                        ? ready[k]
                        : obtain_input(lowering, operation, k, &placement);
        along.placement = placement;
    }
    if (mtf_operation_along(op) >= 0)
        along.axes = mtf_placement_split_axes(&along.placement, mtf_operation_along(op));
    if (mtf_mesh_group_size(lowering->mesh, along.axes) == 1) {
        emit_kernel(lowering, operation, alike, strategy, inputs);
        return;
    }
    emit_along(&along, inputs);
    g_free(inputs);
}

static void emit_operation(Lowering *lowering, int operation) {
    emit_inputs_and_kernel(lowering, operation);
    keep_outputs(lowering, operation);
    emit_ripe_updates(lowering, operation);
}

/* ---- Loops --------------------------------------------------------------------------------- */

/* Brings into place what an operation of a loop reads of the time before it. */
static void make_ready(Lowering *lowering, int operation) {
    const MtfOperation *op = mtf_graph_operation(lowering->graph, operation);
    MtfIteration iteration;
    mtf_operation_iteration(lowering->graph, operation, &iteration);
    int *ready = lowering->ready[operation] = g_new(int, op->n_inputs + 1);
    for (int k = 0; k < op->n_inputs; k++) {
        int tensor = op->inputs[k];
        ready[k] = -1;
        if (mtf_operation_reads_anew(lowering->graph, op, tensor))
            continue;
        MtfPlacement placement =
            mtf_strategy_input(lowering->graph, operation, &iteration,
                               &lowering->program->layout->operations[operation], k);
        ready[k] = obtain_input(lowering, operation, k, &placement);
    }
}

/* Operations [begin, end) are those of a loop. */
static void begin_loop(Lowering *lowering, int begin, int end) {
    lowering->ready = g_new0(int *, lowering->graph->operations->len + 1);
    for (int i = begin; i < end; i++)
        make_ready(lowering, i);
    lowering->loop = mtf_graph_operation(lowering->graph, begin)->loop;
}

static void end_loop(Lowering *lowering) {
    lowering->loop = 0;
    for (guint i = 0; i < lowering->stacks->len; i++)
        keep_output(lowering, &g_array_index(lowering->stacks, Kept, i));
    g_array_set_size(lowering->stacks, 0);
    for (guint i = 0; lowering->ready != NULL && i < lowering->graph->operations->len; i++)
        g_free(lowering->ready[i]);
    g_clear_pointer(&lowering->ready, g_free);
}

/* The end of the loop that operation `begin` is in, or of the operation where it is in none. */
static int end_of_loop(const MtfGraph *graph, int begin, int end) {
    int loop = mtf_graph_operation(graph, begin)->loop, last = begin + 1;
    while (loop > 0 && last < end && mtf_graph_operation(graph, last)->loop == loop)
        last++;
    return last;
}

/* Emits operations [begin, end), which begin and end no loop in its middle. */
static void emit_operations(Lowering *lowering, int begin, int end) {
    for (int i = begin; i < end;) {
        int last = end_of_loop(lowering->graph, i, end);
        bool loops = mtf_graph_operation(lowering->graph, i)->loop > 0;
        if (loops)
            begin_loop(lowering, i, last);
        for (; i < last; i++)
            emit_operation(lowering, i);
        if (loops)
            end_loop(lowering);
    }
}

/* ---- Entry --------------------------------------------------------------------------------- */

static int *filled(guint n, int value) {
    int *array = g_new(int, n + 1);
    for (guint i = 0; i < n; i++)
        array[i] = value;
    return array;
}

/* Reserves the instructions and buffers that `n_operations` operations are usually lowered to: lists of
 * large graphs take long to move when they grow. */
static MtfProgram *program_new(const MtfGraph *graph, const MtfLayout *layout, guint n_tensors,
                               guint n_operations) {
    MtfProgram *program = g_new0(MtfProgram, 1);
    program->graph = graph;
    program->layout = layout;
    program->instructions =
        g_array_sized_new(FALSE, FALSE, sizeof(MtfInstruction), n_operations + n_operations / 2);
    g_array_set_clear_func(program->instructions, mtf_instruction_clear);
    program->buffers = g_array_sized_new(FALSE, FALSE, sizeof(MtfBuffer), 2 * n_operations);
    program->microbatches = layout->execution.division.microbatches;
    program->tensor_buffers = filled(n_tensors, -1);
    return program;
}

static void find_updated(Lowering *lowering) {
    const GArray *updates = lowering->graph->updates;
    for (guint i = 0; i < updates->len; i++) {
        const MtfUpdate *update = &g_array_index(updates, MtfUpdate, i);
        lowering->updated_variable[update->value] = update->variable;
    }
}

static void lowering_init(Lowering *lowering, const MtfGraph *graph, const MtfLayout *layout,
                          guint n_operations) {
    guint n = graph->tensors->len;
    g_assert(layout->execution.division.microbatches == mtf_graph_microbatches(graph));
    *lowering = (Lowering){
        .program = program_new(graph, layout, n, n_operations),
        .graph = graph,
        .mesh = &layout->mesh,
        .last_reader = filled(n, -1),
        .updated_variable = filled(n, -1),
        .gathered_copies = filled(n * MTF_PHASES, -1),
        .sums = g_array_new(FALSE, FALSE, sizeof(Kept)),
        .stacks = g_array_new(FALSE, FALSE, sizeof(Kept)),
    };
    mtf_kernel_measures_init(&lowering->measures, graph, &layout->mesh, n_operations > 1);
    find_updated(lowering);
}

static void lowering_clear(Lowering *lowering) {
    mtf_kernel_measures_clear(&lowering->measures);
    g_free(lowering->last_reader);
    g_free(lowering->updated_variable);
    g_free(lowering->gathered_copies);
    g_array_unref(lowering->sums);
    g_array_unref(lowering->stacks);
}

static void find_last_readers(Lowering *lowering) {
    for (int i = 0; i < (int)lowering->graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(lowering->graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            lowering->last_reader[op->inputs[k]] = i;
    }
}

MtfProgram *mtf_program_emit(const MtfGraph *graph, const MtfLayout *layout) {
    Lowering lowering;
    lowering_init(&lowering, graph, layout, graph->operations->len);
    find_last_readers(&lowering);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->producer < 0)
            stored_buffer(&lowering, t);
    int repeated = mtf_graph_repeated(graph);
    emit_operations(&lowering, 0, repeated);
    end_repetition(&lowering);
    emit_operations(&lowering, repeated, (int)graph->operations->len);
    emit_late_updates(&lowering);
    lowering_clear(&lowering);
    mtf_program_split_backward(lowering.program);
    return lowering.program;
}

MtfProgram *mtf_lower_as_written(const MtfGraph *graph, const MtfLayout *layout) {
    MtfProgram *program = mtf_program_emit(graph, layout);
    mtf_program_alias_buffers(program);
    return program;
}

MtfProgram *mtf_lower_operation(const MtfGraph *graph, const MtfLayout *layout, int operation) {
    Lowering lowering;
    lowering_init(&lowering, graph, layout, 1);
    emit_operations(&lowering, operation, operation + 1);
    if (mtf_phase_repeats(graph, mtf_graph_operation(graph, operation)->phase))
        end_repetition(&lowering);
    lowering.program->weight_gradients = lowering.program->n_repeated;
    mtf_program_find_lifetimes(lowering.program);
    lowering_clear(&lowering);
    return lowering.program;
}

MtfProgram *mtf_lower_path(const MtfGraph *graph, const MtfLayout *layout, int tensor,
                           const MtfPlacement *from, const MtfPlacement *to) {
    Lowering lowering = { .graph = graph, .mesh = &layout->mesh };
    lowering.program = program_new(graph, layout, 0, 0);
    MtfReshardPath path;
    int source = new_copy(&lowering, tensor, from, MTF_MEMORY_ACTIVATION);
    find_path(&lowering, source, to, &path);
    emit_path(&lowering, 0, &path, source, -1, MTF_MEMORY_COMMUNICATION);
    return lowering.program;
}
