// SPDX-License-Identifier: GPL-3.0-or-later
/* How much of one claim a test tries: all in `make test-long`, which sets MTF_LONG, and in `make test` a
 * quarter of the random cases, but five where there are as many: the counts of ranks that tests go round. */
#ifndef MTF_TESTS_SUPPORT_DRAWS_H
#define MTF_TESTS_SUPPORT_DRAWS_H

#include <glib.h>
#include <stdbool.h>

static inline bool mtf_tries_all(void) {
    return g_getenv("MTF_LONG") != NULL;
}

/* Where the seeds of random cases begin: `MTF_SEED=3 make test-long ONLY=layouts_agree` tries others than every
 * day's, of as many kinds. */
static inline guint32 mtf_first_seed(void) {
    const char *text = g_getenv("MTF_SEED");
    return text == NULL ? 0 : (guint32)g_ascii_strtoull(text, NULL, 10) * 10000;
}

static inline int mtf_draws(int all) {
    return mtf_tries_all() ? all : MAX((all + 3) / 4, MIN(all, 5));
}

#endif
