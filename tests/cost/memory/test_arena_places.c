// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "cost/memory/arena_places.h"

/* What test_arena_places knows of a storage. */
typedef struct {
    MtfLife life;
    int64_t begin, end;
} Taken;

static int by_begin(const void *left, const void *right) {
    const Taken *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* The naive twin: looks at all storages, in the order of their offsets. */
static int64_t tightest_gap(Taken *taken, int n, MtfLife life, int64_t bytes, int64_t floor) {
    int64_t end = floor, best = -1, best_gap = INT64_MAX;
    qsort(taken, (size_t)n, sizeof *taken, by_begin);
    for (int i = 0; i < n; i++) {
        if (taken[i].life.last < life.first || taken[i].life.first > life.last)
            continue;
        int64_t gap = taken[i].begin - end;
        if (gap >= bytes && gap < best_gap) {
            best = end;
            best_gap = gap;
        }
        end = MAX(end, taken[i].end);
    }
    return best >= 0 ? best : end;
}

/* Short and long lives in turn. */
static MtfLife random_life(GRand *rand, int last) {
    int first = g_rand_int_range(rand, 0, last + 1);
    int most = g_rand_boolean(rand) ? MIN(last - first, 3) : last - first;
    return (MtfLife){ first, first + g_rand_int_range(rand, 0, most + 1) };
}

static void fill_and_compare(GRand *rand, int last, int n) {
    g_autoptr(MtfArenaPlaces) places = mtf_arena_places_new(last, n);
    g_autofree Taken *taken = g_new(Taken, n);
    int64_t floor = g_rand_int_range(rand, 0, 100);
    for (int i = 0; i < n; i++) {
        MtfLife life = random_life(rand, last);
        int64_t bytes = g_rand_int_range(rand, 1, 20);
        int64_t offset = mtf_arena_places_find(places, life, bytes, floor);
        assert_int_equal(offset, tightest_gap(taken, i, life, bytes, floor));
        /* Some leave a gap that a later one may find. */
        offset += g_rand_int_range(rand, 0, 4) == 0 && offset > floor + 200 ? 10000 + 50 * i : 0;
        mtf_arena_places_add(places, life, offset, bytes);
        taken[i] = (Taken){ life, offset, offset + bytes };
    }
}

/* Fewer instructions than stretches, and many times as many. */
TEST(the_tightest_gap_is_the_one_that_a_look_at_all_storages_finds) {
    static const int lasts[] = { 0, 1, 30, 255, 256, 1000, 40000 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (int round = 0; round < 20; round++)
        for (gsize i = 0; i < G_N_ELEMENTS(lasts); i++)
            fill_and_compare(rand, lasts[i], 150);
}

/* 0..9 and 20..29 are taken at instruction 5; 30..39 later. */
TEST(what_is_taken_at_another_time_is_free) {
    g_autoptr(MtfArenaPlaces) places = mtf_arena_places_new(9, 3);
    mtf_arena_places_add(places, (MtfLife){ 0, 9 }, 0, 10);
    mtf_arena_places_add(places, (MtfLife){ 5, 5 }, 20, 10);
    mtf_arena_places_add(places, (MtfLife){ 6, 6 }, 30, 10);
    assert_int_equal(mtf_arena_places_find(places, (MtfLife){ 5, 5 }, 10, 0), 10);
    assert_int_equal(mtf_arena_places_find(places, (MtfLife){ 5, 5 }, 11, 0), 30);
    assert_int_equal(mtf_arena_places_find(places, (MtfLife){ 5, 6 }, 11, 0), 40);
    assert_int_equal(mtf_arena_places_find(places, (MtfLife){ 4, 4 }, 11, 0), 10);
}
