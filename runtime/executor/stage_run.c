// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/stage_run.h"

#include "layouts/base/error.h"
#include "runtime/support/mpi_check.h"

/* ---- Loading ------------------------------------------------------------------------------- */

/* Which domain the rank belongs to. */
static int domain_of(const MtfPipelinePlan *pipeline, int rank) {
    int domain = 0;
    while (rank >= mtf_pipeline_first_device(pipeline, domain + 1))
        domain++;
    return domain;
}

static bool check_ranks(const MtfPipelinePlan *pipeline, const char *path, int ranks,
                        GError **error) {
    int wanted = mtf_pipeline_devices(pipeline);
    return wanted == ranks ||
           mtf_input_error(error,
                           "the plan is for %d ranks (%d stages), but there %s %d: type mpirun -n "
                           "%d meshtf-run %s",
                           wanted, (int)pipeline->stages->len, ranks == 1 ? "is" : "are", ranks,
                           wanted, path);
}

MtfStageRun *mtf_stage_run_load(const char *path, MPI_Comm control, GError **error) {
    int rank, ranks;
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(control, &ranks), "MPI_Comm_size");
    g_autoptr(MtfPipelinePlan) pipeline = mtf_pipeline_plan_load(path, error);
    if (pipeline == NULL || !check_ranks(pipeline, path, ranks, error))
        return NULL;
    MtfStageRun *run = g_new0(MtfStageRun, 1);
    int domain = domain_of(pipeline, rank);
    while (pipeline->order->rank_of_stage[run->stage] != domain)
        run->stage++;
    run->rank = rank - mtf_pipeline_first_device(pipeline, domain);
    run->slot_of = g_new(int, pipeline->graph->microbatches);
    run->n_slots = mtf_pipeline_slots(pipeline->order, run->stage, run->slot_of);
    run->domain = MPI_COMM_NULL;
    run->pipeline = g_steal_pointer(&pipeline);
    return run;
}

MtfPlan *mtf_stage_run_plan(const MtfStageRun *run) {
    return mtf_pipeline_stage(run->pipeline, run->stage);
}

/* ---- Opening ------------------------------------------------------------------------------- */

static void open_workers(MtfStageRun *run, MtfWorker *worker, uint64_t seed) {
    run->workers = g_new0(MtfWorker *, run->n_slots);
    run->arenas = g_new0(MtfArena *, run->n_slots);
    run->workers[0] = worker;
    for (int slot = 1; slot < run->n_slots; slot++) {
        run->arenas[slot] = mtf_arena_slot(worker->arena, worker->program, slot);
        run->workers[slot] = mtf_worker_new_at(worker->program, run->arenas[slot], run->rank, seed,
                                               worker->memory.base, NULL);
        g_assert(run->workers[slot] != NULL);
    }
}

void mtf_stage_run_open(MtfStageRun *run, MPI_Comm control, MtfWorker *worker, uint64_t seed) {
    int domain = run->pipeline->order->rank_of_stage[run->stage];
    mtf_mpi_require(MPI_Comm_split(control, domain, run->rank, &run->domain), "MPI_Comm_split");
    mtf_mpi_require(MPI_Comm_set_errhandler(run->domain, MPI_ERRORS_RETURN),
                    "MPI_Comm_set_errhandler");
    mtf_mpi_require(MPI_Comm_set_name(run->domain, MTF_CONTROL_NAME), "MPI_Comm_set_name");
    open_workers(run, worker, seed);
    run->transfers = mtf_stage_transfers_new(control, run->pipeline, worker->program, run->stage,
                                             run->rank, mtf_executor_first_update(worker->program));
}

void mtf_stage_run_close(MtfStageRun *run) {
    if (run == NULL)
        return;
    mtf_stage_transfers_free(g_steal_pointer(&run->transfers));
    for (int slot = 1; run->workers != NULL && slot < run->n_slots; slot++) {
        mtf_worker_free(run->workers[slot]);
        mtf_arena_free(run->arenas[slot]);
    }
    if (run->domain != MPI_COMM_NULL)
        mtf_mpi_require(MPI_Comm_free(&run->domain), "MPI_Comm_free");
    g_clear_pointer(&run->workers, g_free);
    g_clear_pointer(&run->arenas, g_free);
}

void mtf_stage_run_free(MtfStageRun *run) {
    if (run == NULL)
        return;
    mtf_pipeline_plan_free(run->pipeline);
    g_free(run->slot_of);
    g_free(run);
}

/* ---- Running ------------------------------------------------------------------------------- */

/* Instructions [from, to) of a part of the step for one micro-batch, with the part's transfers. */
static void run_part(MtfStageRun *run, const MtfExecutor *executor, MtfStagePart part,
                     const MtfRange *instructions, int64_t step) {
    MtfExecutor own = *executor;
    int microbatch = own.worker->microbatch, slot = 0;
    int from = (int)instructions->begin;
    while (run->workers[slot] != own.worker)
        slot++;
    mtf_stage_transfers_wait(run->transfers, part, slot);
    for (int e = 0; e < mtf_stage_transfers_count(run->transfers); e++) {
        const MtfStageEvent *event = mtf_stage_transfers_event(run->transfers, e);
        if (event->part != part)
            continue;
        if (event->before > from) {
            mtf_executor_run(&own, from, event->before, step);
            from = event->before;
        }
        mtf_stage_transfer_do(run->transfers, e, own.worker, slot, microbatch);
    }
    mtf_executor_run(&own, from, (int)instructions->end, step);
}

/* A pass over one micro-batch. After a failure the inputs stay as they are. */
static void run_action(MtfStageRun *run, const MtfExecutor *executor,
                       const MtfPipelineAction *action, int64_t step, GError **failure) {
    MtfExecutor own = *executor;
    own.worker = run->workers[run->slot_of[action->microbatch]];
    const MtfProgram *program = own.worker->program;
    int forward = mtf_program_forward(program);
    bool is_forward = action->work == MTF_WORK_FORWARD;
    MtfRange passes[] = { { forward, program->n_repeated }, { 0, forward } };
    mtf_worker_set_microbatch(own.worker, action->microbatch);
    if (is_forward && *failure == NULL)
        mtf_data_fill_inputs(own.data, own.worker, step, failure);
    run_part(run, &own, is_forward ? MTF_PART_FORWARD : MTF_PART_BACKWARD, &passes[is_forward],
             step);
}

bool mtf_stage_run_compute(MtfStageRun *run, const MtfExecutor *executor, int64_t step,
                           GError **error) {
    const MtfPipelineOrder *order = run->pipeline->order;
    const MtfProgram *program = executor->worker->program;
    int domain = order->rank_of_stage[run->stage];
    GError *failure = NULL;
    run_part(run, executor, MTF_PART_BEGIN, &(MtfRange){ 0, 0 }, step);
    for (int i = 0; i < mtf_pipeline_length(order, domain); i++)
        run_action(run, executor, mtf_pipeline_action(order, domain, i), step, &failure);
    mtf_worker_set_microbatch(executor->worker, 0);
    run_part(run, executor, MTF_PART_ONCE,
             &(MtfRange){ program->n_repeated, mtf_executor_first_update(program) }, step);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}

void mtf_stage_run_update(MtfStageRun *run, const MtfExecutor *executor, int64_t step) {
    const MtfProgram *program = executor->worker->program;
    mtf_stage_transfers_wait(run->transfers, MTF_PART_BEGIN, 0);
    run_part(run, executor, MTF_PART_UPDATE,
             &(MtfRange){ mtf_executor_first_update(program), mtf_program_length(program) }, step);
    mtf_stage_transfers_wait_all(run->transfers);
}

/* What of the part that runs once a step leads to the loss. */
static void run_once(const MtfExecutor *executor, int end) {
    MtfExecutor own = *executor;
    mtf_executor_run(&own, own.worker->program->n_repeated, end, 0);
}

void mtf_stage_run_forward(MtfStageRun *run, const MtfExecutor *executor, int once_end,
                           int64_t batch, GError **failure) {
    const MtfProgram *program = executor->worker->program;
    MtfRange forward = { 0, mtf_program_forward(program) };
    int64_t sent = mtf_stage_transfers_sent(run->transfers);
    MtfExecutor own = *executor;
    run_part(run, executor, MTF_PART_BEGIN, &(MtfRange){ 0, 0 }, 0);
    for (int m = 0; m < program->microbatches; m++) {
        own.worker = run->workers[m % run->n_slots];
        mtf_worker_set_microbatch(own.worker, m);
        if (*failure == NULL)
            mtf_data_fill_inputs(own.data, own.worker, batch, failure);
        run_part(run, &own, MTF_PART_FORWARD, &forward, 0);
    }
    mtf_stage_transfers_wait_all(run->transfers);
    mtf_worker_set_microbatch(executor->worker, 0);
    if (once_end > program->n_repeated)
        run_once(executor, once_end);
    mtf_stage_transfers_set_sent(run->transfers, sent);
}

double mtf_stage_run_share_loss(const MtfStageRun *run, MPI_Comm control, double loss) {
    const MtfPipelinePlan *pipeline = run->pipeline;
    int stage = 0;
    while (mtf_pipeline_stage(pipeline, stage)->graph->loss < 0)
        stage++;
    int root = mtf_pipeline_first_device(pipeline, pipeline->order->rank_of_stage[stage]);
    mtf_mpi_require(MPI_Bcast(&loss, 1, MPI_DOUBLE, root, control), "MPI_Bcast");
    return loss;
}
