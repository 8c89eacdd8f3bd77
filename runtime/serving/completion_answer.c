// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/completion_answer.h"

#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <string.h>

/* Prints on one line and frees. */
static char *print_line(cJSON *tree) {
    cJSON *printable = mtf_json_printable(tree);
    char *text = cJSON_PrintUnformatted(printable);
    char *copy = g_strdup(text);
    cJSON_free(text);
    cJSON_Delete(printable);
    cJSON_Delete(tree);
    return copy;
}

/* The field of a request that a sentence is about: "n" of "the request: /n: …"; or NULL. */
static char *field_of(const char *message) {
    static const char begins[] = "the request: /";
    if (!g_str_has_prefix(message, begins))
        return NULL;
    const char *field = message + strlen(begins);
    return g_strndup(field, strcspn(field, "/: "));
}

char *mtf_answer_error(int status, const char *message) {
    cJSON *tree = cJSON_CreateObject();
    cJSON *error = cJSON_AddObjectToObject(tree, "error");
    cJSON_AddStringToObject(error, "message", message);
    cJSON_AddStringToObject(error, "type",
                            status == 429   ? "rate_limit_error"
                            : status >= 500 ? "server_error"
                                            : "invalid_request_error");
    g_autofree char *field = field_of(message);
    g_autofree char *valid = field != NULL ? g_utf8_make_valid(field, -1) : NULL;
    cJSON_AddItemToObject(error, "param",
                          valid != NULL ? cJSON_CreateString(valid) : cJSON_CreateNull());
    mtf_json_add_integer(error, "code", status);
    return print_line(tree);
}

char *mtf_answer_models(const char *name, int64_t created, int64_t context) {
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddStringToObject(tree, "object", "list");
    cJSON *model = cJSON_CreateObject();
    cJSON_AddItemToArray(cJSON_AddArrayToObject(tree, "data"), model);
    cJSON_AddStringToObject(model, "id", name);
    cJSON_AddStringToObject(model, "object", "model");
    mtf_json_add_integer(model, "created", created);
    cJSON_AddStringToObject(model, "owned_by", "meshtf-run");
    mtf_json_add_integer(model, "max_model_len", context);
    return print_line(tree);
}

static cJSON *new_head(const MtfAnswerHead *head, bool piece) {
    cJSON *tree = cJSON_CreateObject();
    g_autofree char *id =
        g_strdup_printf("%scmpl-%" PRId64, head->chat ? "chat" : "", head->number);
    cJSON_AddStringToObject(tree, "id", id);
    cJSON_AddStringToObject(tree, "object",
                            !head->chat ? "text_completion"
                            : piece     ? "chat.completion.chunk"
                                        : "chat.completion");
    mtf_json_add_integer(tree, "created", head->created);
    cJSON_AddStringToObject(tree, "model", head->model);
    return tree;
}

/* An assistant's message, or what a piece adds to it. */
static void add_message(cJSON *node, const MtfAnswerChoice *choice, bool piece) {
    cJSON *message = cJSON_AddObjectToObject(node, piece ? "delta" : "message");
    if (!piece || choice->begins)
        cJSON_AddStringToObject(message, "role", "assistant");
    if (!piece || choice->begins || choice->text[0] != '\0')
        cJSON_AddStringToObject(message, "content", choice->text);
}

static cJSON *new_choice(const MtfAnswerHead *head, const MtfAnswerChoice *choice, bool piece) {
    cJSON *node = cJSON_CreateObject();
    if (head->chat)
        add_message(node, choice, piece);
    else
        cJSON_AddStringToObject(node, "text", choice->text);
    mtf_json_add_integer(node, "index", choice->index);
    if (choice->scores != NULL)
        mtf_place_scores_add(node, choice->scores, choice->first, head->chat);
    else
        cJSON_AddNullToObject(node, "logprobs");
    if (choice->finish_reason != NULL)
        cJSON_AddStringToObject(node, "finish_reason", choice->finish_reason);
    else
        cJSON_AddNullToObject(node, "finish_reason");
    if (choice->tokens == NULL)
        return node;
    cJSON *tokens = cJSON_AddArrayToObject(node, "token_ids");
    for (guint i = 0; i < choice->tokens->len; i++)
        cJSON_AddItemToArray(tokens, mtf_json_new_integer(g_array_index(choice->tokens, int, i)));
    return node;
}

static void add_usage(cJSON *tree, int64_t prompt_tokens, int64_t tokens) {
    cJSON *usage = cJSON_AddObjectToObject(tree, "usage");
    mtf_json_add_integer(usage, "prompt_tokens", prompt_tokens);
    mtf_json_add_integer(usage, "completion_tokens", tokens);
    mtf_json_add_integer(usage, "total_tokens", prompt_tokens + tokens);
}

char *mtf_answer_completion(const MtfAnswerHead *head, const MtfAnswerChoice *choices,
                            int64_t n_choices, int64_t prompt_tokens, int64_t tokens) {
    cJSON *tree = new_head(head, false);
    cJSON *list = cJSON_AddArrayToObject(tree, "choices");
    for (int64_t i = 0; i < n_choices; i++)
        cJSON_AddItemToArray(list, new_choice(head, &choices[i], false));
    add_usage(tree, prompt_tokens, tokens);
    return print_line(tree);
}

static char *print_event(cJSON *tree) {
    g_autofree char *line = print_line(tree);
    return g_strdup_printf("data: %s\n\n", line);
}

char *mtf_answer_counts(const MtfAnswerHead *head, int64_t prompt_tokens, int64_t tokens) {
    cJSON *tree = new_head(head, true);
    cJSON_AddArrayToObject(tree, "choices");
    add_usage(tree, prompt_tokens, tokens);
    return print_event(tree);
}

char *mtf_answer_piece(const MtfAnswerHead *head, const MtfAnswerChoice *choice) {
    cJSON *tree = new_head(head, true);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(tree, "choices"), new_choice(head, choice, true));
    return print_event(tree);
}
