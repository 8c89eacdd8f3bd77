// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/window_exchange.h"

#include "runtime/kernels/base/kernel_combine.h"
#include "runtime/kernels/base/kernel_streaming_stores.h"
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
} CollectiveSlot;

struct MtfWindowExchange {
    const MtfWorker *worker;
    MPI_Comm control;
    MtfHostWindow *window;
    bool borrows; /* the window is another's */
    bool reaches[MAX_SETS];
    CollectiveSlot *slots; /* one an instruction; n = 0 where there is none */
};

/* ---- Making ready -------------------------------------------------------------------------- */

static bool is_collective(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    return mtf_instruction_is_collective(instruction);
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

static void slot_init(CollectiveSlot *slot, const MtfWindowExchange *exchange, int index) {
    const MtfWorker *worker = exchange->worker;
    const MtfMesh *mesh = &worker->program->layout->mesh;
    unsigned axes = worker->moves[index].axes;
    int n = worker->moves[index].n_members;
    *slot = (CollectiveSlot){ .n = n,
                              .position = worker->moves[index].position,
                              .group = { n, g_new(int, n), axes },
                              .moves = g_new0(MtfMove, n),
                              .terms = g_new(const char *, n),
                              .targets = g_new(char *, n) };
    for (int i = 0; i < n; i++) {
        int rank = mtf_mesh_group_member(mesh, axes, worker->rank, i);
        char *base = mtf_host_window_base(exchange->window, rank);
        bool good = mtf_worker_peer_move(worker, index, rank, base, &slot->moves[i], NULL);
        g_assert(good); /* the worker's own was made from the same shapes */
        slot->group.ranks[i] = rank;
    }
}

static void slot_clear(CollectiveSlot *slot) {
    for (int i = 0; i < slot->n; i++)
        mtf_move_clear(&slot->moves[i]);
    g_free(slot->group.ranks);
    g_free(slot->moves);
    g_free(slot->terms);
    g_free(slot->targets);
}

MtfWindowExchange *mtf_window_exchange_new(MPI_Comm control, const MtfWorker *worker,
                                           const MtfWindowExchange *like) {
    MtfWindowExchange *exchange = g_new0(MtfWindowExchange, 1);
    int length = mtf_program_length(worker->program);
    exchange->worker = worker;
    exchange->control = control;
    exchange->borrows = like != NULL;
    exchange->window = like != NULL ? like->window : mtf_host_window_new(control, &worker->memory);
    exchange->slots = g_new0(CollectiveSlot, length);
    agree_on_reach(exchange);
    for (int i = 0; i < length; i++)
        if (is_collective(worker->program, i) && exchange->reaches[worker->moves[i].axes])
            slot_init(&exchange->slots[i], exchange, i);
    return exchange;
}

void mtf_window_exchange_free(MtfWindowExchange *exchange) {
    if (exchange == NULL)
        return;
    mtf_mpi_require(MPI_Barrier(exchange->control), "MPI_Barrier");
    for (int i = 0; i < mtf_program_length(exchange->worker->program); i++)
        slot_clear(&exchange->slots[i]);
    if (!exchange->borrows)
        mtf_host_window_free(exchange->window);
    g_free(exchange->slots);
    g_free(exchange);
}

void mtf_window_exchange_set_idle(MtfWindowExchange *exchange, const MtfProgressHook *idle) {
    mtf_host_window_set_idle(exchange->window, idle);
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
static void combine(const CollectiveSlot *slot, int n_targets, int64_t elements) {
    const MtfMove *own = &slot->moves[slot->position];
    mtf_combine(&(MtfCombination){ .dtype = own->dtype,
                                   .reduction = own->reduction,
                                   .n_terms = slot->n,
                                   .n_targets = n_targets,
                                   .terms = slot->terms,
                                   .targets = slot->targets },
                elements);
}

static int64_t allreduce(CollectiveSlot *slot) {
    const MtfMove *own = &slot->moves[slot->position];
    int64_t begin = part_begin(own->count, slot->position, slot->n);
    int64_t end = part_begin(own->count, slot->position + 1, slot->n);
    for (int i = 0; i < slot->n; i++) {
        slot->targets[i] = element(own, slot->moves[i].output, begin);
        slot->terms[i] = slot->targets[i];
    }
    combine(slot, slot->n, end - begin);
    return 2 * (end - begin) * (slot->n - 1) * mtf_dtype_bytes(own->dtype);
}

static int64_t reduce_scatter(CollectiveSlot *slot) {
    const MtfMove *own = &slot->moves[slot->position];
    for (int i = 0; i < slot->n; i++) {
        const MtfPeerMessages *send = &slot->moves[i].send;
        slot->terms[i] = element(own, send->base, send->offsets[slot->position]);
    }
    slot->targets[0] = own->receive.base;
    combine(slot, 1, own->receive.total);
    return own->receive.total * (slot->n - 1) * mtf_dtype_bytes(own->dtype);
}

/* Allgather and all-to-all: what each member has for this one. */
static int64_t fetch(CollectiveSlot *slot) {
    const MtfMove *own = &slot->moves[slot->position];
    int64_t size = mtf_dtype_bytes(own->dtype), moved = 0;
    int place = mtf_reshard_row(own->kind)->gathers ? 0 : slot->position;
    for (int k = 0; k < slot->n; k++) {
        int i = (slot->position + k) % slot->n; /* not all from the same one at once */
        const MtfPeerMessages *send = &slot->moves[i].send;
        int64_t bytes = own->receive.counts[i] * size;
        if (bytes > 0)
            mtf_stream_copy(element(own, own->receive.base, own->receive.offsets[i]),
                            element(own, send->base, send->offsets[place]), bytes);
        moved += i == slot->position ? 0 : bytes;
    }
    return moved;
}

uint64_t mtf_window_exchange_begin(MtfWindowExchange *exchange, int index) {
    return mtf_host_window_pass(exchange->window, exchange->slots[index].group.axes,
                                MTF_STAGE_READY);
}

bool mtf_window_exchange_is_ready(const MtfWindowExchange *exchange, int index, uint64_t epoch) {
    return mtf_host_window_all_passed(exchange->window, &exchange->slots[index].group,
                                      MTF_STAGE_READY, epoch);
}

int64_t mtf_window_exchange_fetch(MtfWindowExchange *exchange, int index, uint64_t epoch) {
    CollectiveSlot *slot = &exchange->slots[index];
    const MtfMove *own = &slot->moves[slot->position];
    mtf_host_window_wait(exchange->window, &slot->group, MTF_STAGE_READY, epoch);
    const MtfReshardRow *row = mtf_reshard_row(own->kind);
    int64_t moved = row->in_place  ? allreduce(slot)
                    : row->reduces ? reduce_scatter(slot)
                                   : fetch(slot);
    uint64_t fetched = mtf_host_window_pass(exchange->window, own->axes, MTF_STAGE_FETCHED);
    g_assert(fetched == epoch);
    return moved;
}

void mtf_window_exchange_end(const MtfWindowExchange *exchange, int index, uint64_t epoch) {
    mtf_host_window_wait(exchange->window, &exchange->slots[index].group, MTF_STAGE_FETCHED, epoch);
}

int64_t mtf_window_exchange_bytes(const MtfMove *move) {
    int64_t size = mtf_dtype_bytes(move->dtype);
    const MtfReshardRow *row = mtf_reshard_row(move->kind);
    if (row->in_place)
        return allreduce_bytes(move);
    if (row->reduces)
        return move->receive.total * (move->n_members - 1) * size;
    return (move->receive.total - move->receive.counts[move->position]) * size;
}
