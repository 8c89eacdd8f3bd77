// SPDX-License-Identifier: GPL-3.0-or-later
/* What a model makes of a source, a token at a time, several sources side by side: the program's
 * forward part runs with example e reading source e, what is said of it is drawn from the scores of
 * its last position, and a text ends as runtime/text/pair_text.h says: of bytes
 *
 *     example 0   source  F i l e ETX      tokens  STX F i c h …
 *     example 1   source  O p e n ETX      tokens  STX O u v r …
 *
 * What is drawn depends on the seed alone, so every layout says the same. */
#ifndef MTF_TRANSLATION_H
#define MTF_TRANSLATION_H

#include "runtime/session/session.h"

/* Whether the model reads a source, so that this is how it generates. */
bool mtf_translates(const MtfSession *session);

/* Collective: whether mtf_translate can do so; fails as it does. To be asked before a model is trained. */
bool mtf_translation_check(MtfSession *session, const char *prompt, GError **error);

/* Collective: what is made of `prompt`, or where that is NULL of the first pairs of the held out part
 * (else of the training part), in options->generate tokens at most each; a line for each: source,
 * result and, of pairs, what the data says. Free with g_free. Fails (bad input) when the model has
 * no scores of next tokens, no tokenizer is given and tokens are no bytes, or a source does not fit. */
char *mtf_translate(MtfSession *session, const char *prompt, GError **error);

#endif
