// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/command_line.h"

#include "layouts/base/command_manual.h"
#include "layouts/base/error.h"
#include "layouts/base/nearest_name.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* GLib leaves the "--" that ends the options among the arguments. */
static void drop_dashes(int *argc, char **argv) {
    if (*argc < 2 || strcmp(argv[1], "--") != 0)
        return;
    (*argc)--;
    for (int i = 1; i <= *argc; i++)
        argv[i] = argv[i + 1];
}

/* GLib would print its help in the locale's letters, which in a container has none beyond ASCII. */
static void help_and_exit(GOptionContext *context) {
    char *text = g_option_context_get_help(context, TRUE, NULL);
    fputs(text, stdout);
    g_free(text);
    exit(0);
}

static bool asks_for_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* The whole manual of a program of one command, which ends it as --help does. */
static void manual_and_exit(MtfManualForm form, const GOptionEntry *entries,
                            const MtfUsage *usage) {
    const MtfManualProgram program = { g_get_prgname(), usage->purpose, NULL };
    mtf_manual_open(form, &program);
    mtf_manual_describe("", entries, usage);
    mtf_manual_close();
    exit(0);
}

/* A command of a program whose manual is open is called "PROGRAM COMMAND". */
static bool describe(const GOptionEntry *entries, const MtfUsage *usage) {
    const char *space = strchr(g_get_prgname(), ' ');
    mtf_manual_describe(space != NULL ? space + 1 : "", entries, usage);
    return false;
}

/* GLib's sentence, and the known option that is nearest to one that is not known. */
static bool fail_option(const GError *cause, const GOptionEntry *entries, GError **error) {
    const char *dashes = strstr(cause->message, "--");
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++)
        g_ptr_array_add(names, (void *)(guintptr)entry->long_name);
    g_ptr_array_add(names, NULL);
    const char *nearest = NULL;
    if (g_error_matches(cause, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION) && dashes != NULL) {
        g_autofree char *name = g_strndup(dashes + 2, strcspn(dashes + 2, "= "));
        nearest = mtf_nearest_name(name, (const char *const *)names->pdata);
    }
    g_auto(GStrv) around = g_strsplit(cause->message, "double value", 2); /* as C calls a number */
    g_autofree char *sentence = g_strjoinv("number", around);
    if (nearest == NULL)
        return mtf_input_error(error, "%s (see --help)", sentence);
    return mtf_input_error(error, "%s (did you mean --%s? see --help)", sentence, nearest);
}

/* GLib takes "--even=no" for --even. */
static bool check_flags(int argc, char **argv, const GOptionEntry *entries, GError **error) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *equals = g_str_has_prefix(argv[i], "--") ? strchr(argv[i], '=') : NULL;
        gsize length = equals != NULL ? (gsize)(equals - argv[i]) - 2 : 0;
        for (const GOptionEntry *e = entries; length > 0 && e->long_name != NULL; e++)
            if (e->arg == G_OPTION_ARG_NONE && strlen(e->long_name) == length &&
                strncmp(e->long_name, argv[i] + 2, length) == 0)
                return mtf_input_error(error, "--%s takes no value: say it alone, or leave it out",
                                       e->long_name);
    }
    return true;
}

bool mtf_command_line_read(int *argc, char ***argv, const GOptionEntry *entries,
                           const MtfUsage *usage, GError **error) {
    if (mtf_manual_is_open() != MTF_MANUAL_NONE)
        return describe(entries, usage);
    MtfManualForm form = *argc == 2 ? mtf_manual_form((*argv)[1]) : MTF_MANUAL_NONE;
    if (form != MTF_MANUAL_NONE && usage->purpose != NULL)
        manual_and_exit(form, entries, usage);
    g_autoptr(GOptionContext) context = g_option_context_new(usage->arguments);
    g_option_context_set_summary(context, usage->summary);
    g_option_context_add_main_entries(context, entries, NULL);
    if (asks_for_help(*argc, *argv))
        help_and_exit(context);
    g_autoptr(GError) cause = NULL;
    if (!check_flags(*argc, *argv, entries, error))
        return false;
    if (!g_option_context_parse(context, argc, argv, &cause))
        return fail_option(cause, entries, error);
    drop_dashes(argc, *argv);
    int given = *argc - 1;
    if (given < usage->low)
        return mtf_input_error(error, "an argument is missing: the usage is %s %s", g_get_prgname(),
                               usage->arguments);
    if (given > usage->high)
        return mtf_input_error(error, "argument \"%s\" is one too many: the usage is %s%s%s",
                               (*argv)[usage->high + 1], g_get_prgname(),
                               *usage->arguments != '\0' ? " " : "", usage->arguments);
    return true;
}

void mtf_command_line_clear(const GOptionEntry *entries) {
    for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++) {
        if (entry->arg == G_OPTION_ARG_STRING || entry->arg == G_OPTION_ARG_FILENAME)
            g_clear_pointer((char **)entry->arg_data, g_free);
        if (entry->arg == G_OPTION_ARG_STRING_ARRAY || entry->arg == G_OPTION_ARG_FILENAME_ARRAY)
            g_clear_pointer((char ***)entry->arg_data, g_strfreev);
    }
}

int mtf_command_line_fail(const char *program, GError *error) {
    if (error == NULL)
        return 0;
    int status = mtf_error_exit_status(error);
    fprintf(stderr, "%s: %s\n", program, error->message);
    g_error_free(error);
    return status;
}

bool mtf_option_between(const char *option, int64_t value, int64_t least, int64_t most,
                        GError **error) {
    if (value >= least && value <= most)
        return true;
    if (most == INT64_MAX)
        return mtf_input_error(error, "%s %" PRId64 " is not at least %" PRId64, option, value,
                               least);
    return mtf_input_error(error, "%s %" PRId64 " is not between %" PRId64 " and %" PRId64, option,
                           value, least, most);
}

bool mtf_option_count(const char *option, int *count, GError **error) {
    if (*count != MTF_NO_COUNT)
        return mtf_option_between(option, *count, 1, INT64_MAX, error);
    *count = 0;
    return true;
}

bool mtf_option_auto_or_count(const char *option, const char *text, int most, int *count,
                              GError **error) {
    guint64 value = 0;
    if (text != NULL && strcmp(text, "auto") != 0 &&
        !g_ascii_string_to_unsigned(text, 10, 1, (guint64)most, &value, NULL))
        return mtf_input_error(error, "%s \"%s\" must be auto or 1 to %d", option, text, most);
    *count = (int)value;
    return true;
}

static const struct {
    const char *name;
    int64_t bytes;
} units[] = {
    { "", 1 },
    { "B", 1 },
    { "kB", 1000 },
    { "KB", 1000 },
    { "MB", 1000000 },
    { "GB", 1000000000 },
    { "TB", 1000000000000 },
    { "KiB", INT64_C(1) << 10 },
    { "MiB", INT64_C(1) << 20 },
    { "GiB", INT64_C(1) << 30 },
    { "TiB", INT64_C(1) << 40 },
};

#define MAX_BYTES ((UINT64_C(1) << 62) - 1)

/* The bytes of a unit, 0 for a word that is none. */
static int64_t unit_bytes(const char *name) {
    for (gsize i = 0; i < G_N_ELEMENTS(units); i++)
        if (strcmp(name, units[i].name) == 0)
            return units[i].bytes;
    return 0;
}

/* A whole number stays an integer throughout, so that no digit is lost above 2^53. */
static bool multiply_whole(guint64 number, int64_t unit, int64_t *bytes) {
    bool small = number <= MAX_BYTES / (guint64)unit;
    if (small)
        *bytes = (int64_t)number * unit;
    return small;
}

static bool multiply_real(double number, int64_t unit, int64_t *bytes) {
    double product = number * (double)unit;
    bool small = product < (double)MAX_BYTES;
    if (small)
        *bytes = (int64_t)product;
    return small;
}

bool mtf_bytes_parse(const char *text, int64_t *bytes, GError **error) {
    char *end;
    guint64 whole = g_ascii_strtoull(text, &end, 10);
    bool real = *end != '\0' && strchr(".eE", *end) != NULL;
    double number = real ? g_ascii_strtod(text, &end) : 0;
    bool spaced = *end == ' ' && end[1] != '\0';
    int64_t unit = unit_bytes(end + spaced);
    if (g_ascii_isdigit(*text) && unit > 0 &&
        (real ? multiply_real(number, unit, bytes) : multiply_whole(whole, unit, bytes)))
        return true;
    return mtf_input_error(error, "\"%s\" is not a size in bytes (like 16GiB, 500MB or 4096)",
                           text);
}

/* A unit is left behind where rounding would print 1024.00 of it. */
char *mtf_bytes_format(double bytes) {
    static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    guint unit = 0;
    while (fabs(bytes) >= (unit == 0 ? 1023.5 : 1023.995) && unit + 1 < G_N_ELEMENTS(names)) {
        bytes /= 1024;
        unit++;
    }
    return g_strdup_printf(unit == 0 ? "%.0f %s" : "%.2f %s", bytes, names[unit]);
}

char *mtf_count_format(double count) {
    static const char *const names[] = { "", "k", "M", "G", "T", "P", "E" };
    guint unit = 0;
    while (fabs(count) >= 999.5 && unit + 1 < G_N_ELEMENTS(names)) {
        count /= 1000;
        unit++;
    }
    return g_strdup_printf(fabs(count) >= 999.5 ? "%.0f %s" : "%.3g %s", count, names[unit]);
}

char *mtf_seconds_format(double seconds) {
    static const char *const names[] = { "s", "ms", "us", "ns" };
    guint unit = 0;
    double value = seconds;
    while (value != 0 && fabs(value) < 0.9995 && unit + 1 < G_N_ELEMENTS(names)) {
        value *= 1e3;
        unit++;
    }
    return g_strdup_printf(fabs(value) >= 999.5 ? "%.0f %s" : "%.3g %s", value, names[unit]);
}
