// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_search/variant_race.h"

#include "analyzer/solver/problem/in_parallel.h"

#include <math.h>

/* What the end of a search saves of a step at most, where 1.1 % has been seen; and, where repeated layers were laid out
 * alike before, a search of free layouts of the step that it begins with, where 0.5 % has been. */
#define SEARCH_SAVES 0.02

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

static bool is_started(const MtfVariantRace *race, int variant) {
    return race->starts[variant] > 0;
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

/* Tells seconds to everyone, once. */
static void tell(MtfVariantRace *race, double *seconds, double told) {
    g_mutex_lock(&race->lock);
    if (*seconds <= 0)
        *seconds = told;
    g_cond_broadcast(&race->news);
    g_mutex_unlock(&race->lock);
}

/* Whether another's seconds are known to be shorter than a search makes one's own. */
static bool is_behind(MtfVariantRace *race, const double *seconds, int own) {
    bool behind = false;
    g_mutex_lock(&race->lock);
    double most = isfinite(seconds[own]) ? (1 - SEARCH_SAVES) * seconds[own] : 0;
    for (int i = 0; i < race->count; i++)
        behind |= seconds[i] > 0 && seconds[i] < most;
    g_mutex_unlock(&race->lock);
    return behind;
}

void mtf_variant_race_start(MtfVariantRace *race, int own, double step_seconds) {
    if (race != NULL)
        tell(race, &race->starts[own], step_seconds);
}

static bool is_ended(const MtfVariantRace *race, int variant) {
    return race->ended[variant];
}

void mtf_variant_race_end(MtfVariantRace *race, int own) {
    if (race == NULL)
        return;
    g_mutex_lock(&race->lock);
    race->ended[own] = true;
    g_cond_broadcast(&race->news);
    g_mutex_unlock(&race->lock);
}

void mtf_variant_race_await_leaders(MtfVariantRace *race, int own) {
    for (int i = 0; race != NULL && i < race->count; i++) {
        if (!mtf_variant_race_leads(race, i, own))
            continue;
        lock_when(race, is_ended, i);
        unlock_and_go_on(race);
    }
}

bool mtf_variant_race_leads(MtfVariantRace *race, int own, int other) {
    g_mutex_lock(&race->lock);
    double start = race->starts[own], behind = race->starts[other];
    g_mutex_unlock(&race->lock);
    return start > 0 && isfinite(behind) && start < (1 - SEARCH_SAVES) * behind;
}

double mtf_variant_race_lost_from(const MtfVariantRace *race) {
    return race != NULL ? race->rival / (1 - SEARCH_SAVES) : 0;
}

bool mtf_variant_race_loses(const MtfVariantRace *race, int own) {
    return race->rival > 0 && isfinite(race->starts[own]) &&
           race->starts[own] > mtf_variant_race_lost_from(race);
}

bool mtf_variant_race_lags(MtfVariantRace *race, int own) {
    if (race == NULL || !isfinite(race->starts[own]))
        return false;
    if (mtf_variant_race_loses(race, own))
        return true;
    for (int i = 0; race->starts[own] > 0 && i < own; i++) {
        lock_when(race, is_started, i);
        unlock_and_go_on(race);
    }
    return is_behind(race, race->starts, own);
}

void mtf_variant_race_enter(MtfVariantRace *race, int own, double step_seconds) {
    if (race != NULL)
        tell(race, &race->steps[own], step_seconds);
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
    return race != NULL && is_behind(race, race->steps, own);
}

bool mtf_variant_race_is_lost(MtfVariantRace *race, int own, bool other_stays) {
    return mtf_variant_race_loses(race, own) ||
           (other_stays &&
            (mtf_variant_race_lags(race, own) || mtf_variant_race_trails(race, own)));
}
