// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/json_writer.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Prints [item] and takes the item. */
static char *print_in_list(cJSON *item) {
    cJSON *list = cJSON_CreateArray();
    cJSON_AddItemToArray(list, item);
    char *text = cJSON_PrintUnformatted(list);
    cJSON_Delete(list);
    return text;
}

static void assert_prints(cJSON *item, const char *expected) {
    g_autofree char *text = print_in_list(item);
    assert_string_equal(text, expected);
}

TEST(integers_keep_every_digit) {
    assert_prints(mtf_json_new_integer(1000000000000000), "[1000000000000000]");
    assert_prints(mtf_json_new_integer(INT64_MAX), "[9223372036854775807]");
    assert_prints(mtf_json_new_integer(INT64_MIN), "[-9223372036854775808]");
    assert_prints(mtf_json_new_integer(0), "[0]");
}

TEST(numbers_print_with_the_fewest_digits) {
    assert_prints(mtf_json_new_number(0.1), "[0.1]");
    assert_prints(mtf_json_new_number(1.0 / 3), "[0.3333333333333333]");
    assert_prints(mtf_json_new_number(2.3e13), "[2.3e+13]");
    assert_prints(mtf_json_new_number(-0.0), "[-0]");
    assert_prints(mtf_json_new_number(12345678), "[12345678]");
}

TEST(numbers_read_back_equal) {
    double value = 1;
    for (int i = 0; i < 2000; i++) {
        value = fmod(value * 1103515245.7 + 12345.678, 1e9);
        double scaled = ldexp(value, i % 600 - 300);
        g_autofree char *text = print_in_list(mtf_json_new_number(scaled));
        assert_true(g_ascii_strtod(text + 1, NULL) == scaled);
    }
}

TEST(what_is_not_finite_becomes_null) {
    assert_prints(mtf_json_new_number((double)INFINITY), "[null]");
    assert_prints(mtf_json_new_number((double)NAN), "[null]");
}

static cJSON *sample(void) {
    cJSON *tree = cJSON_CreateObject();
    mtf_json_add_integer(tree, "meshtf_graph", 1);
    cJSON_AddStringToObject(tree, "na\"me", "a\nb");
    cJSON *list = cJSON_AddArrayToObject(tree, "operations");
    for (int i = 0; i < 2; i++) {
        cJSON *operation = cJSON_CreateObject();
        mtf_json_add_number(operation, "x", i + 0.5);
        cJSON_AddItemToArray(list, operation);
    }
    cJSON_AddArrayToObject(tree, "empty");
    return tree;
}

TEST(a_tree_prints_one_list_element_a_line) {
    cJSON *tree = sample();
    g_autofree char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    assert_string_equal(text, "{\n"
                              "  \"meshtf_graph\": 1,\n"
                              "  \"na\\\"me\": \"a\\nb\",\n"
                              "  \"operations\": [\n"
                              "    {\"x\":0.5},\n"
                              "    {\"x\":1.5}\n"
                              "  ],\n"
                              "  \"empty\": []\n"
                              "}\n");
}

TEST(what_is_printed_reads_back) {
    cJSON *tree = sample();
    g_autofree char *text = mtf_json_print(tree);
    cJSON_Delete(tree);
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("printed", text, strlen(text), NULL);
    assert_non_null(document);
    MtfJson root = mtf_json_root(document);
    MtfJson name;
    const char *string;
    assert_true(mtf_json_get(&root, "na\"me", &name, NULL) &&
                mtf_json_string(&name, &string, NULL));
    assert_string_equal(string, "a\nb");
}

TEST(a_bare_value_prints_on_one_line) {
    cJSON *value = mtf_json_new_integer(7);
    g_autofree char *text = mtf_json_print(value);
    cJSON_Delete(value);
    assert_string_equal(text, "7\n");
}

/* The state of a test that writes: a scratch folder. */
static int make_folder(void **state) {
    *state = g_dir_make_tmp("mtf-XXXXXX", NULL);
    return *state == NULL;
}

static int remove_folder(void **state) {
    const char *folder = *state;
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir)) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
    }
    g_dir_close(dir);
    int status = g_rmdir(folder);
    g_free(*state);
    return status;
}

static void assert_holds(const char *path, const char *expected) {
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    assert_string_equal(text, expected);
}

TEST_WITH(a_file_is_replaced_whole, make_folder, remove_folder) {
    g_autofree char *path = g_build_filename(*state, "plan.json", NULL);
    assert_true(mtf_file_write(path, "a longer text\n", 14, NULL));
    assert_true(mtf_file_write(path, "text\n", 5, NULL));
    assert_holds(path, "text\n");
}

TEST_WITH(a_tree_is_saved_as_it_prints, make_folder, remove_folder) {
    g_autofree char *path = g_build_filename(*state, "tree.json", NULL);
    assert_true(mtf_json_save(mtf_json_new_integer(7), path, NULL));
    assert_holds(path, "7\n");
}

TEST_WITH(nothing_else_is_left_in_the_folder, make_folder, remove_folder) {
    g_autofree char *path = g_build_filename(*state, "plan.json", NULL);
    assert_true(mtf_file_write(path, "text\n", 5, NULL));
    GDir *dir = g_dir_open(*state, 0, NULL);
    assert_string_equal(g_dir_read_name(dir), "plan.json");
    assert_null(g_dir_read_name(dir));
    g_dir_close(dir);
}

TEST_WITH(a_folder_that_is_not_there_is_bad_input, make_folder, remove_folder) {
    g_autofree char *path = g_build_filename(*state, "absent", "plan.json", NULL);
    g_autoptr(GError) error = NULL;
    assert_false(mtf_file_write(path, "text\n", 5, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_non_null(strstr(error->message, "absent/plan.json: cannot be written: "));
}

TEST_WITH(a_symbolic_link_stays_one, make_folder, remove_folder) {
    g_autofree char *path = g_build_filename(*state, "plan.json", NULL);
    g_autofree char *link_path = g_build_filename(*state, "link.json", NULL);
    assert_true(mtf_file_write(path, "old\n", 4, NULL));
    assert_int_equal(symlink("plan.json", link_path), 0);
    assert_true(mtf_file_write(link_path, "new\n", 4, NULL));
    assert_true(g_file_test(link_path, G_FILE_TEST_IS_SYMLINK));
    assert_holds(path, "new\n");
}

TEST_WITH(a_pipe_is_written_to_and_not_replaced, make_folder, remove_folder) {
    g_autofree char *path = g_build_filename(*state, "pipe", NULL);
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = g_open(path, O_RDONLY | O_NONBLOCK, 0);
    assert_true(mtf_file_write(path, "text\n", 5, NULL));
    char got[8] = "";
    assert_int_equal(read(reader, got, sizeof got), 5);
    close(reader);
    assert_string_equal(got, "text\n");
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
}
