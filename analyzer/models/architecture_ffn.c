// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_parts.h"

#include <math.h>

/* One hidden layer of all tokens, and where files keep its matrices. */
typedef struct {
    const char *dimension; /* of its hidden layer */
    int64_t width;
    const char *gate, *up, *down;
    const char *gate_up; /* instead of the first two */
} Dense;

static int up(MtfAssembly *m, const Dense *dense, const char *name, int part, int x) {
    int width = mtf_assembly_dimension(m, dense->dimension, dense->width);
    MtfLinear linear = { .name = name,
                         .file = part == 0 ? dense->gate : dense->up,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(width),
                         .bias = m->stack->ffn_bias,
                         .spread = m->n->spread };
    if (dense->gate_up != NULL) {
        linear.file = dense->gate_up;
        linear.begin = part * dense->width;
        linear.total = 2 * dense->width;
    }
    return mtf_assembly_linear(m, &linear, x);
}

/* max(x - mean - c deviation, 0) over a place's features, in layers whose gates are sparse (Gemma 3n). */
static int strongest(MtfAssembly *m, int x) {
    if (!mtf_layers_have(m->stack->sparse_layers, m->layer))
        return x;
    MtfShape places = MTF_SHAPE(m->batch, m->length);
    mtf_parts_enter(m->p, "strongest");
    int mean = mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "mean", &places, x, -1);
    int apart = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "apart", NULL, x, mean);
    int square = mtf_parts_apply(m->p, MTF_OP_SQUARE, "square", NULL, apart, -1);
    int variance = mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "variance", &places, square, -1);
    int deviation = mtf_parts_apply(m->p, MTF_OP_SQRT, "deviation", NULL, variance, -1);
    int cut = mtf_assembly_scale(m, "cut", m->stack->sparse_deviations, deviation);
    int above = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "above", NULL, apart, cut);
    int y = mtf_parts_apply(m->p, MTF_OP_RELU, "y", NULL, above, -1);
    mtf_parts_leave(m->p);
    return y;
}

static int dense_ffn(MtfAssembly *m, const Dense *dense, int x) {
    const MtfStack *s = m->stack;
    int hidden, width = mtf_assembly_dimension(m, dense->dimension, dense->width);
    if (s->gated) {
        int gate = mtf_assembly_scale(m, "gate_scaled", s->gate_scale, up(m, dense, "gate", 0, x));
        gate = mtf_assembly_activation(m, s->activation, strongest(m, gate));
        hidden = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gated", NULL, gate,
                                 up(m, dense, "hidden", 1, x));
    } else {
        hidden = mtf_assembly_activation(m, s->activation, up(m, dense, "hidden", 1, x));
    }
    hidden = mtf_assembly_norm(m, "hidden_norm", s->names.on_hidden, width, hidden);
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = "out",
                                             .file = dense->down,
                                             .in = MTF_SHAPE(width),
                                             .out = MTF_SHAPE(m->d_model),
                                             .bias = s->ffn_bias,
                                             .spread = m->residual_spread },
                               hidden);
}

/* ---- Experts --------------------------------------------------------------------------------- */

static bool has_experts(const MtfStack *s, int layer) {
    bool dense = layer < 256 && (s->dense_layers[layer / 64] >> layer % 64 & 1);
    return s->experts > 0 && !dense && (layer + 1) % MAX(1, s->sparse_step) == 0;
}

/* How many layers of the model have experts. */
static int64_t expert_layers(const MtfArchitecture *n) {
    const MtfStack *const stacks[] = { &n->encoder, &n->decoder };
    int64_t layers = 0;
    for (int i = 0; i < 2; i++)
        for (int layer = 0; stacks[i]->heads > 0 && layer < stacks[i]->layers; layer++)
            layers += has_experts(stacks[i], layer);
    return layers;
}

/* The dimensions of a layer with experts, and who goes where. */
typedef struct {
    MtfRoutingDims dims;
    int model; /* features that experts read and make */
    int width; /* of an expert's hidden layer */
    MtfRouted routed;
} Experts;

/* What the router reads: the token itself, or its norm without a scale times one of its own and 1 / sqrt(d_model). */
static int routed_by(MtfAssembly *m, int x) {
    const char *file = m->stack->names.router_scale;
    if (file == NULL)
        return x;
    mtf_parts_enter(m->p, "router_norm");
    int unit = mtf_assembly_bare_norm(m, "norm", m->d_model, m->seen);
    int small = mtf_assembly_scale(m, "small", 1 / sqrt((double)m->n->d_model), unit);
    int factors = mtf_assembly_factors(m, "scale", file, m->d_model);
    int y = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "scaled", NULL, small, factors);
    mtf_parts_leave(m->p);
    return y;
}

/* In training, times numbers that are drawn anew in each step. */
static int jittered(MtfAssembly *m, int x) {
    double jitter = m->stack->routing.jitter;
    if (jitter <= 0)
        return x;
    m->p->b.attributes.low = 1 - jitter;
    m->p->b.attributes.high = 1 + jitter;
    MtfShape shape = MTF_SHAPE(m->batch, m->length, m->d_model);
    int noise = mtf_parts_apply_shaped(m->p, MTF_OP_RANDOM_UNIFORM, "jitter", &shape);
    int y = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "jittered", NULL, x, noise);
    return mtf_parts_apply(m->p, MTF_OP_IN_TRAIN_PHASE, "trained_by", NULL, y, x);
}

static int scores_of(MtfAssembly *m, int experts, int x) {
    MtfLinear router = { .name = "router",
                         .file = m->stack->names.router,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(experts),
                         .bias = m->stack->expert_bias,
                         .spread = m->n->spread };
    if (!m->stack->routing.experts_read_jittered)
        x = jittered(m, x);
    return mtf_assembly_linear(m, &router, x);
}

/* Where experts lie in groups, those and what is chosen of them. */
static void add_groups(MtfAssembly *m, const MtfRouting *routing, MtfRoutingDims *dims) {
    if (routing->biased)
        dims->bias = mtf_assembly_kept(m, "choice_bias", m->stack->names.choice_bias, dims->experts,
                                       m->stack->choice_bias_is_row);
    if (routing->groups <= 1)
        return;
    dims->groups = mtf_assembly_dimension(m, "expert_groups", routing->groups);
    dims->members = mtf_assembly_dimension(m, "group_experts", routing->experts / routing->groups);
    dims->group_choices = mtf_assembly_dimension(m, "group_choices", routing->group_choices);
    dims->pair = mtf_assembly_dimension(m, "group_pair", 2);
}

/* Shares times a number of the expert that they are of. */
static void scale_gates(MtfAssembly *m, Experts *e) {
    const char *file = m->stack->names.expert_scales;
    MtfShape each = MTF_SHAPE(m->batch, m->length, e->dims.choices);
    if (file == NULL)
        return;
    int scales = mtf_assembly_factors(m, "expert_scales", file, e->dims.experts);
    int read = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "expert_scales_read", &each, scales,
                               e->routed.choice);
    e->routed.gate =
        mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gates_scaled", NULL, e->routed.gate, read);
}

/* Each sequence is a group: its tokens compete for places, or their choices are sorted by expert. */
static Experts route(MtfAssembly *m, int x) {
    const MtfStack *s = m->stack;
    MtfRouting routing = s->routing;
    routing.experts = s->experts;
    routing.choices = s->experts_per_token;
    routing.renormalise = s->renormalise;
    int64_t choices = mtf_routing_choices(&routing);
    routing.choices = choices;
    routing.layers = expert_layers(m->n);
    int64_t length = mtf_graph_size(m->p->b.graph, m->length);
    int64_t places = mtf_routing_places(&routing, length);
    Experts e = { .model = m->d_model,
                  .width = mtf_assembly_dimension(m, "d_expert", s->d_expert) };
    if (s->d_expert_model > 0)
        e.model = mtf_assembly_dimension(m, "d_expert_model", s->d_expert_model);
    e.dims.tokens = m->length;
    e.dims.experts = mtf_assembly_dimension(m, "experts", s->experts);
    e.dims.choices = mtf_assembly_dimension(m, "choices", choices);
    e.dims.places = places > 0 ? mtf_assembly_dimension(m, "capacity", places)
                               : mtf_assembly_dimension(m, "expert_rows", length * choices);
    add_groups(m, &routing, &e.dims);
    e.routed = mtf_route(m->p, &routing, &e.dims, scores_of(m, e.dims.experts, routed_by(m, x)));
    scale_gates(m, &e);
    mtf_routed_add(m->p, &m->routed, &e.routed);
    return e;
}

/* What experts work on: a block of places for each expert, or rows that each name their expert. */
static MtfShape places_of(const MtfAssembly *m, const Experts *e, int features) {
    return e->routed.expert < 0 ? MTF_SHAPE(e->dims.experts, m->batch, e->dims.places, features)
                                : MTF_SHAPE(m->batch, e->dims.places, features);
}

/* The bias of each row's expert. */
static int add_expert_bias(MtfAssembly *m, const Experts *e, const MtfLinear *linear, int y) {
    g_autofree char *name = g_strdup_printf("%s_bias", linear->name);
    g_autofree char *read = g_strdup_printf("%s_bias_read", linear->name);
    g_autofree char *sum = g_strdup_printf("%s_biased", linear->name);
    int out = linear->out.dims[0];
    MtfShape rows = places_of(m, e, out);
    int bias = mtf_assembly_stack_bias(m, name, linear, &MTF_SHAPE(e->dims.experts, out));
    if (e->routed.expert >= 0)
        bias = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, read, &rows, bias, e->routed.expert);
    return mtf_parts_add(m->p, sum, y, bias);
}

/* Through one matrix of each expert. Files have a tensor an expert, [out, in], or one of all. */
static int expert_product(MtfAssembly *m, const Experts *e, const MtfLinear *linear, int x) {
    g_autofree char *weight = g_strdup_printf("w%s", linear->name);
    int in = linear->in.dims[0], out = linear->out.dims[0];
    MtfShape stored = linear->in_first ? MTF_SHAPE(e->dims.experts, in, out)
                                       : MTF_SHAPE(e->dims.experts, out, in);
    int w = mtf_assembly_stack(m, weight, linear, &stored);
    MtfShape shape = places_of(m, e, out);
    m->p->b.attributes.experts = e->routed.expert < 0 ? -1 : e->dims.experts;
    int y = e->routed.expert < 0
                ? mtf_parts_einsum(m->p, linear->name, &shape, x, w)
                : mtf_parts_apply_shape_to(m->p, MTF_OP_EXPERT_EINSUM, linear->name, &shape, 3,
                                           (int[]){ x, w, e->routed.expert });
    return linear->bias ? add_expert_bias(m, e, linear, y) : y;
}

/* The limited gate of gpt-oss (OpenAI, 2025): with g = min(gate, limit) and u within the limit on both sides,
 * g sigmoid(1.702 g) (u + 1). */
static int limited_gate(MtfAssembly *m, int gate, int up) {
    double most = m->stack->gate_limit;
    int limit = mtf_parts_constant(m->p, "gate_limit", most);
    int one = mtf_parts_constant(m->p, "one", 1);
    int below = mtf_parts_apply(m->p, MTF_OP_MINIMUM, "gate_below", NULL, gate, limit);
    int open = mtf_assembly_activation(m, "quick_gelu", below);
    m->p->b.attributes.low = -most;
    m->p->b.attributes.high = most;
    int within = mtf_parts_apply(m->p, MTF_OP_CLIP, "hidden_within", NULL, up, -1);
    int more = mtf_parts_add(m->p, "hidden_more", within, one);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gated", NULL, open, more);
}

/* Where files keep gate and the other in one tensor, the half, or every second output, that each has. */
static void share_outputs(const MtfStack *s, MtfLinear *gate, MtfLinear *up) {
    if (s->names.expert_gate_up == NULL)
        return;
    gate->file = up->file = s->names.expert_gate_up;
    gate->blocks = up->blocks = s->experts_alternate ? s->d_expert : 0;
    up->begin = s->experts_alternate ? 1 : s->d_expert;
    gate->total = up->total = s->experts_alternate ? 2 : 2 * s->d_expert;
}

static int expert_hidden(MtfAssembly *m, const Experts *e, int sent) {
    const MtfStack *s = m->stack;
    MtfLinear up = { .name = "hidden",
                     .file = s->names.expert_up,
                     .in = MTF_SHAPE(e->model),
                     .out = MTF_SHAPE(e->width),
                     .bias = s->expert_bias,
                     .in_first = s->experts_in_first,
                     .spread = m->n->spread };
    MtfLinear gate = up;
    if (!s->gated)
        return mtf_assembly_activation(m, s->activation, expert_product(m, e, &up, sent));
    gate.name = "gate";
    gate.file = s->names.expert_gate;
    share_outputs(s, &gate, &up);
    int opens = expert_product(m, e, &gate, sent);
    if (s->gate_limit > 0)
        return limited_gate(m, opens, expert_product(m, e, &up, sent));
    int open = mtf_assembly_activation(m, s->activation, opens);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gated", NULL, open,
                           expert_product(m, e, &up, sent));
}

/* Features of one width as those of another, where experts have a width of their own. */
static int change_width(MtfAssembly *m, const char *name, const char *file, int from, int to,
                        int x) {
    MtfLinear linear = { .name = name,
                         .file = file,
                         .in = MTF_SHAPE(from),
                         .out = MTF_SHAPE(to),
                         .bias = m->stack->ffn_bias,
                         .spread = m->n->spread };
    return from == to ? x : mtf_assembly_linear(m, &linear, x);
}

static int expert_ffn(MtfAssembly *m, int x) {
    const MtfStackNames *names = &m->stack->names;
    if (m->stack->routing.experts_read_jittered)
        x = jittered(m, x);
    Experts e = route(m, x);
    MtfShape all = MTF_SHAPE(m->batch, m->length, e.model);
    MtfShape places = places_of(m, &e, e.model);
    MtfLinear down = { .name = "out",
                       .file = names->expert_down,
                       .in = MTF_SHAPE(e.width),
                       .out = MTF_SHAPE(e.model),
                       .bias = m->stack->expert_bias,
                       .in_first = m->stack->experts_in_first || m->stack->experts_joined,
                       .spread = m->residual_spread };
    bool before = m->stack->gate_on_input;
    x = change_width(m, "narrowed", names->expert_narrow, m->d_model, e.model, x);
    int sent = mtf_parts_apply_shape_to(m->p, MTF_OP_DISPATCH, "sent", &places, before ? 3 : 2,
                                        (int[]){ x, e.routed.slot, e.routed.gate });
    int made = expert_product(m, &e, &down, expert_hidden(m, &e, sent));
    int y = mtf_parts_apply_shape_to(m->p, MTF_OP_COMBINE, "combined", &all, before ? 2 : 3,
                                     (int[]){ made, e.routed.slot, e.routed.gate });
    double scale = m->stack->expert_scale;
    y = mtf_assembly_scale(m, "combined_scaled", scale > 0 ? scale : 1, y);
    return change_width(m, "widened", names->expert_widen, e.model, m->d_model, y);
}

/* The part of y that a token gets, sigmoid(x w) with one column w. */
static int shared_share(MtfAssembly *m, int x, int y) {
    int one = mtf_assembly_dimension(m, "shared_share", 1);
    MtfLinear linear = { .name = "share",
                         .file = m->stack->names.shared_share,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(one),
                         .spread = m->n->spread };
    MtfShape tokens = MTF_SHAPE(m->batch, m->length);
    int score = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "score", &tokens,
                                mtf_assembly_linear(m, &linear, x), -1);
    int share = mtf_parts_apply(m->p, MTF_OP_SIGMOID, "shares", NULL, score, -1);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "shared", NULL, y, share);
}

/* What experts made, and what all tokens went through beside them (Dai and others, DeepSeekMoE, 2024). */
static int add_shared(MtfAssembly *m, int x, int routed) {
    const MtfStack *s = m->stack;
    Dense shared = { "d_shared",         s->d_shared,          s->names.shared_gate,
                     s->names.shared_up, s->names.shared_down, s->names.shared_gate_up };
    if (s->d_shared == 0)
        return routed;
    mtf_parts_enter(m->p, "shared");
    int y = dense_ffn(m, &shared, x);
    if (s->names.shared_share != NULL)
        y = shared_share(m, x, y);
    y = mtf_assembly_norm(m, "on", s->names.on_shared, m->d_model, y);
    mtf_parts_leave(m->p);
    return mtf_parts_add(m->p, "routed_and_shared", routed, y);
}

int mtf_assembly_ffn(MtfAssembly *m, int x) {
    const MtfStack *s = m->stack;
    Dense dense = { "d_ff", s->d_ff, s->names.gate, s->names.up, s->names.down, s->names.gate_up };
    if (s->borrowers_wide && mtf_assembly_borrows(m)) {
        dense.dimension = "d_ff_wide";
        dense.width *= 2;
    }
    if (!has_experts(s, m->layer))
        return dense_ffn(m, &dense, x);
    bool own = s->names.before_experts != NULL;
    int read = mtf_assembly_norm(m, "before_experts", s->names.before_experts, m->d_model,
                                 own ? m->seen : x);
    int made =
        mtf_assembly_norm(m, "on_experts", s->names.on_experts, m->d_model, expert_ffn(m, read));
    return add_shared(m, x, made);
}
