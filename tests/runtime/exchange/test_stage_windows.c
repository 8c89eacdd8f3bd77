// SPDX-License-Identifier: GPL-3.0-or-later
// ranks: 2 3
/* Tensors that a rank offers and another takes, through memory that both map. */
#include "tests/support/cmocka.h"

#include "runtime/exchange/stage_windows.h"
#include "tests/support/mpi_verdict.h"

#include <time.h>

#define WORDS 1000
#define TIMES 3000

static MPI_Comm control;
static int rank, ranks;

/* Rank 0's memory: a cell for each receiver, then the words. */
typedef struct {
    MtfArenaMemory arena;
    MtfHostWindow *window;
    MtfStageCell *cells;
    int32_t *words;
} Shared;

static void shared_init(Shared *s) {
    int64_t bytes = ranks * (int64_t)sizeof(MtfStageCell) + WORDS * 4;
    mtf_expect(mtf_arena_memory_init(&s->arena, (bytes + 63) / 64 * 64, true, NULL), "no memory");
    s->window = mtf_host_window_new(control, &s->arena);
    char *base = mtf_host_window_base(s->window, 0);
    mtf_expect(base != NULL, "the memory of rank 0 is not mapped");
    s->cells = (void *)base;
    s->words = (void *)(base + ranks * (int64_t)sizeof(MtfStageCell));
}

static void shared_clear(Shared *s) {
    MPI_Barrier(control);
    mtf_host_window_free(s->window);
    mtf_arena_memory_clear(&s->arena);
}

static void await(const Shared *s, int receiver, bool offered) {
    for (int spins = 0; mtf_stage_cell_is_free(&s->cells[receiver]) == offered; spins++)
        mtf_host_window_pause(s->window, spins);
}

static void offer(Shared *s, int time) {
    for (int r = 1; r < ranks; r++)
        await(s, r, false);
    for (int i = 0; i < WORDS; i++)
        s->words[i] = time * WORDS + i;
    for (int r = 1; r < ranks; r++)
        mtf_stage_cell_offer(&s->cells[r], 7 * time);
}

static void take(Shared *s, int time) {
    await(s, rank, true);
    mtf_expect(s->cells[rank].offset == 7 * time, "offset %d", (int)s->cells[rank].offset);
    for (int i = 0; i < WORDS; i++)
        mtf_expect(s->words[i] == time * WORDS + i, "time %d, word %d: %d", time, i, s->words[i]);
    mtf_stage_cell_take(&s->cells[rank]);
}

TEST(what_is_offered_stays_until_all_have_taken_it) {
    Shared s;
    shared_init(&s);
    for (int time = 0; time < TIMES; time++)
        (rank == 0 ? offer : take)(&s, time);
    shared_clear(&s);
    assert_true(mtf_verdict());
}

/* A processor is left to whoever is waited for, where ranks outnumber cores, and to others. */
TEST(a_rank_that_waits_long_sleeps) {
    Shared s;
    shared_init(&s);
    clock_t before = clock();
    if (rank == 0) {
        g_usleep(300000);
        offer(&s, 0);
    } else {
        take(&s, 0);
        double busy = (double)(clock() - before) / CLOCKS_PER_SEC;
        mtf_expect(busy < 0.1, "rank %d was busy for %.3f s", rank, busy);
    }
    shared_clear(&s);
    assert_true(mtf_verdict());
}

TEST(a_cell_is_free_at_first_and_once_it_is_taken) {
    MtfStageCell cell = { 0 };
    assert_true(mtf_stage_cell_is_free(&cell));
    mtf_stage_cell_offer(&cell, 64);
    assert_false(mtf_stage_cell_is_free(&cell));
    assert_int_equal(cell.offset, 64);
    mtf_stage_cell_take(&cell);
    assert_true(mtf_stage_cell_is_free(&cell));
}

int main(int argc, char **argv) {
    control = mtf_mpi_tests_begin(&argc, &argv, &rank, &ranks);
    return mtf_mpi_tests_end(control, mtf_tests_run(NULL, NULL));
}
