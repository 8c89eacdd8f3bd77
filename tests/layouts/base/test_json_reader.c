// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/json_reader.h"

#include "layouts/base/error.h"
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static MtfJsonDocument *parse(const char *text, GError **error) {
    return mtf_json_document_parse("f.json", text, strlen(text), error);
}

static MtfJsonDocument *parse_good(const char *text) {
    g_autoptr(GError) error = NULL;
    MtfJsonDocument *document = parse(text, &error);
    if (document == NULL)
        fail_msg("%s", error->message);
    return document;
}

/* Asserts that `text` of `length` bytes is refused as bad input with exactly `message`. */
static void assert_refused_bytes(const char *text, gsize length, const char *message) {
    g_autoptr(GError) error = NULL;
    assert_null(mtf_json_document_parse("f.json", text, length, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_string_equal(error->message, message);
}

static void assert_refused(const char *text, const char *message) {
    assert_refused_bytes(text, strlen(text), message);
}

static void assert_says(const GError *error, const char *message) {
    assert_non_null(error);
    assert_string_equal(error->message, message);
}

TEST(a_member_of_another_type_is_told_with_its_place) {
    g_autoptr(MtfJsonDocument) document = parse_good("{\"a\": {\"s\": \"x\", \"n\": 2.5}}");
    MtfJson root = mtf_json_root(document), a, member;
    const char *string = "kept";
    int64_t integer = 7;
    g_autoptr(GError) no_string = NULL, no_list = NULL, no_integer = NULL, no_member = NULL;
    assert_true(mtf_json_get_object(&root, "a", &a, NULL));
    assert_false(mtf_json_get_string(&a, "n", &string, &no_string));
    assert_says(no_string, "f.json: /a/n: a string is expected here");
    assert_false(mtf_json_get_array(&a, "s", &member, &no_list));
    assert_says(no_list, "f.json: /a/s: a list is expected here");
    assert_false(mtf_json_get_integer(&a, "n", 0, 9, &integer, &no_integer));
    assert_says(no_integer, "f.json: /a/n: 2.5 is not an integer below 2^53");
    assert_false(mtf_json_get_integer(&a, "m", 0, 9, &integer, &no_member));
    assert_says(no_member, "f.json: /a: key \"m\" is missing");
    assert_string_equal(string, "kept");
    assert_true(mtf_json_optional_integer(&a, "m", 0, 9, &integer, NULL));
    assert_false(mtf_json_optional_integer(&a, "n", 0, 9, &integer, NULL));
    assert_int_equal(integer, 7);
}

TEST(every_kind_of_value_is_read) {
    g_autoptr(MtfJsonDocument) document =
        parse_good(" {\"s\": \"é\\u00e9\", \"n\": -1.5e2, \"b\": true, \"l\": [1, {}]}\n");
    MtfJson root = mtf_json_root(document);
    MtfJson child;
    const char *string;
    double number;
    bool boolean;
    assert_true(mtf_json_get_string(&root, "s", &string, NULL));
    assert_string_equal(string, "éé");
    assert_true(mtf_json_get_number(&root, "n", &number, NULL));
    assert_true(number == -150.0);
    assert_true(mtf_json_get_boolean(&root, "b", &boolean, NULL));
    assert_true(boolean);
    assert_true(mtf_json_get_array(&root, "l", &child, NULL));
    assert_int_equal(mtf_json_length(&child), 2);
}

TEST(members_are_walked_in_order) {
    g_autoptr(MtfJsonDocument) document = parse_good("{\"b\": 1, \"a\": [10, 20]}");
    MtfJson root = mtf_json_root(document);
    MtfJson member, item;
    assert_true(mtf_json_first(&root, &member));
    assert_string_equal(mtf_json_key(&member), "b");
    assert_true(mtf_json_next(&member));
    assert_string_equal(mtf_json_key(&member), "a");
    int64_t sum = 0, value;
    for (bool more = mtf_json_first(&member, &item); more; more = mtf_json_next(&item)) {
        assert_null(mtf_json_key(&item));
        assert_true(mtf_json_integer(&item, 0, 100, &value, NULL));
        sum = 2 * sum + value;
    }
    assert_int_equal(sum, 40);
    assert_false(mtf_json_next(&member));
}

TEST(an_empty_container_has_no_members) {
    g_autoptr(MtfJsonDocument) document = parse_good("[]");
    MtfJson root = mtf_json_root(document);
    MtfJson child;
    assert_false(mtf_json_first(&root, &child));
    assert_int_equal(mtf_json_length(&root), 0);
}

TEST(an_error_names_file_and_path) {
    g_autoptr(MtfJsonDocument) document = parse_good("{\"a\": [0, {\"b\": \"x\"}]}");
    MtfJson root = mtf_json_root(document);
    MtfJson list, item, leaf;
    g_autoptr(GError) error = NULL;
    double number = 42;
    assert_true(mtf_json_get(&root, "a", &list, NULL));
    assert_true(mtf_json_first(&list, &item) && mtf_json_next(&item));
    assert_true(mtf_json_get(&item, "b", &leaf, NULL));
    assert_false(mtf_json_number(&leaf, &number, &error));
    assert_says(error, "f.json: /a/1/b: a finite number is expected here");
    assert_true(number == 42);
}

TEST(the_root_path_is_a_slash) {
    g_autoptr(MtfJsonDocument) document = parse_good("1");
    MtfJson root = mtf_json_root(document);
    g_autofree char *path = mtf_json_path(&root);
    assert_string_equal(path, "/");
}

TEST(a_missing_key_is_named) {
    g_autoptr(MtfJsonDocument) document = parse_good("{\"a\": 1}");
    MtfJson root = mtf_json_root(document);
    MtfJson child;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_json_get(&root, "b", &child, &error));
    assert_says(error, "f.json: /: key \"b\" is missing");
}

TEST(a_key_differs_by_case) {
    g_autoptr(MtfJsonDocument) document = parse_good("{\"Name\": 1}");
    MtfJson root = mtf_json_root(document);
    MtfJson child;
    assert_false(mtf_json_find(&root, "name", &child));
}

TEST(getting_from_a_list_is_an_error) {
    g_autoptr(MtfJsonDocument) document = parse_good("[1]");
    MtfJson root = mtf_json_root(document);
    MtfJson child;
    g_autoptr(GError) error = NULL;
    assert_false(mtf_json_get(&root, "b", &child, &error));
    assert_says(error, "f.json: /: an object is expected here");
}

TEST(an_unknown_key_is_named) {
    static const char *const allowed[] = { "a", "b", NULL };
    g_autoptr(MtfJsonDocument) document = parse_good("{\"a\": 1, \"c\": 2}");
    MtfJson root = mtf_json_root(document);
    g_autoptr(GError) error = NULL;
    assert_false(mtf_json_keys(&root, allowed, &error));
    assert_says(error, "f.json: /: unknown key \"c\" (known here: a, b)");
}

TEST(known_keys_are_accepted) {
    static const char *const allowed[] = { "a", "b", NULL };
    g_autoptr(MtfJsonDocument) document = parse_good("{\"b\": 1}");
    MtfJson root = mtf_json_root(document);
    assert_true(mtf_json_keys(&root, allowed, NULL));
}

TEST(a_key_given_twice_is_an_error_anywhere) {
    assert_refused("{\"a\": [{\"x\": 1, \"y\": 2, \"x\": 3}]}",
                   "f.json: /a/0: key \"x\" is given twice");
}

TEST(wrong_types_are_errors) {
    g_autoptr(MtfJsonDocument) document = parse_good("null");
    MtfJson root = mtf_json_root(document);
    const char *string = "before";
    double number = 1;
    bool boolean = true;
    int64_t integer = 2;
    assert_false(mtf_json_string(&root, &string, NULL));
    assert_false(mtf_json_number(&root, &number, NULL));
    assert_false(mtf_json_boolean(&root, &boolean, NULL));
    assert_false(mtf_json_integer(&root, 0, 9, &integer, NULL));
    assert_false(mtf_json_array(&root, NULL));
    assert_false(mtf_json_object(&root, NULL));
    assert_string_equal(string, "before");
    assert_true(number == 1 && boolean && integer == 2);
}

/* The error (or NULL) of reading `text` as an integer from -10 to 2^53. */
static GError *integer_error(const char *text) {
    g_autoptr(MtfJsonDocument) document = parse_good(text);
    MtfJson root = mtf_json_root(document);
    GError *error = NULL;
    int64_t value;
    mtf_json_integer(&root, -10, INT64_C(1) << 53, &value, &error);
    return error;
}

TEST(a_fraction_is_no_integer) {
    g_autoptr(GError) error = integer_error("1.5");
    assert_says(error, "f.json: /: 1.5 is not an integer below 2^53");
}

TEST(an_integer_with_an_exponent_is_one) {
    assert_null(integer_error("1e3"));
}

TEST(the_largest_integer_is_2_53_minus_1) {
    assert_null(integer_error("9007199254740991"));
    g_autoptr(GError) exact = integer_error("9007199254740992");
    assert_non_null(exact);
    /* 2^53 + 1 reads as the double 2^53: it must not pass as that. */
    g_autoptr(GError) rounded = integer_error("9007199254740993");
    assert_non_null(rounded);
}

TEST(an_integer_out_of_range_names_the_range) {
    g_autoptr(GError) error = integer_error("-11");
    assert_says(error, "f.json: /: -11 is not between -10 and 9007199254740992");
}

TEST(a_number_beyond_double_is_an_error) {
    g_autoptr(GError) error = integer_error("1e999");
    assert_says(error, "f.json: /: a finite number is expected here");
}

TEST(numbers_that_are_not_json_are_refused) {
    static const char *const wrong[] = { "007", "1.", "-",  "-a",  "1e",       "1e+",
                                         "-01", "+1", ".5", "NaN", "Infinity", "0x10" };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autofree char *text = g_strdup_printf("[%s]", wrong[i]);
        g_autoptr(GError) error = NULL;
        assert_null(parse(text, &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
    }
    assert_refused("[007]", "f.json:1:2: this is not a JSON number");
}

/* As Python writes them into config.json; in strings they are words. */
TEST(infinities_of_configs_are_null) {
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "mtf-config-XXXXXX", NULL);
    g_autofree char *text = NULL;
    static const char config[] = "{\"limit\": [0.5, Infinity, -Infinity], \"a\\\"Infinity\": 1}";
    close(g_mkstemp(path));
    assert_true(g_file_set_contents(path, config, -1, NULL));
    g_autoptr(GError) error = NULL;
    assert_null(mtf_json_document_load(path, &error));
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load_config(path, &text, NULL);
    assert_non_null(document);
    MtfJson root = mtf_json_root(document), limit, named;
    assert_true(mtf_json_find(&root, "limit", &limit));
    assert_true(cJSON_IsNull(cJSON_GetArrayItem(limit.node, 1)));
    assert_true(cJSON_IsNull(cJSON_GetArrayItem(limit.node, 2)));
    assert_true(mtf_json_find(&root, "a\"Infinity", &named));
    assert_string_equal(text, config);
    g_unlink(path);
}

TEST(numbers_of_every_json_form_are_read) {
    static const char *const right[] = { "0", "-0", "0.5", "10", "1E5", "1e+05", "-1.25e-3" };
    for (gsize i = 0; i < G_N_ELEMENTS(right); i++)
        mtf_json_document_free(parse_good(right[i]));
}

TEST(a_number_of_64_characters_is_refused) {
    /* cJSON would read the first 63 and find the rest a syntax error. */
    g_autofree char *digits = g_strnfill(64, '1');
    assert_refused(digits, "f.json:1:1: this is not a JSON number");
    digits[63] = '\0';
    mtf_json_document_free(parse_good(digits));
}

TEST(a_syntax_error_names_line_and_column) {
    assert_refused("{\n  \"a\": 1,\n  \"b\": x\n}", "f.json:3:8: this is not valid JSON");
    /* The first wrong byte, whatever else is wrong behind it. */
    assert_refused("name: x\nvalue: \001", "f.json:1:1: this is not valid JSON");
    assert_refused("a = -\nb = \"x\ny\"", "f.json:1:1: this is not valid JSON");
    assert_refused("[1, 2 3, \"x\ny\"]", "f.json:1:7: this is not valid JSON");
    assert_refused("[1, -]", "f.json:1:5: this is not a JSON number");
    assert_refused("[1, \"x\ny\"]",
                   "f.json:1:7: a control character stands in a string (a quote may be missing)");
}

TEST(cut_off_text_is_an_error) {
    static const char whole[] = "{\"a\": [1, \"b\\n\", {\"c\": null}], \"d\": true}";
    for (gsize length = 0; length < sizeof whole - 1; length++) {
        g_autofree char *text = g_strndup(whole, length);
        g_autoptr(GError) error = NULL;
        assert_null(parse(text, &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
    }
    mtf_json_document_free(parse_good(whole));
    assert_refused("", "f.json:1:1: the JSON text ends too early");
    assert_refused("[1, 2", "f.json:1:5: the JSON text ends too early");
}

TEST(text_after_the_value_is_an_error) {
    assert_refused("{} {}", "f.json:1:4: text follows the end of the JSON value");
}

TEST(the_bytes_may_end_without_a_nul) {
    char text[2] = { '4', '2' };
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse("f.json", text, 2, NULL);
    assert_non_null(document);
}

TEST(invalid_utf8_is_an_error) {
    assert_refused("{\"a\": \"\xff\"}", "f.json: byte 7 is not valid UTF-8 text");
    assert_refused_bytes("[1\0]", 4, "f.json: byte 2 is not valid UTF-8 text");
}

TEST(a_string_cannot_be_cut_by_an_escaped_nul) {
    assert_refused("[\"a\\u0000b\"]", "f.json:1:4: \\u0000 is not allowed in a string");
}

TEST(control_characters_are_refused) {
    assert_refused("[\"a\nb\"]",
                   "f.json:1:4: a control character stands in a string (a quote may be missing)");
    assert_refused("[\v]", "f.json:1:2: a control character stands here");
}

TEST(brackets_within_strings_do_not_nest) {
    g_autoptr(GString) text = g_string_new("\"\\\"");
    for (int i = 0; i < 1000; i++)
        g_string_append_c(text, '[');
    g_string_append_c(text, '"');
    mtf_json_document_free(parse_good(text->str));
}

static void nest(GString *text, int depth) {
    for (int i = 0; i < depth; i++)
        g_string_append_c(text, '[');
    for (int i = 0; i < depth; i++)
        g_string_append_c(text, ']');
}

TEST(deep_nesting_is_an_error_not_a_crash) {
    g_autoptr(GString) deep = g_string_new(NULL);
    nest(deep, 1000000);
    assert_refused(deep->str, "f.json:1:513: brackets nest deeper than 512 levels here");
    g_autoptr(GString) fine = g_string_new(NULL);
    nest(fine, 512);
    mtf_json_document_free(parse_good(fine->str));
}

TEST(another_version_is_an_error) {
    g_autoptr(MtfJsonDocument) document = parse_good("{\"meshtf_graph\": 2}");
    MtfJson root = mtf_json_root(document);
    g_autoptr(GError) error = NULL;
    assert_true(mtf_json_version(&root, "meshtf_graph", 2, NULL));
    assert_false(mtf_json_version(&root, "meshtf_graph", 1, &error));
    assert_says(error, "f.json: /meshtf_graph: version 2 is not 1, the one this program reads");
}

TEST(a_file_of_another_kind_is_an_error) {
    g_autoptr(MtfJsonDocument) document = parse_good("{\"meshtf_plan\": 1}");
    MtfJson root = mtf_json_root(document);
    g_autoptr(GError) error = NULL;
    assert_false(mtf_json_version(&root, "meshtf_graph", 1, &error));
    assert_says(error,
                "f.json: /: key \"meshtf_graph\" is missing: this is not a meshtf_graph file");
}

/* A scratch folder with one file of the given bytes. */
typedef struct {
    char *folder;
    char *path;
} Scratch;

static Scratch scratch_new(const void *bytes, gsize length) {
    Scratch scratch = { .folder = g_dir_make_tmp("mtf-XXXXXX", NULL) };
    assert_non_null(scratch.folder);
    scratch.path = g_build_filename(scratch.folder, "f.json", NULL);
    assert_true(g_file_set_contents(scratch.path, bytes, (gssize)length, NULL));
    return scratch;
}

static void scratch_clear(Scratch *scratch) {
    g_unlink(scratch->path);
    g_rmdir(scratch->folder);
    g_free(scratch->path);
    g_free(scratch->folder);
}

static void gzip_to(const char *path, const char *text) {
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

TEST(plain_and_gzip_files_read_alike) {
    Scratch scratch = scratch_new("[1, 2]\n", 7);
    gsize length = 0;
    g_autofree char *plain = mtf_file_read(scratch.path, &length, NULL);
    assert_int_equal(length, 7);
    assert_string_equal(plain, "[1, 2]\n");
    gzip_to(scratch.path, "[1, 2]\n");
    g_autofree char *packed = mtf_file_read(scratch.path, &length, NULL);
    assert_int_equal(length, 7);
    assert_string_equal(packed, "[1, 2]\n");
    scratch_clear(&scratch);
}

TEST(a_cut_off_gzip_file_is_an_error) {
    Scratch scratch = scratch_new("", 0);
    gzip_to(scratch.path, "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]");
    g_autofree char *bytes = NULL;
    gsize length;
    assert_true(g_file_get_contents(scratch.path, &bytes, &length, NULL));
    for (gsize cut = 10; cut < length; cut++) {
        assert_true(g_file_set_contents(scratch.path, bytes, (gssize)cut, NULL));
        g_autoptr(GError) error = NULL;
        gsize got = 77;
        assert_null(mtf_file_read(scratch.path, &got, &error));
        assert_int_equal(mtf_error_exit_status(error), 2);
        assert_int_equal(got, 77);
    }
    scratch_clear(&scratch);
}

TEST(a_damaged_gzip_file_is_an_error) {
    Scratch scratch = scratch_new("", 0);
    gzip_to(scratch.path, "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]");
    g_autofree char *bytes = NULL;
    gsize length;
    assert_true(g_file_get_contents(scratch.path, &bytes, &length, NULL));
    bytes[length - 8] = (char)~bytes[length - 8]; /* the checksum */
    assert_true(g_file_set_contents(scratch.path, bytes, (gssize)length, NULL));
    g_autoptr(GError) error = NULL;
    assert_null(mtf_json_document_load(scratch.path, &error));
    assert_non_null(strstr(error->message, "the data are damaged"));
    scratch_clear(&scratch);
}

TEST(a_missing_file_and_a_folder_are_errors) {
    Scratch scratch = scratch_new("", 0);
    g_autoptr(GError) folder = NULL;
    assert_null(mtf_json_document_load(scratch.folder, &folder));
    assert_non_null(strstr(folder->message, "is a folder"));
    g_unlink(scratch.path);
    g_autoptr(GError) missing = NULL;
    assert_null(mtf_json_document_load(scratch.path, &missing));
    assert_int_equal(mtf_error_exit_status(missing), 2);
    assert_non_null(strstr(missing->message, "No such file"));
    scratch_clear(&scratch);
}

TEST(a_device_is_an_error_at_once) {
    g_autoptr(GError) error = NULL;
    assert_null(mtf_json_document_load("/dev/zero", &error));
    assert_says(error, "/dev/zero: is a device, where a file is expected");
}

TEST(a_dash_is_standard_input) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "[}", 2), 2);
    close(ends[1]);
    int before = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    g_autoptr(GError) error = NULL;
    assert_null(mtf_json_document_load("-", &error));
    dup2(before, STDIN_FILENO);
    close(before);
    close(ends[0]);
    assert_says(error, "standard input:1:2: this is not valid JSON");
}

TEST(the_free_function_accepts_null) {
    mtf_json_document_free(NULL);
}
