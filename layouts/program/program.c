// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/program.h"

#include "layouts/graph/loops.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/window.h"
#include "layouts/placement/sort_columns.h"

#include <inttypes.h>
#include <string.h>

void mtf_program_free(MtfProgram *program) {
    if (program == NULL)
        return;
    g_array_unref(program->instructions);
    g_array_unref(program->buffers);
    g_free(program->tensor_buffers);
    g_free(program->emitted_buffers);
    g_free(program);
}

void mtf_instruction_clear(gpointer instruction) {
    g_free(((MtfInstruction *)instruction)->inputs);
    g_free(((MtfInstruction *)instruction)->outputs);
}

MtfInstruction *mtf_program_instruction(const MtfProgram *program, int index) {
    return &g_array_index(program->instructions, MtfInstruction, index);
}

MtfBuffer *mtf_program_buffer(const MtfProgram *program, int index) {
    return &g_array_index(program->buffers, MtfBuffer, index);
}

bool mtf_buffer_is_on_host(const MtfProgram *program, int buffer) {
    int storage = mtf_program_buffer(program, buffer)->storage;
    return mtf_program_buffer(program, storage)->memory == MTF_MEMORY_HOST;
}

MtfHostCopy mtf_instruction_host_copy(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    if (instruction->kind != MTF_INSTRUCTION_KERNEL)
        return MTF_HOST_NOTHING;
    return mtf_operation_row(mtf_graph_operation(program->graph, instruction->operation)->kind)
        ->host;
}

bool mtf_instruction_travels(const MtfProgram *program, int index) {
    return mtf_instruction_is_collective(mtf_program_instruction(program, index)) ||
           mtf_instruction_host_copy(program, index) != MTF_HOST_NOTHING;
}

int64_t mtf_instruction_host_bytes(const MtfProgram *program, int index, int rank) {
    if (mtf_instruction_host_copy(program, index) == MTF_HOST_NOTHING)
        return 0;
    const MtfBuffer *buffer =
        mtf_program_buffer(program, mtf_program_instruction(program, index)->outputs[0]);
    const MtfTensor *tensor = mtf_graph_tensor(program->graph, buffer->tensor);
    int64_t bytes = mtf_dtype_bytes(tensor->dtype);
    if (rank < 0)
        return buffer->bytes;
    for (int i = 0; i < tensor->shape.rank; i++) {
        MtfRange range = mtf_buffer_range(program, buffer, tensor->shape.dims[i], rank);
        bytes *= range.end - range.begin;
    }
    return bytes;
}

int64_t mtf_buffer_stride(const MtfBuffer *buffer) {
    return (buffer->bytes + MTF_ARENA_ALIGNMENT - 1) / MTF_ARENA_ALIGNMENT * MTF_ARENA_ALIGNMENT;
}

int64_t mtf_buffer_aligned_bytes(const MtfBuffer *buffer) {
    return mtf_buffer_stride(buffer) * MAX(1, buffer->slots);
}

static MtfPhase phase_of(const MtfProgram *program, int index) {
    return mtf_graph_operation(program->graph, mtf_program_instruction(program, index)->operation)
        ->phase;
}

int mtf_program_forward(const MtfProgram *program) {
    int n = 0;
    while (n < mtf_program_length(program) && phase_of(program, n) == MTF_PHASE_FORWARD)
        n++;
    return n;
}

/* Where the run of instructions ends that are in the same loop as `index`, or in none. */
static int same_loop_end(const MtfProgram *program, int index) {
    int end = index, loop = mtf_program_instruction(program, index)->loop;
    while (end < mtf_program_length(program) && mtf_program_instruction(program, end)->loop == loop)
        end++;
    return end;
}

int mtf_program_part_end(const MtfProgram *program, int index) {
    int n = mtf_program_length(program);
    int forward = program->layout->execution.stage.in_flight > 1 ? mtf_program_forward(program) : 0;
    int end = n, ends[] = { program->n_repeated, program->weight_gradients, forward };
    for (int e = 0; e < (int)G_N_ELEMENTS(ends); e++)
        end = index < ends[e] ? ends[e] : end;
    return program->graph->loops->len > 0 ? MIN(end, same_loop_end(program, index)) : end;
}

int mtf_program_loop_end(const MtfProgram *program, int index) {
    return mtf_program_instruction(program, index)->loop > 0 ? same_loop_end(program, index)
                                                             : index + 1;
}

int mtf_program_length(const MtfProgram *program) {
    return (int)program->instructions->len;
}

bool mtf_instruction_is_collective(const MtfInstruction *instruction) {
    return instruction->kind == MTF_INSTRUCTION_RESHARD &&
           mtf_reshard_row(instruction->reshard.kind)->collective;
}

int mtf_program_times(const MtfProgram *program, int index) {
    int loop = mtf_program_instruction(program, index)->loop;
    int times = index < program->n_repeated ? program->microbatches : 1;
    return times * (int)mtf_loop_count(program->graph, loop);
}

bool mtf_program_writes_loss(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    int loss = program->graph->loss;
    for (int k = 0; k < instruction->n_outputs && loss >= 0; k++)
        if (mtf_program_buffer(program, instruction->outputs[k])->tensor == loss)
            return true;
    return false;
}

static const MtfTensor *tensor_of(const MtfProgram *program, int buffer) {
    return mtf_graph_tensor(program->graph, mtf_program_buffer(program, buffer)->tensor);
}

const MtfTensor *mtf_reshard_tensor(const MtfProgram *program, const MtfInstruction *instruction) {
    return tensor_of(program, instruction->inputs[0]);
}

MtfReshardOp mtf_reshard_of_tensor(const MtfProgram *program, const MtfInstruction *instruction,
                                   int k) {
    MtfReshardOp op = instruction->reshard;
    if (k > 0) {
        op.from = mtf_program_buffer(program, instruction->inputs[k])->placement;
        op.to = mtf_program_buffer(program, instruction->outputs[k])->placement;
    }
    return op;
}

/* The dimension that a gather or scatter over the step's axes runs along. */
static int moved_dim(const MtfReshardOp *op) {
    const MtfPlacement *split = mtf_reshard_row(op->kind)->gathers ? &op->from : &op->to;
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
        if (op->axes >> a & 1)
            return split->axis[a];
    return -1;
}

/* Whether the pieces a step gathers or scatters lie one after another in memory: every dimension before
 * the one concerned has at most one element locally. */
static bool is_contiguous(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                          const MtfReshardOp *op) {
    int dim = moved_dim(op);
    for (int i = 0; i < shape->rank && shape->dims[i] != dim; i++) {
        int64_t parts =
            mtf_mesh_group_size(mesh, mtf_placement_split_axes(&op->to, shape->dims[i]));
        if (mtf_graph_size(graph, shape->dims[i]) > parts)
            return false;
    }
    return true;
}

int64_t mtf_reshard_scratch(const MtfGraph *graph, const MtfMesh *mesh, const MtfShape *shape,
                            const MtfReshardOp *op) {
    const MtfReshardRow *row = mtf_reshard_row(op->kind);
    if (!row->collective || row->in_place || op->column > 0)
        return 0;
    if (row->margins)
        return mtf_margins_most(graph, mesh, shape, &op->from, op->reader).exchanged;
    if (row->exchanges)
        return mtf_reshard_largest_payload(graph, mesh, shape, op) +
               mtf_largest_elements(graph, mesh, shape, &op->to);
    return is_contiguous(graph, mesh, shape, op)
               ? 0
               : mtf_reshard_largest_payload(graph, mesh, shape, op);
}

MtfRange mtf_buffer_range(const MtfProgram *program, const MtfBuffer *buffer, int dim, int rank) {
    const MtfMesh *mesh = &program->layout->mesh;
    if (buffer->column > 0 && mtf_column_dimension(mtf_graph_operation(
                                  program->graph, buffer->reader.operation)) == dim) {
        unsigned axes = mtf_placement_split_axes(&buffer->placement, dim);
        int64_t begin = buffer->column * mtf_mesh_group_position(mesh, axes, rank);
        return (MtfRange){ begin, begin + buffer->column };
    }
    return buffer->margined ? mtf_margins_range(program->graph, mesh, &buffer->placement,
                                                buffer->reader, dim, rank)
                            : mtf_placement_range(mesh, &buffer->placement, dim,
                                                  mtf_graph_size(program->graph, dim), rank);
}

int64_t mtf_instruction_payload(const MtfProgram *program, int index, int rank) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    if (instruction->kind != MTF_INSTRUCTION_RESHARD)
        return 0;
    int64_t elements = 0;
    for (int k = 0; k < instruction->n_inputs; k++) {
        MtfReshardOp op = mtf_reshard_of_tensor(program, instruction, k);
        elements +=
            mtf_reshard_payload(program->graph, &program->layout->mesh,
                                &tensor_of(program, instruction->inputs[k])->shape, &op, rank);
    }
    return mtf_dtype_bytes(mtf_reshard_tensor(program, instruction)->dtype) * elements;
}

int mtf_instruction_calls(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    if (!mtf_instruction_is_collective(instruction))
        return 0;
    if (!mtf_reshard_row(instruction->reshard.kind)->in_place)
        return 1;
    int64_t elements = instruction->payload_bytes /
                       mtf_dtype_bytes(mtf_reshard_tensor(program, instruction)->dtype);
    return (int)MAX(1, (elements + MTF_MAX_MESSAGE - 1) / MTF_MAX_MESSAGE);
}

/* ---- Digest -------------------------------------------------------------------------------- */

/* A hundred thousand lines of mostly numbers: printf's formats took most of the time. Each number stands behind
 * a space. */
static void append_number(GString *text, int64_t number) {
    char digits[24], *first = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do
        *--first = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--first = '-';
    *--first = ' ';
    g_string_append_len(text, first, digits + sizeof digits - first);
}

static void append_numbers(GString *text, const int *numbers, int n) {
    for (int i = 0; i < n; i++)
        append_number(text, numbers[i]);
}

static void append_placement(GString *text, const MtfPlacement *placement) {
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
        append_number(text, placement->axis[a]);
}

static void append_tensor(GString *text, const MtfTensor *tensor) {
    g_string_append_printf(text, "tensor %s %s %d %d %d %a:", tensor->name,
                           mtf_dtype_name(tensor->dtype), (int)tensor->source, (int)tensor->feed,
                           (int)tensor->init.kind, tensor->init.value);
    append_numbers(text, tensor->shape.dims, tensor->shape.rank);
    g_string_append_c(text, '\n');
}

static void append_operation(GString *text, const MtfOperation *operation) {
    const MtfOperationRow *row = mtf_operation_row(operation->kind);
    g_string_append_printf(text, "operation %s %s:", operation->name, row->name);
    append_numbers(text, operation->inputs, operation->n_inputs);
    for (const MtfAttributeSpec *spec = row->attributes; spec->name != NULL; spec++) {
        const void *slot = G_STRUCT_MEMBER_P(&operation->attributes, (glong)spec->offset);
        if (spec->type == MTF_ATTRIBUTE_NUMBER)
            g_string_append_printf(text, " %s=%a", spec->name, *(const double *)slot);
        else if (spec->type == MTF_ATTRIBUTE_DIMENSION)
            g_string_append_printf(text, " %s=%d", spec->name, *(const int *)slot);
        else if (spec->type == MTF_ATTRIBUTE_WINDOWS)
            mtf_windows_append(text, &operation->attributes);
        else
            g_string_append_printf(text, " %s=%s", spec->name,
                                   *(char *const *)slot != NULL ? *(char *const *)slot : "");
    }
    g_string_append_c(text, '\n');
}

static void append_buffer(GString *text, const MtfBuffer *buffer) {
    g_string_append(text, "buffer");
    append_number(text, buffer->tensor);
    append_number(text, (int)buffer->memory);
    append_number(text, buffer->bytes);
    append_numbers(text, (const int[]){ buffer->storage, buffer->first, buffer->last }, 3);
    g_string_append_c(text, ':');
    if (buffer->slots > 1)
        g_string_append_printf(text, " slots %d", buffer->slots);
    append_placement(text, &buffer->placement);
    if (buffer->column > 0)
        g_string_append_printf(text, " column %" PRId64 " of %d", buffer->column,
                               buffer->reader.operation);
    if (buffer->margined)
        g_string_append_printf(text, " margins of %d input %d", buffer->reader.operation,
                               buffer->reader.input);
    g_string_append_c(text, '\n');
}

static void append_instruction(GString *text, const MtfInstruction *instruction) {
    g_string_append(text, "instruction");
    append_numbers(
        text, (const int[]){ (int)instruction->kind, instruction->operation, instruction->scratch },
        3);
    g_string_append_c(text, ':');
    append_numbers(text, instruction->inputs, instruction->n_inputs);
    append_numbers(text, instruction->outputs, instruction->n_outputs);
    if (instruction->kind == MTF_INSTRUCTION_RESHARD) {
        g_string_append_printf(text, " step %d %u %d:", (int)instruction->reshard.kind,
                               instruction->reshard.axes, (int)instruction->reshard.reduction);
        append_placement(text, &instruction->reshard.from);
        append_placement(text, &instruction->reshard.to);
        if (instruction->algorithm != MTF_EXCHANGE_DIRECT)
            g_string_append_printf(text, " by %s",
                                   mtf_exchange_algorithm_name(instruction->algorithm));
    }
    if (instruction->part > 0)
        g_string_append_printf(text, " part %d of %d columns", instruction->part,
                               instruction->columns);
    if (instruction->loop > 0)
        g_string_append_printf(text, " loop %d", instruction->loop);
    if (instruction->fused.kernels > 0) {
        /* Digests keep the words that they were first made of. */
        g_string_append_printf(text, " band %d:", instruction->fused.kernels);
        append_numbers(text, instruction->fused.dims, instruction->fused.n_dims);
    }
    g_string_append_c(text, '\n');
}

char *mtf_program_digest(const MtfProgram *program) {
    const MtfGraph *graph = program->graph;
    g_autofree char *mesh = mtf_mesh_format(&program->layout->mesh);
    g_autoptr(GString) text = g_string_new("meshtf program 1\n");
    g_string_append_printf(text, "mesh %s\nloss %d\n", mesh, graph->loss);
    if (mtf_graph_batch(graph) >= 0)
        g_string_append_printf(text, "microbatches %d %d %d\n", program->microbatches,
                               program->n_repeated, mtf_graph_batch(graph));
    for (int l = 1; l <= (int)graph->loops->len; l++)
        g_string_append_printf(text, "loop %s %d %d\n", mtf_graph_loop(graph, l)->name,
                               mtf_graph_loop(graph, l)->dimension,
                               mtf_graph_loop(graph, l)->reverse);
    for (int d = 0; d < (int)graph->dimensions->len; d++)
        g_string_append_printf(text, "dimension %s %" PRId64 "\n",
                               mtf_graph_dimension(graph, d)->name, mtf_graph_size(graph, d));
    for (int t = 0; t < (int)graph->tensors->len; t++)
        append_tensor(text, mtf_graph_tensor(graph, t));
    for (int i = 0; i < (int)graph->operations->len; i++)
        append_operation(text, mtf_graph_operation(graph, i));
    for (int b = 0; b < (int)program->buffers->len; b++)
        append_buffer(text, mtf_program_buffer(program, b));
    for (int i = 0; i < mtf_program_length(program); i++)
        append_instruction(text, mtf_program_instruction(program, i));
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, (gssize)text->len);
}

/* ---- For people ---------------------------------------------------------------------------- */

static void format_reshard_op(GString *text, const MtfProgram *program,
                              const MtfInstruction *instruction) {
    const MtfMesh *mesh = &program->layout->mesh;
    const MtfReshardOp *op = &instruction->reshard;
    g_autofree char *axes = mtf_mesh_mask_format(mesh, op->axes);
    g_autofree char *from = mtf_placement_format(program->graph, mesh, &op->from);
    g_autofree char *to = mtf_placement_format(program->graph, mesh, &op->to);
    g_string_append_printf(text, "%s%s{%s} %s: %s -> %s", mtf_reshard_row(op->kind)->name,
                           op->reduction == MTF_REDUCE_MAX ? ":max" : "", axes,
                           mtf_reshard_tensor(program, instruction)->name, from, to);
    for (int k = 1; k < instruction->n_inputs; k++)
        g_string_append_printf(text, ", %s", tensor_of(program, instruction->inputs[k])->name);
    g_string_append_printf(text, ", %" PRId64 " bytes", instruction->payload_bytes);
    if (instruction->algorithm != MTF_EXCHANGE_DIRECT)
        g_string_append_printf(text, " by %s", mtf_exchange_algorithm_name(instruction->algorithm));
}

static void format_kernel(GString *text, const MtfProgram *program,
                          const MtfInstruction *instruction) {
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    g_string_append_printf(text, "%s %s, %.4g flops", mtf_operation_row(op->kind)->name, op->name,
                           instruction->flops);
    if (instruction->part > 0)
        g_string_append_printf(text, ", part %d", instruction->part);
}

static void format_fused_group(GString *text, const MtfProgram *program,
                               const MtfFusedGroup *fused) {
    g_string_append_printf(text, ", with the next %d tile by tile of", fused->kernels - 1);
    for (int i = 0; i < fused->n_dims; i++)
        g_string_append_printf(text, "%s%s", i == 0 ? " " : ",",
                               mtf_graph_dimension(program->graph, fused->dims[i])->name);
}

char *mtf_program_format(const MtfProgram *program) {
    GString *text = g_string_new(NULL);
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        g_string_append_printf(text, "%4d  ", i);
        if (instruction->kind == MTF_INSTRUCTION_RESHARD)
            format_reshard_op(text, program, instruction);
        else
            format_kernel(text, program, instruction);
        g_string_append(text, "  [");
        append_numbers(text, instruction->inputs, instruction->n_inputs);
        g_string_append(text, " ->");
        append_numbers(text, instruction->outputs, instruction->n_outputs);
        g_string_append(text, " ]");
        if (instruction->loop > 0)
            g_string_append_printf(
                text, ", %s%" PRId64 " times in %s",
                mtf_loop_condition(program->graph, instruction->loop) >= 0 ? "at most " : "",
                mtf_loop_count(program->graph, instruction->loop),
                mtf_graph_loop(program->graph, instruction->loop)->name);
        if (instruction->fused.kernels > 0)
            format_fused_group(text, program, &instruction->fused);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}

/* ---- What traffic serves ------------------------------------------------------------------- */

/* Whether a product or a lookup of the model reads the tensor, or a cast of it (optimizers sum
 * squares of all). */
static bool is_matrix(const MtfGraph *graph, const MtfConsumers *consumers, int tensor) {
    for (int i = consumers->starts[tensor]; i < consumers->starts[tensor + 1]; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, consumers->operations[i]);
        const MtfOperationRow *row = mtf_operation_row(op->kind);
        if (op->phase != MTF_PHASE_FORWARD)
            continue;
        if (row->kernel_class == MTF_CLASS_MATMUL || row->kernel_class == MTF_CLASS_GATHER ||
            (row->converts && is_matrix(graph, consumers, op->outputs[0])))
            return true;
    }
    return false;
}

MtfTrafficGroup mtf_instruction_traffic_group(const MtfProgram *program,
                                              const MtfConsumers *consumers, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    if (op->phase == MTF_PHASE_CLIP)
        return MTF_TRAFFIC_CLIP;
    if (op->phase == MTF_PHASE_UPDATE)
        return MTF_TRAFFIC_OPTIMIZER;
    int tensor = mtf_program_buffer(program, instruction->inputs[0])->tensor;
    int variable = tensor >= 0 ? mtf_graph_gradient_of(program->graph, tensor) : -1;
    bool vector = variable >= 0 &&
                  mtf_graph_tensor(program->graph, variable)->source == MTF_SOURCE_VARIABLE &&
                  !is_matrix(program->graph, consumers, variable);
    return vector ? MTF_TRAFFIC_VECTORS : MTF_TRAFFIC_MODEL;
}

const char *mtf_traffic_group_name(MtfTrafficGroup group) {
    static const char *const names[MTF_TRAFFIC_GROUPS] = {
        [MTF_TRAFFIC_MODEL] = "model",
        [MTF_TRAFFIC_VECTORS] = "vectors",
        [MTF_TRAFFIC_CLIP] = "clip",
        [MTF_TRAFFIC_OPTIMIZER] = "optimizer",
    };
    return names[group];
}
