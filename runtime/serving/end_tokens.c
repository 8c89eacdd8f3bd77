// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/serving/end_tokens.h"

#include "layouts/base/json_reader.h"

static bool add_end(const MtfJson *value, GArray *ends, GError **error) {
    int64_t id;
    if (!mtf_json_integer(value, 0, G_MAXINT, &id, error))
        return false;
    int token = (int)id;
    g_array_append_val(ends, token);
    return true;
}

static bool read_ends(const MtfJson *value, GArray *ends, GError **error) {
    MtfJson item;
    if (!cJSON_IsArray(value->node))
        return add_end(value, ends, error);
    for (bool more = mtf_json_first(value, &item); more; more = mtf_json_next(&item))
        if (!add_end(&item, ends, error))
            return false;
    return true;
}

/* Adds what a file names; nothing where there is no such file. */
static bool read_file(const char *folder, const char *name, GArray *ends, GError **error) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    if (document == NULL)
        return false;
    MtfJson root = mtf_json_root(document), value;
    bool named = cJSON_IsObject(root.node) && mtf_json_find(&root, "eos_token_id", &value) &&
                 !cJSON_IsNull(value.node);
    return !named || read_ends(&value, ends, error);
}

GArray *mtf_end_tokens_read(const char *path, GError **error) {
    static const char *const names[] = { "generation_config.json", "config.json" };
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(int));
    if (path == NULL || !g_file_test(path, G_FILE_TEST_IS_DIR))
        return g_steal_pointer(&ends);
    for (gsize i = 0; i < G_N_ELEMENTS(names) && ends->len == 0; i++)
        if (!read_file(path, names[i], ends, error))
            return NULL;
    return g_steal_pointer(&ends);
}
