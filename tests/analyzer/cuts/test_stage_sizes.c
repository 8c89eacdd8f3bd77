// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/cuts/stage_sizes.h"

#include <string.h>

/* "1 4 8": the sizes of stages on a library machine. */
static char *sizes_text(const char *name, int64_t devices, int stages, GError **error) {
    g_autoptr(MtfMachine) machine = mtf_machine_load(name, NULL);
    MtfCutRequest request = { .machine = machine, .devices = devices, .stages = stages };
    g_autoptr(GArray) sizes = mtf_stage_sizes_new(&request, 16);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < sizes->len; i++)
        g_string_append_printf(text, "%s%d", i > 0 ? " " : "",
                               (int)g_array_index(sizes, int64_t, i));
    bool adds_up = mtf_stage_sizes_check(&request, sizes, error);
    return adds_up ? g_strdup(text->str) : NULL;
}

static void assert_sizes(const char *machine, int64_t devices, int stages, const char *expected) {
    g_autofree char *text = sizes_text(machine, devices, stages, NULL);
    assert_string_equal(text, expected);
}

TEST(equal_shares_come_with_half_and_twice_as_many) {
    assert_sizes("h100", 24, 3, "4 8 16");
    assert_sizes("h100", 8, 1, "8");
}

/* A half of 10 devices and single ones are no four stages: 3 + 3 + 3 + 1 are. */
TEST(sizes_next_to_a_share_are_there_where_others_do_not_add_up) {
    assert_sizes("h100", 10, 4, "1 2 3 5");
    assert_sizes("h100", 7, 3, "1 2 3");
}

/* TPU v4 has slices of 1, 4, 8, 16, 32 … devices, and none of 12, 6, 3 or 2. */
TEST(where_there_is_no_such_slice_its_neighbours_are_taken) {
    assert_sizes("tpu-v4", 24, 2, "8 16");
    assert_sizes("tpu-v4", 12, 5, "1 4 8");
}

/* 4 + 1 + 1, or 4 + 1 + 1 + 1: any number of stages. */
TEST(slices_add_up_to_devices_that_are_none) {
    assert_sizes("tpu-v4", 6, 0, "1 4");
    assert_sizes("tpu-v4", 7, 0, "1 4");
    assert_sizes("tpu-v4", 8, 0, "1 4 8");
}

TEST(slices_that_do_not_add_up_are_refused_with_numbers_that_do) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = sizes_text("tpu-v4", 7, 3, &error);
    assert_null(text);
    assert_non_null(strstr(error->message, "slices of 1 and 4 devices"));
    assert_non_null(strstr(error->message, "no 3 of them have 7: give 6 or 9 devices"));
}

TEST(each_stage_has_a_device) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = sizes_text("h100", 4, 8, &error);
    assert_null(text);
    assert_string_equal(error->message, "8 stages need 8 devices or more, not 4");
}
