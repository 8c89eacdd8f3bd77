// SPDX-License-Identifier: GPL-3.0-or-later
/* A tensor from one rank to another on one host, as stages of a pipeline send it, while both compute: through
 * the sender's arena, or by MPI's non-blocking messages. Prints "way bytes microseconds": processor time of
 * both ranks that a transfer takes beside what they compute; median of all. */
#include "layouts/base/quantile.h"
#include "runtime/exchange/communicators.h"
#include "runtime/exchange/stage_windows.h"
#include "runtime/support/processor_clock.h"

#include <stdio.h>
#include <string.h>

#define TIMES 60
#define PIECES 8
#define PIECE_BYTES (INT64_C(1) << 16)

static MPI_Comm control;
static int rank;
static char *scratch;

/* What both have to do meanwhile, in pieces between which messages go on. */
static void compute(bool progress) {
    int there;
    for (int i = 0; i < PIECES; i++) {
        memset(scratch, i, PIECE_BYTES);
        if (progress)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control, &there, MPI_STATUS_IGNORE);
    }
}

/* Memory that the other rank maps; its cell stands before what is sent. */
typedef struct {
    MtfArenaMemory arena;
    MtfHostWindow *window;
    MtfStageCell *cell; /* the sender's */
    int64_t bytes;
} Case;

static char *tensor_of(int of, const Case *c) {
    return mtf_host_window_base(c->window, of) + sizeof(MtfStageCell);
}

static void await(const Case *c, bool offered) {
    for (int spins = 0; mtf_stage_cell_is_free(c->cell) == offered; spins++)
        mtf_host_window_pause(c->window, spins);
}

static void by_window(const Case *c) {
    if (rank == 0)
        mtf_stage_cell_offer(c->cell, 0);
    compute(false);
    if (rank == 0) {
        await(c, false);
        return;
    }
    await(c, true);
    memcpy(tensor_of(1, c), tensor_of(0, c), (size_t)c->bytes);
    mtf_stage_cell_take(c->cell);
}

static void by_mpi(const Case *c) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Isend(tensor_of(0, c), (int)c->bytes, MPI_BYTE, 1, 0, control, &request);
    compute(true);
    if (rank == 1)
        MPI_Irecv(tensor_of(1, c), (int)c->bytes, MPI_BYTE, 0, 0, control, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void nothing(const Case *c) {
    (void)c;
    compute(false);
}

/* Processor seconds of both ranks: median of many, each begun together. */
static double measure(const Case *c, void (*way)(const Case *)) {
    double seconds[TIMES];
    for (int i = 0; i < TIMES; i++) {
        memset(tensor_of(rank, c), i, (size_t)c->bytes);
        MPI_Barrier(control);
        double begin = mtf_processor_seconds();
        way(c);
        seconds[i] = mtf_processor_seconds() - begin;
        MPI_Allreduce(MPI_IN_PLACE, &seconds[i], 1, MPI_DOUBLE, MPI_SUM, control);
    }
    return mtf_median(seconds, TIMES);
}

static void run_case(int64_t bytes) {
    Case c = { .bytes = bytes };
    GError *error = NULL;
    if (!mtf_arena_memory_init(&c.arena, bytes + (int64_t)sizeof(MtfStageCell), true, &error))
        g_error("%s", error->message);
    c.window = mtf_host_window_new(control, &c.arena);
    c.cell = (void *)mtf_host_window_base(c.window, 0);
    double alone = measure(&c, nothing);
    double window = measure(&c, by_window) - alone, mpi = measure(&c, by_mpi) - alone;
    if (rank == 0)
        printf("window %" G_GINT64_FORMAT " %.1f\nmpi %" G_GINT64_FORMAT " %.1f\n", bytes,
               1e6 * window, bytes, 1e6 * mpi);
    MPI_Barrier(control);
    mtf_host_window_free(c.window);
    mtf_arena_memory_clear(&c.arena);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    control = mtf_control_new(MPI_COMM_WORLD);
    MPI_Comm_rank(control, &rank);
    scratch = g_malloc(PIECE_BYTES);
    for (int64_t bytes = 65536; bytes <= 16777216; bytes *= 16)
        run_case(bytes);
    g_free(scratch);
    MPI_Comm_free(&control);
    MPI_Finalize();
    return 0;
}
