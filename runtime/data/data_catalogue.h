// SPDX-License-Identifier: GPL-3.0-or-later
/* Pairs of texts as people ship them:
 *
 *     message catalogues (.mo)    \x95\x04\x12\xde or the other way round in front: messages and what
 *                                 they are in another language (GNU gettext, "The Format of GNU MO
 *                                 Files")
 *     tables (.tsv)               a pair a line, a tab between
 *
 * Of a catalogue its header (the message of no bytes) and what nobody translated are left out, of
 * messages with plural forms the first one is taken, and the context before \x04 is cut off. Of
 * both, texts with bytes 0 to 3 in them are left out: those have meanings here (data_pairs.h). */
#ifndef MTF_DATA_CATALOGUE_H
#define MTF_DATA_CATALOGUE_H

#include <glib.h>
#include <stdbool.h>

typedef struct {
    GBytes *source, *target;
} MtfTextPair;

/* A list of MtfTextPair that owns its texts. */
GArray *mtf_text_pairs_new(void);

/* Whether a file that begins with these bytes is a message catalogue. */
bool mtf_catalogue_begins(const unsigned char *bytes, gsize n);

/* Appends the pairs of a whole file to `pairs`; `name` is for errors. Fails (bad input) on a
 * catalogue whose tables do not lie inside it, and on a line that is no pair, with its number. */
bool mtf_catalogue_parse(const char *name, const unsigned char *bytes, gsize n, GArray *pairs,
                         GError **error);
bool mtf_pair_table_parse(const char *name, const unsigned char *bytes, gsize n, GArray *pairs,
                          GError **error);

#endif
