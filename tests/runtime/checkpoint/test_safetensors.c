// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "runtime/checkpoint/safetensors.h"

#include <string.h>
#include <unistd.h>

TEST(a_header_is_what_the_format_says_to_the_byte) {
    g_autoptr(MtfSafetensors) file = mtf_safetensors_new();
    cJSON_AddStringToObject(file->metadata, "step", "7");
    mtf_safetensors_add(file, "w", MTF_STORED_F32, 2, (int64_t[]){ 2, 3 });
    mtf_safetensors_add(file, "s", MTF_STORED_F64, 0, NULL);
    /* 24 bytes of w, 8 of s. */
    const char *text = "{\"__metadata__\":{\"step\":\"7\"},"
                       "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                       "\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[24,32]}}";
    gsize padded = (strlen(text) + 7) / 8 * 8;
    gsize length;
    g_autofree char *header = mtf_safetensors_print(file, &length);
    assert_int_equal(length, 8 + padded);
    assert_int_equal((guchar)header[0], padded);
    for (int i = 1; i < 8; i++)
        assert_int_equal(header[i], 0);
    assert_memory_equal(header + 8, text, strlen(text));
    for (gsize i = 8 + strlen(text); i < length; i++)
        assert_int_equal(header[i], ' ');
    assert_int_equal(file->data_bytes, 32);
}

static MtfSafetensors *parse(const char *json, int64_t data_bytes, GError **error) {
    g_autofree char *header = g_strconcat("NNNNNNNN", json, NULL);
    gsize length = strlen(header);
    return mtf_safetensors_parse("file", header, length, (int64_t)length + data_bytes, error);
}

TEST(tensors_are_found_by_name_in_the_order_of_their_data) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfSafetensors) file =
        parse("{\"b\": {\"dtype\": \"I32\", \"shape\": [3], \"data_offsets\": [2, 14]},"
              " \"a\": {\"dtype\": \"BF16\", \"shape\": [1, 1], \"data_offsets\": [0, 2]}} ",
              14, &error);
    assert_non_null(file);
    const MtfStoredTensor *first = &g_array_index(file->tensors, MtfStoredTensor, 0);
    assert_string_equal(first->name, "a");
    const MtfStoredTensor *b = mtf_safetensors_find(file, "b");
    assert_int_equal(b->type, MTF_STORED_I32);
    assert_int_equal(b->rank, 1);
    assert_int_equal(b->dims[0], 3);
    assert_int_equal(b->begin, 2);
    assert_null(mtf_safetensors_find(file, "c"));
    assert_null(mtf_safetensors_get(file, "step"));
}

TEST(headers_that_break_a_rule_are_refused_in_one_sentence) {
    static const struct {
        const char *json, *why;
        int64_t data_bytes;
    } cases[] = {
        { "{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}",
          "\"F31\" is not a type", 4 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
          "has 4 bytes, but its shape asks for 8", 4 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
          "begins at byte 4 of the data, but the one before it ends at 0", 8 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
          "begins at byte 0", 4 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
          "the file is cut short", 3 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "there are 5", 5 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", "two offsets", 4 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "/a/shape/0", 4 },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", "x", 4 },
        { "{\"a\":{\"dtype\":\"F64\",\"shape\":[9007199254740991,9007199254740991],"
          "\"data_offsets\":[0,4]}}",
          "more than 2^63 bytes", 4 },
        { "{\"__metadata__\":{\"step\":7}}", "/__metadata__/step", 0 },
        { "[]", "object", 0 },
        { "{", "", 0 },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(MtfSafetensors) file = parse(cases[i].json, cases[i].data_bytes, &error);
        assert_null(file);
        assert_int_equal(mtf_error_exit_status(error), 2);
        if (strstr(error->message, cases[i].why) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", error->message, cases[i].why);
    }
}

static void expect_unreadable(const char *bytes, gsize length, const char *why) {
    g_autofree char *path = g_strdup_printf("%s/meshtf-tensors-%d", g_get_tmp_dir(), (int)getpid());
    g_autoptr(GError) error = NULL;
    gsize header_bytes;
    int64_t file_bytes;
    assert_true(g_file_set_contents(path, bytes, (gssize)length, NULL));
    g_autofree char *header = mtf_safetensors_read(path, &header_bytes, &file_bytes, &error);
    unlink(path);
    assert_null(header);
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, why);
}

TEST(files_too_short_or_of_another_kind_are_refused) {
    expect_unreadable("", 0, "0 bytes are too few");
    expect_unreadable("1234567", 7, "7 bytes are too few");
    expect_unreadable("\x20\0\0\0\0\0\0\0{}", 10, "cut short within its header");
    expect_unreadable("{\"loss\": 1.5}", 13, "not a safetensors file");
    gsize length;
    int64_t bytes;
    g_autoptr(GError) error = NULL;
    assert_null(mtf_safetensors_read("/nowhere/tensors", &length, &bytes, &error));
    assert_non_null(strstr(error->message, "cannot be opened"));
    g_autoptr(GError) folder = NULL;
    assert_null(mtf_safetensors_read("/tmp", &length, &bytes, &folder));
    assert_non_null(strstr(folder->message, "not a regular file"));
}
