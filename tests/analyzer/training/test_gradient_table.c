// SPDX-License-Identifier: GPL-3.0-or-later
/* Each row's gradient against central differences of the reference interpreter, in double. */
#include "tests/support/cmocka.h"

#include "analyzer/training/gradient_table.h"
#include "tests/support/cases/gradient_case.h"
#include "tests/support/cases/gradient_check.h"
#include "tests/support/reference/reference.h"

#include <math.h>

/* Positive numbers away from 0, for logarithms and roots. */
static int positive(MtfBuilder *b, int x) {
    int half = mtf_build_constant(b, "half", MTF_F64, 0.5);
    return op(b, MTF_OP_ADD, "positive", NULL, op(b, MTF_OP_SQUARE, "squared", NULL, x, -1), half);
}

TEST(unary_functions) {
    const int kinds[] = { MTF_OP_RELU,       MTF_OP_GELU,   MTF_OP_SILU,       MTF_OP_TANH,
                          MTF_OP_EXP,        MTF_OP_SQUARE, MTF_OP_NEGATE,     MTF_OP_ACCUMULATE,
                          MTF_OP_ABS,        MTF_OP_LOG,    MTF_OP_SQRT,       MTF_OP_RSQRT,
                          MTF_OP_SIGMOID,    MTF_OP_SCALE,  MTF_OP_GELU_EXACT, MTF_OP_SOFTPLUS,
                          MTF_OP_SIN,        MTF_OP_COS,    MTF_OP_ERF,        MTF_OP_CLIP,
                          MTF_OP_LEAKY_RELU, MTF_OP_ELU,    MTF_OP_RAISE,      MTF_OP_RECIPROCAL };
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "ab");
        bool roots = kinds[i] == MTF_OP_LOG || kinds[i] == MTF_OP_SQRT ||
                     kinds[i] == MTF_OP_RSQRT || kinds[i] == MTF_OP_RAISE ||
                     kinds[i] == MTF_OP_RECIPROCAL;
        x = roots ? positive(&b, x) : x;
        b.attributes.factor = -2.5;
        b.attributes.exponent = 1.7, b.attributes.slope = 0.3;
        b.attributes.low = -0.4, b.attributes.high = 0.6;
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, kinds[i], "y", NULL, x, -1));
        mtf_test_check_gradients(graph);
    }
}

TEST(binary_functions_of_all_kinds_of_broadcasting) {
    const int kinds[] = { MTF_OP_ADD,    MTF_OP_SUBTRACT, MTF_OP_MULTIPLY,
                          MTF_OP_DIVIDE, MTF_OP_MAXIMUM,  MTF_OP_MINIMUM };
    const char *const dims[][2] = { { "ab", "ab" }, { "ab", "ba" }, { "abc", "b" }, { "b", "abc" },
                                    { "ab", "bc" }, { "a", "b" },   { "", "ab" },   { "ab", "" } };
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        for (gsize j = 0; j < G_N_ELEMENTS(dims); j++) {
            MtfBuilder b = start();
            int x = variable(&b, "x", dims[j][0]), y = variable(&b, "y", dims[j][1]);
            g_autoptr(MtfGraph) graph = finish(&b, op(&b, kinds[i], "z", NULL, x, y));
            mtf_test_check_gradients(graph);
        }
    }
}

TEST(one_tensor_used_twice_by_one_operation) {
    const int kinds[] = { MTF_OP_ADD,    MTF_OP_SUBTRACT, MTF_OP_MULTIPLY,
                          MTF_OP_DIVIDE, MTF_OP_MAXIMUM,  MTF_OP_EINSUM };
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "ab");
        const char *dims = kinds[i] == MTF_OP_EINSUM ? "a" : NULL;
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, kinds[i], "z", dims, x, x));
        mtf_test_check_gradients(graph);
    }
}

TEST(einsums_of_any_dimensions) {
    const char *const cases[][4] = { { "ab", "bc", "", "ac" },     { "ab", "bc", "", "ca" },
                                     { "abc", "bc", "", "a" },     { "ab", "ab", "", "ab" },
                                     { "ab", "ab", "", "" },       { "a", "b", "", "ab" },
                                     { "abc", "b", "", "b" },      { "ab", "c", "", "" },
                                     { "ab", "c", "", "a" },       { "ab", "bc", "cd", "ad" },
                                     { "ab", "bc", "cd", "" },     { "ab", "ab", "ab", "ba" },
                                     { "ab", "ac", "ad", "bcd" },  { "a", "b", "c", "b" },
                                     { "abc", "bcd", "acd", "d" }, { "ab", "abcd", "cd", "abd" } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfBuilder b = start();
        bool three = *cases[i][2] != '\0';
        int x[3] = { variable(&b, "x", cases[i][0]), variable(&b, "y", cases[i][1]),
                     three ? variable(&b, "z", cases[i][2]) : -1 };
        MtfShape shape = shape_of(cases[i][3]);
        g_autoptr(MtfGraph) graph =
            finish(&b, mtf_build(&b, MTF_OP_EINSUM, "e", &shape, three ? 3 : 2, x));
        mtf_test_check_gradients(graph);
    }
}

TEST(einsums_of_one_operand) {
    const char *const results[] = { "", "a", "b", "ba", "ab" };
    for (gsize i = 0; i < G_N_ELEMENTS(results); i++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "ab");
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_EINSUM, "e", results[i], x, -1));
        mtf_test_check_gradients(graph);
    }
}

TEST(reductions_and_moves) {
    const struct {
        int kind;
        const char *dims;
    } cases[] = { { MTF_OP_REDUCE_SUM, "b" },   { MTF_OP_REDUCE_MEAN, "ca" },
                  { MTF_OP_REDUCE_MAX, "a" },   { MTF_OP_REDUCE_MAX, "" },
                  { MTF_OP_REDUCE_MEAN, "" },   { MTF_OP_TRANSPOSE, "cab" },
                  { MTF_OP_BROADCAST, "adcb" }, { MTF_OP_RENAME, NULL } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "abc");
        b.attributes.from = B, b.attributes.to = D;
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, cases[i].kind, "y", cases[i].dims, x, -1));
        mtf_test_check_gradients(graph);
    }
}

/* where(x > y, x y, y^2) and the like: what is compared gives no gradient, what is chosen does. */
TEST(choices_and_powers) {
    const int kinds[] = { MTF_OP_LESS,          MTF_OP_LESS_EQUAL, MTF_OP_GREATER,
                          MTF_OP_GREATER_EQUAL, MTF_OP_EQUAL,      MTF_OP_NOT_EQUAL };
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "ab"), y = variable(&b, "y", "bc");
        int zero = mtf_build_constant(&b, "zero", MTF_F64, 0);
        int first = op(&b, kinds[i], "first", NULL, x, y);
        int above = op(&b, MTF_OP_GREATER, "above", NULL, x, zero);
        int both = op(&b, MTF_OP_LOGICAL_AND, "both", NULL, first, above);
        int some = op(&b, MTF_OP_LOGICAL_OR, "some", NULL, first, above);
        int odd = op(&b, MTF_OP_LOGICAL_XOR, "odd", NULL, first, above);
        int product = op(&b, MTF_OP_MULTIPLY, "product", NULL, x, y);
        int chosen = MTF_BUILD(&b, MTF_OP_WHERE, "chosen", NULL, both, product, y);
        int again = MTF_BUILD(&b, MTF_OP_WHERE, "again", NULL, some, chosen, x);
        int third = MTF_BUILD(&b, MTF_OP_WHERE, "third", NULL, odd, y, again);
        g_autoptr(MtfGraph) graph =
            finish(&b, op(&b, MTF_OP_LOGICAL_NOT, "none", NULL, both, -1) >= 0 ? third : -1);
        mtf_test_check_gradients(graph);
    }
}

TEST(remainders_and_general_powers) {
    MtfBuilder b = start();
    int base = positive(&b, variable(&b, "x", "ab")), y = variable(&b, "y", "bc");
    int power = op(&b, MTF_OP_POWER, "power", NULL, base, y);
    int apart = mtf_build_constant(&b, "apart", MTF_F64, 3);
    int divisor =
        op(&b, MTF_OP_ADD, "divisor", NULL, op(&b, MTF_OP_SQUARE, "square", NULL, y, -1), apart);
    int rest = op(&b, MTF_OP_MODULO, "rest", NULL, power, divisor);
    int up = op(&b, MTF_OP_CEIL, "up", NULL, y, -1),
        down = op(&b, MTF_OP_FLOOR, "down", NULL, y, -1);
    g_autoptr(MtfGraph) graph = finish(&b, MTF_BUILD(&b, MTF_OP_ADD, "all", NULL, rest, up, down));
    mtf_test_check_gradients(graph);
}

/* Of what comparisons choose, of numbers beside tensors, and with dims in an order of their own. */
TEST(expressions) {
    static const char *const cases[][2] = {
        { "x * sigmoid(y) + 0.5 * max(x, 0)", "abc" },
        { "x ^ 2 / (1 + y ^ 2) - 2 ^ x * y", "cba" },
        { "(x ^ 2 + 0.5) ^ (y / 3) + 1 / (y ^ 2 + 1)", NULL },
        { "where(x > y && y < 0.5, x * y, leaky_relu(x) - gelu_exact(y))", "acb" },
        { "-(x + y) * stop_gradient(1)", NULL },
        { "exp(0.3 * (x - y))", "cab" },
        { "tanh(x * y) * tanh(x * y)", "bac" },
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "ab"), y = variable(&b, "y", "cb");
        b.attributes.expression = (char *)cases[i][0];
        b.attributes.arguments = (char *)"x y";
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_EXPRESSION, "z", cases[i][1], x, y));
        mtf_test_check_gradients(graph);
    }
}

TEST(further_reductions) {
    const int kinds[] = { MTF_OP_REDUCE_MIN, MTF_OP_LOG_SUM_EXP, MTF_OP_REDUCE_ANY,
                          MTF_OP_REDUCE_ALL };
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        MtfBuilder b = start();
        int x = variable(&b, "x", "abc"), w = variable(&b, "w", "b");
        int bent = op(&b, MTF_OP_LEAKY_RELU, "bent", NULL, x, -1);
        int whole = i < 2 ? bent : op(&b, MTF_OP_RELU, "cut", NULL, x, -1);
        int least = op(&b, kinds[i], "least", "b", whole, -1);
        int product = op(&b, MTF_OP_MULTIPLY, "product", NULL, least, w);
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_ADD, "y", NULL, product, x));
        mtf_test_check_gradients(graph);
    }
}

/* one_hot(argmax(x)) times x is the largest of x. */
TEST(choices_by_integers) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "abc");
    int best = op(&b, MTF_OP_ARGMAX, "best", "ac", x, -1);
    MtfShape shape = shape_of("acb");
    b.has_dtype = true, b.dtype = MTF_F64;
    int hot = mtf_build(&b, MTF_OP_ONE_HOT, "hot", &shape, 1, &best);
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_EINSUM, "y", "ac", hot, x));
    mtf_test_check_gradients(graph);
    g_autoptr(MtfReference) r = mtf_reference_new(graph, 3);
    mtf_reference_run(r, 0);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++) {
            double most = -INFINITY;
            for (int j = 0; j < 3; j++)
                most = fmax(most, mtf_reference_find(r, "x")[(i * 3 + j) * 4 + k]);
            assert_true(mtf_reference_find(r, "y")[i * 4 + k] == most);
        }
}

/* y = op(x[a,b,c]) along b for all kinds of steps, weighted by random numbers. */
TEST(slices_pads_and_turns) {
    static const struct {
        int kind;
        int from, to;
        double start, stride, before, value, shift;
    } cases[] = { { MTF_OP_SLICE, C, A, 1, 2, 0, 0, 0 },
                  { MTF_OP_SLICE, C, A, 2, -1, 0, 0, 0 },
                  { MTF_OP_SLICE, C, A, 2, 1, 0, 0, 0 },
                  { MTF_OP_PAD, A, C, 0, 0, 1, 0, 0 },
                  { MTF_OP_PAD, A, C, 0, 0, 0, -1.5, 0 },
                  { MTF_OP_REVERSE, 0, 0, 0, 0, 0, 0, 0 },
                  { MTF_OP_ROLL, 0, 0, 0, 0, 0, 0, 2 },
                  { MTF_OP_ROLL, 0, 0, 0, 0, 0, 0, -1 },
                  { MTF_OP_CUMULATIVE_SUM, 0, 0, 0, 0, 0, 0, 0 },
                  { MTF_OP_CUMULATIVE_MAX, 0, 0, 0, 0, 0, 0, 0 },
                  { MTF_OP_CUMULATIVE_MIN, 0, 0, 0, 0, 0, 0, 0 },
                  { MTF_OP_CUMULATIVE_LOG_SUM_EXP, 0, 0, 0, 0, 0, 0, 0 },
                  { MTF_OP_LOCAL_RESPONSE_NORM, 0, 0, 0, 0, 0, 0, 0 } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        bool moves = cases[i].from != cases[i].to;
        MtfBuilder b = start();
        int x = variable(&b, "x", !moves ? "dbc" : cases[i].from == C ? "dcb" : "dab");
        b.attributes.dimension = B;
        b.attributes.from = cases[i].from, b.attributes.to = cases[i].to;
        b.attributes.start = cases[i].start, b.attributes.stride = cases[i].stride;
        b.attributes.before = cases[i].before, b.attributes.value = cases[i].value;
        b.attributes.shift = cases[i].shift;
        b.attributes.exclusive = 1;
        b.attributes.size = 2, b.attributes.alpha = b.attributes.beta = b.attributes.bias = 1;
        int y = op(&b, cases[i].kind, "y", NULL, x, -1);
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_TANH, "bent", NULL, y, -1));
        mtf_test_check_gradients(graph);
    }
}

/* Sums in blocks, and all scans from the end, with and without the element itself, along a dimension of 6
 * and one of 1. What comes of nothing is so large that no mean could be taken of it. */
TEST(scans_in_blocks_and_in_reverse) {
    static const int kinds[] = { MTF_OP_CUMULATIVE_SUM, MTF_OP_CUMULATIVE_MAX,
                                 MTF_OP_CUMULATIVE_MIN, MTF_OP_CUMULATIVE_LOG_SUM_EXP };
    for (int i = 0; i < 4 * 2 * 2 * 2; i++) {
        MtfBuilder b = start();
        mtf_graph_add_dimension(b.graph, "e", i & 1 ? 6 : 1, NULL);
        int x = variable(&b, "x", "aec");
        b.attributes.dimension = mtf_graph_find_dimension(b.graph, "e");
        b.attributes.blocks = i & 1 ? 3 : 1;
        b.attributes.reverse = i >> 1 & 1;
        b.attributes.exclusive = i >> 2 & 1;
        int y = op(&b, kinds[i >> 3], "y", NULL, x, -1);
        g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_TANH, "bent", NULL, y, -1));
        mtf_test_check_gradients(graph);
    }
}

/* From the smallest and from the largest; the largest four of six in 1, 2, 3 and 6 blocks. */
TEST(sorted_elements_and_the_largest_of_blocks) {
    for (int i = 0; i < 6; i++) {
        MtfBuilder b = start();
        int e = mtf_graph_add_dimension(b.graph, "e", 6, NULL);
        int f = mtf_graph_add_dimension(b.graph, "f", 4, NULL);
        int x = variable(&b, "x", "aec");
        static const int blocks[] = { 1, 2, 3, 6 };
        b.attributes.dimension = b.attributes.from = e, b.attributes.to = f;
        b.attributes.reverse = i;
        b.attributes.blocks = blocks[MAX(i - 2, 0)];
        int y = op(&b, i < 2 ? MTF_OP_SORT : MTF_OP_TOP_K, "y", NULL, x, -1);
        g_autoptr(MtfGraph) graph = finish(&b, y);
        mtf_test_check_gradients(graph);
    }
}

TEST(selections_and_joins) {
    MtfBuilder b = start();
    mtf_graph_add_dimension(b.graph, "e", 6, NULL);
    int x = variable(&b, "x", "ab"), y = variable(&b, "y", "ad");
    int joined = op(&b, MTF_OP_CONCAT, "joined", "ae", x, y);
    MtfShape joined_again = shape_of("ea"), stack = shape_of("ca");
    int turned = op(&b, MTF_OP_TRANSPOSE, "turned", "ba", x, -1);
    int both = MTF_BUILD(&b, MTF_OP_CONCAT, "both", &joined_again, turned, turned);
    b.attributes.dimension = B, b.attributes.index = 1;
    int one = op(&b, MTF_OP_SELECT, "one", "a", x, -1);
    b.attributes.dimension = D, b.attributes.index = 2;
    int two = op(&b, MTF_OP_SELECT, "two", "a", y, -1);
    int stacked = MTF_BUILD(&b, MTF_OP_STACK, "stacked", &stack, one, two, one, two);
    int product = op(&b, MTF_OP_EINSUM, "product", "ec", joined, stacked);
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_EINSUM, "y/all", "ac", product, both));
    mtf_test_check_gradients(graph);
}

/* [a:2, f:12] to [f1:4, f2:6] and back, by [a, b, c]. */
TEST(reshapes) {
    MtfBuilder b = start();
    mtf_graph_add_dimension(b.graph, "e", 12, NULL);
    mtf_graph_add_dimension(b.graph, "f", 4, NULL);
    mtf_graph_add_dimension(b.graph, "g", 6, NULL);
    int x = variable(&b, "x", "ae");
    int parts = op(&b, MTF_OP_RESHAPE, "parts", "abc", x, -1);
    int other = op(&b, MTF_OP_RESHAPE, "other", "fg", parts, -1);
    int bent = op(&b, MTF_OP_TANH, "bent", NULL, other, -1);
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_RESHAPE, "again", "ae", bent, -1));
    mtf_test_check_gradients(graph);
}

TEST(lookups_of_each_example) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "abc");
    int ids = input(&b, "ids", "ad", MTF_I32, MTF_FEED_LABELS);
    int rows = op(&b, MTF_OP_GATHER, "rows", "adc", x, ids);
    int bent = op(&b, MTF_OP_TANH, "bent", NULL, rows, -1);
    int sums = op(&b, MTF_OP_SCATTER_ADD, "sums", "abc", ids, bent);
    int best = op(&b, MTF_OP_MULTIPLY, "product", NULL, sums, x);
    b.attributes.from = C, b.attributes.to = A + 4;
    mtf_graph_add_dimension(b.graph, "e", 2, NULL);
    int top = op(&b, MTF_OP_TOP_K, "top", NULL, best, -1);
    int labels = input(&b, "labels", "ab", MTF_I32, MTF_FEED_LABELS);
    int logit = op(&b, MTF_OP_LABEL_LOGIT, "logit", "ab", x, labels);
    int prod = op(&b, MTF_OP_REDUCE_PROD, "prod", "ab", x, -1);
    g_autoptr(MtfGraph) graph = finish(&b, MTF_BUILD(&b, MTF_OP_ADD, "y", NULL, top, logit, prod));
    mtf_test_check_gradients(graph);
}

/* x[a:2, e:7] by windows of [b:3] to [a, f:4, c:4], spread to [a, g:8], pooled both ways. */
TEST(windows) {
    MtfBuilder b = start();
    mtf_graph_add_dimension(b.graph, "e", 7, NULL);
    mtf_graph_add_dimension(b.graph, "f", 4, NULL);
    mtf_graph_add_dimension(b.graph, "g", 8, NULL);
    mtf_graph_add_dimension(b.graph, "h", 4, NULL);
    int x = variable(&b, "x", "ae"), w = variable(&b, "w", "bc"), v = variable(&b, "v", "acd");
    const MtfWindow over = { 4, 5, B, 1, 2, 1, 1, 1, false },
                    spread = { 5, 6, D, 1, 2, 1, 1, 0, false };
    const MtfWindow pool = { 6, 7, -1, 3, 2, 1, 1, 0, false },
                    mean = { 6, 7, -1, 2, 2, 2, 0, 1, false };
    b.attributes.n_windows = 1, b.attributes.windows[0] = over;
    int y = op(&b, MTF_OP_CONV, "conv", "afc", x, w);
    b.attributes.n_windows = 1, b.attributes.windows[0] = spread;
    int z = op(&b, MTF_OP_CONV_TRANSPOSE, "spread", "ag", y, v);
    b.attributes.n_windows = 1, b.attributes.windows[0] = pool;
    int p = op(&b, MTF_OP_MAX_POOL, "largest", "ah", z, -1);
    b.attributes.n_windows = 1, b.attributes.windows[0] = mean;
    int q = op(&b, MTF_OP_AVERAGE_POOL, "mean", "ah", z, -1);
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_MULTIPLY, "product", NULL, p, q));
    mtf_test_check_gradients(graph);
}

/* From x[a:2, e:7] and dy[a, f:4, c:4] by windows of [b:3] that overlap: the filter's, [b, c]. */
TEST(the_gradient_of_a_filter) {
    MtfBuilder b = start();
    mtf_graph_add_dimension(b.graph, "e", 7, NULL);
    mtf_graph_add_dimension(b.graph, "f", 4, NULL);
    int x = variable(&b, "x", "ae"), dy = variable(&b, "dy", "afc");
    b.attributes.n_windows = 1;
    b.attributes.windows[0] = (MtfWindow){ 4, 5, B, 1, 2, 1, 1, 1, false };
    int y = op(&b, MTF_OP_CONV_FILTER_GRAD, "filter", "bc", x, dy);
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_TANH, "bent", NULL, y, -1));
    mtf_test_check_gradients(graph);
}

/* x by the statistics of its batch, where running ones take their place outside training. */
TEST(statistics_of_a_batch_that_running_ones_stand_in_for) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "ab"), scale = variable(&b, "scale", "b");
    int old_mean = input(&b, "old_mean", "b", MTF_F64, MTF_FEED_FEATURES);
    int old_variance = input(&b, "old_variance", "b", MTF_F64, MTF_FEED_FEATURES);
    int mean = op(&b, MTF_OP_REDUCE_MEAN, "mean", "b", x, -1);
    int variance = op(&b, MTF_OP_VARIANCE, "variance", "b", x, mean);
    int by[] = { x, op(&b, MTF_OP_IN_TRAIN_PHASE, "mean_now", NULL, mean, old_mean),
                 op(&b, MTF_OP_IN_TRAIN_PHASE, "variance_now", NULL, variance, old_variance),
                 scale };
    b.attributes.epsilon = 0.1;
    int normal = mtf_build(&b, MTF_OP_NORMALIZE, "normal", NULL, 4, by);
    int bent = op(&b, MTF_OP_TANH, "bent", NULL, normal, -1);
    g_autoptr(MtfGraph) graph =
        finish(&b, op(&b, MTF_OP_IN_TRAIN_PHASE, "now", NULL, bent, normal));
    mtf_test_check_gradients(graph);
}

TEST(lookups_masks_and_dropout) {
    MtfBuilder b = start();
    int table = variable(&b, "table", "cb"), ids = input(&b, "ids", "a", MTF_I32, MTF_FEED_TOKENS);
    int rows = op(&b, MTF_OP_EMBEDDING, "rows", "ba", table, ids);
    b.attributes.rate = 0.3;
    int dropped = op(&b, MTF_OP_DROPOUT, "dropped", NULL, rows, -1);
    b.attributes.rate = 0.3, b.attributes.stream = (char *)"other";
    int again = op(&b, MTF_OP_DROPOUT, "again", NULL, dropped, -1);
    int other = variable(&b, "other_table", "da");
    int scores = op(&b, MTF_OP_ADD, "scores", NULL, again, other);
    b.attributes.query = B, b.attributes.memory = D;
    int masked = op(&b, MTF_OP_CAUSAL_MASK, "masked", NULL, scores, -1);
    b.attributes.dimension = D;
    int shares = op(&b, MTF_OP_SOFTMAX, "shares", NULL, masked, -1);
    b.attributes.query = D, b.attributes.memory = B;
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_CAUSAL_ZERO, "zeroed", NULL, shares, -1));
    mtf_test_check_gradients(graph);
}

TEST(casts_between_float_types) {
    MtfBuilder b = start();
    MtfShape shape = shape_of("ab");
    int x = mtf_build_variable(&b, "x", &shape, MTF_F32, (MtfInit){ MTF_INIT_NORMAL, 1 },
                               MTF_MEMORY_VARIABLE);
    b.has_dtype = true, b.dtype = MTF_F64;
    int wide = op(&b, MTF_OP_CAST, "wide", NULL, x, -1);
    g_autoptr(MtfGraph) graph = finish(&b, op(&b, MTF_OP_SQUARE, "y", NULL, wide, -1));
    mtf_test_check_gradients(graph);
}

TEST(a_chain_with_many_uses_of_each_tensor) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "ab"), w = variable(&b, "w", "b");
    for (int i = 0; i < 4; i++) {
        g_autofree char *product = g_strdup_printf("%d/product", i);
        g_autofree char *tanh_name = g_strdup_printf("%d/tanh", i);
        g_autofree char *sum = g_strdup_printf("%d/sum", i);
        int y =
            op(&b, MTF_OP_TANH, tanh_name, NULL, op(&b, MTF_OP_MULTIPLY, product, "ab", x, w), -1);
        x = MTF_BUILD(&b, MTF_OP_ADD, sum, NULL, x, y, x);
    }
    g_autoptr(MtfGraph) graph = finish(&b, x);
    mtf_test_check_gradients(graph);
}

/* Runs last: what the tests above have differentiated; rules of layers are those of
 * test_gradient_layers.c. */
TEST(every_rule_has_been_checked) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        if (mtf_gradient_row(kind)->state == MTF_GRADIENT_RULE &&
            !mtf_test_gradient_is_checked(kind) && !mtf_test_gradient_is_of_layers(kind) &&
            mtf_operation_row(kind)->loop == MTF_LOOP_NOTHING) /* test_loop_gradient.c */
            fail_msg("no test differentiates %s", mtf_operation_row(kind)->name);
}

TEST(every_row_has_a_gradient_or_says_that_it_has_none) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
        const MtfGradientRow *row = mtf_gradient_row(kind);
        if (row->state == MTF_GRADIENT_MISSING ||
            (row->rule != NULL) != (row->state == MTF_GRADIENT_RULE))
            fail_msg("%s has no row in the table of gradients", mtf_operation_row(kind)->name);
        if (mtf_operation_row(kind)->composite)
            assert_int_equal(row->state, MTF_GRADIENT_NONE);
    }
}
