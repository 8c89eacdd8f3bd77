// SPDX-License-Identifier: GPL-3.0-or-later
/* Which tokens end a published model's text: `eos_token_id`, a number or a list of them, of the
 * folder's generation_config.json or config.json, the first that has it. */
#ifndef MTF_END_TOKENS_H
#define MTF_END_TOKENS_H

#include <glib.h>

/* The tokens (int), none where `path` is no folder or its files name none. Fails (bad input) on a file
 * that is there and cannot be read. Free with g_array_unref. */
GArray *mtf_end_tokens_read(const char *path, GError **error);

#endif
