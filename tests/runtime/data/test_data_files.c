// SPDX-License-Identifier: GPL-3.0-or-later
/* Data files of every kind, written here byte by byte as their formats say. */
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "runtime/data/data_array.h"
#include "runtime/data/data_examples.h"
#include "runtime/data/data_order.h"
#include "runtime/data/data_tokens.h"

#include <math.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define FILES 4

static char *folder;

static void free_array(gpointer array) {
    mtf_data_array_free(array);
}

static char *write_file(const char *name, const void *bytes, gsize length) {
    char *path = g_build_filename(folder, name, NULL);
    assert_true(g_file_set_contents(path, bytes, (gssize)length, NULL));
    return path;
}

/* The arrays of a file. */
static GPtrArray *open_arrays(const char *path, bool tokens) {
    g_autoptr(GError) error = NULL;
    GPtrArray *arrays = g_ptr_array_new_with_free_func(free_array);
    if (!mtf_data_arrays_open(path, tokens, arrays, &error))
        fail_msg("%s", error->message);
    return arrays;
}

/* A file whose one array has these numbers. */
static void expect_numbers(const char *path, bool tokens, int64_t records, int64_t places,
                           const double *numbers) {
    g_autoptr(GPtrArray) arrays = open_arrays(path, tokens);
    double values[64];
    assert_int_equal(arrays->len, 1);
    const MtfDataArray *array = arrays->pdata[0];
    assert_int_equal(mtf_data_array_records(array), records);
    assert_int_equal(mtf_data_array_places(array), places);
    assert_true(mtf_data_array_read(array, 0, records, values, NULL));
    for (int64_t i = 0; i < records * places; i++)
        assert_true(values[i] == numbers[i]);
    assert_true(mtf_data_array_read(array, records - 1, 1, values, NULL));
    assert_true(values[0] == numbers[(records - 1) * places]);
}

static void expect_refusal(const char *path, bool tokens, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) arrays = g_ptr_array_new_with_free_func(free_array);
    assert_false(mtf_data_arrays_open(path, tokens, arrays, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, why);
}

TEST(text_is_its_bytes_and_bin_files_are_words_of_two_bytes) {
    g_autofree char *text = write_file("t.txt", "aB\xff", 3);
    expect_numbers(text, true, 3, 1, (double[]){ 97, 66, 255 });
    g_autofree char *words = write_file("t.bin", "\x01\x00\x51\xc4", 4);
    expect_numbers(words, true, 2, 1, (double[]){ 1, 50257 });
    g_autofree char *odd = write_file("odd.bin", "\x01\x00\x51", 3);
    expect_refusal(odd, true, "odd number of bytes, 3");
}

/* 256 words of header: the magic number, the version, how many tokens. */
TEST(llm_tokens_stand_behind_a_header_of_1024_bytes) {
    guint8 bytes[1024 + 8] = { 0 };
    memcpy(bytes, "\x88\xd8\x34\x01\x01\x00\x00\x00\x03\x00\x00\x00", 12); /* 20240520, 1, 3 */
    memcpy(bytes + 1024, "\x05\x00\x50\xc4\xff\xff", 6);
    g_autofree char *narrow = write_file("shard", bytes, 1024 + 6);
    expect_numbers(narrow, true, 3, 1, (double[]){ 5, 50256, 65535 });
    g_autofree char *cut = write_file("cut", bytes, 1024 + 5);
    expect_refusal(cut, true,
                   "3 records of 1 numbers should have 1030 bytes, but it has 1029: it is "
                   "cut short");
    memcpy(bytes, "\xa1\xd9\x34\x01\x07\x00\x00\x00\x02\x00\x00\x00", 12); /* 20240801, 7, 2 */
    memcpy(bytes + 1024, "\x00\x00\x01\x00\x07\x00\x00\x00", 8);
    g_autofree char *wide = write_file("wide", bytes, 1024 + 8);
    expect_numbers(wide, true, 2, 1, (double[]){ 65536, 7 });
    bytes[4] = 9;
    g_autofree char *version = write_file("version", bytes, 1024 + 8);
    expect_refusal(version, true, "version 9");
}

/* 2 images of 2 x 2 bytes, then 3 labels. */
static const char images[] =
    "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02\x00\x33\xff\x66\x99\xcc\x00\xff";
static const char labels[] = "\0\0\x08\x01\0\0\0\x03\x07\x00\x09";

TEST(idx_files_are_big_endian_and_pixels_become_parts_of_one) {
    g_autofree char *pixels = write_file("images", images, sizeof images - 1);
    expect_numbers(pixels, false, 2, 4,
                   (double[]){ 0, 51 / 255.0, 1, 102 / 255.0, 153 / 255.0, 204 / 255.0, 0, 1 });
    g_autofree char *classes = write_file("labels", labels, sizeof labels - 1);
    expect_numbers(classes, false, 3, 1, (double[]){ 7, 0, 9 });
    g_autofree char *shorts = write_file("shorts", "\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe", 12);
    expect_numbers(shorts, false, 2, 1, (double[]){ 258, -2 });
    const char volume[] = "\0\0\x08\x05\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x02\xff";
    g_autofree char *volumes = write_file("volumes", volume, sizeof volume);
    expect_numbers(volumes, false, 1, 2, (double[]){ 1, 0 });
    g_autofree char *cut = write_file("cut", images, sizeof images - 2);
    expect_refusal(cut, false, "2 records of 4 numbers should have 24 bytes, but it has 23");
}

TEST(idx_files_without_examples_or_half_a_header_are_told_so) {
    g_autofree char *header = write_file("header", images, 6);
    expect_refusal(header, false, "the header of this IDX file is cut short");
    g_autofree char *none = write_file("none", "\0\0\x08\x02\0\0\0\0\0\0\0\x02", 12);
    expect_refusal(none, false, "an IDX file of no examples");
    g_autofree char *huge =
        write_file("huge", "\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x01", 16);
    expect_refusal(huge, false, "an IDX file whose sizes are too large");
}

TEST(a_packed_file_is_read_like_a_plain_one_and_a_cut_one_refused) {
    g_autofree char *path = g_build_filename(folder, "images.gz", NULL);
    gzFile packed = gzopen(path, "wb");
    assert_int_equal(gzwrite(packed, images, sizeof images - 1), sizeof images - 1);
    gzclose(packed);
    expect_numbers(path, false, 2, 4,
                   (double[]){ 0, 51 / 255.0, 1, 102 / 255.0, 153 / 255.0, 204 / 255.0, 0, 1 });
    g_autofree char *bytes = NULL;
    gsize length;
    assert_true(g_file_get_contents(path, &bytes, &length, NULL));
    g_autofree char *cut = write_file("cut.gz", bytes, length - 9);
    expect_refusal(cut, false, "damaged or cut short");
}

TEST(numpy_arrays_of_any_order_of_bytes_are_read) {
    const char floats[] = "\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, "
                          "'shape': (2, 2), }          \n"
                          "\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x3f\x00\x00\x00\x00";
    g_autofree char *single = write_file("a.npy", floats, 10 + 70 + 16);
    expect_numbers(single, false, 2, 2, (double[]){ 1, -2, 0.5, 0 });
    const char wide[] = "\x93NUMPY\x02\x00\x3e\x00\x00\x00{'shape': (2,), 'fortran_order': False, "
                        "'descr': '>i8', }    \n"
                        "\xff\xff\xff\xff\xff\xff\xff\xfd\x00\x00\x00\x01\x00\x00\x00\x00";
    g_autofree char *integers = write_file("b.npy", wide, 12 + 62 + 16);
    expect_numbers(integers, true, 2, 1, (double[]){ -3, 4294967296 });
    g_autofree char *cut = write_file("c.npy", floats, 10 + 70 + 15);
    expect_refusal(cut, false, "should have 96 bytes, but it has 95");
    const char text[] =
        "\x93NUMPY\x01\x00\x37\x00{'descr': '<U4', 'fortran_order': False, 'shape': "
        "(2,)}";
    g_autofree char *strings = write_file("e.npy", text, 10 + 55);
    expect_refusal(strings, false, "cannot be understood");
}

/* Writes v[i][j][k] = 100 i + 10 j + k, i < 2, j < 2, k < 3, as NumPy does with order='F': the
 * first index runs fastest. */
TEST(arrays_in_fortrans_order_become_rows) {
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    const char header[] = "\x93NUMPY\x01\x00\x3b\x00{'descr': '|u1', 'fortran_order': True, "
                          "'shape': (2, 2, 3)}";
    g_byte_array_append(bytes, (const guint8 *)header, 10 + 59);
    for (int k = 0; k < 3; k++)
        for (int j = 0; j < 2; j++)
            for (int i = 0; i < 2; i++) {
                guint8 value = (guint8)(100 * i + 10 * j + k);
                g_byte_array_append(bytes, &value, 1);
            }
    g_autofree char *path = write_file("f.npy", bytes->data, bytes->len);
    double expected[12];
    for (int n = 0; n < 12; n++)
        expected[n] = (100 * (n / 6) + 10 * (n / 3 % 2) + n % 3) / 255.0;
    expect_numbers(path, false, 2, 6, expected);
    g_autofree char *cut = write_file("g.npy", bytes->data, bytes->len - 1);
    expect_refusal(cut, false, "should have 81 bytes, but it has 80");
}

#define MANY 1500000

/* More records than are turned at once: record i holds i mod 2^15 and its negative. */
TEST(long_arrays_in_fortrans_order_become_rows_part_by_part) {
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    const char header[] = "\x93NUMPY\x01\x00\x3e\x00{'descr': '<i4', 'fortran_order': True, "
                          "'shape': (1500000, 2)}";
    g_byte_array_append(bytes, (const guint8 *)header, 10 + 62);
    for (int sign = 1; sign >= -1; sign -= 2)
        for (int i = 0; i < MANY; i++) {
            gint32 value = GINT32_TO_LE(sign * (i % 32768));
            g_byte_array_append(bytes, (const guint8 *)&value, 4);
        }
    g_autofree char *path = write_file("h.npy", bytes->data, bytes->len);
    g_autoptr(GPtrArray) arrays = open_arrays(path, false);
    assert_int_equal(mtf_data_array_records(arrays->pdata[0]), MANY);
    for (int i = 0; i < MANY; i += 1009) {
        double values[2];
        assert_true(mtf_data_array_read(arrays->pdata[0], i, 1, values, NULL));
        assert_true(values[0] == i % 32768 && values[1] == -(i % 32768));
    }
}

/* Two records: label 3 and pixels of 255; label 8 and pixels of 0. */
TEST(cifar_records_are_a_label_and_3072_pixels) {
    g_autofree guint8 *bytes = g_malloc0(2 * 3073);
    bytes[0] = 3;
    memset(bytes + 1, 255, 3072);
    bytes[3073] = 8;
    g_autofree char *path = write_file("data_batch_1.bin", bytes, 2 * 3073);
    g_autoptr(GPtrArray) arrays = open_arrays(path, false);
    double values[2 * 3072];
    assert_int_equal(arrays->len, 2);
    assert_true(mtf_data_array_read(arrays->pdata[0], 0, 2, values, NULL));
    assert_true(values[0] == 3 && values[1] == 8);
    assert_true(mtf_data_array_read(arrays->pdata[1], 0, 2, values, NULL));
    assert_true(values[0] == 1 && values[3071] == 1 && values[3072] == 0 && values[6143] == 0);
    g_autofree char *cut = write_file("cut.bin", bytes, 3073 + 17);
    expect_refusal(cut, false, "neither an IDX nor an .npy file");
}

/* Two records: coarse label 11, fine 68, pixels of 255; coarse 2, fine 99, pixels of 0. */
TEST(cifar_100_has_two_labels_of_which_the_fine_one_counts) {
    g_autofree guint8 *bytes = g_malloc0(2 * 3074);
    bytes[0] = 11;
    bytes[1] = 68;
    memset(bytes + 2, 255, 3072);
    bytes[3074] = 2;
    bytes[3075] = 99;
    g_autofree char *path = write_file("train.bin", bytes, 2 * 3074);
    g_autoptr(GPtrArray) arrays = open_arrays(path, false);
    double values[2 * 3072];
    assert_int_equal(arrays->len, 2);
    assert_true(mtf_data_array_read(arrays->pdata[0], 0, 2, values, NULL));
    assert_true(values[0] == 68 && values[1] == 99);
    assert_true(mtf_data_array_read(arrays->pdata[1], 0, 2, values, NULL));
    assert_true(values[0] == 1 && values[3071] == 1 && values[3072] == 0 && values[6143] == 0);
}

/* ---- Order --------------------------------------------------------------------------------- */

TEST(an_epoch_shows_every_example_once_in_an_order_of_its_own) {
    for (int64_t n = 1; n <= 300; n += n < 20 ? 1 : 37) {
        g_autofree int *seen = g_new0(int, n);
        int moved = 0;
        for (int64_t place = 0; place < n; place++) {
            int64_t example = mtf_data_order(7, 2, n, place);
            assert_in_range(example, 0, n - 1);
            seen[example]++;
            moved += example != mtf_data_order(7, 3, n, place);
        }
        for (int64_t i = 0; i < n; i++)
            assert_int_equal(seen[i], 1);
        if (n > 20)
            assert_true(moved > n / 2);
    }
    assert_true(mtf_data_order(1, 0, 1000000, 5) != mtf_data_order(2, 0, 1000000, 5));
}

/* ---- Streams of tokens and examples -------------------------------------------------------- */

/* Bytes 0 … 39 and 40 … 99 in two files: windows may begin in one and end in the other. */
TEST(shards_are_one_stream_and_its_end_is_held_out) {
    guint8 bytes[100];
    for (int i = 0; i < 100; i++)
        bytes[i] = (guint8)i;
    g_autofree char *first = write_file("first", bytes, 40);
    g_autofree char *second = write_file("second", bytes + 40, 60);
    char *const files[] = { first, second, NULL };
    MtfTokensWanted wanted = {
        .window = 5, .next = true, .bound = 100, .files = files, .share = 0.2
    };
    g_autoptr(MtfTokens) tokens = mtf_tokens_open(&wanted, NULL);
    assert_non_null(tokens);
    bool across = false;
    for (int64_t step = 1; step <= 200; step++) {
        assert_true(mtf_tokens_load(tokens, 3, step, 0, NULL));
        for (int place = 1; place <= 5; place++)
            assert_int_equal(mtf_tokens_get(tokens, place), mtf_tokens_get(tokens, 0) + place);
        assert_in_range(mtf_tokens_get(tokens, 0), 0, 79 - 5);
        across |= mtf_tokens_get(tokens, 0) < 40 && mtf_tokens_get(tokens, 5) >= 40;
    }
    assert_true(across);
    /* 80 … 99 are held out: windows of 5 and a token after each begin at 80, 85 and 90. */
    assert_int_equal(mtf_tokens_held(tokens), 3);
    for (int64_t number = 0; number < 4; number++) {
        assert_true(mtf_tokens_load_held(tokens, number, NULL));
        assert_int_equal(mtf_tokens_get(tokens, 0), 80 + number % 3 * 5);
    }
    char *const other[] = { first, NULL };
    wanted.held_out = other;
    g_autoptr(MtfTokens) apart = mtf_tokens_open(&wanted, NULL);
    assert_int_equal(mtf_tokens_held(apart), 7);
    assert_true(mtf_tokens_load_held(apart, 1, NULL));
    assert_int_equal(mtf_tokens_get(apart, 0), 5);
}

/* Three texts of four bytes as rows of an array: without a next token each is a window. */
TEST(rows_of_tokens_follow_one_another) {
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    const char *header = "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4), }";
    const guint8 front[] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (guint8)(strlen(header) + 1), 0 };
    g_byte_array_append(bytes, front, sizeof front);
    g_byte_array_append(bytes, (const guint8 *)header, (guint)strlen(header));
    g_byte_array_append(bytes, (const guint8 *)"\nabcdefghijkl", 13);
    g_autofree char *path = write_file("rows.npy", bytes->data, bytes->len);
    char *const files[] = { path, NULL };
    const MtfTokensWanted wanted = { .window = 4, .bound = 256, .files = files, .held_out = files };
    g_autoptr(MtfTokens) tokens = mtf_tokens_open(&wanted, NULL);
    assert_non_null(tokens);
    assert_int_equal(mtf_tokens_held(tokens), 3);
    for (int64_t number = 0; number < 3; number++) {
        assert_true(mtf_tokens_load_held(tokens, number, NULL));
        assert_int_equal(mtf_tokens_get(tokens, 3), 'd' + 4 * number);
    }
}

TEST(examples_are_features_with_their_own_labels) {
    /* Example i has features i, i + 100 and label i % 5. */
    guint8 features[16 + 2 * 20] = { 0, 0, 8, 3, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 2 };
    guint8 classes[8 + 20] = { 0, 0, 8, 1, 0, 0, 0, 20 };
    for (int i = 0; i < 20; i++) {
        features[16 + 2 * i] = (guint8)i;
        features[16 + 2 * i + 1] = (guint8)(i + 100);
        classes[8 + i] = (guint8)(i % 5);
    }
    g_autofree char *x = write_file("x", features, sizeof features);
    g_autofree char *y = write_file("y", classes, sizeof classes);
    char *const files[] = { y, x, NULL };
    MtfExamplesWanted wanted = {
        .features = 2, .labels = 1, .classes = 5, .files = files, .share = 0.25
    };
    g_autoptr(MtfExamples) examples = mtf_examples_open(&wanted, NULL);
    assert_non_null(examples);
    int seen[20] = { 0 };
    for (int64_t number = 0; number < 30; number++) {
        assert_true(mtf_examples_load(examples, 9, number, NULL));
        int i = (int)lround(mtf_examples_feature(examples, 0) * 255);
        assert_int_equal(lround(mtf_examples_feature(examples, 1) * 255), i + 100);
        assert_int_equal((int)mtf_examples_label(examples, 0), i % 5);
        seen[i]++;
    }
    for (int i = 0; i < 20; i++)
        assert_int_equal(seen[i], i < 15 ? 2 : 0);
    assert_int_equal(mtf_examples_held(examples), 5);
    assert_true(mtf_examples_load_held(examples, 6, NULL));
    assert_int_equal(lround(mtf_examples_feature(examples, 0) * 255), 16);
}

static void expect_no_examples(const MtfExamplesWanted *wanted, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfExamples) examples = mtf_examples_open(wanted, &error);
    assert_null(examples);
    if (strstr(error->message, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, why);
}

TEST(files_that_do_not_belong_together_are_refused) {
    g_autofree char *x = write_file("x", images, sizeof images - 1);
    g_autofree char *y = write_file("y", labels, sizeof labels - 1);
    char *const both[] = { x, y, NULL }, *const alone[] = { x, NULL };
    MtfExamplesWanted wanted = { .features = 4, .labels = 1, .classes = 10, .files = both };
    expect_no_examples(&wanted, "features of 2 examples, but labels of 3");
    wanted.files = alone;
    expect_no_examples(&wanted, "no file holds labels, 1 whole number an example");
    wanted.features = 5;
    expect_no_examples(&wanted, "holds records of 4 numbers, but an example of this model has 5");
    const char two[] = "\0\0\x08\x01\0\0\0\x02\x07\x00";
    g_autofree char *fewer = write_file("fewer", two, sizeof two - 1);
    char *const fit[] = { x, fewer, NULL };
    MtfExamplesWanted small = { .features = 4, .labels = 1, .classes = 7, .files = fit };
    expect_no_examples(&small, "the label of example 0 is 7, but the model has only 7 classes");
    const char half[] = "\0\0\x0d\x01\0\0\0\x02\0\0\0\0\x3f\0\0\0";
    g_autofree char *floats = write_file("floats", half, sizeof half - 1);
    small.files = (char *[]){ x, floats, NULL };
    expect_no_examples(&small, "holds floats, but labels are whole numbers");
}

/* Three records of float32, version 1 of the format. */
static char *write_rows(const char *name, int places, const float *numbers) {
    g_autoptr(GString) file = g_string_new(NULL);
    g_string_append_len(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    g_string_append_printf(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, %d), }",
                           places);
    while (file->len < 127)
        g_string_append_c(file, ' ');
    g_string_append_c(file, '\n');
    g_string_append_len(file, (const char *)numbers, 3 * places * (gssize)sizeof *numbers);
    return write_file(name, file->str, file->len);
}

/* Each of its own file, or one behind another in the same one. */
TEST(several_inputs_read_features_of_their_own) {
    static const float one[] = { 1, 2, 3 }, two[] = { 10, 11, 20, 21, 30, 31 },
                       all[] = { 1, 10, 11, 2, 20, 21, 3, 30, 31 };
    static const MtfFeatureInput inputs[] = { { "x", 1 }, { "past/0", 2 } };
    g_autofree char *x = write_rows("x.npy", 1, one), *past = write_rows("past_0.npy", 2, two),
                    *other = write_rows("other.npy", 2, two),
                    *whole = write_rows("all.npy", 3, all);
    char *const apart[] = { past, x, NULL }, *const joined[] = { whole, NULL },
                *const half[] = { x, NULL }, *const lost[] = { x, other, NULL };
    MtfExamplesWanted wanted = { .features = 3, .inputs = inputs, .n_inputs = 2, .files = apart };
    g_autoptr(MtfExamples) of_each = mtf_examples_open(&wanted, NULL);
    wanted.files = joined;
    g_autoptr(MtfExamples) of_all = mtf_examples_open(&wanted, NULL);
    assert_non_null(of_each);
    assert_non_null(of_all);
    for (int64_t i = 0; i < 3; i++) {
        assert_true(mtf_examples_load(of_each, 7, i, NULL) &&
                    mtf_examples_load(of_all, 7, i, NULL));
        double first = mtf_examples_feature(of_each, 0);
        assert_true(mtf_examples_feature(of_each, 2) == 10 * first + 1);
        for (int64_t k = 0; k < 3; k++)
            assert_true(mtf_examples_feature(of_each, k) == mtf_examples_feature(of_all, k));
    }
    wanted.files = half;
    expect_no_examples(&wanted, "each reads files of its name, past_0.npy");
    wanted.files = lost;
    expect_no_examples(&wanted,
                       "3 features of 2 inputs: give each a file of its name (x.npy of 1)");
}

static int open_folder(void **state) {
    (void)state;
    folder = g_dir_make_tmp("meshtf-data-XXXXXX", NULL);
    return folder == NULL;
}

static int remove_folder(void **state) {
    (void)state;
    GDir *files = g_dir_open(folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(files)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        unlink(path);
    }
    g_dir_close(files);
    rmdir(folder);
    g_free(folder);
    return 0;
}

int main(void) {
    return mtf_tests_run(open_folder, remove_folder);
}
