// SPDX-License-Identifier: GPL-3.0-or-later
/* Sums of float32 over many rows, which layouts divide differently, are the true sums, rounded once;
 * integers are exact, and NaN is not lost. */
#include "tests/support/cmocka.h"

#include "tests/support/cases/kernel_slices.h"
#include "tests/support/cases/parse_graph.h"

#include <math.h>

#define ROWS 20000
#define CHANNELS 37
#define ELEMENTS ((size_t)ROWS * CHANNELS)
#define UNIT 0x1p-23 /* a result between 1 and 2 has one such in its last place */

static const char graph_text[] =
    "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'rows': 20000, 'c': 37}, 'inputs': [{'name': "
    "'x', 'dims': ['rows', 'c'], 'feed': 'features'}, {'name': 'dy', 'dims': ['rows', 'c'], "
    "'feed': 'targets'}], 'variables': [{'name': 'mean', 'dims': ['c'], 'init': 'zeros'}, {'name': "
    "'variance', 'dims': ['c'], 'init': 'ones'}, {'name': 'gain', 'dims': ['c'], 'init': 'ones'}], "
    "'operations': ["
    "{'name': 'sum', 'op': 'reduce_sum', 'inputs': ['x'], 'dims': ['c']}, "
    "{'name': 'average', 'op': 'reduce_mean', 'inputs': ['x'], 'dims': ['c']}, "
    "{'name': 'squares', 'op': 'variance', 'inputs': ['x', 'mean'], 'dims': ['c']}, "
    "{'name': 'dot', 'op': 'normalize_dot', 'inputs': ['dy', 'x', 'mean', 'variance', 'gain'], "
    "'dims': ['c'], 'epsilon': 0}, "
    "{'name': 'scale', 'op': 'normalize_scale_grad', 'inputs': ['dy', 'x', 'mean', 'variance'], "
    "'dims': ['c'], 'epsilon': 0}]}";

/* What each operation adds up, with means of 0, variances and gains of 1, and what it divides by. */
static double term(int operation, double x, double dy) {
    return operation < 2 ? x : operation == 2 ? x * x : x * dy;
}

static double true_sum(int operation, const double *x, const double *dy, int channel) {
    double sum = 0;
    for (size_t i = (size_t)channel; i < ELEMENTS; i += CHANNELS)
        sum += term(operation, x[i], dy[i]);
    return operation == 1 || operation == 2 ? sum / ROWS : sum;
}

/* Numbers that float32 holds, between 1 and 2. */
static double *numbers(unsigned seed) {
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    double *x = g_new(double, ELEMENTS);
    for (size_t i = 0; i < ELEMENTS; i++)
        x[i] = (double)(float)g_rand_double_range(random, 1, 2);
    return x;
}

static double *channels_of(double value) {
    double *x = g_new(double, CHANNELS);
    for (int c = 0; c < CHANNELS; c++)
        x[c] = value;
    return x;
}

/* The terms themselves are rounded, which averages out. */
TEST(sums_of_many_rows_are_rounded_once) {
    g_autoptr(MtfGraph) graph = mtf_test_graph(graph_text);
    g_autofree double *x = numbers(1), *dy = numbers(2);
    g_autofree double *zeros = channels_of(0), *ones = channels_of(1);
    double *values[] = { x, dy, zeros, ones, ones };
    for (int operation = 0; operation < 5; operation++) {
        MtfSlicing slicing = { .parts = { 1, 1 }, .scratch_limit = -1 };
        double *results[MTF_MAX_OUTPUTS] = { NULL };
        mtf_kernel_run_sliced(graph, operation, values, &slicing, results);
        for (int c = 0; c < CHANNELS; c++) {
            double expected = true_sum(operation, x, dy, c);
            assert_true(fabs(results[0][c] - expected) <= UNIT * expected);
        }
        g_free(results[0]);
    }
}

/* A filter's part that sees padding alone has no gradient, and rows and columns of 1e-30: 1e-30 / 1e-6 1e-30 is 0 in
 * float32, and 0 / 0 would be no number. */
TEST(adafactor_leaves_what_has_no_gradient) {
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'r': 2, 'c': 2}, 'inputs': [{'name': 'g', "
        "'dims': ['r', 'c'], 'feed': 'features'}, {'name': 'rows', 'dims': ['r'], 'feed': "
        "'features'}, {'name': 'columns', 'dims': ['c'], 'feed': 'features'}, {'name': 'mean', "
        "'dims': [], 'feed': 'features'}], 'operations': [{'name': 'u', 'op': "
        "'adafactor_direction', 'inputs': ['g', 'rows', 'columns', 'mean']}]}";
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    double g[] = { 0, 0, 0, 3e-3 }, rows[] = { 1e-30, 2e-6 }, columns[] = { 1e-30, 2e-6 };
    double mean[] = { 1e-6 }, *values[] = { g, rows, columns, mean };
    double *results[MTF_MAX_OUTPUTS] = { NULL };
    MtfSlicing slicing = { .parts = { 1, 1 }, .scratch_limit = -1 };
    mtf_kernel_run_sliced(graph, 0, values, &slicing, results);
    for (int i = 0; i < 3; i++)
        assert_true(results[0][i] == 0);
    assert_true(fabs(results[0][3] - 1.5) < 1e-6); /* 3e-3 / sqrt(2 * 2e-6) */
    g_free(results[0]);
}

/* As sums do, so that a run whose weights have become NaN tells of it. Element 40 of x is NaN. */
TEST(nan_is_the_result_of_what_compares_with_it) {
    static const char text[] =
        "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'n': 3, 'q': 200, 'm': 200, 'd': 1, 'k': 2}, "
        "'inputs': [{'name': 'x', 'dims': ['n', 'm', 'd'], 'feed': 'features'}, {'name': 'y', 'dims': "
        "['n', 'm', 'd'], 'feed': 'features'}, {'name': 'one', 'dims': ['n', 'q', 'd'], 'feed': "
        "'features'}], 'operations': ["
        "{'name': 'relu', 'op': 'relu', 'inputs': ['x']}, "
        "{'name': 'left', 'op': 'maximum', 'inputs': ['x', 'y']}, "
        "{'name': 'right', 'op': 'maximum', 'inputs': ['y', 'x']}, "
        "{'name': 'less', 'op': 'minimum', 'inputs': ['x', 'y']}, "
        "{'name': 'lesser', 'op': 'minimum', 'inputs': ['y', 'x']}, "
        "{'name': 'row', 'op': 'reduce_max', 'inputs': ['x'], 'dims': ['n']}, "
        "{'name': 'column', 'op': 'reduce_max', 'inputs': ['x'], 'dims': ['m']}, "
        "{'name': 'first', 'op': 'top_k', 'inputs': ['x'], 'from': 'm', 'to': 'k'}, "
        "{'name': 'seen', 'op': 'attention', 'inputs': ['one', 'x', 'y'], 'query': 'q', 'memory': 'm', "
        "'dimension': 'd', 'factor': 1}]}";
    static const int results_of_nan[] = { 40, 40, 40, 40, 40, 0, 40, 0, 7 };
    g_autoptr(MtfGraph) graph = mtf_test_graph(text);
    double x[600], y[600], one[600], *values[] = { x, y, one };
    for (int i = 0; i < 600; i++) {
        x[i] = i == 40 ? NAN : sin(i);
        y[i] = cos(i);
        one[i] = 1;
    }
    for (int operation = 0; operation < (int)G_N_ELEMENTS(results_of_nan); operation++) {
        MtfSlicing slicing = { .parts = { 1, 1, 1, 1, 1 }, .scratch_limit = -1 };
        double *results[MTF_MAX_OUTPUTS] = { NULL };
        mtf_kernel_run_sliced(graph, operation, values, &slicing, results);
        assert_true(isnan(results[0][results_of_nan[operation]]));
        for (int i = 0; i < MTF_MAX_OUTPUTS; i++)
            g_free(results[i]);
    }
}

#define FAR ((INT64_C(1) << 60) + 1) /* which double does not hold */

/* The last element of the kernel's result from `x` and, where there is one, `y` for all rows. */
static int64_t last_of(int kind, int64_t *x, int64_t rows, int64_t *y) {
    g_autoptr(MtfGraph) graph = mtf_graph_new("far");
    int64_t result[2] = { 0, 0 };
    MtfOperation operation = { .kind = kind, .n_inputs = y != NULL ? 2 : 1, .n_outputs = 1 };
    operation.attributes.dimension = 0;
    MtfOperand inputs[] = {
        { x, MTF_I64, 1, { 0 }, { rows }, { 0 }, { rows } },
        { y, MTF_I64, 0, { 0 }, { 0 }, { 0 }, { 0 } },
    };
    bool reduces = mtf_operation_row(kind)->dims == MTF_DIMS_SUBSET;
    MtfOperand output = { result, MTF_I64, reduces ? 0 : 1, { 0 }, { rows }, { 0 }, { rows } };
    mtf_kernel(kind)(&(MtfKernelCall){
        .graph = graph, .operation = &operation, .inputs = inputs, .outputs = &output });
    return result[reduces ? 0 : rows - 1];
}

TEST(int64_is_exact_beyond_what_double_holds) {
    int64_t x[] = { 3, FAR }, y = FAR, two = 2, least = INT64_MIN;
    assert_true(last_of(MTF_OP_ADD, x, 2, &two) == FAR + 2);
    assert_true(last_of(MTF_OP_SUBTRACT, x, 2, &y) == 0);
    assert_true(last_of(MTF_OP_MAXIMUM, x, 2, &y) == FAR);
    assert_true(last_of(MTF_OP_EQUAL, x, 1, &y) == 0);
    assert_true(last_of(MTF_OP_REDUCE_MAX, x, 2, NULL) == FAR);
    assert_true(last_of(MTF_OP_CUMULATIVE_SUM, x, 2, NULL) == FAR + 3);
    assert_true(last_of(MTF_OP_MULTIPLY, x, 2, &y) == (int64_t)((uint64_t)FAR * FAR));
    assert_true(last_of(MTF_OP_MODULO, x, 2, &two) == 1);
    assert_true(last_of(MTF_OP_MODULO, &least, 1, &(int64_t){ -1 }) == 0);
    assert_true(last_of(MTF_OP_NEGATE, &least, 1, NULL) == INT64_MIN);
}
