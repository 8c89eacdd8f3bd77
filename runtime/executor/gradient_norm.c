// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/gradient_norm.h"

#include "layouts/graph/operation_table.h"
#include "runtime/kernels/base/kernel_squares.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <math.h>
#include <string.h>

struct MtfGradientNorm {
    const MtfWorker *worker;
    const MtfGraph *model; /* whole */
    int *buffers;          /* one an instruction: what it reads that is wanted, or -1 */
    bool clips;            /* then it is the sum itself, whole on every rank of a stage */
    int found;             /* gradients of this program, or sums */
    bool hidden;           /* a term of one of them is all that can be read */
    bool tells;            /* this rank's sum counts */
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

static bool clips(const MtfGraph *model) {
    int i = 0;
    while (i < (int)model->operations->len && !shows_clip_factor(model, i))
        i++;
    return i < (int)model->operations->len;
}

/* The gradient of the variable that an update writes, which another stage may have computed; or -1. */
static int gradient_of(const MtfGradientNorm *norm, const MtfUpdate *update) {
    const MtfGraph *graph = norm->worker->program->graph;
    const MtfTensor *variable = mtf_graph_tensor(graph, update->variable);
    if (variable->memory != MTF_MEMORY_VARIABLE)
        return -1;
    int whole = mtf_graph_find_tensor(norm->model, variable->name);
    int gradient = mtf_graph_find_gradient(norm->model, whole);
    return gradient >= 0
               ? mtf_graph_find_tensor(graph, mtf_graph_tensor(norm->model, gradient)->name)
               : -1;
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

/* What the first instruction that turns the sum of squares into a factor reads. */
static void note_sum(MtfGradientNorm *norm) {
    const MtfProgram *program = norm->worker->program;
    for (int i = 0; i < mtf_program_length(program) && norm->found == 0; i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        if (instruction->kind != MTF_INSTRUCTION_KERNEL ||
            !shows_clip_factor(program->graph, instruction->operation))
            continue;
        norm->buffers[i] = instruction->inputs[0];
        norm->found = 1;
    }
}

static void note_gradients(MtfGradientNorm *norm) {
    const GArray *updates = norm->worker->program->graph->updates;
    for (guint i = 0; i < updates->len; i++) {
        int gradient = gradient_of(norm, &g_array_index(updates, MtfUpdate, i));
        if (gradient < 0)
            continue;
        norm->found++;
        norm->hidden |= !note_gradient(norm, gradient);
    }
}

MtfGradientNorm *mtf_gradient_norm_new(const MtfWorker *worker, const MtfGraph *model) {
    MtfGradientNorm *norm = g_new0(MtfGradientNorm, 1);
    int length = mtf_program_length(worker->program);
    norm->worker = worker;
    norm->model = model;
    norm->clips = clips(model);
    norm->buffers = g_new(int, length + 1);
    for (int i = 0; i < length; i++)
        norm->buffers[i] = -1;
    if (norm->clips)
        note_sum(norm);
    else
        note_gradients(norm);
    return norm;
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

/* The sum that clipping asks for is the same wherever it is: one rank tells it. */
bool mtf_gradient_norm_agree(MtfGradientNorm *const *norms, int n, MPI_Comm control) {
    int rank, own = -1;
    double facts[] = { 0, -INFINITY }; /* whether a gradient is hidden, minus the lowest rank */
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    for (int i = 0; i < n; i++) {
        facts[0] += norms[i]->hidden;
        if (norms[i]->found > 0)
            own = i;
    }
    if (own >= 0)
        facts[1] = -rank;
    mtf_agree_maxima(control, facts, G_N_ELEMENTS(facts));
    for (int i = 0; i < n; i++)
        norms[i]->tells = !norms[i]->clips || (i == own && rank == (int)-facts[1]);
    return facts[0] == 0 && isfinite(facts[1]);
}

double mtf_gradient_norm_take(MtfGradientNorm *const *norms, int n, MPI_Comm control) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (norms[i]->tells)
            sum += norms[i]->sum;
        norms[i]->sum = 0;
    }
    mtf_agree_sums(control, &sum, 1);
    return sqrt(sum);
}
