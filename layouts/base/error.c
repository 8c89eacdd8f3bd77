// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/error.h"

G_DEFINE_QUARK(mtf - error - quark, mtf_error)

/* The bytes of the character at `at`; 0: it is none that may be printed, or no text in UTF-8. */
static int printable_bytes(const char *at) {
    gunichar c = g_utf8_get_char_validated(at, -1);
    bool is_text = c != (gunichar)-1 && c != (gunichar)-2 && !g_unichar_iscntrl(c);
    return is_text ? (int)(g_utf8_next_char(at) - at) : 0;
}

/* A sentence may quote names from a file, and those may hold anything: control characters and bytes that are
 * no text are spelled out (\x1b, \xff), so that one error stays one line and cannot command the terminal. */
static char *spell_out(const char *sentence) {
    GString *line = g_string_new(NULL);
    for (const char *c = sentence; *c != '\0';) {
        int bytes = printable_bytes(c);
        if (bytes == 0)
            g_string_append_printf(line, "\\x%02x", (guint)(guchar)*c);
        else
            g_string_append_len(line, c, bytes);
        c += MAX(bytes, 1);
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
