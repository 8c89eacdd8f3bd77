// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/error.h"

G_DEFINE_QUARK(mtf - error - quark, mtf_error)

/* A sentence may quote names from a file, and those may hold anything: control characters are
 * spelled out (\x1b, \x0a), so that one error stays one line and cannot command the terminal. */
static char *spell_out(const char *sentence) {
    GString *line = g_string_new(NULL);
    for (const char *c = sentence; *c != '\0'; c++) {
        if (g_ascii_iscntrl(*c))
            g_string_append_printf(line, "\\x%02x", (guint)*c);
        else
            g_string_append_c(line, *c);
    }
    return g_string_free(line, FALSE);
}

static void set_error(GError **error, MtfErrorCode code, const char *format, va_list arguments) {
    g_autofree char *sentence = g_strdup_vprintf(format, arguments);
    g_autofree char *line = spell_out(sentence);
    g_set_error_literal(error, MTF_ERROR, (int)code, line);
}

bool mtf_input_error(GError **error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set_error(error, MTF_ERROR_INPUT, format, arguments);
    va_end(arguments);
    return false;
}

bool mtf_failure(GError **error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set_error(error, MTF_ERROR_FAILED, format, arguments);
    va_end(arguments);
    return false;
}

int mtf_error_exit_status(const GError *error) {
    if (error == NULL)
        return 0;
    if (error->domain != MTF_ERROR)
        return 1;
    switch ((MtfErrorCode)error->code) {
    case MTF_ERROR_INPUT:
        return 2;
    case MTF_ERROR_FIT:
        return 3;
    case MTF_ERROR_FAILED:
        return 1;
    }
    return 1;
}
