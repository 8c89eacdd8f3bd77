// SPDX-License-Identifier: GPL-3.0-or-later
/* Options whose value is a size in bytes: `--memory 16GiB`. */
#ifndef MTF_OPTION_BYTES_H
#define MTF_OPTION_BYTES_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* mtf_bytes_parse of an option's value; the error names the option. */
bool mtf_option_bytes(const char *option, const char *text, int64_t *bytes, GError **error);

#endif
