// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/stage_run.h"

#include "layouts/base/json_writer.h"
#include "layouts/pipeline/pipeline_delay.h"
#include "runtime/support/mpi_check.h"

#include <string.h>

/* ---- Loading ------------------------------------------------------------------------------- */

/* Which domain the rank belongs to. */
static int domain_of(const MtfPipelinePlan *pipeline, int rank) {
    int domain = 0;
    while (rank >= mtf_pipeline_first_device(pipeline, domain + 1))
        domain++;
    return domain;
}

/* Micro-batches in flight and versions of the variables that workers stand for. */
static void find_slots(const MtfStageRun *run, MtfStageChunk *chunk) {
    const MtfPipelineOrder *order = run->pipeline->order;
    chunk->slot_of = g_new(int, order->microbatches);
    chunk->n_slots = mtf_pipeline_stage_slots(run->pipeline, chunk->stage, chunk->slot_of);
    chunk->n_versions = MAX(1, chunk->plan->layout->execution.stage.weight_versions);
    chunk->delay = chunk->n_versions - 1;
    if (run->asynchronous) {
        chunk->lookahead = mtf_pipeline_lookahead(order, chunk->stage);
        chunk->n_slots = chunk->lookahead + 1;
    }
}

static bool load_chunk(MtfStageRun *run, int stage, GError **error) {
    MtfStageChunk *chunk = &run->chunks[run->n_chunks++];
    chunk->stage = stage;
    chunk->plan = mtf_pipeline_stage(run->pipeline, stage);
    chunk->program = chunk->plan->program_sha256 != NULL
                         ? mtf_plan_lower(chunk->plan, error)
                         : mtf_lower(chunk->plan->graph, chunk->plan->layout);
    if (chunk->program == NULL)
        return false;
    chunk->forward = mtf_forward_part(chunk->program);
    chunk->backward = MIN(mtf_program_forward(chunk->program), chunk->program->n_repeated);
    chunk->first_update = mtf_executor_first_update(chunk->program);
    chunk->arena = mtf_arena_pack(chunk->program);
    find_slots(run, chunk);
    return true;
}

static bool load_chunks(MtfStageRun *run, GError **error) {
    const MtfPipelineOrder *order = run->pipeline->order;
    run->chunks = g_new0(MtfStageChunk, order->stages);
    for (int stage = 0; stage < order->stages; stage++)
        if (order->rank_of_stage[stage] == run->number && !load_chunk(run, stage, error))
            return false;
    return true;
}

MtfStageRun *mtf_stage_run_new(MtfPipelinePlan *pipeline, int rank, GError **error) {
    MtfStageRun *run = g_new0(MtfStageRun, 1);
    bool whole = mtf_pipeline_is_whole(pipeline);
    run->number = whole ? 0 : domain_of(pipeline, rank);
    run->rank = rank - mtf_pipeline_first_device(pipeline, run->number);
    run->domain = run->transfers = MPI_COMM_NULL;
    run->pipeline = pipeline;
    run->asynchronous = !whole && mtf_pipeline_is_asynchronous(pipeline->schedule);
    if (load_chunks(run, error))
        return run;
    mtf_stage_run_free(run);
    return NULL;
}

MtfStageRun *mtf_stage_run_load(const char *path, int rank, GError **error) {
    MtfPipelinePlan *pipeline = mtf_pipeline_plan_load_any(path, error);
    return pipeline != NULL
               ? mtf_stage_run_new(pipeline, rank % mtf_pipeline_devices(pipeline), error)
               : NULL;
}

bool mtf_stage_run_measure(MtfPipelinePlan *pipeline, int domain, int64_t *bytes, GError **error) {
    MtfStageRun *run = g_new0(MtfStageRun, 1);
    run->domain = run->transfers = MPI_COMM_NULL;
    run->number = domain;
    run->pipeline = pipeline;
    bool done = load_chunks(run, error);
    if (done)
        *bytes = mtf_stage_run_arena_bytes(run);
    run->pipeline = NULL; /* is the caller's */
    mtf_stage_run_free(run);
    return done;
}

/* ---- Opening ------------------------------------------------------------------------------- */

bool mtf_stage_run_make_workers(MtfStageRun *run, uint64_t seed, GError **error) {
    run->workers = g_new0(const MtfWorker *, run->n_chunks);
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        chunk->slots = g_new0(MtfStageSlot, chunk->n_slots * chunk->n_versions);
        chunk->slots[0].worker =
            mtf_worker_new(chunk->program, chunk->arena, run->rank, seed, error);
        if (chunk->slots[0].worker == NULL)
            return false;
        run->workers[c] = chunk->slots[0].worker;
    }
    return true;
}

/* The worker of a slot and version, on the arena of the first. */
static void make_slot(const MtfStageRun *run, const MtfStageChunk *chunk, int at, uint64_t seed) {
    MtfStageSlot *slot = &chunk->slots[at];
    char *base = chunk->slots[0].worker->memory.base;
    slot->arena =
        mtf_arena_slot(chunk->arena, chunk->program, at % chunk->n_slots, at / chunk->n_slots);
    slot->worker = mtf_worker_new_at(chunk->program, slot->arena, run->rank, seed, base, NULL);
    g_assert(slot->worker != NULL);
}

/* How the worker of a slot talks to the others of the domain. */
static void open_slot(const MtfStageRun *run, const MtfStageChunk *chunk, int at, bool by_window) {
    MtfStageSlot *slot = &chunk->slots[at];
    slot->messages =
        mtf_message_exchange_new(chunk->communicators, slot->worker, MTF_EXCHANGES_UNDER_WAY + 1);
    if (by_window)
        slot->window = mtf_window_exchange_new(run->domain, slot->worker,
                                               at > 0 ? chunk->slots[0].window : NULL);
}

static void open_chunk(const MtfStageRun *run, MtfStageChunk *chunk, const MtfStageHow *how) {
    MtfStagePlace place = { .pipeline = run->pipeline,
                            .program = chunk->program,
                            .stage = chunk->stage,
                            .rank = run->rank,
                            .first_update = chunk->first_update,
                            .windows = run->windows };
    int ranks;
    mtf_mpi_require(MPI_Comm_size(run->domain, &ranks), "MPI_Comm_size");
    chunk->transfers = mtf_stage_transfers_new(run->transfers, &place);
    chunk->communicators = mtf_communicators_new(run->domain, chunk->program);
    for (int at = 1; at < chunk->n_slots * chunk->n_versions; at++)
        make_slot(run, chunk, at, how->seed);
    for (int at = 0; at < chunk->n_slots * chunk->n_versions; at++)
        open_slot(run, chunk, at, ranks > 1 && !how->only_mpi);
    chunk->executor = (MtfExecutor){ .at_once = how->at_once,
                                     .counted = mtf_traffic_new(chunk->program),
                                     .dropped = how->dropped,
                                     .data = how->data,
                                     .transport = { .communicators = chunk->communicators,
                                                    .max_message = MTF_MAX_MESSAGE } };
    if (!mtf_pipeline_is_whole(run->pipeline))
        chunk->executor.stages = chunk->transfers;
}

static void open_windows(MtfStageRun *run) {
    g_autofree const MtfArenaMemory **own = g_new(const MtfArenaMemory *, run->n_chunks);
    for (int c = 0; c < run->n_chunks; c++)
        own[c] = &run->workers[c]->memory;
    run->windows = mtf_stage_windows_new(run->transfers, run->pipeline, own, run->n_chunks);
}

static void progress_all(void *user) {
    const MtfStageRun *run = user;
    for (int c = 0; c < run->n_chunks; c++)
        mtf_stage_transfers_progress(run->chunks[c].transfers);
}

/* A rank of another stage may wait for a message of this one, and a rank of this stage for that one. */
static void wait_with_progress(MtfStageRun *run) {
    run->idle = (MtfProgressHook){ progress_all, run };
    if (run->windows != NULL)
        mtf_stage_windows_set_idle(run->windows, &run->idle);
    for (int c = 0; c < run->n_chunks; c++)
        if (run->chunks[c].slots[0].window != NULL)
            mtf_window_exchange_set_idle(run->chunks[c].slots[0].window, &run->idle);
}

void mtf_stage_run_open(MtfStageRun *run, MPI_Comm control, const MtfStageHow *how) {
    mtf_mpi_require(MPI_Comm_split(control, run->number, run->rank, &run->domain),
                    "MPI_Comm_split");
    mtf_mpi_require(MPI_Comm_set_errhandler(run->domain, MPI_ERRORS_RETURN),
                    "MPI_Comm_set_errhandler");
    mtf_mpi_require(MPI_Comm_set_name(run->domain, MTF_CONTROL_NAME), "MPI_Comm_set_name");
    run->transfers = mtf_stage_communicator_new(control);
    bool whole = mtf_pipeline_is_whole(run->pipeline);
    if (!whole && !how->only_mpi)
        open_windows(run);
    for (int c = 0; c < run->n_chunks; c++)
        open_chunk(run, &run->chunks[c], how);
    if (!whole)
        wait_with_progress(run);
}

/* The first slot owns the window and the arena that the others use. */
static void close_slots(MtfStageChunk *chunk) {
    for (int at = chunk->n_slots * chunk->n_versions - 1; chunk->slots != NULL && at >= 0; at--) {
        MtfStageSlot *slot = &chunk->slots[at];
        mtf_window_exchange_free(slot->window);
        mtf_message_exchange_free(slot->messages);
        mtf_worker_free(slot->worker);
        mtf_arena_free(slot->arena);
    }
    g_free(chunk->slots);
    g_free(chunk->slot_of);
}

static void close_chunk(MtfStageChunk *chunk) {
    mtf_stage_transfers_free(chunk->transfers);
    close_slots(chunk);
    mtf_communicators_free(chunk->communicators);
    mtf_traffic_free(chunk->executor.counted);
    mtf_arena_free(chunk->arena);
    mtf_program_free(chunk->program);
}

void mtf_stage_run_free(MtfStageRun *run) {
    if (run == NULL)
        return;
    for (int c = 0; c < run->n_chunks; c++)
        close_chunk(&run->chunks[c]);
    mtf_stage_windows_free(run->windows);
    if (run->transfers != MPI_COMM_NULL)
        mtf_mpi_require(MPI_Comm_free(&run->transfers), "MPI_Comm_free");
    if (run->domain != MPI_COMM_NULL)
        mtf_mpi_require(MPI_Comm_free(&run->domain), "MPI_Comm_free");
    mtf_pipeline_plan_free(run->pipeline);
    g_free(run->chunks);
    g_free(run->workers);
    g_free(run);
}

/* ---- Facts --------------------------------------------------------------------------------- */

int64_t mtf_stage_run_arena_bytes(const MtfStageRun *run) {
    int64_t bytes = 0;
    for (int c = 0; c < run->n_chunks; c++)
        bytes += run->chunks[c].arena->bytes;
    return bytes;
}

double mtf_stage_run_planned_bytes(const MtfStageRun *run) {
    double bytes = 0;
    for (int c = 0; c < run->n_chunks; c++)
        bytes += mtf_json_number_of(run->chunks[c].plan->predicted, "peak_memory_bytes", 0);
    return bytes;
}

const MtfStageChunk *mtf_stage_run_loss_chunk(const MtfStageRun *run) {
    for (int c = 0; c < run->n_chunks; c++)
        if (run->chunks[c].plan->graph->loss >= 0)
            return &run->chunks[c];
    return NULL;
}

bool mtf_stage_run_shares_memory(const MtfStageRun *run) {
    return run->chunks[0].slots[0].window != NULL;
}

int64_t mtf_stage_run_spans(const MtfStageRun *run) {
    int64_t spans = mtf_pipeline_length(run->pipeline->order, run->number);
    for (int c = 0; c < run->n_chunks; c++)
        spans += mtf_step_trace_spans(run->chunks[c].program);
    return spans;
}

int mtf_stage_run_loss_rank(const MtfStageRun *run) {
    const MtfPipelinePlan *pipeline = run->pipeline;
    if (pipeline->order->ranks == 1)
        return -1;
    int stage = 0;
    while (mtf_pipeline_stage(pipeline, stage)->graph->loss < 0)
        stage++;
    return mtf_pipeline_first_device(pipeline, pipeline->order->rank_of_stage[stage]);
}

double mtf_stage_run_share_loss(const MtfStageRun *run, MPI_Comm control, double loss) {
    int root = mtf_stage_run_loss_rank(run);
    if (root >= 0)
        mtf_mpi_require(MPI_Bcast(&loss, 1, MPI_DOUBLE, root, control), "MPI_Bcast");
    return loss;
}
