// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "layouts/base/error.h"
#include "layouts/program/passes.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/cases/training_case.h"

#include <stdlib.h>
#include <string.h>

#define LAYERS 3

static int last_pass(void) {
    int n = 0;
    while (mtf_pass(n) != NULL)
        n++;
    return n - 1;
}

/* Two passes make the program; every other has a function, and names differ. */
TEST(the_table_is_complete) {
    assert_string_equal(mtf_pass(0)->name, "execute");
    assert_string_equal(mtf_pass(1)->name, "lower");
    for (int i = 0; i <= last_pass(); i++) {
        assert_true((mtf_pass(i)->run == NULL) == (i <= 1));
        assert_int_equal(mtf_pass_find(mtf_pass(i)->name, NULL), i);
    }
    assert_null(mtf_pass(-1));
}

TEST(an_unknown_pass_is_told_with_those_there_are) {
    g_autoptr(GError) error = NULL;
    assert_int_equal(mtf_pass_find("inline", &error), -1);
    assert_int_equal(mtf_error_exit_status(error), 2);
    assert_string_equal(
        error->message,
        "\"inline\" is no pass; the passes are execute, lower, order, "
        "combine-collectives, alias-buffers, delay-updates, overlap, fuse, choose-algorithms");
}

/* Lines apart from the numbers in front. */
static int compare_lines(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return strcmp(x + MIN(strlen(x), 4), y + MIN(strlen(y), 4));
}

static char **sorted_dump(const MtfTrainingCase *c, const char *pass) {
    g_autofree char *text = mtf_dump_after(c->graph, c->layout, pass, NULL);
    char **lines = g_strsplit(text, "\n", -1);
    qsort(lines, g_strv_length(lines), sizeof *lines, compare_lines);
    return lines;
}

/* Delaying updates moves instructions and changes none. */
TEST(delayed_updates_are_the_same_instructions) {
    MtfTrainingCase c;
    mtf_training_case_perceptron(&c, LAYERS, "batch:a");
    g_autofree char *before = mtf_dump_after(c.graph, c.layout, "alias-buffers", NULL);
    g_autofree char *after = mtf_dump_after(c.graph, c.layout, "delay-updates", NULL);
    g_auto(GStrv) a = sorted_dump(&c, "alias-buffers"), b = sorted_dump(&c, "delay-updates");
    assert_string_not_equal(before, after);
    assert_int_equal(g_strv_length(a), g_strv_length(b));
    for (guint i = 0; a[i] != NULL; i++)
        assert_int_equal(compare_lines(&a[i], &b[i]), 0);
    mtf_training_case_clear(&c);
}

TEST(the_last_dump_is_the_program) {
    MtfTrainingCase c;
    mtf_training_case_perceptron(&c, LAYERS, "batch:a");
    g_autofree char *last = mtf_dump_after(c.graph, c.layout, mtf_pass(last_pass())->name, NULL);
    g_autoptr(MtfProgram) program = mtf_lower(c.graph, c.layout);
    g_autofree char *lowered = mtf_program_format(program);
    assert_string_equal(last, lowered);
    mtf_training_case_clear(&c);
}

/* What the execution makes of the training graph is a graph that can be read. */
TEST(the_first_dump_is_the_graph) {
    MtfTrainingCase c;
    mtf_training_case_perceptron(&c, LAYERS, "batch:a");
    g_autofree char *text = mtf_dump_after(c.graph, c.layout, "execute", NULL);
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    assert_int_equal(graph->operations->len, c.graph->operations->len);
    mtf_training_case_clear(&c);
}
