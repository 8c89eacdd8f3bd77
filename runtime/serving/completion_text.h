// SPDX-License-Identifier: GPL-3.0-or-later
/* The text of a choice while it grows, token by token:
 *
 *     prompt  ┊  said already  │ held back ┊
 *             ┊  The licence  │  \xe2\x80  ┊      half a character, or what may become a stop
 *
 * Text is what decoding prompt and choice together says behind what the prompt alone says: a token's
 * text may depend on the one before it. It is always whole characters of UTF-8. */
#ifndef MTF_COMPLETION_TEXT_H
#define MTF_COMPLETION_TEXT_H

#include "runtime/serving/model_text.h"

typedef struct {
    const MtfModelText *model;
    char **stops;   /* texts that end it; NULL-terminated; borrowed */
    GArray *tokens; /* int: the end of the prompt, and the choice */
    guint prompt;   /* how many are of the prompt */
    gsize base;     /* bytes that these say */
    GString *text;  /* behind them */
    gsize said;     /* bytes that mtf_completion_text_say has given */
    bool stopped;   /* one of `stops` has come; it and what is behind it is cut off */
} MtfCompletionText;

/* `prompt` are the prompt's tokens; borrows the rest. */
void mtf_completion_text_init(MtfCompletionText *text, const MtfModelText *model, char **stops,
                              const GArray *prompt);
void mtf_completion_text_clear(MtfCompletionText *text);

/* The choice goes on with a token. */
void mtf_completion_text_add(MtfCompletionText *text, int token);

/* Brings text->text up to date. */
void mtf_completion_text_update(MtfCompletionText *text);

/* What can be said beyond what was, "" where all must be held back; at the `end` all. After an
 * update. Free with g_free. */
char *mtf_completion_text_say(MtfCompletionText *text, bool end);

#endif
