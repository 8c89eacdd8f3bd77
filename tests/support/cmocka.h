// SPDX-License-Identifier: GPL-3.0-or-later
/* cmocka, which wants four headers before it, in this order; wrapping them keeps the formatter from
 * sorting them wrong. And tests that are told once:
 *
 *     TEST(one_rank_costs_nothing) {
 *         …
 *     }
 *
 * is a test of its program, which needs no list of them and, where nothing is to be done before or behind
 * all, no main. They run in the order in which they stand. */
#ifndef MTF_TESTS_CMOCKA_H
#define MTF_TESTS_CMOCKA_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

/* Adds a test to those that the program runs, behind those of lower places. */
void mtf_test_add(int place, struct CMUnitTest test);

/* Runs all that were added, `setup` before and `teardown` behind them where they are not NULL; returns how
 * many failed, as cmocka does. */
int mtf_tests_run(CMFixtureFunction setup, CMFixtureFunction teardown);

/* What is set up and torn down for this test alone is what `state` points to, as cmocka has it. */
#define TEST_WITH(test, setup, teardown)                                                   \
    static void test(void **state);                                                        \
    __attribute__((constructor)) static void test##_added(void) {                          \
        mtf_test_add(__LINE__, (struct CMUnitTest){ #test, test, setup, teardown, NULL }); \
    }                                                                                      \
    static void test(void **state __attribute__((unused)))

#define TEST(test) TEST_WITH(test, NULL, NULL)

#endif
