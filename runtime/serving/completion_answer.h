// SPDX-License-Identifier: GPL-3.0-or-later
/* What is answered, in OpenAI's forms of completions and of chats: JSON texts, each to be freed with g_free. */
#ifndef MTF_COMPLETION_ANSWER_H
#define MTF_COMPLETION_ANSWER_H

#include "runtime/serving/completion_scores.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* One choice, or the next piece of one. */
typedef struct {
    int64_t index;
    bool begins; /* the first piece: of a message whose it is */
    const char *text;
    const GArray *tokens; /* int, or NULL */
    const GArray *scores; /* MtfPlaceScores, those from `first` on; or NULL */
    guint first;
    const char *finish_reason; /* "stop", "length"; NULL while it goes on */
} MtfAnswerChoice;

/* What all answers to a request have in common. */
typedef struct {
    bool chat; /* choices are messages of an assistant */
    const char *model;
    int64_t number;  /* of the request */
    int64_t created; /* seconds since 1970 */
} MtfAnswerHead;

/* {"error": {"message": …}} with the type that goes with an HTTP status, and the field that the message names. */
char *mtf_answer_error(int status, const char *message);

/* {"object": "list", "data": [{"id": "NAME", "object": "model", …}]} */
char *mtf_answer_models(const char *name, int64_t created, int64_t context);

/* The whole answer; choices by index, tokens counted over all. */
char *mtf_answer_completion(const MtfAnswerHead *head, const MtfAnswerChoice *choices,
                            int64_t n_choices, int64_t prompt_tokens, int64_t tokens);

/* The last piece of a stream, where it is asked for: no choices, and how many tokens there were. */
char *mtf_answer_counts(const MtfAnswerHead *head, int64_t prompt_tokens, int64_t tokens);

/* A piece of a stream: an event of the form "data: JSON", with the empty line behind it. */
char *mtf_answer_piece(const MtfAnswerHead *head, const MtfAnswerChoice *choice);

#endif
