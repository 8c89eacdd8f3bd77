// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/gradient_rule.h"

int mtf_gradient_back(MtfGradient *g, int kind, const char *what, const MtfShape *shape, int n,
                      const int *inputs) {
    g_autofree char *name = g_strdup_printf("back/%s/%s", g->op.name, what);
    return mtf_build(g->b, kind, name, shape, n, inputs);
}

char *mtf_gradient_share_name(const MtfGradient *g, int k) {
    return g_strdup_printf("back/%s/%d", g->op.name, k);
}

bool mtf_gradient_wants(const MtfGradient *g, int k) {
    return k < g->op.n_inputs && g->wanted[g->op.inputs[k]];
}

MtfShape mtf_gradient_shape_of(const MtfGradient *g, int tensor) {
    if (tensor < 0)
        return (MtfShape){ 0 };
    return mtf_graph_tensor(g->b->graph, tensor)->shape;
}

MtfDtype mtf_gradient_dtype_of(const MtfGradient *g, int tensor) {
    return mtf_graph_tensor(g->b->graph, tensor)->dtype;
}

const MtfOperation *mtf_gradient_maker(const MtfGradient *g, int tensor) {
    int producer = mtf_graph_tensor(g->b->graph, tensor)->producer;
    return producer < 0 ? NULL : mtf_graph_operation(g->b->graph, producer);
}

double mtf_gradient_mean_count(const MtfGradient *g) {
    const MtfGraph *graph = g->b->graph;
    MtfShape shape = mtf_gradient_shape_of(g, g->op.inputs[0]),
             rest = mtf_gradient_shape_of(g, g->op.outputs[0]);
    double count = 1;
    for (int i = 0; i < shape.rank; i++)
        if (mtf_shape_find(&rest, shape.dims[i]) < 0)
            count *= (double)mtf_graph_size(graph, shape.dims[i]);
    return count;
}

int mtf_gradient_scaled(MtfGradient *g, const char *what, int x, double factor) {
    g->b->attributes.factor = factor;
    return MTF_BACK(g, MTF_OP_SCALE, what, NULL, x);
}

void mtf_gradient_give_fitted(MtfGradient *g, int k, int share) {
    int x = g->op.inputs[k];
    MtfShape shape = mtf_gradient_shape_of(g, x);
    g_autofree char *name = mtf_gradient_share_name(g, k);
    mtf_gradient_give(g, x, mtf_build_fit(g->b, name, share, &shape));
}

/* dy with its dimensions in the order of y's, which a loop that slices y leaves in another. */
static int dy_in_order(MtfGradient *g) {
    MtfShape shape = mtf_gradient_shape_of(g, g->op.outputs[0]);
    MtfBuilder next = *g->b; /* what it says of the next operation is not of this one */
    g_autofree char *name = g_strdup_printf("back/%s/in_order", g->op.name);
    g->b->attributes = MTF_NO_ATTRIBUTES;
    g->b->has_dtype = false;
    int dy = mtf_build_fit(g->b, name, g->dy, &shape);
    g->b->attributes = next.attributes;
    g->b->has_dtype = next.has_dtype;
    return dy;
}

/* Whether the order of the first input's dimensions is that of the result's. */
static bool keeps_order(int kind) {
    MtfDimsRule dims = mtf_operation_row(kind)->dims;
    return dims == MTF_DIMS_FIRST || dims == MTF_DIMS_RENAMED || dims == MTF_DIMS_REPLACED ||
           dims == MTF_DIMS_RESHAPED;
}

void mtf_gradient_give_result(MtfGradient *g, int k, int kind, int n, const int *inputs) {
    int x = g->op.inputs[k];
    MtfShape shape = mtf_gradient_shape_of(g, x);
    g_autofree int *own = g_memdup2(inputs, (gsize)n * sizeof *inputs);
    g_autofree char *name = mtf_gradient_share_name(g, k);
    if (n > 0 && own[0] == g->dy && keeps_order(kind))
        own[0] = dy_in_order(g);
    mtf_gradient_give(g, x, mtf_build(g->b, kind, name, &shape, n, own));
}

void mtf_gradient_give_scaled(MtfGradient *g, int k, int x, double factor) {
    g->b->attributes.factor = factor;
    MTF_GIVE(g, k, MTF_OP_SCALE, x);
}

void mtf_gradient_give_product(MtfGradient *g, int k, int a, int b) {
    MtfShape target = mtf_gradient_shape_of(g, g->op.inputs[k]), sa = mtf_gradient_shape_of(g, a),
             sb = mtf_gradient_shape_of(g, b);
    bool sums = !mtf_shape_contains(&target, &sa) || !mtf_shape_contains(&target, &sb);
    MTF_GIVE(g, k, sums ? MTF_OP_EINSUM : MTF_OP_MULTIPLY, a, b);
}
