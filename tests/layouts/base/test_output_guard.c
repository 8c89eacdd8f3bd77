// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/output_guard.h"

#include "layouts/base/error.h"
#include "tests/support/cmocka.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int make_folder(void **state) {
    *state = g_dir_make_tmp("guard-XXXXXX", NULL);
    return *state == NULL;
}

static int remove_folder(void **state) {
    int status = g_rmdir(*state);
    g_free(*state);
    return status;
}

static void expect_refusal(bool (*check)(const char *, GError **), const char *path,
                           const char *why) {
    g_autoptr(GError) error = NULL;
    assert_false(check(path, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, why) == NULL)
        fail_msg("it says \"%s\" and not \"%s\"", error->message, why);
}

TEST(a_new_file_standard_output_and_a_device_can_be_written) {
    g_autofree char *path = g_build_filename(*state, "plan.json", NULL);
    assert_true(mtf_output_check_file(path, NULL));
    assert_true(mtf_output_check_file("plan.json", NULL));
    assert_true(mtf_output_check_file("-", NULL));
    assert_true(mtf_output_check_file("/dev/null", NULL));
    assert_true(mtf_output_check_file(NULL, NULL));
    assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

TEST(a_file_that_has_no_place_is_bad_input) {
    g_autofree char *lost = g_build_filename(*state, "absent", "plan.json", NULL);
    expect_refusal(mtf_output_check_file, lost, "/absent: No such file or directory");
    expect_refusal(mtf_output_check_file, *state, "cannot be written: it is a folder");
    expect_refusal(mtf_output_check_file, "", "\"\" is not the name of a file");
    expect_refusal(mtf_output_check_file, "/dev/null/plan.json", "/dev/null is not a folder");
}

TEST(a_folder_may_have_to_be_made) {
    g_autofree char *deep = g_build_filename(*state, "a", "b", "c", NULL);
    assert_true(mtf_output_check_folder(deep, NULL));
    assert_true(mtf_output_check_folder(*state, NULL));
    assert_true(mtf_output_check_folder("a/b", NULL));
    assert_true(mtf_output_check_folder(NULL, NULL));
    expect_refusal(mtf_output_check_folder, "", "\"\" is not the name of a folder");
    expect_refusal(mtf_output_check_folder, "/dev/null/a/b", "/dev/null is not a folder");
}

/* The status of a child that prints on a full device and ends with `status`. */
static int child_status(const char *device, int status) {
    pid_t child = fork();
    if (child == 0) {
        if (freopen(device, "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(99);
        mtf_output_guard_begin();
        puts("a plan");
        exit(status);
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

TEST(what_standard_output_does_not_take_is_a_failure) {
    assert_int_equal(child_status("/dev/null", 0), 0);
    assert_int_equal(child_status("/dev/full", 0), 1);
    assert_int_equal(child_status("/dev/full", 75), 75);
}

int main(void) {
    return mtf_tests_run(make_folder, remove_folder);
}
