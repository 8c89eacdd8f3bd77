// SPDX-License-Identifier: GPL-3.0-or-later
/* A rank's part in a plan: the stages (chunks) of the domain it belongs to, and for each a worker for
 * every micro-batch that it may have in flight. The workers of a stage share one arena and differ in the
 * slots that they use of what waits between a micro-batch's passes (MtfBuffer). A plan without stages is
 * a pipeline of one (mtf_pipeline_plan_whole) with one worker.
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
 *     weights                w0      w0  w0  w0  w0   |  w0  w0  w1  w0   | */
#ifndef MTF_STAGE_RUN_H
#define MTF_STAGE_RUN_H

#include "layouts/plan_file/pipeline_plan.h"
#include "runtime/executor/forward_part.h"
#include "runtime/executor/stage_pass.h"

/* What runs a micro-batch in flight, with one version of the variables. */
typedef struct {
    MtfWorker *worker; /* of the first: it owns the block of the arena */
    MtfArena *arena;   /* NULL for the first */
    MtfWindowExchange *window;
    MtfMessageExchange *messages;
} MtfStageSlot;

/* One stage of the domain. */
typedef struct {
    int stage;
    MtfPlan *plan; /* borrowed */
    MtfProgram *program;
    MtfArena *arena;
    int *slot_of; /* of each micro-batch */
    int n_slots, n_versions;
    MtfStageSlot *slots;    /* [n_versions][n_slots] */
    int lookahead, delay;   /* of asynchronous pipelines */
    MtfForwardPart forward; /* that leads to the loss */
    int backward;           /* where the pass begins */
    int first_update;
    MtfStageTransfers *transfers;
    MtfCommunicators *communicators; /* of the domain */
    MtfExecutor executor;            /* of no slot; owns what it counts in */
    int next_event,
        next; /* how far it has come in what is done once a step: events, instructions */
    const MtfStageLook *look; /* while somebody looks at this stage; else NULL */
} MtfStageChunk;

typedef struct {
    MtfPipelinePlan *pipeline;
    MPI_Comm domain;          /* the ranks of this rank's domain */
    MPI_Comm transfers;       /* all ranks */
    MtfStageWindows *windows; /* between stages; NULL: none */
    MtfProgressHook idle;     /* what goes between stages goes on while the rank waits */
    int number;               /* of the domain */
    int rank;                 /* in the domain: the processor of its stages' meshes */
    int n_chunks;
    MtfStageChunk *chunks;     /* in the order of their stages */
    const MtfWorker **workers; /* the first of each chunk; NULL until they are made */
    bool asynchronous;
    int64_t begun, until; /* steps begun + 1 … until overlap, the others are done or not begun */
} MtfStageRun;

/* How it is executed. */
typedef struct {
    uint64_t seed;
    bool at_once;        /* exchanges do not stay under way */
    bool only_mpi;       /* among ranks of one host, too */
    MtfDropped *dropped; /* both borrowed; NULL: nobody asks */
    MtfData *data;       /* NULL: inputs are as they are */
} MtfStageHow;

/* Loads a plan, with stages or without, finds the rank's place in it, lowers its stages and lays out
 * their memory on paper. Ranks beyond those of the plan, which may look at it but not run it, have places
 * from the first again. */
MtfStageRun *mtf_stage_run_load(const char *path, int rank, GError **error);

/* The same of a plan at hand, which it takes over. */
MtfStageRun *mtf_stage_run_new(MtfPipelinePlan *pipeline, int rank, GError **error);

/* Lowers the stages of a domain, whoever will run it: the bytes of their arenas on a rank. */
bool mtf_stage_run_measure(MtfPipelinePlan *pipeline, int domain, int64_t *bytes, GError **error);

/* Makes the first worker of every stage. Not collective; fails when memory is short. */
bool mtf_stage_run_make_workers(MtfStageRun *run, uint64_t seed, GError **error);

/* Collective over `control`: communicators, transfers and the other workers. */
void mtf_stage_run_open(MtfStageRun *run, MPI_Comm control, const MtfStageHow *how);

/* Collective over the ranks that opened it, if it was opened: ends and frees it all. NULL does
 * nothing. */
void mtf_stage_run_free(MtfStageRun *run);

/* Bytes of the arenas of this rank's stages, and what the plan says of them. */
int64_t mtf_stage_run_arena_bytes(const MtfStageRun *run);
double mtf_stage_run_planned_bytes(const MtfStageRun *run);

/* The chunk that makes the loss; NULL on ranks of other domains. */
const MtfStageChunk *mtf_stage_run_loss_chunk(const MtfStageRun *run);

/* Whether ranks of a host read each other's arenas; once it is open. */
bool mtf_stage_run_shares_memory(const MtfStageRun *run);

/* The spans of one step in a trace. */
int64_t mtf_stage_run_spans(const MtfStageRun *run);

/* The rank that tells others the loss; -1 where each has it. */
int mtf_stage_run_loss_rank(const MtfStageRun *run);

/* Collective over `control`: the loss, which the ranks of its stage hold, on all ranks. */
double mtf_stage_run_share_loss(const MtfStageRun *run, MPI_Comm control, double loss);

#endif
