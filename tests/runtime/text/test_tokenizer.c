// SPDX-License-Identifier: GPL-3.0-or-later
/* Tokenizers of 15 kinds (as GPT-2's, RoBERTa's, Llama 2's to 4's, Qwen 2's, DeepSeek's, Gemma's, BLOOM's, CLIP's,
 * BERT's, T5's, XLM-R's …, but small) against what Hugging Face's own library makes of the same files
 * (tests/golden/tokenizers). */
#include "tests/support/cmocka.h"

#include "layouts/base/json_reader.h"
#include "runtime/text/tokenizer.h"

#include <string.h>

#define FOLDER "tests/golden/tokenizers"

/* "1 2 3"; free with g_free. */
static char *spell(const GArray *ids) {
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < ids->len; i++)
        g_string_append_printf(text, "%s%d", i > 0 ? " " : "", g_array_index(ids, int, i));
    return g_string_free(text, FALSE);
}

static GArray *read_ids(const MtfJson *row) {
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(int));
    MtfJson list, member;
    int64_t id;
    assert_true(mtf_json_get(row, "ids", &list, NULL));
    for (bool more = mtf_json_first(&list, &member); more; more = mtf_json_next(&member)) {
        assert_true(mtf_json_integer(&member, 0, 1 << 24, &id, NULL));
        int number = (int)id;
        g_array_append_val(ids, number);
    }
    return ids;
}

static const char *text_at(const MtfJson *row, const char *key) {
    MtfJson member;
    const char *text = NULL;
    assert_true(mtf_json_get(row, key, &member, NULL));
    assert_true(mtf_json_string(&member, &text, NULL));
    return text;
}

typedef void (*Judge)(const MtfTokenizer *tokenizer, const MtfJson *row);

static void for_each_row(const char *file, Judge judge) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(file, NULL);
    assert_non_null(document);
    MtfJson root = mtf_json_root(document), row;
    g_autoptr(MtfTokenizer) tokenizer = NULL;
    const char *name = "";
    for (bool more = mtf_json_first(&root, &row); more; more = mtf_json_next(&row)) {
        if (strcmp(text_at(&row, "tokenizer"), name) != 0) {
            name = text_at(&row, "tokenizer");
            g_autofree char *path = g_strdup_printf(FOLDER "/%s.json", name);
            GError *error = NULL;
            mtf_tokenizer_free(tokenizer);
            tokenizer = mtf_tokenizer_load(path, &error);
            if (error != NULL)
                print_message("%s\n", error->message);
            assert_non_null(tokenizer);
        }
        judge(tokenizer, &row);
    }
}

static int wrong;

static void judge_encoding(const MtfTokenizer *tokenizer, const MtfJson *row) {
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) golden = read_ids(row);
    mtf_tokenizer_encode(tokenizer, text_at(row, "text"), true, ids, NULL);
    g_autofree char *got = spell(ids), *wanted = spell(golden);
    if (strcmp(got, wanted) == 0)
        return;
    print_message("%s of \"%s\": %s, not %s\n", text_at(row, "tokenizer"), text_at(row, "text"),
                  got, wanted);
    wrong++;
}

TEST(encodings_are_those_of_hugging_face) {
    wrong = 0;
    for_each_row(FOLDER "/encodings.json", judge_encoding);
    assert_int_equal(wrong, 0);
}

static void judge_decoding(const MtfTokenizer *tokenizer, const MtfJson *row) {
    g_autoptr(GArray) golden = read_ids(row);
    g_autofree char *text =
        mtf_tokenizer_decode(tokenizer, (const int *)(void *)golden->data, golden->len);
    if (strcmp(text, text_at(row, "decoded")) == 0)
        return;
    print_message("%s decodes to \"%s\", not \"%s\"\n", text_at(row, "tokenizer"), text,
                  text_at(row, "decoded"));
    wrong++;
}

TEST(decodings_are_those_of_hugging_face) {
    wrong = 0;
    for_each_row(FOLDER "/encodings.json", judge_decoding);
    assert_int_equal(wrong, 0);
}

/* Drawn tokens, which begin and end within characters. */
TEST(tokens_that_are_no_text_decode_as_there) {
    wrong = 0;
    for_each_row(FOLDER "/decodings.json", judge_decoding);
    assert_int_equal(wrong, 0);
}

/* Unicode, chapter 3, table 3-8: three beginnings of characters and what can begin none. */
TEST(bytes_that_are_no_text_become_signs) {
    static const struct {
        const char *bytes;
        int signs;
    } rows[] = { { "\xf4\x91\x92\x93\xff", 5 },
                 { "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf", 4 },
                 { "\xc0\xaf\xe0\x80\xbf", 5 },
                 { "\xed\xa0\x80\xf5", 4 } };
    g_autoptr(MtfTokenizer) tokenizer = mtf_tokenizer_load(FOLDER "/gpt2.json", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GString) signs = g_string_new(NULL);
        for (int k = 0; k < rows[i].signs; k++)
            g_string_append(signs, "\xef\xbf\xbd");
        g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
        g_autoptr(GArray) wanted = g_array_new(FALSE, FALSE, sizeof(int));
        assert_true(mtf_tokenizer_encode(tokenizer, rows[i].bytes, false, ids, NULL));
        assert_true(mtf_tokenizer_encode(tokenizer, signs->str, false, wanted, NULL));
        g_autofree char *got = spell(ids), *should = spell(wanted);
        assert_string_equal(got, should);
    }
}

static void fails_with(const char *json, const char *sentence) {
    GError *error = NULL;
    assert_null(mtf_tokenizer_parse("t.json", json, strlen(json), &error));
    assert_string_equal(error->message, sentence);
    g_error_free(error);
}

TEST(what_is_not_supported_is_refused_by_name) {
    fails_with("{\"model\": {\"type\": \"Magic\", \"vocab\": {}}}",
               "t.json: /model: \"Magic\" is not BPE, WordPiece, Unigram or WordLevel");
    fails_with("{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}}, "
               "\"normalizer\": {\"type\": \"Nmt\"}}",
               "t.json: /normalizer/type: \"Nmt\" is not a supported normalizer");
    fails_with("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}",
               "t.json: /model/merges/0: \"b\" is not in the vocabulary");
    fails_with("{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 4611686018427387904}}}",
               "t.json: /model/vocab/a: 4.6116860184273879e+18 is not an integer below 2^53");
}

/* Cut off in the size, in the trie, in the strings; and no base64. */
TEST(maps_of_characters_that_are_none_are_refused) {
    static const char *const maps[] = { "", "BAA=", "CAAAAAABAAAA", "BAAAAAABAABh", "!!!" };
    for (gsize i = 0; i < G_N_ELEMENTS(maps); i++) {
        g_autofree char *json = g_strdup_printf(
            "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}}, "
            "\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"%s\"}}",
            maps[i]);
        fails_with(json,
                   "t.json: /normalizer/precompiled_charsmap: a map of characters is expected "
                   "here, the size of a trie, a trie and strings, in base64");
    }
}

/* Patterns that cut characters, and a map of "A" to the second byte of one: what comes of them is text. */
TEST(what_cuts_characters_makes_no_other_bytes) {
    fails_with("{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}}, \"pre_tokenizer\": "
               "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"a\\\\C\"}}}",
               "t.json: /pre_tokenizer/pattern/Regex: not a regular expression: \\C, a byte of a "
               "character, is not supported");
    guint8 map[4 + 4 * 256 + 4] = { 0, 4 };
    map[4 + 1] = 4; /* the root: children from unit 1 on */
    memcpy(map + 4 + 4 * ('A' ^ 1), (guint8[]){ 'A', 9, 0, 0 }, 4); /* a leaf, 2 further */
    memcpy(map + 4 + 4 * ('A' ^ 1 ^ 2), (guint8[]){ 1, 0, 0, 0x80 }, 4);
    memcpy(map + 4 + 4 * 256, "\xc3\xa9", 3);
    g_autofree char *base64 = g_base64_encode(map, sizeof map);
    g_autofree char *json = g_strdup_printf(
        "{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"\\ufffd\": 0}}, \"normalizer\": "
        "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"%s\"}}",
        base64);
    GError *error = NULL;
    g_autoptr(MtfTokenizer) tokenizer = mtf_tokenizer_parse("t.json", json, strlen(json), &error);
    if (tokenizer == NULL)
        fail_msg("%s", error->message);
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    assert_true(mtf_tokenizer_encode(tokenizer, "A", false, ids, NULL));
    assert_int_equal(ids->len, 1);
}

/* A whole text may be one piece (Llama 2): a long one takes seconds in a square algorithm. */
TEST(a_long_piece_is_encoded_quickly) {
    g_autoptr(MtfTokenizer) tokenizer = mtf_tokenizer_load(FOLDER "/llama2.json", NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i < 20000; i++)
        g_string_append(text, "free software ");
    gint64 before = g_get_monotonic_time();
    assert_true(mtf_tokenizer_encode(tokenizer, text->str, false, ids, NULL));
    assert_true(g_get_monotonic_time() - before < 10 * G_USEC_PER_SEC);
    g_autofree char *back =
        mtf_tokenizer_decode(tokenizer, (const int *)(void *)ids->data, ids->len);
    assert_string_equal(back, text->str);
}

/* A text that comes again under another number: both say it, and encoding gives the later one. */
TEST(a_text_may_have_two_numbers) {
    static const char json[] =
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []},"
        " \"added_tokens\": [{\"id\": 2, \"content\": \"a\"}, {\"id\": 3, \"content\": \"a\"}]}";
    GError *error = NULL;
    g_autoptr(MtfTokenizer) tokenizer =
        mtf_tokenizer_parse("t.json", json, sizeof json - 1, &error);
    if (tokenizer == NULL)
        fail_msg("%s", error->message);
    g_autofree char *text = mtf_tokenizer_decode(tokenizer, (int[]){ 0, 2, 3, 1 }, 4);
    assert_string_equal(text, "a a a b");
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int));
    assert_true(mtf_tokenizer_encode(tokenizer, "b", false, ids, NULL));
    assert_int_equal(g_array_index(ids, int, 0), 1);
}
