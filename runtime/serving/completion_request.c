// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/completion_request.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"

#define MAX_TOKENS (1 << 24)
#define MAX_STOP_BYTES 256

/* ---- Prompts --------------------------------------------------------------------------------- */

static void free_prompt(gpointer data) {
    MtfPrompt *prompt = data;
    g_free(prompt->text);
    if (prompt->tokens != NULL)
        g_array_unref(prompt->tokens);
    g_free(prompt);
}

static MtfPrompt *add_prompt(MtfCompletionRequest *request) {
    MtfPrompt *prompt = g_new0(MtfPrompt, 1);
    g_ptr_array_add(request->prompts, prompt);
    return prompt;
}

static bool read_tokens(const MtfJson *list, MtfCompletionRequest *request, GError **error) {
    MtfPrompt *prompt = add_prompt(request);
    prompt->tokens = g_array_new(FALSE, FALSE, sizeof(int));
    MtfJson item;
    for (bool more = mtf_json_first(list, &item); more; more = mtf_json_next(&item)) {
        int64_t token;
        if (!mtf_json_integer(&item, 0, G_MAXINT, &token, error))
            return false;
        int id = (int)token;
        g_array_append_val(prompt->tokens, id);
    }
    return true;
}

/* A text, or a list that begins with a number. */
static bool read_one_prompt(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    if (cJSON_IsString(value->node)) {
        add_prompt(request)->text = g_strdup(value->node->valuestring);
        return true;
    }
    if (cJSON_IsArray(value->node) && cJSON_IsNumber(value->node->child))
        return read_tokens(value, request, error);
    return mtf_json_fail(value, error, "a text or a list of tokens is expected");
}

static bool read_prompt(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    bool several = cJSON_IsArray(value->node) && value->node->child != NULL &&
                   !cJSON_IsNumber(value->node->child);
    if (!several)
        return read_one_prompt(value, request, error);
    if (mtf_json_length(value) > MTF_MAX_PROMPTS)
        return mtf_json_fail(value, error, "at most %d prompts go into one request",
                             MTF_MAX_PROMPTS);
    MtfJson item;
    for (bool more = mtf_json_first(value, &item); more; more = mtf_json_next(&item))
        if (!read_one_prompt(&item, request, error))
            return false;
    return true;
}

/* ---- Other fields ---------------------------------------------------------------------------- */

static bool read_max_tokens(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_integer(value, 1, MAX_TOKENS, &request->max_tokens, error);
}

static bool read_choices(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_integer(value, 1, MTF_MAX_CHOICES, &request->choices, error);
}

static bool read_seed(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_integer(value, -MTF_JSON_MAX_INTEGER, MTF_JSON_MAX_INTEGER, &request->seed,
                            error);
}

static bool read_temperature(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    double t;
    if (!mtf_json_number(value, &t, error))
        return false;
    if (!(t >= 0 && t <= 100))
        return mtf_json_fail(value, error, "a temperature from 0 to 100 is expected");
    request->sampling.temperature = t;
    return true;
}

static bool read_top_p(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    double p;
    if (!mtf_json_number(value, &p, error))
        return false;
    if (!(p > 0 && p <= 1))
        return mtf_json_fail(value, error, "a share above 0 and up to 1 is expected");
    request->sampling.top_p = p;
    return true;
}

/* -1 says "all" elsewhere, 0 here. */
static bool read_top_k(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    int64_t k;
    if (!mtf_json_integer(value, -1, G_MAXINT, &k, error))
        return false;
    request->sampling.top_k = MAX(k, 0);
    return true;
}

static bool read_stop(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    g_autoptr(GStrvBuilder) stops = g_strv_builder_new();
    MtfJson item = *value;
    bool more = cJSON_IsArray(value->node) ? mtf_json_first(value, &item) : true;
    if (mtf_json_length(value) > MTF_MAX_STOPS)
        return mtf_json_fail(value, error, "at most %d texts may end a choice", MTF_MAX_STOPS);
    while (more) {
        const char *text;
        if (!mtf_json_string(&item, &text, error))
            return false;
        if (*text == '\0' || strlen(text) > MAX_STOP_BYTES)
            return mtf_json_fail(&item, error, "a text of 1 to %d bytes is expected",
                                 MAX_STOP_BYTES);
        g_strv_builder_add(stops, text);
        more = cJSON_IsArray(value->node) && mtf_json_next(&item);
    }
    g_strfreev(request->stops);
    request->stops = g_strv_builder_end(stops);
    return true;
}

static bool read_stream(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_boolean(value, &request->stream, error);
}

static bool read_echo(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_boolean(value, &request->echo, error);
}

static bool read_returns_tokens(const MtfJson *value, MtfCompletionRequest *request,
                                GError **error) {
    return mtf_json_boolean(value, &request->returns_tokens, error);
}

/* One model is served, to whoever asks. */
static bool read_name(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    const char *name;
    (void)request;
    return mtf_json_string(value, &name, error);
}

/* A penalty of 0, no biases, nothing behind the gap: what the field does when it does nothing. */
static bool expect_nothing(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    const cJSON *node = value->node;
    (void)request;
    bool nothing = (cJSON_IsNumber(node) && node->valuedouble == 0) || cJSON_IsFalse(node) ||
                   (cJSON_IsString(node) && node->valuestring[0] == '\0') ||
                   ((cJSON_IsObject(node) || cJSON_IsArray(node)) && node->child == NULL);
    return nothing || mtf_json_fail(value, error, "this is not done here: leave the field out");
}

static bool expect_one(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    int64_t n;
    (void)request;
    return mtf_json_integer(value, 1, 1, &n, error);
}

static const struct {
    const char *key;
    bool (*read)(const MtfJson *value, MtfCompletionRequest *request, GError **error);
} fields[] = {
    { "prompt", read_prompt },
    { "max_tokens", read_max_tokens },
    { "n", read_choices },
    { "temperature", read_temperature },
    { "top_p", read_top_p },
    { "top_k", read_top_k },
    { "seed", read_seed },
    { "stop", read_stop },
    { "stream", read_stream },
    { "echo", read_echo },
    { "return_token_ids", read_returns_tokens },
    { "model", read_name },
    { "user", read_name },
    { "best_of", expect_one },
    { "presence_penalty", expect_nothing },
    { "frequency_penalty", expect_nothing },
    { "logit_bias", expect_nothing },
    { "logprobs", expect_nothing },
    { "suffix", expect_nothing },
};

/* null is as if it were not there. */
static bool read_field(const MtfJson *member, MtfCompletionRequest *request, GError **error) {
    const char *key = mtf_json_key(member);
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
        if (g_str_equal(fields[i].key, key))
            return cJSON_IsNull(member->node) || fields[i].read(member, request, error);
    return mtf_json_fail(member, error, "this field is not known");
}

static bool read_request(const MtfJson *root, MtfCompletionRequest *request, GError **error) {
    MtfJson member;
    if (!mtf_json_object(root, error))
        return false;
    for (bool more = mtf_json_first(root, &member); more; more = mtf_json_next(&member))
        if (!read_field(&member, request, error))
            return false;
    return request->prompts->len > 0 || mtf_json_fail(root, error, "\"prompt\" is missing");
}

bool mtf_completion_request_parse(MtfCompletionRequest *request,
                                  const MtfCompletionRequest *standard, const char *body,
                                  gsize length, GError **error) {
    g_autoptr(MtfJsonDocument) document =
        mtf_json_document_parse("the request", body, length, error);
    if (document == NULL)
        return false;
    MtfJson root = mtf_json_root(document);
    *request = *standard;
    request->choices = 1;
    request->prompts = g_ptr_array_new_with_free_func(free_prompt);
    request->stops = g_new0(char *, 1);
    if (read_request(&root, request, error))
        return true;
    mtf_completion_request_clear(request);
    return false;
}

void mtf_completion_request_clear(MtfCompletionRequest *request) {
    if (request->prompts != NULL)
        g_ptr_array_unref(request->prompts);
    g_strfreev(request->stops);
    *request = (MtfCompletionRequest){ 0 };
}
