// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/gradient_table.h"

#include "analyzer/training/gradient_layers.h"
#include "analyzer/training/gradient_rule.h"
#include "layouts/graph/reshape.h"

#include <math.h>

#define BACK MTF_BACK
#define GIVE MTF_GIVE
#define back mtf_gradient_back
#define dtype_of mtf_gradient_dtype_of
#define give mtf_gradient_give_fitted
#define give_product mtf_gradient_give_product
#define give_result mtf_gradient_give_result
#define give_scaled mtf_gradient_give_scaled
#define maker mtf_gradient_maker
#define mean_count mtf_gradient_mean_count
#define scaled mtf_gradient_scaled
#define shape_of mtf_gradient_shape_of
#define wants mtf_gradient_wants

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

/* Each element's gradient goes back to where it stood. */
static void sort(MtfGradient *g) {
    g->b->attributes.dimension = g->op.attributes.dimension;
    GIVE(g, 0, MTF_OP_SORT_GRAD, g->op.outputs[1], g->dy);
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
    [MTF_OP_SORT] = RULE(sort),
    [MTF_OP_SORT_GRAD] = NONE,
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
    [MTF_OP_ATTENTION] = RULE(mtf_gradient_attention),
    [MTF_OP_LINEAR_ATTENTION] = RULE(mtf_gradient_linear_attention),
    [MTF_OP_SELECTIVE_SCAN] = RULE(mtf_gradient_linear_attention),
    [MTF_OP_ROTARY] = RULE(mtf_gradient_rotary),
    [MTF_OP_EMBEDDING] = RULE(mtf_gradient_embedding),
    [MTF_OP_SLOTS] = ZERO,
    [MTF_OP_SLOT_IDS] = ZERO,
    [MTF_OP_DISPATCH] = RULE(mtf_gradient_dispatch),
    [MTF_OP_COMBINE] = RULE(mtf_gradient_combine),
    [MTF_OP_EXPERT_EINSUM] = RULE(mtf_gradient_expert_einsum),
    [MTF_OP_SUM_EXP] = RULE(mtf_gradient_sum_exp),
    [MTF_OP_SOFTMAX_APPLY] = RULE(mtf_gradient_softmax_apply),
    [MTF_OP_VARIANCE] = RULE(mtf_gradient_variance),
    [MTF_OP_NORMALIZE] = RULE(mtf_gradient_normalize),
    [MTF_OP_LABEL_LOGIT] = RULE(label_logit), /* the rule of cross_entropy goes round it */
    [MTF_OP_CROSS_ENTROPY] = RULE(mtf_gradient_cross_entropy),
    [MTF_OP_RELU_GRAD] = NONE,
    [MTF_OP_GELU_GRAD] = NONE,
    [MTF_OP_GELU_EXACT_GRAD] = NONE,
    [MTF_OP_SILU_GRAD] = NONE,
    [MTF_OP_TANH_GRAD] = NONE,
    [MTF_OP_SIGMOID_GRAD] = NONE,
    [MTF_OP_CAUSAL_ZERO] = RULE(causal),
    [MTF_OP_ATTENTION_GRAD] = NONE,
    [MTF_OP_ATTENTION_BIAS_GRAD] = NONE,
    [MTF_OP_LINEAR_ATTENTION_GRAD] = NONE,
    [MTF_OP_DELTA_RULE_GRAD] = NONE,
    [MTF_OP_SELECTIVE_SCAN_GRAD] = NONE,
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
    [MTF_OP_KEPT_LINEAR_ATTENTION] = NONE,
    [MTF_OP_KEPT_SELECTIVE_SCAN] = NONE,
    [MTF_OP_ATTENTION_FURTHER] = RULE(mtf_gradient_attention_further),
};

const MtfGradientRow *mtf_gradient_row(int kind) {
    static const MtfGradientRow rewritten = NONE;
    return mtf_operation_row(kind)->composite ? &rewritten : &rows[kind];
}
