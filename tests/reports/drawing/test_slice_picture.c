// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/command_line.h"
#include "reports/drawing/memory_chart.h"
#include "reports/drawing/slice_picture.h"
#include "tests/support/cases/report_plan.h"

#include <string.h>

static int count_of(const char *text, const char *word) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        n++;
    return n;
}

/* About as high as wide, at most 32 processors wide, whole rows of the last axis beside each other. */
TEST(many_processors_make_a_picture_as_high_as_wide) {
    static const struct {
        const char *mesh, *box;
    } cases[] = {
        { "all:64", "0%200%208%208" },
        { "rows:1024;cols:2", "0%200%2032%2032" },
        { "rows:16;cols:32", "0%200%2032%2016" },
        { "rows:2;cols:2", "0%200%202%202" },
        { "all:3", "0%200%203%201" },
        { "all:2048", "0%200%2032%2032" },
        { "rows:16;cols:4", "0%200%208%208" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfMesh mesh;
        assert_true(mtf_mesh_parse(cases[i].mesh, 0, &mesh, NULL));
        g_autofree char *image = mtf_slice_thumbnail(&mesh, &(MtfSlicePattern){ 1, 0 });
        g_auto(GStrv) words = g_strsplit(image, " ", -1);
        g_autofree char *joined = g_strjoinv("%20", words);
        if (strstr(joined, cases[i].box) == NULL)
            fail_msg("%s: %s", cases[i].mesh, joined);
    }
}

/* Sixty-four processors that hold the same are one rectangle a row; all different, one each. Nothing in it
 * ends a style or an attribute. */
TEST(equal_neighbours_are_one_rectangle) {
    MtfMesh mesh;
    assert_true(mtf_mesh_parse("all:64", 0, &mesh, NULL));
    g_autofree char *same = mtf_slice_thumbnail(&mesh, &(MtfSlicePattern){ 0, 0 });
    g_autofree char *split = mtf_slice_thumbnail(&mesh, &(MtfSlicePattern){ 1, 0 });
    assert_int_equal(count_of(same, "rect"), 8);
    assert_int_equal(count_of(split, "rect"), 64);
    assert_null(strpbrk(split, "\"<>#"));
    assert_int_equal(count_of(split, "'"), 2);
}

/* The scale of memory goes by powers of two: 256 MiB, not 251.90. */
TEST(memory_is_scaled_in_powers_of_two) {
    MtfPlan *plan = mtf_test_layered_plan();
    MtfStepFacts *facts = mtf_step_facts_new(plan, NULL);
    g_autoptr(GString) page = g_string_new(NULL);
    mtf_memory_chart(page, facts);
    static const char before[] = "text-anchor=\"end\">";
    int64_t values[8];
    int n = 0;
    for (const char *at = page->str; (at = strstr(at, before)) != NULL && n < 8; at++) {
        g_autofree char *text = g_strndup(at + strlen(before), strcspn(at + strlen(before), "<"));
        if (g_str_has_suffix(text, "B") && g_ascii_isdigit(text[0]) &&
            mtf_bytes_parse(text, &values[n], NULL))
            n++;
    }
    assert_in_range(n, 4, 7);
    assert_int_equal(values[0], 0);
    assert_int_equal(values[1] & (values[1] - 1), 0);
    for (int i = 1; i < n; i++)
        assert_int_equal(values[i], i * values[1]);
    mtf_step_facts_free(facts);
    mtf_plan_free(plan);
}
