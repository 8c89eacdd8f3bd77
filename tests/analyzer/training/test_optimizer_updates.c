// SPDX-License-Identifier: GPL-3.0-or-later
/* Updates against numbers worked out by hand. The loss is the sum of w x, so x is the gradient. */
#include "tests/support/cmocka.h"

#include "analyzer/training/training_graph.h"
#include "layouts/building/builder.h"
#include "layouts/graph/optimizer.h"
#include "layouts/graph/stage_split.h"
#include "tests/support/cases/parse_graph.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <string.h>

enum { A, B };

/* A forward graph with one variable, all ones, of 2 or 2 x 2 elements; and its training graph. */
typedef struct {
    MtfGraph *forward, *training;
    MtfReference *reference;
} Case;

static void add_product(MtfBuilder *b, const char *name, const MtfShape *shape) {
    g_autofree char *x_name = g_strdup_printf("x/%s", name);
    g_autofree char *y_name = g_strdup_printf("y/%s", name);
    int x = mtf_graph_add_input(b->graph, x_name, shape, MTF_F64, MTF_FEED_FEATURES, NULL);
    int w = mtf_build_variable(b, name, shape, MTF_F64, (MtfInit){ MTF_INIT_CONSTANT, 1 },
                               MTF_MEMORY_VARIABLE);
    int y = MTF_BUILD(b, MTF_OP_EINSUM, y_name, &(MtfShape){ 0 }, w, x);
    if (b->graph->loss >= 0) {
        g_autofree char *sum = g_strdup_printf("loss/%s", name);
        y = MTF_BUILD(b, MTF_OP_ADD, sum, NULL, b->graph->loss, y);
    }
    b->graph->loss = y;
}

static MtfGraph *forward_graph(int rank) {
    MtfGraph *graph = mtf_graph_new("test");
    mtf_graph_add_dimension(graph, "a", 2, NULL);
    mtf_graph_add_dimension(graph, "b", 2, NULL);
    MtfBuilder b = mtf_builder(graph, MTF_PHASE_FORWARD);
    add_product(&b, "w", &(MtfShape){ .rank = rank, .dims = { A, B } });
    assert_true(mtf_builder_end(&b, NULL));
    return graph;
}

static Case begin(MtfGraph *forward, MtfOptimizer optimizer) {
    Case c = { .forward = forward };
    g_autoptr(GError) error = NULL;
    forward->optimizer = optimizer;
    c.training = mtf_training_graph(forward, &error);
    if (c.training == NULL)
        fail_msg("%s", error->message);
    c.reference = mtf_reference_new(c.training, 1);
    return c;
}

static void end(Case *c) {
    mtf_reference_free(c->reference);
    mtf_graph_free(c->training);
    mtf_graph_free(c->forward);
}

/* One step with the given gradient. */
static void step(Case *c, int number, int n, const double *gradient) {
    memcpy(mtf_reference_find(c->reference, "x/w"), gradient, sizeof(double) * (size_t)n);
    mtf_reference_run(c->reference, (uint64_t)number);
    mtf_reference_update(c->reference);
}

static void expect(const Case *c, const char *name, int n, const double *values) {
    const double *found = mtf_reference_find(c->reference, name);
    for (int i = 0; i < n; i++)
        if (!(fabs(found[i] - values[i]) <= 1e-12))
            fail_msg("%s[%d] is %.14g, not %.14g", name, i, found[i], values[i]);
}

static MtfOptimizer optimizer_of(const char *kind) {
    return mtf_optimizer_standard(kind, 0.1);
}

/* 1 - 0.1 (3 + 0.5), 1 - 0.1 (4 + 0.5). */
TEST(sgd_goes_down_the_gradient_and_decays) {
    MtfOptimizer optimizer = optimizer_of("sgd");
    optimizer.weight_decay = 0.5;
    Case c = begin(forward_graph(1), optimizer);
    step(&c, 0, 2, (double[]){ 3, 4 });
    expect(&c, "w", 2, (double[]){ 0.65, 0.55 });
    end(&c);
}

/* v = 3 then 0.9 * 3 + 3 = 5.7: w = 1 - 0.3 - 0.57. */
TEST(momentum_remembers_the_gradient) {
    Case c = begin(forward_graph(1), optimizer_of("momentum"));
    step(&c, 0, 2, (double[]){ 3, 0 });
    step(&c, 1, 2, (double[]){ 3, 0 });
    expect(&c, "momentum/v/w", 2, (double[]){ 5.7, 0 });
    expect(&c, "w", 2, (double[]){ 0.13, 1 });
    end(&c);
}

/* While the gradient stays, m^ = g and v^ = g^2: with epsilon 1 each step takes 0.1 g / (g + 1). */
TEST(adam_corrects_the_bias_of_its_moments) {
    MtfOptimizer optimizer = optimizer_of("adam");
    optimizer.epsilon = 1;
    Case c = begin(forward_graph(1), optimizer);
    step(&c, 0, 2, (double[]){ 3, 4 });
    expect(&c, "adam/m/w", 2, (double[]){ 0.3, 0.4 });
    expect(&c, "adam/v/w", 2, (double[]){ 0.009, 0.016 });
    expect(&c, "w", 2, (double[]){ 0.925, 0.92 });
    step(&c, 1, 2, (double[]){ 3, 4 });
    expect(&c, "w", 2, (double[]){ 0.85, 0.84 });
    end(&c);
}

/* m = 0.03, then 0.99 0.03 - 0.03; the second mixture is 0.027 - 0.3 < 0. */
TEST(lion_goes_by_signs) {
    Case c = begin(forward_graph(1), optimizer_of("lion"));
    step(&c, 0, 2, (double[]){ 3, 0 });
    expect(&c, "w", 2, (double[]){ 0.9, 1 });
    expect(&c, "lion/m/w", 2, (double[]){ 0.03, 0 });
    step(&c, 1, 2, (double[]){ -3, 0 });
    expect(&c, "w", 2, (double[]){ 1, 1 });
    expect(&c, "lion/m/w", 2, (double[]){ -0.0003, 0 });
    end(&c);
}

/* Adam's direction is g / (g + 1) while epsilon is 1; w = (1, 1) has the norm sqrt(2). */
TEST(lamb_goes_as_far_as_the_variable_is_long) {
    MtfOptimizer optimizer = optimizer_of("lamb");
    optimizer.epsilon = 1, optimizer.weight_decay = 0.5;
    Case c = begin(forward_graph(1), optimizer);
    step(&c, 0, 2, (double[]){ 3, 4 });
    const double u[] = { 0.75 + 0.5, 0.8 + 0.5 }, trust = sqrt(2 / (u[0] * u[0] + u[1] * u[1]));
    expect(&c, "w", 2, (double[]){ 1 - 0.1 * trust * u[0], 1 - 0.1 * trust * u[1] });
    expect(&c, "lamb/m/w", 2, (double[]){ 0.3, 0.4 });
    expect(&c, "lamb/v/w", 2, (double[]){ 0.009, 0.016 });
    end(&c);
}

/* Zeros have no length to go by: their ratio is 1. Clipped to a norm of 2, the gradient is 0.4 of
 * itself: 1.2 / 2.2 and 1.6 / 2.6. */
TEST(lamb_moves_zeros_and_is_clipped) {
    MtfOptimizer optimizer = optimizer_of("lamb");
    optimizer.epsilon = 1, optimizer.weight_decay = 0, optimizer.clip_norm = 2;
    Case c = begin(forward_graph(1), optimizer);
    memset(mtf_reference_find(c.reference, "w"), 0, 2 * sizeof(double));
    step(&c, 0, 2, (double[]){ 3, 4 });
    expect(&c, "w", 2, (double[]){ -0.1 * 1.2 / 2.2, -0.1 * 1.6 / 2.6 });
    end(&c);
}

/* The mean is 0.9 of itself and 0.1 of the weights, once it has begun with 1 - 0.1 3 = 0.7. */
TEST(a_mean_of_the_weights_follows_them) {
    MtfOptimizer optimizer = optimizer_of("sgd");
    optimizer.ema = 0.9;
    Case c = begin(forward_graph(1), optimizer);
    step(&c, 0, 2, (double[]){ 3, 0 });
    expect(&c, "ema/w", 2, (double[]){ 0.7, 1 });
    step(&c, 1, 2, (double[]){ 3, 0 });
    expect(&c, "w", 2, (double[]){ 0.4, 1 });
    expect(&c, "ema/w", 2, (double[]){ 0.67, 1 });
    step(&c, 2, 2, (double[]){ -3, 0 });
    expect(&c, "ema/w", 2, (double[]){ 0.673, 1 });
    end(&c);
}

/* x [s, n, a] w [s, a, b, c]: `several` matrices of 3 x 4 (a by b and c) or 4 x 3. */
static MtfGraph *matrix_graph(bool tall) {
    MtfGraph *graph = mtf_graph_new("test");
    const char *const names[] = { "s", "n", "a", "b", "c" };
    const int64_t sizes[] = { 2, 3, 3, 2, 2 };
    for (int i = 0; i < 5; i++)
        mtf_graph_add_dimension(graph, names[i], sizes[i], NULL);
    MtfBuilder b = mtf_builder(graph, MTF_PHASE_FORWARD);
    MtfShape x_shape = { .rank = 3, .dims = { 0, 1, 2 } };
    MtfShape w_shape = { .rank = 4, .dims = { 0, 2, 3, 4 } };
    MtfShape y_shape = { .rank = 4, .dims = { 0, 1, 3, 4 } };
    MtfShape left = tall ? y_shape : x_shape, made = tall ? x_shape : y_shape;
    int x = mtf_graph_add_input(graph, "x", &left, MTF_F64, MTF_FEED_FEATURES, NULL);
    int t = mtf_graph_add_input(graph, "t", &made, MTF_F64, MTF_FEED_FEATURES, NULL);
    int w = mtf_build_variable(&b, "w", &w_shape, MTF_F64, (MtfInit){ MTF_INIT_CONSTANT, 1 },
                               MTF_MEMORY_VARIABLE);
    int y = MTF_BUILD(&b, MTF_OP_EINSUM, "y", &made, x, w);
    graph->loss = MTF_BUILD(&b, MTF_OP_EINSUM, "loss", &(MtfShape){ 0 }, y, t);
    assert_true(mtf_builder_end(&b, NULL));
    return graph;
}

/* Five times x = a x + b (x x') x + c (x x')^2 x, 3 by 4, by loops. */
static void orthogonalise(double x[3][4]) {
    double norm = 0;
    for (int i = 0; i < 12; i++)
        norm += x[i / 4][i % 4] * x[i / 4][i % 4];
    for (int i = 0; i < 12; i++)
        x[i / 4][i % 4] /= sqrt(norm + 1e-14);
    for (int round = 0; round < 5; round++) {
        double gram[3][3] = { 0 }, b[3][3] = { 0 }, next[3][4];
        for (int i = 0; i < 36; i++)
            gram[i / 12][i / 4 % 3] += x[i / 12][i % 4] * x[i / 4 % 3][i % 4];
        for (int i = 0; i < 27; i++)
            b[i / 9][i / 3 % 3] += 2.0315 * gram[i / 9][i % 3] * gram[i % 3][i / 3 % 3];
        for (int i = 0; i < 12; i++) {
            next[i / 4][i % 4] = 3.4445 * x[i / 4][i % 4];
            for (int k = 0; k < 3; k++)
                next[i / 4][i % 4] += (b[i / 4][k] - 4.775 * gram[i / 4][k]) * x[k][i % 4];
        }
        memcpy(x, next, sizeof next);
    }
}

/* The gradient of w[s, a, bc] is the sum over n of what is known and what t says; momentum 0.5, two
 * steps: n = 1.5 g, then 1.75 g. Rows and columns change places where w is read the other way. */
TEST(muon_makes_each_matrix_orthogonal) {
    for (int tall = 0; tall < 2; tall++) {
        MtfOptimizer optimizer = optimizer_of("muon");
        optimizer.momentum = 0.5, optimizer.weight_decay = 0.25;
        Case c = begin(matrix_graph(tall), optimizer);
        double *xs = mtf_reference_find(c.reference, tall ? "t" : "x");
        double *ys = mtf_reference_find(c.reference, tall ? "x" : "t"), w[24];
        for (int i = 0; i < 18; i++)
            xs[i] = sin(i + 1);
        for (int i = 0; i < 24; i++)
            ys[i] = cos(3 * i), w[i] = 1;
        for (int number = 0; number < 2; number++) {
            mtf_reference_run(c.reference, (uint64_t)number);
            mtf_reference_update(c.reference);
            for (int s = 0; s < 2; s++) {
                double g[3][4] = { 0 };
                for (int i = 0; i < 36; i++)
                    g[i / 12][i % 4] +=
                        xs[s * 9 + i / 4 % 3 * 3 + i / 12] * ys[s * 12 + i / 4 % 3 * 4 + i % 4];
                orthogonalise(g);
                for (int i = 0; i < 12; i++)
                    w[s * 12 + i] -= 0.1 * (0.2 * 2 * g[i / 4][i % 4] + 0.25 * w[s * 12 + i]);
            }
            expect(&c, "w", 24, w);
        }
        end(&c);
    }
}

/* What is looked up, and what has no rows or no columns, is Adam's. */
TEST(muon_leaves_the_rest_to_adam) {
    MtfOptimizer optimizer = optimizer_of("muon");
    optimizer.epsilon = 1, optimizer.weight_decay = 0;
    Case c = begin(forward_graph(2), optimizer);
    step(&c, 0, 4, (double[]){ 3, 3, 4, 4 });
    expect(&c, "w", 4, (double[]){ 0.925, 0.925, 0.92, 0.92 });
    assert_true(mtf_graph_find_tensor(c.training, "muon/m/w") < 0);
    end(&c);
}

/* Without decay 1 - 0.1 3 / 4. */
TEST(decay_leaves_variables_alone_that_say_so) {
    MtfOptimizer optimizer = optimizer_of("adamw");
    optimizer.epsilon = 1, optimizer.weight_decay = 0.1;
    MtfGraph *graph = forward_graph(1);
    mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "w"))->undecayed = true;
    Case c = begin(graph, optimizer);
    step(&c, 0, 2, (double[]){ 3, 3 });
    expect(&c, "w", 2, (double[]){ 0.925, 0.925 });
    end(&c);
}

TEST(frozen_variables_have_no_gradient_and_stay) {
    MtfGraph *graph = forward_graph(1);
    MtfBuilder b = mtf_builder(graph, MTF_PHASE_FORWARD);
    add_product(&b, "u", &(MtfShape){ .rank = 1, .dims = { A } });
    mtf_graph_tensor(graph, mtf_graph_find_tensor(graph, "w"))->frozen = true;
    Case c = begin(graph, optimizer_of("adam"));
    assert_int_equal(mtf_graph_find_tensor(c.training, "grad/w"), -1);
    assert_int_equal(mtf_graph_find_tensor(c.training, "adam/m/w"), -1);
    assert_true(mtf_graph_find_tensor(c.training, "grad/u") >= 0);
    step(&c, 0, 2, (double[]){ 3, 4 });
    expect(&c, "w", 2, (double[]){ 1, 1 });
    end(&c);
}

/* 1 - 0.1 (3 / 4 + 0.1). */
TEST(adamw_decays_the_weight_itself) {
    MtfOptimizer optimizer = optimizer_of("adamw");
    optimizer.epsilon = 1, optimizer.weight_decay = 0.1;
    Case c = begin(forward_graph(1), optimizer);
    step(&c, 0, 2, (double[]){ 3, 0 });
    expect(&c, "w", 2, (double[]){ 0.915, 0.99 });
    end(&c);
}

/* Gradient 1 2 / 3 4: squares 1 4 / 9 16, row means 2.5 12.5, column means 5 10, mean 7.5. The
 * direction is g / sqrt(row column / 7.5), its squares 0.6 1.2 1.08 0.96: rms below 1. */
TEST(adafactor_factors_the_second_moment_of_matrices) {
    Case c = begin(forward_graph(2), optimizer_of("adafactor"));
    step(&c, 0, 4, (double[]){ 1, 2, 3, 4 });
    expect(&c, "adafactor/rows/w", 2, (double[]){ 2.5, 12.5 });
    expect(&c, "adafactor/columns/w", 2, (double[]){ 5, 10 });
    expect(&c, "w", 4,
           (double[]){ 1 - 0.1 * sqrt(0.6), 1 - 0.1 * sqrt(1.2), 1 - 0.1 * sqrt(1.08),
                       1 - 0.1 * sqrt(0.96) });
    end(&c);
}

/* Gradients 1 and then 10: v = 1, then b + 100 (1 - b) with b = 1 - 2^-0.8. The second direction,
 * 10 / sqrt(v) = 1.31, is clipped to 1. */
TEST(adafactor_limits_the_update_of_vectors) {
    Case c = begin(forward_graph(1), optimizer_of("adafactor"));
    step(&c, 0, 2, (double[]){ 1, 1 });
    expect(&c, "w", 2, (double[]){ 0.9, 0.9 });
    step(&c, 1, 2, (double[]){ 10, 10 });
    double b = 1 - pow(2, -0.8), v = b + 100 * (1 - b);
    expect(&c, "adafactor/v/w", 2, (double[]){ v, v });
    expect(&c, "w", 2, (double[]){ 0.8, 0.8 });
    end(&c);
}

/* The norm of (3, 4) is 5; a limit of 2 multiplies by 0.4, a limit of 6 by 1. */
TEST(clipping_limits_the_global_norm) {
    const char *const kinds[] = { "sgd", "momentum" };
    for (int i = 0; i < 4; i++) {
        MtfOptimizer optimizer = optimizer_of(kinds[i / 2]);
        optimizer.clip_norm = i % 2 == 0 ? 2 : 6;
        Case c = begin(forward_graph(1), optimizer);
        step(&c, 0, 2, (double[]){ 3, 4 });
        double factor = i % 2 == 0 ? 0.4 : 1;
        expect(&c, "w", 2, (double[]){ 1 - 0.3 * factor, 1 - 0.4 * factor });
        end(&c);
    }
}

TEST(clipping_scales_adam_and_adafactor_alike) {
    MtfOptimizer optimizer = optimizer_of("adam");
    optimizer.clip_norm = 2, optimizer.epsilon = 1;
    Case c = begin(forward_graph(1), optimizer);
    step(&c, 0, 2, (double[]){ 3, 4 });
    expect(&c, "w", 2, (double[]){ 1 - 0.1 * 1.2 / 2.2, 1 - 0.1 * 1.6 / 2.6 });
    end(&c);
    optimizer = optimizer_of("adafactor");
    optimizer.clip_norm = 2;
    c = begin(forward_graph(1), optimizer);
    step(&c, 0, 2, (double[]){ 3, 4 });
    expect(&c, "adafactor/v/w", 2, (double[]){ 1.44, 2.56 });
    expect(&c, "w", 2, (double[]){ 0.9, 0.9 });
    end(&c);
}

/* Gradients over {a, b} in both orders and over {a}: what reads the first is of stage `first`, the others of
 * `others`. With 1s everywhere the norm is sqrt(4 + 4 + 2). */
static Case clipped(int first, int others) {
    MtfGraph *forward = forward_graph(2);
    MtfBuilder b = mtf_builder(forward, MTF_PHASE_FORWARD);
    add_product(&b, "turned", &(MtfShape){ .rank = 2, .dims = { B, A } });
    add_product(&b, "vector", &(MtfShape){ .rank = 1, .dims = { A } });
    assert_true(mtf_builder_end(&b, NULL));
    for (int i = 0; i < (int)forward->operations->len; i++) {
        MtfOperation *op = mtf_graph_operation(forward, i);
        op->stage = strcmp(op->name, "y/w") == 0 ? first : others;
    }
    MtfOptimizer optimizer = optimizer_of("sgd");
    optimizer.clip_norm = 1;
    Case c = begin(forward, optimizer);
    const char *const inputs[] = { "x/w", "x/turned", "x/vector" };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < (i < 2 ? 4 : 2); j++)
            mtf_reference_find(c.reference, inputs[i])[j] = 1;
    mtf_reference_run(c.reference, 0);
    expect(&c, "clip", 1, (double[]){ 1 / sqrt(10) });
    return c;
}

/* 2 squares meet in one sum, then 2 groups. */
TEST(squares_are_added_by_their_set_of_dimensions) {
    Case c = clipped(0, 0);
    const MtfGraph *t = c.training;
    int group = mtf_graph_find_operation(t, "clip/sum/a,b");
    int total = mtf_graph_find_operation(t, "clip/sum");
    assert_int_equal(mtf_graph_operation(t, group)->n_inputs, 2);
    assert_int_equal(mtf_graph_operation(t, total)->n_inputs, 2);
    assert_int_equal(mtf_graph_operation(t, total)->phase, MTF_PHASE_CLIP);
    end(&c);
}

/* So that one number goes from stage to stage, not one a variable. */
TEST(squares_of_a_stage_are_added_there) {
    Case c = clipped(1, 2);
    const MtfGraph *t = c.training;
    mtf_graph_complete_stages(c.training);
    int own = mtf_graph_find_operation(t, "clip/sum/stage/2");
    int total = mtf_graph_find_operation(t, "clip/sum");
    assert_int_equal(mtf_graph_operation(t, own)->n_inputs, 2);
    assert_int_equal(mtf_graph_operation(t, own)->stage, 2);
    assert_int_equal(mtf_graph_operation(t, total)->n_inputs, 2);
    assert_int_equal(mtf_graph_find_operation(t, "clip/sum/a,b"), -1);
    end(&c);
}

TEST(every_variable_and_its_state_have_one_update) {
    Case c = begin(forward_graph(2), optimizer_of("adamw"));
    assert_int_equal(c.training->updates->len, 3);
    assert_null(c.training->optimizer.kind);
    for (guint i = 0; i < 3; i++) {
        const MtfUpdate *update = &g_array_index(c.training->updates, MtfUpdate, i);
        const MtfTensor *variable = mtf_graph_tensor(c.training, update->variable);
        const MtfTensor *value = mtf_graph_tensor(c.training, update->value);
        assert_int_equal(variable->source, MTF_SOURCE_VARIABLE);
        assert_int_equal(variable->memory, i == 0 ? MTF_MEMORY_VARIABLE : MTF_MEMORY_OPTIMIZER);
        assert_int_equal(value->memory, variable->memory);
        assert_true(mtf_shape_equal(&value->shape, &variable->shape));
    }
    assert_int_equal(mtf_graph_parameters(c.training), 4);
    end(&c);
}

/* What a forward graph assigns to a frozen variable is its value after the step, behind the loss. */
TEST(assignments_are_copied_among_the_updates) {
    MtfGraph *forward = forward_graph(2);
    MtfBuilder b = mtf_builder(forward, MTF_PHASE_FORWARD);
    MtfShape shape = { .rank = 1, .dims = { A } };
    int running =
        mtf_graph_add_variable(forward, "running", &shape, MTF_F64,
                               (MtfInit){ MTF_INIT_CONSTANT, 3 }, MTF_MEMORY_VARIABLE, NULL);
    mtf_graph_tensor(forward, running)->frozen = true;
    b.attributes.factor = 2;
    int twice = mtf_build(&b, MTF_OP_SCALE, "twice", NULL, 1, &running);
    mtf_graph_add_update(forward, running, twice);
    assert_true(mtf_builder_end(&b, NULL));
    assert_false(mtf_graph_is_training(forward));
    Case c = begin(forward, optimizer_of("sgd"));
    assert_true(mtf_graph_is_training(c.training));
    assert_int_equal(c.training->updates->len, 2);
    mtf_reference_run(c.reference, 0);
    expect(&c, "next/running", 2, (double[]){ 6, 6 });
    int next = mtf_graph_find_operation(c.training, "next/running");
    int loss = mtf_graph_tensor(c.training, c.training->loss)->producer;
    assert_int_equal(mtf_graph_operation(c.training, next)->phase, MTF_PHASE_UPDATE);
    assert_true(next > loss);
    end(&c);
}

TEST(without_an_optimizer_only_gradients_are_made) {
    Case c = begin(forward_graph(2), (MtfOptimizer){ 0 });
    assert_int_equal(c.training->updates->len, 0);
    assert_true(mtf_graph_find_tensor(c.training, "grad/w") >= 0);
    assert_int_equal(mtf_graph_find_tensor(c.training, "update/w"), -1);
    end(&c);
}

TEST(precision_changes_every_float_tensor) {
    Case c = begin(forward_graph(2), optimizer_of("adam"));
    mtf_graph_set_precision(c.training, MTF_F32);
    for (int t = 0; t < (int)c.training->tensors->len; t++)
        assert_int_equal(mtf_graph_tensor(c.training, t)->dtype, MTF_F32);
    end(&c);
}

static void expect_error(MtfOptimizer optimizer, const char *message) {
    g_autoptr(MtfGraph) graph = forward_graph(1);
    g_autoptr(GError) error = NULL;
    graph->optimizer = optimizer;
    assert_null(mtf_training_graph(graph, &error));
    assert_string_equal(error->message, message);
}

TEST(unknown_kinds_and_schedules_are_errors) {
    MtfOptimizer optimizer = { .kind = g_strdup("tiger") };
    expect_error(optimizer, "optimizer \"tiger\" is not known; the kinds are sgd, momentum, adam, "
                            "adamw, adafactor, lion, lamb, muon");
    optimizer = (MtfOptimizer){ .kind = g_strdup("sgd"), .schedule = g_strdup("steps") };
    expect_error(optimizer, "schedule \"steps\" is not known; the schedules are constant, "
                            "linear_warmup, inverse_sqrt, cosine, linear, polynomial, wsd, step");
}

/* What a trained variable becomes is changed behind the loss: of a graph that is a whole step an operation of
 * phase "update" makes it, and another graph may only change frozen ones. */
TEST(a_trained_variable_is_changed_behind_the_loss) {
    static const struct {
        const char *frozen, *phase;
        bool right;
    } cases[] = { { "", "", false },
                  { "", ", 'phase': 'update'", true },
                  { ", 'frozen': true", "", true } };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "{'meshtf_graph': 1, 'name': 'g', 'dimensions': {'n': 3}, 'inputs': [{'name': 'x', 'dims': ['n'], "
            "'feed': 'features'}], 'variables': [{'name': 'w', 'dims': ['n'], 'init': 'ones'%s}], 'operations': ["
            "{'name': 'y', 'op': 'multiply', 'inputs': ['x', 'w']%s}, "
            "{'name': 'l', 'op': 'reduce_mean', 'inputs': ['y'], 'dims': []}], 'loss': 'l', "
            "'updates': [{'variable': 'w', 'value': 'y'}]}",
            cases[i].frozen, cases[i].phase);
        g_autoptr(MtfGraph) graph = mtf_test_graph(text);
        g_autoptr(GError) error = NULL;
        assert_int_equal(mtf_training_graph_check(graph, &error), cases[i].right);
        if (!cases[i].right)
            assert_string_equal(
                error->message,
                "variable \"w\" is trained, and becomes \"y\": say \"frozen\" of it where nothing "
                "else is to change it, or that what makes \"y\" is of phase \"update\" where the "
                "graph is a whole training step");
    }
}
