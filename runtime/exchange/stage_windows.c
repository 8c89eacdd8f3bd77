// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/exchange/stage_windows.h"

#include "runtime/support/mpi_check.h"

struct MtfStageWindows {
    const MtfPipelinePlan *pipeline;
    int n_ranks, rounds, n_arenas;
    MtfArenaMemory own_board;
    MtfHostWindow *boards;
    MtfHostWindow **arenas; /* [n_arenas]: of each domain's first stage, second … */
    char *reaches;          /* [receiver][sender] */
};

/* The stages before this one on its domain. */
static int stages_before(const MtfPipelineOrder *order, int stage) {
    int n = 0;
    for (int s = 0; s < stage; s++)
        n += order->rank_of_stage[s] == order->rank_of_stage[stage];
    return n;
}

static int most_arenas(const MtfPipelineOrder *order) {
    int most = 0;
    for (int s = 0; s < order->stages; s++)
        most = MAX(most, stages_before(order, s) + 1);
    return most;
}

/* What is offered at once of one micro-batch: that of several steps where these overlap. */
static int rounds_of(const MtfPipelinePlan *pipeline) {
    int most = 1;
    for (int s = 0; s < pipeline->order->stages; s++) {
        const MtfStageExecution *stage = &mtf_pipeline_stage(pipeline, s)->layout->execution.stage;
        if (stage->weight_versions > 1)
            most = MAX(most, stage->in_flight);
    }
    return most;
}

static int64_t cell_index(const MtfStageWindows *w, const MtfStageRoute *route) {
    int64_t place = (int64_t)route->transfer * w->n_ranks + route->receiver;
    return place * w->pipeline->order->microbatches * w->rounds;
}

/* A rank without memory for its board is reached by nobody. */
static void map_boards(MtfStageWindows *w, MPI_Comm communicator) {
    MtfStageRoute behind = { .transfer = (int)w->pipeline->split->transfers->len };
    int64_t bytes = cell_index(w, &behind) * (int64_t)sizeof(MtfStageCell);
    if (!mtf_arena_memory_init(&w->own_board, bytes, true, NULL))
        w->own_board = (MtfArenaMemory){ .file = -1 };
    w->boards = mtf_host_window_new(communicator, &w->own_board);
}

static void map_arenas(MtfStageWindows *w, MPI_Comm communicator, const MtfArenaMemory *const *own,
                       int n_own) {
    const MtfArenaMemory none = { .file = -1 };
    w->n_arenas = most_arenas(w->pipeline->order);
    w->arenas = g_new0(MtfHostWindow *, w->n_arenas);
    for (int a = 0; a < w->n_arenas; a++)
        w->arenas[a] = mtf_host_window_new(communicator, a < n_own ? own[a] : &none);
}

/* How many stages a rank runs. */
static int stages_of_rank(const MtfPipelinePlan *pipeline, int rank) {
    int n = 0;
    for (int s = 0; s < pipeline->order->stages; s++) {
        int first = mtf_pipeline_first_device(pipeline, pipeline->order->rank_of_stage[s]);
        int ranks = mtf_mesh_size(&mtf_pipeline_stage(pipeline, s)->layout->mesh);
        n += rank >= first && rank < first + ranks;
    }
    return n;
}

static bool is_mapped(const MtfStageWindows *w, int rank) {
    bool mapped = mtf_host_window_base(w->boards, rank) != NULL;
    for (int a = 0; a < stages_of_rank(w->pipeline, rank); a++)
        mapped = mapped && mtf_host_window_base(w->arenas[a], rank) != NULL;
    return mapped;
}

static void tell_reach(MtfStageWindows *w, MPI_Comm communicator) {
    g_autofree char *own = g_new(char, w->n_ranks);
    for (int r = 0; r < w->n_ranks; r++)
        own[r] = is_mapped(w, r);
    w->reaches = g_new(char, (gsize)w->n_ranks *(gsize)w->n_ranks);
    mtf_mpi_require(
        MPI_Allgather(own, w->n_ranks, MPI_CHAR, w->reaches, w->n_ranks, MPI_CHAR, communicator),
        "MPI_Allgather");
}

MtfStageWindows *mtf_stage_windows_new(MPI_Comm communicator, const MtfPipelinePlan *pipeline,
                                       const MtfArenaMemory *const *own, int n_own) {
    MtfStageWindows *w = g_new0(MtfStageWindows, 1);
    mtf_mpi_require(MPI_Comm_size(communicator, &w->n_ranks), "MPI_Comm_size");
    w->pipeline = pipeline;
    w->rounds = rounds_of(pipeline);
    map_boards(w, communicator);
    map_arenas(w, communicator, own, n_own);
    tell_reach(w, communicator);
    return w;
}

void mtf_stage_windows_free(MtfStageWindows *w) {
    if (w == NULL)
        return;
    for (int a = 0; a < w->n_arenas; a++)
        mtf_host_window_free(w->arenas[a]);
    mtf_host_window_free(w->boards);
    mtf_arena_memory_clear(&w->own_board);
    g_free(w->arenas);
    g_free(w->reaches);
    g_free(w);
}

void mtf_stage_windows_set_idle(MtfStageWindows *w, const MtfProgressHook *idle) {
    mtf_host_window_set_idle(w->boards, idle);
}

MtfStageCell *mtf_stage_windows_cells(const MtfStageWindows *w, const MtfStageRoute *route) {
    if (w == NULL || !w->reaches[(gsize)route->receiver * (gsize)w->n_ranks + (gsize)route->sender])
        return NULL;
    MtfStageCell *board = (void *)mtf_host_window_base(w->boards, route->sender);
    return board != NULL ? board + cell_index(w, route) : NULL;
}

int mtf_stage_windows_rounds(const MtfStageWindows *w) {
    return w != NULL ? w->rounds : 1;
}

const char *mtf_stage_windows_arena(const MtfStageWindows *w, int rank, int stage) {
    return mtf_host_window_base(w->arenas[stages_before(w->pipeline->order, stage)], rank);
}

void mtf_stage_cell_offer(MtfStageCell *cell, int64_t offset) {
    uint64_t before = atomic_load_explicit(&cell->offered, memory_order_relaxed);
    cell->offset = offset;
    atomic_store_explicit(&cell->offered, before + 1, memory_order_release);
}

bool mtf_stage_cell_is_free(const MtfStageCell *cell) {
    return atomic_load_explicit(&cell->offered, memory_order_acquire) ==
           atomic_load_explicit(&cell->taken, memory_order_acquire);
}

void mtf_stage_cell_take(MtfStageCell *cell) {
    uint64_t offered = atomic_load_explicit(&cell->offered, memory_order_relaxed);
    atomic_store_explicit(&cell->taken, offered, memory_order_release);
}

void mtf_stage_windows_await(const MtfStageWindows *w, const MtfStageCell *cell, bool offered) {
    for (int spins = 0; mtf_stage_cell_is_free(cell) == offered; spins++)
        mtf_host_window_pause(w->boards, spins);
}
