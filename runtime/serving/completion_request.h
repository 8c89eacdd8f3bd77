// SPDX-License-Identifier: GPL-3.0-or-later
/* A request for completions in OpenAI's form, the body of POST /v1/completions:
 *
 *     {"prompt": "The quick", "max_tokens": 16, "temperature": 0.8, "top_p": 1, "top_k": 0,
 *      "seed": 0, "n": 1, "stop": ["\n"], "stream": false, "echo": false}
 *
 * `prompt` is a text, a list of tokens, or a list of several such. What else that form has is either
 * without influence here (model, user) or refused by name where it asks for what is not done. */
#ifndef MTF_COMPLETION_REQUEST_H
#define MTF_COMPLETION_REQUEST_H

#include "runtime/serving/sampling.h"

#define MTF_MAX_PROMPTS 64
#define MTF_MAX_CHOICES 64 /* of a prompt */
#define MTF_MAX_STOPS 4
#define MTF_STANDARD_MAX_TOKENS 16

/* A text or tokens: the other is NULL. */
typedef struct {
    char *text;
    GArray *tokens; /* int, none below 0 */
} MtfPrompt;

typedef struct {
    GPtrArray *prompts; /* MtfPrompt, at least one */
    int64_t max_tokens; /* of a choice, at least 1 */
    int64_t choices;    /* of a prompt, at least 1: "n" */
    MtfSampling sampling;
    int64_t seed;
    char **stops; /* texts that end a choice and are not part of it; NULL-terminated */
    bool stream;  /* answer in pieces as they come */
    bool echo;    /* the prompt before each choice */
    bool returns_tokens;
} MtfCompletionRequest;

/* Reads a body; what it leaves out is as in `standard` (max_tokens, sampling, seed). Fails (bad
 * input) with a sentence that names the place. */
bool mtf_completion_request_parse(MtfCompletionRequest *request,
                                  const MtfCompletionRequest *standard, const char *body,
                                  gsize length, GError **error);
void mtf_completion_request_clear(MtfCompletionRequest *request);

#endif
