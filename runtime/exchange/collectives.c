// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/collectives.h"

#include "runtime/support/mpi_check.h"

#include <string.h>

/* One call of MPI. */
typedef struct {
    const MtfMove *move;
    MPI_Comm group;
    MPI_Datatype type;
    MPI_Op operation;
    int64_t first; /* of an allreduce: elements [first, first + count) */
    int count;
    MPI_Request *request; /* NULL: the call waits for the end */
} Call;

static void call_allreduce(const Call *c) {
    char *at = c->move->output + c->first * mtf_dtype_bytes(c->move->dtype);
    mtf_mpi_require(c->request == NULL
                        ? MPI_Allreduce(MPI_IN_PLACE, at, c->count, c->type, c->operation, c->group)
                        : MPI_Iallreduce(MPI_IN_PLACE, at, c->count, c->type, c->operation,
                                         c->group, c->request),
                    "MPI_Allreduce");
}

static void call_reduce_scatter(const Call *c) {
    const MtfPeerMessages *send = &c->move->send, *receive = &c->move->receive;
    mtf_mpi_require(c->request == NULL
                        ? MPI_Reduce_scatter(send->base, receive->base, send->counts, c->type,
                                             c->operation, c->group)
                        : MPI_Ireduce_scatter(send->base, receive->base, send->counts, c->type,
                                              c->operation, c->group, c->request),
                    "MPI_Reduce_scatter");
}

static void call_allgather(const Call *c) {
    const MtfPeerMessages *send = &c->move->send, *receive = &c->move->receive;
    mtf_mpi_require(c->request == NULL
                        ? MPI_Allgatherv(send->base, send->counts[0], c->type, receive->base,
                                         receive->counts, receive->offsets, c->type, c->group)
                        : MPI_Iallgatherv(send->base, send->counts[0], c->type, receive->base,
                                          receive->counts, receive->offsets, c->type, c->group,
                                          c->request),
                    "MPI_Allgatherv");
}

/* Where messages begin; of a rank that has none to send, somewhere else than what it receives:
 * non-blocking all-to-alls of Open MPI (libnbc's NBC_IN_PLACE, 4.1.4) take one address for both as
 * asking for an exchange in place, which waits for messages that nobody sends. */
static const void *sent_from(const MtfPeerMessages *send) {
    static const char nothing;
    return send->total > 0 ? (const void *)send->base : &nothing;
}

static void call_alltoall(const Call *c) {
    const MtfPeerMessages *send = &c->move->send, *receive = &c->move->receive;
    mtf_mpi_require(
        c->request == NULL
            ? MPI_Alltoallv(send->base, send->counts, send->offsets, c->type, receive->base,
                            receive->counts, receive->offsets, c->type, c->group)
            : MPI_Ialltoallv(sent_from(send), send->counts, send->offsets, c->type, receive->base,
                             receive->counts, receive->offsets, c->type, c->group, c->request),
        "MPI_Alltoallv");
}

static void (*const calls[MTF_RESHARD_KINDS])(const Call *) = {
    [MTF_RESHARD_ALLREDUCE] = call_allreduce, [MTF_RESHARD_REDUCE_SCATTER] = call_reduce_scatter,
    [MTF_RESHARD_ALLGATHER] = call_allgather, [MTF_RESHARD_ALLTOALL] = call_alltoall,
    [MTF_RESHARD_HALO] = call_alltoall,       [MTF_RESHARD_PERMUTE] = call_alltoall,
};

/* Elements [first, first + count) in place; of the other collectives, the whole exchange. With a
 * request it is begun, else it is done. */
static void call_mpi(const MtfCommunicators *communicators, const MtfMove *move, int64_t first,
                     int count, MPI_Request *request) {
    Call call = { .move = move,
                  .group = mtf_communicators_get(communicators, move->axes),
                  .type = mtf_element_type(move->dtype),
                  .operation =
                      mtf_communicators_operation(communicators, move->dtype, move->reduction),
                  .first = first,
                  .count = count,
                  .request = request };
    calls[move->kind](&call);
}

/* The elements that count as payload: the gathered output of an allgather, the input of all others.
 */
static int64_t payload(const MtfMove *move) {
    const MtfReshardRow *row = mtf_reshard_row(move->kind);
    return row->in_place ? move->count : row->gathers ? move->receive.total : move->send.total;
}

/* The elements that one call takes. */
static int64_t most_of_a_call(const MtfTransport *transport, const MtfMove *move) {
    return mtf_reshard_row(move->kind)->in_place ? transport->max_message : MAX(payload(move), 1);
}

/* Counts `elements` of payload as the program does. */
static void count(const MtfTransport *transport, const MtfMove *move, MtfTrafficEntry *counted,
                  int64_t elements) {
    int64_t most = most_of_a_call(transport, move);
    counted->calls += elements == 0 ? 1 : (elements + most - 1) / most;
    counted->bytes += elements * mtf_dtype_bytes(move->dtype);
}

static bool goes_by_window(const MtfTransport *transport, const MtfMove *move) {
    return transport->window != NULL && move->algorithm == MTF_EXCHANGE_DIRECT &&
           mtf_window_exchange_reaches(transport->window, move->axes);
}

static bool goes_by_messages(const MtfTransport *transport, int index) {
    return transport->messages != NULL && mtf_message_exchange_runs(transport->messages, index);
}

/* From beginning to end by MPI; an allreduce in as many calls as it takes. */
static void issue_by_mpi(const MtfTransport *transport, const MtfMove *move,
                         MtfTrafficEntry *counted) {
    int64_t total = payload(move), first = 0, most = most_of_a_call(transport, move);
    do {
        int64_t chunk = MIN(total - first, most);
        call_mpi(transport->communicators, move, first, (int)chunk, NULL);
        count(transport, move, counted, chunk);
        first += chunk;
    } while (first < total);
}

/* An exchange in several calls does not stay under way: they would begin in another order than
 * those of the next one on ranks that are faster. */
static bool takes_several_calls(const MtfTransport *transport, const MtfMove *move) {
    return mtf_reshard_row(move->kind)->in_place && move->count > transport->max_message;
}

static void begin(const MtfTransport *transport, MtfExchange *exchange) {
    const MtfMove *move = exchange->move;
    exchange->by_window = goes_by_window(transport, move);
    exchange->by_messages = goes_by_messages(transport, exchange->index);
    if (!exchange->by_window && !exchange->by_messages && takes_several_calls(transport, move)) {
        issue_by_mpi(transport, move, exchange->counted);
        exchange->request = MPI_REQUEST_NULL;
        return;
    }
    if (exchange->by_window)
        exchange->epoch = mtf_window_exchange_begin(transport->window, exchange->index);
    else if (exchange->by_messages)
        mtf_message_exchange_begin(transport->messages, exchange->index);
    else
        call_mpi(transport->communicators, move, 0, (int)move->count, &exchange->request);
    count(transport, move, exchange->counted, payload(move));
}

/* This rank's part, waiting until the others are ready for it. */
static void move_now(const MtfTransport *transport, MtfExchange *exchange) {
    if (exchange->moved)
        return;
    if (exchange->by_window)
        exchange->counted->copied +=
            mtf_window_exchange_fetch(transport->window, exchange->index, exchange->epoch);
    else if (exchange->by_messages)
        exchange->counted->sent += mtf_message_exchange_end(transport->messages, exchange->index);
    else
        mtf_mpi_require(MPI_Wait(&exchange->request, MPI_STATUS_IGNORE), "MPI_Wait");
    exchange->moved = true;
}

/* Whether it need not wait any more. Asking lets MPI work at all that is under way. */
static bool can_move(const MtfTransport *transport, MtfExchange *exchange) {
    int over = 1;
    if (exchange->by_window)
        return mtf_window_exchange_is_ready(transport->window, exchange->index, exchange->epoch);
    if (exchange->by_messages)
        return mtf_message_exchange_advance(transport->messages, exchange->index);
    mtf_mpi_require(MPI_Test(&exchange->request, &over, MPI_STATUS_IGNORE), "MPI_Test");
    return over != 0;
}

void mtf_collective_begin(const MtfTransport *transport, MtfExchanges *under_way, int index,
                          const MtfMove *move, MtfTrafficEntry *counted) {
    double start = MPI_Wtime();
    g_assert(under_way->n < MTF_EXCHANGES_UNDER_WAY);
    MtfExchange *exchange = &under_way->exchanges[under_way->n++];
    *exchange = (MtfExchange){ .index = index, .move = move, .counted = counted };
    begin(transport, exchange);
    counted->seconds += MPI_Wtime() - start;
}

void mtf_collectives_progress(const MtfTransport *transport, MtfExchanges *under_way) {
    for (int i = 0; i < under_way->n; i++) {
        MtfExchange *exchange = &under_way->exchanges[i];
        if (exchange->moved)
            continue;
        double start = MPI_Wtime();
        bool moves = can_move(transport, exchange);
        if (moves)
            move_now(transport, exchange);
        exchange->counted->seconds += MPI_Wtime() - start;
        if (!moves)
            return;
    }
}

int mtf_collective_end_oldest(const MtfTransport *transport, MtfExchanges *under_way) {
    double start = MPI_Wtime();
    MtfExchange oldest = under_way->exchanges[0];
    move_now(transport, &oldest);
    if (oldest.by_window)
        mtf_window_exchange_end(transport->window, oldest.index, oldest.epoch);
    under_way->n--;
    memmove(under_way->exchanges, under_way->exchanges + 1,
            sizeof *under_way->exchanges * (gsize)under_way->n);
    oldest.counted->seconds += MPI_Wtime() - start;
    return oldest.index;
}

/* What goes by the window is fetched in the order of its epochs. */
static void move_windows(const MtfTransport *transport, MtfExchanges *under_way) {
    for (int i = 0; i < under_way->n; i++)
        if (under_way->exchanges[i].by_window)
            move_now(transport, &under_way->exchanges[i]);
}

void mtf_collective_issue(const MtfTransport *transport, MtfExchanges *under_way, int index,
                          const MtfMove *move, MtfTrafficEntry *counted) {
    double start = MPI_Wtime();
    MtfExchange exchange = { .index = index, .move = move, .counted = counted };
    if (goes_by_window(transport, move)) {
        begin(transport, &exchange);
        move_windows(transport, under_way);
        move_now(transport, &exchange);
        mtf_window_exchange_end(transport->window, index, exchange.epoch);
    } else if (goes_by_messages(transport, index)) {
        begin(transport, &exchange);
        move_now(transport, &exchange);
    } else {
        issue_by_mpi(transport, move, counted);
    }
    counted->seconds += MPI_Wtime() - start;
}
