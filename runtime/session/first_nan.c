// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/first_nan.h"

#include "layouts/graph/operation_table.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/mpi_check.h"

#include <math.h>

/* Longer than any sentence of ours. */
#define SENTENCE_BYTES 1024

/* Where a value is made. As they are numbered, variables come before all results, what an earlier stage has
 * before what a later one has, and results of a stage in the order of its program. Of several micro-batches
 * the one that is bad earliest in the program counts. */
typedef struct {
    bool result;
    int stage;  /* from 0 */
    int number; /* of the instruction, or the variable's tensor */
} Place;

static double number_of(Place place) {
    return ldexp((place.result ? MTF_MAX_STAGES : 0) + place.stage, 31) + place.number;
}

static Place place_of(double number) {
    int before = (int)ldexp(number, -31);
    return (Place){ .result = before >= MTF_MAX_STAGES,
                    .stage = before % MTF_MAX_STAGES,
                    .number = (int)(number - ldexp(before, 31)) };
}

/* The first places found bad; INFINITY: none. */
typedef struct {
    double nan, infinite;
} Places;

/* Who looks on in a stage. */
typedef struct {
    int stage;
    Places *places;
} Looking;

static void look(Places *places, const MtfOperand *slice, double place) {
    if (!mtf_dtype_is_float(slice->dtype))
        return;
    int64_t elements = mtf_slice_elements(slice);
    for (int64_t i = 0; i < elements && places->nan > place; i++) {
        double value = mtf_slice_get(slice, i);
        if (isnan(value))
            places->nan = place;
        if (isinf(value))
            places->infinite = fmin(places->infinite, place);
    }
}

static void look_at_variables(Places *places, const MtfStageChunk *chunk) {
    const MtfGraph *graph = chunk->program->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_graph_tensor(graph, t)->source == MTF_SOURCE_VARIABLE)
            look(places, mtf_worker_tensor(chunk->slots[0].worker, t),
                 number_of((Place){ false, chunk->stage, t }));
}

static void see(const MtfWorker *worker, int index, void *user) {
    const Looking *looking = user;
    const MtfInstruction *instruction = mtf_program_instruction(worker->program, index);
    for (int k = 0; k < instruction->n_outputs; k++)
        look(looking->places, &worker->operands[instruction->outputs[k]],
             number_of((Place){ true, looking->stage, index }));
}

/* The step's forward passes again, with a look at all results. What cannot be read any more stays as it is: only
 * the cause is sought here. */
static void compute_and_look(MtfStageRun *run, int64_t step, Places *places) {
    g_autofree Looking *looking = g_new(Looking, run->n_chunks);
    g_autofree MtfInstructionLook *looks = g_new(MtfInstructionLook, run->n_chunks);
    for (int c = 0; c < run->n_chunks; c++) {
        looking[c] = (Looking){ run->chunks[c].stage, places };
        looks[c] = (MtfInstructionLook){ see, &looking[c] };
    }
    mtf_stage_run_watch(run, step, looks);
}

/* ---- In words ------------------------------------------------------------------------------ */

static void describe(char *text, const MtfStageRun *run, double number, int rank,
                     const char *what) {
    Place place = place_of(number);
    const MtfStageChunk *chunk = run->chunks;
    while (chunk->stage != place.stage)
        chunk++;
    const MtfGraph *graph = chunk->program->graph;
    g_autofree char *stage = mtf_pipeline_is_whole(run->pipeline)
                                 ? g_strdup("")
                                 : g_strdup_printf(", in stage %d", place.stage);
    if (!place.result) {
        g_snprintf(text, SENTENCE_BYTES, "variable \"%s\" was %s before it, first on rank %d%s",
                   mtf_graph_tensor(graph, place.number)->name, what, rank, stage);
        return;
    }
    const MtfInstruction *instruction = mtf_program_instruction(chunk->program, place.number);
    const MtfOperation *op = mtf_graph_operation(graph, instruction->operation);
    g_snprintf(text, SENTENCE_BYTES,
               "the first result that is %s is that of \"%s\" (%s) on rank %d%s", what, op->name,
               mtf_operation_row(op->kind)->name, rank, stage);
}

/* The least place over all ranks, in the words of a rank that has it; NULL where none has one. */
static char *tell_first(const MtfStageRun *run, MPI_Comm control, double own, const char *what) {
    struct {
        double place;
        int rank;
    } mine = { own, 0 }, first;
    char text[SENTENCE_BYTES] = "";
    mtf_mpi_require(MPI_Comm_rank(control, &mine.rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Allreduce(&mine, &first, 1, MPI_DOUBLE_INT, MPI_MINLOC, control),
                    "MPI_Allreduce");
    if (isinf(first.place))
        return NULL;
    if (mine.rank == first.rank)
        describe(text, run, own, mine.rank, what);
    mtf_mpi_require(MPI_Bcast(text, SENTENCE_BYTES, MPI_CHAR, first.rank, control), "MPI_Bcast");
    return g_strdup(text);
}

char *mtf_first_nan(MtfStageRun *run, MPI_Comm control, int64_t step) {
    Places places = { INFINITY, INFINITY };
    for (int c = 0; c < run->n_chunks; c++)
        look_at_variables(&places, &run->chunks[c]);
    compute_and_look(run, step, &places);
    char *cause = tell_first(run, control, places.nan, "not a number");
    return cause != NULL ? cause : tell_first(run, control, places.infinite, "infinite");
}
