// SPDX-License-Identifier: GPL-3.0-or-later
/* Graphviz' `dot` as a child process with a limit on its processor time: a layout engine that
 * leaks, hangs or crashes costs nothing but the picture. */
#ifndef MTF_DOT_CHILD_H
#define MTF_DOT_CHILD_H

#include <glib.h>
#include <stdbool.h>

/* Lays out the graphs of the file `dot_path`: one SVG document each, one after another. Free with
 * g_free. Fails when `dot` is not installed, fails, or takes more than `seconds` of processor time;
 * the picture named `picture` is then said to be missing. */
char *mtf_dot_layout(const char *dot_path, const char *picture, int seconds, GError **error);

#endif
