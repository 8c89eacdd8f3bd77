// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutions and pools against the reference, which asks every pair of elements whether they meet:
 * random windows, strides, dilations, padding, groups, orders of dimensions and cuts. */
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/windows/unrolled_conv.h"
#include "tests/support/cases/kernel_slices.h"
#include "tests/support/reference/reference.h"

#include <math.h>

typedef struct {
    GRand *rand;
    MtfGraph *graph;
    MtfDtype dtype;
    int kind;
    MtfAttributes attributes;
    MtfShape side[3]; /* larger, smaller, filter */
    int examples;     /* where there are many */
} Case;

static int below(const Case *c, int n) {
    return g_rand_int_range(c->rand, 0, n);
}

static int add_dim(const Case *c, char letter, int w, int64_t size) {
    g_autofree char *name = g_strdup_printf("%c%d", letter, w);
    return mtf_graph_add_dimension(c->graph, name, size, NULL);
}

/* A dimension that each of the sides in `sides`, a bit each, has at a place of its own. */
static void add_shared(Case *c, unsigned sides, int dim) {
    for (int s = 0; s < 3; s++) {
        if (!(sides >> s & 1))
            continue;
        int place = below(c, c->side[s].rank + 1);
        mtf_shape_append(&c->side[s], dim);
        for (int i = c->side[s].rank - 1; i > place; i--)
            c->side[s].dims[i] = c->side[s].dims[i - 1];
        c->side[s].dims[place] = dim;
    }
}

/* Of random sizes, as many windows as those begin and end within the padding; those of pools meet an element. */
static void add_window(Case *c, int w) {
    MtfWindow *window = &c->attributes.windows[w];
    bool small = c->attributes.n_windows == 3;
    int places = 1 + below(c, small ? 2 : 4);
    *window = (MtfWindow){ .kernel = -1,
                           .size = places,
                           .stride = 1 + below(c, 3),
                           .dilation = small ? 1 : 1 + below(c, 2),
                           .before = below(c, 4),
                           .after = below(c, 4) };
    bool pools = mtf_operation_row(c->kind)->products != MTF_PRODUCTS_CONV;
    int extent = (places - 1) * window->dilation + 1;
    window->before = pools ? MIN(window->before, extent - 1) : window->before;
    window->after = pools ? MIN(window->after, extent - 1) : window->after;
    int drawn = 1 + below(c, small ? 2 : 7);
    int least = pools ? window->dilation : 1; /* of fewer a window may step over all */
    int large = MAX(MAX(drawn, least), extent - window->before - window->after);
    int room = large + window->before + window->after - extent;
    int large_dim = add_dim(c, 'l', w, large);
    int small_dim = add_dim(c, 's', w, room / window->stride + 1);
    bool spreads = mtf_operation_row(c->kind)->windows == MTF_WINDOWS_SPREAD;
    window->from = spreads ? small_dim : large_dim;
    window->to = spreads ? large_dim : small_dim;
    add_shared(c, 1, large_dim);
    add_shared(c, 2, small_dim);
    if (pools)
        return;
    window->kernel = add_dim(c, 'k', w, places);
    window->size = 1;
    add_shared(c, 4, window->kernel);
}

/* Examples, channels read, channels made and groups: the sides that have each. */
static void make_shapes(Case *c) {
    bool filtered = mtf_operation_row(c->kind)->products == MTF_PRODUCTS_CONV;
    static const unsigned sides[] = { 3, 5, 6, 7 };
    c->attributes = MTF_NO_ATTRIBUTES;
    c->attributes.n_windows = 1 + below(c, 3);
    for (int w = 0; w < c->attributes.n_windows; w++)
        add_window(c, w);
    for (int i = 0; i < (filtered ? 4 : 1); i++)
        if (below(c, 3) > 0 && (i < 3 || c->attributes.n_windows < 3))
            add_shared(c, filtered ? sides[i] : 3, add_dim(c, 'd', i, 1 + below(c, 3)));
    c->attributes.counted = filtered ? 0 : below(c, 2);
}

/* More than a float64 kernel lays out at once, 2^17 elements: 3 x 1 of 1400 channels at 36 positions. */
static void make_deep_shapes(Case *c) {
    static const unsigned sides[] = { 3, 5, 6 };
    static const int sizes[] = { 1, 1400, 1 };
    c->attributes = MTF_NO_ATTRIBUTES;
    c->attributes.n_windows = 2;
    for (int i = 0; i < 3; i++)
        add_shared(c, sides[i], add_dim(c, 'd', i, sizes[i]));
    for (int w = 0; w < 2; w++) {
        int large = add_dim(c, 'l', w, 6), small = add_dim(c, 's', w, 6);
        bool spreads = mtf_operation_row(c->kind)->windows == MTF_WINDOWS_SPREAD;
        c->attributes.windows[w] = (MtfWindow){ .kernel = add_dim(c, 'k', w, 3 - 2 * w),
                                                .size = 1,
                                                .from = spreads ? small : large,
                                                .to = spreads ? large : small,
                                                .stride = 1,
                                                .dilation = 1,
                                                .before = 1 - w,
                                                .after = 1 - w };
        add_shared(c, 1, large);
        add_shared(c, 2, small);
        add_shared(c, 4, c->attributes.windows[w].kernel);
    }
}

/* A window of one or two positions of the smaller side. */
static MtfWindow short_window(const Case *c, int w, int *large, int *small) {
    int places = 1 + below(c, 3), dilation = 1 + below(c, 2), stride = 1 + below(c, 2);
    int before = below(c, places), after = below(c, places);
    int extent = (places - 1) * dilation + 1, positions = 1 + below(c, 2);
    int size = MAX(1, (positions - 1) * stride + extent - before - after);
    positions = MAX(0, size + before + after - extent) / stride + 1;
    after = MAX(after, extent - size - before);
    *large = add_dim(c, 'l', w, size);
    *small = add_dim(c, 's', w, positions);
    bool spreads = mtf_operation_row(c->kind)->windows == MTF_WINDOWS_SPREAD;
    return (MtfWindow){ .kernel = add_dim(c, 'k', w, places),
                        .size = 1,
                        .from = spreads ? *small : *large,
                        .to = spreads ? *large : *small,
                        .stride = stride,
                        .dilation = dilation,
                        .before = before,
                        .after = after };
}

/* More windows in a row than a kernel works on at once, seven elements of which each meets, three apart, with much padding
 * on both sides: channels beside. */
static void make_padded_shapes(Case *c) {
    int stride = 2 + below(c, 2), before = 9 + below(c, 10), after = 3 + below(c, 16);
    int windows = 29 + below(c, 20), extent = 19;
    int small = add_dim(c, 's', 0, windows), groups = add_dim(c, 'g', 0, 3);
    int large = add_dim(c, 'l', 0, (windows - 1) * stride + extent - before - after);
    bool spreads = mtf_operation_row(c->kind)->windows == MTF_WINDOWS_SPREAD;
    c->attributes = MTF_NO_ATTRIBUTES;
    c->attributes.n_windows = 1;
    c->attributes.windows[0] = (MtfWindow){ .kernel = add_dim(c, 'k', 0, 7),
                                            .size = 1,
                                            .from = spreads ? small : large,
                                            .to = spreads ? large : small,
                                            .stride = stride,
                                            .dilation = 3,
                                            .before = before,
                                            .after = after };
    mtf_shape_append(&c->side[0], large);
    mtf_shape_append(&c->side[1], small);
    add_shared(c, 6, add_dim(c, 'd', 0, 2));
    for (int s = 0; s < 3; s++)
        mtf_shape_append(&c->side[s], groups);
    mtf_shape_append(&c->side[2], c->attributes.windows[0].kernel);
}

/* Rows of one or two positions with channels last, as networks have them behind their last strides; more
 * examples than are multiplied at a time; a filter in any order in which it is a matrix. */
static void make_short_rows(Case *c) {
    int n = 1 + below(c, 3), order = below(c, 4), large, small;
    c->examples = below(c, 4) == 0 ? 300 : 1 + below(c, 9);
    int examples = add_dim(c, 'd', 0, c->examples);
    int read = add_dim(c, 'd', 1, 1 + below(c, 9)), written = add_dim(c, 'd', 2, 1 + below(c, 9));
    c->attributes = MTF_NO_ATTRIBUTES;
    c->attributes.n_windows = n;
    for (int s = 0; s < 2; s++)
        mtf_shape_append(&c->side[s], examples);
    for (int i = 0; i < (order == 0 ? 2 : order < 3); i++)
        mtf_shape_append(&c->side[2], order == 2 || i == 1 ? read : written);
    for (int w = 0; w < n; w++) {
        c->attributes.windows[w] = short_window(c, w, &large, &small);
        mtf_shape_append(&c->side[0], large);
        mtf_shape_append(&c->side[1], small);
        mtf_shape_append(&c->side[2], c->attributes.windows[w].kernel);
    }
    mtf_shape_append(&c->side[0], read);
    mtf_shape_append(&c->side[1], written);
    if (order == 1 || order == 3)
        mtf_shape_append(&c->side[2], read);
    if (order >= 2)
        mtf_shape_append(&c->side[2], written);
}

typedef void (*MakeShapes)(Case *c);

static int add_operand(const Case *c, const char *name, int side, MtfDtype dtype) {
    return mtf_graph_add_input(c->graph, name, &c->side[side], dtype,
                               dtype == MTF_I32 ? MTF_FEED_LABELS : MTF_FEED_FEATURES, NULL);
}

static void make_operation(Case *c) {
    static const int read[][3] = { [MTF_WINDOWS_GATHER] = { 0, 2, 1 },
                                   [MTF_WINDOWS_SPREAD] = { 1, 2, 0 },
                                   [MTF_WINDOWS_BACK] = { 1, 1, 0 },
                                   [MTF_WINDOWS_FILTER] = { 0, 1, 2 } };
    const MtfOperationRow *row = mtf_operation_row(c->kind);
    const int *side = read[row->windows];
    g_autoptr(GError) error = NULL;
    int inputs[2], n = row->max_inputs;
    for (int k = 0; k < n; k++)
        inputs[k] = add_operand(c, k == 0 ? "a" : "b", side[k],
                                row->integer_inputs >> k & 1 ? MTF_I32 : c->dtype);
    MtfNewOperation operation = { .name = "op",
                                  .kind = c->kind,
                                  .n_inputs = n,
                                  .inputs = inputs,
                                  .shape = &c->side[side[2]],
                                  .attributes = c->attributes };
    if (mtf_graph_add_operation(c->graph, &operation, &error) < 0)
        fail_msg("%s", error->message);
}

static double draw_value(const Case *c, const MtfTensor *tensor) {
    double value = g_rand_double_range(c->rand, -3, 3);
    if (tensor->dtype == MTF_I32)
        return below(c, 9);
    return below(c, 8) == 0           ? rint(value)
           : tensor->dtype == MTF_F64 ? value
           : tensor->dtype == MTF_F32 ? (double)(float)value
                                      : (double)mtf_bf16_wide(mtf_bf16_rounded((float)value));
}

static void compare(const Case *c, const MtfTensor *tensor, const double *expected,
                    const double *actual) {
    double tolerance = tensor->dtype == MTF_F64 ? 1e-11 : tensor->dtype == MTF_F32 ? 1e-4 : 0;
    for (int64_t i = 0; i < mtf_graph_elements(c->graph, &tensor->shape); i++) {
        double bound =
            tolerance * fmax(1, c->examples / 100.0); /* sums of so many terms and more */
        if (tensor->dtype == MTF_BF16)
            bound = 1e-4 + ldexp(fabs(expected[i]), -8);
        if (expected[i] != actual[i] && !(fabs(expected[i] - actual[i]) <= bound))
            fail_msg("%s: element %d of \"%s\" is %.17g, not %.17g",
                     mtf_operation_row(c->kind)->name, (int)i, tensor->name, actual[i],
                     expected[i]);
    }
}

static void run_case(int kind, guint32 seed, MtfDtype dtype, MakeShapes make) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(MtfGraph) graph = mtf_graph_new("case");
    Case c = { .rand = rand, .graph = graph, .dtype = dtype, .kind = kind };
    make(&c);
    make_operation(&c);
    const MtfOperation *op = mtf_graph_operation(graph, 0);
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 7);
    for (int k = 0; k < op->n_inputs; k++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, op->inputs[k]);
        for (int64_t i = 0; i < mtf_graph_elements(graph, &tensor->shape); i++)
            reference->values[op->inputs[k]][i] = draw_value(&c, tensor);
    }
    mtf_reference_run(reference, 4);
    MtfSlicing slicing = { .scratch_limit = -1, .seed = 7, .step = 5 };
    for (int i = 0; i < MTF_MAX_INDEXES; i++)
        slicing.parts[i] = dtype == MTF_BF16 || below(&c, 2) ? 1 : 2 + below(&c, 2);
    double *results[MTF_MAX_OUTPUTS];
    mtf_kernel_run_sliced(graph, 0, reference->values, &slicing, results);
    for (int j = 0; j < op->n_outputs; j++) {
        compare(&c, mtf_graph_tensor(graph, op->outputs[j]), reference->values[op->outputs[j]],
                results[j]);
        g_free(results[j]);
    }
}

/* Those that sample have no list of windows in their attributes: table/test_kernel_rows.c draws them. */
TEST(every_windowed_row_matches_the_reference) {
    static const MtfDtype types[] = { MTF_F32, MTF_F64, MTF_BF16 };
    for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
        const MtfOperationRow *row = mtf_operation_row(kind);
        for (int i = 0; i < 90 && row->windows != MTF_WINDOWS_NONE && !row->samples; i++)
            run_case(kind, (guint32)(1000 * kind + i), types[i % 3], make_shapes);
    }
}

TEST(what_is_too_much_for_one_product_is_right_in_several) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        for (int i = 0; i < 2 && mtf_operation_row(kind)->products == MTF_PRODUCTS_CONV; i++)
            run_case(kind, (guint32)i, MTF_F64, make_deep_shapes);
}

TEST(short_rows_match_the_reference) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        for (int i = 0; i < 80 && mtf_operation_row(kind)->products == MTF_PRODUCTS_CONV; i++)
            run_case(kind, (guint32)(1000 * kind + i), MTF_F32, make_short_rows);
}

/* What is read beyond an edge is what memory holds there, which only some draws show. */
TEST(long_rows_with_much_padding_match_the_reference) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++)
        for (int i = 0; i < 100 && mtf_operation_row(kind)->products == MTF_PRODUCTS_CONV; i++)
            run_case(kind, (guint32)(1000 * kind + i), MTF_F32, make_padded_shapes);
}

/* A side with channels last: 4 examples of `row` by `row` positions; or a filter of 3 by 3. */
static MtfConvOperand side_of(MtfDtype dtype, int64_t row, int64_t channels) {
    return (MtfConvOperand){ .dtype = dtype,
                             .rank = 4,
                             .size = { 4, channels, row, row },
                             .stride = { row * row * channels, 1, row * channels, channels } };
}

static bool is_unrolled(MtfDtype dtype, int64_t row, int64_t gap) {
    MtfConvolution c = { .made = MTF_CONV_SMALL,
                         .windows = 2,
                         .stride = { 1, 1 },
                         .dilation = { 1, 1 },
                         .before = { 1, 1 },
                         .after = { 1, 1 },
                         .side = { side_of(dtype, row, 8),
                                   side_of(dtype, row, 6),
                                   { .dtype = dtype,
                                     .rank = 4,
                                     .size = { 6, 8, 3, 3 },
                                     .stride = { 72 + gap, 9, 3, 1 } } } };
    int64_t bytes;
    g_autofree void *prepared = mtf_unrolled_conv_prepare(&c, &bytes);
    return prepared != NULL;
}

TEST(rows_of_two_are_multiplied_at_once_where_sides_are_matrices) {
    assert_true(is_unrolled(MTF_F32, 2, 0));
    assert_true(is_unrolled(MTF_F32, 1, 0));
    assert_false(is_unrolled(MTF_F32, 3, 0));
    assert_false(is_unrolled(MTF_F64, 2, 0));
    assert_false(is_unrolled(MTF_F32, 2, 1));
}

/* Draws where some place of the filter meets no element in any window; what stands there without care
 * is what memory held before, so other draws come between. */
TEST(a_place_that_meets_padding_alone_gets_no_gradient_in_bfloat16) {
    for (guint32 i = 0; i < 300; i++) {
        run_case(MTF_OP_CONV_FILTER_GRAD, 6003286 + i, MTF_BF16, make_shapes);
        run_case(MTF_OP_CONV_FILTER_GRAD, 6003002, MTF_BF16, make_shapes);
        run_case(MTF_OP_CONV_FILTER_GRAD, 6003585, MTF_BF16, make_shapes);
    }
}
