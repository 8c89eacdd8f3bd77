// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/variant_race.h"

#include "analyzer/solver/problem/in_parallel.h"

/* ---- The barrier ----------------------------------------------------------------------------- */

void mtf_variant_barrier_init(MtfVariantBarrier *barrier) {
    *barrier = (MtfVariantBarrier){ .open = false };
    g_mutex_init(&barrier->lock);
    g_cond_init(&barrier->opened);
}

void mtf_variant_barrier_clear(MtfVariantBarrier *barrier) {
    g_mutex_clear(&barrier->lock);
    g_cond_clear(&barrier->opened);
}

void mtf_variant_barrier_open(MtfVariantBarrier *barrier) {
    if (barrier == NULL)
        return;
    g_mutex_lock(&barrier->lock);
    barrier->open = true;
    g_cond_signal(&barrier->opened);
    g_mutex_unlock(&barrier->lock);
}

void mtf_variant_barrier_await(MtfVariantBarrier *barrier) {
    if (barrier == NULL)
        return;
    mtf_in_parallel_wait();
    g_mutex_lock(&barrier->lock);
    while (!barrier->open)
        g_cond_wait(&barrier->opened, &barrier->lock);
    g_mutex_unlock(&barrier->lock);
    mtf_in_parallel_go_on();
}

/* ---- The contest ----------------------------------------------------------------------------- */

void mtf_variant_contest_init(MtfVariantContest *contest, int count) {
    g_assert(count <= MTF_VARIANTS_AT_ONCE);
    *contest = (MtfVariantContest){ .count = count };
    g_mutex_init(&contest->lock);
    g_cond_init(&contest->entered);
}

void mtf_variant_contest_clear(MtfVariantContest *contest) {
    g_mutex_clear(&contest->lock);
    g_cond_clear(&contest->entered);
}

void mtf_variant_contest_enter(MtfVariantContest *contest, int own, double step_seconds) {
    g_mutex_lock(&contest->lock);
    if (contest->steps[own] == 0) {
        contest->steps[own] = step_seconds;
        contest->known++;
        g_cond_broadcast(&contest->entered);
    }
    g_mutex_unlock(&contest->lock);
}

bool mtf_variant_contest_wins(MtfVariantContest *contest, int own) {
    bool wins = true;
    mtf_in_parallel_wait();
    g_mutex_lock(&contest->lock);
    while (contest->known < contest->count)
        g_cond_wait(&contest->entered, &contest->lock);
    for (int i = 0; i < contest->count; i++)
        wins &= i < own ? contest->steps[i] > contest->steps[own]
                        : contest->steps[i] >= contest->steps[own];
    g_mutex_unlock(&contest->lock);
    mtf_in_parallel_go_on();
    return wins;
}
