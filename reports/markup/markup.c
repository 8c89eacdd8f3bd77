// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/markup/markup.h"

#include <stdarg.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

static bool is_noncharacter(const char *text) {
    return strncmp(text, "\xEF\xBF\xBE", 3) == 0 || strncmp(text, "\xEF\xBF\xBF", 3) == 0;
}

/* GLib writes control characters as "&#x1b;", which no document may hold either. Formats hold no
 * such reference, and an "&" of a name has become "&amp;". */
static void append_clean(GString *page, const char *text) {
    for (const char *rest = text; *rest != '\0';) {
        if (strncmp(rest, "&#x", 3) == 0) {
            g_string_append(page, REPLACEMENT);
            rest = strchr(rest, ';') + 1;
        } else if (is_noncharacter(rest)) {
            g_string_append(page, REPLACEMENT);
            rest += 3;
        } else {
            g_string_append_c(page, *rest++);
        }
    }
}

void mtf_markup(GString *page, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_markup_vprintf_escaped(format, arguments);
    va_end(arguments);
    append_clean(page, text);
}

void mtf_markup_text(GString *page, const char *text) {
    g_autofree char *escaped = g_markup_escape_text(text, -1);
    append_clean(page, escaped);
}

char *mtf_ratio_format(double measured, double predicted) {
    if (!(predicted > 0))
        return g_strdup("–");
    double ratio = measured / predicted;
    return g_strdup_printf(ratio >= 99.95 ? "%.0f ×" : "%.3g ×", ratio);
}
