// SPDX-License-Identifier: GPL-3.0-or-later
/* "Did you mean …?": the known name that is nearest to one that is not known. */
#ifndef MTF_NEAREST_NAME_H
#define MTF_NEAREST_NAME_H

#include <glib.h>

/* The nearest of the NULL-terminated `candidates` by edit distance (insert, delete or replace a
 * byte, swap two neighbours); the first of equals. NULL when none is near: more than a third of the
 * bytes wrong, or a name over 64 bytes. */
const char *mtf_nearest_name(const char *name, const char *const *candidates);

/* ` (did you mean "NAME"?)`, or the empty text when nothing is near; free with g_free. */
char *mtf_did_you_mean(const char *name, const char *const *candidates);

/* What follows in a sentence on a `name` that is none of `known` (const char *, no NULL behind them):
 * ` (did you mean "NAME"?); there are A, B, C`, with the question where one is near. Free with g_free. */
char *mtf_there_are(const char *name, const GPtrArray *known);

#endif
