// SPDX-License-Identifier: GPL-3.0-or-later
/* What ends a search, and who hears of what it finds. */
#include "tests/support/cmocka.h"

#include "analyzer/solver/problem/search_control.h"

#include <math.h>

TEST(a_search_that_nobody_waits_for_has_no_end) {
    assert_false(mtf_search_is_over(NULL));
    assert_false(mtf_search_is_stopped(NULL));
    assert_false(mtf_search_is_abandoned(NULL));
    assert_false(mtf_search_has_deadline(NULL));
    assert_true(isinf(mtf_search_seconds_left(NULL)));
    mtf_search_tell_phase(NULL, "nothing");
    mtf_search_tell_found(NULL, 1);
    mtf_search_tell_bound(NULL, 1, 1);
}

TEST(a_part_ends_with_the_whole_and_by_its_own_time) {
    MtfSearchControl whole, part, share, late;
    mtf_search_control_init(&whole, 1000);
    mtf_search_control_init_part(&part, &whole, 2000);
    assert_true(part.deadline <= whole.deadline);
    mtf_search_control_init_share(&share, &whole, 0.5);
    double left = mtf_search_seconds_left(&share);
    assert_true(left > 499 && left <= 500);
    whole.deadline = 0; /* time is up */
    mtf_search_control_init_part(&late, &whole, 0);
    assert_true(mtf_search_is_over(&whole) && !mtf_search_is_stopped(&whole));
    assert_true(mtf_search_share_used(&whole) >= 1);
    assert_false(mtf_search_is_over(&late)); /* a moment is granted */
    mtf_search_cancel(&whole);
    assert_true(mtf_search_is_stopped(&late) && mtf_search_is_over(&late));
    assert_false(mtf_search_is_abandoned(&late));
}

TEST(without_time_a_part_has_no_deadline_either) {
    MtfSearchControl whole, part;
    mtf_search_control_init(&whole, 0);
    mtf_search_control_init_share(&part, &whole, 0.5);
    assert_false(mtf_search_has_deadline(&part));
    mtf_search_control_init_part(&part, NULL, 3);
    assert_true(mtf_search_has_deadline(&part));
}

/* A bound above the slack times what a rival found; the part's bound is about another problem. */
TEST(a_better_rival_ends_a_search_and_its_parts) {
    MtfSearchControl rival, own, part;
    mtf_search_control_init(&rival, 0);
    mtf_search_control_init(&own, 0);
    mtf_search_control_init_part(&part, &own, 0);
    own.rival = &rival.cost;
    own.slack = 1.5;
    mtf_search_tell_guess(&own, 140);
    mtf_search_tell_bound(&part, 1000, 1000);
    assert_false(mtf_search_is_abandoned(&part));
    mtf_search_tell_found(&rival, 100);
    mtf_search_tell_found(&rival, 120); /* no news */
    assert_true(rival.cost == 100);
    assert_false(mtf_search_is_abandoned(&own));
    mtf_search_tell_guess(&own, 130); /* neither */
    mtf_search_tell_bound(&own, INFINITY, 150);
    assert_true(mtf_search_is_abandoned(&own) && mtf_search_is_over(&own));
    assert_true(mtf_search_is_abandoned(&part) && mtf_search_is_stopped(&part));
    assert_true(mtf_search_is_beaten(&own, 100) && !mtf_search_is_beaten(&own, 101));
    assert_false(mtf_search_is_beaten(&own, INT64_MAX));
}

/* A part that is about the same problem ends with its whole when either has a rival. */
TEST(bounds_of_a_part_may_hold_for_the_whole) {
    MtfSearchControl rival, own, part;
    mtf_search_control_init(&rival, 0);
    mtf_search_control_init(&own, 0);
    mtf_search_control_init_part(&part, &own, 0);
    own.rival = &rival.cost;
    own.slack = 1;
    part.also = &own;
    mtf_search_tell_found(&rival, 100);
    mtf_search_tell_bound(&part, INFINITY, 99);
    assert_false(mtf_search_is_abandoned(&part));
    mtf_search_tell_bound(&part, INFINITY, 100);
    assert_true(mtf_search_is_beaten(&own, 100));
    assert_true(mtf_search_is_abandoned(&part));
}

typedef struct {
    const char *phase;
    double cost, bound;
} Heard;

static void hear_phase(const char *phase, void *user) {
    ((Heard *)user)->phase = phase;
}

static void hear_bound(double cost, double bound, void *user) {
    ((Heard *)user)->cost = cost;
    ((Heard *)user)->bound = bound;
}

TEST(a_listener_hears_of_the_search_and_not_of_its_parts) {
    Heard heard = { 0 };
    const MtfSearchListener listener = { hear_phase, hear_bound, &heard };
    MtfSearchControl whole, part;
    mtf_search_control_init(&whole, 0);
    whole.listener = &listener;
    mtf_search_control_init_part(&part, &whole, 0);
    mtf_search_tell_phase(&part, "a part");
    mtf_search_tell_bound(&part, 3, 2);
    assert_null(heard.phase);
    assert_true(heard.cost <= 0 && whole.bound <= 0);
    mtf_search_tell_phase(&whole, "all");
    mtf_search_tell_bound(&whole, 7, 5);
    assert_string_equal(heard.phase, "all");
    assert_true(heard.cost == 7 && heard.bound == 5 && whole.bound == 5);
}
