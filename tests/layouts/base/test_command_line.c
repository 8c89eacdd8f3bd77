// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/command_line.h"

#include "layouts/base/error.h"
#include "tests/support/cmocka.h"

#include <string.h>
#include <unistd.h>

/* Parses one command line, given as words, with the options --count N and --flag and one to two
 * other arguments. */
typedef struct {
    int count;
    gboolean flag;
    char **words;
    char **argv; /* what is left of the words */
    int argc;
    GError *error;
    bool good;
} Line;

static Line parse(const char *text) {
    Line line = { .words = g_strsplit(text, " ", -1) };
    const GOptionEntry entries[] = {
        { .long_name = "count", .arg = G_OPTION_ARG_INT, .arg_data = &line.count },
        { .long_name = "flag", .arg = G_OPTION_ARG_NONE, .arg_data = &line.flag },
        { .long_name = NULL },
    };
    const MtfUsage usage = { "GRAPH [PLAN]", "Tries things.", 1, 2, NULL };
    line.argc = (int)g_strv_length(line.words);
    line.argv = g_memdup2(line.words, ((gsize)line.argc + 1) * sizeof(char *));
    g_set_prgname("meshtf-plan try");
    line.good = mtf_command_line_read(&line.argc, &line.argv, entries, &usage, &line.error);
    return line;
}

static void line_clear(Line *line) {
    g_strfreev(line->words);
    g_free(line->argv);
    g_clear_error(&line->error);
}

TEST(texts_of_options_are_freed_together) {
    char *text = NULL, **list = NULL;
    int count = 0;
    const GOptionEntry entries[] = {
        { .long_name = "text", .arg = G_OPTION_ARG_FILENAME, .arg_data = &text },
        { .long_name = "list", .arg = G_OPTION_ARG_STRING_ARRAY, .arg_data = &list },
        { .long_name = "count", .arg = G_OPTION_ARG_INT, .arg_data = &count },
        { .long_name = NULL },
    };
    char *words[] = { "try", "--text=a", "--list=b", "--list=c", "--count=2", NULL };
    char **argv = words;
    int argc = 5;
    assert_true(mtf_command_line_parse(&argc, &argv, entries, "", "", 0, 0, NULL));
    assert_string_equal(text, "a");
    assert_int_equal(g_strv_length(list), 2);
    mtf_command_line_clear(entries);
    assert_null(text);
    assert_null(list);
    assert_int_equal(count, 2);
}

static void assert_refused(const char *text, const char *message) {
    Line line = parse(text);
    assert_false(line.good);
    assert_int_equal(mtf_error_exit_status(line.error), 2);
    assert_string_equal(line.error->message, message);
    line_clear(&line);
}

TEST(options_are_taken_out_and_arguments_stay) {
    Line line = parse("try a.json --count 3 b.json --flag");
    assert_true(line.good);
    assert_int_equal(line.count, 3);
    assert_true(line.flag);
    assert_int_equal(line.argc, 3);
    assert_string_equal(line.argv[0], "try");
    assert_string_equal(line.argv[1], "a.json");
    assert_string_equal(line.argv[2], "b.json");
    line_clear(&line);
}

TEST(two_dashes_end_the_options) {
    Line line = parse("try --flag -- --count b.json");
    assert_true(line.good);
    assert_int_equal(line.argc, 3);
    assert_string_equal(line.argv[1], "--count");
    assert_string_equal(line.argv[2], "b.json");
    line_clear(&line);
}

TEST(a_dash_is_an_argument) {
    Line line = parse("try -");
    assert_true(line.good);
    assert_string_equal(line.argv[1], "-");
    line_clear(&line);
}

TEST(a_missing_argument_shows_the_usage) {
    assert_refused("try --flag",
                   "an argument is missing: the usage is meshtf-plan try GRAPH [PLAN]");
}

TEST(an_argument_too_many_is_named) {
    assert_refused("try a b c",
                   "argument \"c\" is one too many: the usage is meshtf-plan try GRAPH [PLAN]");
}

TEST(an_unknown_option_is_named) {
    assert_refused("try --nonsense a", "Unknown option --nonsense (see --help)");
}

TEST(a_wrong_value_is_named) {
    Line line = parse("try --count three a");
    assert_false(line.good);
    assert_non_null(strstr(line.error->message, "three"));
    line_clear(&line);
}

TEST(a_failure_is_one_line_on_standard_error) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int before = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    GError *error = NULL;
    mtf_input_error(&error, "f.json: /: wrong");
    int status = mtf_command_line_fail("meshtf-plan try", error);
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[1]);
    char got[100] = "";
    assert_true(read(ends[0], got, sizeof got - 1) > 0);
    close(ends[0]);
    assert_int_equal(status, 2);
    assert_string_equal(got, "meshtf-plan try: f.json: /: wrong\n");
}

TEST(sizes_are_read_with_their_units) {
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {
        { "0", 0 },
        { "4096", 4096 },
        { "4096 B", 4096 },
        { "3kB", 3000 },
        { "500MB", 500000000 },
        { "2GB", 2000000000 },
        { "1TB", 1000000000000 },
        { "1KiB", 1024 },
        { "1.5MiB", 1572864 },
        { "16GiB", INT64_C(17179869184) },
        { "1TiB", INT64_C(1099511627776) },
        { "8 GB", INT64_C(8000000000) },
        { "1e3", 1000 },
        { "9007199254740993", INT64_C(9007199254740993) },
        { "4611686018427387903", INT64_C(4611686018427387903) },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        int64_t bytes = -1;
        assert_true(mtf_bytes_parse(cases[i].text, &bytes, NULL));
        assert_int_equal(bytes, cases[i].bytes);
    }
}

TEST(what_is_no_size_is_refused) {
    static const char *const wrong[] = {
        "",
        "GiB",
        "-1",
        "-1GiB",
        "16gib",
        "16 GiB x",
        "1e30",
        "1e999",
        "nan",
        "inf",
        "0x10",
        "1,5GB",
        "4611686018427387904",
        " 5",
        "5 ",
        "infinity",
        "16K",
        "1 2",
        "--1",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        int64_t bytes = -1;
        g_autoptr(GError) error = NULL;
        if (mtf_bytes_parse(wrong[i], &bytes, &error))
            fail_msg("\"%s\" was read as a size", wrong[i]);
        assert_int_equal(mtf_error_exit_status(error), 2);
        assert_int_equal(bytes, -1);
    }
}

TEST(a_wrong_size_is_quoted) {
    g_autoptr(GError) error = NULL;
    int64_t bytes;
    assert_false(mtf_bytes_parse("many", &bytes, &error));
    assert_string_equal(error->message,
                        "\"many\" is not a size in bytes (like 16GiB, 500MB or 4096)");
}

TEST(a_number_outside_its_range_is_named) {
    g_autoptr(GError) range = NULL, least = NULL;
    assert_true(mtf_option_between("--ring", 1, 1, 8, NULL));
    assert_true(mtf_option_between("--ring", 8, 1, 8, NULL));
    assert_true(mtf_option_between("--batch", INT64_MAX, 1, INT64_MAX, NULL));
    assert_false(mtf_option_between("--ring", 9, 1, 8, &range));
    assert_string_equal(range->message, "--ring 9 is not between 1 and 8");
    assert_false(mtf_option_between("--batch", 0, 1, INT64_MAX, &least));
    assert_string_equal(least->message, "--batch 0 is not at least 1");
    assert_int_equal(mtf_error_exit_status(least), 2);
}

TEST(auto_is_no_count) {
    const char *wrong[] = { "0", "9", "-1", "many", "" };
    int count = -1;
    assert_true(mtf_option_auto_or_count("--stages", "auto", 8, &count, NULL));
    assert_int_equal(count, 0);
    assert_true(mtf_option_auto_or_count("--stages", "8", 8, &count, NULL));
    assert_int_equal(count, 8);
    assert_true(mtf_option_auto_or_count("--stages", NULL, 8, &count, NULL));
    assert_int_equal(count, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        assert_false(mtf_option_auto_or_count("--stages", wrong[i], 8, &count, &error));
        g_autofree char *said = g_strdup_printf("--stages \"%s\" must be auto or 1 to 8", wrong[i]);
        assert_string_equal(error->message, said);
    }
}

static void assert_formats(char *text, const char *expected) {
    assert_string_equal(text, expected);
    g_free(text);
}

TEST(sizes_print_for_people) {
    assert_formats(mtf_bytes_format(0), "0 B");
    assert_formats(mtf_bytes_format(1023), "1023 B");
    assert_formats(mtf_bytes_format(1536), "1.50 KiB");
    assert_formats(mtf_bytes_format(17179869184), "16.00 GiB");
    assert_formats(mtf_bytes_format(1048575), "1.00 MiB");
}

TEST(times_print_with_three_digits) {
    assert_formats(mtf_seconds_format(0), "0 s");
    assert_formats(mtf_seconds_format(1.234), "1.23 s");
    assert_formats(mtf_seconds_format(0.00123456), "1.23 ms");
    assert_formats(mtf_seconds_format(0.0000005), "500 ns");
    assert_formats(mtf_seconds_format(123.4), "123 s");
    assert_formats(mtf_seconds_format(12345), "12345 s");
    assert_formats(mtf_seconds_format(0.9996), "1 s");
    assert_formats(mtf_seconds_format(1e-12), "0.001 ns");
}
