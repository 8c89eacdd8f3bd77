// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/machine/machine_fields.h"

#include "tests/support/cmocka.h"

#include <string.h>

static MtfJsonDocument *document;

/* A file of such text; the last one's document is freed. */
static MtfJson file_of(const char *text) {
    mtf_json_document_free(document);
    document = mtf_json_document_parse("f.json", text, strlen(text), NULL);
    assert_non_null(document);
    return mtf_json_root(document);
}

static void assert_says(GError *error, const char *sentence) {
    assert_non_null(error);
    assert_string_equal(error->message, sentence);
    g_error_free(error);
}

TEST(a_figure_out_of_bounds_is_told_and_changes_nothing) {
    MtfJson root = file_of("{\"zero\": 0, \"below\": -1, \"half\": 0.5}");
    GError *zero = NULL, *below = NULL, *large = NULL;
    double value = 7;
    assert_false(mtf_figure_above_zero(&root, "zero", &value, &zero));
    assert_says(zero, "f.json: /zero: 0 is not above 0");
    assert_false(mtf_figure_not_negative(&root, "below", &value, &below));
    assert_says(below, "f.json: /below: -1 is negative");
    assert_false(mtf_figure_between(&root, "half", 1, 2, &value, &large));
    assert_says(large, "f.json: /half: 0.5 is not between 1 and 2");
    assert_true(value == 7);
    assert_true(mtf_figure_not_negative(&root, "zero", &value, NULL) && value == 0);
    assert_true(mtf_figure_above_zero(&root, "half", &value, NULL) && value == 0.5);
    assert_true(mtf_figure_between(&root, "missing", 1, 2, &value, NULL) && value == 0.5);
}

TEST(a_list_of_another_length_fails_with_what_is_expected) {
    MtfJson list = file_of("[1, 2]");
    GError *error = NULL;
    double numbers[3];
    assert_true(mtf_figure_list(&list, 2, "two numbers", numbers, NULL));
    assert_true(numbers[0] == 1 && numbers[1] == 2);
    assert_false(mtf_figure_list(&list, 3, "three numbers are expected here", numbers, &error));
    assert_says(error, "f.json: /: three numbers are expected here");
}

TEST(figures_of_dtypes_are_named_few_and_above_zero) {
    MtfDtypeFigure figures[2];
    GError *none = NULL, *many = NULL, *name = NULL, *zero = NULL;
    MtfJson root = file_of(
        "{\"a\": {\"bf16\": 2, \"fp4\": 3}, \"b\": {}, \"c\": {\"x\": 1, \"y\": 1, \"z\": 1},"
        "\"d\": {\"bfloat16\": 1}, \"e\": {\"f32\": 0}}");
    assert_int_equal(mtf_figures_of_dtypes(&root, "a", figures, 2, NULL), 2);
    assert_string_equal(figures[1].dtype, "fp4");
    assert_true(figures[0].value == 2 && figures[1].value == 3);
    assert_int_equal(mtf_figures_of_dtypes(&root, "b", figures, 2, &none), 0);
    assert_says(none, "f.json: /b: 0 dtypes are not between 1 and 2");
    assert_int_equal(mtf_figures_of_dtypes(&root, "c", figures, 2, &many), 0);
    assert_says(many, "f.json: /c: 3 dtypes are not between 1 and 2");
    assert_int_equal(mtf_figures_of_dtypes(&root, "d", figures, 2, &name), 0);
    assert_says(
        name,
        "f.json: /d/bfloat16: \"bfloat16\" is no dtype; there are f64, f32, bf16, fp16, fp8, int8, fp4");
    assert_int_equal(mtf_figures_of_dtypes(&root, "e", figures, 2, &zero), 0);
    assert_says(zero, "f.json: /e/f32: 0 is not above 0");
}

TEST(sources_are_words) {
    GError *error = NULL;
    MtfJson root = file_of("{}");
    assert_true(mtf_figure_sources(&root, NULL));
    root = file_of("{\"sources\": {\"a\": \"a page\"}}");
    assert_true(mtf_figure_sources(&root, NULL));
    root = file_of("{\"sources\": {\"a\": 1}}");
    assert_false(mtf_figure_sources(&root, &error));
    assert_says(error, "f.json: /sources/a: a string is expected here");
}

int main(void) {
    int failed = mtf_tests_run(NULL, NULL);
    mtf_json_document_free(document);
    return failed;
}
