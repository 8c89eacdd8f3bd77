// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_parts.h"

static int up(MtfAssembly *m, const char *name, const char *file, int part, int x) {
    const MtfStackNames *n = &m->stack->names;
    int d_ff = mtf_assembly_dimension(m, "d_ff", m->stack->d_ff);
    MtfLinear linear = { .name = name,
                         .file = file,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(d_ff),
                         .bias = m->stack->ffn_bias,
                         .spread = m->n->spread };
    if (n->gate_up != NULL) {
        linear.file = n->gate_up;
        linear.begin = part * m->stack->d_ff;
        linear.total = 2 * m->stack->d_ff;
    }
    return mtf_assembly_linear(m, &linear, x);
}

static int dense_ffn(MtfAssembly *m, int x) {
    const MtfStack *s = m->stack;
    int hidden, d_ff = mtf_assembly_dimension(m, "d_ff", s->d_ff);
    if (s->gated) {
        int gate = mtf_assembly_activation(m, s->activation, up(m, "gate", s->names.gate, 0, x));
        hidden = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gated", NULL, gate,
                                 up(m, "hidden", s->names.up, 1, x));
    } else {
        hidden = mtf_assembly_activation(m, s->activation, up(m, "hidden", s->names.up, 1, x));
    }
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = "out",
                                             .file = s->names.down,
                                             .in = MTF_SHAPE(d_ff),
                                             .out = MTF_SHAPE(m->d_model),
                                             .bias = s->ffn_bias,
                                             .spread = m->residual_spread },
                               hidden);
}

/* ---- Experts --------------------------------------------------------------------------------- */

static bool has_experts(const MtfAssembly *m) {
    const MtfStack *s = m->stack;
    bool dense = m->layer < 256 && (s->dense_layers[m->layer / 64] >> m->layer % 64 & 1);
    return s->experts > 0 && !dense && (m->layer + 1) % MAX(1, s->sparse_step) == 0;
}

/* The dimensions of a layer with experts, and who goes where. */
typedef struct {
    MtfRoutingDims dims;
    int width; /* of an expert's hidden layer */
    MtfRouted routed;
} Experts;

static int scores_of(MtfAssembly *m, int experts, int x) {
    MtfLinear router = { .name = "router",
                         .file = m->stack->names.router,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(experts),
                         .spread = m->n->spread };
    double jitter = m->stack->routing.jitter;
    if (jitter > 0) {
        m->p->b.attributes.low = 1 - jitter;
        m->p->b.attributes.high = 1 + jitter;
        MtfShape shape = MTF_SHAPE(m->batch, m->length, m->d_model);
        int noise = mtf_parts_apply_shaped(m->p, MTF_OP_RANDOM_UNIFORM, "jitter", &shape);
        x = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "jittered", NULL, x, noise);
    }
    return mtf_assembly_linear(m, &router, x);
}

/* Each sequence is a group: its tokens compete for places, or their choices are sorted by expert. */
static Experts route(MtfAssembly *m, int x) {
    const MtfStack *s = m->stack;
    MtfRouting routing = s->routing;
    routing.experts = s->experts;
    routing.choices = s->experts_per_token;
    routing.renormalise = s->renormalise;
    int64_t length = mtf_graph_size(m->p->b.graph, m->length);
    int64_t places = mtf_routing_places(&routing, length);
    Experts e = { .width = mtf_assembly_dimension(m, "d_expert", s->d_expert) };
    e.dims.tokens = m->length;
    e.dims.experts = mtf_assembly_dimension(m, "experts", s->experts);
    e.dims.choices = mtf_assembly_dimension(m, "choices", s->experts_per_token);
    e.dims.places = places > 0
                        ? mtf_assembly_dimension(m, "capacity", places)
                        : mtf_assembly_dimension(m, "expert_rows", length * s->experts_per_token);
    e.routed = mtf_route(m->p, &routing, &e.dims, scores_of(m, e.dims.experts, x));
    if (e.routed.loss >= 0)
        m->routing_loss = m->routing_loss < 0 ? e.routed.loss
                                              : mtf_parts_add(m->p, "routing_loss_sum",
                                                              m->routing_loss, e.routed.loss);
    return e;
}

/* What experts work on: places of each, or rows of which each has its expert. */
static MtfShape places_of(const MtfAssembly *m, const Experts *e, int features) {
    return e->routed.expert < 0 ? MTF_SHAPE(e->dims.experts, m->batch, e->dims.places, features)
                                : MTF_SHAPE(m->batch, e->dims.places, features);
}

/* Through one matrix of each expert. Files have a tensor an expert, [out, in]. */
static int expert_product(MtfAssembly *m, const Experts *e, const MtfLinear *linear, int x) {
    g_autofree char *weight = g_strdup_printf("w%s", linear->name);
    int in = linear->in.dims[0], out = linear->out.dims[0];
    int w = mtf_assembly_stack(m, weight, linear->file, &MTF_SHAPE(e->dims.experts, out, in),
                               linear->spread);
    MtfShape shape = places_of(m, e, out);
    if (e->routed.expert < 0)
        return mtf_parts_einsum(m->p, linear->name, &shape, x, w);
    m->p->b.attributes.experts = e->dims.experts;
    return mtf_parts_apply_shape_to(m->p, MTF_OP_EXPERT_EINSUM, linear->name, &shape, 3,
                                    (int[]){ x, w, e->routed.expert });
}

static int expert_hidden(MtfAssembly *m, const Experts *e, int sent) {
    const MtfStack *s = m->stack;
    MtfLinear up = { .name = "hidden",
                     .file = s->names.expert_up,
                     .in = MTF_SHAPE(m->d_model),
                     .out = MTF_SHAPE(e->width),
                     .spread = m->n->spread };
    MtfLinear gate = up;
    if (!s->gated)
        return mtf_assembly_activation(m, s->activation, expert_product(m, e, &up, sent));
    gate.name = "gate";
    gate.file = s->names.expert_gate;
    int open = mtf_assembly_activation(m, s->activation, expert_product(m, e, &gate, sent));
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gated", NULL, open,
                           expert_product(m, e, &up, sent));
}

static int expert_ffn(MtfAssembly *m, int x) {
    Experts e = route(m, x);
    MtfShape all = MTF_SHAPE(m->batch, m->length, m->d_model);
    MtfShape places = places_of(m, &e, m->d_model);
    MtfLinear down = { .name = "out",
                       .file = m->stack->names.expert_down,
                       .in = MTF_SHAPE(e.width),
                       .out = MTF_SHAPE(m->d_model),
                       .spread = m->residual_spread };
    int sent = mtf_parts_apply(m->p, MTF_OP_DISPATCH, "sent", &places, x, e.routed.slot);
    int made = expert_product(m, &e, &down, expert_hidden(m, &e, sent));
    return mtf_parts_apply_shape_to(m->p, MTF_OP_COMBINE, "combined", &all, 3,
                                    (int[]){ made, e.routed.slot, e.routed.gate });
}

int mtf_assembly_ffn(MtfAssembly *m, int x) {
    return has_experts(m) ? expert_ffn(m, x) : dense_ffn(m, x);
}
