// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/text/token_model.h"

#include "runtime/text/text_steps.h"

#include <math.h>
#include <string.h>

#define MOST_IDS (INT64_C(1) << 24)

void mtf_token_model_free(MtfTokenModel *model) {
    if (model == NULL)
        return;
    g_hash_table_unref(model->ids);
    g_ptr_array_unref(model->texts);
    g_hash_table_unref(model->merges);
    g_array_unref(model->scores);
    g_free(model->prefix);
    g_free(model->suffix);
    g_free(model);
}

int mtf_token_model_find(const MtfTokenModel *model, const char *text) {
    return GPOINTER_TO_INT(g_hash_table_lookup(model->ids, text)) - 1;
}

const char *mtf_token_model_text(const MtfTokenModel *model, int64_t id) {
    return id >= 0 && id < (int64_t)model->texts->len ? model->texts->pdata[id] : NULL;
}

void mtf_token_model_add(MtfTokenModel *model, const char *text, int id) {
    if (mtf_token_model_find(model, text) == id)
        return;
    g_hash_table_replace(model->ids, g_strdup(text), GINT_TO_POINTER(id + 1));
    if ((guint)id >= model->texts->len)
        g_ptr_array_set_size(model->texts, id + 1);
    g_free(model->texts->pdata[id]);
    model->texts->pdata[id] = g_strdup(text);
}

bool mtf_token_model_bytes(const MtfTokenModel *model, const char *text, gsize length,
                           GArray *ids) {
    guint before = ids->len;
    for (gsize i = 0; i < length; i++) {
        char name[8];
        g_snprintf(name, sizeof name, "<0x%02X>", (guint8)text[i]);
        int id = mtf_token_model_find(model, name);
        if (id < 0) {
            g_array_set_size(ids, before);
            return false;
        }
        g_array_append_val(ids, id);
    }
    return true;
}

/* ---- Words ----------------------------------------------------------------------------------- */

static bool append_unknown(const MtfTokenModel *model, GArray *ids) {
    if (model->unknown >= 0)
        g_array_append_val(ids, model->unknown);
    return model->unknown >= 0;
}

static bool encode_word(const MtfTokenModel *model, const char *piece, GArray *ids) {
    int id = mtf_token_model_find(model, piece);
    if (id < 0)
        return append_unknown(model, ids);
    g_array_append_val(ids, id);
    return true;
}

/* The longest entry that begins `at`; sets its end. */
static int longest_entry(const MtfTokenModel *model, const char *at, bool inner, const char **end) {
    for (*end = at + strlen(at); *end > at; *end = g_utf8_prev_char(*end)) {
        g_autofree char *text =
            g_strdup_printf("%s%.*s", inner ? model->prefix : "", (int)(*end - at), at);
        int id = mtf_token_model_find(model, text);
        if (id >= 0)
            return id;
    }
    return -1;
}

/* A word with a part that is no entry is unknown as a whole. */
static bool encode_longest(const MtfTokenModel *model, const char *piece, GArray *ids) {
    guint before = ids->len;
    if (g_utf8_strlen(piece, -1) > model->most)
        return append_unknown(model, ids);
    for (const char *at = piece, *end; *at != '\0'; at = end) {
        int id = longest_entry(model, at, at > piece, &end);
        if (id < 0) {
            g_array_set_size(ids, before);
            return append_unknown(model, ids);
        }
        g_array_append_val(ids, id);
    }
    return true;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* {"the": 5, …} */
static bool read_vocabulary(MtfTokenModel *model, const MtfJson *object, GError **error) {
    MtfJson vocabulary, member;
    int64_t id;
    if (!mtf_json_get_object(object, "vocab", &vocabulary, error))
        return false;
    for (bool more = mtf_json_first(&vocabulary, &member); more; more = mtf_json_next(&member)) {
        if (!mtf_json_integer(&member, 0, MOST_IDS, &id, error))
            return false;
        mtf_token_model_add(model, mtf_json_key(&member), (int)id);
    }
    return true;
}

static void read_unknown(MtfTokenModel *model, const MtfJson *object) {
    g_autofree char *text = mtf_text_string(object, "unk_token", NULL);
    model->unknown = text != NULL ? mtf_token_model_find(model, text) : -1;
}

/* "a b" or ["a", "b"] */
static bool read_pair(const MtfJson *member, char **left, char **right, GError **error) {
    MtfJson part;
    if (cJSON_IsString(member->node)) {
        const char *text = member->node->valuestring, *space = strchr(text + (*text != '\0'), ' ');
        *left = space == NULL ? NULL : g_strndup(text, (gsize)(space - text));
        *right = space == NULL ? NULL : g_strdup(space + 1);
    } else if (cJSON_IsArray(member->node) && mtf_json_length(member) == 2 &&
               mtf_json_first(member, &part) && cJSON_IsString(part.node)) {
        *left = g_strdup(part.node->valuestring);
        if (mtf_json_next(&part) && cJSON_IsString(part.node))
            *right = g_strdup(part.node->valuestring);
    }
    return (*left != NULL && *right != NULL) ||
           mtf_json_fail(member, error, "a merge is two texts, \"a b\" or [\"a\", \"b\"]");
}

static gint64 pair_key(int left, int right) {
    return (gint64)left << 32 | right;
}

static bool add_merge(MtfTokenModel *model, const MtfJson *member, int rank, GError **error) {
    g_autofree char *left = NULL, *right = NULL;
    if (!read_pair(member, &left, &right, error))
        return false;
    gsize skip =
        model->prefix != NULL && g_str_has_prefix(right, model->prefix) ? strlen(model->prefix) : 0;
    g_autofree char *both = g_strconcat(left, right + skip, NULL);
    int a = mtf_token_model_find(model, left), b = mtf_token_model_find(model, right),
        id = mtf_token_model_find(model, both);
    if (a < 0 || b < 0 || id < 0)
        return mtf_json_fail(member, error, "\"%s\" is not in the vocabulary",
                             a < 0   ? left
                             : b < 0 ? right
                                     : both);
    gint64 key = pair_key(a, b);
    if (g_hash_table_contains(model->merges, &key))
        return true;
    MtfTokenMerge merge = { rank, id };
    g_hash_table_insert(model->merges, g_memdup2(&key, sizeof key),
                        g_memdup2(&merge, sizeof merge));
    return true;
}

static bool read_pairs(MtfTokenModel *model, const MtfJson *object, GError **error) {
    MtfJson list, member;
    int rank = 0;
    model->encode = mtf_encode_pairs;
    model->prefix = mtf_text_string(object, "continuing_subword_prefix", NULL);
    model->suffix = mtf_text_string(object, "end_of_word_suffix", NULL);
    model->fuse_unknown = mtf_text_flag(object, "fuse_unk", false);
    model->byte_fallback = mtf_text_flag(object, "byte_fallback", false);
    model->ignore_merges = mtf_text_flag(object, "ignore_merges", false);
    if (!read_vocabulary(model, object, error) ||
        !mtf_json_get_array(object, "merges", &list, error))
        return false;
    read_unknown(model, object);
    for (bool more = mtf_json_first(&list, &member); more; more = mtf_json_next(&member))
        if (!add_merge(model, &member, rank++, error))
            return false;
    return true;
}

static bool read_longest(MtfTokenModel *model, const MtfJson *object, GError **error) {
    MtfJson most;
    int64_t number = 100;
    model->encode = encode_longest;
    model->prefix = mtf_text_string(object, "continuing_subword_prefix", "##");
    if ((mtf_json_find(object, "max_input_chars_per_word", &most) &&
         !mtf_json_integer(&most, 1, 1 << 20, &number, error)) ||
        !read_vocabulary(model, object, error))
        return false;
    model->most = (int)number;
    read_unknown(model, object);
    return true;
}

static bool read_words(MtfTokenModel *model, const MtfJson *object, GError **error) {
    model->encode = encode_word;
    if (!read_vocabulary(model, object, error))
        return false;
    read_unknown(model, object);
    return true;
}

/* ["▁the", -3.2] */
static bool add_scored(MtfTokenModel *model, const MtfJson *member, int id, GError **error) {
    MtfJson part;
    const char *text;
    double score;
    if (!mtf_json_array(member, error))
        return false;
    if (mtf_json_length(member) != 2 || !mtf_json_first(member, &part))
        return mtf_json_fail(member, error, "an entry is a text and a score");
    if (!mtf_json_string(&part, &text, error))
        return false;
    mtf_json_next(&part);
    if (!mtf_json_number(&part, &score, error))
        return false;
    mtf_token_model_add(model, text, id);
    g_array_append_val(model->scores, score);
    model->longest = MAX(model->longest, (int)strlen(text));
    model->unknown_score = fmin(model->unknown_score, score);
    return true;
}

/* An unknown character costs 10 more than the worst entry. */
static bool read_unigrams(MtfTokenModel *model, const MtfJson *object, GError **error) {
    MtfJson list, member;
    int64_t unknown = -1;
    int id = 0;
    model->encode = mtf_encode_unigrams;
    model->fuse_unknown = true;
    model->byte_fallback = mtf_text_flag(object, "byte_fallback", false);
    if (!mtf_json_get_array(object, "vocab", &list, error))
        return false;
    for (bool more = mtf_json_first(&list, &member); more; more = mtf_json_next(&member))
        if (!add_scored(model, &member, id++, error))
            return false;
    if (mtf_json_find(object, "unk_id", &member) && !cJSON_IsNull(member.node) &&
        !mtf_json_integer(&member, 0, MAX(id - 1, 0), &unknown, error))
        return false;
    model->unknown = (int)unknown;
    model->unknown_score -= 10;
    return true;
}

static const struct {
    const char *name;
    bool (*read)(MtfTokenModel *model, const MtfJson *object, GError **error);
} kinds[] = { { "BPE", read_pairs },
              { "WordPiece", read_longest },
              { "Unigram", read_unigrams },
              { "WordLevel", read_words } };

/* Old files do not say which model they have. */
static char *type_of(const MtfJson *object) {
    MtfJson member;
    bool pairs = mtf_json_find(object, "merges", &member);
    bool scored = mtf_json_find(object, "vocab", &member) && cJSON_IsArray(member.node);
    return mtf_text_string(object, "type", pairs ? "BPE" : scored ? "Unigram" : "WordPiece");
}

MtfTokenModel *mtf_token_model_read(const MtfJson *object, GError **error) {
    if (!mtf_json_object(object, error))
        return NULL;
    g_autofree char *name = type_of(object);
    g_autoptr(MtfTokenModel) model = g_new0(MtfTokenModel, 1);
    model->ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    model->texts = g_ptr_array_new_with_free_func(g_free);
    model->merges = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    model->scores = g_array_new(FALSE, FALSE, sizeof(double));
    model->unknown = -1;
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].read(model, object, error) ? g_steal_pointer(&model) : NULL;
    mtf_json_fail(object, error, "\"%s\" is not BPE, WordPiece, Unigram or WordLevel", name);
    return NULL;
}
