// SPDX-License-Identifier: GPL-3.0-or-later
/* Text from a language model, a token at a time: the forward part of its program runs on a window
 * of the tokens so far up to the operation that compares scores with the next tokens; the scores of
 * the last position are gathered from all ranks that have some, and one token is drawn from them.
 *
 *     window   T h e   q u i . . .        all examples alike, the rest is filling
 *                          │
 *     scores   of position 6, 256 numbers ──softmax──► 'c'
 *
 * When the window is full it moves on by half its length. What is drawn depends on the seed alone.
 */
#ifndef MTF_GENERATION_H
#define MTF_GENERATION_H

#include "runtime/session/session.h"

/* Collective: whether mtf_generate can do so; fails as it does. To be asked before a model is trained. */
bool mtf_generation_check(MtfSession *session, const char *prompt, GError **error);

/* Collective: `prompt` (NULL: the beginning of the held out part) and options->generate tokens
 * after it. Where the vocabulary has at most 256 ids they are bytes of text, otherwise numbers
 * between spaces. Free with g_free. Fails (bad input) when the model has no tokens or no scores of
 * next tokens, or a byte of the prompt is not in its vocabulary. */
char *mtf_generate(MtfSession *session, const char *prompt, GError **error);

#endif
