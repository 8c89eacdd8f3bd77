// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/error.h"

#include "tests/support/cmocka.h"

static void no_error_exits_0(void **state) {
    (void)state;
    assert_int_equal(mtf_error_exit_status(NULL), 0);
}

static void bad_input_exits_2(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_input_error(&error, "%s: %d", "file", 7));
    assert_string_equal(error->message, "file: 7");
    assert_int_equal(mtf_error_exit_status(error), 2);
}

static void nothing_fits_exits_3(void **state) {
    (void)state;
    g_autoptr(GError) error = g_error_new_literal(MTF_ERROR, MTF_ERROR_FIT, "nothing fits");
    assert_int_equal(mtf_error_exit_status(error), 3);
}

static void a_failure_exits_1(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_failure(&error, "the disk is full"));
    assert_int_equal(mtf_error_exit_status(error), 1);
}

static void another_library_s_error_exits_1(void **state) {
    (void)state;
    g_autoptr(GError) error = g_error_new_literal(G_FILE_ERROR, G_FILE_ERROR_NOENT, "gone");
    assert_int_equal(mtf_error_exit_status(error), 1);
}

static void a_caller_may_ignore_the_error(void **state) {
    (void)state;
    assert_false(mtf_input_error(NULL, "nobody listens"));
}

static void control_characters_are_spelled_out(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    mtf_input_error(&error, "\"%s\" is unknown", "a\nb\x1b[31mc\x7f");
    assert_string_equal(error->message, "\"a\\x0ab\\x1b[31mc\\x7f\" is unknown");
}

static void text_beyond_ascii_stays(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    mtf_input_error(&error, "%s", "größe → 网格");
    assert_string_equal(error->message, "größe → 网格");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_error_exits_0),
        cmocka_unit_test(bad_input_exits_2),
        cmocka_unit_test(nothing_fits_exits_3),
        cmocka_unit_test(a_failure_exits_1),
        cmocka_unit_test(another_library_s_error_exits_1),
        cmocka_unit_test(a_caller_may_ignore_the_error),
        cmocka_unit_test(control_characters_are_spelled_out),
        cmocka_unit_test(text_beyond_ascii_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
