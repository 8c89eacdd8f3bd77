// SPDX-License-Identifier: GPL-3.0-or-later
/* What differentiating a whole graph makes of it: what is shared, what is left out, what is refused. That
 * each row's gradient is right is shown in test_gradient_table.c. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "tests/support/cases/gradient_case.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <string.h>

/* max(1, 3, 3) with gradient 1: 0, 1/2, 1/2. */
TEST(ties_share_the_gradient_of_a_maximum) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "b");
    b.graph->loss = op(&b, MTF_OP_REDUCE_MAX, "max", "", x, -1);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    g_autoptr(MtfReference) t = mtf_reference_new(training, 1);
    const double values[] = { 1, 3, 3 }, expected[] = { 0, 0.5, 0.5 };
    memcpy(mtf_reference_find(t, "x"), values, sizeof values);
    mtf_reference_run(t, 0);
    assert_memory_equal(mtf_reference_find(t, "grad/x"), expected, sizeof expected);
}

/* loss = sum of x (stopped square of x): the gradient is x^2, not 3 x^2. */
TEST(stop_gradient_stops) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "b");
    int square = op(&b, MTF_OP_SQUARE, "square", NULL, x, -1);
    int stopped = op(&b, MTF_OP_STOP_GRADIENT, "stopped", NULL, square, -1);
    b.graph->loss = op(&b, MTF_OP_EINSUM, "loss", "", x, stopped);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    g_autoptr(MtfReference) t = mtf_reference_new(training, 1);
    mtf_reference_run(t, 0);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(mtf_reference_find(t, "grad/x")[i] -
                         pow(mtf_reference_find(t, "x")[i], 2)) < 1e-15);
    assert_int_equal(mtf_graph_find_tensor(training, "grad/square"), -1);
}

/* y = a / r with r called "y/1", both with a gradient "back/y/1/product"; and a square called as a gradient is. */
TEST(gradients_take_names_that_are_free) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "b");
    int square = op(&b, MTF_OP_SQUARE, "grad/x", NULL, x, -1);
    b.attributes.exponent = 1.5;
    int raised = op(&b, MTF_OP_RAISE, "y/1", NULL, square, -1);
    int y = op(&b, MTF_OP_DIVIDE, "y", "b", x, raised);
    b.graph->loss = op(&b, MTF_OP_REDUCE_SUM, "loss", "", y, -1);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(GError) error = NULL;
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, &error);
    assert_non_null(training);
    int written = mtf_graph_find_operation(training, "grad/x");
    assert_int_equal(mtf_graph_operation(training, written)->kind, MTF_OP_SQUARE);
    /* x / x^3: the gradient is -2 / x^3. */
    g_autoptr(MtfReference) t = mtf_reference_new(training, 1);
    mtf_reference_run(t, 0);
    for (int i = 0; i < 3; i++) {
        double expected = -2 / pow(fabs(mtf_reference_find(t, "x")[i]), 3);
        assert_true(fabs(mtf_reference_find(t, "grad/x_2")[i] - expected) <=
                    1e-12 * fabs(expected));
    }
}

/* h = tanh(x), loss = h^2 h: both readers give h a share. The stage that sums them, of those of the three operations. */
static int stage_of_sum(int square_stage, int loss_stage) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "b");
    int h = op(&b, MTF_OP_TANH, "h", NULL, x, -1);
    int square = op(&b, MTF_OP_SQUARE, "square", NULL, h, -1);
    b.graph->loss = op(&b, MTF_OP_EINSUM, "loss", "", h, square);
    g_autoptr(MtfGraph) graph = b.graph;
    const int stages[] = { 1, square_stage, loss_stage };
    for (int i = 0; i < 3; i++)
        mtf_graph_operation(graph, i)->stage = stages[i];
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    const MtfTensor *sum = mtf_graph_tensor(training, mtf_graph_find_tensor(training, "grad/h"));
    const MtfOperation *maker = mtf_graph_operation(training, sum->producer);
    assert_int_equal(maker->n_inputs, 2);
    return maker->stage;
}

/* One tensor then travels instead of each share. */
TEST(shares_of_one_stage_are_summed_there) {
    assert_int_equal(stage_of_sum(1, 1), 1);
    assert_int_equal(stage_of_sum(2, 2), 2);
    assert_int_equal(stage_of_sum(2, 3), 1);
    assert_int_equal(stage_of_sum(1, 2), 1);
}

TEST(nothing_is_computed_for_what_no_variable_leads_to) {
    MtfBuilder b = start();
    int x = input(&b, "x", "ab", MTF_F64, MTF_FEED_FEATURES), w = variable(&b, "w", "b");
    int h = op(&b, MTF_OP_TANH, "h", NULL, x, -1);
    b.graph->loss = op(&b, MTF_OP_EINSUM, "loss", "", h, w);
    g_autoptr(MtfGraph) graph = b.graph;
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    /* grad/loss and grad/w. */
    assert_int_equal(training->operations->len, graph->operations->len + 2);
    int gradient = mtf_graph_find_tensor(training, "grad/w");
    assert_int_equal(mtf_graph_tensor(training, gradient)->memory, MTF_MEMORY_GRADIENT);
    int producer = mtf_graph_tensor(training, gradient)->producer;
    assert_int_equal(mtf_graph_operation(training, producer)->phase, MTF_PHASE_BACKWARD);
}

/* Three uses of x by products: one sum of three terms that nothing else reads. */
TEST(several_uses_meet_in_one_sum) {
    MtfBuilder b = start();
    int x = variable(&b, "x", "ab");
    const char *const names[] = { "q", "k", "v" };
    int y[3];
    for (int i = 0; i < 3; i++) {
        g_autofree char *weight = g_strdup_printf("w%s", names[i]);
        y[i] = op(&b, MTF_OP_EINSUM, names[i], "ac", x, variable(&b, weight, "bc"));
    }
    g_autoptr(MtfGraph) graph = finish(&b, mtf_build(&b, MTF_OP_ADD, "sum", NULL, 3, y));
    g_autoptr(MtfGraph) training = mtf_training_graph(graph, NULL);
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(training);
    int producer = mtf_graph_tensor(training, mtf_graph_find_tensor(training, "grad/x"))->producer;
    const MtfOperation *sum = mtf_graph_operation(training, producer);
    assert_int_equal(sum->kind, MTF_OP_ADD);
    assert_int_equal(sum->n_inputs, 3);
    for (int k = 0; k < 3; k++) {
        int t = sum->inputs[k];
        int maker = mtf_graph_tensor(training, t)->producer;
        assert_int_equal(mtf_graph_operation(training, maker)->kind, MTF_OP_EINSUM);
        assert_int_equal(consumers->starts[t + 1] - consumers->starts[t], 1);
    }
}

static void expect_error(MtfGraph *graph, const char *text) {
    g_autoptr(GError) error = NULL;
    assert_null(mtf_training_graph(graph, &error));
    if (strstr(error->message, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->message, text);
}

TEST(errors_say_what_is_missing) {
    MtfBuilder b = start();
    g_autoptr(MtfGraph) graph = b.graph;
    int x = variable(&b, "x", "ab");
    expect_error(graph, "no loss");
    graph->loss = x;
    expect_error(graph, "must be a scalar but has dimension \"a\"");
    graph->loss = mtf_build_constant(&b, "one", MTF_F64, 1);
    expect_error(graph, "no variable leads to the loss \"one\"");
    int max = op(&b, MTF_OP_REDUCE_MAX, "max", "a", x, -1);
    int odd = MTF_BUILD(&b, MTF_OP_SOFTMAX_APPLY, "odd", NULL, x, max, max);
    graph->loss = op(&b, MTF_OP_REDUCE_SUM, "sum", "", odd, -1);
    expect_error(graph, "write softmax instead");
    int grad = op(&b, MTF_OP_RELU_GRAD, "second", NULL, x, x);
    graph->loss = op(&b, MTF_OP_REDUCE_SUM, "sum2", "", grad, -1);
    expect_error(graph, "operation \"second\" (relu_grad) has no gradient");
}
