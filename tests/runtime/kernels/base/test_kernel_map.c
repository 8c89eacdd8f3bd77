// SPDX-License-Identifier: GPL-3.0-or-later
/* Sums of float32 over many rows, which layouts divide differently, are the true sums, rounded once. */
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
static void sums_of_many_rows_are_rounded_once(void **state) {
    (void)state;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_many_rows_are_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
