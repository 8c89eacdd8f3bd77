// SPDX-License-Identifier: GPL-3.0-or-later
/* A checker of Chrome traces that knows the format alone and nothing of what wrote it. */
#ifndef MTF_TESTS_TRACE_CHECK_H
#define MTF_TESTS_TRACE_CHECK_H

#include <glib.h>
#include <stdbool.h>

/* Whether `text` is a trace that viewers open: an object with `traceEvents`, each with a name, a
 * type, pid and tid; complete events (X) with times of at least 0 that rise within a pid and tid
 * and nest there (two of them are apart or one holds the other); counters (C) with times that rise
 * and numbers; a process_name for each pid and a thread_name (M) for each tid that has complete
 * events; no other types. Says what is wrong. */
bool mtf_trace_check(const char *text, GError **error);

#endif
