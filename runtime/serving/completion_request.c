// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/completion_request.h"

#include "layouts/base/json_reader.h"
#include "runtime/serving/completion_scores.h"

#define MAX_TOKENS (1 << 24)
#define MAX_STOP_BYTES 256
#define ASKS "add_generation_prompt" /* whether a template ends where an answer begins */

/* ---- Prompts --------------------------------------------------------------------------------- */

static void free_prompt(gpointer data) {
    MtfPrompt *prompt = data;
    g_free(prompt->text);
    if (prompt->tokens != NULL)
        g_array_unref(prompt->tokens);
    g_free(prompt);
}

MtfPrompt *mtf_completion_request_add(MtfCompletionRequest *request) {
    MtfPrompt *prompt = g_new0(MtfPrompt, 1);
    g_ptr_array_add(request->prompts, prompt);
    return prompt;
}

static bool read_tokens(const MtfJson *list, MtfCompletionRequest *request, GError **error) {
    MtfPrompt *prompt = mtf_completion_request_add(request);
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
        mtf_completion_request_add(request)->text = g_strdup(value->node->valuestring);
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

/* ---- Conversations --------------------------------------------------------------------------- */

/* The texts of a list of parts, a line each; NULL with an error. Free with g_free. */
static char *join_parts(const MtfJson *list, GError **error) {
    g_autoptr(GString) text = g_string_new(NULL);
    MtfJson part, kind, value;
    const char *type, *words;
    for (bool more = mtf_json_first(list, &part); more; more = mtf_json_next(&part)) {
        if (!mtf_json_object(&part, error) || !mtf_json_get(&part, "type", &kind, error) ||
            !mtf_json_string(&kind, &type, error))
            return NULL;
        if (!g_str_equal(type, "text")) {
            mtf_json_fail(&kind, error, "only parts of type \"text\" are read here");
            return NULL;
        }
        if (!mtf_json_get(&part, "text", &value, error) || !mtf_json_string(&value, &words, error))
            return NULL;
        g_string_append_printf(text, "%s%s", text->len > 0 ? "\n" : "", words);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Templates read contents as texts. */
static bool settle_content(const MtfJson *message, cJSON *copy, GError **error) {
    MtfJson content;
    if (!mtf_json_find(message, "content", &content) || cJSON_IsNull(content.node) ||
        cJSON_IsString(content.node))
        return true;
    if (!cJSON_IsArray(content.node))
        return mtf_json_fail(&content, error, "a text or a list of parts is expected");
    g_autofree char *text = join_parts(&content, error);
    return text != NULL &&
           cJSON_ReplaceItemInObjectCaseSensitive(copy, "content", cJSON_CreateString(text)) != 0;
}

static bool read_messages(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    cJSON *messages = cJSON_AddArrayToObject(request->names, "messages");
    MtfJson message, role;
    const char *name;
    if (!mtf_json_array(value, error))
        return false;
    for (bool more = mtf_json_first(value, &message); more; more = mtf_json_next(&message)) {
        if (!mtf_json_object(&message, error) || !mtf_json_get(&message, "role", &role, error) ||
            !mtf_json_string(&role, &name, error))
            return false;
        cJSON *copy = cJSON_Duplicate(message.node, true);
        cJSON_AddItemToArray(messages, copy);
        if (!settle_content(&message, copy, error))
            return false;
    }
    return messages->child != NULL || mtf_json_fail(value, error, "at least one is needed");
}

/* What a template is told beside. */
static bool read_template_names(const MtfJson *value, MtfCompletionRequest *request,
                                GError **error) {
    MtfJson member;
    if (!mtf_json_object(value, error))
        return false;
    for (bool more = mtf_json_first(value, &member); more; more = mtf_json_next(&member))
        if (g_str_equal(mtf_json_key(&member), "messages"))
            return mtf_json_fail(&member, error, "messages stand in the request itself");
        else
            cJSON_AddItemToObject(request->names, mtf_json_key(&member),
                                  cJSON_Duplicate(member.node, true));
    return true;
}

/* ---- Other fields ---------------------------------------------------------------------------- */

static bool read_max_tokens(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_integer(value, 0, MAX_TOKENS, &request->max_tokens, error);
}

static bool read_choices(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_integer(value, 1, MTF_MAX_CHOICES, &request->choices, error);
}

static bool read_drawn(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_integer(value, 1, MTF_MAX_CHOICES, &request->drawn, error);
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

static bool read_penalty(const MtfJson *value, double *penalty, GError **error) {
    if (!mtf_json_number(value, penalty, error))
        return false;
    return (*penalty >= -2 && *penalty <= 2) ||
           mtf_json_fail(value, error, "a number from -2 to 2 is expected");
}

static bool read_presence(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return read_penalty(value, &request->changes.presence, error);
}

static bool read_frequency(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return read_penalty(value, &request->changes.frequency, error);
}

/* {"TOKEN": BIAS, …} */
static bool read_bias(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    MtfJson member;
    if (!mtf_json_object(value, error))
        return false;
    if (mtf_json_length(value) > MTF_MAX_BIASES)
        return mtf_json_fail(value, error, "at most %d tokens may have one", MTF_MAX_BIASES);
    request->changes.biases = g_array_new(FALSE, FALSE, sizeof(MtfTokenBias));
    for (bool more = mtf_json_first(value, &member); more; more = mtf_json_next(&member)) {
        MtfTokenBias b;
        if (!g_ascii_string_to_signed(mtf_json_key(&member), 10, 0, G_MAXINT, &b.token, NULL))
            return mtf_json_fail(&member, error, "a token's number is expected as a name");
        if (!mtf_json_number(&member, &b.bias, error))
            return false;
        if (!(b.bias >= -100 && b.bias <= 100))
            return mtf_json_fail(&member, error, "a number from -100 to 100 is expected");
        g_array_append_val(request->changes.biases, b);
    }
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

/* How many of the likeliest a completion is told. */
static bool read_likeliest(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    if (cJSON_IsFalse(value->node))
        return true;
    request->returns_scores = true;
    return mtf_json_integer(value, 0, MTF_MAX_LIKELIEST, &request->likeliest, error);
}

/* Of a chat, whether; and then how many. */
static bool read_scores(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_boolean(value, &request->returns_scores, error);
}

static bool read_top_scores(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    return mtf_json_integer(value, 0, MTF_MAX_LIKELIEST, &request->likeliest, error);
}

static bool read_stream_options(const MtfJson *value, MtfCompletionRequest *request,
                                GError **error) {
    static const char *const keys[] = { "include_usage", NULL };
    MtfJson usage;
    return mtf_json_keys(value, keys, error) && (!mtf_json_find(value, keys[0], &usage) ||
                                                 mtf_json_boolean(&usage, &request->counts, error));
}

static bool expect_text(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    static const char *const keys[] = { "type", NULL };
    MtfJson type;
    const char *word;
    (void)request;
    return mtf_json_keys(value, keys, error) && mtf_json_get(value, keys[0], &type, error) &&
           mtf_json_string(&type, &word, error) &&
           (g_str_equal(word, "text") ||
            mtf_json_fail(&type, error, "only \"text\" is answered here"));
}

/* One model is served, to whoever asks. */
static bool read_name(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    const char *name;
    (void)request;
    return mtf_json_string(value, &name, error);
}

/* What others keep of a request, or do with tools. */
static bool pass_over(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    (void)value;
    (void)request;
    (void)error;
    return true;
}

/* Nothing behind the gap, no tools: what the field does when it does nothing. */
static bool expect_nothing(const MtfJson *value, MtfCompletionRequest *request, GError **error) {
    const cJSON *node = value->node;
    (void)request;
    bool nothing = (cJSON_IsNumber(node) && node->valuedouble == 0) || cJSON_IsFalse(node) ||
                   (cJSON_IsString(node) && node->valuestring[0] == '\0') ||
                   ((cJSON_IsObject(node) || cJSON_IsArray(node)) && node->child == NULL);
    return nothing || mtf_json_fail(value, error, "this is not done here: leave the field out");
}

#define TEXT (1U << MTF_FORM_TEXT)
#define CHAT (1U << MTF_FORM_CHAT)
#define BOTH (TEXT | CHAT)

static const struct {
    const char *key;
    unsigned forms;
    bool (*read)(const MtfJson *value, MtfCompletionRequest *request, GError **error);
} fields[] = {
    { "prompt", TEXT, read_prompt },
    { "messages", CHAT, read_messages },
    { "chat_template_kwargs", CHAT, read_template_names },
    { "max_tokens", BOTH, read_max_tokens },
    { "max_completion_tokens", CHAT, read_max_tokens },
    { "n", BOTH, read_choices },
    { "temperature", BOTH, read_temperature },
    { "top_p", BOTH, read_top_p },
    { "top_k", BOTH, read_top_k },
    { "seed", BOTH, read_seed },
    { "stop", BOTH, read_stop },
    { "stream", BOTH, read_stream },
    { "stream_options", BOTH, read_stream_options },
    { "echo", TEXT, read_echo },
    { "return_token_ids", BOTH, read_returns_tokens },
    { "model", BOTH, read_name },
    { "user", BOTH, read_name },
    { "safety_identifier", BOTH, read_name },
    { "prompt_cache_key", BOTH, read_name },
    { "service_tier", BOTH, read_name },
    { "metadata", BOTH, pass_over },
    { "parallel_tool_calls", CHAT, pass_over },
    { "store", CHAT, expect_nothing },
    { "best_of", TEXT, read_drawn },
    { "presence_penalty", BOTH, read_presence },
    { "frequency_penalty", BOTH, read_frequency },
    { "logit_bias", BOTH, read_bias },
    { "logprobs", TEXT, read_likeliest },
    { "logprobs", CHAT, read_scores },
    { "top_logprobs", CHAT, read_top_scores },
    { "suffix", TEXT, expect_nothing },
    { "tools", CHAT, expect_nothing },
    { "functions", CHAT, expect_nothing },
    { "tool_choice", CHAT, read_name },
    { "response_format", CHAT, expect_text },
};

/* null is as if it were not there. */
static bool read_field(const MtfJson *member, MtfCompletionForm form, MtfCompletionRequest *request,
                       GError **error) {
    const char *key = mtf_json_key(member);
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
        if (g_str_equal(fields[i].key, key) && (fields[i].forms >> form & 1U) != 0)
            return cJSON_IsNull(member->node) || fields[i].read(member, request, error);
    return mtf_json_fail(member, error, "this field is not known");
}

/* What fields ask of each other; NULL where they agree. */
static const char *find_conflict(const MtfCompletionRequest *r) {
    if (r->max_tokens == 0 && !r->echo)
        return "\"max_tokens\": 0 says nothing without \"echo\"";
    if (r->likeliest > 0 && !r->returns_scores)
        return "\"top_logprobs\" goes with \"logprobs\": true";
    if (r->drawn < r->choices)
        return "\"best_of\" must be at least \"n\"";
    if (r->stream && r->drawn > r->choices)
        return "the best of several are known when all are made: leave out \"stream\" or "
               "\"best_of\"";
    return r->stream && r->echo && r->returns_scores
               ? "a stream tells no scores of a prompt: leave out \"echo\" or \"logprobs\""
               : NULL;
}

/* What the form cannot do without. */
static bool is_complete(const MtfJson *root, MtfCompletionRequest *request, GError **error) {
    request->drawn = request->drawn > 0 ? request->drawn : request->choices;
    const char *conflict = find_conflict(request);
    if (conflict != NULL)
        return mtf_json_fail(root, error, "%s", conflict);
    if (request->names == NULL)
        return request->prompts->len > 0 || mtf_json_fail(root, error, "\"prompt\" is missing");
    if (cJSON_GetObjectItemCaseSensitive(request->names, ASKS) == NULL)
        cJSON_AddTrueToObject(request->names, ASKS);
    return cJSON_GetObjectItemCaseSensitive(request->names, "messages") != NULL ||
           mtf_json_fail(root, error, "\"messages\" is missing");
}

static bool read_request(const MtfJson *root, MtfCompletionForm form, MtfCompletionRequest *request,
                         GError **error) {
    MtfJson member;
    if (!mtf_json_object(root, error))
        return false;
    for (bool more = mtf_json_first(root, &member); more; more = mtf_json_next(&member))
        if (!read_field(&member, form, request, error))
            return false;
    return is_complete(root, request, error);
}

bool mtf_completion_request_parse(MtfCompletionRequest *request, MtfCompletionForm form,
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
    if (form == MTF_FORM_CHAT) {
        request->names = cJSON_CreateObject();
        request->max_tokens = MTF_FILL_CONTEXT;
    }
    if (read_request(&root, form, request, error))
        return true;
    mtf_completion_request_clear(request);
    return false;
}

void mtf_completion_request_clear(MtfCompletionRequest *request) {
    if (request->prompts != NULL)
        g_ptr_array_unref(request->prompts);
    cJSON_Delete(request->names);
    g_clear_pointer(&request->changes.biases, g_array_unref);
    g_strfreev(request->stops);
    *request = (MtfCompletionRequest){ 0 };
}
