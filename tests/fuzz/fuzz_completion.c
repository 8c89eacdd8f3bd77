// SPDX-License-Identifier: GPL-3.0-or-later
/* Any bytes as a request for completions: refused in one sentence, or a request whose fields are
 * within their limits. */
#include "runtime/serving/completion_request.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

const char *const mtf_fuzz_corpus[] = { "tests/fuzz/corpus/completion", NULL };

static void check_prompt(const MtfPrompt *prompt) {
    g_assert((prompt->text == NULL) != (prompt->tokens == NULL));
    for (guint i = 0; prompt->tokens != NULL && i < prompt->tokens->len; i++)
        g_assert(g_array_index(prompt->tokens, int, i) >= 0);
}

static void check_request(const MtfCompletionRequest *r) {
    g_assert(r->prompts->len >= 1 && r->prompts->len <= MTF_MAX_PROMPTS);
    for (guint i = 0; i < r->prompts->len; i++)
        check_prompt(g_ptr_array_index(r->prompts, i));
    g_assert(r->max_tokens >= (r->echo ? 0 : 1));
    g_assert(r->choices >= 1 && r->choices <= r->drawn && r->drawn <= MTF_MAX_CHOICES);
    g_assert(r->sampling.temperature >= 0 && r->sampling.top_k >= 0);
    g_assert(r->sampling.top_p > 0 && r->sampling.top_p <= 1);
    g_assert(g_strv_length(r->stops) <= MTF_MAX_STOPS);
}

/* A conversation has messages for a template instead of prompts, and may leave out how much is said. */
static void check_conversation(MtfCompletionRequest *r) {
    g_assert(r->prompts->len == 0);
    g_assert(cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(r->names, "messages")));
    mtf_completion_request_add(r)->text = g_strdup("");
    g_assert(r->max_tokens >= 1 || r->max_tokens == MTF_FILL_CONTEXT);
    r->max_tokens = MAX(1, r->max_tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const MtfCompletionRequest standard = { .max_tokens = MTF_STANDARD_MAX_TOKENS,
                                                   .sampling = { .temperature = 0.8, .top_p = 1 } };
    g_autoptr(GError) error = NULL;
    MtfCompletionRequest request;
    bool chat = size > 0 && memmem(data, size, "messages", 8) != NULL;
    bool good = mtf_completion_request_parse(&request, chat ? MTF_FORM_CHAT : MTF_FORM_TEXT,
                                             &standard, (const char *)data, size, &error);
    mtf_fuzz_judge(good, error);
    if (!good)
        return -1;
    if (chat)
        check_conversation(&request);
    check_request(&request);
    mtf_completion_request_clear(&request);
    return 0;
}
