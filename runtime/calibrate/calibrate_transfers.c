// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/calibrate/calibrate_transfers.h"

#include "cost/machine/curve_name.h"
#include "layouts/base/quantile.h"
#include "runtime/exchange/stage_windows.h"
#include "runtime/support/agreement.h"
#include "runtime/support/mpi_check.h"

#include <string.h>

#define BYTES_LEAST INT64_C(64)
#define BYTES_MOST (INT64_C(16) << 20)
#define PATIENCE 0.05
#define CALLS_LEAST 8
#define CALLS_MOST 100

/* What is measured now. The tensor lies behind the cell in which its sender and receiver meet. */
typedef struct {
    MPI_Comm control;
    int rank, peer; /* the peer is -1 of the last of an odd number, which only takes part */
    int pairs;
    int64_t bytes;
    MtfArenaMemory arena;
    MtfHostWindow *window;
} Trial;

static bool receives(const Trial *trial) {
    return trial->peer >= 0 && trial->rank % 2 == 1;
}

static char *own_tensor(const Trial *trial) {
    return trial->arena.base + sizeof(MtfStageCell);
}

/* The receiver copies what the sender has told it is there. */
static void by_window(const Trial *trial) {
    char *sent = mtf_host_window_base(trial->window, trial->rank & ~1);
    MtfStageCell *cell = (void *)sent;
    if (!receives(trial)) {
        mtf_stage_cell_offer(cell, 0);
        return;
    }
    for (int spins = 0; mtf_stage_cell_is_free(cell); spins++)
        mtf_host_window_pause(trial->window, spins);
    memcpy(own_tensor(trial), sent + sizeof *cell, (size_t)trial->bytes);
    mtf_stage_cell_take(cell);
}

static void by_messages(const Trial *trial) {
    MPI_Request request;
    char *tensor = own_tensor(trial);
    int bytes = (int)trial->bytes;
    if (receives(trial))
        mtf_mpi_require(
            MPI_Irecv(tensor, bytes, MPI_BYTE, trial->peer, 0, trial->control, &request),
            "MPI_Irecv");
    else
        mtf_mpi_require(
            MPI_Isend(tensor, bytes, MPI_BYTE, trial->peer, 0, trial->control, &request),
            "MPI_Isend");
    mtf_mpi_require(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
}

/* Seconds of one call on this rank, of what the sender has just written; 0 of who receives nothing. */
static double call_seconds(const Trial *trial, void (*way)(const Trial *)) {
    memset(own_tensor(trial), 1, (size_t)trial->bytes);
    mtf_mpi_require(MPI_Barrier(trial->control), "MPI_Barrier");
    double begin = MPI_Wtime();
    if (trial->peer >= 0)
        way(trial);
    double seconds = receives(trial) ? MPI_Wtime() - begin : 0;
    /* Nobody writes again what another may still copy. */
    mtf_mpi_require(MPI_Barrier(trial->control), "MPI_Barrier");
    return seconds;
}

/* The first quarter of many calls, each the mean over the receivers (as of collectives). */
static double trial_seconds(const Trial *trial, void (*way)(const Trial *)) {
    double samples[CALLS_MOST] = { 0 };
    call_seconds(trial, way);
    double once = mtf_agree_largest(trial->control, call_seconds(trial, way));
    int calls = (int)CLAMP(PATIENCE / once, CALLS_LEAST, CALLS_MOST);
    for (int i = 0; i < calls; i++)
        samples[i] = call_seconds(trial, way);
    mtf_agree_sums(trial->control, samples, calls);
    return mtf_first_quarter(samples, calls) / trial->pairs;
}

static void add_sample(const Trial *trial, MtfExchangeAlgorithm algorithm, double seconds,
                       MtfSamples *samples) {
    MtfCurveName name = {
        .kind = MTF_CURVE_COLLECTIVE, .collective = MTF_P2P, .ranks = 2, .algorithm = algorithm
    };
    g_autofree char *text = mtf_curve_name_format(&name);
    mtf_samples_add(samples, text, (double)trial->bytes, seconds);
}

/* Whether every rank can map its peer's arena. */
static bool is_shared(const Trial *trial) {
    bool mapped = trial->peer < 0 || mtf_host_window_base(trial->window, trial->peer) != NULL;
    return mtf_agree_largest(trial->control, mapped ? 0 : 1) == 0;
}

static bool measure_size(Trial trial, MtfSamples *samples, GError **error) {
    GError *local = NULL;
    int64_t bytes = trial.bytes + (int64_t)sizeof(MtfStageCell);
    (void)mtf_arena_memory_init(&trial.arena, bytes, true, &local);
    if (!mtf_agree(trial.control, local, error)) {
        mtf_arena_memory_clear(&trial.arena);
        return false;
    }
    trial.window = mtf_host_window_new(trial.control, &trial.arena);
    if (is_shared(&trial))
        add_sample(&trial, MTF_EXCHANGE_DIRECT, trial_seconds(&trial, by_window), samples);
    add_sample(&trial, MTF_EXCHANGE_MPI, trial_seconds(&trial, by_messages), samples);
    mtf_host_window_free(trial.window);
    mtf_arena_memory_clear(&trial.arena);
    return true;
}

bool mtf_calibrate_transfers(MPI_Comm control, MtfSamples *samples, GError **error) {
    Trial trial = { .control = control };
    int ranks;
    mtf_mpi_require(MPI_Comm_size(control, &ranks), "MPI_Comm_size");
    mtf_mpi_require(MPI_Comm_rank(control, &trial.rank), "MPI_Comm_rank");
    trial.pairs = ranks / 2;
    trial.peer = trial.rank / 2 < trial.pairs ? trial.rank ^ 1 : -1;
    for (trial.bytes = BYTES_LEAST; trial.pairs > 0 && trial.bytes <= BYTES_MOST; trial.bytes *= 4)
        if (!measure_size(trial, samples, error))
            return false;
    return true;
}
