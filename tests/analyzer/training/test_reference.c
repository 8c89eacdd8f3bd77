// SPDX-License-Identifier: GPL-3.0-or-later
/* The witness itself against numbers worked out by hand. */
#include "tests/support/cmocka.h"

#include "tests/support/reference/reference.h"

#include <math.h>

static const MtfShape scalar = { 0 };

static MtfGraph *new_graph(void) {
    MtfGraph *graph = mtf_graph_new("test");
    assert_int_equal(mtf_graph_add_dimension(graph, "a", 2, NULL), 0);
    assert_int_equal(mtf_graph_add_dimension(graph, "b", 3, NULL), 1);
    assert_int_equal(mtf_graph_add_dimension(graph, "c", 3, NULL), 2);
    return graph;
}

static MtfShape shape_of(int rank, const int *dims) {
    MtfShape shape = { .rank = rank };
    for (int i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    return shape;
}

#define SHAPE(...) shape_of((int)G_N_ELEMENTS(((int[]){ __VA_ARGS__ })), (int[]){ __VA_ARGS__ })

static int input_of(MtfGraph *graph, const char *name, MtfShape shape, MtfDtype dtype) {
    int tensor = mtf_graph_add_input(graph, name, &shape, dtype, MTF_FEED_FEATURES, NULL);
    assert_true(tensor >= 0);
    return tensor;
}

static int apply(MtfGraph *graph, int kind, int x, int y, const MtfShape *shape,
                 MtfAttributes attributes) {
    GError *error = NULL;
    g_autofree char *name = g_strdup_printf("op%u", graph->operations->len);
    MtfNewOperation operation = { .name = name,
                                  .kind = kind,
                                  .n_inputs = y >= 0 ? 2 : (x >= 0 ? 1 : 0),
                                  .inputs = (int[]){ x, y },
                                  .shape = shape,
                                  .attributes = attributes };
    int tensor = mtf_graph_add_operation(graph, &operation, &error);
    if (error != NULL)
        fail_msg("%s", error->message);
    return tensor;
}

static void set(MtfReference *reference, int tensor, int n, const double *values) {
    for (int i = 0; i < n; i++)
        reference->values[tensor][i] = values[i];
}

#define SET(reference, tensor, ...)                                        \
    set(reference, tensor, (int)G_N_ELEMENTS(((double[]){ __VA_ARGS__ })), \
        (double[]){ __VA_ARGS__ })

static void expect(const MtfReference *reference, int tensor, int n, const double *values) {
    for (int i = 0; i < n; i++)
        if (!(fabs(reference->values[tensor][i] - values[i]) <= 1e-9 * fmax(1, fabs(values[i]))))
            fail_msg("element %d is %.12g, not %.12g", i, reference->values[tensor][i], values[i]);
}

#define EXPECT(reference, tensor, ...)                                        \
    expect(reference, tensor, (int)G_N_ELEMENTS(((double[]){ __VA_ARGS__ })), \
           (double[]){ __VA_ARGS__ })

/* x[a,b] = 1 2 3 / 4 5 6, y[b] = 1 10 100: x y = 321 654; the row sums 6 15; all 21. */
TEST(products_and_sums_run_over_what_the_output_lacks) {
    g_autoptr(MtfGraph) graph = new_graph();
    int x = input_of(graph, "x", SHAPE(0, 1), MTF_F64), y = input_of(graph, "y", SHAPE(1), MTF_F64);
    MtfShape a = SHAPE(0), ba = SHAPE(1, 0);
    int product = apply(graph, MTF_OP_EINSUM, x, y, &a, MTF_NO_ATTRIBUTES);
    int sums = apply(graph, MTF_OP_REDUCE_SUM, x, -1, &a, MTF_NO_ATTRIBUTES);
    int mean = apply(graph, MTF_OP_REDUCE_MEAN, x, -1, &scalar, MTF_NO_ATTRIBUTES);
    int most = apply(graph, MTF_OP_REDUCE_MAX, x, -1, &a, MTF_NO_ATTRIBUTES);
    int turned = apply(graph, MTF_OP_TRANSPOSE, x, -1, &ba, MTF_NO_ATTRIBUTES);
    int sum = apply(graph, MTF_OP_SUBTRACT, x, y, NULL, MTF_NO_ATTRIBUTES);
    g_autoptr(MtfReference) r = mtf_reference_new(graph, 1);
    SET(r, x, 1, 2, 3, 4, 5, 6);
    SET(r, y, 1, 10, 100);
    mtf_reference_run(r, 0);
    EXPECT(r, product, 321, 654);
    EXPECT(r, sums, 6, 15);
    EXPECT(r, mean, 3.5);
    EXPECT(r, most, 3, 6);
    EXPECT(r, turned, 1, 4, 2, 5, 3, 6);
    EXPECT(r, sum, 0, -8, -97, 3, -5, -94);
}

/* Table rows of b are 1 2 / 3 4 / 5 6; ids 2 0 2. Its gradient adds the rows of equal ids. */
TEST(lookups_choose_and_their_gradients_add) {
    g_autoptr(MtfGraph) graph = new_graph();
    int table = input_of(graph, "table", SHAPE(1, 0), MTF_F64);
    int ids = input_of(graph, "ids", SHAPE(2), MTF_I32);
    MtfShape ca = SHAPE(2, 0), ba = SHAPE(1, 0);
    int rows = apply(graph, MTF_OP_EMBEDDING, table, ids, &ca, MTF_NO_ATTRIBUTES);
    int gradient = apply(graph, MTF_OP_EMBEDDING_GRAD, ids, rows, &ba, MTF_NO_ATTRIBUTES);
    g_autoptr(MtfReference) r = mtf_reference_new(graph, 1);
    SET(r, table, 1, 2, 3, 4, 5, 6);
    SET(r, ids, 2, 0, 2);
    mtf_reference_run(r, 0);
    EXPECT(r, rows, 5, 6, 1, 2, 5, 6);
    EXPECT(r, gradient, 1, 2, 0, 0, 10, 12);
}

/* Position b looks at c: masked where c > b. Renamed to c, element b sits at place c. */
TEST(masks_and_names_go_by_dimension) {
    g_autoptr(MtfGraph) graph = new_graph();
    int x = input_of(graph, "x", SHAPE(1, 2), MTF_F64), y = input_of(graph, "y", SHAPE(1), MTF_F64);
    MtfAttributes causal = MTF_NO_ATTRIBUTES, rename = MTF_NO_ATTRIBUTES;
    causal.query = 1, causal.memory = 2, rename.from = 1, rename.to = 2;
    int masked = apply(graph, MTF_OP_CAUSAL_MASK, x, -1, NULL, causal);
    int zeroed = apply(graph, MTF_OP_CAUSAL_ZERO, x, -1, NULL, causal);
    int renamed = apply(graph, MTF_OP_RENAME, y, -1, NULL, rename);
    g_autoptr(MtfReference) r = mtf_reference_new(graph, 1);
    SET(r, x, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    SET(r, y, 1, 2, 3);
    mtf_reference_run(r, 0);
    EXPECT(r, masked, 1, -1e30, -1e30, 4, 5, -1e30, 7, 8, 9);
    EXPECT(r, zeroed, 1, 0, 0, 4, 5, 0, 7, 8, 9);
    EXPECT(r, renamed, 1, 2, 3);
}

/* softmax(0, ln 2, ln 5) = 1/8 2/8 5/8, the loss of label 1 is ln 4. (1, 2, 3) has mean 2 and
 * variance 2/3: normalised -sqrt(3/2), 0, sqrt(3/2). */
TEST(composites_follow_their_formulas) {
    g_autoptr(MtfGraph) graph = new_graph();
    int x = input_of(graph, "x", SHAPE(1), MTF_F64), z = input_of(graph, "z", SHAPE(1), MTF_F64);
    int label = input_of(graph, "label", scalar, MTF_I32);
    int gain = input_of(graph, "gain", SHAPE(1), MTF_F64);
    MtfAttributes along = MTF_NO_ATTRIBUTES;
    along.dimension = 1;
    int share = apply(graph, MTF_OP_SOFTMAX, x, -1, NULL, along);
    int loss = apply(graph, MTF_OP_SOFTMAX_CROSS_ENTROPY, x, label, &scalar, MTF_NO_ATTRIBUTES);
    int normal = apply(graph, MTF_OP_LAYER_NORM, z, gain, NULL, along);
    g_autoptr(MtfReference) r = mtf_reference_new(graph, 1);
    SET(r, x, 0, log(2), log(5));
    SET(r, label, 1);
    SET(r, z, 1, 2, 3);
    SET(r, gain, 1, 1, 2);
    mtf_reference_run(r, 0);
    EXPECT(r, share, 0.125, 0.25, 0.625);
    EXPECT(r, loss, log(4));
    EXPECT(r, normal, -sqrt(1.5), 0, 2 * sqrt(1.5));
}

/* From 8 over steps 10 … 50 to a quarter of it: at 30 halfway, at 50 and later 2. A drop to half each
 * 20 steps; the last 16 steps of 50 go down from 8, so 42 is halfway. */
TEST(schedules_that_end_follow_their_formulas) {
    g_autoptr(MtfGraph) graph = new_graph();
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.rate = 8, a.warmup = 10, a.total = 50, a.final = 0.25;
    a.power = 2, a.cooldown = 16, a.period = 20, a.drop = 0.5;
    static const char *const names[] = { "linear", "polynomial", "wsd", "step" };
    int rate[4];
    for (int i = 0; i < 4; i++) {
        a.schedule = (char *)names[i];
        rate[i] = apply(graph, MTF_OP_LEARNING_RATE, -1, -1, &scalar, a);
    }
    g_autoptr(MtfReference) r = mtf_reference_new(graph, 1);
    const double expected[][5] = { { 5, 4, 4, 4, 4 },    { 10, 8, 8, 8, 8 },
                                   { 30, 5, 3.5, 8, 4 }, { 42, 3.2, 2.24, 5, 4 },
                                   { 50, 2, 2, 2, 2 },   { 90, 2, 2, 2, 0.5 } };
    for (int i = 0; i < 6; i++) {
        mtf_reference_run(r, (uint64_t)expected[i][0] - 1);
        for (int k = 0; k < 4; k++)
            EXPECT(r, rate[k], expected[i][k + 1]);
    }
}

/* Ten steps of warm-up to 8, then at steps t = 5, 10, 40. Cosine over 10 … 50 with final 0: at 30
 * half of it. */
TEST(schedules_follow_their_formulas) {
    g_autoptr(MtfGraph) graph = new_graph();
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.rate = 8, a.warmup = 10, a.total = 50, a.schedule = (char *)"constant";
    int constant = apply(graph, MTF_OP_LEARNING_RATE, -1, -1, &scalar, a);
    a.schedule = (char *)"linear_warmup";
    int warm = apply(graph, MTF_OP_LEARNING_RATE, -1, -1, &scalar, a);
    a.schedule = (char *)"inverse_sqrt";
    int root = apply(graph, MTF_OP_LEARNING_RATE, -1, -1, &scalar, a);
    a.schedule = (char *)"cosine";
    int cosine = apply(graph, MTF_OP_LEARNING_RATE, -1, -1, &scalar, a);
    g_autoptr(MtfReference) r = mtf_reference_new(graph, 1);
    const double expected[][5] = { { 5, 8, 4, 4, 4 },
                                   { 10, 8, 8, 8, 8 },
                                   { 30, 8, 8, 8 / sqrt(3), 4 },
                                   { 40, 8, 8, 4, 4 - 4 * sqrt(0.5) },
                                   { 90, 8, 8, 8.0 / 3, 0 } };
    for (int i = 0; i < 5; i++) {
        mtf_reference_run(r, (uint64_t)expected[i][0] - 1);
        EXPECT(r, constant, expected[i][1]);
        EXPECT(r, warm, expected[i][2]);
        EXPECT(r, root, expected[i][3]);
        EXPECT(r, cosine, expected[i][4]);
    }
}
