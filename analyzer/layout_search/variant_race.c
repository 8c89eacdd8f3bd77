// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/variant_race.h"

#include "analyzer/solver/problem/in_parallel.h"

#include <math.h>

/* What the end of a search saves of a step at most; 1.1 % has been seen. */
#define ENDING_SAVES 0.02

void mtf_variant_race_init(MtfVariantRace *race, int count) {
    g_assert(count <= MTF_VARIANTS_AT_ONCE);
    *race = (MtfVariantRace){ .count = count };
    g_mutex_init(&race->lock);
    g_cond_init(&race->news);
}

void mtf_variant_race_clear(MtfVariantRace *race) {
    g_mutex_clear(&race->lock);
    g_cond_clear(&race->news);
}

void mtf_variant_race_posed(MtfVariantRace *race, int own) {
    if (race == NULL)
        return;
    g_mutex_lock(&race->lock);
    race->posed[own] = true;
    g_cond_broadcast(&race->news);
    g_mutex_unlock(&race->lock);
}

static bool is_posed(const MtfVariantRace *race, int variant) {
    return race->posed[variant];
}

static bool are_steps_known(const MtfVariantRace *race, int count) {
    for (int i = 0; i < count; i++)
        if (race->steps[i] <= 0)
            return false;
    return true;
}

/* Waits until is_so(race, number), a variant or a count of them; the lock is held when this returns. */
static void lock_when(MtfVariantRace *race, bool (*is_so)(const MtfVariantRace *, int),
                      int number) {
    mtf_in_parallel_wait();
    g_mutex_lock(&race->lock);
    while (!is_so(race, number))
        g_cond_wait(&race->news, &race->lock);
}

static void unlock_and_go_on(MtfVariantRace *race) {
    g_mutex_unlock(&race->lock);
    mtf_in_parallel_go_on();
}

void mtf_variant_race_await(MtfVariantRace *race, int own) {
    if (race == NULL || own == 0)
        return;
    lock_when(race, is_posed, own - 1);
    unlock_and_go_on(race);
}

void mtf_variant_race_enter(MtfVariantRace *race, int own, double step_seconds) {
    if (race == NULL)
        return;
    g_mutex_lock(&race->lock);
    if (race->steps[own] <= 0)
        race->steps[own] = step_seconds;
    g_cond_broadcast(&race->news);
    g_mutex_unlock(&race->lock);
}

bool mtf_variant_race_wins(MtfVariantRace *race, int own, double step_seconds) {
    bool wins = true;
    if (race == NULL)
        return true;
    mtf_variant_race_enter(race, own, step_seconds);
    lock_when(race, are_steps_known, race->count);
    for (int i = 0; i < race->count; i++)
        wins &= i < own ? race->steps[i] > race->steps[own] : race->steps[i] >= race->steps[own];
    unlock_and_go_on(race);
    return wins;
}

bool mtf_variant_race_trails(MtfVariantRace *race, int own) {
    bool trails = false;
    if (race == NULL)
        return false;
    g_mutex_lock(&race->lock);
    double most = isfinite(race->steps[own]) ? (1 - ENDING_SAVES) * race->steps[own] : 0;
    for (int i = 0; i < race->count; i++)
        trails |= race->steps[i] > 0 && race->steps[i] < most;
    g_mutex_unlock(&race->lock);
    return trails;
}
