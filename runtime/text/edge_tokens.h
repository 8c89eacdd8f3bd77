// SPDX-License-Identifier: GPL-3.0-or-later
/* Which tokens begin and end what a published model says: `decoder_start_token_id`, and `eos_token_id`, a
 * number or a list of them, of the folder's generation_config.json or config.json, the first that has it. */
#ifndef MTF_EDGE_TOKENS_H
#define MTF_EDGE_TOKENS_H

#include <glib.h>
#include <stdbool.h>

/* The tokens (int) that end a text, none where `path` is no folder or its files name none. Fails (bad input)
 * on a file that is there and cannot be read. Free with g_array_unref. */
GArray *mtf_end_tokens_read(const char *path, GError **error);

/* The token that a decoder beside an encoder begins with, likewise; 0 where nothing names one. */
bool mtf_start_token_read(const char *path, int *token, GError **error);

#endif
