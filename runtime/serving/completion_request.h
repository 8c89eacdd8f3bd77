// SPDX-License-Identifier: GPL-3.0-or-later
/* A request for completions in one of OpenAI's forms, the body of POST /v1/completions:
 *
 *     {"prompt": "The quick", "max_tokens": 16, "temperature": 0.8, "top_p": 1, "top_k": 0,
 *      "seed": 0, "n": 1, "best_of": 1, "stop": ["\n"], "stream": false, "echo": false, "presence_penalty": 0,
 *      "frequency_penalty": 0, "logit_bias": {"50256": -100}}
 *
 * or of POST /v1/chat/completions:
 *
 *     {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 16, …}
 *
 * `prompt` is a text, a list of tokens, or a list of several such. What else that form has is either
 * without influence here (model, user) or refused by name where it asks for what is not done. */
#ifndef MTF_COMPLETION_REQUEST_H
#define MTF_COMPLETION_REQUEST_H

#include "runtime/serving/sampling.h"
#include "runtime/serving/score_changes.h"

#include <cjson/cJSON.h>

#define MTF_MAX_PROMPTS 64
#define MTF_MAX_CHOICES 64 /* of a prompt */
#define MTF_MAX_STOPS 4
#define MTF_STANDARD_MAX_TOKENS 16
#define MTF_FILL_CONTEXT (-1) /* tokens: as many as have room */

typedef enum { MTF_FORM_TEXT, MTF_FORM_CHAT } MtfCompletionForm;

/* A text or tokens: the other is NULL. */
typedef struct {
    char *text;
    bool whole;     /* nothing is put around it */
    GArray *tokens; /* int, none below 0 */
} MtfPrompt;

typedef struct {
    GPtrArray *prompts; /* MtfPrompt, at least one; of a conversation none */
    cJSON *names;       /* of a conversation: what a template is told ("messages" …); else NULL */
    int64_t max_tokens; /* of a choice, or MTF_FILL_CONTEXT; 0: the prompt alone is looked at */
    int64_t choices;    /* of a prompt that are told, at least 1: "n" */
    int64_t drawn; /* that the likeliest `choices` are taken from, at least as many: "best_of" */
    MtfSampling sampling;
    MtfScoreChanges changes; /* before it is drawn */
    int64_t seed;
    char **stops; /* texts that end a choice and are not part of it; NULL-terminated */
    bool stream;  /* answer in pieces as they come */
    bool counts;  /* a stream ends with how many tokens there were */
    bool echo;    /* the prompt before each choice; its scores, too */
    bool returns_tokens;
    bool returns_scores; /* how likely each token was, … */
    int64_t likeliest;   /* … and how many of the likeliest in its place */
} MtfCompletionRequest;

/* Reads a body; what it leaves out is as in `standard` (max_tokens, sampling, seed). Fails (bad
 * input) with a sentence that names the place. */
bool mtf_completion_request_parse(MtfCompletionRequest *request, MtfCompletionForm form,
                                  const MtfCompletionRequest *standard, const char *body,
                                  gsize length, GError **error);

/* One prompt more, of nothing yet. */
MtfPrompt *mtf_completion_request_add(MtfCompletionRequest *request);
void mtf_completion_request_clear(MtfCompletionRequest *request);

#endif
