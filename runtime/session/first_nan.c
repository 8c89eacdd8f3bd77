// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/first_nan.h"

#include "layouts/graph/operation_table.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/mpi_check.h"

#include <limits.h>
#include <math.h>

/* The first places found bad: a variable's is the tensor's number, an instruction's its own behind
 * all tensors. Of several micro-batches the one that is bad earliest in the program counts. */
typedef struct {
    int nan, infinite; /* INT_MAX = none */
} Places;

static void look(Places *places, const MtfOperand *slice, int place) {
    if (!mtf_dtype_is_float(slice->dtype))
        return;
    int64_t elements = mtf_slice_elements(slice);
    for (int64_t i = 0; i < elements && places->nan > place; i++) {
        double value = mtf_slice_get(slice, i);
        if (isnan(value))
            places->nan = place;
        if (isinf(value))
            places->infinite = MIN(places->infinite, place);
    }
}

static void look_at_variables(Places *places, const MtfWorker *worker) {
    const MtfGraph *graph = worker->program->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->source == MTF_SOURCE_VARIABLE)
            look(places, mtf_worker_tensor(worker, t), t);
}

static void look_at_outputs(Places *places, const MtfWorker *worker, int index, int place) {
    const MtfInstruction *instruction = mtf_program_instruction(worker->program, index);
    for (int k = 0; k < instruction->n_outputs; k++)
        look(places, &worker->operands[instruction->outputs[k]], place);
}

static void see(const MtfWorker *worker, int index, void *user) {
    look_at_outputs(user, worker, index, (int)worker->program->graph->tensors->len + index);
}

static char *describe(const MtfProgram *program, int place, int rank, const char *what) {
    const MtfGraph *graph = program->graph;
    int tensors = (int)graph->tensors->len;
    if (place < tensors)
        return g_strdup_printf("variable \"%s\" was %s before it, first on rank %d",
                               mtf_graph_tensor(graph, place)->name, what, rank);
    const MtfInstruction *instruction = mtf_program_instruction(program, place - tensors);
    const MtfOperation *op = mtf_graph_operation(graph, instruction->operation);
    return g_strdup_printf("the first result that is %s is that of \"%s\" (%s) on rank %d", what,
                           op->name, mtf_operation_row(op->kind)->name, rank);
}

/* The least place over all ranks, and a rank that has it. */
static void agree_place(MPI_Comm control, int *place, int *rank) {
    struct {
        int place, rank;
    } mine = { *place, 0 }, first;
    mtf_mpi_require(MPI_Comm_rank(control, &mine.rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MINLOC, control),
                    "MPI_Allreduce");
    *place = first.place;
    *rank = first.rank;
}

/* Runs the step's first half again, looking on. What cannot be read any more stays as it is: only the cause is
 * sought here. */
static void compute_and_look(MtfStageRun *run, int64_t step, Places *places) {
    MtfExecutor *executor = &run->chunks[0].executor, as_it_was = *executor;
    MtfInstructionLook look = { see, places };
    executor->look = &look;
    executor->at_once = true;
    executor->trace = NULL;
    executor->norm = NULL;
    mtf_stage_run_compute(run, step, NULL);
    *executor = as_it_was;
}

char *mtf_first_nan(MtfStageRun *run, MPI_Comm control, int64_t step) {
    const MtfWorker *worker = run->workers[0];
    const MtfProgram *program = worker->program;
    Places places = { INT_MAX, INT_MAX };
    int nan_rank, infinite_rank;
    look_at_variables(&places, worker);
    compute_and_look(run, step, &places);
    agree_place(control, &places.nan, &nan_rank);
    agree_place(control, &places.infinite, &infinite_rank);
    if (places.nan != INT_MAX)
        return describe(program, places.nan, nan_rank, "not a number");
    if (places.infinite != INT_MAX)
        return describe(program, places.infinite, infinite_rank, "infinite");
    return NULL;
}
