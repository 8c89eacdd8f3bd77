// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "runtime/data/data_table.h"

static const MtfTableColumns columns = { 2, 1, 1 };

/* The records of a text, which must be good. */
static MtfDataFile *records_of(const char *text) {
    g_autoptr(GError) error = NULL;
    g_autofree char *copy = g_strdup(text);
    MtfDataFile *target = mtf_data_file_new("t.csv", NULL);
    if (!mtf_table_parse("t.csv", copy, &columns, target, &error))
        fail_msg("%s", error->message);
    return target;
}

static void assert_refused(const char *text, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autofree char *copy = g_strdup(text);
    g_autoptr(MtfDataFile) target = mtf_data_file_new("t.csv", NULL);
    assert_false(mtf_table_parse("t.csv", copy, &columns, target, &error));
    assert_string_equal(error->message, why);
}

TEST(columns_are_features_labels_and_targets) {
    g_autoptr(MtfDataFile) file = records_of("width,height,kind,price\n"
                                             "0.5,-3,7,1e2\r\n"
                                             "\n"
                                             " 4 ,5,0,0.25");
    unsigned char bytes[32];
    guint32 words[8];
    assert_int_equal(mtf_data_file_size(file), 32);
    assert_true(mtf_data_file_read(file, 0, bytes, 32, NULL));
    for (int i = 0; i < 8; i++)
        words[i] = (guint32)bytes[4 * i] | (guint32)bytes[4 * i + 1] << 8 |
                   (guint32)bytes[4 * i + 2] << 16 | (guint32)bytes[4 * i + 3] << 24;
    /* IEEE 754: 0.5, -3, 100, 4, 5, 0.25; labels are whole numbers. */
    static const guint32 wanted[] = { 0x3f000000, 0xc0400000, 7, 0x42c80000,
                                      0x40800000, 0x40a00000, 0, 0x3e800000 };
    assert_memory_equal(words, wanted, sizeof wanted);
}

TEST(what_is_no_such_table_is_refused_with_its_line) {
    assert_refused("1,2,3,4\n1,2,3",
                   "t.csv, line 2 has 3 columns, but this model wants 2 features, 1 labels and 1 "
                   "targets");
    assert_refused("1,2,3,4\n1,x,3,4", "t.csv, line 2, column 2: \"x\" is not a number");
    assert_refused("1,2,3,4\n1,,3,4", "t.csv, line 2, column 2: \"\" is not a number");
    assert_refused("1,2,3,4\n1,inf,3,4", "t.csv, line 2, column 2: \"inf\" is not a number");
    assert_refused("1,2,0.5,4",
                   "t.csv, line 1, column 3: \"0.5\" is not a label, which is 0, 1, …");
    assert_refused("1,2,-1,4", "t.csv, line 1, column 3: \"-1\" is not a label, which is 0, 1, …");
}

TEST(tables_are_told_by_their_names) {
    assert_true(mtf_table_is("digits.csv.gz"));
    assert_true(mtf_table_is("digits.csv"));
    assert_false(mtf_table_is("digits.tsv"));
}
