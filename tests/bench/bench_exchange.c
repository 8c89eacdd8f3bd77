// SPDX-License-Identifier: GPL-3.0-or-later
/* Times of the exchanges between the ranks of one host, as the executor issues them: through the
 * window of arenas ("window"), or by MPI calls ("mpi", with allreduces in chunks of so many
 * elements if a number follows). Rank 0 prints a line a kind and size: kind, bytes, the median and
 * the least microseconds of the slowest rank. */
#include "runtime/executor/executor.h"
#include "tests/support/cases/reshard_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (INT64_C(256) << 20)
#define SECONDS_A_ROW 0.6
#define MOST_TURNS 400

static MPI_Comm control;
static int rank, ranks;

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The seconds of the one collective of the program, on the slowest rank. */
static double turn(MtfExecutor *executor) {
    MtfTrafficEntry *entry = &executor->counted->entries[0];
    entry->seconds = 0;
    MPI_Barrier(control);
    mtf_executor_run(executor, 0, mtf_program_length(executor->worker->program), 1);
    double seconds = entry->seconds;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, control);
    return seconds;
}

static void measure(MtfExecutor *executor, const char *kind, int64_t bytes) {
    double seconds[MOST_TURNS], all = 0;
    int turns = 0;
    turn(executor);
    while (turns < 5 || (turns < MOST_TURNS && all < SECONDS_A_ROW))
        all += seconds[turns++] = turn(executor);
    qsort(seconds, (size_t)turns, sizeof *seconds, compare);
    if (rank == 0)
        printf("%s %lld %.2f %.2f\n", kind, (long long)bytes, 1e6 * seconds[turns / 2],
               1e6 * seconds[0]);
}

/* One tensor of `bytes` brought from one placement on the only axis to another. */
static void run_case(const char *kind, int from, int to, int64_t bytes, bool window,
                     int64_t max_message) {
    MtfMesh mesh;
    g_autofree char *text = g_strdup_printf("r:%d", ranks);
    g_assert_true(mtf_mesh_parse(text, 0, &mesh, NULL));
    int64_t sizes[] = { ranks, bytes / 4 / ranks };
    g_autoptr(MtfGraph) graph = mtf_reshard_graph(2, sizes, MTF_F32);
    MtfPlacement placements[2] = { mtf_placement_replicated(), mtf_placement_replicated() };
    placements[0].axis[0] = (int8_t)from;
    placements[1].axis[0] = (int8_t)to;
    g_autoptr(MtfLayout) layout = mtf_layout_new(graph, &mesh);
    int target;
    g_autoptr(MtfProgram) program =
        mtf_reshard_program(graph, layout, &placements[0], &placements[1], &target);
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    g_autoptr(MtfWorker) worker = mtf_worker_new(program, arena, rank, 1, NULL);
    g_autoptr(MtfTraffic) counted = mtf_traffic_new(program);
    MtfCommunicators *communicators = mtf_communicators_new(control, program);
    MtfWindowExchange *exchange = window ? mtf_window_exchange_new(control, worker, NULL) : NULL;
    memset(worker->memory.base, 0, (size_t)arena->bytes);
    MtfExecutor executor = { .worker = worker,
                             .counted = counted,
                             .transport = { .communicators = communicators,
                                            .window = exchange,
                                            .max_message = max_message } };
    measure(&executor, kind, bytes);
    mtf_window_exchange_free(exchange);
    mtf_communicators_free(communicators);
}

int main(int argc, char **argv) {
    bool window = argc > 1 && strcmp(argv[1], "window") == 0;
    int64_t max_message = argc > 2 ? atoll(argv[2]) : MTF_MAX_MESSAGE;
    MPI_Init(&argc, &argv);
    control = mtf_control_new(MPI_COMM_WORLD);
    MPI_Comm_rank(control, &rank);
    MPI_Comm_size(control, &ranks);
    for (int64_t bytes = 4096; bytes <= LARGEST; bytes *= 4) {
        run_case("allreduce", MTF_PARTIAL_SUM, MTF_REPLICATED, bytes, window, max_message);
        run_case("reduce-scatter", MTF_PARTIAL_SUM, 0, bytes, window, max_message);
        run_case("allgather", 0, MTF_REPLICATED, bytes, window, max_message);
        run_case("all-to-all", 0, 1, bytes, window, max_message);
    }
    MPI_Comm_free(&control);
    MPI_Finalize();
    return 0;
}
