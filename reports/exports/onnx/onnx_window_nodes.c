// SPDX-License-Identifier: GPL-3.0-or-later
/* Convolutions and pools, as ONNX nodes on [examples, channels, space …]: dimensions of one role are
 * merged before, and stand apart again behind. */
#include "layouts/base/error.h"
#include "layouts/graph/window.h"
#include "reports/exports/onnx/onnx_nodes.h"

#define MOST_GROUPS (4 + MTF_MAX_WINDOWS)

static const MtfShape *shape_of(const MtfOnnxNodes *e, int k) {
    return &mtf_node_input(e, k)->shape;
}

static bool has(const MtfShape *shape, int dim) {
    return mtf_shape_find(shape, dim) >= 0;
}

/* The dimensions of `of` outside windows that are in `a`, if that is asked, and in `b`, if that is. */
static MtfShape role(const MtfOperation *op, const MtfShape *of, const MtfShape *a, bool in_a,
                     const MtfShape *b, bool in_b) {
    MtfShape found = { 0 };
    for (int i = 0; i < of->rank; i++) {
        int dim = of->dims[i];
        if (!mtf_window_has(&op->attributes, dim) && has(a, dim) == in_a && has(b, dim) == in_b)
            mtf_shape_append(&found, dim);
    }
    return found;
}

static MtfShape both(const MtfShape *a, const MtfShape *b) {
    MtfShape all = *a;
    for (int i = 0; i < b->rank; i++)
        mtf_shape_append(&all, b->dims[i]);
    return all;
}

/* Groups of a shape: two of channels or others, then one for each window's side. */
static int with_windows(const MtfOperation *op, MtfShape *groups, int n,
                        int (*side)(const MtfWindow *)) {
    for (int w = 0; w < op->attributes.n_windows; w++)
        groups[n++] = (MtfShape){ .rank = 1, .dims = { side(&op->attributes.windows[w]) } };
    return n;
}

static int read_side(const MtfWindow *window) {
    return window->from;
}

static int made_side(const MtfWindow *window) {
    return window->to;
}

static int kernel_side(const MtfWindow *window) {
    return window->kernel;
}

/* Attributes of a node that goes over windows: what the smaller side needs of padding behind. */
typedef struct {
    int64_t strides[MTF_MAX_WINDOWS], dilations[MTF_MAX_WINDOWS], pads[2 * MTF_MAX_WINDOWS],
        more[MTF_MAX_WINDOWS], places[MTF_MAX_WINDOWS];
    bool extends; /* some `more` is not 0 */
    bool spare;   /* the larger side has room for more windows than there are */
} Going;

static Going going_over(const MtfOnnxNodes *e) {
    const MtfOperation *op = mtf_node_operation(e);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    int n = op->attributes.n_windows;
    Going g = { .extends = false };
    for (int w = 0; w < n; w++) {
        const MtfWindow *window = &op->attributes.windows[w];
        int64_t large = mtf_node_size(e, mtf_window_larger(row, window));
        int64_t small = mtf_node_size(e, mtf_window_smaller(row, window));
        g.places[w] = mtf_window_places(e->graph, window);
        int64_t reach = (small - 1) * window->stride + (g.places[w] - 1) * window->dilation + 1;
        int64_t behind = reach - window->before - large;
        g.strides[w] = window->stride;
        g.dilations[w] = window->dilation;
        g.pads[w] = window->before;
        g.pads[n + w] = MAX(0, behind);
        g.more[w] = MAX(0, -behind);
        g.extends |= g.more[w] > 0;
        g.spare |= -behind >= window->stride;
    }
    return g;
}

static void put_going(GByteArray *node, const Going *g, int n) {
    mtf_node_put_ints(node, "strides", g->strides, n);
    mtf_node_put_ints(node, "pads", g->pads, 2 * n);
}

static bool refuse_spare(const MtfOnnxNodes *e, const Going *g) {
    return !g->spare || mtf_input_error(e->error,
                                        "operation \"%s\" cannot be said in ONNX: it has fewer "
                                        "windows than there is room for",
                                        mtf_node_operation(e)->name);
}

/* x with [examples], [groups, channels] and space, and the filter with the channels that its operator
 * counts groups by first. */
static bool write_convolution(MtfOnnxNodes *e, const char *name, bool spreads) {
    const MtfOperation *op = mtf_node_operation(e);
    const MtfShape *x = shape_of(e, 0), *filter = shape_of(e, 1), *y = &mtf_node_result(e)->shape;
    int n = op->attributes.n_windows;
    Going going = going_over(e);
    MtfShape examples = role(op, x, filter, false, y, true),
             apart = role(op, x, filter, true, y, true), read = role(op, x, filter, true, y, false),
             made = role(op, y, filter, true, x, false);
    MtfShape reads = both(&apart, &read), makes = both(&apart, &made);
    MtfShape of_x[MOST_GROUPS] = { examples, reads }, of_y[MOST_GROUPS] = { examples, makes },
             of_filter[MOST_GROUPS] = { spreads ? reads : makes, spreads ? made : read };
    if (!spreads && !refuse_spare(e, &going))
        return false;
    const char *inputs[] = {
        mtf_node_merged(e, mtf_node_input(e, 0)->name, x, of_x,
                        with_windows(op, of_x, 2, read_side)),
        mtf_node_merged(e, mtf_node_input(e, 1)->name, filter, of_filter,
                        with_windows(op, of_filter, 2, kernel_side)),
    };
    const char *result = mtf_node_step(e);
    GByteArray *node = mtf_node_begin(name, 2, inputs, result);
    put_going(node, &going, n);
    mtf_node_put_ints(node, "dilations", going.dilations, n);
    mtf_node_put_int(node, "group", mtf_graph_elements(e->graph, &apart));
    if (spreads && going.extends)
        mtf_node_put_ints(node, "output_padding", going.more, n);
    mtf_node_put(e, node);
    return mtf_node_last_unmerged(e, result, of_y, with_windows(op, of_y, 2, made_side));
}

static bool write_conv(MtfOnnxNodes *e) {
    return write_convolution(e, "Conv", false);
}

static bool write_conv_transpose(MtfOnnxNodes *e) {
    return write_convolution(e, "ConvTranspose", true);
}

/* All that is not space is one example's or another's, of one channel. */
static bool write_pool(MtfOnnxNodes *e, const char *name, bool counts) {
    const MtfOperation *op = mtf_node_operation(e);
    const MtfShape *x = shape_of(e, 0), nothing = { 0 };
    int n = op->attributes.n_windows;
    Going going = going_over(e);
    MtfShape others = role(op, x, &nothing, false, &nothing, false);
    MtfShape of_x[MOST_GROUPS] = { others, nothing }, of_y[MOST_GROUPS] = { others, nothing };
    if (!refuse_spare(e, &going))
        return false;
    const char *merged = mtf_node_merged(e, mtf_node_input(e, 0)->name, x, of_x,
                                         with_windows(op, of_x, 2, read_side));
    const char *result = mtf_node_step(e);
    GByteArray *node = mtf_node_begin(name, 1, &merged, result);
    mtf_node_put_ints(node, "kernel_shape", going.places, n);
    put_going(node, &going, n);
    if (counts)
        mtf_node_put_int(node, "count_include_pad", op->attributes.counted == 1);
    else
        mtf_node_put_ints(node, "dilations", going.dilations, n);
    mtf_node_put(e, node);
    return mtf_node_last_unmerged(e, result, of_y, with_windows(op, of_y, 2, made_side));
}

static bool write_max_pool(MtfOnnxNodes *e) {
    return write_pool(e, "MaxPool", false);
}

static bool write_average_pool(MtfOnnxNodes *e) {
    return write_pool(e, "AveragePool", true);
}

const MtfOnnxWriter mtf_onnx_windows[] = {
    { MTF_OP_CONV, write_conv },
    { MTF_OP_CONV_TRANSPOSE, write_conv_transpose },
    { MTF_OP_MAX_POOL, write_max_pool },
    { MTF_OP_AVERAGE_POOL, write_average_pool },
    { 0, NULL },
};
