// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/command_line.h"

#include "layouts/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* GLib leaves the "--" that ends the options among the arguments. */
static void drop_dashes(int *argc, char **argv) {
    if (*argc < 2 || strcmp(argv[1], "--") != 0)
        return;
    (*argc)--;
    for (int i = 1; i <= *argc; i++)
        argv[i] = argv[i + 1];
}

bool mtf_command_line_read(int *argc, char ***argv, const GOptionEntry *entries,
                           const MtfUsage *usage, GError **error) {
    g_autoptr(GOptionContext) context = g_option_context_new(usage->arguments);
    g_option_context_set_summary(context, usage->summary);
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) cause = NULL;
    if (!g_option_context_parse(context, argc, argv, &cause))
        return mtf_input_error(error, "%s (see --help)", cause->message);
    drop_dashes(argc, *argv);
    int given = *argc - 1;
    if (given < usage->low)
        return mtf_input_error(error, "an argument is missing: the usage is %s %s", g_get_prgname(),
                               usage->arguments);
    if (given > usage->high)
        return mtf_input_error(error, "argument \"%s\" is one too many: the usage is %s %s",
                               (*argv)[usage->high + 1], g_get_prgname(), usage->arguments);
    return true;
}

int mtf_command_line_fail(const char *program, GError *error) {
    int status = mtf_error_exit_status(error);
    fprintf(stderr, "%s: %s\n", program, error->message);
    g_error_free(error);
    return status;
}

static const struct {
    const char *name;
    double bytes;
} units[] = {
    { "", 1 },      { "B", 1 },        { "kB", 1e3 },     { "MB", 1e6 },     { "GB", 1e9 },
    { "TB", 1e12 }, { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 }, { "TiB", 0x1p40 },
};

bool mtf_bytes_parse(const char *text, int64_t *bytes, GError **error) {
    char *end;
    double number = g_ascii_strtod(text, &end);
    while (end != text && *end == ' ')
        end++;
    for (gsize i = 0; i < G_N_ELEMENTS(units) && end != text; i++) {
        double value = number * units[i].bytes;
        if (strcmp(end, units[i].name) != 0 || !(value >= 0) || value >= 0x1p62)
            continue;
        *bytes = (int64_t)value;
        return true;
    }
    return mtf_input_error(error, "\"%s\" is not a size in bytes (like 16GiB, 500MB or 4096)",
                           text);
}

char *mtf_bytes_format(double bytes) {
    static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    guint unit = 0;
    while (fabs(bytes) >= 1024 && unit + 1 < G_N_ELEMENTS(names)) {
        bytes /= 1024;
        unit++;
    }
    return g_strdup_printf(unit == 0 ? "%.0f %s" : "%.2f %s", bytes, names[unit]);
}

char *mtf_seconds_format(double seconds) {
    static const char *const names[] = { "s", "ms", "us", "ns" };
    guint unit = 0;
    double value = seconds;
    while (value != 0 && fabs(value) < 1 && unit + 1 < G_N_ELEMENTS(names)) {
        value *= 1e3;
        unit++;
    }
    return g_strdup_printf("%.3g %s", value, names[unit]);
}
