// SPDX-License-Identifier: GPL-3.0-or-later
/* Answers at the width of a terminal. A line that says something of a word,
 *
 *     next best      data parallelism, ZeRO-3 (data parallel 4, weights, gradients and
 *                    optimizer sharded (ZeRO-3, FSDP)): 225 ms, 0.668 % longer
 *
 * goes on under its text, not under its word. Tables, JSON and help are left as they are, and so is all
 * that goes into a file or a pipe. */
#ifndef MTF_TERMINAL_LINES_H
#define MTF_TERMINAL_LINES_H

#include <glib.h>

/* From now on what is printed to standard output is folded, where that is a terminal whose width is known. */
void mtf_terminal_lines_begin(void);

/* Appends a line without its end, folded to `width` characters where it is one that says something of a
 * word, and an end of line. */
void mtf_terminal_line_append(GString *out, const char *line, int width);

#endif
