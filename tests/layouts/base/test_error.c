// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/error.h"

#include "tests/support/cmocka.h"

TEST(no_error_exits_0) {
    assert_int_equal(mtf_error_exit_status(NULL), 0);
}

TEST(bad_input_exits_2) {
    g_autoptr(GError) error = NULL;
    assert_false(mtf_input_error(&error, "%s: %d", "file", 7));
    assert_string_equal(error->message, "file: 7");
    assert_int_equal(mtf_error_exit_status(error), 2);
}

TEST(nothing_fits_exits_3) {
    g_autoptr(GError) error = g_error_new_literal(MTF_ERROR, MTF_ERROR_FIT, "nothing fits");
    assert_int_equal(mtf_error_exit_status(error), 3);
}

TEST(a_failure_exits_1) {
    g_autoptr(GError) error = NULL;
    assert_false(mtf_failure(&error, "the disk is full"));
    assert_int_equal(mtf_error_exit_status(error), 1);
}

TEST(another_library_s_error_exits_1) {
    g_autoptr(GError) error = g_error_new_literal(G_FILE_ERROR, G_FILE_ERROR_NOENT, "gone");
    assert_int_equal(mtf_error_exit_status(error), 1);
}

TEST(a_caller_may_ignore_the_error) {
    assert_false(mtf_input_error(NULL, "nobody listens"));
}

TEST(control_characters_are_spelled_out) {
    g_autoptr(GError) error = NULL;
    mtf_input_error(&error, "\"%s\" is unknown", "a\nb\x1b[31mc\x7f");
    assert_string_equal(error->message, "\"a\\x0ab\\x1b[31mc\\x7f\" is unknown");
}

/* 0xff begins nothing, 0xc3 lacks its second byte, and U+009B is the one-character form of what begins a command. */
TEST(bytes_that_are_no_text_are_spelled_out) {
    g_autoptr(GError) error = NULL;
    mtf_input_error(&error, "\"%s\" is not a number",
                    "1\xff\xc3\xc2\x9b"
                    "2");
    assert_string_equal(error->message, "\"1\\xff\\xc3\\xc2\\x9b2\" is not a number");
}

TEST(text_beyond_ascii_stays) {
    g_autoptr(GError) error = NULL;
    mtf_input_error(&error, "%s", "größe → 网格");
    assert_string_equal(error->message, "größe → 网格");
}
