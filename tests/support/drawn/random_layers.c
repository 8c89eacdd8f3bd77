// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/drawn/random_layers.h"

static MtfDtype dtype_of(const MtfDraw *draw) {
    return draw->options->dtype;
}

/* Statistics over some of the dimensions, gain and bias of some, as of batch, group and layer norms. */
static int draw_norm(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfShape shape = *shape_of(draw, x), rest = random_subset(draw, &shape);
    if (rest.rank == shape.rank)
        mtf_shape_remove(&rest, rest.dims[0]);
    MtfShape gains = random_subset(draw, &shape);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.epsilon = 0.1;
    int mean = emit_plain(draw, MTF_OP_REDUCE_MEAN, 1, &x, &rest);
    int variance = emit_plain(draw, MTF_OP_VARIANCE, 2, (int[]){ x, mean }, &rest);
    int inputs[] = { x, mean, variance, add_variable(draw, &gains), -1 };
    bool biased = below(draw, 2);
    if (biased)
        inputs[4] = add_variable(draw, &gains);
    return emit_with(draw, MTF_OP_NORMALIZE, 4 + biased, inputs, &attributes);
}

/* 0 where positions are seen and -1e30 where they are padding. */
static int draw_padding(MtfDraw *draw, const MtfShape *shape) {
    g_autofree char *name = fresh_name(draw, "mask");
    int seen = mtf_graph_add_input(draw->graph, name, shape, dtype_of(draw), MTF_FEED_MASK, NULL);
    MtfShape scalar = { 0 };
    MtfAttributes one = MTF_NO_ATTRIBUTES;
    one.value = 1;
    int ones = emit(
        draw, (MtfNewOperation){ .kind = MTF_OP_CONSTANT, .shape = &scalar, .attributes = one });
    int lacking = emit_plain(draw, MTF_OP_SUBTRACT, 2, (int[]){ seen, ones }, NULL);
    return emit_scaled(draw, lacking, 1e30);
}

/* Queries of any tensor and a memory of another length, whose keys and values some of the queries' dimensions
 * share; perhaps with a bias that learns and padding. */
static int draw_grouped_attention(MtfDraw *draw) {
    int q = pick_with_dims(draw), memory = other_dim(draw, q);
    MtfShape shape = *shape_of(draw, q);
    if (shape.rank < 2 || memory < 0)
        return -1;
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.dimension = shape.dims[shape.rank - 1];
    attributes.query = shape.dims[below(draw, shape.rank - 1)];
    attributes.memory = memory;
    attributes.factor = 0.5;
    attributes.causal = below(draw, 2);
    attributes.window = attributes.causal > 0 ? below(draw, 4) : 0;
    attributes.softcap = below(draw, 2) * 0.7;
    attributes.rate = below(draw, 3) == 0 ? 0.25 : 0;
    MtfShape keys = { 0 };
    for (int i = 0; i < shape.rank - 1; i++)
        if (shape.dims[i] != attributes.query && below(draw, 2))
            mtf_shape_append(&keys, shape.dims[i]);
    MtfShape bias = below(draw, 2) ? keys : (MtfShape){ 0 }, mask = bias;
    mtf_shape_append(&keys, memory);
    mtf_shape_append(&keys, attributes.dimension);
    mtf_shape_append(&bias, attributes.query);
    mtf_shape_append(&bias, memory);
    mtf_shape_append(&mask, memory);
    int n = 3 + below(draw, 3), inputs[] = { q, add_variable(draw, &keys), -1, -1, -1 };
    inputs[2] = add_variable(draw, &keys);
    inputs[3] = n < 4                      ? -1
                : n == 4 && below(draw, 2) ? draw_padding(draw, &mask)
                                           : add_variable(draw, &bias);
    inputs[4] = n < 5 ? -1 : draw_padding(draw, &mask);
    int y = emit_with(draw, MTF_OP_ATTENTION, n, inputs, &attributes);
    emit_unary(draw, MTF_OP_EXP, y + 1); /* 0 where all of the memory is padding */
    return y;
}

/* Sums up to each element in parts that may be split. */
static int draw_sums(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.dimension = random_dim(draw, x);
    int64_t size = mtf_graph_size(draw->graph, attributes.dimension);
    int blocks = 1 + below(draw, (int)size);
    attributes.blocks = draw->options->composites && size % blocks == 0 ? blocks : 1;
    attributes.exclusive = below(draw, 2);
    attributes.reverse = below(draw, 2);
    return emit_with(draw, MTF_OP_CUMULATIVE_SUM, 1, &x, &attributes);
}

/* x seen up to each position, as shares of it. */
static int draw_masked_softmax(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    const MtfShape *shape = shape_of(draw, x);
    if (shape->rank < 2 || !draw->options->composites)
        return -1;
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    int first = below(draw, shape->rank);
    attributes.query = shape->dims[first];
    attributes.memory = shape->dims[(first + 1) % shape->rank];
    attributes.dimension = attributes.memory;
    int masked = emit_with(draw, MTF_OP_CAUSAL_MASK, 1, &x, &attributes);
    return emit_with(draw, MTF_OP_SOFTMAX, 1, &masked, &attributes);
}

/* ---- Experts --------------------------------------------------------------------------------- */

typedef struct {
    int x, tokens, features, made; /* a tensor and three dimensions, the last what experts make */
    MtfShape groups;
    int experts, choices; /* dimensions */
    int places;           /* of each expert, or of all choices together; a dimension */
    bool dropless;
    int choice, slot, gate; /* tensors */
} Experts;

static bool draw_route(MtfDraw *draw, Experts *e) {
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    int64_t tokens = mtf_graph_size(draw->graph, e->tokens);
    int n = 2 + below(draw, 3), each = 1 + below(draw, 2);
    e->dropless = below(draw, 2);
    e->experts = new_dimension(draw, n);
    e->choices = new_dimension(draw, each);
    e->places = new_dimension(draw, e->dropless ? tokens * each : 1 + below(draw, 3));
    if (e->places < 0)
        return false;
    MtfShape scores = e->groups;
    mtf_shape_append(&scores, e->tokens);
    mtf_shape_append(&scores, e->experts);
    int learned = add_variable(draw, &scores);
    attributes.from = e->experts;
    attributes.to = e->choices;
    attributes.blocks = draw->options->composites ? 1 : 0;
    int best = emit_with(draw, MTF_OP_TOP_K, 1, &learned, &attributes);
    attributes.dimension = e->tokens;
    attributes.choices = e->choices;
    attributes.experts = e->experts;
    attributes.capacity = e->dropless ? -1 : e->places;
    attributes.queue = e->dropless ? 0 : below(draw, 2);
    attributes.priority = e->dropless ? 0 : below(draw, 3);
    e->choice = best + 1;
    e->slot = emit_with(draw, MTF_OP_SLOTS, attributes.priority > 0 ? 2 : 1,
                        (int[]){ best + 1, best }, &attributes);
    e->gate = emit_unary(draw, MTF_OP_SIGMOID, best);
    return true;
}

static int draw_products(MtfDraw *draw, const Experts *e, int sent) {
    MtfShape result = *shape_of(draw, sent), matrices = { 3, { e->experts, e->features, e->made } };
    result.dims[mtf_shape_find(&result, e->features)] = e->made;
    int w = add_variable(draw, &matrices);
    if (!e->dropless)
        return emit_plain(draw, MTF_OP_EINSUM, 2, (int[]){ sent, w }, &result);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.experts = e->experts;
    MtfShape rows = e->groups;
    mtf_shape_append(&rows, e->places);
    int expert = emit_plain(draw, MTF_OP_SLOT_IDS, 2, (int[]){ e->choice, e->slot }, &rows);
    return emit(draw, (MtfNewOperation){ .kind = MTF_OP_EXPERT_EINSUM,
                                         .n_inputs = 3,
                                         .inputs = (int[]){ sent, w, expert },
                                         .shape = &result,
                                         .attributes = attributes });
}

/* A layer of experts, whose gates weigh what they get, what they make, or both. */
static int draw_experts(MtfDraw *draw) {
    Experts e = { .x = pick_with_dims(draw) };
    MtfShape shape = *shape_of(draw, e.x);
    if (shape.rank < 2 || shape.rank > 3)
        return -1;
    e.tokens = shape.dims[shape.rank - 2];
    e.features = shape.dims[shape.rank - 1];
    e.groups = without(&shape, e.tokens);
    e.groups = without(&e.groups, e.features);
    e.made = other_dim(draw, e.x);
    if (e.made < 0 || !draw_route(draw, &e))
        return -1;
    MtfShape places = e.groups, result = shape;
    if (!e.dropless)
        mtf_shape_append(&places, e.experts);
    mtf_shape_append(&places, e.places);
    mtf_shape_append(&places, e.features);
    result.dims[shape.rank - 1] = e.made;
    int gated = below(draw, 4);
    int sent = emit_plain(draw, MTF_OP_DISPATCH, gated & 1 ? 3 : 2, (int[]){ e.x, e.slot, e.gate },
                          &places);
    int made = draw_products(draw, &e, sent);
    int n = gated & 2 || gated == 0 ? 3 : 2;
    return emit_plain(draw, MTF_OP_COMBINE, n, (int[]){ made, e.slot, e.gate }, &result);
}

/* ---- Loops ----------------------------------------------------------------------------------- */

/* Of what the body made, from pool element `first` on, something without `dim` to hand out; or -1. */
static int pick_of_body(MtfDraw *draw, guint first, int dim) {
    for (int attempt = 0; attempt < 4; attempt++) {
        int n = (int)(draw->pool->len - first);
        int y = g_array_index(draw->pool, int, (int)first + below(draw, n));
        if (mtf_shape_find(shape_of(draw, y), dim) < 0 && shape_of(draw, y)->rank < MOST_RANK)
            return y;
    }
    return -1;
}

/* state' = tanh(state + the mean of something of the body over what the state lacks). */
static int next_state(MtfDraw *draw, int state, int y) {
    MtfShape shared = { 0 };
    for (int i = 0; i < shape_of(draw, y)->rank; i++)
        if (mtf_shape_find(shape_of(draw, state), shape_of(draw, y)->dims[i]) >= 0)
            mtf_shape_append(&shared, shape_of(draw, y)->dims[i]);
    int mean = emit_plain(draw, MTF_OP_REDUCE_MEAN, 1, &y, &shared);
    int sum = emit_plain(draw, MTF_OP_ADD, 2, (int[]){ state, mean }, NULL);
    return emit_unary(draw, MTF_OP_TANH, sum);
}

/* Any operations over an element of x, a state and what stands outside; what comes of it are the elements of
 * one result and the last state. */
static int draw_loop(MtfDraw *draw) {
    int x = pick_with_dims(draw), init = pick(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.dimension = random_dim(draw, x);
    if (draw->loop > 0 || mtf_shape_find(shape_of(draw, init), attributes.dimension) >= 0)
        return -1;
    guint before = draw->pool->len;
    int state = emit_unary(draw, MTF_OP_LOOP_BEGIN, init);
    g_autofree char *name = fresh_name(draw, "loop");
    draw->loop = mtf_graph_add_loop(draw->graph, name, attributes.dimension, below(draw, 2));
    int now = emit_with(draw, MTF_OP_LOOP_SLICE, 1, &x, &attributes);
    g_array_append_val(draw->pool, state);
    g_array_append_val(draw->pool, now);
    for (int n = 2 + below(draw, 3); n > 0; n--) {
        int y = mtf_draw_operation(draw);
        if (y >= 0)
            g_array_append_val(draw->pool, y);
    }
    int out = pick_of_body(draw, before + 1, attributes.dimension);
    int from = g_array_index(draw->pool, int, draw->pool->len - 1);
    int next = next_state(draw, state, from);
    int all = out < 0 ? -1 : emit_with(draw, MTF_OP_LOOP_STACK, 1, &out, &attributes);
    int last = emit_plain(draw, MTF_OP_LOOP_NEXT, 2, (int[]){ state, next }, NULL);
    draw->loop = 0;
    g_array_set_size(draw->pool, before);
    if (all >= 0)
        g_array_append_val(draw->pool, all);
    return last;
}

/* ---- Moves ----------------------------------------------------------------------------------- */

/* Whole numbers from -2 to 2, some of them no place of anything: of a variable, so that no rounding is in them. */
static int draw_places(MtfDraw *draw, const MtfShape *shape) {
    int scaled = emit_scaled(draw, add_variable(draw, shape), 2.5);
    return emit_typed(draw, MTF_OP_CAST, 1, (int[]){ emit_unary(draw, MTF_OP_FLOOR, scaled) }, NULL,
                      MTF_I32);
}

/* Rotary positions with frequencies that are stretched as one of the ways has it, which begin where a number says that
 * examples share or have of their own. */
static int draw_positions(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfShape shape = *shape_of(draw, x), starts = { 0 };
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    if (!draw_rotated(draw, x, &attributes))
        return -1;
    int way = below(draw, 4);
    attributes.adjacent = below(draw, 2);
    attributes.low = 1;
    attributes.high = 4;
    attributes.context = way == 0 ? 0 : 8;
    attributes.stretch = way == 1 || way == 2 ? 2 : 1;
    attributes.ramp = way == 2;
    attributes.growth = way == 3 ? 2 : 0;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] != attributes.dimension && shape.dims[i] != attributes.position &&
            below(draw, 2))
            mtf_shape_append(&starts, shape.dims[i]);
    bool begins = starts.rank < 2 && below(draw, 2);
    int inputs[] = { x, begins ? draw_places(draw, &starts) : -1 };
    return emit_with(draw, MTF_OP_ROTARY, 1 + begins, inputs, &attributes);
}

/* What is gathered by places of its own, and scattered where several meet and others are none. */
static int draw_scatter(MtfDraw *draw) {
    int x = pick_with_dims(draw), to = other_dim(draw, x), dim = random_dim(draw, x);
    MtfShape shape = *shape_of(draw, x), ids = random_subset(draw, &shape);
    if (to < 0 || !draw->options->composites)
        return -1;
    if (mtf_shape_find(&ids, dim) < 0)
        mtf_shape_append(&ids, dim);
    if (below(draw, 2)) {
        MtfShape result = without(&shape, dim), rest = without(&ids, dim);
        mtf_shape_append(&rest, to);
        mtf_shape_append(&result, to);
        return emit_plain(draw, MTF_OP_GATHER, 2, (int[]){ x, draw_places(draw, &rest) }, &result);
    }
    MtfShape result = without(&shape, dim);
    mtf_shape_append(&result, to);
    int inputs[] = { draw_places(draw, &ids), x, -1 }, n = 2 + below(draw, 2);
    if (n == 3)
        inputs[2] = add_variable(draw, &result);
    return emit_plain(draw, MTF_OP_SCATTER_ADD, n, inputs, &result);
}

static int draw_cut(MtfDraw *draw) {
    int x = pick_with_dims(draw);
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.from = random_dim(draw, x);
    int size = (int)mtf_graph_size(draw->graph, attributes.from);
    if (below(draw, 2)) {
        attributes.before = below(draw, 4);
        attributes.value = below(draw, 2);
        attributes.to = new_dimension(draw, size + (int)attributes.before + below(draw, 4));
        return attributes.to < 0 ? -1 : emit_with(draw, MTF_OP_PAD, 1, &x, &attributes);
    }
    attributes.start = below(draw, size);
    attributes.stride = 1 + below(draw, 2);
    int most = (size - 1 - (int)attributes.start) / (int)attributes.stride + 1;
    attributes.to = new_dimension(draw, 1 + below(draw, most));
    return emit_with(draw, MTF_OP_SLICE, 1, &x, &attributes);
}

/* Two elements of a dimension, stacked with a third along another. */
static int draw_stack(MtfDraw *draw) {
    int x = pick_with_dims(draw), dim = random_dim(draw, x), inputs[3];
    MtfShape rest = without(shape_of(draw, x), dim), result = { 0 };
    int count = 2 + below(draw, 2), place = below(draw, rest.rank + 1);
    int along = new_dimension(draw, count);
    for (int k = 0; k < count; k++) {
        MtfAttributes attributes = MTF_NO_ATTRIBUTES;
        attributes.dimension = dim;
        attributes.index = below(draw, (int)mtf_graph_size(draw->graph, dim));
        inputs[k] = emit(draw, (MtfNewOperation){ .kind = MTF_OP_SELECT,
                                                  .n_inputs = 1,
                                                  .inputs = &x,
                                                  .shape = &rest,
                                                  .attributes = attributes });
    }
    for (int i = 0; i <= rest.rank; i++)
        mtf_shape_append(&result, i == place ? along : rest.dims[i - (i > place)]);
    return emit_plain(draw, MTF_OP_STACK, count, inputs, &result);
}

/* One of x and y, by what both are compared to under two conditions. */
static int draw_logic(MtfDraw *draw) {
    static const int compare[] = { MTF_OP_NOT_EQUAL, MTF_OP_GREATER, MTF_OP_GREATER_EQUAL,
                                   MTF_OP_LESS, MTF_OP_LESS_EQUAL };
    static const int join[] = { MTF_OP_LOGICAL_AND, MTF_OP_LOGICAL_OR, MTF_OP_LOGICAL_XOR };
    int x = pick(draw), y = pick(draw), z = pick(draw);
    if (draw->options->smooth || union_rank(draw, 3, (int[]){ x, y, z }) > MOST_RANK)
        return -1;
    MtfDtype dtype = below(draw, 2) ? MTF_BOOL : dtype_of(draw);
    int a = emit_typed(draw, compare[below(draw, 5)], 2, (int[]){ x, y }, NULL, dtype);
    int b = emit_typed(draw, compare[below(draw, 5)], 2, (int[]){ y, z }, NULL, dtype);
    int both = emit_typed(draw, join[below(draw, 3)], 2, (int[]){ a, b }, NULL, dtype);
    return emit_plain(draw, MTF_OP_WHERE, 3, (int[]){ both, x, y }, NULL);
}

/* Functions of what is above 0; and what training steps see beside what others do. */
static int draw_of_positive(MtfDraw *draw) {
    static const int kinds[] = { MTF_OP_RSQRT, MTF_OP_RECIPROCAL, MTF_OP_CEIL };
    int x = pick(draw), small = emit_unary(draw, MTF_OP_TANH, x);
    int positive = emit_unary(draw, MTF_OP_SIGMOID, x);
    switch (below(draw, 3)) {
    case 0:
        return emit_plain(draw, MTF_OP_POWER, 2, (int[]){ positive, small }, NULL);
    case 1:
        return emit_plain(draw, MTF_OP_IN_TRAIN_PHASE, 2, (int[]){ positive, small }, NULL);
    default:
        return emit_unary(draw, kinds[below(draw, draw->options->smooth ? 2 : 3)], positive);
    }
}

/* The product of what is above 0. */
static int draw_product(MtfDraw *draw) {
    int positive = emit_unary(draw, MTF_OP_SIGMOID, pick(draw));
    MtfShape rest = random_subset(draw, shape_of(draw, positive));
    return draw->options->composites ? emit_plain(draw, MTF_OP_REDUCE_PROD, 1, &positive, &rest)
                                     : positive;
}

/* Labels from -1 on, below `classes` - 1. */
static int draw_ignored(MtfDraw *draw, const MtfShape *shape, int64_t classes) {
    int share = emit_unary(draw, MTF_OP_SIGMOID, add_variable(draw, shape));
    int number = emit_unary(draw, MTF_OP_FLOOR, emit_scaled(draw, share, (double)classes));
    MtfShape scalar = { 0 };
    MtfAttributes one = MTF_NO_ATTRIBUTES;
    one.value = 1;
    int ones = emit(
        draw, (MtfNewOperation){ .kind = MTF_OP_CONSTANT, .shape = &scalar, .attributes = one });
    int label = emit_plain(draw, MTF_OP_SUBTRACT, 2, (int[]){ number, ones }, NULL);
    return emit_typed(draw, MTF_OP_CAST, 1, &label, NULL, MTF_I32);
}

/* Losses of labels of which some count nothing, those of the others softened, under a mask of bools. */
static int draw_labels(MtfDraw *draw) {
    int logits = pick_with_dims(draw);
    int classes = random_dim(draw, logits);
    MtfShape rest = without(shape_of(draw, logits), classes);
    if (!draw->options->composites)
        return -1;
    MtfAttributes attributes = MTF_NO_ATTRIBUTES;
    attributes.smoothing = below(draw, 2) * 0.1;
    attributes.z_loss = below(draw, 2) * 0.01;
    attributes.ignore = below(draw, 2);
    int labels = attributes.ignore > 0
                     ? draw_ignored(draw, &rest, mtf_graph_size(draw->graph, classes))
                     : add_input(draw, &rest, true);
    int n = 2 + below(draw, 2), inputs[] = { logits, labels, -1 };
    if (n == 3) {
        int x = add_variable(draw, &rest), y = add_variable(draw, &rest);
        inputs[2] = emit_typed(draw, MTF_OP_LESS, 2, (int[]){ x, y }, NULL,
                               below(draw, 2) ? MTF_BOOL : dtype_of(draw));
    }
    return emit(draw, (MtfNewOperation){ .kind = MTF_OP_SOFTMAX_CROSS_ENTROPY,
                                         .n_inputs = n,
                                         .inputs = inputs,
                                         .shape = &rest,
                                         .attributes = attributes });
}

int mtf_draw_layer(MtfDraw *draw) {
    static int (*const draws[])(MtfDraw *) = {
        draw_positions,   draw_sums,           draw_logic,
        draw_of_positive, mtf_draw_conv,       mtf_draw_conv,
        mtf_draw_pool,    draw_norm,           draw_grouped_attention,
        draw_experts,     draw_loop,           draw_scatter,
        draw_cut,         draw_stack,          draw_product,
        draw_labels,      draw_masked_softmax,
    };
    return draws[below(draw, (int)G_N_ELEMENTS(draws))](draw);
}
