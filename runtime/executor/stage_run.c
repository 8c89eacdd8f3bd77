// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/stage_run.h"

#include "layouts/base/error.h"
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

static bool load_chunk(MtfStageRun *run, int stage, GError **error) {
    MtfStageChunk *chunk = &run->chunks[run->n_chunks++];
    chunk->stage = stage;
    chunk->plan = mtf_pipeline_stage(run->pipeline, stage);
    chunk->program = mtf_plan_lower(chunk->plan, error);
    if (chunk->program == NULL)
        return false;
    chunk->arena = mtf_arena_pack(chunk->program);
    chunk->slot_of = g_new(int, run->pipeline->order->microbatches);
    chunk->n_slots = mtf_pipeline_slots(run->pipeline->order, stage, chunk->slot_of);
    chunk->n_versions = chunk->plan->layout->execution.stage.weight_versions;
    chunk->delay = chunk->n_versions - 1;
    if (run->asynchronous) {
        chunk->lookahead = mtf_pipeline_lookahead(run->pipeline->order, stage);
        chunk->n_slots = chunk->lookahead + 1;
    }
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

MtfStageRun *mtf_stage_run_load(const char *path, MPI_Comm control, GError **error) {
    int rank, ranks;
    mtf_mpi_require(MPI_Comm_rank(control, &rank), "MPI_Comm_rank");
    mtf_mpi_require(MPI_Comm_size(control, &ranks), "MPI_Comm_size");
    g_autoptr(MtfPipelinePlan) pipeline = mtf_pipeline_plan_load(path, error);
    if (pipeline == NULL || !check_ranks(pipeline, path, ranks, error))
        return NULL;
    MtfStageRun *run = g_new0(MtfStageRun, 1);
    run->number = domain_of(pipeline, rank);
    run->rank = rank - mtf_pipeline_first_device(pipeline, run->number);
    run->domain = run->transfers = MPI_COMM_NULL;
    run->pipeline = g_steal_pointer(&pipeline);
    run->asynchronous = mtf_pipeline_is_asynchronous(run->pipeline->schedule);
    if (load_chunks(run, error))
        return run;
    mtf_stage_run_free(run);
    return NULL;
}

/* ---- Opening ------------------------------------------------------------------------------- */

bool mtf_stage_run_make_workers(MtfStageRun *run, uint64_t seed, GError **error) {
    run->workers = g_new0(const MtfWorker *, run->n_chunks);
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        chunk->workers = g_new0(MtfWorker *, chunk->n_slots * chunk->n_versions);
        chunk->slot_arenas = g_new0(MtfArena *, chunk->n_slots * chunk->n_versions);
        chunk->workers[0] = mtf_worker_new(chunk->program, chunk->arena, run->rank, seed, error);
        if (chunk->workers[0] == NULL)
            return false;
        run->workers[c] = chunk->workers[0];
    }
    return true;
}

static void make_slots(const MtfStageRun *run, MtfStageChunk *chunk, uint64_t seed) {
    for (int w = 1; w < chunk->n_slots * chunk->n_versions; w++) {
        chunk->slot_arenas[w] =
            mtf_arena_slot(chunk->arena, chunk->program, w % chunk->n_slots, w / chunk->n_slots);
        chunk->workers[w] = mtf_worker_new_at(chunk->program, chunk->slot_arenas[w], run->rank,
                                              seed, chunk->workers[0]->memory.base, NULL);
        g_assert(chunk->workers[w] != NULL);
    }
}

static void open_chunk(MtfStageRun *run, MtfStageChunk *chunk, const MtfExecutor *how) {
    MtfStagePlace place = { run->pipeline, chunk->program, chunk->stage, run->rank,
                            mtf_executor_first_update(chunk->program) };
    MtfWorker *worker = chunk->workers[0];
    chunk->transfers = mtf_stage_transfers_new(run->transfers, &place);
    chunk->executor = *how;
    chunk->executor.worker = worker;
    chunk->executor.counted = mtf_traffic_new(chunk->program);
    chunk->executor.times = NULL;
    chunk->executor.trace = NULL;
    chunk->executor.norm = NULL;
    chunk->executor.stages = chunk->transfers;
    MtfTransport *transport = &chunk->executor.transport;
    chunk->communicators = mtf_communicators_new(run->domain, chunk->program);
    transport->communicators = chunk->communicators;
    transport->window = NULL;
    transport->messages =
        mtf_message_exchange_new(transport->communicators, worker, MTF_EXCHANGES_UNDER_WAY + 1);
}

void mtf_stage_run_open(MtfStageRun *run, MPI_Comm control, const MtfExecutor *how, uint64_t seed) {
    mtf_mpi_require(MPI_Comm_split(control, run->number, run->rank, &run->domain),
                    "MPI_Comm_split");
    mtf_mpi_require(MPI_Comm_set_errhandler(run->domain, MPI_ERRORS_RETURN),
                    "MPI_Comm_set_errhandler");
    mtf_mpi_require(MPI_Comm_set_name(run->domain, MTF_CONTROL_NAME), "MPI_Comm_set_name");
    run->transfers = mtf_stage_communicator_new(control);
    for (int c = 0; c < run->n_chunks; c++) {
        make_slots(run, &run->chunks[c], seed);
        open_chunk(run, &run->chunks[c], how);
    }
}

static void close_chunk(MtfStageChunk *chunk) {
    mtf_stage_transfers_free(chunk->transfers);
    mtf_message_exchange_free(chunk->executor.transport.messages);
    mtf_communicators_free(chunk->communicators);
    mtf_traffic_free(chunk->executor.counted);
    for (int w = chunk->n_slots * chunk->n_versions - 1; chunk->workers != NULL && w >= 0; w--) {
        mtf_worker_free(chunk->workers[w]);
        mtf_arena_free(chunk->slot_arenas[w]);
    }
    mtf_arena_free(chunk->arena);
    mtf_program_free(chunk->program);
    g_free(chunk->workers);
    g_free(chunk->slot_arenas);
    g_free(chunk->slot_of);
}

void mtf_stage_run_free(MtfStageRun *run) {
    if (run == NULL)
        return;
    for (int c = 0; c < run->n_chunks; c++)
        close_chunk(&run->chunks[c]);
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

int64_t mtf_stage_run_spans(const MtfStageRun *run) {
    int64_t spans = mtf_pipeline_length(run->pipeline->order, run->number);
    for (int c = 0; c < run->n_chunks; c++)
        spans += mtf_step_trace_spans(run->chunks[c].program);
    return spans;
}

void mtf_stage_run_trace(MtfStageRun *run, MtfStepTrace *trace) {
    for (int c = 0; c < run->n_chunks; c++)
        run->chunks[c].executor.trace = trace;
}

/* ---- A pass over a micro-batch --------------------------------------------------------------- */

/* The chunk's pass by the worker that an executor has. */
static MtfStagePass pass_of(const MtfStageChunk *chunk, MtfExecutor *executor, int64_t step) {
    int slot = 0;
    while (chunk->workers[slot] != executor->worker)
        slot++;
    return (MtfStagePass){ .transfers = chunk->transfers,
                           .executor = executor,
                           .slot = slot % chunk->n_slots,
                           .step = step,
                           .look = chunk->look };
}

/* Instructions of one part of the step for one micro-batch, with the part's transfers. */
static void run_part(MtfStageChunk *chunk, MtfExecutor *executor, MtfStagePart part,
                     const MtfRange *instructions, int64_t step) {
    MtfStagePass pass = pass_of(chunk, executor, step);
    mtf_stage_transfers_wait(chunk->transfers, part, pass.slot);
    mtf_stage_pass_run(&pass, part, part, instructions);
}

static MtfStageChunk *chunk_of(const MtfStageRun *run, int stage) {
    MtfStageChunk *chunk = run->chunks;
    while (chunk->stage != stage)
        chunk++;
    return chunk;
}

static void run_forward_pass(MtfStageChunk *chunk, MtfExecutor *executor, int64_t step) {
    MtfRange forward = { 0, mtf_program_forward(chunk->program) };
    run_part(chunk, executor, MTF_PART_FORWARD, &forward, step);
}

static void run_passes(MtfStageChunk *chunk, MtfExecutor *executor, MtfPipelineWork work,
                       int64_t step) {
    const MtfProgram *program = chunk->program;
    MtfRange input = { mtf_program_forward(program), program->weight_gradients };
    MtfRange weight = { program->weight_gradients, program->n_repeated };
    if (work == MTF_WORK_FORWARD)
        run_forward_pass(chunk, executor, step);
    if (mtf_work_makes_input_gradient(work))
        run_part(chunk, executor, MTF_PART_INPUT_GRADIENT, &input, step);
    if (mtf_work_ends_microbatch(work))
        run_part(chunk, executor, MTF_PART_WEIGHT_GRADIENT, &weight, step);
}

/* One pass of a step over a micro-batch by the worker that has its slot and its version of the
 * variables. */
static void run_action(MtfStageRun *run, const MtfPipelineAction *action, MtfWorker *worker,
                       int64_t step, GError **failure) {
    MtfStageChunk *chunk = chunk_of(run, action->stage);
    MtfExecutor own = chunk->executor;
    double begin = own.trace != NULL ? MPI_Wtime() : 0;
    own.worker = worker;
    if (action->work == MTF_WORK_FORWARD)
        mtf_executor_begin_microbatch(&own, action->microbatch, step, failure);
    else
        mtf_worker_set_microbatch(own.worker, action->microbatch);
    run_passes(chunk, &own, action->work, step);
    if (own.trace == NULL)
        return;
    MtfStepPass pass = { "FIWB"[action->work], action -> stage, action -> microbatch };
    mtf_step_trace_pass(own.trace, step, &pass, begin);
}

/* ---- What is done once a step ---------------------------------------------------------------- */

static int next_event(const MtfStageChunk *chunk, MtfStagePart part, int event) {
    int n = mtf_stage_transfers_count(chunk->transfers);
    while (event < n && mtf_stage_transfers_event(chunk->transfers, event)->part != part)
        event++;
    return event;
}

/* The event that a chunk is at; NULL when it has done all. */
static const MtfStageEvent *current_event(const MtfStageChunk *chunk) {
    return chunk->next_event < mtf_stage_transfers_count(chunk->transfers)
               ? mtf_stage_transfers_event(chunk->transfers, chunk->next_event)
               : NULL;
}

/* Of chunks that all wait for a tensor, one whose tensor has come to all ranks of the domain: these
 * agree, since their collectives must meet. */
static int await_one(const MtfStageRun *run) {
    guint64 ready = 0;
    while (ready == 0) {
        for (int c = 0; c < run->n_chunks; c++)
            if (current_event(&run->chunks[c]) != NULL &&
                mtf_stage_transfer_has_come(run->chunks[c].transfers, run->chunks[c].next_event))
                ready |= (guint64)1 << c;
        mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_UINT64_T, MPI_BAND, run->domain),
                        "MPI_Allreduce");
    }
    int chunk = 0;
    while ((ready >> chunk & 1) == 0)
        chunk++;
    return chunk;
}

/* The chunk that goes on: one that sends, else one whose tensor has come; -1 when all are done. One
 * that waits does not keep another from sending what the first waits for. */
static int next_chunk(const MtfStageRun *run) {
    int waiting = 0, last = -1;
    for (int c = 0; c < run->n_chunks; c++) {
        const MtfStageEvent *event = current_event(&run->chunks[c]);
        if (event == NULL)
            continue;
        if (event->sends)
            return c;
        last = c;
        waiting++;
    }
    return waiting > 1 ? await_one(run) : last;
}

/* The instructions of a chunk in such a part. */
static MtfRange once_range(const MtfStageChunk *chunk, MtfStagePart part) {
    const MtfProgram *program = chunk->program;
    int repeated = program->n_repeated, update = mtf_executor_first_update(program);
    return part == MTF_PART_BEGIN  ? (MtfRange){ 0, 0 }
           : part == MTF_PART_ONCE ? (MtfRange){ repeated, update }
                                   : (MtfRange){ update, mtf_program_length(program) };
}

static void run_once(MtfStageRun *run, MtfStagePart part, int64_t step) {
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        mtf_worker_set_microbatch(chunk->workers[0], 0);
        mtf_stage_transfers_wait(chunk->transfers, part, 0);
        chunk->next_event = next_event(chunk, part, 0);
        chunk->next = (int)once_range(chunk, part).begin;
    }
    for (int c = next_chunk(run); c >= 0; c = next_chunk(run)) {
        MtfStageChunk *chunk = &run->chunks[c];
        MtfStagePass pass = pass_of(chunk, &chunk->executor, step);
        chunk->next = mtf_stage_pass_event(&pass, chunk->next_event, chunk->next);
        chunk->next_event = next_event(chunk, part, chunk->next_event + 1);
    }
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        mtf_executor_run(&chunk->executor, chunk->next, (int)once_range(chunk, part).end, step);
    }
}

static void wait_for_all(MtfStageRun *run) {
    for (int c = 0; c < run->n_chunks; c++)
        mtf_stage_transfers_wait_all(run->chunks[c].transfers);
}

/* ---- Steps that overlap ---------------------------------------------------------------------- */

/* Where the version of the variables is that a step reads while step `now` is the next to be updated:
 * the newest where updates are made, the others where they were put aside. */
static int version_of(const MtfStageRun *run, const MtfStageChunk *chunk, int64_t step,
                      int64_t now) {
    int64_t updates = MAX(run->begun, step - 1 - chunk->delay);
    return updates == now - 1 ? 0 : 1 + (int)(updates % chunk->delay);
}

/* A pass over micro-batch `number`, counted from the first of all steps; nothing where it belongs to a
 * step behind the last that overlaps. */
static void run_pass_ahead(MtfStageRun *run, MtfPipelineWork work, int64_t number, int64_t now,
                           GError **failure) {
    MtfStageChunk *chunk = &run->chunks[0];
    int m = run->pipeline->order->microbatches;
    MtfPipelineAction action = { .stage = chunk->stage, .microbatch = (int)(number % m), work };
    int64_t step = number / m + 1;
    if (step > run->until)
        return;
    int version = version_of(run, chunk, step, now), slot = (int)(number % chunk->n_slots);
    run_action(run, &action, chunk->workers[version * chunk->n_slots + slot], step, failure);
}

/* A step's backward passes, each behind the forward pass of the micro-batch that lies ahead; the first
 * step begins with those in between. */
static void run_overlapping(MtfStageRun *run, int64_t step, GError **failure) {
    const MtfStageChunk *chunk = &run->chunks[0];
    int m = run->pipeline->order->microbatches;
    int64_t first = (step - 1) * m;
    for (int ahead = 0; step == run->begun + 1 && ahead < chunk->lookahead; ahead++)
        run_pass_ahead(run, MTF_WORK_FORWARD, first + ahead, step, failure);
    for (int64_t number = first; number < first + m; number++) {
        run_pass_ahead(run, MTF_WORK_FORWARD, number + chunk->lookahead, step, failure);
        run_pass_ahead(run, MTF_WORK_BACKWARD, number, step, failure);
    }
}

/* Puts the variables aside that later passes read as they are before a step's update. */
static void keep_version(const MtfStageChunk *chunk, int64_t step) {
    int64_t aside = 1 + (step - 1) % MAX(1, chunk->delay);
    for (int b = 0; b < (int)chunk->program->buffers->len; b++) {
        const MtfBuffer *buffer = mtf_program_buffer(chunk->program, b);
        if (buffer->storage != b || !buffer->persistent || buffer->slots < 2 ||
            mtf_buffer_is_fed(chunk->program, buffer))
            continue;
        char *newest = chunk->workers[0]->memory.base + chunk->arena->offsets[b];
        memcpy(newest + aside * mtf_buffer_stride(buffer), newest, (gsize)buffer->bytes);
    }
}

void mtf_stage_run_begin(MtfStageRun *run, int64_t done, int64_t until) {
    run->begun = done;
    run->until = until;
}

void mtf_stage_run_drain(MtfStageRun *run, int64_t step) {
    const MtfPipelineOrder *order = run->pipeline->order;
    int ahead = mtf_pipeline_lookahead(order, 0), m = order->microbatches;
    run->until = MIN(run->until, step + (ahead + m - 1) / m);
}

/* ---- A step -------------------------------------------------------------------------------- */

static void run_order(MtfStageRun *run, int64_t step, GError **failure) {
    const MtfPipelineOrder *order = run->pipeline->order;
    for (int i = 0; i < mtf_pipeline_length(order, run->number); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(order, run->number, i);
        const MtfStageChunk *chunk = chunk_of(run, action->stage);
        run_action(run, action, chunk->workers[chunk->slot_of[action->microbatch]], step, failure);
    }
}

bool mtf_stage_run_compute(MtfStageRun *run, int64_t step, GError **error) {
    GError *failure = NULL;
    run_once(run, MTF_PART_BEGIN, step);
    if (run->asynchronous)
        run_overlapping(run, step, &failure);
    else
        run_order(run, step, &failure);
    run_once(run, MTF_PART_ONCE, step);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}

void mtf_stage_run_update(MtfStageRun *run, int64_t step) {
    for (int c = 0; c < run->n_chunks; c++)
        if (run->chunks[c].delay > 0)
            keep_version(&run->chunks[c], step);
    run_once(run, MTF_PART_UPDATE, step);
    if (!run->asynchronous || step == run->until)
        wait_for_all(run);
}

/* What leads to the loss of what runs once a step. */
static void run_to_loss(MtfStageChunk *chunk) {
    const MtfProgram *program = chunk->program;
    int end = mtf_program_length(program);
    while (end > program->n_repeated && !mtf_program_writes_loss(program, end - 1))
        end--;
    mtf_executor_run(&chunk->executor, program->n_repeated, end, 0);
}

static void evaluate_chunk(MtfStageChunk *chunk, int microbatch, int64_t batch, GError **failure) {
    MtfExecutor own = chunk->executor;
    own.worker = chunk->workers[microbatch % chunk->n_slots];
    mtf_executor_begin_microbatch(&own, microbatch, batch, failure);
    run_forward_pass(chunk, &own, 0);
}

/* What the chunks' collectives and transfers have counted, while it stands aside. */
typedef struct {
    int64_t *sent;
    MtfTraffic **counted;
} Counted;

static Counted put_counters_aside(MtfStageRun *run) {
    Counted aside = { g_new(int64_t, run->n_chunks), g_new(MtfTraffic *, run->n_chunks) };
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        aside.sent[c] = mtf_stage_transfers_sent(chunk->transfers);
        aside.counted[c] = chunk->executor.counted;
        chunk->executor.counted = mtf_traffic_new(chunk->program);
    }
    return aside;
}

static void take_counters_back(MtfStageRun *run, Counted *aside) {
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        mtf_stage_transfers_set_sent(chunk->transfers, aside->sent[c]);
        mtf_traffic_free(chunk->executor.counted);
        chunk->executor.counted = aside->counted[c];
    }
    g_free(aside->sent);
    g_free(aside->counted);
}

void mtf_stage_run_forward(MtfStageRun *run, int64_t batch, GError **failure) {
    Counted aside = put_counters_aside(run);
    run_once(run, MTF_PART_BEGIN, 0);
    for (int m = 0; m < run->pipeline->order->microbatches; m++)
        for (int c = 0; c < run->n_chunks; c++)
            evaluate_chunk(&run->chunks[c], m, batch, failure);
    wait_for_all(run);
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        mtf_worker_set_microbatch(chunk->workers[0], 0);
        if (chunk->plan->graph->loss >= 0)
            run_to_loss(chunk);
    }
    take_counters_back(run, &aside);
}

static void look_at_chunk(MtfStageChunk *chunk, const MtfStageLook *look) {
    MtfExecutor own = chunk->executor;
    own.worker = chunk->workers[0];
    own.accuracy = NULL;
    own.trace = NULL;
    mtf_worker_set_microbatch(own.worker, 0);
    look->fill(own.worker, look->user);
    chunk->look = chunk->stage == look->stage ? look : NULL;
    run_forward_pass(chunk, &own, 0);
    chunk->look = NULL;
}

void mtf_stage_run_look(MtfStageRun *run, const MtfStageLook *look) {
    Counted aside = put_counters_aside(run);
    run_once(run, MTF_PART_BEGIN, 0);
    for (int c = 0; c < run->n_chunks; c++)
        look_at_chunk(&run->chunks[c], look);
    wait_for_all(run);
    take_counters_back(run, &aside);
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
