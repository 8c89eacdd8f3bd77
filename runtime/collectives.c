// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/collectives.h"

#include "runtime/mpi_check.h"

static MPI_Datatype mpi_type(MtfDtype dtype) {
    switch (dtype) {
    case MTF_F32:
        return MPI_FLOAT;
    case MTF_F64:
        return MPI_DOUBLE;
    case MTF_BF16:
        return MPI_UINT16_T;
    default:
        return MPI_INT32_T;
    }
}

/* Elements [first, first + count) in place; of the other collectives, the whole exchange. */
static void call_mpi(const MtfCommunicators *communicators, const MtfMove *move, int64_t first,
                     int count) {
    MPI_Comm group = mtf_communicators_get(communicators, move->axes);
    MPI_Datatype type = mpi_type(move->dtype);
    MPI_Op operation = mtf_communicators_operation(communicators, move->dtype, move->reduction);
    const MtfMessages *send = &move->send;
    const MtfMessages *receive = &move->receive;
    switch (move->kind) {
    case MTF_STEP_ALLREDUCE:
        mtf_mpi_require(MPI_Allreduce(MPI_IN_PLACE,
                                      move->output + first * mtf_dtype_bytes(move->dtype), count,
                                      type, operation, group),
                        "MPI_Allreduce");
        return;
    case MTF_STEP_REDUCE_SCATTER:
        mtf_mpi_require(
            MPI_Reduce_scatter(send->base, receive->base, send->counts, type, operation, group),
            "MPI_Reduce_scatter");
        return;
    case MTF_STEP_ALLGATHER:
        mtf_mpi_require(MPI_Allgatherv(send->base, send->counts[0], type, receive->base,
                                       receive->counts, receive->offsets, type, group),
                        "MPI_Allgatherv");
        return;
    default:
        mtf_mpi_require(MPI_Alltoallv(send->base, send->counts, send->offsets, type, receive->base,
                                      receive->counts, receive->offsets, type, group),
                        "MPI_Alltoallv");
    }
}

/* The elements that count as payload: the gathered output of an allgather, the input of all others.
 */
static int64_t payload(const MtfMove *move) {
    switch (move->kind) {
    case MTF_STEP_ALLREDUCE:
        return move->count;
    case MTF_STEP_ALLGATHER:
        return move->receive.total;
    default:
        return move->send.total;
    }
}

/* Counts `elements` of payload as the program does, one call for each `most` of them. */
static void count(MtfTrafficEntry *counted, const MtfMove *move, int64_t elements, int64_t most) {
    counted->calls += elements == 0 ? 1 : (elements + most - 1) / most;
    counted->bytes += elements * mtf_dtype_bytes(move->dtype);
}

void mtf_collective_issue(const MtfTransport *transport, int index, const MtfMove *move,
                          MtfTrafficEntry *counted) {
    double start = MPI_Wtime();
    int64_t total = payload(move);
    int64_t most = move->kind == MTF_STEP_ALLREDUCE ? transport->max_message : MAX(total, 1);
    if (transport->window != NULL && mtf_window_exchange_reaches(transport->window, move->axes)) {
        counted->copied += mtf_window_exchange_run(transport->window, index);
        count(counted, move, total, most);
    } else {
        int64_t first = 0;
        do {
            int64_t chunk = MIN(total - first, most);
            call_mpi(transport->communicators, move, first, (int)chunk);
            count(counted, move, chunk, most);
            first += chunk;
        } while (first < total);
    }
    counted->seconds += MPI_Wtime() - start;
}
