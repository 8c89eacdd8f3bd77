// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/stage_steps.h"

#include "layouts/pipeline/pipeline_delay.h"
#include "runtime/support/mpi_check.h"

#include <string.h>

/* ---- A pass over a micro-batch --------------------------------------------------------------- */

/* The executor of a slot. */
static MtfExecutor executor_at(const MtfStageChunk *chunk, int at) {
    const MtfStageSlot *slot = &chunk->slots[at];
    MtfExecutor own = chunk->executor;
    own.worker = slot->worker;
    own.transport.window = slot->window;
    own.transport.messages = slot->messages;
    return own;
}

static MtfStageChunk *chunk_of(const MtfStageRun *run, int stage) {
    MtfStageChunk *chunk = run->chunks;
    while (chunk->stage != stage)
        chunk++;
    return chunk;
}

/* Where parts of a step end in the program, up to the last pass over a micro-batch. */
static int part_end(const MtfStageChunk *chunk, MtfStagePart part) {
    const MtfProgram *program = chunk->program;
    return part == MTF_PART_BEGIN            ? 0
           : part == MTF_PART_FORWARD        ? chunk->backward
           : part == MTF_PART_INPUT_GRADIENT ? program->weight_gradients
                                             : program->n_repeated;
}

/* A way through a chunk by the executor of a slot. */
static MtfStagePass pass_at(const MtfStageChunk *chunk, MtfExecutor *executor, int at,
                            int64_t step) {
    return (MtfStagePass){ .transfers = chunk->transfers,
                           .executor = executor,
                           .slot = at % chunk->n_slots,
                           .step = step,
                           .look = chunk->look };
}

/* Instructions for one micro-batch with the transfers of the parts that they are. */
static void run_parts(const MtfStagePass *pass, MtfStagePart first, MtfStagePart last,
                      const MtfRange *instructions) {
    for (MtfStagePart part = first; part <= last; part++)
        mtf_stage_transfers_wait(pass->transfers, part, pass->slot);
    mtf_stage_pass_run(pass, first, last, instructions);
}

static MtfStagePart first_part(MtfPipelineWork work) {
    return work == MTF_WORK_FORWARD           ? MTF_PART_FORWARD
           : work == MTF_WORK_WEIGHT_GRADIENT ? MTF_PART_WEIGHT_GRADIENT
                                              : MTF_PART_INPUT_GRADIENT;
}

static MtfStagePart last_part(MtfPipelineWork work) {
    return mtf_work_ends_microbatch(work) ? MTF_PART_WEIGHT_GRADIENT : first_part(work);
}

/* Passes of a step over a micro-batch, from an action's to that of `last`, by the worker of a slot, which has
 * its version of the variables. */
static void run_action(MtfStageRun *run, const MtfPipelineAction *action, MtfPipelineWork last,
                       int at, int64_t step, GError **failure) {
    MtfStageChunk *chunk = chunk_of(run, action->stage);
    MtfExecutor own = executor_at(chunk, at);
    double begin = own.trace != NULL ? MPI_Wtime() : 0;
    if (action->work == MTF_WORK_FORWARD)
        mtf_executor_begin_microbatch(&own, action->microbatch, step, failure);
    else
        mtf_worker_set_microbatch(own.worker, action->microbatch);
    MtfStagePass pass = pass_at(chunk, &own, at, step);
    MtfStagePart from = first_part(action->work), to = last_part(last);
    MtfRange instructions = { part_end(chunk, from - 1), part_end(chunk, to) };
    run_parts(&pass, from, to, &instructions);
    if (own.trace == NULL || last != action->work)
        return;
    MtfStepPass span = { "FIWB"[action->work], action -> stage, action -> microbatch };
    mtf_step_trace_pass(own.trace, step, &span, begin);
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
    int repeated = program->n_repeated, update = chunk->first_update;
    return part == MTF_PART_BEGIN  ? (MtfRange){ 0, 0 }
           : part == MTF_PART_ONCE ? (MtfRange){ repeated, update }
                                   : (MtfRange){ update, mtf_program_length(program) };
}

static void begin_once(MtfStageChunk *chunk, MtfStagePart part) {
    mtf_worker_set_microbatch(chunk->slots[0].worker, 0);
    mtf_stage_transfers_wait(chunk->transfers, part, 0);
    chunk->next_event = next_event(chunk, part, 0);
    chunk->next = (int)once_range(chunk, part).begin;
}

static void do_event(MtfStageChunk *chunk, MtfStagePart part, int64_t step) {
    MtfExecutor own = executor_at(chunk, 0);
    MtfStagePass pass = pass_at(chunk, &own, 0, step);
    chunk->next = mtf_stage_pass_event(&pass, chunk->next_event, chunk->next);
    chunk->next_event = next_event(chunk, part, chunk->next_event + 1);
}

static void end_once(const MtfStageChunk *chunk, MtfStagePart part, int64_t step) {
    MtfExecutor own = executor_at(chunk, 0);
    mtf_executor_run(&own, chunk->next, (int)once_range(chunk, part).end, step);
}

static void run_once(MtfStageRun *run, MtfStagePart part, int64_t step) {
    for (int c = 0; c < run->n_chunks; c++)
        begin_once(&run->chunks[c], part);
    for (int c = next_chunk(run); c >= 0; c = next_chunk(run))
        do_event(&run->chunks[c], part, step);
    for (int c = 0; c < run->n_chunks; c++)
        end_once(&run->chunks[c], part, step);
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
    run_action(run, &action, work, version * chunk->n_slots + slot, step, failure);
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
        char *newest = chunk->slots[0].worker->memory.base + chunk->arena->offsets[b];
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

/* The last pass of those that run as one with an action's: they overlap, and are of its micro-batch. */
static int run_end(const MtfPipelineOrder *order, int domain, int i) {
    const MtfPipelineAction *first = mtf_pipeline_action(order, domain, i);
    for (; mtf_pipeline_action(order, domain, i)->with_next; i++) {
        const MtfPipelineAction *next = mtf_pipeline_action(order, domain, i + 1);
        if (next->stage != first->stage || next->microbatch != first->microbatch)
            break;
    }
    return i;
}

static void run_order(MtfStageRun *run, int64_t step, GError **failure) {
    const MtfPipelineOrder *order = run->pipeline->order;
    for (int i = 0, last; i < mtf_pipeline_length(order, run->number); i = last + 1) {
        const MtfPipelineAction *action = mtf_pipeline_action(order, run->number, i);
        last = run_end(order, run->number, i);
        run_action(run, action, mtf_pipeline_action(order, run->number, last)->work,
                   chunk_of(run, action->stage)->slot_of[action->microbatch], step, failure);
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

/* ---- Forward only -------------------------------------------------------------------------- */

/* Executors as they are in training; `aside` gives them back. Meanwhile nobody watches and what is counted
 * is thrown away. */
typedef struct {
    MtfExecutor executor;
    MtfStageTraffic counted;
} Aside;

static Aside *put_aside(MtfStageRun *run) {
    Aside *aside = g_new(Aside, run->n_chunks);
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        aside[c] = (Aside){ chunk->executor, mtf_stage_transfers_counted(chunk->transfers) };
        chunk->executor.counted = mtf_traffic_new(chunk->program);
        chunk->executor.times = NULL;
        chunk->executor.trace = NULL;
        chunk->executor.norm = NULL;
        chunk->executor.dropped = NULL;
    }
    return aside;
}

static void take_back(MtfStageRun *run, Aside *aside) {
    for (int c = 0; c < run->n_chunks; c++) {
        MtfStageChunk *chunk = &run->chunks[c];
        mtf_stage_transfers_set_counted(chunk->transfers, aside[c].counted);
        mtf_traffic_free(chunk->executor.counted);
        chunk->executor = aside[c].executor;
    }
    g_free(aside);
}

/* What leads to the loss, or to what is looked at, of what runs once a step. */
static void run_to_loss(MtfStageChunk *chunk, int64_t step) {
    MtfExecutor own = executor_at(chunk, 0);
    MtfStagePass pass = pass_at(chunk, &own, 0, step);
    mtf_worker_set_microbatch(own.worker, 0);
    mtf_stage_pass_range(&pass, chunk->program->n_repeated, chunk->forward.once);
}

static void run_forward(const MtfStageChunk *chunk, MtfExecutor *executor, int at, int64_t step) {
    MtfStagePass pass = pass_at(chunk, executor, at, step);
    MtfRange forward = { 0, chunk->forward.repeated };
    run_parts(&pass, MTF_PART_FORWARD, MTF_PART_FORWARD, &forward);
}

/* The forward passes of all micro-batches of a batch; as those of training in a step other than 0. */
static void run_batch(MtfStageRun *run, int64_t batch, int64_t step, GError **failure) {
    run_once(run, MTF_PART_BEGIN, step);
    for (int m = 0; m < run->pipeline->order->microbatches; m++)
        for (int c = 0; c < run->n_chunks; c++) {
            MtfStageChunk *chunk = &run->chunks[c];
            int at = m % chunk->n_slots;
            MtfExecutor own = executor_at(chunk, at);
            mtf_executor_begin_microbatch(&own, m, batch, failure);
            run_forward(chunk, &own, at, step);
        }
    wait_for_all(run);
    for (int c = 0; c < run->n_chunks; c++)
        run_to_loss(&run->chunks[c], step);
}

void mtf_stage_run_forward(MtfStageRun *run, int64_t batch, GError **failure) {
    Aside *aside = put_aside(run);
    run_batch(run, batch, 0, failure);
    take_back(run, aside);
}

/* Exchanges what stages send each other for a step's updates, which are not made: what waits to be taken would
 * be waited for. */
static void pass_over_update(MtfStageRun *run) {
    for (int c = 0; c < run->n_chunks; c++) {
        begin_once(&run->chunks[c], MTF_PART_UPDATE);
        run->chunks[c].next = mtf_program_length(run->chunks[c].program);
    }
    for (int c = next_chunk(run); c >= 0; c = next_chunk(run))
        do_event(&run->chunks[c], MTF_PART_UPDATE, 0);
}

void mtf_stage_run_watch(MtfStageRun *run, int64_t step, const MtfInstructionLook *looks) {
    GError *unread = NULL;
    mtf_stage_run_drain(run, step);
    pass_over_update(run);
    for (int64_t next = step + 1; run->asynchronous && next <= run->until; next++) {
        mtf_stage_run_compute(run, next, NULL);
        pass_over_update(run);
    }
    wait_for_all(run);
    Aside *aside = put_aside(run);
    for (int c = 0; c < run->n_chunks; c++)
        run->chunks[c].executor.look = &looks[c];
    run_batch(run, step, step, &unread);
    take_back(run, aside);
    g_clear_error(&unread);
}

static void look_at_chunk(MtfStageChunk *chunk, const MtfStageLook *look) {
    chunk->executor.accuracy = NULL;
    MtfExecutor own = executor_at(chunk, 0);
    mtf_worker_set_microbatch(own.worker, 0);
    look->fill(own.worker, look->user);
    chunk->look = chunk->stage == look->stage ? look : NULL;
    run_forward(chunk, &own, 0, 0);
    if (chunk->look != NULL && look->before > chunk->program->n_repeated)
        run_to_loss(chunk, 0);
    chunk->look = NULL;
}

void mtf_stage_run_look(MtfStageRun *run, const MtfStageLook *look) {
    Aside *aside = put_aside(run);
    run_once(run, MTF_PART_BEGIN, 0);
    for (int c = 0; c < run->n_chunks; c++)
        look_at_chunk(&run->chunks[c], look);
    wait_for_all(run);
    take_back(run, aside);
}

bool mtf_stage_run_all(MtfStageRun *run, int64_t batch, GError **error) {
    Aside *aside = put_aside(run);
    bool done = mtf_stage_run_compute(run, batch, error);
    mtf_stage_run_update(run, batch);
    take_back(run, aside);
    return done;
}
