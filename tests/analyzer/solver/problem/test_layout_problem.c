// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/solver/problem/layout_problem.h"
#include "analyzer/solver/problem/layout_problem_json.h"
#include "layouts/base/error.h"

#include <string.h>

static const char *const small =
    "{\"problem\": {\"name\": \"s\", \"nodes\": {\"intervals\": [[0,5],[3,9]],"
    " \"costs\": [[15,20],[55,65]], \"usages\": [[10,5],[25,20]]},"
    " \"edges\": {\"nodes\": [[0,1],[1,0]],"
    " \"costs\": [[0,7,1000000000000000000,2],[1,2,3,4]]}, \"usage_limit\": 30}}";

static MtfLayoutProblem *parse(const char *text, GError **error) {
    return mtf_layout_problem_parse("t", text, strlen(text), error);
}

TEST(both_edges_of_a_pair_are_paid) {
    g_autoptr(MtfLayoutProblem) problem = parse(small, NULL);
    /* 15 + 65 + edge(0,1)[0][1] = 7 + edge(1,0)[1][0] = 3 */
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, (int[]){ 0, 1 });
    assert_true(value.cost == 90);
    assert_int_equal(value.impossible, 0);
}

TEST(the_peak_is_found_where_intervals_overlap) {
    g_autoptr(MtfLayoutProblem) problem = parse(small, NULL);
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, (int[]){ 0, 0 });
    assert_true(value.peak == 35 && value.peak_time == 3);
    assert_false(mtf_layout_problem_allows(problem, &value));
    value = mtf_layout_problem_evaluate(problem, (int[]){ 1, 1 });
    assert_true(value.peak == 25);
    assert_true(mtf_layout_problem_allows(problem, &value));
}

TEST(an_impossible_term_is_counted_and_not_summed) {
    g_autoptr(MtfLayoutProblem) problem = parse(small, NULL);
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, (int[]){ 1, 0 });
    assert_int_equal(value.impossible, 1);
    assert_true(value.cost == 20 + 55 + 2);
    assert_false(mtf_layout_problem_allows(problem, &value));
}

TEST(totals_hold_more_than_64_bits) {
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new("big");
    int64_t cost = MTF_LAYOUT_MAX_COST;
    static int choice[4096];
    for (int v = 0; v < 4096; v++)
        mtf_layout_problem_add_node(problem, (MtfLayoutNode){ 0, 1, 1, &cost, &cost });
    MtfLayoutValue value = mtf_layout_problem_evaluate(problem, choice);
    g_autofree char *text = mtf_int128_format(value.cost);
    assert_string_equal(text, "36893488147419103232"); /* 2^65 */
    assert_true(value.peak == value.cost);
    g_autofree char *negative = mtf_int128_format(-value.cost);
    assert_string_equal(negative, "-36893488147419103232");
}

TEST(a_written_problem_reads_back_equal) {
    g_autoptr(MtfLayoutProblem) problem = parse(small, NULL);
    g_autofree char *text = mtf_layout_problem_print(problem);
    g_autoptr(MtfLayoutProblem) again = parse(text, NULL);
    assert_non_null(again);
    g_autofree char *text_again = mtf_layout_problem_print(again);
    assert_string_equal(text, text_again);
    assert_true(mtf_layout_problem_limit(again) == 30);
}

static void assert_refused(const char *from, const char *to, const char *message) {
    g_autofree char *place = g_strdup(small);
    char **parts = g_strsplit(place, from, 2);
    assert_non_null(parts[1]);
    g_autofree char *text = g_strconcat(parts[0], to, parts[1], NULL);
    g_strfreev(parts);
    g_autoptr(GError) error = NULL;
    assert_null(parse(text, &error));
    assert_int_equal(mtf_error_exit_status(error), 2);
    if (strstr(error->message, message) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, message);
}

TEST(bad_files_are_refused_with_their_place) {
    assert_refused("[15,20]", "[15,20.5]", "/problem/nodes/costs/0/1");
    assert_refused("[15,20]", "[]", "/problem/nodes/costs/0");
    assert_refused("[10,5]", "[10]", "/problem/nodes/usages/0");
    assert_refused("[10,5]", "[-10,5]", "/problem/nodes/usages/0/0");
    assert_refused("[0,5]", "[6,5]", "/problem/nodes/intervals/0");
    assert_refused("[[0,1],", "[[0,2],", "/problem/edges/nodes/0/1");
    assert_refused("[[0,1],", "[[1,1],", "/problem/edges/nodes/0");
    assert_refused("[1,2,3,4]", "[1,2,3]", "/problem/edges/costs/1");
    assert_refused("[[0,1],[1,0]]", "[[0,1]]", "/problem/edges/costs");
    assert_refused("usage_limit", "usage_limits", "usage_limits");
    assert_refused("30", "-1", "/problem/usage_limit");
}

TEST(an_absent_limit_is_no_limit) {
    g_autoptr(MtfLayoutProblem) problem =
        parse("{\"problem\": {\"nodes\": {\"intervals\": [[0,9]], \"costs\": [[1]], "
              "\"usages\": [[7]]}, \"edges\": {\"nodes\": [], \"costs\": []}}}",
              NULL);
    assert_non_null(problem);
    assert_true(mtf_layout_problem_limit(problem) == MTF_NO_LIMIT);
}
