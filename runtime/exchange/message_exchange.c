// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/message_exchange.h"

#include "layouts/program/collective_messages.h"
#include "runtime/kernels/base/kernel_combine.h"
#include "runtime/support/mpi_check.h"

#include <string.h>

/* Tags tell apart exchanges under way between the same ranks. MPI guarantees MPI_TAG_UB >= 32767. */
#define TAGS 32767

/* Where one exchange under way keeps what is not in the arena. */
typedef struct {
    bool taken;
    char *vector, *staging;
    MPI_Request *requests;
} Slot;

/* One instruction. */
typedef struct {
    GArray *messages; /* MtfExchangeMessage by rounds; NULL: it is not run so */
    const MtfMove *move;
    MPI_Comm group;
    int64_t element_bytes, own_first, own_count; /* this member's block, in elements */
    bool copies;  /* a reduce-scatter whose input others read still */
    Slot *slot;   /* while it is under way */
    char *vector; /* likewise */
    guint next;   /* of messages: the first behind the round under way */
    guint round;  /* of messages: the first of it */
    int n_requests;
    int64_t sent;
} Running;

struct MtfMessageExchange {
    int n, n_slots;
    Running *running; /* one an instruction */
    Slot *slots;
};

static const MtfExchangeMessage *message_at(const Running *r, guint i) {
    return &g_array_index(r->messages, MtfExchangeMessage, i);
}

static guint end_of_round(const Running *r, guint first) {
    guint end = first;
    while (end < r->messages->len && message_at(r, end)->round == message_at(r, first)->round)
        end++;
    return end;
}

/* ---- Making -------------------------------------------------------------------------------- */

static void fill_blocks(const MtfMove *move, int64_t *blocks) {
    const MtfReshardRow *row = mtf_reshard_row(move->kind);
    const int *counts = row->gathers ? move->receive.counts : move->send.counts;
    if (row->in_place)
        mtf_exchange_even_blocks(move->count, move->n_members, blocks);
    else
        for (int i = 0; i < move->n_members; i++)
            blocks[i] = counts[i];
}

static void running_init(Running *r, const MtfProgram *program, int index, const MtfMove *move) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    if (!mtf_instruction_takes_algorithm(program, index, instruction->algorithm))
        return;
    g_autofree int64_t *blocks = g_new(int64_t, move->n_members);
    MtfExchangeShape shape = { .kind = move->kind, .blocks = blocks };
    mtf_exchange_shape_axes(&program->layout->mesh, move->axes, &shape);
    fill_blocks(move, blocks);
    r->messages = mtf_exchange_messages_new(instruction->algorithm, &shape, move->position);
    r->move = move;
    r->element_bytes = mtf_dtype_bytes(move->dtype);
    r->own_count = blocks[move->position];
    for (int i = 0; i < move->position; i++)
        r->own_first += blocks[i];
    /* What was packed in scratch is nobody else's. */
    r->copies = !mtf_reshard_row(move->kind)->gathers && move->n_before == 0;
}

typedef struct {
    int64_t vector_bytes, staging_bytes;
    int requests;
} SlotSizes;

static void grow(SlotSizes *sizes, const Running *r) {
    if (r->copies)
        sizes->vector_bytes = MAX(sizes->vector_bytes, r->move->send.total * r->element_bytes);
    for (guint first = 0; first < r->messages->len; first = end_of_round(r, first)) {
        guint end = end_of_round(r, first);
        int64_t staged = 0;
        for (guint i = first; i < end; i++)
            staged += message_at(r, i)->combines ? message_at(r, i)->count : 0;
        sizes->staging_bytes = MAX(sizes->staging_bytes, staged * r->element_bytes);
        sizes->requests = MAX(sizes->requests, (int)(end - first));
    }
}

static char *new_memory(int64_t bytes) {
    return g_aligned_alloc0(1, (gsize)MAX(bytes, 1), 64);
}

MtfMessageExchange *mtf_message_exchange_new(const MtfCommunicators *communicators,
                                             const MtfWorker *worker, int under_way) {
    MtfMessageExchange *exchange = g_new0(MtfMessageExchange, 1);
    SlotSizes sizes = { 0 };
    exchange->n = mtf_program_length(worker->program);
    exchange->running = g_new0(Running, exchange->n);
    for (int i = 0; i < exchange->n; i++) {
        Running *r = &exchange->running[i];
        running_init(r, worker->program, i, &worker->moves[i]);
        if (r->messages == NULL)
            continue;
        r->group = mtf_communicators_get(communicators, r->move->axes);
        grow(&sizes, r);
    }
    exchange->n_slots = sizes.requests > 0 ? under_way : 0;
    exchange->slots = g_new0(Slot, exchange->n_slots);
    for (int i = 0; i < exchange->n_slots; i++)
        exchange->slots[i] = (Slot){ .vector = new_memory(sizes.vector_bytes),
                                     .staging = new_memory(sizes.staging_bytes),
                                     .requests = g_new(MPI_Request, sizes.requests) };
    return exchange;
}

void mtf_message_exchange_free(MtfMessageExchange *exchange) {
    if (exchange == NULL)
        return;
    for (int i = 0; i < exchange->n; i++)
        if (exchange->running[i].messages != NULL)
            g_array_unref(exchange->running[i].messages);
    for (int i = 0; i < exchange->n_slots; i++) {
        g_aligned_free(exchange->slots[i].vector);
        g_aligned_free(exchange->slots[i].staging);
        g_free(exchange->slots[i].requests);
    }
    g_free(exchange->running);
    g_free(exchange->slots);
    g_free(exchange);
}

bool mtf_message_exchange_runs(const MtfMessageExchange *exchange, int index) {
    return exchange->running[index].messages != NULL;
}

/* ---- Rounds -------------------------------------------------------------------------------- */

static MPI_Datatype raw_type(const Running *r) {
    return r->element_bytes == 8   ? MPI_INT64_T
           : r->element_bytes == 4 ? MPI_INT32_T
           : r->element_bytes == 2 ? MPI_INT16_T
                                   : MPI_INT8_T;
}

static char *element(const Running *r, int64_t first) {
    return r->vector + first * r->element_bytes;
}

static void post_send(Running *r, const MtfExchangeMessage *m, int tag, MPI_Request *request) {
    mtf_mpi_require(MPI_Isend(element(r, m->first), (int)m->count, raw_type(r), m->peer, tag,
                              r->group, request),
                    "MPI_Isend");
    r->sent += m->count * r->element_bytes;
}

/* Posts a round's receives and sends; what is to be combined is received one behind the other. */
static void post_round(Running *r, int tag) {
    int64_t staged = 0;
    r->n_requests = 0;
    r->next = end_of_round(r, r->round);
    for (guint i = r->round; i < r->next; i++) {
        const MtfExchangeMessage *m = message_at(r, i);
        MPI_Request *request = &r->slot->requests[r->n_requests++];
        if (m->sends) {
            post_send(r, m, tag, request);
            continue;
        }
        char *to = m->combines ? r->slot->staging + staged : element(r, m->first);
        staged += m->combines ? m->count * r->element_bytes : 0;
        mtf_mpi_require(MPI_Irecv(to, (int)m->count, raw_type(r), m->peer, tag, r->group, request),
                        "MPI_Irecv");
    }
}

/* Sums are taken in the order of the messages, the same in every run. */
static void combine_round(Running *r) {
    int64_t staged = 0;
    for (guint i = r->round; i < r->next; i++) {
        const MtfExchangeMessage *m = message_at(r, i);
        if (!m->combines)
            continue;
        char *target = element(r, m->first);
        const char *terms[] = { target, r->slot->staging + staged };
        mtf_combine(&(MtfCombination){ .dtype = r->move->dtype,
                                       .reduction = r->move->reduction,
                                       .n_terms = 2,
                                       .n_targets = 1,
                                       .terms = terms,
                                       .targets = &target },
                    m->count);
        staged += m->count * r->element_bytes;
    }
}

/* The round under way has come to its end: combine, and the next one. */
static void go_on(Running *r, int index) {
    combine_round(r);
    r->round = r->next;
    r->n_requests = 0;
    if (r->round < r->messages->len)
        post_round(r, index % TAGS);
}

static bool is_over(const Running *r) {
    return r->round == r->messages->len;
}

/* ---- An exchange --------------------------------------------------------------------------- */

static Slot *take_slot(MtfMessageExchange *exchange) {
    int i = 0;
    while (exchange->slots[i].taken)
        i++;
    g_assert(i < exchange->n_slots);
    exchange->slots[i].taken = true;
    return &exchange->slots[i];
}

static void copy_block(const Running *r, char *to, const char *from) {
    if (to != from && r->own_count > 0)
        memmove(to, from, (size_t)(r->own_count * r->element_bytes));
}

/* Where the vector is, with this member's part in it. */
static void settle_vector(Running *r) {
    const MtfMove *move = r->move;
    const MtfReshardRow *row = mtf_reshard_row(move->kind);
    if (row->in_place) {
        r->vector = move->output;
    } else if (row->gathers) {
        r->vector = move->receive.base;
        copy_block(r, element(r, r->own_first), move->send.base);
    } else {
        r->vector = r->copies ? r->slot->vector : move->send.base;
        if (r->copies)
            memcpy(r->vector, move->send.base, (size_t)(move->send.total * r->element_bytes));
    }
}

void mtf_message_exchange_begin(MtfMessageExchange *exchange, int index) {
    Running *r = &exchange->running[index];
    r->slot = take_slot(exchange);
    r->sent = 0;
    r->round = r->next = 0;
    settle_vector(r);
    if (!is_over(r))
        post_round(r, index % TAGS);
}

bool mtf_message_exchange_advance(MtfMessageExchange *exchange, int index) {
    Running *r = &exchange->running[index];
    int over = 1;
    while (!is_over(r)) {
        mtf_mpi_require(MPI_Testall(r->n_requests, r->slot->requests, &over, MPI_STATUSES_IGNORE),
                        "MPI_Testall");
        if (over == 0)
            return false;
        go_on(r, index);
    }
    return true;
}

int64_t mtf_message_exchange_end(MtfMessageExchange *exchange, int index) {
    Running *r = &exchange->running[index];
    while (!is_over(r)) {
        mtf_mpi_require(MPI_Waitall(r->n_requests, r->slot->requests, MPI_STATUSES_IGNORE),
                        "MPI_Waitall");
        go_on(r, index);
    }
    if (!mtf_reshard_row(r->move->kind)->gathers)
        copy_block(r, r->move->receive.base, element(r, r->own_first));
    r->slot->taken = false;
    return r->sent;
}
