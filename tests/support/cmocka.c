// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include <glib.h>

static GArray *tests;
static GArray *places;

void mtf_test_add(int place, struct CMUnitTest test) {
    if (tests == NULL) {
        tests = g_array_new(FALSE, FALSE, sizeof test);
        places = g_array_new(FALSE, FALSE, sizeof place);
    }
    guint at = places->len;
    while (at > 0 && g_array_index(places, int, at - 1) > place)
        at--;
    g_array_insert_val(tests, at, test);
    g_array_insert_val(places, at, place);
}

int mtf_tests_run(CMFixtureFunction setup, CMFixtureFunction teardown) {
    g_assert(tests != NULL); /* a program that tests nothing */
    /* cmocka's macro counts the elements of an array that it sees. */
    return _cmocka_run_group_tests("tests", (struct CMUnitTest *)(void *)tests->data, tests->len,
                                   setup, teardown);
}
