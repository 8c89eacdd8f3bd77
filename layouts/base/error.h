// SPDX-License-Identifier: GPL-3.0-or-later
/* Three things can go wrong, and they are never mixed: the input is bad (exit status 2), nothing
 * fits (exit status 3), or the work failed (exit status 1: a full disk, a lost file, our own bug).
 * Every fallible function of the project takes a `GError **` of this domain; the message is one
 * clear sentence: what is wrong, where, and what would be right. Control characters in it and bytes
 * that are no UTF-8, which quoted names may hold, are spelled out (\x0a): it is always one line of text. */
#ifndef MTF_ERROR_H
#define MTF_ERROR_H

#include <glib.h>
#include <stdbool.h>

#define MTF_ERROR (mtf_error_quark())

typedef enum {
    MTF_ERROR_INPUT,  /* bad input: exit status 2 */
    MTF_ERROR_FIT,    /* no layout fits: exit status 3 */
    MTF_ERROR_FAILED, /* anything else: exit status 1 */
} MtfErrorCode;

/* The domain of all errors of ours (GError). */
GQuark mtf_error_quark(void);

/* Sets `error` to a bad-input error with a printf-formatted sentence. Always returns false, so
 * that `return mtf_input_error(error, …)` reads well. */
bool mtf_input_error(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Sets `error` to a failure (exit status 1). Always returns false. */
bool mtf_failure(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* The exit status (1, 2 or 3) that a program ends with on `error`; 0 when `error` is NULL. */
int mtf_error_exit_status(const GError *error);

#endif
