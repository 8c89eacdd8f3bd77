// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/layout_search/variant_race.h"

#include <math.h>

/* A step trails one that is 3 % shorter, not one that is 1 % shorter, which an end may save. */
TEST(a_step_trails_another_that_is_much_shorter) {
    const struct {
        double other;
        bool trails;
    } cases[] = {
        { 97, true }, { 99, false }, { 100, false }, { 120, false }, { INFINITY, false }
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfVariantRace race;
        mtf_variant_race_init(&race, 2);
        mtf_variant_race_enter(&race, 1, 100);
        assert_false(mtf_variant_race_trails(&race, 1)); /* the other is not known yet */
        mtf_variant_race_enter(&race, 0, cases[i].other);
        assert_int_equal(mtf_variant_race_trails(&race, 1), cases[i].trails);
        mtf_variant_race_enter(&race, 1, 50); /* what an end has saved changes nothing */
        assert_int_equal(mtf_variant_race_trails(&race, 1), cases[i].trails);
        mtf_variant_race_clear(&race);
    }
}

/* Who has no step trails nobody: it is kept where nothing fits. */
TEST(no_step_trails_none) {
    MtfVariantRace race;
    mtf_variant_race_init(&race, 2);
    mtf_variant_race_enter(&race, 0, INFINITY);
    mtf_variant_race_enter(&race, 1, 100);
    assert_false(mtf_variant_race_trails(&race, 0));
    assert_false(mtf_variant_race_trails(&race, 1));
    assert_false(mtf_variant_race_trails(NULL, 0));
    mtf_variant_race_clear(&race);
}

/* A search lags behind one that begins with a step 3 % shorter, not 2 %, which it may save. */
TEST(a_start_lags_behind_one_that_is_shorter) {
    const struct {
        double other;
        bool lags;
    } cases[] = {
        { 97, true }, { 98, false }, { 100, false }, { 120, false }, { INFINITY, false }
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfVariantRace race;
        mtf_variant_race_init(&race, 2);
        assert_false(mtf_variant_race_lags(&race, 1)); /* who has told nothing waits for nobody */
        mtf_variant_race_start(&race, 0, cases[i].other);
        assert_false(mtf_variant_race_leads(&race, 0, 1));
        mtf_variant_race_start(&race, 1, 100);
        assert_int_equal(mtf_variant_race_leads(&race, 0, 1), cases[i].lags);
        assert_int_equal(mtf_variant_race_lags(&race, 1), cases[i].lags);
        assert_int_equal(mtf_variant_race_lags(&race, 0), cases[i].other == 120);
        mtf_variant_race_clear(&race);
    }
}

/* And behind a plan that is known, alone or not, to which it has lost then. */
TEST(a_start_loses_to_a_plan_that_is_shorter) {
    const struct {
        double rival;
        bool loses;
    } cases[] = { { 97, true }, { 99, false }, { 120, false }, { 0, false } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfVariantRace race;
        mtf_variant_race_init(&race, 2);
        race.rival = cases[i].rival;
        assert_false(mtf_variant_race_loses(&race, 0)); /* it has not begun */
        mtf_variant_race_start(&race, 0, 100);
        mtf_variant_race_start(&race, 1, INFINITY);
        assert_int_equal(mtf_variant_race_loses(&race, 0), cases[i].loses);
        assert_int_equal(mtf_variant_race_lags(&race, 0), cases[i].loses);
        assert_false(mtf_variant_race_loses(&race, 1));
        mtf_variant_race_clear(&race);
    }
}

/* A start that is not known lags behind none, as where no layout fits yet. */
TEST(no_start_lags_behind_none) {
    MtfVariantRace race;
    mtf_variant_race_init(&race, 2);
    mtf_variant_race_start(&race, 1, INFINITY);
    assert_false(mtf_variant_race_lags(&race, 1)); /* and does not wait */
    mtf_variant_race_start(&race, 0, 1);
    assert_false(mtf_variant_race_lags(&race, 1));
    assert_false(mtf_variant_race_lags(NULL, 1));
    mtf_variant_race_clear(&race);
}

/* The second leads, but costs more, and is ended for it: the first, though it lags and trails, is all there is, unless a
 * plan was known. */
TEST(one_that_leads_and_is_ended_loses_nobody) {
    MtfVariantRace race;
    mtf_variant_race_init(&race, 2);
    mtf_variant_race_start(&race, 0, 100);
    mtf_variant_race_start(&race, 1, 90);
    mtf_variant_race_enter(&race, 0, 99);
    mtf_variant_race_enter(&race, 1, INFINITY);
    assert_false(mtf_variant_race_is_lost(&race, 0, false));
    assert_true(mtf_variant_race_is_lost(&race, 0, true));
    assert_false(mtf_variant_race_is_lost(&race, 1, true));
    race.rival = 95;
    assert_true(mtf_variant_race_is_lost(&race, 0, false));
    assert_false(mtf_variant_race_is_lost(&race, 1, true));
    mtf_variant_race_clear(&race);
}

typedef struct {
    MtfVariantRace race;
    gint ended; /* atomic */
} Awaited;

static gpointer end_in_a_while(gpointer data) {
    Awaited *awaited = data;
    g_usleep(20000);
    g_atomic_int_set(&awaited->ended, 1);
    mtf_variant_race_end(&awaited->race, 1);
    return NULL;
}

/* The first waits for the end of the second, which leads; who leads, or is beside one that does not, waits for nobody. */
TEST(one_that_lags_waits_for_who_leads) {
    Awaited awaited = { .ended = 0 };
    mtf_variant_race_init(&awaited.race, 2);
    mtf_variant_race_start(&awaited.race, 0, 100);
    mtf_variant_race_await_leaders(&awaited.race, 0); /* the other has told nothing */
    mtf_variant_race_start(&awaited.race, 1, 90);
    mtf_variant_race_await_leaders(&awaited.race, 1);
    mtf_variant_race_await_leaders(NULL, 0);
    GThread *other = g_thread_new("leads", end_in_a_while, &awaited);
    mtf_variant_race_await_leaders(&awaited.race, 0);
    assert_int_equal(g_atomic_int_get(&awaited.ended), 1);
    g_thread_join(other);
    mtf_variant_race_clear(&awaited.race);
}
