// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/text/tokenizer.h"

#include "layouts/base/error.h"
#include "runtime/text/text_steps.h"
#include "runtime/text/token_model.h"

#include <string.h>

/* A token that is looked for in the text before anything else. */
typedef struct {
    char *text;
    int id;
    bool special, normalized, single_word, takes_left, takes_right;
} AddedToken;

struct MtfTokenizer {
    char *name;
    GArray *added;                              /* AddedToken */
    GPtrArray *normalizers, *splits, *decoders; /* MtfTextStep */
    MtfTokenModel *model;
    GHashTable *special;  /* ids that decoding leaves out */
    GArray *front, *back; /* ids around a text */
};

static void clear_added(gpointer data) {
    AddedToken *token = data;
    g_free(token->text);
}

static MtfTokenizer *tokenizer_new(const char *name) {
    MtfTokenizer *t = g_new0(MtfTokenizer, 1);
    t->name = g_strdup(name);
    t->added = g_array_new(FALSE, TRUE, sizeof(AddedToken));
    g_array_set_clear_func(t->added, clear_added);
    t->normalizers = mtf_text_steps_new();
    t->splits = mtf_text_steps_new();
    t->decoders = mtf_text_steps_new();
    t->special = g_hash_table_new(g_direct_hash, g_direct_equal);
    t->front = g_array_new(FALSE, FALSE, sizeof(int));
    t->back = g_array_new(FALSE, FALSE, sizeof(int));
    return t;
}

void mtf_tokenizer_free(MtfTokenizer *t) {
    if (t == NULL)
        return;
    g_free(t->name);
    g_array_unref(t->added);
    g_ptr_array_unref(t->normalizers);
    g_ptr_array_unref(t->splits);
    g_ptr_array_unref(t->decoders);
    mtf_token_model_free(t->model);
    g_hash_table_unref(t->special);
    g_array_unref(t->front);
    g_array_unref(t->back);
    g_free(t);
}

int64_t mtf_tokenizer_vocabulary(const MtfTokenizer *t) {
    return t->model->texts->len;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool read_added(MtfTokenizer *t, const MtfJson *object, GError **error) {
    MtfJson id;
    int64_t number;
    const char *text;
    if (!mtf_json_get(object, "id", &id, error) ||
        !mtf_json_integer(&id, 0, 1 << 24, &number, error) ||
        !mtf_json_get_string(object, "content", &text, error))
        return false;
    AddedToken token = { g_strdup(text),
                         (int)number,
                         mtf_text_flag(object, "special", false),
                         mtf_text_flag(object, "normalized", true),
                         mtf_text_flag(object, "single_word", false),
                         mtf_text_flag(object, "lstrip", false),
                         mtf_text_flag(object, "rstrip", false) };
    g_array_append_val(t->added, token);
    mtf_token_model_add(t->model, text, token.id);
    if (token.special)
        g_hash_table_add(t->special, GINT_TO_POINTER(token.id));
    return true;
}

static bool add_id(MtfTokenizer *t, GArray *ids, const MtfJson *where, const char *text,
                   GError **error) {
    int id = mtf_token_model_find(t->model, text);
    if (id < 0)
        return mtf_json_fail(where, error, "token \"%s\" is not in the vocabulary", text);
    g_array_append_val(ids, id);
    return true;
}

/* {"single": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": …}, …]} */
static bool read_template(MtfTokenizer *t, const MtfJson *object, GError **error) {
    MtfJson list, member, token, id;
    GArray *side = t->front;
    if (!mtf_json_get_array(object, "single", &list, error))
        return false;
    for (bool more = mtf_json_first(&list, &member); more; more = mtf_json_next(&member)) {
        const char *text;
        if (!mtf_json_object(&member, error))
            return false;
        if (mtf_json_find(&member, "Sequence", &token)) {
            side = t->back;
            continue;
        }
        if (!mtf_json_get_object(&member, "SpecialToken", &token, error) ||
            !mtf_json_get(&token, "id", &id, error) || !mtf_json_string(&id, &text, error) ||
            !add_id(t, side, &id, text, error))
            return false;
    }
    return true;
}

/* {"cls": ["[CLS]", 101], "sep": ["[SEP]", 102]} */
static bool read_pair(MtfTokenizer *t, const MtfJson *object, GError **error) {
    static const char *const keys[] = { "cls", "sep" };
    GArray *const sides[] = { t->front, t->back };
    for (int i = 0; i < 2; i++) {
        MtfJson list, text;
        const char *name;
        if (!mtf_json_get_array(object, keys[i], &list, error))
            return false;
        if (!mtf_json_first(&list, &text))
            return mtf_json_fail(&list, error, "a token and its id are expected here");
        if (!mtf_json_string(&text, &name, error) || !add_id(t, sides[i], &text, name, error))
            return false;
    }
    return true;
}

static bool read_processor(MtfTokenizer *t, const MtfJson *object, GError **error) {
    MtfJson type, list, member;
    const char *name;
    if (cJSON_IsNull(object->node))
        return true;
    if (!mtf_json_get(object, "type", &type, error) || !mtf_json_string(&type, &name, error))
        return false;
    if (strcmp(name, "TemplateProcessing") == 0)
        return read_template(t, object, error);
    if (strcmp(name, "BertProcessing") == 0 || strcmp(name, "RobertaProcessing") == 0)
        return read_pair(t, object, error);
    if (strcmp(name, "ByteLevel") == 0)
        return true;
    if (strcmp(name, "Sequence") != 0)
        return mtf_json_fail(&type, error, "\"%s\" is not a supported post-processor", name);
    if (!mtf_json_get_array(object, "processors", &list, error))
        return false;
    for (bool more = mtf_json_first(&list, &member); more; more = mtf_json_next(&member))
        if (!read_processor(t, &member, error))
            return false;
    return true;
}

static bool read_steps(const MtfJson *root, const char *key, const MtfTextStepKind *kinds,
                       const char *what, GPtrArray *steps, GError **error) {
    MtfJson member;
    return !mtf_json_find(root, key, &member) ||
           mtf_text_steps_read(&member, kinds, what, steps, error);
}

static bool read_all(MtfTokenizer *t, const MtfJson *root, GError **error) {
    MtfJson member, token;
    if (!mtf_json_get(root, "model", &member, error) ||
        (t->model = mtf_token_model_read(&member, error)) == NULL ||
        !read_steps(root, "normalizer", mtf_normalizers, "normalizer", t->normalizers, error) ||
        !read_steps(root, "pre_tokenizer", mtf_pre_tokenizers, "pre-tokenizer", t->splits, error) ||
        !read_steps(root, "decoder", mtf_decoders, "decoder", t->decoders, error))
        return false;
    if (mtf_json_find(root, "added_tokens", &member) && !cJSON_IsNull(member.node)) {
        if (!mtf_json_array(&member, error))
            return false;
        for (bool more = mtf_json_first(&member, &token); more; more = mtf_json_next(&token))
            if (!read_added(t, &token, error))
                return false;
    }
    return !mtf_json_find(root, "post_processor", &member) || read_processor(t, &member, error);
}

static MtfTokenizer *read_document(const char *name, const MtfJsonDocument *document,
                                   GError **error) {
    if (document == NULL)
        return NULL;
    g_autoptr(MtfTokenizer) t = tokenizer_new(name);
    MtfJson root = mtf_json_root(document);
    return read_all(t, &root, error) ? g_steal_pointer(&t) : NULL;
}

MtfTokenizer *mtf_tokenizer_parse(const char *name, const char *text, gsize length,
                                  GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse(name, text, length, error);
    return read_document(name, document, error);
}

MtfTokenizer *mtf_tokenizer_load(const char *path, GError **error) {
    g_autofree char *file = g_file_test(path, G_FILE_TEST_IS_DIR)
                                ? g_build_filename(path, "tokenizer.json", NULL)
                                : g_strdup(path);
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(file, error);
    return read_document(file, document, error);
}

/* ---- Encoding -------------------------------------------------------------------------------- */

/* A text on its way: where it stands in the whole, and what becomes of it. */
typedef struct {
    const MtfTokenizer *t;
    GArray *ids;
    bool failed;
} Encoding;

static bool is_word_character(gunichar c) {
    return g_unichar_isalnum(c) || g_unichar_ismark(c) || c == '_';
}

static bool stands_alone(const char *text, const char *at, const char *end) {
    bool left = at > text && is_word_character(g_utf8_get_char(g_utf8_prev_char(at)));
    return !left && (*end == '\0' || !is_word_character(g_utf8_get_char(end)));
}

/* The longest added token at `at`, or NULL. */
static const AddedToken *added_at(const MtfTokenizer *t, const char *text, const char *at,
                                  bool normalized) {
    const AddedToken *found = NULL;
    gsize most = 0;
    for (guint i = 0; i < t->added->len; i++) {
        const AddedToken *token = &g_array_index(t->added, AddedToken, i);
        gsize n = strlen(token->text);
        if (token->normalized == normalized && n > most && *token->text == *at &&
            strncmp(at, token->text, n) == 0 &&
            (!token->single_word || stands_alone(text, at, at + n))) {
            found = token;
            most = n;
        }
    }
    return found;
}

/* Which bytes begin an added token, so that most places need no look. */
static void first_bytes(const MtfTokenizer *t, bool normalized, bool *begins) {
    memset(begins, 0, 256 * sizeof *begins);
    for (guint i = 0; i < t->added->len; i++) {
        const AddedToken *token = &g_array_index(t->added, AddedToken, i);
        begins[(guint8)*token->text] |= token->normalized == normalized;
    }
}

typedef void (*EncodePart)(Encoding *e, const char *part, bool at_start);

/* Hands what lies between added tokens to `encode`, and appends those. */
static void cut_out(Encoding *e, const char *text, bool normalized, bool at_start,
                    EncodePart encode) {
    bool begins[256];
    const char *from = text;
    first_bytes(e->t, normalized, begins);
    for (const char *at = text; *at != '\0';) {
        const AddedToken *token = begins[(guint8)*at] ? added_at(e->t, text, at, normalized) : NULL;
        if (token == NULL) {
            at = g_utf8_next_char(at);
            continue;
        }
        const char *end = at, *next = at + strlen(token->text);
        while (token->takes_left && end > from &&
               mtf_text_is_space(g_utf8_get_char(g_utf8_prev_char(end))))
            end = g_utf8_prev_char(end);
        while (token->takes_right && *next != '\0' && mtf_text_is_space(g_utf8_get_char(next)))
            next = g_utf8_next_char(next);
        g_autofree char *part = g_strndup(from, (gsize)(end - from));
        if (*part != '\0')
            encode(e, part, at_start && from == text);
        g_array_append_val(e->ids, token->id);
        from = at = next;
    }
    if (*from != '\0')
        encode(e, from, at_start && from == text);
}

static void encode_pieces(Encoding *e, const char *part, bool at_start) {
    GPtrArray *pieces = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(pieces, g_strdup(part));
    for (guint s = 0; s < e->t->splits->len; s++) {
        const MtfTextStep *step = e->t->splits->pdata[s];
        GPtrArray *smaller = g_ptr_array_new_with_free_func(g_free);
        for (guint i = 0; i < pieces->len; i++)
            step->split(step, pieces->pdata[i], at_start && i == 0, smaller);
        g_ptr_array_unref(pieces);
        pieces = smaller;
    }
    for (guint i = 0; i < pieces->len; i++)
        e->failed |= !e->t->model->encode(e->t->model, pieces->pdata[i], e->ids);
    g_ptr_array_unref(pieces);
}

static void normalize(Encoding *e, const char *part, bool at_start) {
    g_autofree char *text = g_strdup(part);
    for (guint s = 0; s < e->t->normalizers->len; s++) {
        const MtfTextStep *step = e->t->normalizers->pdata[s];
        char *next = step->normalize(step, text);
        g_free(text);
        text = next != NULL ? next : g_strdup("");
    }
    cut_out(e, text, true, at_start, encode_pieces);
}

bool mtf_tokenizer_encode(const MtfTokenizer *t, const char *text, bool special, GArray *ids,
                          GError **error) {
    Encoding e = { t, ids, false };
    g_autofree char *valid = mtf_text_valid(text, strlen(text));
    if (special)
        g_array_append_vals(ids, t->front->data, t->front->len);
    cut_out(&e, valid, false, true, normalize);
    if (special)
        g_array_append_vals(ids, t->back->data, t->back->len);
    return !e.failed || mtf_input_error(error,
                                        "%s: the text has characters that the vocabulary cannot "
                                        "say, and there is no token for unknown ones",
                                        t->name);
}

/* ---- Decoding -------------------------------------------------------------------------------- */

char *mtf_tokenizer_decode(const MtfTokenizer *t, const int *ids, gsize n) {
    g_autoptr(GPtrArray) tokens = g_ptr_array_new_with_free_func(g_free);
    for (gsize i = 0; i < n; i++) {
        const char *text = mtf_token_model_text(t->model, ids[i]);
        if (text != NULL && !g_hash_table_contains(t->special, GINT_TO_POINTER(ids[i])))
            g_ptr_array_add(tokens, g_strdup(text));
    }
    for (guint s = 0; s < t->decoders->len; s++) {
        const MtfTextStep *step = t->decoders->pdata[s];
        step->decode(step, tokens);
    }
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < tokens->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 && t->decoders->len == 0 ? " " : "",
                               (char *)tokens->pdata[i]);
    char *valid = mtf_text_valid(text->str, text->len);
    g_string_free(text, TRUE);
    return valid;
}
