// SPDX-License-Identifier: GPL-3.0-or-later
/* Writing markup that names from files cannot break out of. Every string that is put into a page
 * goes through here, so that `<script>` in a tensor's name is text and nothing else. What comes out
 * is well formed as XML 1.0 and as HTML. */
#ifndef MTF_MARKUP_H
#define MTF_MARKUP_H

#include <glib.h>
#include <stdbool.h>

/* Appends what `format` gives, its string arguments escaped: & < > and both quotes as entities,
 * characters that no document may hold (controls, U+FFFE, U+FFFF) as U+FFFD. */
void mtf_markup(GString *page, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Appends one string, escaped the same way. */
void mtf_markup_text(GString *page, const char *text);

/* How many times a measured value is the predicted one, "1.87 ×", or "–" where nothing was
 * predicted. Free with g_free. */
char *mtf_ratio_format(double measured, double predicted);

#endif
