// SPDX-License-Identifier: GPL-3.0-or-later
/* A rank's part in the plan of a pipeline: the stages (chunks) of the domain it belongs to, and for
 * each a worker for every micro-batch that it may have in flight. The workers of a stage share one
 * arena and differ in the slots that they use of what waits between a micro-batch's passes
 * (MtfBuffer).
 *
 *     order of a domain    0F0     0F1     0I0     0F2     0W0     0I1     [ once ] [ update ]
 *     worker                 0       1       0       2       0       1         0         0
 *     transfers             send    send    receive send            receive
 *
 * Of an asynchronous pipeline (layouts/pipeline/pipeline_delay.h) the domain's order is another: while a
 * step's backward passes run, forward passes are those of micro-batches that lie ahead. A worker then
 * stands for a micro-batch in flight *and* a version of the variables: version 0 is where updates are
 * made, and before each the values are put aside, in turns, into the others.
 *
 *     stage 0 of 2, 2BW      1F0  |  1F1 1B0 2F0 1B1  |  2F1 2B0 3F0 2B1  |  …     (step, pass)
 *     weights                w0      w0  w0  w0  w0   |  w0  w0  w1  w0   |
 *
 * What runs once a step is run for all stages of the domain in turns: each goes on until it waits for
 * another. */
#ifndef MTF_STAGE_RUN_H
#define MTF_STAGE_RUN_H

#include "layouts/program/pipeline_plan.h"
#include "runtime/executor/stage_pass.h"

/* One stage of the domain. */
typedef struct {
    int stage;
    MtfPlan *plan; /* borrowed */
    MtfProgram *program;
    MtfArena *arena;
    int *slot_of; /* of each micro-batch */
    int n_slots, n_versions;
    MtfWorker **workers; /* [n_versions][n_slots], the first of which owns the block of the arena */
    MtfArena **slot_arenas; /* likewise; NULL for the first */
    int lookahead, delay;   /* of asynchronous pipelines */
    MtfStageTransfers *transfers;
    MtfCommunicators *communicators; /* of the domain */
    MtfExecutor executor;            /* owns its messages and counted */
    int next_event,
        next; /* how far it has come in what is done once a step: events, instructions */
    const MtfStageLook *look; /* while somebody looks at this stage; else NULL */
} MtfStageChunk;

typedef struct {
    MtfPipelinePlan *pipeline;
    MPI_Comm domain;    /* the ranks of this rank's domain */
    MPI_Comm transfers; /* all ranks */
    int number;         /* of the domain */
    int rank;           /* in the domain: the processor of its stages' meshes */
    int n_chunks;
    MtfStageChunk *chunks;     /* in the order of their stages */
    const MtfWorker **workers; /* the first of each chunk; NULL until they are made */
    bool asynchronous;
    int64_t begun, until; /* steps begun + 1 … until overlap, the others are done or not begun */
} MtfStageRun;

/* Loads the plan of a pipeline, finds this rank's place in it, lowers its stages and lays out their
 * memory on paper. Not collective; fails where the number of ranks is not the plan's. */
MtfStageRun *mtf_stage_run_load(const char *path, MPI_Comm control, GError **error);

/* Makes the first worker of every stage. Not collective; fails when memory is short. */
bool mtf_stage_run_make_workers(MtfStageRun *run, uint64_t seed, GError **error);

/* Collective over `control`: communicators, transfers and the other workers. The stages are executed
 * as `how` says, whose own worker and transport are not used. */
void mtf_stage_run_open(MtfStageRun *run, MPI_Comm control, const MtfExecutor *how, uint64_t seed);

/* Collective over the ranks that opened it, if it was opened: ends and frees it all. NULL does
 * nothing. */
void mtf_stage_run_free(MtfStageRun *run);

/* Bytes of the arenas of this rank's stages, and what the plan says of them. */
int64_t mtf_stage_run_arena_bytes(const MtfStageRun *run);
double mtf_stage_run_planned_bytes(const MtfStageRun *run);

/* The chunk that makes the loss; NULL on ranks of other domains. */
const MtfStageChunk *mtf_stage_run_loss_chunk(const MtfStageRun *run);

/* The spans of one step in a trace; and who notes them from now on, NULL for nobody. */
int64_t mtf_stage_run_spans(const MtfStageRun *run);
void mtf_stage_run_trace(MtfStageRun *run, MtfStepTrace *trace);

/* Steps done + 1 … until follow one another without a pause, the pipeline is empty before them and
 * after: variables may be read by others then. Of synchronous pipelines each step is so. */
void mtf_stage_run_begin(MtfStageRun *run, int64_t done, int64_t until);

/* Lets the pipeline run empty as soon as it can after a step that was computed: `until` becomes the last
 * step that is begun anywhere. */
void mtf_stage_run_drain(MtfStageRun *run, int64_t step);

/* As mtf_executor_compute and mtf_executor_update, over all ranks: every pass of the domain's order,
 * with its transfers. Fills the inputs of all micro-batches. */
bool mtf_stage_run_compute(MtfStageRun *run, int64_t step, GError **error);
void mtf_stage_run_update(MtfStageRun *run, int64_t step);

/* The forward passes of all micro-batches of one batch of data, and what of the rest leads to the
 * loss. Nothing that training counts or times is changed but the inputs. A failure to read data is
 * told in `*failure`, where none was before. */
void mtf_stage_run_forward(MtfStageRun *run, int64_t batch, GError **failure);

/* Collective over all ranks: the forward pass of the first micro-batch through all stages, on inputs that
 * the look gives. Nothing that training counts or times is changed but the inputs. */
void mtf_stage_run_look(MtfStageRun *run, const MtfStageLook *look);

/* Collective over `control`: the loss, which the ranks of its stage hold, on all ranks. */
double mtf_stage_run_share_loss(const MtfStageRun *run, MPI_Comm control, double loss);

#endif
