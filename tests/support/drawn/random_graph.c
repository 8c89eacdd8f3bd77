// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/drawn/random_graph.h"

#include "tests/support/drawn/random_layers.h"

#include <math.h>

/* What the pool may grow by. Each returns a tensor, or -1 where its operands do not suit. */

static int draw_einsum(MtfDraw *draw) {
    int inputs[3], n = 1 + below(draw, 3);
    MtfShape all = { 0 };
    for (int k = 0; k < n; k++) {
        inputs[k] = pick(draw);
        for (int i = 0; i < shape_of(draw, inputs[k])->rank; i++)
            if (mtf_shape_find(&all, shape_of(draw, inputs[k])->dims[i]) < 0)
                mtf_shape_append(&all, shape_of(draw, inputs[k])->dims[i]);
    }
    MtfShape output = random_subset(draw, &all);
    while (output.rank > MOST_RANK)
        output.rank--;
    double terms = (double)mtf_graph_elements(draw->graph, &all) /
                   (double)mtf_graph_elements(draw->graph, &output);
    int y = emit_plain(draw, MTF_OP_EINSUM, n, inputs, &output);
    return terms > 4 ? emit_scaled(draw, y, 1 / sqrt(terms)) : y;
}

static int draw_binary(MtfDraw *draw) {
    static const int kinds[] = { MTF_OP_ADD, MTF_OP_SUBTRACT, MTF_OP_MULTIPLY,
                                 MTF_OP_ADD, MTF_OP_MAXIMUM,  MTF_OP_MINIMUM };
    int kind = kinds[below(draw, draw->options->smooth ? 4 : 6)];
    int inputs[3] = { pick(draw), pick(draw), pick(draw) };
    int n = kind == MTF_OP_ADD ? 2 + below(draw, 2) : 2;
    if (union_rank(draw, n, inputs) > MOST_RANK)
        return -1;
    return emit_plain(draw, kind, n, inputs, NULL);
}

static int draw_unary(MtfDraw *draw) {
    static const int kinds[] = { MTF_OP_TANH,   MTF_OP_SIGMOID, MTF_OP_GELU, MTF_OP_SILU,
                                 MTF_OP_NEGATE, MTF_OP_SQUARE,  MTF_OP_RELU, MTF_OP_ABS };
    int kind = kinds[below(draw, draw->options->smooth ? 6 : 8)];
    int x = pick(draw);
    return emit_unary(draw, kind, kind == MTF_OP_SQUARE ? emit_unary(draw, MTF_OP_TANH, x) : x);
}

/* Functions that want a positive argument get a sigmoid's. */
static int draw_of_positive(MtfDraw *draw) {
    static const int kinds[] = { MTF_OP_LOG, MTF_OP_SQRT, MTF_OP_EXP };
    int positive = emit_unary(draw, MTF_OP_SIGMOID, pick(draw));
    if (below(draw, 2) == 0)
        return emit_unary(draw, kinds[below(draw, 3)], positive);
    int inputs[2] = { pick(draw), positive };
    return union_rank(draw, 2, inputs) > MOST_RANK
               ? -1
               : emit_plain(draw, MTF_OP_DIVIDE, 2, inputs, NULL);
}

static int draw_reduction(MtfDraw *draw) {
    static const int kinds[] = { MTF_OP_REDUCE_SUM, MTF_OP_REDUCE_MEAN, MTF_OP_REDUCE_MAX };
    int kind = kinds[below(draw, draw->options->smooth ? 2 : 3)];
    int x = pick(draw);
    MtfShape output = random_subset(draw, shape_of(draw, x));
    return emit_plain(draw, kind, 1, &x, &output);
}

static int draw_rename(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.from = random_dim(draw, x);
    attributes.to = twin_of(draw, x, attributes.from);
    if (attributes.to < 0)
        return -1;
    return emit(draw,
                (MtfNewOperation){
                    .kind = MTF_OP_RENAME, .n_inputs = 1, .inputs = &x, .attributes = attributes });
}

static int draw_move(MtfDraw *draw) {
    int x = pick(draw);
    MtfShape shape = *shape_of(draw, x);
    switch (below(draw, draw->options->smooth ? 3 : 4)) {
    case 0:
        for (int i = 0; i < shape.rank; i++)
            shape.dims[i] = shape_of(draw, x)->dims[shape.rank - 1 - i];
        return emit_plain(draw, MTF_OP_TRANSPOSE, 1, &x, &shape);
    case 1: {
        int dim = below(draw, (int)draw->graph->dimensions->len);
        if (shape.rank >= MOST_RANK || mtf_shape_find(&shape, dim) >= 0)
            return -1;
        mtf_shape_append(&shape, dim);
        return emit_plain(draw, MTF_OP_BROADCAST, 1, &x, &shape);
    }
    case 2:
        return emit_scaled(draw, x, 0.5 + below(draw, 3));
    default:
        return emit_unary(draw, MTF_OP_STOP_GRADIENT, x);
    }
}

static int draw_dropout(MtfDraw *draw) {
    int x = pick(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.rate = 0.25;
    return emit(
        draw, (MtfNewOperation){
                  .kind = MTF_OP_DROPOUT, .n_inputs = 1, .inputs = &x, .attributes = attributes });
}

static int draw_softmax(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.dimension = random_dim(draw, x);
    if (draw->options->composites)
        return emit(draw, (MtfNewOperation){ .kind = MTF_OP_SOFTMAX,
                                             .n_inputs = 1,
                                             .inputs = &x,
                                             .attributes = attributes });
    MtfShape rest = without(shape_of(draw, x), attributes.dimension);
    int max = emit_plain(draw, MTF_OP_REDUCE_MAX, 1, &x, &rest);
    int sum = emit_plain(draw, MTF_OP_SUM_EXP, 2, (int[]){ x, max }, &rest);
    return emit_plain(draw, MTF_OP_SOFTMAX_APPLY, 3, (int[]){ x, max, sum }, NULL);
}

/* What looks at itself under another name: a query's positions are the first of two dimensions. */
static int draw_attention(MtfDraw *draw) {
    int q = pick_with_dims(draw);
    const MtfShape *shape = shape_of(draw, q);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    if (shape->rank < 2)
        return -1;
    attributes.dimension = shape->dims[shape->rank - 1];
    attributes.query = attributes.from = shape->dims[below(draw, shape->rank - 1)];
    attributes.memory = attributes.to = twin_of(draw, q, attributes.query);
    if (attributes.memory < 0)
        return -1;
    attributes.factor = 0.5;
    attributes.causal = below(draw, 2);
    attributes.softcap = below(draw, 2) * 0.7;
    attributes.window = attributes.causal == 1 ? below(draw, 4) : 0;
    attributes.rate = below(draw, 2) * 0.25;
    int k = emit(
        draw, (MtfNewOperation){
                  .kind = MTF_OP_RENAME, .n_inputs = 1, .inputs = &q, .attributes = attributes });
    int v = emit_unary(draw, MTF_OP_TANH, k);
    MtfShape scores = { 2, { attributes.query, attributes.memory } };
    bool biased = below(draw, 2) == 0;
    int bias = biased ? add_variable(draw, &scores) : -1;
    return emit(draw, (MtfNewOperation){ .kind = MTF_OP_ATTENTION,
                                         .n_inputs = biased ? 4 : 3,
                                         .inputs = (int[]){ q, k, v, bias },
                                         .attributes = attributes });
}

static int draw_scan(MtfDraw *draw, int v, const MtfShape *queries, MtfAttributes attributes) {
    const MtfShape *shape = shape_of(draw, v);
    MtfShape rates = { 2, { attributes.keys, shape->dims[shape->rank - 1] } };
    int step = emit_unary(draw, MTF_OP_SOFTPLUS, v);
    int rate = emit_unary(draw, MTF_OP_SOFTPLUS, add_variable(draw, &rates));
    int speed = emit_unary(draw, MTF_OP_NEGATE, rate);
    int q = add_variable(draw, queries), k = add_variable(draw, queries);
    return emit(draw, (MtfNewOperation){ .kind = MTF_OP_SELECTIVE_SCAN,
                                         .n_inputs = 5,
                                         .inputs = (int[]){ v, q, k, step, speed },
                                         .attributes = attributes });
}

/* Heads of any tensor, whose last dimension are values, with queries and keys of some of them. */
static int draw_linear_attention(MtfDraw *draw) {
    int v = pick_with_dims(draw), keys = below(draw, (int)draw->graph->dimensions->len);
    const MtfShape *shape = shape_of(draw, v);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    if (shape->rank < 2 || mtf_shape_find(shape, keys) >= 0)
        return -1;
    MtfShape heads = without(shape, shape->dims[shape->rank - 1]), queries = { 0 };
    attributes.dimension = heads.dims[below(draw, heads.rank)];
    attributes.keys = keys;
    for (int i = 0; i < heads.rank; i++)
        if (heads.dims[i] == attributes.dimension || below(draw, 2) == 0)
            mtf_shape_append(&queries, heads.dims[i]);
    mtf_shape_append(&queries, keys);
    if (below(draw, 3) == 0)
        return draw_scan(draw, v, &queries, attributes);
    int forgotten = emit_unary(draw, MTF_OP_SOFTPLUS, add_variable(draw, &heads));
    int log = emit_unary(draw, MTF_OP_NEGATE, forgotten);
    int k = emit_scaled(draw, add_variable(draw, &queries), 0.5), q = add_variable(draw, &queries);
    bool corrects = below(draw, 2) == 0;
    int beta = corrects ? emit_unary(draw, MTF_OP_SIGMOID, add_variable(draw, &heads)) : -1;
    int64_t places = mtf_graph_size(draw->graph, attributes.dimension);
    int64_t blocks = draw->options->composites && !corrects ? 1 + below(draw, (int)places) : 0;
    attributes.blocks = blocks > 0 && places % blocks == 0 ? (double)blocks : 0;
    return emit(draw, (MtfNewOperation){ .kind = MTF_OP_LINEAR_ATTENTION,
                                         .n_inputs = corrects ? 5 : 4,
                                         .inputs = (int[]){ v, q, k, log, beta },
                                         .attributes = attributes });
}

static int draw_layer_norm(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.dimension = random_dim(draw, x);
    attributes.epsilon = 1e-2;
    MtfShape along = { .rank = 1, .dims = { attributes.dimension } };
    int scale = add_variable(draw, &along);
    if (draw->options->composites)
        return emit(draw, (MtfNewOperation){ .kind = MTF_OP_LAYER_NORM,
                                             .n_inputs = 2,
                                             .inputs = (int[]){ x, scale },
                                             .attributes = attributes });
    MtfShape rest = without(shape_of(draw, x), attributes.dimension);
    int mean = emit_plain(draw, MTF_OP_REDUCE_MEAN, 1, &x, &rest);
    int variance = emit_plain(draw, MTF_OP_VARIANCE, 2, (int[]){ x, mean }, &rest);
    return emit(draw, (MtfNewOperation){ .kind = MTF_OP_NORMALIZE,
                                         .n_inputs = 4,
                                         .inputs = (int[]){ x, mean, variance, scale },
                                         .attributes = attributes });
}

static int draw_embedding(MtfDraw *draw) {
    MtfShape table = random_shape(draw, 2), ids = random_shape(draw, 2), output = { 0 };
    int looked_up = below(draw, (int)draw->graph->dimensions->len);
    if (mtf_shape_find(&ids, looked_up) >= 0)
        return -1;
    table = without(&table, looked_up);
    for (int i = 0; i < ids.rank; i++) {
        table = without(&table, ids.dims[i]);
        mtf_shape_append(&output, ids.dims[i]);
    }
    for (int i = 0; i < table.rank; i++)
        mtf_shape_append(&output, table.dims[i]);
    mtf_shape_append(&table, looked_up);
    int inputs[2] = { add_variable(draw, &table), add_input(draw, &ids, true) };
    return emit_plain(draw, MTF_OP_EMBEDDING, 2, inputs, &output);
}

static int draw_cross_entropy(MtfDraw *draw) {
    int logits = pick_with_dims(draw);
    MtfShape rest = without(shape_of(draw, logits), random_dim(draw, logits));
    int labels = add_input(draw, &rest, true);
    if (draw->options->composites)
        return emit_plain(draw, MTF_OP_SOFTMAX_CROSS_ENTROPY, 2, (int[]){ logits, labels }, &rest);
    int max = emit_plain(draw, MTF_OP_REDUCE_MAX, 1, &logits, &rest);
    int sum = emit_plain(draw, MTF_OP_SUM_EXP, 2, (int[]){ logits, max }, &rest);
    int logit = emit_plain(draw, MTF_OP_LABEL_LOGIT, 2, (int[]){ logits, labels }, &rest);
    return emit_plain(draw, MTF_OP_CROSS_ENTROPY, 3, (int[]){ max, sum, logit }, NULL);
}

static int draw_function(MtfDraw *draw) {
    static const int kinds[] = {
        MTF_OP_GELU_EXACT, MTF_OP_SOFTPLUS, MTF_OP_SIN,        MTF_OP_COS,
        MTF_OP_ERF,        MTF_OP_ELU,      MTF_OP_LEAKY_RELU, MTF_OP_CLIP
    };
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.slope = 0.5;
    attributes.low = -0.5;
    attributes.high = 0.75;
    int x = pick(draw);
    return emit_with(draw, kinds[below(draw, draw->options->smooth ? 6 : 8)], 1, &x, &attributes);
}

/* where(x < y, y, x z). */
static int draw_choice(MtfDraw *draw) {
    int x = pick(draw), y = pick(draw), z = pick(draw);
    if (draw->options->smooth || union_rank(draw, 3, (int[]){ x, y, z }) > MOST_RANK)
        return -1;
    int kind = below(draw, 2) ? MTF_OP_LESS : MTF_OP_LESS_EQUAL;
    int condition = emit_plain(draw, kind, 2, (int[]){ x, y }, NULL);
    int product = emit_plain(draw, MTF_OP_MULTIPLY, 2, (int[]){ x, z }, NULL);
    return emit_plain(draw, MTF_OP_WHERE, 3, (int[]){ condition, y, product }, NULL);
}

/* A formula of x, y and z; numbers beside them, and what occurs twice. */
static int draw_expression(MtfDraw *draw) {
    static const char *const texts[] = { "z * tanh(0.5 * x) - tanh(0.5 * x) * sigmoid(y) ^ 2",
                                         "(x - y) / (1 + z ^ 2) + 0.5 / (2 + x ^ 2)",
                                         "exp(-x ^ 2) * erf(y) + 3 * -z / 7",
                                         "where(x > 0.25 && y <= z || x < -1, x * y, max(z, 0))" };
    int inputs[3] = { pick(draw), pick(draw), pick(draw) };
    if (!draw->options->composites || union_rank(draw, 3, inputs) > MOST_RANK)
        return -1;
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.expression = (char *)texts[below(draw, draw->options->smooth ? 3 : 4)];
    attributes.arguments = (char *)"x y z";
    return emit_with(draw, MTF_OP_EXPRESSION, 3, inputs, &attributes);
}

static int draw_further_reduction(MtfDraw *draw) {
    static const int kinds[] = { MTF_OP_LOG_SUM_EXP, MTF_OP_REDUCE_MIN, MTF_OP_REDUCE_ANY,
                                 MTF_OP_REDUCE_ALL };
    int kind = kinds[below(draw, draw->options->smooth ? 1 : 4)];
    int x = pick(draw);
    MtfShape output = random_subset(draw, shape_of(draw, x));
    return draw->options->composites ? emit_plain(draw, kind, 1, &x, &output) : -1;
}

/* The one_hot of an argmax, so that integers are split too; of numbers that no rounding touches. */
static int draw_best(MtfDraw *draw) {
    MtfShape shape = random_shape(draw, 3);
    int x = shape.rank > 0 ? add_variable(draw, &shape) : pick_with_dims(draw);
    if (mtf_graph_tensor(draw->graph, x)->source == MTF_SOURCE_OPERATION)
        return -1;
    int dim = random_dim(draw, x);
    if (!draw->options->composites || draw->options->smooth)
        return -1;
    MtfShape rest = without(shape_of(draw, x), dim), whole = rest;
    int best = emit_plain(draw, MTF_OP_ARGMAX, 1, &x, &rest);
    mtf_shape_append(&whole, dim);
    return emit_plain(draw, MTF_OP_ONE_HOT, 1, &best, &whole);
}

static int draw_rms_norm(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.dimension = random_dim(draw, x);
    attributes.epsilon = 1e-2;
    MtfShape along = { .rank = 1, .dims = { attributes.dimension } };
    if (!draw->options->composites)
        return -1;
    int inputs[2] = { x, add_variable(draw, &along) };
    return emit_with(draw, MTF_OP_RMS_NORM, 2, inputs, &attributes);
}

static int draw_rotary(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    if (!draw_rotated(draw, x, &attributes))
        return -1;
    attributes.adjacent = below(draw, 2);
    return emit_with(draw, MTF_OP_ROTARY, 1, &x, &attributes);
}

static int draw_resample(MtfDraw *draw) {
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    int x = pick_with_dims(draw);
    attributes.from = random_dim(draw, x);
    attributes.to = other_dim(draw, x);
    attributes.start = below(draw, 5) - 2;
    attributes.stride = below(draw, 2) ? 1 : below(draw, 2) ? 2 : -1;
    attributes.dilation = 1 + below(draw, 2);
    if (attributes.to >= 0 && mtf_graph_size(draw->graph, attributes.to) ==
                                  mtf_graph_size(draw->graph, attributes.from)) {
        attributes.wrap = attributes.dilation == 1 && attributes.stride != 2 && below(draw, 2);
    }
    return attributes.to < 0 ? -1 : emit_with(draw, MTF_OP_RESAMPLE, 1, &x, &attributes);
}

/* The first two dimensions merged, or the first divided. */
static int draw_reshape(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfShape shape = *shape_of(draw, x);
    int64_t first = mtf_graph_size(draw->graph, shape.dims[0]);
    if (shape.rank > 1 && below(draw, 2)) {
        int merged = new_dimension(draw, first * mtf_graph_size(draw->graph, shape.dims[1]));
        mtf_shape_remove(&shape, shape.dims[1]);
        shape.dims[0] = merged;
        return merged < 0 ? -1 : emit_plain(draw, MTF_OP_RESHAPE, 1, &x, &shape);
    }
    if (first % 2 != 0 || shape.rank >= MOST_RANK)
        return -1;
    MtfShape divided = { .rank = 1 };
    divided.dims[0] = new_dimension(draw, below(draw, 2) ? 2 : first / 2);
    mtf_shape_append(&divided,
                     new_dimension(draw, first / mtf_graph_size(draw->graph, divided.dims[0])));
    for (int i = 1; i < shape.rank; i++)
        mtf_shape_append(&divided, shape.dims[i]);
    return emit_plain(draw, MTF_OP_RESHAPE, 1, &x, &divided);
}

/* x behind itself and what is left of it without a dimension. */
static int draw_concat(MtfDraw *draw) {
    int x = pick_with_dims(draw), dim = random_dim(draw, x);
    MtfShape shape = *shape_of(draw, x), rest = without(&shape, dim);
    int mean = emit_plain(draw, MTF_OP_REDUCE_MEAN, 1, &x, &rest);
    int bent = emit_unary(draw, MTF_OP_TANH, x);
    bool three = below(draw, 2);
    int to = new_dimension(draw, 2 * mtf_graph_size(draw->graph, dim) + three);
    if (to < 0)
        return -1;
    shape.dims[mtf_shape_find(&shape, dim)] = to;
    return emit_plain(draw, MTF_OP_CONCAT, 2 + three, (int[]){ x, bent, mean }, &shape);
}

static int draw_turn(MtfDraw *draw) {
    static const int kinds[] = {
        MTF_OP_CUMULATIVE_SUM,     MTF_OP_REVERSE,        MTF_OP_ROLL,
        MTF_OP_CUMULATIVE_MAX,     MTF_OP_CUMULATIVE_MIN, MTF_OP_CUMULATIVE_LOG_SUM_EXP,
        MTF_OP_LOCAL_RESPONSE_NORM
    };
    int kind = kinds[below(draw, draw->options->composites ? (int)G_N_ELEMENTS(kinds) : 1)];
    int x = pick_with_dims(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.dimension = random_dim(draw, x);
    attributes.shift = below(draw, 5) - 2;
    attributes.exclusive = below(draw, 2);
    attributes.reverse = below(draw, 2);
    attributes.blocks = attributes.alpha = attributes.bias = 1;
    attributes.beta = 0.75;
    attributes.size = 1 + below(draw, 4);
    int y = emit_with(draw, kind, 1, &x, &attributes);
    bool endless = attributes.exclusive != 0 && kind != MTF_OP_CUMULATIVE_SUM;
    return y >= 0 && endless ? emit_unary(draw, MTF_OP_TANH, y) : y;
}

/* Some number of equal parts that elements can be divided into. */
static int some_blocks(MtfDraw *draw, int dim) {
    int blocks = 1 + below(draw, (int)mtf_graph_size(draw->graph, dim));
    return mtf_graph_size(draw->graph, dim) % blocks == 0 ? blocks : 1;
}

/* Of a variable, where nothing is rounded, or else the order might depend on the layout; or of its
 * whole parts, many of which are equal. */
static int draw_top_k(MtfDraw *draw) {
    MtfShape shape = { .rank = 1 };
    shape.dims[0] = below(draw, (int)draw->graph->dimensions->len);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.from = shape.dims[0];
    for (int dim = 0; dim < 2; dim++)
        if (dim != attributes.from)
            mtf_shape_append(&shape, dim);
    int x = add_variable(draw, &shape);
    if (below(draw, 2))
        x = emit_unary(draw, MTF_OP_FLOOR, x);
    attributes.dimension = shape.dims[0];
    attributes.reverse = below(draw, 2);
    if (draw->options->composites && below(draw, 3) == 0)
        return emit_with(draw, MTF_OP_SORT, 1, &x, &attributes);
    attributes.to = other_dim(draw, x);
    attributes.blocks = draw->options->composites ? some_blocks(draw, attributes.from) : 1;
    if (attributes.to < 0 ||
        mtf_graph_size(draw->graph, attributes.to) > mtf_graph_size(draw->graph, attributes.from))
        return -1;
    return emit_with(draw, MTF_OP_TOP_K, 1, &x, &attributes);
}

/* Rows of each example's own table, and back. */
static int draw_gather(MtfDraw *draw) {
    int x = pick_with_dims(draw), dim = random_dim(draw, x), more = other_dim(draw, x);
    MtfShape rest = without(shape_of(draw, x), dim), ids = random_subset(draw, &rest),
             output = rest;
    if (more < 0 || mtf_shape_find(&ids, more) >= 0 || !mtf_shape_append(&ids, more) ||
        !mtf_shape_append(&output, more) || output.rank > MOST_RANK)
        return -1;
    int chosen = add_input(draw, &ids, true);
    int rows = emit_plain(draw, MTF_OP_EMBEDDING, 2, (int[]){ x, chosen }, &output);
    MtfShape back = *shape_of(draw, x);
    return below(draw, 2)
               ? rows
               : emit_plain(draw, MTF_OP_EMBEDDING_GRAD, 2, (int[]){ chosen, rows }, &back);
}

/* What bools come to by moves, reductions and each other. */
static int draw_of_truths(MtfDraw *draw, int truth, int other) {
    static const int kinds[] = { MTF_OP_MULTIPLY, MTF_OP_MAXIMUM, MTF_OP_EQUAL, MTF_OP_LESS,
                                 MTF_OP_WHERE };
    MtfShape fewer = random_subset(draw, shape_of(draw, truth));
    MtfShape turned = *shape_of(draw, truth);
    for (int i = 0; i < turned.rank / 2; i++) {
        int dim = turned.dims[i];
        turned.dims[i] = turned.dims[turned.rank - 1 - i];
        turned.dims[turned.rank - 1 - i] = dim;
    }
    switch (below(draw, 4)) {
    case 0:
        return emit_plain(draw, MTF_OP_REDUCE_MAX, 1, &truth, &fewer);
    case 1:
        return emit_plain(draw, MTF_OP_TRANSPOSE, 1, &truth, &turned);
    case 2:
        return emit_plain(draw, MTF_OP_LOGICAL_NOT, 1, &truth, NULL);
    default:
        break;
    }
    int kind = kinds[below(draw, 5)], inputs[] = { truth, other, truth };
    if (union_rank(draw, 2, inputs) > MOST_RANK)
        return truth;
    return emit_plain(draw, kind, kind == MTF_OP_WHERE ? 3 : 2, inputs, NULL);
}

/* Comparisons that choose between numbers, the bools used twice. */
static int draw_truth(MtfDraw *draw) {
    int x = pick(draw), y = pick(draw), z = pick(draw);
    int all[] = { x, y, z };
    if (union_rank(draw, 3, all) > MOST_RANK)
        return -1;
    int first = emit_typed(draw, MTF_OP_LESS, 2, (int[]){ x, y }, NULL, MTF_BOOL);
    int second = emit_typed(draw, MTF_OP_LESS_EQUAL, 2, (int[]){ z, y }, NULL, MTF_BOOL);
    int truth = draw_of_truths(draw, first, second);
    int more[] = { x, y, z, truth };
    if (union_rank(draw, 4, more) > MOST_RANK)
        return -1;
    int chosen = emit_plain(draw, MTF_OP_WHERE, 3, (int[]){ truth, x, z }, NULL);
    int number = emit_typed(draw, MTF_OP_CAST, 1, &second, NULL, draw->options->dtype);
    return emit_plain(draw, MTF_OP_MULTIPLY, 2, (int[]){ chosen, number }, NULL);
}

/* Whole numbers of tens of x, as int64 or int32. */
static int draw_whole(MtfDraw *draw) {
    static const int kinds[] = { MTF_OP_ADD, MTF_OP_SUBTRACT, MTF_OP_MULTIPLY, MTF_OP_MAXIMUM,
                                 MTF_OP_MODULO };
    int x = pick(draw), y = pick(draw);
    if (union_rank(draw, 2, (int[]){ x, y }) > MOST_RANK)
        return -1;
    MtfDtype dtype = below(draw, 4) > 0 ? MTF_I64 : MTF_I32;
    int a = emit_typed(draw, MTF_OP_CAST, 1, (int[]){ emit_scaled(draw, x, 10) }, NULL, dtype);
    int b = emit_typed(draw, MTF_OP_CAST, 1, (int[]){ emit_scaled(draw, y, 10) }, NULL, dtype);
    int whole = emit_plain(draw, kinds[below(draw, 5)], 2, (int[]){ a, b }, NULL);
    MtfShape fewer = random_subset(draw, shape_of(draw, whole));
    if (below(draw, 3) == 0)
        whole = emit_plain(draw, MTF_OP_REDUCE_MAX, 1, &whole, &fewer);
    int number = emit_typed(draw, MTF_OP_CAST, 1, &whole, NULL, draw->options->dtype);
    int small = emit_scaled(draw, number, 0.01);
    return emit_plain(draw, MTF_OP_TANH, 1, &small, NULL);
}

static int draw_noise(MtfDraw *draw) {
    int x = pick(draw);
    MtfShape shape = *shape_of(draw, x);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.high = attributes.deviation = 0.5;
    int kind = below(draw, 2) ? MTF_OP_RANDOM_UNIFORM : MTF_OP_RANDOM_NORMAL;
    int noise =
        emit(draw, (MtfNewOperation){ .kind = kind, .shape = &shape, .attributes = attributes });
    return emit_plain(draw, MTF_OP_ADD, 2, (int[]){ x, noise }, NULL);
}

static int draw_more(MtfDraw *draw) {
    static int (*const draws[])(
        MtfDraw *) = { draw_function, draw_choice,     draw_further_reduction,
                       draw_best,     draw_rms_norm,   draw_rotary,
                       draw_resample, draw_reshape,    draw_concat,
                       draw_turn,     draw_top_k,      draw_gather,
                       draw_noise,    draw_expression, draw_truth,
                       draw_whole };
    return draws[below(draw, (int)G_N_ELEMENTS(draws) - (draw->options->smooth ? 2 : 0))](draw);
}

int mtf_draw_operation(MtfDraw *draw) {
    if (draw->options->layers && below(draw, 2) == 0)
        return mtf_draw_layer(draw);
    if (draw->options->more && below(draw, 2) == 0)
        return draw_more(draw);
    static int (*const draws[])(MtfDraw *) = {
        draw_einsum,    draw_einsum,           draw_einsum,     draw_binary,    draw_binary,
        draw_unary,     draw_of_positive,      draw_reduction,  draw_rename,    draw_move,
        draw_dropout,   draw_softmax,          draw_layer_norm, draw_embedding, draw_cross_entropy,
        draw_attention, draw_linear_attention,
    };
    return draws[below(draw, (int)G_N_ELEMENTS(draws))](draw);
}

static void add_dimensions(MtfDraw *draw) {
    for (int d = 0; d < draw->options->dimensions; d++) {
        g_autofree char *name = g_strdup_printf("d%d", d);
        int64_t size = d % 3 == 2 ? mtf_graph_size(draw->graph, d - 1)
                                  : 1 + below(draw, (int)draw->options->largest_size);
        mtf_graph_add_dimension(draw->graph, name, size, NULL);
    }
}

/* Whether a loop's iterations alone know it. */
static bool is_within_loop(const MtfDraw *draw, int tensor) {
    int producer = mtf_graph_tensor(draw->graph, tensor)->producer;
    const MtfOperation *op = producer < 0 ? NULL : mtf_graph_operation(draw->graph, producer);
    return op != NULL && op->loop > 0 && op->kind != MTF_OP_LOOP_STACK &&
           op->kind != MTF_OP_LOOP_NEXT;
}

/* The sum of the means of all results that nothing reads. */
static void add_loss(MtfDraw *draw) {
    g_autoptr(MtfConsumers) consumers = mtf_graph_consumers(draw->graph);
    g_autoptr(GArray) means = g_array_new(FALSE, FALSE, sizeof(int));
    MtfShape scalar = { 0 };
    int n = (int)draw->graph->tensors->len;
    for (int t = 0; t < n; t++) {
        if (!mtf_dtype_is_float(mtf_graph_tensor(draw->graph, t)->dtype) ||
            consumers->starts[t + 1] > consumers->starts[t] || is_within_loop(draw, t))
            continue;
        int mean = emit_plain(draw, MTF_OP_REDUCE_MEAN, 1, &t, &scalar);
        g_array_append_val(means, mean);
    }
    const int *inputs = (const int *)(const void *)means->data;
    draw->graph->loss =
        means->len == 1 ? inputs[0] : emit_plain(draw, MTF_OP_ADD, (int)means->len, inputs, NULL);
}

MtfGraph *mtf_random_graph(const MtfRandomGraph *options) {
    MtfDraw draw = { .options = options,
                     .random = g_rand_new_with_seed(options->seed),
                     .graph = mtf_graph_new("random"),
                     .pool = g_array_new(FALSE, FALSE, sizeof(int)) };
    add_dimensions(&draw);
    MtfShape shape = random_shape(&draw, 3);
    int first = add_input(&draw, &shape, false);
    g_array_append_val(draw.pool, first);
    while ((int)draw.graph->operations->len < options->operations || draw.pool->len < 2) {
        int result = mtf_draw_operation(&draw);
        if (result >= 0)
            g_array_append_val(draw.pool, result);
    }
    add_loss(&draw);
    draw.graph->optimizer.kind = g_strdup("sgd");
    draw.graph->optimizer.rate = 0.1;
    g_array_unref(draw.pool);
    g_rand_free(draw.random);
    return draw.graph;
}
