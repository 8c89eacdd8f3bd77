// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/text/edge_tokens.h"

#include "layouts/base/json_reader.h"

static bool add_token(const MtfJson *value, GArray *tokens, GError **error) {
    int64_t id;
    if (!mtf_json_integer(value, 0, G_MAXINT, &id, error))
        return false;
    int token = (int)id;
    g_array_append_val(tokens, token);
    return true;
}

/* A number or a list of them. */
static bool add_tokens(const MtfJson *value, GArray *tokens, GError **error) {
    MtfJson item;
    if (!cJSON_IsArray(value->node))
        return add_token(value, tokens, error);
    for (bool more = mtf_json_first(value, &item); more; more = mtf_json_next(&item))
        if (!add_token(&item, tokens, error))
            return false;
    return true;
}

/* Adds what a file names; nothing where there is no such file. */
static bool read_file(const char *path, const char *key, GArray *tokens, GError **error) {
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load_config(path, NULL, error);
    if (document == NULL)
        return false;
    MtfJson root = mtf_json_root(document), value;
    bool named =
        cJSON_IsObject(root.node) && mtf_json_find(&root, key, &value) && !cJSON_IsNull(value.node);
    return !named || add_tokens(&value, tokens, error);
}

/* The tokens under a key of the folder's files. */
static GArray *read_key(const char *folder, const char *key, GError **error) {
    static const char *const names[] = { "generation_config.json", "config.json" };
    g_autoptr(GArray) tokens = g_array_new(FALSE, FALSE, sizeof(int));
    if (folder == NULL || !g_file_test(folder, G_FILE_TEST_IS_DIR))
        return g_steal_pointer(&tokens);
    for (gsize i = 0; i < G_N_ELEMENTS(names) && tokens->len == 0; i++) {
        g_autofree char *path = g_build_filename(folder, names[i], NULL);
        if (!read_file(path, key, tokens, error))
            return NULL;
    }
    return g_steal_pointer(&tokens);
}

GArray *mtf_end_tokens_read(const char *path, GError **error) {
    return read_key(path, "eos_token_id", error);
}

bool mtf_start_token_read(const char *path, int *token, GError **error) {
    g_autoptr(GArray) tokens = read_key(path, "decoder_start_token_id", error);
    if (tokens == NULL)
        return false;
    *token = tokens->len > 0 ? g_array_index(tokens, int, 0) : 0;
    return true;
}
