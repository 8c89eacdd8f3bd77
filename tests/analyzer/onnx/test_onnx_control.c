// SPDX-License-Identifier: GPL-3.0-or-later
/* Branches and loops of ONNX give what running them by hand gives; ONNX's own cases of If, Loop and Scan are among
 * those of test_onnx_cases.c. */
#include "tests/support/cmocka.h"

#include "analyzer/onnx/onnx_import.h"
#include "layouts/graph/loops.h"
#include "tests/support/cases/onnx_maker.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <string.h>

#define PLACES 5

static MtfGraph *import(GByteArray *graph, GError **error) {
    const MtfOnnxImport request = { .standard_batch = 2, .standard_length = 16 };
    g_autoptr(GByteArray) bytes = mtf_make_model(graph, 17);
    g_autoptr(MtfOnnxModel) model = mtf_onnx_model_parse("m.onnx", bytes->data, bytes->len, error);
    return model == NULL ? NULL : mtf_onnx_import(model, &request, NULL, error);
}

static void fails_with(GByteArray *graph, const char *sentence) {
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) built = import(graph, &error);
    assert_null(built);
    assert_string_equal(error->message, sentence);
}

/* x of so many places, and numbers to compare with. */
static GByteArray *with_input(void) {
    GByteArray *g = g_byte_array_new();
    mtf_make_input(g, 11, "x", MTF_ONNX_FLOAT, "1,5");
    mtf_make_tensor(g, "half", MTF_ONNX_FLOAT, "", (double[]){ 0.5 });
    mtf_make_tensor(g, "three", MTF_ONNX_INT64, "", (double[]){ 3 });
    mtf_make_tensor(g, "many", MTF_ONNX_INT64, "", (double[]){ 600 });
    mtf_make_tensor(g, "yes", MTF_ONNX_BOOL, "", (double[]){ 1 });
    mtf_make_tensor(g, "no", MTF_ONNX_BOOL, "", (double[]){ 0 });
    return g;
}

/* A branch that gives one operation of x, and x's sum, whose shapes are those of the other's. */
static GByteArray *branch_of(const char *op, const char *one, const char *other) {
    GByteArray *g = g_byte_array_new();
    mtf_make_node(g, op, "x", one, "");
    mtf_make_node(g, op, one, other, "");
    mtf_make_input(g, 12, one, MTF_ONNX_FLOAT, "1,5");
    mtf_make_input(g, 12, other, MTF_ONNX_FLOAT, "1,5");
    return g;
}

static MtfGraph *branching(const char *condition) {
    GByteArray *g = with_input();
    GByteArray *branches[] = { branch_of("Exp", "a", "b"), branch_of("Neg", "c", "d") };
    mtf_make(g, "largest = ReduceMax(x) keepdims=0; above = Greater(largest,half)");
    mtf_make_node_around(g, "If", condition, "y,z", "then_branch,else_branch", branches);
    mtf_make(g, "-> y: 1,5; -> z: 1,5");
    MtfGraph *graph = import(g, NULL);
    assert_non_null(graph);
    return graph;
}

static MtfReference *run(const MtfGraph *graph, double scale) {
    MtfReference *reference = mtf_reference_new(graph, 1);
    for (int i = 0; i < PLACES; i++)
        mtf_reference_find(reference, "x")[i] = scale * (i - 1);
    mtf_reference_run(reference, 0);
    return reference;
}

/* Outputs have their own names where an operation of the node makes them, else the branch's. */
static const double *values_of(const MtfReference *reference, const char *one, const char *other) {
    bool has = mtf_graph_find_tensor(reference->graph, one) >= 0;
    return mtf_reference_find(reference, has ? one : other);
}

TEST(a_known_condition_leaves_one_branch) {
    g_autoptr(MtfGraph) then = branching("yes"), other = branching("no");
    g_autoptr(MtfReference) exp_run = run(then, 0.1), negated = run(other, 0.1);
    assert_int_equal(then->operations->len, 2);
    assert_int_equal(other->operations->len, 2);
    for (int i = 0; i < PLACES; i++) {
        double x = 0.1 * (i - 1);
        assert_true(fabs(values_of(exp_run, "z", "b")[i] - exp(exp(x))) < 1e-12);
        assert_true(fabs(values_of(negated, "z", "d")[i] - x) < 1e-12);
    }
}

/* The largest of 0.1 (-1 … 3) is 0.3, of 0.2 (-1 … 3) it is 0.6. */
TEST(a_condition_of_data_chooses_between_both) {
    g_autoptr(MtfGraph) graph = branching("above");
    g_autoptr(MtfReference) below = run(graph, 0.1), above = run(graph, 0.2);
    for (int i = 0; i < PLACES; i++) {
        assert_true(fabs(values_of(below, "y", "")[i] + 0.1 * (i - 1)) < 1e-12);
        assert_true(fabs(values_of(below, "z", "")[i] - 0.1 * (i - 1)) < 1e-12);
        assert_true(fabs(values_of(above, "y", "")[i] - exp(0.2 * (i - 1))) < 1e-12);
    }
}

/* s becomes s + s + i; while its largest, or `holds`, is below 1/2. It may give s of each iteration. */
static GByteArray *doubling(const char *holds, bool stacks) {
    GByteArray *g = g_byte_array_new();
    mtf_make(g, "i: int64 ; go: bool ; s: 1,5; number = Cast(i) to=1; twice = Add(s,s); "
                "next = Add(twice,number); largest = ReduceMax(next) keepdims=0; "
                "small = Less(largest,half)");
    mtf_make_node(g, "Identity", holds, "on", "");
    mtf_make(g, "each = Identity(next); -> on: bool ; -> next: 1,5");
    if (stacks)
        mtf_make_input(g, 12, "each", MTF_ONNX_FLOAT, "1,5");
    return g;
}

static GByteArray *looping(const char *inputs, const char *holds, const char *outputs) {
    GByteArray *g = with_input(), *body = doubling(holds, strchr(outputs, ',') != NULL);
    mtf_make_node_around(g, "Loop", inputs, outputs, "body", &body);
    mtf_make(g, "e = Exp(y); -> e: 1,5");
    if (strchr(outputs, ',') != NULL)
        mtf_make_input(g, 12, "all", MTF_ONNX_FLOAT, "3,1,5");
    return g;
}

/* What `times` iterations make of x. */
static double doubled(double x, int times) {
    for (int i = 0; i < times; i++)
        x = x + x + i;
    return x;
}

TEST(a_loop_runs_as_often_as_is_known) {
    g_autoptr(MtfGraph) graph = import(looping("three,yes,x", "go", "y,all"), NULL);
    g_autoptr(MtfReference) reference = run(graph, 0.1);
    assert_int_equal(mtf_loop_count(graph, 1), 3);
    assert_int_equal(mtf_loop_condition(graph, 1), -1);
    const double *e = mtf_reference_find(reference, "e"), *all = values_of(reference, "all", "");
    for (int i = 0; i < PLACES; i++)
        assert_true(fabs(log(e[i]) - doubled(0.1 * (i - 1), 3)) < 1e-9);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < PLACES; i++)
            assert_true(fabs(all[k * PLACES + i] - doubled(0.1 * (i - 1), k + 1)) < 1e-12);
}

/* Its body is translated once. */
TEST(a_loop_may_run_often) {
    g_autoptr(MtfGraph) graph = import(looping("many,yes,x", "go", "y"), NULL);
    g_autoptr(MtfReference) reference = run(graph, 0.1);
    const double *y = mtf_reference_find(reference, "y");
    assert_true(graph->operations->len < 16);
    for (int i = 0; i < PLACES; i++)
        assert_true(fabs(y[i] / doubled(0.1 * (i - 1), 600) - 1) < 1e-12);
}

/* Of 0.01 (-1 … 3): 0.06 goes on, 1.12 does not; of 0.1 (-1 … 3) 0.6 ends it at once. Both run thrice. */
TEST(a_loop_ends_where_data_say) {
    g_autoptr(MtfGraph) graph = import(looping("three,,x", "small", "y"), NULL);
    g_autoptr(MtfReference) two = run(graph, 0.01), one = run(graph, 0.1);
    for (int i = 0; i < PLACES; i++) {
        assert_true(fabs(log(mtf_reference_find(two, "e")[i]) - doubled(0.01 * (i - 1), 2)) < 1e-9);
        assert_true(fabs(log(mtf_reference_find(one, "e")[i]) - doubled(0.1 * (i - 1), 1)) < 1e-9);
    }
}

/* The same at most 600 times, or as often as it likes: a while loop. Of three iterations each has a copy, through which
 * gradients pass. */
TEST(a_loop_that_data_end_goes_on_while_they_say) {
    g_autoptr(MtfGraph) few = import(looping("three,,x", "small", "y"), NULL);
    assert_int_equal(few->loops->len, 0);
    static const char *const inputs[] = { "many,,x", ",,x", ",yes,x" };
    for (gsize k = 0; k < G_N_ELEMENTS(inputs); k++) {
        g_autoptr(MtfGraph) graph = import(looping(inputs[k], "small", "y"), NULL);
        assert_true(mtf_loop_condition(graph, 1) >= 0);
        assert_int_equal(mtf_loop_count(graph, 1), k == 0 ? 600 : MTF_MAX_ITERATIONS);
    }
    g_autoptr(MtfGraph) graph = import(looping("many,,x", "small", "y"), NULL);
    g_autoptr(MtfReference) two = run(graph, 0.01), one = run(graph, 0.1);
    for (int i = 0; i < PLACES; i++) {
        assert_true(fabs(log(mtf_reference_find(two, "e")[i]) - doubled(0.01 * (i - 1), 2)) < 1e-9);
        assert_true(fabs(log(mtf_reference_find(one, "e")[i]) - doubled(0.1 * (i - 1), 1)) < 1e-9);
    }
}

/* As often as the largest of x says: 3.5, 1.5 and 0.5, cut off. */
TEST(a_loop_may_run_as_often_as_data_say) {
    GByteArray *g = with_input(), *body = doubling("go", false);
    mtf_make(g, "largest = ReduceMax(x) keepdims=0; times = Cast(largest) to=7");
    mtf_make_node_around(g, "Loop", "times,,x", "y", "body", &body);
    mtf_make_input(g, 12, "y", MTF_ONNX_FLOAT, "1,5");
    g_autoptr(MtfGraph) graph = import(g, NULL);
    assert_true(mtf_loop_condition(graph, 1) >= 0);
    static const int times[] = { 3, 1, 0 };
    for (int k = 0; k < 3; k++) {
        double scale = (times[k] + 0.5) / (PLACES - 2);
        g_autoptr(MtfReference) reference = run(graph, scale);
        for (int i = 0; i < PLACES; i++)
            assert_true(fabs(mtf_reference_find(reference, "y")[i] -
                             doubled(scale * (i - 1), times[k])) < 1e-9);
    }
}

TEST(loops_that_cannot_be_are_told_in_a_sentence) {
    fails_with(looping(",yes,x", "go", "y"),
               "m.onnx: node 0 (Loop): it may run more than 512 times");
    fails_with(looping("three,yes,x", "small", "y,all"),
               "m.onnx: node 0 (Loop): how many elements it stacks depends on data");
    fails_with(looping("three,no,x", "go", "y,all"),
               "m.onnx: node 0 (Loop): it runs no times, and what it stacks has no elements");
    fails_with(looping("three,yes,x,x", "go", "y"),
               "m.onnx: node 0 (Loop): its body takes 3 values and gives 2, and should take 4 and "
               "give 3");
    GByteArray *g = with_input();
    mtf_make(g, "y = Loop(three,yes,x); -> y: 1,5");
    fails_with(g, "m.onnx: node 0 (Loop): it has no graph \"body\"");
}

/* A body of a body of … */
TEST(graphs_that_lie_too_deep_are_refused) {
    GByteArray *g = branch_of("Exp", "a", "b");
    for (int i = 0; i < 100; i++) {
        GByteArray *outer = with_input();
        mtf_make_node_around(outer, "If", "yes", "a,b", "then_branch", &g);
        g = outer;
    }
    fails_with(g, "m.onnx: graphs lie too deep inside of nodes, or two in one attribute");
}
