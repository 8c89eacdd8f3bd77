// SPDX-License-Identifier: GPL-3.0-or-later
/* Several residual streams of which a layer computes one (Gemma 3n, 2025; "AltUp", Baykal and others, 2023):
 *
 *     h[s], s = 0 … n - 1, of the embedding and of matrices' products with it, each as large as the embedding
 *     r = tanh(route(norm(h[0]) / d_model))                        n features of each place
 *     p[s] = h[s] + sum over t of P(r)[s, t] h[t]                  what the layer is predicted to make
 *     y = what attention, the feed-forward part and a narrow one beside attention make of p[0]
 *     h'[s] = p[s] + (1 + C(r')[s]) (y - p[0]), r' as r of y       what it did make corrects all
 *     h'[s] += of the token (token_input.c), by h'[0], s > 0
 *
 * Behind the last layer the mean of all, each through a matrix of its own but the first. A tensor [streams,
 * batch, length, d_model] holds them; names in files are those of Gemma 3n alone. */
#include "analyzer/models/architecture_parts.h"

#include <math.h>

/* Stream 0. */
static int first_stream(MtfAssembly *m, const char *name, int x) {
    m->p->b.attributes.dimension = m->streams;
    m->p->b.attributes.index = 0;
    return mtf_parts_apply(m->p, MTF_OP_SELECT, name, NULL, x, -1);
}

/* ---- Before the first layer and behind the last ----------------------------------------------- */

static int mean_square(MtfAssembly *m, const char *name, int x) {
    MtfShape places = MTF_SHAPE(m->batch, m->length);
    g_autofree char *squares = g_strdup_printf("%s_square", name);
    int square = mtf_parts_apply(m->p, MTF_OP_SQUARE, squares, NULL, x, -1);
    return mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, name, &places, square, -1);
}

/* A matrix times x, as large as `size`, the root of a mean square, says. */
static int as_large(MtfAssembly *m, const char *files, int number, int size, int x) {
    g_autofree char *file = g_strdup_printf("%s.%d", files, number);
    int width = mtf_assembly_dimension(m, "d_stream", m->n->d_model);
    m->p->b.attributes.from = m->d_model;
    m->p->b.attributes.to = width;
    int read = mtf_parts_apply(m->p, MTF_OP_RENAME, "read", NULL, x, -1);
    MtfLinear linear = { .name = "made",
                         .file = file,
                         .in = MTF_SHAPE(width),
                         .out = MTF_SHAPE(m->d_model),
                         .spread = m->n->spread };
    int made = mtf_assembly_linear(m, &linear, read);
    int least = mtf_parts_constant(m->p, "least", 1e-5);
    int large = mtf_parts_apply(m->p, MTF_OP_MAXIMUM, "large", NULL,
                                mean_square(m, "own_size", made), least);
    int shrink = mtf_parts_apply(m->p, MTF_OP_RSQRT, "shrink", NULL, large, -1);
    int factor = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "factor", NULL, size, shrink);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "y", NULL, made, factor);
}

static int size_of(MtfAssembly *m, int x) {
    return mtf_parts_apply(m->p, MTF_OP_SQRT, "size", NULL, mean_square(m, "size_mean", x), -1);
}

int mtf_assembly_begin_streams(MtfAssembly *m, int x) {
    int streams[MTF_MOST_STREAMS] = { x };
    m->streams = mtf_assembly_dimension(m, "streams", m->stack->streams);
    MtfShape all = MTF_SHAPE(m->streams, m->batch, m->length, m->d_model);
    mtf_parts_enter(m->p, "streams");
    int size = size_of(m, x);
    for (int i = 1; i < m->stack->streams; i++) {
        g_autofree char *name = g_strdup_printf("%d", i);
        mtf_parts_enter(m->p, name);
        streams[i] = as_large(m, "model.altup_projections", i - 1, size, x);
        mtf_parts_leave(m->p);
    }
    int y =
        mtf_parts_apply_shape_to(m->p, MTF_OP_STACK, "x", &all, (int)m->stack->streams, streams);
    mtf_parts_leave(m->p);
    return y;
}

int mtf_assembly_end_streams(MtfAssembly *m, int x) {
    mtf_parts_enter(m->p, "streams_end");
    int sum = first_stream(m, "first", x), size = size_of(m, sum);
    for (int i = 1; i < m->stack->streams; i++) {
        g_autofree char *name = g_strdup_printf("%d", i);
        mtf_parts_enter(m->p, name);
        m->p->b.attributes.dimension = m->streams;
        m->p->b.attributes.index = i;
        int own = mtf_parts_apply(m->p, MTF_OP_SELECT, "own", NULL, x, -1);
        own = as_large(m, "model.altup_unembed_projections", i - 1, size, own);
        sum = mtf_parts_add(m->p, "sum", sum, own);
        mtf_parts_leave(m->p);
    }
    int y = mtf_assembly_scale(m, "mean", 1 / (double)m->stack->streams, sum);
    mtf_parts_leave(m->p);
    return y;
}

/* ---- A layer ---------------------------------------------------------------------------------- */

/* r of the stream that the layer computes, before it (0) and behind it (1), by the same weights. */
static int routes(MtfAssembly *m, int which, int route, int x) {
    static const char *const names[][4] = {
        { "router_norm", "router_read", "routed", "routes" },
        { "router_norm_behind", "router_read_behind", "routed_behind", "routes_behind" },
    };
    MtfLinear linear = { .name = names[which][2],
                         .weights = "routed",
                         .file = "altup.modality_router",
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(route),
                         .spread = m->n->spread };
    int scale = mtf_assembly_variable(m, "router_norm_scale", "altup.router_norm",
                                      &MTF_SHAPE(m->d_model), MTF_INIT_CONSTANT, 1);
    m->p->b.attributes.dimension = m->d_model;
    m->p->b.attributes.epsilon = m->n->epsilon;
    int normal = mtf_parts_apply(m->p, MTF_OP_RMS_NORM, names[which][0], NULL, x, scale);
    int small = mtf_assembly_scale(m, names[which][1], 1 / (double)m->n->d_model, normal);
    return mtf_parts_apply(m->p, MTF_OP_TANH, names[which][3], NULL,
                           mtf_assembly_linear(m, &linear, small), -1);
}

static int predict(MtfAssembly *m, int route, int x) {
    int made = mtf_assembly_dimension(m, "streams_made", m->stack->streams);
    MtfLinear linear = { .name = "shares",
                         .file = "altup.prediction_coefs",
                         .in = MTF_SHAPE(route),
                         .out = MTF_SHAPE(made, m->streams),
                         .spread = m->n->spread };
    MtfShape all = MTF_SHAPE(made, m->batch, m->length, m->d_model);
    int r = routes(m, 0, route, first_stream(m, "first", x));
    mtf_parts_enter(m->p, "predict");
    int mixed = mtf_parts_einsum(m->p, "mixed", &all, mtf_assembly_linear(m, &linear, r), x);
    m->p->b.attributes.from = made;
    m->p->b.attributes.to = m->streams;
    int moved = mtf_parts_apply(m->p, MTF_OP_RENAME, "moved", NULL, mixed, -1);
    int y = mtf_parts_add(m->p, "x", moved, x);
    mtf_parts_leave(m->p);
    return y;
}

/* All streams by what the layer made of the first one. */
static int correct(MtfAssembly *m, int route, int predicted, int active, int y) {
    MtfLinear linear = { .name = "shares",
                         .file = "altup.correction_coefs",
                         .in = MTF_SHAPE(route),
                         .out = MTF_SHAPE(m->streams),
                         .spread = m->n->spread };
    MtfShape all = MTF_SHAPE(m->streams, m->batch, m->length, m->d_model);
    int r = routes(m, 1, route, y);
    mtf_parts_enter(m->p, "correct");
    int shares = mtf_assembly_linear(m, &linear, r);
    int more = mtf_parts_add(m->p, "shares_more", shares, mtf_parts_constant(m->p, "one", 1));
    int news = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "news", NULL, y, active);
    int step = mtf_parts_einsum(m->p, "step", &all, more, news);
    int x = mtf_parts_add(m->p, "x", predicted, step);
    mtf_parts_leave(m->p);
    return x;
}

/* x and what a narrow matrix pair makes of it, beside attention. */
static int narrow_part(MtfAssembly *m, int x) {
    int narrow = mtf_assembly_dimension(m, "d_narrow", m->stack->d_narrow);
    MtfLinear left = { .name = "left",
                       .file = "laurel.linear_left",
                       .in = MTF_SHAPE(m->d_model),
                       .out = MTF_SHAPE(narrow),
                       .spread = m->n->spread };
    MtfLinear right = { .name = "right",
                        .file = "laurel.linear_right",
                        .in = MTF_SHAPE(narrow),
                        .out = MTF_SHAPE(m->d_model),
                        .spread = m->residual_spread };
    mtf_parts_enter(m->p, "narrow");
    int y = mtf_assembly_linear(m, &right, mtf_assembly_linear(m, &left, x));
    int normal = mtf_assembly_norm(m, "after", "laurel.post_laurel_norm", m->d_model, y);
    int sum = mtf_parts_add(m->p, "x", x, normal);
    mtf_parts_leave(m->p);
    return sum;
}

/* What the layer makes of one stream. */
static int compute(MtfAssembly *m, int x) {
    const MtfStackNames *n = &m->stack->names;
    mtf_parts_enter(m->p, "attention");
    int normal = mtf_assembly_norm(m, "before", n->before_attention, m->d_model, x);
    int made = mtf_assembly_norm(m, "on", n->on_attention, m->d_model,
                                 mtf_assembly_self_attention(m, normal));
    int sum = mtf_parts_add(m->p, "x", x, made);
    mtf_parts_leave(m->p);
    int both = mtf_parts_add(m->p, "both", sum, narrow_part(m, normal));
    int y = mtf_assembly_scale(m, "both_scaled", sqrt(0.5), both);
    mtf_parts_enter(m->p, "ffn");
    int seen = mtf_assembly_norm(m, "before", n->before_ffn, m->d_model, y);
    int branch = mtf_assembly_norm(m, "on", n->on_ffn, m->d_model, mtf_assembly_ffn(m, seen));
    int z = mtf_parts_add(m->p, "x", y, branch);
    mtf_parts_leave(m->p);
    return z;
}

/* What the layer reads of the token, added to all streams but the first. */
static int add_token(MtfAssembly *m, int x) {
    MtfShape all = MTF_SHAPE(m->streams, m->batch, m->length, m->d_model);
    int active = first_stream(m, "corrected", x);
    if (m->stack->stream_factors)
        active = mtf_parts_apply(
            m->p, MTF_OP_MULTIPLY, "corrected_scaled", NULL, active,
            mtf_assembly_factors(m, "factors", "altup.correct_output_scale", m->d_model));
    int told = mtf_assembly_token_branch(m, active);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int number = mtf_parts_range(m->p, "number", m->streams);
    int zero = mtf_parts_constant(m->p, "zero", 0);
    int others = mtf_parts_apply(m->p, MTF_OP_LESS, "others", NULL, zero, number);
    return mtf_parts_add(m->p, "x", x, mtf_parts_einsum(m->p, "told", &all, others, told));
}

int mtf_assembly_streams_layer(MtfAssembly *m, int x) {
    int route = mtf_assembly_dimension(m, "routes", m->stack->streams);
    mtf_parts_enter(m->p, "streams");
    int predicted = predict(m, route, x);
    int active = first_stream(m, "active", predicted);
    int y = compute(m, active);
    int corrected = correct(m, route, predicted, active, y);
    int told = add_token(m, corrected);
    mtf_parts_leave(m->p);
    return told;
}
