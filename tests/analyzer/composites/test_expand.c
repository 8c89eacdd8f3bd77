// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cmocka.h"

#include "analyzer/composites/expand.h"
#include "layouts/building/builder.h"
#include "tests/support/reference/reference.h"

#include <math.h>

enum { I, J, K, L };

static MtfBuilder start(void) {
    MtfGraph *graph = mtf_graph_new("test");
    mtf_graph_add_dimension(graph, "i", 2, NULL);
    mtf_graph_add_dimension(graph, "j", 100, NULL);
    mtf_graph_add_dimension(graph, "k", 3, NULL);
    mtf_graph_add_dimension(graph, "l", 50, NULL);
    return mtf_builder(graph, MTF_PHASE_FORWARD);
}

static int input(MtfBuilder *b, const char *name, int first, int second) {
    MtfShape shape = { .rank = second < 0 ? 1 : 2, .dims = { first, second } };
    return mtf_graph_add_input(b->graph, name, &shape, MTF_F32, MTF_FEED_FEATURES, NULL);
}

static void expect_operation(const MtfGraph *graph, int index, int kind, const char *name,
                             const char *inputs) {
    const MtfOperation *operation = mtf_graph_operation(graph, index);
    g_autoptr(GString) names = g_string_new(NULL);
    for (int k = 0; k < operation->n_inputs; k++)
        g_string_append_printf(names, "%s%s", k > 0 ? " " : "",
                               mtf_graph_tensor(graph, operation->inputs[k])->name);
    assert_int_equal(operation->kind, kind);
    assert_string_equal(operation->name, name);
    assert_string_equal(names->str, inputs);
}

TEST(softmax_becomes_three_operations) {
    MtfBuilder b = start();
    int x = input(&b, "x", I, K);
    b.attributes.dimension = K;
    MTF_BUILD(&b, MTF_OP_SOFTMAX, "y", NULL, x);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) expanded = mtf_expand(graph, NULL);
    assert_int_equal(expanded->operations->len, 3);
    expect_operation(expanded, 0, MTF_OP_REDUCE_MAX, "y/max", "x");
    expect_operation(expanded, 1, MTF_OP_SUM_EXP, "y/sum", "x y/max");
    expect_operation(expanded, 2, MTF_OP_SOFTMAX_APPLY, "y", "x y/max y/sum");
}

TEST(layer_norm_and_cross_entropy_keep_their_further_inputs) {
    MtfBuilder b = start();
    int x = input(&b, "x", I, K), g = input(&b, "g", K, -1), h = input(&b, "h", K, -1);
    MtfShape rows = { .rank = 1, .dims = { I } };
    int labels = mtf_graph_add_input(b.graph, "labels", &rows, MTF_I32, MTF_FEED_LABELS, NULL);
    int mask = mtf_graph_add_input(b.graph, "mask", &rows, MTF_F32, MTF_FEED_MASK, NULL);
    b.attributes.dimension = K, b.attributes.epsilon = 0.25;
    int y = MTF_BUILD(&b, MTF_OP_LAYER_NORM, "y", NULL, x, g, h);
    MTF_BUILD(&b, MTF_OP_SOFTMAX_CROSS_ENTROPY, "l", &rows, y, labels, mask);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) expanded = mtf_expand(graph, NULL);
    expect_operation(expanded, 0, MTF_OP_REDUCE_MEAN, "y/mean", "x");
    expect_operation(expanded, 1, MTF_OP_VARIANCE, "y/variance", "x y/mean");
    expect_operation(expanded, 2, MTF_OP_NORMALIZE, "y", "x y/mean y/variance g h");
    assert_true(mtf_graph_operation(expanded, 2)->attributes.epsilon == 0.25);
    expect_operation(expanded, 3, MTF_OP_REDUCE_MAX, "l/max", "y");
    expect_operation(expanded, 4, MTF_OP_SUM_EXP, "l/sum", "y l/max");
    expect_operation(expanded, 5, MTF_OP_LABEL_LOGIT, "l/logit", "y labels");
    expect_operation(expanded, 6, MTF_OP_CROSS_ENTROPY, "l", "l/max l/sum l/logit mask");
}

TEST(rms_norm_is_a_norm_whose_mean_is_nothing) {
    MtfBuilder b = start();
    int x = input(&b, "x", I, K), g = input(&b, "g", K, -1);
    b.attributes.dimension = K, b.attributes.epsilon = 0.25;
    MTF_BUILD(&b, MTF_OP_RMS_NORM, "y", NULL, x, g);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) expanded = mtf_expand(graph, NULL);
    expect_operation(expanded, 0, MTF_OP_CONSTANT, "y/mean", "");
    assert_true(mtf_graph_operation(expanded, 0)->attributes.value == 0);
    expect_operation(expanded, 1, MTF_OP_VARIANCE, "y/square", "x y/mean");
    expect_operation(expanded, 2, MTF_OP_NORMALIZE, "y", "x y/mean y/square g");
    assert_true(mtf_graph_operation(expanded, 2)->attributes.epsilon == 0.25);
}

/* a[i,j] b[j,k] c[k,l] -> [i,l]: a b costs 2*100*3 = 600, b c 100*3*50, a c 2*100*3*50. Then (ab)
 * c.
 */
TEST(products_of_many_start_with_the_cheapest_pair) {
    MtfBuilder b = start();
    int inputs[3] = { input(&b, "c", K, L), input(&b, "b", J, K), input(&b, "a", I, J) };
    MtfShape shape = { .rank = 2, .dims = { I, L } };
    mtf_build(&b, MTF_OP_EINSUM, "y", &shape, 3, inputs);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) expanded = mtf_expand(graph, NULL);
    assert_int_equal(expanded->operations->len, 2);
    expect_operation(expanded, 0, MTF_OP_EINSUM, "y/1", "b a");
    expect_operation(expanded, 1, MTF_OP_EINSUM, "y", "c y/1");
    g_autofree char *text =
        mtf_graph_tensor_format(expanded, mtf_graph_find_tensor(expanded, "y/1"));
    assert_string_equal(text, "f32[k:3, i:2]");
}

TEST(everything_else_is_copied) {
    MtfBuilder b = start();
    MtfShape shape = { .rank = 1, .dims = { K } };
    int w = mtf_build_variable(&b, "w", &shape, MTF_F64, (MtfInit){ MTF_INIT_UNIFORM, 2 },
                               MTF_MEMORY_VARIABLE);
    b.attributes.rate = 0.5, b.attributes.stream = (char *)"noise";
    int y = MTF_BUILD(&b, MTF_OP_DROPOUT, "y", NULL, w);
    b.has_dtype = true, b.dtype = MTF_I32;
    MTF_BUILD(&b, MTF_OP_CAST, "z", NULL, y);
    b.graph->loss = MTF_BUILD(&b, MTF_OP_REDUCE_SUM, "loss", &(MtfShape){ 0 }, y);
    mtf_graph_add_repeat(b.graph, "layer", 7);
    b.graph->optimizer.kind = g_strdup("sgd");
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) copy = mtf_expand(graph, NULL);
    const MtfTensor *variable = mtf_graph_tensor(copy, mtf_graph_find_tensor(copy, "w"));
    assert_int_equal(variable->init.kind, MTF_INIT_UNIFORM);
    assert_int_equal(variable->dtype, MTF_F64);
    assert_string_equal(mtf_graph_operation(copy, 0)->attributes.stream, "noise");
    assert_int_equal(mtf_graph_tensor(copy, mtf_graph_find_tensor(copy, "z"))->dtype, MTF_I32);
    assert_int_equal(copy->loss, mtf_graph_find_tensor(copy, "loss"));
    assert_int_equal(g_array_index(copy->repeats, MtfRepeat, 0).count, 7);
    assert_string_equal(copy->optimizer.kind, "sgd");
}

/* Composites that take integers or bools, with so many inputs of shape [i, k]. */
static const struct {
    int kind, inputs;
    bool subset; /* the result is of shape [i] */
    bool truths; /* numbers are 0 or 1, unless the result is bool */
} exact[] = {
    { MTF_OP_NOT_EQUAL, 2, false, false },     { MTF_OP_GREATER, 2, false, false },
    { MTF_OP_GREATER_EQUAL, 2, false, false }, { MTF_OP_LOGICAL_AND, 2, false, true },
    { MTF_OP_LOGICAL_OR, 2, false, true },     { MTF_OP_LOGICAL_XOR, 2, false, true },
    { MTF_OP_REDUCE_ANY, 1, true, false },     { MTF_OP_REDUCE_ALL, 1, true, false },
    { MTF_OP_REDUCE_MIN, 1, true, false },     { MTF_OP_SELECT, 1, true, false },
    { MTF_OP_REVERSE, 1, false, false },       { MTF_OP_ROLL, 1, false, false },
};

/* "y" of the graph, from inputs that hold small numbers, which come again and are below 0, too. */
static double *last_result(const MtfGraph *graph, bool truths) {
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 7);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_INPUT)
            continue;
        for (int i = 0; i < mtf_graph_elements(graph, &tensor->shape); i++)
            reference->values[t][i] = (i * (7 + t) + 3 * t) % 5 - 2;
        for (int i = 0; truths && i < mtf_graph_elements(graph, &tensor->shape); i++)
            reference->values[t][i] = reference->values[t][i] > 0;
    }
    mtf_reference_run(reference, 1);
    int y = mtf_graph_find_tensor(graph, "y");
    gsize n = (gsize)mtf_graph_elements(graph, &mtf_graph_tensor(graph, y)->shape);
    return g_memdup2(reference->values[y], n * sizeof(double));
}

static void expect_alike(gsize row, MtfDtype dtype, MtfDtype result) {
    MtfBuilder b = start();
    MtfShape shape = { .rank = 2, .dims = { I, K } }, rest = { .rank = 1, .dims = { I } };
    int inputs[2];
    for (int k = 0; k < exact[row].inputs; k++)
        inputs[k] =
            mtf_graph_add_input(b.graph, k == 0 ? "a" : "b", &shape, dtype, MTF_FEED_LABELS, NULL);
    b.attributes.dimension = K, b.attributes.index = b.attributes.shift = 1;
    b.has_dtype = true, b.dtype = result;
    mtf_build(&b, exact[row].kind, "y", exact[row].subset ? &rest : &shape, exact[row].inputs,
              inputs);
    g_autoptr(MtfGraph) graph = b.graph;
    assert_null(b.error);
    g_autoptr(MtfGraph) expanded = mtf_expand(graph, NULL);
    assert_non_null(expanded);
    bool truths = dtype == MTF_BOOL || (exact[row].truths && result != MTF_BOOL);
    int y = mtf_graph_find_tensor(expanded, "y");
    assert_int_equal(mtf_graph_tensor(expanded, y)->dtype,
                     mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "y"))->dtype);
    g_autofree double *expected = last_result(graph, truths);
    g_autofree double *actual = last_result(expanded, truths);
    for (int64_t i = 0; i < mtf_graph_elements(expanded, &mtf_graph_tensor(expanded, y)->shape);
         i++)
        if (expected[i] != actual[i])
            fail_msg("%s of %s: %g, not %g", mtf_operation_row(exact[row].kind)->name,
                     mtf_dtype_name(dtype), actual[i], expected[i]);
}

TEST(composites_of_integers_and_bools_are_what_they_expand_to) {
    static const MtfDtype types[] = { MTF_I32, MTF_I64, MTF_BOOL };
    for (gsize row = 0; row < G_N_ELEMENTS(exact); row++)
        for (gsize t = 0; t < G_N_ELEMENTS(types); t++) {
            if (exact[row].kind == MTF_OP_REDUCE_MIN && types[t] == MTF_BOOL)
                continue; /* reduce_all */
            expect_alike(row, types[t], types[t]);
            expect_alike(row, types[t], MTF_BOOL);
        }
}

TEST(a_mask_may_be_bool_and_labels_int64) {
    MtfBuilder b = start();
    int x = input(&b, "x", I, K);
    MtfShape rows = { .rank = 1, .dims = { I } };
    int labels = mtf_graph_add_input(b.graph, "labels", &rows, MTF_I64, MTF_FEED_LABELS, NULL);
    int mask = mtf_graph_add_input(b.graph, "mask", &rows, MTF_BOOL, MTF_FEED_MASK, NULL);
    MTF_BUILD(&b, MTF_OP_SOFTMAX_CROSS_ENTROPY, "l", &rows, x, labels, mask);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) expanded = mtf_expand(graph, NULL);
    expect_operation(expanded, 0, MTF_OP_CAST, "l/ids/1", "labels");
    expect_operation(expanded, 1, MTF_OP_CAST, "l/weights", "mask");
    expect_operation(expanded, 4, MTF_OP_LABEL_LOGIT, "l/logit", "x l/ids/1");
    expect_operation(expanded, 5, MTF_OP_CROSS_ENTROPY, "l", "l/max l/sum l/logit l/weights");
}

/* Whether the author's tensor is older than the composite or younger. */
TEST(a_name_that_the_author_gave_stays_and_parts_take_others) {
    MtfBuilder b = start();
    int x = input(&b, "x", I, K);
    input(&b, "y/sum", I, K);
    b.attributes.dimension = K;
    int y = MTF_BUILD(&b, MTF_OP_SOFTMAX, "y", NULL, x);
    int max = MTF_BUILD(&b, MTF_OP_RELU, "y/max", NULL, y);
    MTF_BUILD(&b, MTF_OP_EXP, "z", NULL, max);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) expanded = mtf_expand(graph, NULL);
    assert_int_equal(expanded->operations->len, 5);
    expect_operation(expanded, 0, MTF_OP_REDUCE_MAX, "y/max_2", "x");
    expect_operation(expanded, 1, MTF_OP_SUM_EXP, "y/sum_2", "x y/max_2");
    expect_operation(expanded, 2, MTF_OP_SOFTMAX_APPLY, "y", "x y/max_2 y/sum_2");
    expect_operation(expanded, 3, MTF_OP_RELU, "y/max", "y");
    expect_operation(expanded, 4, MTF_OP_EXP, "z", "y/max");
}

/* Names of operations may hold points, those of dimensions may not. */
TEST(dimensions_of_parts_have_legal_names) {
    MtfBuilder b = start();
    int x = input(&b, "x", I, K);
    MtfShape rows = { .rank = 1, .dims = { I } };
    b.attributes.dimension = K, b.attributes.index = 1;
    MTF_BUILD(&b, MTF_OP_SELECT, "/layers.0/q 1", &rows, x);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) expanded = mtf_expand(graph, NULL);
    assert_non_null(expanded);
    assert_true(mtf_graph_find_dimension(expanded, "/layers_0/q_1/one") >= 0);
}

/* Where a row of 3 is padded to 6, two before it, the value stands and what is padded stays to the bit, whatever the
 * value is. */
TEST(what_is_padded_stays_as_it_is) {
    static const double values[] = { -1e300, 0.1, -INFINITY };
    for (gsize v = 0; v < G_N_ELEMENTS(values); v++) {
        MtfBuilder b = start();
        int x = input(&b, "x", I, K);
        b.attributes.from = K;
        b.attributes.to = mtf_graph_add_dimension(b.graph, "m", 6, NULL);
        b.attributes.before = 2;
        b.attributes.value = values[v];
        int y = MTF_BUILD(&b, MTF_OP_PAD, "y", NULL, x);
        assert_true(y >= 0);
        g_autoptr(MtfGraph) graph = b.graph;
        g_autoptr(MtfGraph) expanded = mtf_expand(graph, NULL);
        g_autoptr(MtfReference) reference = mtf_reference_new(expanded, 1);
        mtf_reference_fill_inputs(reference, 3);
        mtf_reference_run(reference, 0);
        const double *from = mtf_reference_find(reference, "x");
        const double *to = mtf_reference_find(reference, "y");
        for (int i = 0; i < 2; i++)
            for (int m = 0; m < 6; m++)
                assert_true(to[6 * i + m] == (m < 2 || m > 4 ? values[v] : from[3 * i + m - 2]));
    }
}
