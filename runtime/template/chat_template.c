// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/template/chat_template.h"

#include "layouts/base/error.h"
#include "layouts/base/json_reader.h"
#include "runtime/template/template_run.h"

#include <string.h>

#define CONFIG "tokenizer_config.json"

struct MtfChatTemplate {
    char *name; /* of its file */
    MtfNode *tree;
    cJSON *tokens; /* "bos_token": "<s>" … */
};

void mtf_chat_template_free(MtfChatTemplate *t) {
    if (t == NULL)
        return;
    g_free(t->name);
    mtf_node_free(t->tree);
    cJSON_Delete(t->tokens);
    g_free(t);
}

/* Puts the file's name in front of an error; NULL. */
static void *prefix_error(const char *name, GError *cause, GError **error) {
    mtf_input_error(error, "%s: %s", name, cause->message);
    g_error_free(cause);
    return NULL;
}

MtfChatTemplate *mtf_chat_template_parse(const char *name, const char *text, GError **error) {
    GError *cause = NULL;
    MtfNode *tree = mtf_template_parse(text, &cause);
    if (tree == NULL)
        return prefix_error(name, cause, error);
    MtfChatTemplate *t = g_new0(MtfChatTemplate, 1);
    t->name = g_strdup(name);
    t->tree = tree;
    t->tokens = cJSON_CreateObject();
    return t;
}

/* The text under "chat_template", or of several the one called "default"; NULL: none. */
static const char *find_text(const cJSON *config) {
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(config, "chat_template");
    if (!cJSON_IsArray(given))
        return cJSON_GetStringValue(given);
    for (const cJSON *one = given->child; one != NULL; one = one->next) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "name"));
        if (name != NULL && strcmp(name, "default") == 0)
            return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "template"));
    }
    return NULL;
}

/* Members that end with "_token": texts, or objects with "content". */
static void take_tokens(MtfChatTemplate *t, const cJSON *config) {
    for (const cJSON *member = config->child; member != NULL; member = member->next) {
        const cJSON *content =
            cJSON_IsObject(member) ? cJSON_GetObjectItemCaseSensitive(member, "content") : member;
        if (g_str_has_suffix(member->string, "_token") && cJSON_IsString(content))
            cJSON_AddStringToObject(t->tokens, member->string, content->valuestring);
    }
}

/* A file's text where it is there; *failed where it cannot be read. */
static char *read_text(const char *path, bool *failed, GError **error) {
    gsize length;
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return NULL;
    char *text = mtf_file_read(path, &length, error);
    *failed = text == NULL || !g_utf8_validate(text, (gssize)length, NULL);
    if (text != NULL && *failed)
        mtf_input_error(error, "%s is not UTF-8 text", path);
    return text;
}

static MtfChatTemplate *load(const char *folder, const cJSON *config, GError **error) {
    bool failed = false;
    g_autofree char *path = g_build_filename(folder, "chat_template.jinja", NULL);
    g_autofree char *of_config = g_build_filename(folder, CONFIG, NULL);
    g_autofree char *text = read_text(path, &failed, error);
    const char *in_config = find_text(config);
    if (failed || (text == NULL && in_config == NULL))
        return NULL;
    MtfChatTemplate *t = text != NULL ? mtf_chat_template_parse(path, text, error)
                                      : mtf_chat_template_parse(of_config, in_config, error);
    if (t != NULL && config != NULL)
        take_tokens(t, config);
    return t;
}

MtfChatTemplate *mtf_chat_template_load(const char *path, GError **error) {
    if (path == NULL || !g_file_test(path, G_FILE_TEST_IS_DIR))
        return NULL;
    g_autofree char *config = g_build_filename(path, CONFIG, NULL);
    if (!g_file_test(config, G_FILE_TEST_EXISTS))
        return load(path, NULL, error);
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(config, error);
    return document != NULL ? load(path, mtf_json_root(document).node, error) : NULL;
}

char *mtf_chat_template_spell(const MtfChatTemplate *t, const cJSON *names, GError **error) {
    GError *cause = NULL;
    cJSON *all = cJSON_Duplicate(names, true);
    for (const cJSON *token = t->tokens->child; token != NULL; token = token->next)
        cJSON_AddStringToObject(all, token->string, token->valuestring);
    char *text = mtf_template_run(t->tree, all, &cause);
    cJSON_Delete(all);
    return text != NULL ? text : prefix_error(t->name, cause, error);
}
