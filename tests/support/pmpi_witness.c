// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/pmpi_witness.h"

#include "runtime/exchange/communicators.h"

#include <stdio.h>
#include <string.h>

#define SETS (1 << MTF_MAX_MESH_AXES)
#define MAX_RANKS 64

static MtfWitnessed seen[MTF_RESHARD_KINDS][SETS];
static int64_t strangers;
static int64_t sent[MAX_RANKS];

void mtf_witness_reset(void) {
    memset(seen, 0, sizeof seen);
    strangers = 0;
    memset(sent, 0, sizeof sent);
}

int64_t mtf_witness_sent(int rank) {
    return sent[rank];
}

MtfWitnessed mtf_witness_get(MtfReshardKind kind, unsigned axes) {
    return seen[kind][axes];
}

int64_t mtf_witness_strangers(void) {
    return strangers;
}

/* Notes a call; `kind` is MTF_RESHARD_KINDS for functions that no step should use. */
static void note(MtfReshardKind kind, MPI_Comm communicator, int64_t elements, MPI_Datatype type) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length, bytes;
    unsigned axes;
    PMPI_Comm_get_name(communicator, name, &length);
    if (strcmp(name, MTF_CONTROL_NAME) == 0)
        return;
    if (kind == MTF_RESHARD_KINDS || sscanf(name, MTF_AXES_NAME "%u", &axes) != 1 || axes >= SETS) {
        strangers++;
        return;
    }
    PMPI_Type_size(type, &bytes);
    seen[kind][axes].calls++;
    seen[kind][axes].bytes += elements * bytes;
}

/* A message over a set of axes: to whom it goes, in ranks of MPI_COMM_WORLD. */
static void note_message(MPI_Comm communicator, int count, MPI_Datatype type, int to) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length, bytes, rank;
    unsigned axes;
    MPI_Group group, world;
    PMPI_Comm_get_name(communicator, name, &length);
    if (sscanf(name, MTF_AXES_NAME "%u", &axes) != 1) {
        note(MTF_RESHARD_KINDS, communicator, count, type);
        return;
    }
    PMPI_Comm_group(communicator, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(group, 1, &to, world, &rank);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    PMPI_Type_size(type, &bytes);
    sent[rank] += (int64_t)count * bytes;
}

static int64_t sum(const int *counts, MPI_Comm communicator) {
    int members;
    int64_t total = 0;
    PMPI_Comm_size(communicator, &members);
    for (int i = 0; i < members; i++)
        total += counts[i];
    return total;
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op operation,
                  MPI_Comm communicator) {
    note(MTF_RESHARD_ALLREDUCE, communicator, count, type);
    return PMPI_Allreduce(send, receive, count, type, operation, communicator);
}

int MPI_Reduce_scatter(const void *send, void *receive, const int counts[], MPI_Datatype type,
                       MPI_Op operation, MPI_Comm communicator) {
    note(MTF_RESHARD_REDUCE_SCATTER, communicator, sum(counts, communicator), type);
    return PMPI_Reduce_scatter(send, receive, counts, type, operation, communicator);
}

int MPI_Allgatherv(const void *send, int count, MPI_Datatype send_type, void *receive,
                   const int counts[], const int offsets[], MPI_Datatype type,
                   MPI_Comm communicator) {
    note(MTF_RESHARD_ALLGATHER, communicator, sum(counts, communicator), type);
    return PMPI_Allgatherv(send, count, send_type, receive, counts, offsets, type, communicator);
}

int MPI_Alltoallv(const void *send, const int send_counts[], const int send_offsets[],
                  MPI_Datatype send_type, void *receive, const int counts[], const int offsets[],
                  MPI_Datatype type, MPI_Comm communicator) {
    note(MTF_RESHARD_ALLTOALL, communicator, sum(send_counts, communicator), send_type);
    return PMPI_Alltoallv(send, send_counts, send_offsets, send_type, receive, counts, offsets,
                          type, communicator);
}

/* The same, begun and ended apart. */

int MPI_Iallreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op operation,
                   MPI_Comm communicator, MPI_Request *request) {
    note(MTF_RESHARD_ALLREDUCE, communicator, count, type);
    return PMPI_Iallreduce(send, receive, count, type, operation, communicator, request);
}

int MPI_Ireduce_scatter(const void *send, void *receive, const int counts[], MPI_Datatype type,
                        MPI_Op operation, MPI_Comm communicator, MPI_Request *request) {
    note(MTF_RESHARD_REDUCE_SCATTER, communicator, sum(counts, communicator), type);
    return PMPI_Ireduce_scatter(send, receive, counts, type, operation, communicator, request);
}

int MPI_Iallgatherv(const void *send, int count, MPI_Datatype send_type, void *receive,
                    const int counts[], const int offsets[], MPI_Datatype type,
                    MPI_Comm communicator, MPI_Request *request) {
    note(MTF_RESHARD_ALLGATHER, communicator, sum(counts, communicator), type);
    return PMPI_Iallgatherv(send, count, send_type, receive, counts, offsets, type, communicator,
                            request);
}

int MPI_Ialltoallv(const void *send, const int send_counts[], const int send_offsets[],
                   MPI_Datatype send_type, void *receive, const int counts[], const int offsets[],
                   MPI_Datatype type, MPI_Comm communicator, MPI_Request *request) {
    note(MTF_RESHARD_ALLTOALL, communicator, sum(send_counts, communicator), send_type);
    return PMPI_Ialltoallv(send, send_counts, send_offsets, send_type, receive, counts, offsets,
                           type, communicator, request);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm communicator) {
    note(MTF_RESHARD_KINDS, communicator, count, type);
    return PMPI_Bcast(buffer, count, type, root, communicator);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag,
             MPI_Comm communicator) {
    note(MTF_RESHARD_KINDS, communicator, count, type);
    return PMPI_Send(buffer, count, type, to, tag, communicator);
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag,
              MPI_Comm communicator, MPI_Request *request) {
    note_message(communicator, count, type, to);
    return PMPI_Isend(buffer, count, type, to, tag, communicator, request);
}

int MPI_Sendrecv(const void *send, int count, MPI_Datatype type, int to, int tag, void *receive,
                 int receive_count, MPI_Datatype receive_type, int from, int receive_tag,
                 MPI_Comm communicator, MPI_Status *status) {
    note(MTF_RESHARD_KINDS, communicator, count, type);
    return PMPI_Sendrecv(send, count, type, to, tag, receive, receive_count, receive_type, from,
                         receive_tag, communicator, status);
}

int MPI_Allgather(const void *send, int count, MPI_Datatype send_type, void *receive,
                  int receive_count, MPI_Datatype type, MPI_Comm communicator) {
    note(MTF_RESHARD_KINDS, communicator, count, send_type);
    return PMPI_Allgather(send, count, send_type, receive, receive_count, type, communicator);
}

int MPI_Alltoall(const void *send, int count, MPI_Datatype send_type, void *receive,
                 int receive_count, MPI_Datatype type, MPI_Comm communicator) {
    note(MTF_RESHARD_KINDS, communicator, count, send_type);
    return PMPI_Alltoall(send, count, send_type, receive, receive_count, type, communicator);
}

int MPI_Reduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op operation,
               int root, MPI_Comm communicator) {
    note(MTF_RESHARD_KINDS, communicator, count, type);
    return PMPI_Reduce(send, receive, count, type, operation, root, communicator);
}
