// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/problem/in_parallel.h"

#include <glib.h>

#define INNER 40

/* Tasks at work, and the most that were at once. */
typedef struct {
    gint now, most, done;
} Count;

static void work(int i, void *data) {
    (void)i;
    Count *count = data;
    gint now = g_atomic_int_add(&count->now, 1) + 1, most = g_atomic_int_get(&count->most);
    while (now > most && !g_atomic_int_compare_and_exchange(&count->most, most, now))
        most = g_atomic_int_get(&count->most);
    g_usleep(1000);
    g_atomic_int_add(&count->now, -1);
    g_atomic_int_add(&count->done, 1);
}

static void work_in_parallel(int i, void *data) {
    (void)i;
    mtf_in_parallel(INNER, work, data);
}

TEST(as_many_tasks_run_at_once_as_there_may_be_threads) {
    for (int threads = 1; threads <= 5; threads++) {
        Count count = { 0 };
        mtf_in_parallel_set_threads(threads);
        mtf_in_parallel(INNER, work, &count);
        assert_int_equal(count.done, INNER);
        assert_int_equal(count.most, MAX(2, threads));
    }
    mtf_in_parallel_set_threads(0);
    assert_int_equal(mtf_in_parallel_threads(), g_get_num_processors());
}

TEST(tasks_of_tasks_take_no_more_than_the_processors) {
    Count count = { 0 };
    mtf_in_parallel(2, work_in_parallel, &count);
    assert_int_equal(count.done, 2 * INNER);
    assert_in_range(count.most, 1, MAX(2, g_get_num_processors()));
}

/* Two tasks: the first waits until the second is done, which meanwhile has both threads. */
typedef struct {
    Count count;
    gint over;
} Pair;

static void wait_or_work(int i, void *data) {
    Pair *pair = data;
    if (i == 1) {
        mtf_in_parallel(INNER, work, &pair->count);
        g_atomic_int_set(&pair->over, 1);
        return;
    }
    mtf_in_parallel_wait();
    while (g_atomic_int_get(&pair->over) == 0)
        g_usleep(1000);
    mtf_in_parallel_go_on();
}

TEST(who_waits_leaves_a_processor_to_others) {
    Pair pair = { 0 };
    mtf_in_parallel_set_threads(2);
    mtf_in_parallel(2, wait_or_work, &pair);
    assert_int_equal(pair.count.done, INNER);
    assert_int_equal(pair.count.most, 2);
}
