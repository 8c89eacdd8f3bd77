// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/window_exchange.h"

#include "runtime/kernels/base/kernel_combine.h"
#include "runtime/kernels/base/kernel_stream.h"
#include "runtime/support/mpi_check.h"

#define MAX_SETS (1 << MTF_MAX_MESH_AXES)

/* Elements in a cache line, so that no two ranks write to the same. */
#define LINE_ELEMENTS 16

/* One collective instruction: the moves of all members of this rank's group, with addresses that
 * are valid here. */
typedef struct {
    int n, position;
    MtfWindowGroup group;
    MtfMove *moves;
    const char **terms; /* room for what is combined, one a member */
    char **targets;
} Meeting;

struct MtfWindowExchange {
    const MtfWorker *worker;
    MPI_Comm control;
    MtfHostWindow *window;
    bool reaches[MAX_SETS];
    Meeting *meetings; /* one an instruction; n = 0 where there is none */
};

/* ---- Making ready -------------------------------------------------------------------------- */

static bool is_collective(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    return instruction->kind == MTF_INSTRUCTION_STEP &&
           mtf_step_is_collective(instruction->step.kind);
}

/* Whether this rank's group of `axes` is mapped here whole. */
static bool group_is_mapped(const MtfWindowExchange *exchange, unsigned axes) {
    const MtfWorker *worker = exchange->worker;
    const MtfMesh *mesh = &worker->program->layout->mesh;
    for (int i = 0; i < mtf_mesh_group_size(mesh, axes); i++)
        if (mtf_host_window_base(exchange->window,
                                 mtf_mesh_group_member(mesh, axes, worker->rank, i)) == NULL)
            return false;
    return true;
}

static void agree_on_reach(MtfWindowExchange *exchange) {
    unsigned sets = 1u << exchange->worker->program->layout->mesh.n_axes;
    for (unsigned axes = 0; axes < sets; axes++)
        exchange->reaches[axes] = group_is_mapped(exchange, axes);
    mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE, exchange->reaches, (int)sets, MPI_C_BOOL, MPI_LAND,
                                  exchange->control),
                    "MPI_Allreduce");
}

static void meeting_init(Meeting *meeting, const MtfWindowExchange *exchange, int index) {
    const MtfWorker *worker = exchange->worker;
    const MtfMesh *mesh = &worker->program->layout->mesh;
    unsigned axes = worker->moves[index].axes;
    int n = worker->moves[index].n_members;
    *meeting = (Meeting){ .n = n,
                          .position = worker->moves[index].position,
                          .group = { n, g_new(int, n), axes },
                          .moves = g_new0(MtfMove, n),
                          .terms = g_new(const char *, n),
                          .targets = g_new(char *, n) };
    for (int i = 0; i < n; i++) {
        int rank = mtf_mesh_group_member(mesh, axes, worker->rank, i);
        char *base = mtf_host_window_base(exchange->window, rank);
        bool good = mtf_worker_peer_move(worker, index, rank, base, &meeting->moves[i], NULL);
        g_assert(good); /* the worker's own was made from the same shapes */
        meeting->group.ranks[i] = rank;
    }
}

static void meeting_clear(Meeting *meeting) {
    for (int i = 0; i < meeting->n; i++)
        mtf_move_clear(&meeting->moves[i]);
    g_free(meeting->group.ranks);
    g_free(meeting->moves);
    g_free(meeting->terms);
    g_free(meeting->targets);
}

MtfWindowExchange *mtf_window_exchange_new(MPI_Comm control, const MtfWorker *worker) {
    MtfWindowExchange *exchange = g_new0(MtfWindowExchange, 1);
    int length = mtf_program_length(worker->program);
    exchange->worker = worker;
    exchange->control = control;
    exchange->window = mtf_host_window_new(control, &worker->memory);
    exchange->meetings = g_new0(Meeting, length);
    agree_on_reach(exchange);
    for (int i = 0; i < length; i++)
        if (is_collective(worker->program, i) && exchange->reaches[worker->moves[i].axes])
            meeting_init(&exchange->meetings[i], exchange, i);
    return exchange;
}

void mtf_window_exchange_free(MtfWindowExchange *exchange) {
    if (exchange == NULL)
        return;
    mtf_mpi_require(MPI_Barrier(exchange->control), "MPI_Barrier");
    for (int i = 0; i < mtf_program_length(exchange->worker->program); i++)
        meeting_clear(&exchange->meetings[i]);
    mtf_host_window_free(exchange->window);
    g_free(exchange->meetings);
    g_free(exchange);
}

bool mtf_window_exchange_reaches(const MtfWindowExchange *exchange, unsigned axes) {
    return exchange->reaches[axes];
}

/* ---- Running ------------------------------------------------------------------------------- */

static char *element(const MtfMove *move, char *base, int64_t index) {
    return base + index * mtf_dtype_bytes(move->dtype);
}

/* Where part `i` of an allreduce among n begins. */
static int64_t part_begin(int64_t count, int i, int n) {
    return i == n ? count : count * i / n / LINE_ELEMENTS * LINE_ELEMENTS;
}

/* The bytes that member `position` of an allreduce fetches and stores. */
static int64_t allreduce_bytes(const MtfMove *move) {
    int64_t part = part_begin(move->count, move->position + 1, move->n_members) -
                   part_begin(move->count, move->position, move->n_members);
    return 2 * part * (move->n_members - 1) * mtf_dtype_bytes(move->dtype);
}

/* Combines the terms that have been noted into the first `n_targets` targets. */
static void combine(const Meeting *meeting, int n_targets, int64_t elements) {
    const MtfMove *own = &meeting->moves[meeting->position];
    mtf_combine(&(MtfCombination){ .dtype = own->dtype,
                                   .reduction = own->reduction,
                                   .n_terms = meeting->n,
                                   .n_targets = n_targets,
                                   .terms = meeting->terms,
                                   .targets = meeting->targets },
                elements);
}

static int64_t allreduce(Meeting *meeting) {
    const MtfMove *own = &meeting->moves[meeting->position];
    int64_t begin = part_begin(own->count, meeting->position, meeting->n);
    int64_t end = part_begin(own->count, meeting->position + 1, meeting->n);
    for (int i = 0; i < meeting->n; i++) {
        meeting->targets[i] = element(own, meeting->moves[i].output, begin);
        meeting->terms[i] = meeting->targets[i];
    }
    combine(meeting, meeting->n, end - begin);
    return 2 * (end - begin) * (meeting->n - 1) * mtf_dtype_bytes(own->dtype);
}

static int64_t reduce_scatter(Meeting *meeting) {
    const MtfMove *own = &meeting->moves[meeting->position];
    for (int i = 0; i < meeting->n; i++) {
        const MtfPeerMessages *send = &meeting->moves[i].send;
        meeting->terms[i] = element(own, send->base, send->offsets[meeting->position]);
    }
    meeting->targets[0] = own->receive.base;
    combine(meeting, 1, own->receive.total);
    return own->receive.total * (meeting->n - 1) * mtf_dtype_bytes(own->dtype);
}

/* Allgather and all-to-all: what each member has for this one. */
static int64_t fetch(Meeting *meeting) {
    const MtfMove *own = &meeting->moves[meeting->position];
    int64_t size = mtf_dtype_bytes(own->dtype), moved = 0;
    int place = own->kind == MTF_STEP_ALLGATHER ? 0 : meeting->position;
    for (int k = 0; k < meeting->n; k++) {
        int i = (meeting->position + k) % meeting->n; /* not all from the same one at once */
        const MtfPeerMessages *send = &meeting->moves[i].send;
        int64_t bytes = own->receive.counts[i] * size;
        if (bytes > 0)
            mtf_stream_copy(element(own, own->receive.base, own->receive.offsets[i]),
                            element(own, send->base, send->offsets[place]), bytes);
        moved += i == meeting->position ? 0 : bytes;
    }
    return moved;
}

uint64_t mtf_window_exchange_begin(MtfWindowExchange *exchange, int index) {
    return mtf_host_window_pass(exchange->window, exchange->meetings[index].group.axes,
                                MTF_STAGE_READY);
}

bool mtf_window_exchange_is_ready(const MtfWindowExchange *exchange, int index, uint64_t turn) {
    return mtf_host_window_all_passed(exchange->window, &exchange->meetings[index].group,
                                      MTF_STAGE_READY, turn);
}

int64_t mtf_window_exchange_fetch(MtfWindowExchange *exchange, int index, uint64_t turn) {
    Meeting *meeting = &exchange->meetings[index];
    const MtfMove *own = &meeting->moves[meeting->position];
    mtf_host_window_wait(exchange->window, &meeting->group, MTF_STAGE_READY, turn);
    int64_t moved = own->kind == MTF_STEP_ALLREDUCE        ? allreduce(meeting)
                    : own->kind == MTF_STEP_REDUCE_SCATTER ? reduce_scatter(meeting)
                                                           : fetch(meeting);
    uint64_t fetched = mtf_host_window_pass(exchange->window, own->axes, MTF_STAGE_FETCHED);
    g_assert(fetched == turn);
    return moved;
}

void mtf_window_exchange_end(const MtfWindowExchange *exchange, int index, uint64_t turn) {
    mtf_host_window_wait(exchange->window, &exchange->meetings[index].group, MTF_STAGE_FETCHED,
                         turn);
}

int64_t mtf_window_exchange_bytes(const MtfMove *move) {
    int64_t size = mtf_dtype_bytes(move->dtype);
    if (move->kind == MTF_STEP_ALLREDUCE)
        return allreduce_bytes(move);
    if (move->kind == MTF_STEP_REDUCE_SCATTER)
        return move->receive.total * (move->n_members - 1) * size;
    return (move->receive.total - move->receive.counts[move->position]) * size;
}
