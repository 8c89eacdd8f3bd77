// SPDX-License-Identifier: GPL-3.0-or-later
/* Pairs of texts, tables of clicks and folders of pictures: what the seeds of the fuzz targets hold,
 * which tests/fuzz/corpus has, and files written here. */
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "runtime/data/data_examples.h"
#include "runtime/data/data_pairs.h"

#include <math.h>
#include <string.h>

static char *folder;

static char *write_text(const char *name, const char *text) {
    char *path = g_build_filename(folder, name, NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static MtfPairs *open_pairs(const char *path, bool packed, int64_t length) {
    g_autoptr(GError) error = NULL;
    char *const files[] = { (char *)(guintptr)path, NULL };
    MtfPairsWanted wanted = { .source_length = length,
                              .length = length,
                              .vocabulary = 256,
                              .packed = packed,
                              .files = files };
    assert_true(mtf_pairs_are(files));
    MtfPairs *pairs = mtf_pairs_open(&wanted, &error);
    if (pairs == NULL)
        fail_msg("%s", error->message);
    return pairs;
}

static void expect_row(const int *row, const char *bytes, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(row[i], (unsigned char)bytes[i]);
}

/* The header and the empty are left out, the context is cut off, and the first plural form taken;
 * both orders of bytes say the same. */
TEST(catalogues_are_messages_and_their_translations) {
    static const char *const files[] = { "tests/fuzz/corpus/catalogue/little.mo",
                                         "tests/fuzz/corpus/catalogue/big.mo" };
    for (int i = 0; i < 2; i++) {
        g_autoptr(MtfPairs) pairs = open_pairs(files[i], false, 12);
        assert_int_equal(mtf_pairs_trained(pairs), 3);
        g_autofree char *identity = mtf_pairs_identity(pairs);
        assert_true(g_str_has_prefix(identity, "3 pairs, "));
        int seen = 0;
        for (int64_t row = 0; row < 3; row++) {
            mtf_pairs_load(pairs, 7, row);
            const MtfPairRow *r = mtf_pairs_row(pairs);
            if (r->source[0] != 'O')
                continue;
            seen++;
            expect_row(r->source, "Open\3\0\0\0\0\0\0", 12);
            expect_row(r->tokens, "\2Ouvrir\0\0\0\0", 12);
            expect_row(r->next_tokens, "Ouvrir\3\0\0\0\0", 12);
            expect_row(r->segments, "\1\1\1\1\1\1\1\0\0\0\0", 12);
            expect_row(r->source_places, "\0\1\2\3\4\0\0\0", 8);
        }
        assert_int_equal(seen, 1);
    }
}

/* "one" and "two" share a row; "three" has no room beside them, and its repetition is left out. */
TEST(rows_take_pairs_as_long_as_there_is_room) {
    g_autofree char *path = write_text("p.tsv", "one\tun\ntwo\tdeux\nthree\ttrois\nthree\ttrois\n");
    g_autoptr(MtfPairs) pairs = open_pairs(path, true, 9);
    assert_int_equal(mtf_pairs_trained(pairs), 2);
    for (int64_t row = 0; row < 2; row++) {
        mtf_pairs_load(pairs, 1, row);
        const MtfPairRow *r = mtf_pairs_row(pairs);
        if (r->source[0] != 'o')
            continue;
        expect_row(r->source, "one\3two\3\0", 9);
        expect_row(r->source_segments, "\1\1\1\1\2\2\2\2\0", 9);
        expect_row(r->source_places, "\0\1\2\3\0\1\2\3\0", 9);
        expect_row(r->tokens, "\2un\2deux\0", 9);
        expect_row(r->next_tokens, "un\3deux\3\0", 9);
    }
}

static void expect_no_pairs(const MtfPairsWanted *wanted, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfPairs) pairs = mtf_pairs_open(wanted, &error);
    assert_null(pairs);
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, why);
}

TEST(malformed_pairs_are_told) {
    g_autofree char *path = write_text("bad.tsv", "one\tun\nno tab\n");
    char *const files[] = { path, NULL };
    MtfPairsWanted wanted = { .source_length = 8, .length = 8, .vocabulary = 256, .files = files };
    expect_no_pairs(&wanted, "bad.tsv, line 2: a pair of texts has one tab between them");
    g_autofree char *good = write_text("good.tsv", "one\tun\ntwo\tdeux\n");
    char *const more[] = { good, NULL };
    wanted.files = more;
    wanted.vocabulary = 100;
    expect_no_pairs(&wanted, "vocabulary has only 100 tokens");
    wanted.vocabulary = 256;
    wanted.length = 2;
    expect_no_pairs(&wanted, "of the 2 pairs in");
    wanted.length = 8;
    wanted.labels = (MtfLabelsWanted){ .classes = 3, .places = 1 };
    expect_no_pairs(&wanted,
                    "\"one\" before a tab is no label of this model, a number from 0 to 2");
}

TEST(a_label_may_stand_before_a_text) {
    g_autofree char *path = write_text("l.tsv", "2\tgood\n");
    char *const files[] = { path, NULL };
    MtfPairsWanted wanted = {
        .length = 8, .vocabulary = 256, .labels = { .classes = 3, .places = 1 }, .files = files
    };
    g_autoptr(MtfPairs) pairs = mtf_pairs_open(&wanted, NULL);
    assert_non_null(pairs);
    mtf_pairs_load(pairs, 1, 0);
    assert_int_equal(mtf_pairs_row(pairs)->labels[0], 2);
    expect_row(mtf_pairs_row(pairs)->tokens, "\2good\0\0\0", 8);
}

/* Of bytes: STX i n _ N e w, where a word's first byte has its label. */
TEST(each_word_may_have_a_label) {
    g_autofree char *path = write_text("wl.tsv", "0 2\tin New\n");
    char *const files[] = { path, NULL };
    MtfPairsWanted wanted = {
        .length = 9, .vocabulary = 256, .labels = { 3, 9, true }, .files = files
    };
    g_autoptr(MtfPairs) pairs = mtf_pairs_open(&wanted, NULL);
    assert_non_null(pairs);
    mtf_pairs_load(pairs, 1, 0);
    static const int labels[9] = { -1, 0, -1, -1, 2, -1, -1, -1, -1 };
    assert_memory_equal(mtf_pairs_row(pairs)->labels, labels, sizeof labels);
    expect_row(mtf_pairs_row(pairs)->tokens, "\2in New\0\0", 9);
    assert_true(fabs(mtf_pairs_entropy(pairs) - log(2)) < 1e-12);
    wanted.labels = (MtfLabelsWanted){ .classes = 9, .places = 2 };
    g_autoptr(MtfPairs) ends = mtf_pairs_open(&wanted, NULL);
    mtf_pairs_load(ends, 1, 0);
    assert_memory_equal(mtf_pairs_row(ends)->labels, ((int[]){ 0, 2 }), 2 * sizeof(int));
    g_autofree char *fewer = write_text("wf.tsv", "0 2\tin New York\n");
    char *const more[] = { fewer, NULL };
    wanted.files = more;
    wanted.labels.of_words = true;
    expect_no_pairs(&wanted, "\"0 2\" before a tab are 2 labels, but the words behind it are 3");
    wanted.labels = (MtfLabelsWanted){ .classes = 9, .places = 3 };
    expect_no_pairs(&wanted, "are 2 labels, but this model wants 3");
}

/* Words: "red" is 4, "house" 5, "maison" 6, "rouge" 7; the tokenizer puts </s>, 1, behind each text, and 9 begins what
 * is made of one. */
TEST(texts_may_be_words_of_a_tokenizer) {
    static const char words[] =
        "{\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"model\": {\"type\": \"WordLevel\", "
        "\"unk_token\": \"<pad>\", \"vocab\": {\"<pad>\": 0, \"</s>\": 1, \"red\": 4, \"house\": 5, "
        "\"maison\": 6, \"rouge\": 7}}, \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
        "[{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"</s>\", "
        "\"type_id\": 0}}], \"pair\": [], \"special_tokens\": {\"</s>\": {\"id\": \"</s>\", \"ids\": [1], "
        "\"tokens\": [\"</s>\"]}}}}";
    g_autoptr(MtfTokenizer) tokenizer = mtf_tokenizer_parse("t", words, strlen(words), NULL);
    g_free(write_text("config.json", "{\"decoder_start_token_id\": 9}"));
    MtfPairText text;
    assert_true(mtf_pair_text_init(&text, tokenizer, folder, NULL));
    assert_true(mtf_pair_text_is_end(&text, 1) && !mtf_pair_text_is_end(&text, 300));
    g_autofree char *path =
        write_text("w.tsv", "red house\tmaison rouge\nred red red red\trouge\n");
    char *const files[] = { path, NULL };
    MtfPairsWanted wanted = {
        .source_length = 4, .length = 4, .vocabulary = 10, .text = &text, .files = files
    };
    g_autoptr(MtfPairs) pairs = mtf_pairs_open(&wanted, NULL);
    assert_int_equal(mtf_pairs_trained(pairs), 1);
    mtf_pairs_load(pairs, 1, 0);
    const MtfPairRow *row = mtf_pairs_row(pairs);
    expect_row(row->source, "\4\5\1\0", 4);
    expect_row(row->tokens, "\11\6\7\0", 4);
    expect_row(row->next_tokens, "\6\7\1\0", 4);
    expect_row(row->source_segments, "\1\1\1\0", 4);
    wanted.vocabulary = 6;
    expect_no_pairs(&wanted,
                    "the token 6, but the model's vocabulary has only 6 tokens: --tokenizer");
    g_autofree char *labelled = write_text("v.tsv", "1\tred house\n");
    char *const one[] = { labelled, NULL };
    wanted = (MtfPairsWanted){ .length = 4,
                               .vocabulary = 10,
                               .labels = { .classes = 2, .places = 1 },
                               .text = &text,
                               .files = one };
    g_autoptr(MtfPairs) classes = mtf_pairs_open(&wanted, NULL);
    mtf_pairs_load(classes, 1, 0);
    expect_row(mtf_pairs_row(classes)->tokens, "\4\5\1\0", 4);
    expect_row(mtf_pairs_row(classes)->segments, "\1\1\1\0", 4);
    g_autofree char *each = write_text("vw.tsv", "1 0\tred house\n");
    char *const words_of_it[] = { each, NULL };
    wanted.labels = (MtfLabelsWanted){ .classes = 2, .places = 4, .of_words = true };
    wanted.files = words_of_it;
    g_autoptr(MtfPairs) of_words = mtf_pairs_open(&wanted, NULL);
    mtf_pairs_load(of_words, 1, 0);
    expect_row(mtf_pairs_row(of_words)->tokens, "\4\5\1\0", 4);
    assert_memory_equal(mtf_pairs_row(of_words)->labels, ((int[]){ 1, 0, -1, -1 }),
                        4 * sizeof(int));
    mtf_pair_text_clear(&text);
}

/* log(1 + 3), a missing count, categories in hexadecimal. */
TEST(clicks_are_a_label_counts_and_categories) {
    static const char text[] = "1\t3\t\t68fd1e64\t80e26c9b\t\n0\t-1\t7\tff\t\t1\n";
    g_autofree char *path = write_text("clicks.tsv", text);
    char *const files[] = { path, NULL };
    MtfExamplesWanted wanted = {
        .features = 2, .labels = 1, .classes = 2, .categories = 3, .files = files
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfExamples) examples = mtf_examples_open(&wanted, &error);
    assert_non_null(examples);
    for (int64_t i = 0; i < 2; i++) {
        assert_true(mtf_examples_load(examples, 5, i, NULL));
        bool first = mtf_examples_label(examples, 0) == 1;
        double feature = first ? log(4) : 0, other = first ? 0 : log(8);
        assert_true(fabs(mtf_examples_feature(examples, 0) - feature) < 1e-6);
        assert_true(fabs(mtf_examples_feature(examples, 1) - other) < 1e-6);
        assert_true(mtf_examples_category(examples, 0) == (first ? 0x68fd1e64 : 0xff));
        assert_true(mtf_examples_category(examples, 2) == (first ? 0 : 1));
    }
    wanted.categories = 4;
    g_autoptr(MtfExamples) none = mtf_examples_open(&wanted, &error);
    assert_null(none);
    assert_non_null(strstr(error->message, "line 1 has 6 columns, but this model wants a label, 2 "
                                           "counts and 4 categories"));
}

static void copy_file(const char *from, const char *class, const char *name) {
    g_autofree char *bytes = NULL;
    gsize n;
    g_autofree char *dir = g_build_filename(folder, "pictures", class, NULL);
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_mkdir_with_parents(dir, 0700);
    assert_true(g_file_get_contents(from, &bytes, &n, NULL));
    assert_true(g_file_set_contents(path, bytes, (gssize)n, NULL));
}

/* The seeds' pixel (x, y) of channel c is 7 x + 13 y + 31 c. */
TEST(folders_of_pictures_are_classes) {
    g_autofree char *path = g_build_filename(folder, "pictures", NULL);
    copy_file("tests/fuzz/corpus/picture/rgb.png", "cat", "1.png");
    copy_file("tests/fuzz/corpus/picture/rgb.png", "dog", "1.png");
    char *const files[] = { path, NULL };
    MtfExamplesWanted wanted = { .features = 36, .labels = 1, .classes = 2, .files = files };
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfExamples) examples = mtf_examples_open(&wanted, &error);
    assert_non_null(examples);
    int sum = 0;
    for (int64_t i = 0; i < 2; i++) {
        assert_true(mtf_examples_load(examples, 5, i, NULL));
        sum += (int)mtf_examples_label(examples, 0);
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < 4; y++)
                for (int x = 0; x < 3; x++) {
                    double pixel = mtf_examples_feature(examples, (c * 4 + y) * 3 + x) * 255;
                    assert_int_equal((int)lround(pixel), 7 * x + 13 * y + 31 * c);
                }
    }
    assert_int_equal(sum, 1);
    copy_file("tests/fuzz/corpus/picture/gray.png", "dog", "2.png");
    g_autoptr(MtfExamples) none = mtf_examples_open(&wanted, &error);
    assert_null(none);
    assert_non_null(
        strstr(error->message, "2.png has 5 by 4 pixels, but the first picture 3 by 4"));
}

/* Labels of places stay whole numbers, pixels of the same size become parts of one. */
TEST(places_may_have_labels_of_their_own) {
    const char picture[] = "\0\0\x08\x02\0\0\0\x01\0\0\0\x03\x00\x33\xff";
    const char regions[] = "\0\0\x08\x02\0\0\0\x01\0\0\0\x03\x02\x00\x01";
    g_autofree char *x = g_build_filename(folder, "x", NULL);
    g_autofree char *y = g_build_filename(folder, "y", NULL);
    g_file_set_contents(x, picture, sizeof picture - 1, NULL);
    g_file_set_contents(y, regions, sizeof regions - 1, NULL);
    char *const files[] = { x, y, NULL };
    MtfExamplesWanted wanted = { .features = 3, .labels = 3, .classes = 3, .files = files };
    g_autoptr(MtfExamples) examples = mtf_examples_open(&wanted, NULL);
    assert_non_null(examples);
    assert_true(mtf_examples_load(examples, 1, 0, NULL));
    assert_true(fabs(mtf_examples_feature(examples, 1) - 0.2) < 1e-12);
    assert_true(mtf_examples_label(examples, 0) == 2 && mtf_examples_label(examples, 2) == 1);
}

static int open_folder(void **state) {
    (void)state;
    folder = g_dir_make_tmp("meshtf-pairs-XXXXXX", NULL);
    return folder == NULL;
}

static int remove_folder(void **state) {
    (void)state;
    g_autofree char *command = g_strdup_printf("rm -r '%s'", folder);
    bool gone = g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL);
    g_free(folder);
    return !gone;
}

int main(void) {
    return mtf_tests_run(open_folder, remove_folder);
}
