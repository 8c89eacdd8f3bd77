// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/gradient_table.h"

#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph/reshape.h"

#include <math.h>

/* Gradients' intermediates are called "back/OPERATION/WHAT"; the share of input k is
 * "back/OPERATION/k". */
static int back(MtfGradient *g, int kind, const char *what, const MtfShape *shape, int n,
                const int *inputs) {
    g_autofree char *name = g_strdup_printf("back/%s/%s", g->op.name, what);
    return mtf_build(g->b, kind, name, shape, n, inputs);
}

#define BACK(g, kind, what, shape, ...) \
    back(g, kind, what, shape, (int)G_N_ELEMENTS(((int[]){ __VA_ARGS__ })), (int[]){ __VA_ARGS__ })

static char *share_name(const MtfGradient *g, int k) {
    return g_strdup_printf("back/%s/%d", g->op.name, k);
}

static bool wants(const MtfGradient *g, int k) {
    return k < g->op.n_inputs && g->wanted[g->op.inputs[k]];
}

/* A copy: the graph's array moves as it grows. */
static MtfShape shape_of(const MtfGradient *g, int tensor) {
    if (tensor < 0)
        return (MtfShape){ 0 };
    return mtf_graph_tensor(g->b->graph, tensor)->shape;
}

static MtfDtype dtype_of(const MtfGradient *g, int tensor) {
    return mtf_graph_tensor(g->b->graph, tensor)->dtype;
}

/* The operation that makes `tensor`, or NULL. */
static const MtfOperation *maker(const MtfGradient *g, int tensor) {
    int producer = mtf_graph_tensor(g->b->graph, tensor)->producer;
    return producer < 0 ? NULL : mtf_graph_operation(g->b->graph, producer);
}

/* How many elements the mean is over that made the result: of the whole step, since a mean over the
 * batch is one over all its micro-batches, unless the operation says that it is of each of them. */
static double mean_count(const MtfGradient *g) {
    const MtfGraph *graph = g->b->graph;
    MtfShape shape = shape_of(g, g->op.inputs[0]), rest = shape_of(g, g->op.outputs[0]);
    bool whole = g->op.attributes.per_microbatch == 0;
    double count = 1;
    for (int i = 0; i < shape.rank; i++)
        if (mtf_shape_find(&rest, shape.dims[i]) < 0)
            count *= (double)(whole ? mtf_graph_step_size(graph, shape.dims[i])
                                    : mtf_graph_size(graph, shape.dims[i]));
    return count;
}

static int scaled(MtfGradient *g, const char *what, int x, double factor) {
    g->b->attributes.factor = factor;
    return BACK(g, MTF_OP_SCALE, what, NULL, x);
}

/* Gives input k the elements of `share`, summed or repeated to the input's shape. */
static void give(MtfGradient *g, int k, int share) {
    int x = g->op.inputs[k];
    MtfShape shape = shape_of(g, x);
    g_autofree char *name = share_name(g, k);
    mtf_gradient_give(g, x, mtf_build_fit(g->b, name, share, &shape));
}

/* Applies one operation whose result is the share of input k. */
static void give_result(MtfGradient *g, int k, int kind, int n, const int *inputs) {
    int x = g->op.inputs[k];
    MtfShape shape = shape_of(g, x);
    g_autofree char *name = share_name(g, k);
    mtf_gradient_give(g, x, mtf_build(g->b, kind, name, &shape, n, inputs));
}

#define GIVE(g, k, kind, ...) \
    give_result(g, k, kind, (int)G_N_ELEMENTS(((int[]){ __VA_ARGS__ })), (int[]){ __VA_ARGS__ })

static void give_scaled(MtfGradient *g, int k, int x, double factor) {
    g->b->attributes.factor = factor;
    GIVE(g, k, MTF_OP_SCALE, x);
}

/* Gives input k the sum of a product over the dimensions it lacks. `a` has all dimensions of the
 * input. */
static void give_product(MtfGradient *g, int k, int a, int b) {
    MtfShape target = shape_of(g, g->op.inputs[k]), sa = shape_of(g, a), sb = shape_of(g, b);
    bool sums = !mtf_shape_contains(&target, &sa) || !mtf_shape_contains(&target, &sb);
    GIVE(g, k, sums ? MTF_OP_EINSUM : MTF_OP_MULTIPLY, a, b);
}

/* y = sum of the product of all inputs: input k gets the same of dy and the others, repeated along
 * the dimensions that only input k has. */
static void einsum_input(MtfGradient *g, int k) {
    MtfShape target = shape_of(g, g->op.inputs[k]), known = { 0 };
    g_autofree int *factors = g_new(int, g->op.n_inputs);
    int n = 0;
    factors[n++] = g->dy;
    for (int j = 0; j < g->op.n_inputs; j++)
        if (j != k)
            factors[n++] = g->op.inputs[j];
    for (int i = 0; i < target.rank; i++)
        for (int j = 0; j < n; j++) {
            MtfShape shape = shape_of(g, factors[j]);
            if (mtf_shape_find(&shape, target.dims[i]) >= 0) {
                mtf_shape_append(&known, target.dims[i]);
                break;
            }
        }
    if (known.rank == target.rank && n > 1) {
        give_result(g, k, MTF_OP_EINSUM, n, factors);
        return;
    }
    g_autofree char *what = g_strdup_printf("%d/product", k);
    give(g, k, n > 1 ? back(g, MTF_OP_EINSUM, what, &known, n, factors) : g->dy);
}

/* Variables first: their gradients are final, and other inputs die. */
static void einsum(MtfGradient *g) {
    for (int others = 0; others < 2; others++)
        for (int k = 0; k < g->op.n_inputs; k++)
            if (wants(g, k) && others == (maker(g, g->op.inputs[k]) != NULL))
                einsum_input(g, k);
}

static void add(MtfGradient *g) {
    for (int k = 0; k < g->op.n_inputs; k++)
        if (wants(g, k))
            give(g, k, g->dy);
}

static void subtract(MtfGradient *g) {
    if (wants(g, 0))
        give(g, 0, g->dy);
    if (!wants(g, 1))
        return;
    MtfShape shape = shape_of(g, g->op.inputs[1]);
    g_autofree char *name = g_strdup_printf("back/%s/1/sum", g->op.name);
    GIVE(g, 1, MTF_OP_NEGATE, mtf_build_fit(g->b, name, g->dy, &shape));
}

static void multiply(MtfGradient *g) {
    for (int k = 0; k < 2; k++)
        if (wants(g, k))
            give_product(g, k, g->dy, g->op.inputs[1 - k]);
}

/* y = a / b: a gets dy / b, b gets -(sum of dy y) / b. */
static void divide(MtfGradient *g) {
    int b = g->op.inputs[1], y = g->op.outputs[0];
    if (wants(g, 0))
        give(g, 0, BACK(g, MTF_OP_DIVIDE, "0/quotient", NULL, g->dy, b));
    if (!wants(g, 1))
        return;
    MtfShape shape = shape_of(g, b), whole = shape_of(g, y);
    bool sums = !mtf_shape_contains(&shape, &whole);
    int product = BACK(g, sums ? MTF_OP_EINSUM : MTF_OP_MULTIPLY, "1/product", &shape, g->dy, y);
    int quotient = BACK(g, MTF_OP_DIVIDE, "1/quotient", &shape, product, b);
    GIVE(g, 1, MTF_OP_NEGATE, quotient);
}

/* y = max(a, b) or min(a, b): who equals y shares dy. */
static void extreme(MtfGradient *g) {
    int y = g->op.outputs[0], equal[2];
    for (int k = 0; k < 2; k++) {
        g_autofree char *what = g_strdup_printf("%d/equal", k);
        MtfShape shape = shape_of(g, y);
        equal[k] = BACK(g, MTF_OP_EQUAL, what, &shape, y, g->op.inputs[k]);
    }
    int count = BACK(g, MTF_OP_ADD, "count", NULL, equal[0], equal[1]);
    int share = BACK(g, MTF_OP_DIVIDE, "share", NULL, g->dy, count);
    for (int k = 0; k < 2; k++)
        if (wants(g, k))
            give_product(g, k, share, equal[k]);
}

static void scale(MtfGradient *g) {
    give_scaled(g, 0, g->dy, g->op.attributes.factor);
}

/* Rules of unary functions; x, y and dy as above. */
#define UNARY(name, statement)         \
    static void name(MtfGradient *g) { \
        int x = g->op.inputs[0];       \
        int y = g->op.outputs[0];      \
        int dy = g->dy;                \
        (void)x, (void)y;              \
        statement;                     \
    }

UNARY(relu, GIVE(g, 0, MTF_OP_RELU_GRAD, y, dy))
UNARY(gelu, GIVE(g, 0, MTF_OP_GELU_GRAD, x, dy))
UNARY(silu, GIVE(g, 0, MTF_OP_SILU_GRAD, x, dy))
UNARY(tanh_rule, GIVE(g, 0, MTF_OP_TANH_GRAD, y, dy))
UNARY(sigmoid, GIVE(g, 0, MTF_OP_SIGMOID_GRAD, y, dy))
UNARY(gelu_exact, GIVE(g, 0, MTF_OP_GELU_EXACT_GRAD, x, dy))
UNARY(softplus, GIVE(g, 0, MTF_OP_MULTIPLY, dy, BACK(g, MTF_OP_SIGMOID, "sigmoid", NULL, x)))
UNARY(sin_rule, GIVE(g, 0, MTF_OP_MULTIPLY, dy, BACK(g, MTF_OP_COS, "cos", NULL, x)))
UNARY(cos_rule, give_scaled(g, 0,
                            BACK(g, MTF_OP_MULTIPLY, "product", NULL, dy,
                                 BACK(g, MTF_OP_SIN, "sin", NULL, x)),
                            -1))
UNARY(exp_rule, GIVE(g, 0, MTF_OP_MULTIPLY, dy, y))
UNARY(log_rule, GIVE(g, 0, MTF_OP_DIVIDE, dy, x))
UNARY(sqrt_rule, give_scaled(g, 0, BACK(g, MTF_OP_DIVIDE, "quotient", NULL, dy, y), 0.5))
UNARY(square, give_scaled(g, 0, BACK(g, MTF_OP_MULTIPLY, "product", NULL, dy, x), 2))
UNARY(negate, GIVE(g, 0, MTF_OP_NEGATE, dy))
UNARY(abs_rule, GIVE(g, 0, MTF_OP_MULTIPLY, dy, BACK(g, MTF_OP_SIGN, "sign", NULL, x)))

/* y = 1 / sqrt(x): x gets -dy y / (2 x). */
static void rsqrt(MtfGradient *g) {
    int product = BACK(g, MTF_OP_MULTIPLY, "product", NULL, g->dy, g->op.outputs[0]);
    int quotient = BACK(g, MTF_OP_DIVIDE, "quotient", NULL, product, g->op.inputs[0]);
    give_scaled(g, 0, quotient, -0.5);
}

/* reduce_sum, broadcast, transpose: the same elements, repeated, summed or turned back. */
static void same(MtfGradient *g) {
    give(g, 0, g->dy);
}

static void reduce_mean(MtfGradient *g) {
    give(g, 0, scaled(g, "share", g->dy, 1 / mean_count(g)));
}

/* All elements that equal the maximum share its gradient. */
static void reduce_max(MtfGradient *g) {
    int x = g->op.inputs[0], y = g->op.outputs[0];
    MtfShape whole = shape_of(g, x), rest = shape_of(g, y);
    int equal = BACK(g, MTF_OP_EQUAL, "equal", &whole, x, y);
    int count = BACK(g, MTF_OP_REDUCE_SUM, "count", &rest, equal);
    int share = BACK(g, MTF_OP_DIVIDE, "share", NULL, g->dy, count);
    GIVE(g, 0, MTF_OP_MULTIPLY, equal, share);
}

static void rename_rule(MtfGradient *g) {
    g->b->attributes.from = g->op.attributes.to;
    g->b->attributes.to = g->op.attributes.from;
    GIVE(g, 0, MTF_OP_RENAME, g->dy);
}

static void cast(MtfGradient *g) {
    g->b->has_dtype = true;
    g->b->dtype = dtype_of(g, g->op.inputs[0]);
    GIVE(g, 0, MTF_OP_CAST, g->dy);
}

static void dropout(MtfGradient *g) {
    const MtfAttributes *a = &g->op.attributes;
    g->b->attributes.rate = a->rate;
    g->b->attributes.stream = a->stream != NULL ? a->stream : g->op.name;
    GIVE(g, 0, MTF_OP_DROPOUT, g->dy);
}

static void causal(MtfGradient *g) {
    g->b->attributes.query = g->op.attributes.query;
    g->b->attributes.memory = g->op.attributes.memory;
    GIVE(g, 0, MTF_OP_CAUSAL_ZERO, g->dy);
}

/* A number that is compared with or chosen, of the storage type. */
static int number(MtfGradient *g, const char *what, double value) {
    g_autofree char *name = g_strdup_printf("back/%s/%s", g->op.name, what);
    return mtf_build_constant(g->b, name, dtype_of(g, g->op.outputs[0]), value);
}

/* dy goes where the choice came from. */
static void where(MtfGradient *g) {
    int condition = g->op.inputs[0], zero = number(g, "zero", 0);
    MtfShape shape = shape_of(g, g->dy);
    if (wants(g, 1))
        give(g, 1, BACK(g, MTF_OP_WHERE, "1/chosen", &shape, condition, g->dy, zero));
    if (wants(g, 2))
        give(g, 2, BACK(g, MTF_OP_WHERE, "2/chosen", &shape, condition, zero, g->dy));
}

/* y = a - b floor(a / b). */
static void modulo(MtfGradient *g) {
    const int *in = g->op.inputs;
    if (wants(g, 0))
        give(g, 0, g->dy);
    if (!wants(g, 1))
        return;
    MtfShape shape = shape_of(g, g->dy);
    int quotient = BACK(g, MTF_OP_DIVIDE, "quotient", &shape, in[0], in[1]);
    int turns =
        BACK(g, MTF_OP_NEGATE, "turns", NULL, BACK(g, MTF_OP_FLOOR, "floor", NULL, quotient));
    give_product(g, 1, turns, g->dy);
}

/* y = a^b: a gets dy b a^(b-1), b gets dy y log a. */
static void power(MtfGradient *g) {
    const int *in = g->op.inputs;
    MtfShape shape = shape_of(g, g->dy);
    if (wants(g, 0)) {
        int less = BACK(g, MTF_OP_SUBTRACT, "less", NULL, in[1], number(g, "one", 1));
        int slope = BACK(g, MTF_OP_MULTIPLY, "slope", &shape, in[1],
                         BACK(g, MTF_OP_POWER, "power", &shape, in[0], less));
        give_product(g, 0, slope, g->dy);
    }
    if (wants(g, 1)) {
        int log = BACK(g, MTF_OP_LOG, "log", NULL, in[0]);
        int slope = BACK(g, MTF_OP_MULTIPLY, "growth", &shape, g->op.outputs[0], log);
        give_product(g, 1, slope, g->dy);
    }
}

static void raise_rule(MtfGradient *g) {
    double exponent = g->op.attributes.exponent;
    g->b->attributes.exponent = exponent - 1;
    int less = BACK(g, MTF_OP_RAISE, "less", NULL, g->op.inputs[0]);
    give_scaled(g, 0, BACK(g, MTF_OP_MULTIPLY, "product", NULL, g->dy, less), exponent);
}

/* dy where x was let through. */
static void clip(MtfGradient *g) {
    int within = BACK(g, MTF_OP_EQUAL, "within", NULL, g->op.inputs[0], g->op.outputs[0]);
    GIVE(g, 0, MTF_OP_MULTIPLY, g->dy, within);
}

/* dy where x > 0, else `otherwise`. */
static void give_above_zero(MtfGradient *g, int otherwise) {
    int above = BACK(g, MTF_OP_LESS, "above", NULL, number(g, "zero", 0), g->op.inputs[0]);
    GIVE(g, 0, MTF_OP_WHERE, above, g->dy, otherwise);
}

static void leaky_relu(MtfGradient *g) {
    give_above_zero(g, scaled(g, "leak", g->dy, g->op.attributes.slope));
}

/* Below 0 the slope is slope e^x = y + slope. */
static void elu(MtfGradient *g) {
    int slope = BACK(g, MTF_OP_ADD, "slope", NULL, g->op.outputs[0],
                     number(g, "alpha", g->op.attributes.slope));
    give_above_zero(g, BACK(g, MTF_OP_MULTIPLY, "bent", NULL, g->dy, slope));
}

/* 2 / sqrt(pi) e^(-x^2). */
static void erf_rule(MtfGradient *g) {
    int square = BACK(g, MTF_OP_SQUARE, "square", NULL, g->op.inputs[0]);
    int bell = BACK(g, MTF_OP_EXP, "bell", NULL, BACK(g, MTF_OP_NEGATE, "negated", NULL, square));
    give_scaled(g, 0, BACK(g, MTF_OP_MULTIPLY, "product", NULL, g->dy, bell), 2 / sqrt(G_PI));
}

static void reshape(MtfGradient *g) {
    GIVE(g, 0, MTF_OP_RESHAPE, g->dy);
}

/* t = (dilation f - start) / stride, with a stride above 0. */
static void resample(MtfGradient *g) {
    const MtfAttributes *a = &g->op.attributes;
    double sign = a->stride < 0 ? -1 : 1;
    g->b->attributes.from = a->to;
    g->b->attributes.to = a->from;
    g->b->attributes.start = 0 - sign * a->start; /* a file knows no -0 */
    g->b->attributes.stride = sign * a->dilation;
    g->b->attributes.dilation = fabs(a->stride);
    g->b->attributes.wrap = a->wrap;
    GIVE(g, 0, MTF_OP_RESAMPLE, g->dy);
}

/* The part of dy from `start` on along `to`, for an input with dimension `from` or without any. */
static void give_piece(MtfGradient *g, int k, int to, int from, double start) {
    MtfShape piece = shape_of(g, g->dy);
    g_autofree char *one = g_strdup_printf("back/%s/%d/one", g->op.name, k);
    g_autofree char *what = g_strdup_printf("%d/piece", k);
    int dim = from >= 0 ? from : mtf_graph_add_dimension(g->b->graph, one, 1, &g->b->error);
    g->b->attributes.from = to;
    g->b->attributes.to = dim;
    g->b->attributes.start = start;
    g->b->attributes.stride = g->b->attributes.dilation = 1;
    piece.dims[mtf_shape_find(&piece, to)] = dim;
    if (from >= 0)
        GIVE(g, k, MTF_OP_RESAMPLE, g->dy);
    else
        GIVE(g, k, MTF_OP_REDUCE_SUM, BACK(g, MTF_OP_RESAMPLE, what, &piece, g->dy));
}

static void concat(MtfGradient *g) {
    for (int k = 0; k < g->op.n_inputs; k++) {
        MtfJoined joined = mtf_joined_input(g->b->graph, &g->op, k);
        if (wants(g, k))
            give_piece(g, k, joined.to, joined.dim, (double)joined.begin);
    }
}

/* The windows seen from the other side. */
static void turn_windows(MtfGradient *g) {
    g->b->attributes = g->op.attributes;
    for (int w = 0; w < g->op.attributes.n_windows; w++) {
        g->b->attributes.windows[w].from = g->op.attributes.windows[w].to;
        g->b->attributes.windows[w].to = g->op.attributes.windows[w].from;
    }
}

static void conv(MtfGradient *g) {
    if (wants(g, 1)) {
        g->b->attributes = g->op.attributes;
        GIVE(g, 1, MTF_OP_CONV_FILTER_GRAD, g->op.inputs[0], g->dy);
    }
    if (wants(g, 0)) {
        turn_windows(g);
        GIVE(g, 0, MTF_OP_CONV_TRANSPOSE, g->dy, g->op.inputs[1]);
    }
}

/* What it made is the larger side. */
static void conv_transpose(MtfGradient *g) {
    if (wants(g, 1)) {
        turn_windows(g);
        GIVE(g, 1, MTF_OP_CONV_FILTER_GRAD, g->dy, g->op.inputs[0]);
    }
    if (wants(g, 0)) {
        turn_windows(g);
        GIVE(g, 0, MTF_OP_CONV, g->dy, g->op.inputs[1]);
    }
}

/* Linear in both: what the filter's place in `conv` and in its input's gradient has is dy here. */
static void conv_filter_grad(MtfGradient *g) {
    if (wants(g, 1)) {
        g->b->attributes = g->op.attributes;
        GIVE(g, 1, MTF_OP_CONV, g->op.inputs[0], g->dy);
    }
    if (wants(g, 0)) {
        turn_windows(g);
        GIVE(g, 0, MTF_OP_CONV_TRANSPOSE, g->op.inputs[1], g->dy);
    }
}

static void max_pool(MtfGradient *g) {
    g->b->attributes = g->op.attributes;
    GIVE(g, 0, MTF_OP_MAX_POOL_GRAD, g->op.outputs[1], g->dy);
}

static void average_pool(MtfGradient *g) {
    g->b->attributes = g->op.attributes;
    GIVE(g, 0, MTF_OP_AVERAGE_POOL_GRAD, g->dy);
}

static void cumulative_sum(MtfGradient *g) {
    g->b->attributes = g->op.attributes;
    g->b->attributes.reverse = g->op.attributes.reverse == 0;
    GIVE(g, 0, MTF_OP_CUMULATIVE_SUM, g->dy);
}

/* What was chosen gets its gradient, the rest none. */
static void top_k(MtfGradient *g) {
    GIVE(g, 0, MTF_OP_EMBEDDING_GRAD, g->op.outputs[1], g->dy);
}

static void label_logit(MtfGradient *g) {
    GIVE(g, 0, MTF_OP_EMBEDDING_GRAD, g->op.inputs[1], g->dy);
}

/* (ids, x[, more]) -> sums: each x is where its id is. */
static void embedding_grad(MtfGradient *g) {
    if (wants(g, 1))
        GIVE(g, 1, MTF_OP_EMBEDDING, g->dy, g->op.inputs[0]);
    if (wants(g, 2))
        give(g, 2, g->dy);
}

/* Back by the opposite angle, from the same position on. */
static void rotary(MtfGradient *g) {
    g->b->attributes = g->op.attributes;
    g->b->attributes.angle = -g->op.attributes.angle;
    if (g->op.n_inputs > 2)
        GIVE(g, 0, MTF_OP_ROTARY, g->dy, g->op.inputs[1], g->op.inputs[2]);
    else if (g->op.n_inputs > 1)
        GIVE(g, 0, MTF_OP_ROTARY, g->dy, g->op.inputs[1]);
    else
        GIVE(g, 0, MTF_OP_ROTARY, g->dy);
}

static void refuse(MtfGradient *g, const char *composite) {
    if (g->b->error == NULL)
        mtf_input_error(&g->b->error,
                        "operation \"%s\" (%s): its gradient is known only when its other inputs "
                        "are the statistics of one tensor; write %s instead",
                        g->op.name, mtf_operation_row(g->op.kind)->name, composite);
}

/* Whether `tensor` is 0 everywhere, as the mean that rms_norm does not take away. */
static bool is_zero(const MtfGradient *g, int tensor) {
    const MtfOperation *operation = maker(g, tensor);
    return operation != NULL && operation->kind == MTF_OP_CONSTANT &&
           operation->attributes.value == 0;
}

/* The shares of memory, from scores at once: p = e^(factor q k + bias - lse), 0 where no query
 * looks. */
static int attention_shares(MtfGradient *g, const MtfShape *all) {
    const int *in = g->op.inputs, *out = g->op.outputs;
    const MtfAttributes *a = &g->op.attributes;
    g_autofree char *least_name = g_strdup_printf("back/%s/bias/least", g->op.name);
    int product = BACK(g, MTF_OP_EINSUM, "bias/product", all, in[0], in[1]);
    g->b->attributes.factor = a->factor;
    int scores = BACK(g, MTF_OP_SCALE, "bias/scores", NULL, product);
    int biased = BACK(g, MTF_OP_ADD, "bias/biased", all, scores, in[3]);
    /* That of a query which looks at nothing is -infinity. */
    int least = mtf_build_constant(g->b, least_name, dtype_of(g, out[1]), MTF_MASKED_SCORE);
    int lse = BACK(g, MTF_OP_MAXIMUM, "bias/lse", NULL, out[1], least);
    int below = BACK(g, MTF_OP_SUBTRACT, "bias/below", all, biased, lse);
    if (a->causal == 0)
        return BACK(g, MTF_OP_EXP, "bias/shares", NULL, below);
    g->b->attributes.query = a->query;
    g->b->attributes.memory = a->memory;
    int seen = BACK(g, MTF_OP_CAUSAL_MASK, "bias/seen", NULL, below);
    return BACK(g, MTF_OP_EXP, "bias/shares", NULL, seen);
}

/* do v of all scores, which are dropped where their shares were: in the order that these are numbered
 * in (kernel_attention.h). */
static int attention_growth(MtfGradient *g, const MtfShape *all) {
    const MtfAttributes *a = &g->op.attributes;
    MtfShape shape = *all;
    for (int i = 0; a->rate > 0 && i < 3; i++) {
        int last = (int[]){ a->query, a->parts, a->memory }[i];
        if (mtf_shape_find(all, last) < 0)
            continue;
        mtf_shape_remove(&shape, last);
        mtf_shape_append(&shape, last);
    }
    int growth = BACK(g, MTF_OP_EINSUM, "bias/growth", &shape, g->dy, g->op.inputs[2]);
    if (a->rate == 0)
        return growth;
    g->b->attributes.rate = a->rate;
    g->b->attributes.stream = a->stream != NULL ? a->stream : g->op.name;
    return BACK(g, MTF_OP_DROPOUT, "bias/dropped", NULL, growth);
}

/* The gradient of what is added to scores, p (do v - do o), summed to its dimensions. */
static void attention_bias(MtfGradient *g) {
    const int *in = g->op.inputs, *out = g->op.outputs;
    MtfShape rest = shape_of(g, out[1]), all = rest, bias = shape_of(g, in[3]);
    mtf_shape_append(&all, g->op.attributes.memory);
    int shares = attention_shares(g, &all);
    int growth = attention_growth(g, &all);
    int dot = BACK(g, MTF_OP_EINSUM, "bias/dot", &rest, g->dy, out[0]);
    int apart = BACK(g, MTF_OP_SUBTRACT, "bias/apart", &all, growth, dot);
    g_autofree char *name = share_name(g, 3);
    int product = BACK(g, MTF_OP_MULTIPLY, "bias/gradient", &all, shares, apart);
    mtf_gradient_give(g, in[3], mtf_build_fit(g->b, name, product, &bias));
}

/* One operation makes the gradients of q, k and v; that of q has the operation's own name. Input `bias`, if it is
 * there, is added to scores. */
static void attention_to(MtfGradient *g, int bias) {
    const int *in = g->op.inputs, *out = g->op.outputs;
    bool adds = g->op.n_inputs > bias;
    int inputs[7] = { in[0], in[1], in[2], out[0], out[1], g->dy, adds ? in[bias] : -1 };
    g_autofree char *name = share_name(g, 0);
    g->b->attributes = g->op.attributes;
    if (g->op.attributes.rate > 0 && g->op.attributes.stream == NULL)
        g->b->attributes.stream = g->op.name;
    int dq = mtf_build(g->b, MTF_OP_ATTENTION_GRAD, name, NULL, adds ? 7 : 6, inputs);
    for (int k = 0; k < 3 && dq >= 0; k++)
        mtf_gradient_give(g, g->op.inputs[k], dq + k);
}

static void attention(MtfGradient *g) {
    if (g->op.n_inputs > 3 && wants(g, 3))
        attention_bias(g);
    attention_to(g, 3);
}

/* Of o and lse that it goes on from, which have the share e^(lse before - lse) of the result: do is theirs to that
 * share, and lse before grows by it times do (o before - o). */
static void attention_before(MtfGradient *g) {
    const int *in = g->op.inputs, *out = g->op.outputs;
    MtfShape rest = shape_of(g, out[1]);
    int apart = BACK(g, MTF_OP_SUBTRACT, "before/apart", NULL, in[4], out[1]);
    int share = BACK(g, MTF_OP_EXP, "before/share", NULL, apart);
    if (wants(g, 3))
        GIVE(g, 3, MTF_OP_MULTIPLY, g->dy, share);
    if (!wants(g, 4))
        return;
    int dot = BACK(g, MTF_OP_EINSUM, "before/dot", &rest, g->dy, out[0]);
    int growth = is_zero(g, in[3])
                     ? scaled(g, "before/growth", dot, -1)
                     : BACK(g, MTF_OP_SUBTRACT, "before/growth", NULL,
                            BACK(g, MTF_OP_EINSUM, "before/own", &rest, g->dy, in[3]), dot);
    GIVE(g, 4, MTF_OP_MULTIPLY, share, growth);
}

static void attention_further(MtfGradient *g) {
    if (wants(g, 3) || wants(g, 4))
        attention_before(g);
    if (g->op.n_inputs > 5 && wants(g, 5) && g->b->error == NULL)
        mtf_input_error(&g->b->error,
                        "operation \"%s\" (attention_further): what is added to its scores has no "
                        "gradient; stop it before (stop_gradient)",
                        g->op.name);
    attention_to(g, 5);
}

/* A table that is also read by a product (tied weights) has that one's dense gradient by now. */
static void embedding(MtfGradient *g) {
    int more =
        wants(g, 0) && g->dy >= 0 ? mtf_gradient_take(g, g->op.inputs[0], dtype_of(g, g->dy)) : -1;
    if (more < 0)
        GIVE(g, 0, MTF_OP_EMBEDDING_GRAD, g->op.inputs[1], g->dy);
    else
        GIVE(g, 0, MTF_OP_EMBEDDING_GRAD, g->op.inputs[1], g->dy, more);
}

/* dispatch and combine are each other's gradient; a gate's is what it weights. */
static void routed(MtfGradient *g, int kind) {
    const int *in = g->op.inputs;
    bool gated = g->op.n_inputs == 3;
    if (wants(g, 0) && gated)
        GIVE(g, 0, kind, g->dy, in[1], in[2]);
    else if (wants(g, 0))
        GIVE(g, 0, kind, g->dy, in[1]);
}

static void dispatch(MtfGradient *g) {
    routed(g, MTF_OP_COMBINE);
    if (wants(g, 2))
        GIVE(g, 2, MTF_OP_COMBINE_GATE_GRAD, g->dy, g->op.inputs[0], g->op.inputs[1]);
}

static void combine(MtfGradient *g) {
    routed(g, MTF_OP_DISPATCH);
    if (wants(g, 2))
        GIVE(g, 2, MTF_OP_COMBINE_GATE_GRAD, g->op.inputs[0], g->dy, g->op.inputs[1]);
}

static void expert_einsum(MtfGradient *g) {
    const int *in = g->op.inputs;
    if (wants(g, 1)) {
        g->b->attributes.experts = g->op.attributes.experts;
        GIVE(g, 1, MTF_OP_EXPERT_EINSUM_GRAD, in[0], g->dy, in[2]);
    }
    if (wants(g, 0)) {
        g->b->attributes.experts = g->op.attributes.experts;
        GIVE(g, 0, MTF_OP_EXPERT_EINSUM, g->dy, in[1], in[2]);
    }
}

/* y = sum of e^(x - m): x gets e^(x - m) dy, m gets -y dy. */
static void sum_exp(MtfGradient *g) {
    int x = g->op.inputs[0], max = g->op.inputs[1];
    if (wants(g, 0)) {
        int difference = BACK(g, MTF_OP_SUBTRACT, "difference", NULL, x, max);
        int power = BACK(g, MTF_OP_EXP, "exp", NULL, difference);
        GIVE(g, 0, MTF_OP_MULTIPLY, power, g->dy);
    }
    if (wants(g, 1)) {
        int product = BACK(g, MTF_OP_MULTIPLY, "product", NULL, g->dy, g->op.outputs[0]);
        give(g, 1, BACK(g, MTF_OP_NEGATE, "negated", NULL, product));
    }
}

/* y = mean of (x - m)^2 over n elements: x gets 2 (x - m) dy / n, m gets minus the sum of that. */
static void variance(MtfGradient *g) {
    double n = mean_count(g);
    int difference = BACK(g, MTF_OP_SUBTRACT, "difference", NULL, g->op.inputs[0], g->op.inputs[1]);
    int product = BACK(g, MTF_OP_MULTIPLY, "product", NULL, difference, g->dy);
    if (wants(g, 0))
        give_scaled(g, 0, product, 2 / n);
    if (wants(g, 1))
        give(g, 1, scaled(g, "negated", product, -2 / n));
}

/* Whether `tensor` is the operation of that kind on x (and y). */
static bool is_made(const MtfGradient *g, int tensor, int kind, int x, int y) {
    const MtfOperation *operation = maker(g, tensor);
    return operation != NULL && operation->kind == kind && operation->inputs[0] == x &&
           (y < 0 || operation->inputs[1] == y);
}

static bool is_of_softmax(const MtfGradient *g, int x, int max, int sum) {
    return is_made(g, max, MTF_OP_REDUCE_MAX, x, -1) && is_made(g, sum, MTF_OP_SUM_EXP, x, max);
}

static void softmax_apply(MtfGradient *g) {
    int x = g->op.inputs[0], max = g->op.inputs[1], sum = g->op.inputs[2];
    int y = g->op.outputs[0];
    if (!is_of_softmax(g, x, max, sum)) {
        refuse(g, "softmax");
        return;
    }
    MtfShape rest = shape_of(g, sum);
    int dot = BACK(g, MTF_OP_EINSUM, "dot", &rest, y, g->dy);
    GIVE(g, 0, MTF_OP_SOFTMAX_GRAD, y, g->dy, dot);
}

static void cross_entropy_mask(MtfGradient *g) {
    const int *in = g->op.inputs;
    int loss = BACK(g, MTF_OP_CROSS_ENTROPY, "loss", NULL, in[0], in[1], in[2]);
    give_product(g, 3, g->dy, loss);
}

/* The whole gradient of (logits -> loss) goes to the logits. */
static void cross_entropy(MtfGradient *g) {
    const int *in = g->op.inputs;
    const MtfOperation *choice = maker(g, in[2]);
    int logits = choice != NULL && choice->kind == MTF_OP_LABEL_LOGIT ? choice->inputs[0] : -1;
    if (logits < 0 || !is_of_softmax(g, logits, in[0], in[1])) {
        refuse(g, "softmax_cross_entropy");
        return;
    }
    int labels = choice->inputs[1];
    if (wants(g, 3))
        cross_entropy_mask(g);
    if (!g->wanted[logits])
        return;
    int inputs[6] = { logits, labels, in[0], in[1], g->dy, g->op.n_inputs > 3 ? in[3] : -1 };
    mtf_gradient_give(
        g, logits,
        back(g, MTF_OP_CROSS_ENTROPY_GRAD, "logits", NULL, g->op.n_inputs > 3 ? 6 : 5, inputs));
}

/* The statistics of the batch, where others take their place outside training. */
static int in_training(const MtfGradient *g, int tensor) {
    const MtfOperation *operation = maker(g, tensor);
    bool chooses = operation != NULL && operation->kind == MTF_OP_IN_TRAIN_PHASE;
    return chooses ? operation->inputs[0] : tensor;
}

/* Whether both statistics are of the step's examples, or both of a micro-batch's. */
static bool over_the_same(const MtfGradient *g, int mean, int variance) {
    return is_zero(g, mean) || maker(g, mean)->attributes.per_microbatch ==
                                   maker(g, variance)->attributes.per_microbatch;
}

/* Nothing flows through a mean that is 0: the sum that would is that 0 as well. */
static void normalize_x(MtfGradient *g, const int *in) {
    MtfShape rest = shape_of(g, in[1]);
    int sum = is_zero(g, in[1]) ? in[1] : BACK(g, MTF_OP_EINSUM, "sum", &rest, g->dy, in[3]);
    g->b->attributes.epsilon = g->op.attributes.epsilon;
    int dot = BACK(g, MTF_OP_NORMALIZE_DOT, "dot", &rest, g->dy, in[0], in[1], in[2], in[3]);
    g->b->attributes.epsilon = g->op.attributes.epsilon;
    g->b->attributes.per_microbatch = maker(g, in[2])->attributes.per_microbatch;
    GIVE(g, 0, MTF_OP_NORMALIZE_GRAD, g->dy, in[0], in[1], in[2], in[3], sum, dot);
}

static void normalize(MtfGradient *g) {
    const int in[] = { g->op.inputs[0], in_training(g, g->op.inputs[1]),
                       in_training(g, g->op.inputs[2]), g->op.inputs[3] };
    bool of_x = (is_zero(g, in[1]) || is_made(g, in[1], MTF_OP_REDUCE_MEAN, in[0], -1)) &&
                is_made(g, in[2], MTF_OP_VARIANCE, in[0], in[1]) && over_the_same(g, in[1], in[2]);
    if (!of_x && (wants(g, 0) || wants(g, 1) || wants(g, 2))) {
        refuse(g, "layer_norm");
        return;
    }
    if (wants(g, 3)) {
        g->b->attributes.epsilon = g->op.attributes.epsilon;
        GIVE(g, 3, MTF_OP_NORMALIZE_SCALE_GRAD, g->dy, in[0], in[1], in[2]);
    }
    if (wants(g, 4))
        give(g, 4, g->dy);
    if (wants(g, 0))
        normalize_x(g, in);
}

#define RULE(function) \
    { MTF_GRADIENT_RULE, function }
#define ZERO \
    { MTF_GRADIENT_ZERO, NULL }
#define NONE \
    { MTF_GRADIENT_NONE, NULL }

/* Composites have none: they are rewritten before. */
static const MtfGradientRow rows[MTF_OPERATIONS] = {
    [MTF_OP_EINSUM] = RULE(einsum),
    [MTF_OP_ADD] = RULE(add),
    [MTF_OP_SUBTRACT] = RULE(subtract),
    [MTF_OP_MULTIPLY] = RULE(multiply),
    [MTF_OP_DIVIDE] = RULE(divide),
    [MTF_OP_MAXIMUM] = RULE(extreme),
    [MTF_OP_MINIMUM] = RULE(extreme),
    [MTF_OP_EQUAL] = ZERO,
    [MTF_OP_LESS] = ZERO,
    [MTF_OP_LESS_EQUAL] = ZERO,
    [MTF_OP_WHERE] = RULE(where),
    [MTF_OP_MODULO] = RULE(modulo),
    [MTF_OP_POWER] = RULE(power),
    [MTF_OP_SCALE] = RULE(scale),
    [MTF_OP_RELU] = RULE(relu),
    [MTF_OP_GELU] = RULE(gelu),
    [MTF_OP_SILU] = RULE(silu),
    [MTF_OP_TANH] = RULE(tanh_rule),
    [MTF_OP_SIGMOID] = RULE(sigmoid),
    [MTF_OP_EXP] = RULE(exp_rule),
    [MTF_OP_LOG] = RULE(log_rule),
    [MTF_OP_SQRT] = RULE(sqrt_rule),
    [MTF_OP_RSQRT] = RULE(rsqrt),
    [MTF_OP_SQUARE] = RULE(square),
    [MTF_OP_NEGATE] = RULE(negate),
    [MTF_OP_ABS] = RULE(abs_rule),
    [MTF_OP_SIGN] = ZERO,
    [MTF_OP_LOGICAL_NOT] = ZERO,
    [MTF_OP_RAISE] = RULE(raise_rule),
    [MTF_OP_CLIP] = RULE(clip),
    [MTF_OP_LEAKY_RELU] = RULE(leaky_relu),
    [MTF_OP_ELU] = RULE(elu),
    [MTF_OP_GELU_EXACT] = RULE(gelu_exact),
    [MTF_OP_SOFTPLUS] = RULE(softplus),
    [MTF_OP_SIN] = RULE(sin_rule),
    [MTF_OP_COS] = RULE(cos_rule),
    [MTF_OP_ERF] = RULE(erf_rule),
    [MTF_OP_FLOOR] = ZERO,
    [MTF_OP_REDUCE_SUM] = RULE(same),
    [MTF_OP_REDUCE_MEAN] = RULE(reduce_mean),
    [MTF_OP_REDUCE_MAX] = RULE(reduce_max),
    [MTF_OP_RENAME] = RULE(rename_rule),
    [MTF_OP_TRANSPOSE] = RULE(same),
    [MTF_OP_RESHAPE] = RULE(reshape),
    [MTF_OP_RESAMPLE] = RULE(resample),
    [MTF_OP_CONCAT] = RULE(concat),
    [MTF_OP_RANDOM_UNIFORM] = ZERO,
    [MTF_OP_RANDOM_NORMAL] = ZERO,
    [MTF_OP_CONV] = RULE(conv),
    [MTF_OP_CONV_TRANSPOSE] = RULE(conv_transpose),
    [MTF_OP_CONV_FILTER_GRAD] = RULE(conv_filter_grad),
    [MTF_OP_MAX_POOL] = RULE(max_pool),
    [MTF_OP_AVERAGE_POOL] = RULE(average_pool),
    [MTF_OP_MAX_POOL_GRAD] = NONE,
    [MTF_OP_AVERAGE_POOL_GRAD] = NONE,
    [MTF_OP_CUMULATIVE_SUM] = RULE(cumulative_sum),
    [MTF_OP_TOP_K] = RULE(top_k),
    [MTF_OP_LOOP_BEGIN] = RULE(same),
    [MTF_OP_LOOP_NEXT] = NONE, /* with the whole loop (loop_gradient.c); so the next two */
    [MTF_OP_LOOP_SLICE] = NONE,
    [MTF_OP_LOOP_STACK] = NONE,
    [MTF_OP_BROADCAST] = RULE(same),
    [MTF_OP_CAST] = RULE(cast),
    [MTF_OP_IN_TRAIN_PHASE] = RULE(same),
    [MTF_OP_STOP_GRADIENT] = ZERO,
    [MTF_OP_TO_HOST] = NONE, /* of training graphs (offload.h) */
    [MTF_OP_FROM_HOST] = NONE,
    [MTF_OP_CONSTANT] = ZERO,
    [MTF_OP_RANGE] = ZERO,
    [MTF_OP_DROPOUT] = RULE(dropout),
    [MTF_OP_CAUSAL_MASK] = RULE(causal),
    [MTF_OP_ATTENTION] = RULE(attention),
    [MTF_OP_ROTARY] = RULE(rotary),
    [MTF_OP_EMBEDDING] = RULE(embedding),
    [MTF_OP_SLOTS] = ZERO,
    [MTF_OP_SLOT_IDS] = ZERO,
    [MTF_OP_DISPATCH] = RULE(dispatch),
    [MTF_OP_COMBINE] = RULE(combine),
    [MTF_OP_EXPERT_EINSUM] = RULE(expert_einsum),
    [MTF_OP_SUM_EXP] = RULE(sum_exp),
    [MTF_OP_SOFTMAX_APPLY] = RULE(softmax_apply),
    [MTF_OP_VARIANCE] = RULE(variance),
    [MTF_OP_NORMALIZE] = RULE(normalize),
    [MTF_OP_LABEL_LOGIT] = RULE(label_logit), /* the rule of cross_entropy goes round it */
    [MTF_OP_CROSS_ENTROPY] = RULE(cross_entropy),
    [MTF_OP_RELU_GRAD] = NONE,
    [MTF_OP_GELU_GRAD] = NONE,
    [MTF_OP_GELU_EXACT_GRAD] = NONE,
    [MTF_OP_SILU_GRAD] = NONE,
    [MTF_OP_TANH_GRAD] = NONE,
    [MTF_OP_SIGMOID_GRAD] = NONE,
    [MTF_OP_CAUSAL_ZERO] = RULE(causal),
    [MTF_OP_ATTENTION_GRAD] = NONE,
    [MTF_OP_EMBEDDING_GRAD] = RULE(embedding_grad),
    [MTF_OP_COMBINE_GATE_GRAD] = NONE,
    [MTF_OP_EXPERT_EINSUM_GRAD] = NONE,
    [MTF_OP_SOFTMAX_GRAD] = NONE,
    [MTF_OP_NORMALIZE_DOT] = NONE,
    [MTF_OP_NORMALIZE_SCALE_GRAD] = NONE,
    [MTF_OP_NORMALIZE_GRAD] = NONE,
    [MTF_OP_CROSS_ENTROPY_GRAD] = NONE,
    [MTF_OP_ACCUMULATE] = RULE(same),
    [MTF_OP_CLIP_FACTOR] = NONE,
    [MTF_OP_LEARNING_RATE] = ZERO,
    [MTF_OP_SGD] = NONE,
    [MTF_OP_MOMENTUM] = NONE,
    [MTF_OP_LION] = NONE,
    [MTF_OP_ADAM] = NONE,
    [MTF_OP_LAMB_DIRECTION] = NONE,
    [MTF_OP_LAMB_APPLY] = NONE,
    [MTF_OP_ADAFACTOR_MOMENT] = NONE,
    [MTF_OP_ADAFACTOR_DIRECTION] = NONE,
    [MTF_OP_ADAFACTOR_APPLY] = NONE,
    [MTF_OP_CACHE_UPDATE] = NONE,
    [MTF_OP_QUANTIZED_EINSUM] = NONE,
    [MTF_OP_CACHED_ATTENTION] = NONE,
    [MTF_OP_ATTENTION_FURTHER] = RULE(attention_further),
};

const MtfGradientRow *mtf_gradient_row(int kind) {
    static const MtfGradientRow rewritten = NONE;
    return mtf_operation_row(kind)->composite ? &rewritten : &rows[kind];
}
