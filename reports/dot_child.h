// SPDX-License-Identifier: GPL-3.0-or-later
/* Lays a graph out by running Graphviz's `dot` as a child with a time limit, so that a layout that
 * leaks, hangs or crashes costs nothing but the picture. */
#ifndef MTF_DOT_CHILD_H
#define MTF_DOT_CHILD_H

#include <glib.h>
#include <stdbool.h>

/* Runs `dot -Tsvg` on the file `dot_path` and writes `svg_path`, whole or not at all. Fails when
 * dot is missing, fails, or needs more than `seconds`. */
bool mtf_dot_layout(const char *dot_path, const char *svg_path, int seconds, GError **error);

#endif
