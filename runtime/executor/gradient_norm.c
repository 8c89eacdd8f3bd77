// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/gradient_norm.h"

#include "layouts/graph/operation_table.h"
#include "runtime/kernels/base/kernel_squares.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/agreement.h"

#include <math.h>
#include <string.h>

struct MtfGradientNorm {
    const MtfWorker *worker;
    int *buffers; /* one an instruction: what it reads that is wanted, or -1 */
    bool clips;   /* then it is the sum itself, whole on every rank */
    double sum;
};

static bool is_kernel_of_phase(const MtfProgram *program, int index, MtfPhase phase) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    return instruction->kind == MTF_INSTRUCTION_KERNEL &&
           mtf_graph_operation(program->graph, instruction->operation)->phase == phase;
}

static bool shows_clip_factor(const MtfGraph *graph, int operation) {
    int kind = mtf_graph_operation(graph, operation)->kind;
    return mtf_operation_row(kind)->shown == MTF_SHOWN_CLIP_FACTOR;
}

/* The instruction that turns the sum of squares into a factor, or -1. */
static int find_clip(const MtfProgram *program) {
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind == MTF_INSTRUCTION_KERNEL &&
            shows_clip_factor(program->graph, instruction->operation))
            return i;
    }
    return -1;
}

/* The gradient of the variable that an update writes, or -1. */
static int gradient_of(const MtfGraph *graph, const MtfUpdate *update) {
    const MtfTensor *variable = mtf_graph_tensor(graph, update->variable);
    if (variable->memory != MTF_MEMORY_VARIABLE)
        return -1;
    return mtf_graph_find_gradient(graph, update->variable);
}

/* Notes where an update first reads a gradient. False when it reads it nowhere, or a term of it. */
static bool note_gradient(MtfGradientNorm *norm, int gradient) {
    const MtfProgram *program = norm->worker->program;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        for (int k = 0;
             is_kernel_of_phase(program, i, MTF_PHASE_UPDATE) && k < instruction->n_inputs; k++) {
            const MtfBuffer *buffer = mtf_program_buffer(program, instruction->inputs[k]);
            if (buffer->tensor != gradient || norm->buffers[i] >= 0)
                continue;
            norm->buffers[i] = instruction->inputs[k];
            return mtf_placement_partial_axes(&buffer->placement) == 0;
        }
    }
    return false;
}

static bool note_all(MtfGradientNorm *norm) {
    const MtfProgram *program = norm->worker->program;
    const GArray *updates = program->graph->updates;
    int clip = find_clip(program);
    int found = 0;
    norm->clips = clip >= 0;
    if (norm->clips) {
        norm->buffers[clip] = mtf_program_instruction(program, clip)->inputs[0];
        return true;
    }
    for (guint i = 0; i < updates->len; i++) {
        int gradient = gradient_of(program->graph, &g_array_index(updates, MtfUpdate, i));
        if (gradient >= 0 && !note_gradient(norm, gradient))
            return false;
        found += gradient >= 0;
    }
    return found > 0;
}

MtfGradientNorm *mtf_gradient_norm_new(const MtfWorker *worker) {
    MtfGradientNorm *norm = g_new0(MtfGradientNorm, 1);
    int length = mtf_program_length(worker->program);
    norm->worker = worker;
    norm->buffers = g_new(int, length + 1);
    for (int i = 0; i < length; i++)
        norm->buffers[i] = -1;
    if (note_all(norm))
        return norm;
    mtf_gradient_norm_free(norm);
    return NULL;
}

void mtf_gradient_norm_free(MtfGradientNorm *norm) {
    if (norm == NULL)
        return;
    g_free(norm->buffers);
    g_free(norm);
}

/* Whether this rank answers for its copy of a buffer. */
static bool answers(const MtfWorker *worker, int buffer) {
    const MtfPlacement *placement = &mtf_program_buffer(worker->program, buffer)->placement;
    const MtfMesh *mesh = &worker->program->layout->mesh;
    for (int a = 0; a < mesh->n_axes; a++)
        if (placement->axis[a] == MTF_REPLICATED && mtf_mesh_coordinate(mesh, worker->rank, a) > 0)
            return false;
    return true;
}

void mtf_gradient_norm_look(MtfGradientNorm *norm, int instruction) {
    int buffer = norm->buffers[instruction];
    if (buffer < 0)
        return;
    const MtfOperand *slice = &norm->worker->operands[buffer];
    if (norm->clips) {
        norm->sum = mtf_slice_get(slice, 0);
        return;
    }
    if (answers(norm->worker, buffer))
        norm->sum += mtf_operand_squares(slice);
}

double mtf_gradient_norm_take(MtfGradientNorm *norm, MPI_Comm control) {
    double sum = norm->sum;
    norm->sum = 0;
    if (!norm->clips)
        mtf_agree_sums(control, &sum, 1);
    return sqrt(sum);
}
