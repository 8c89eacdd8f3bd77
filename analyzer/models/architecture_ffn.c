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

/* 1 for the experts with the k largest shares, else 0. Each turn takes the largest that is left,
 * and puts it below all others. */
static int choose(MtfAssembly *m, int shares) {
    MtfShape each = MTF_SHAPE(m->batch, m->length);
    int rest = mtf_parts_apply(m->p, MTF_OP_STOP_GRADIENT, "shares_read", NULL, shares, -1);
    int chosen = -1;
    for (int i = 0; i < (int)m->stack->experts_per_token; i++) {
        g_autofree char *turn = g_strdup_printf("choice/%d", i);
        mtf_parts_enter(m->p, turn);
        int largest = mtf_parts_apply(m->p, MTF_OP_REDUCE_MAX, "largest", &each, rest, -1);
        int hit = mtf_parts_apply(m->p, MTF_OP_EQUAL, "hit", NULL, rest, largest);
        chosen = chosen < 0 ? hit : mtf_parts_add(m->p, "chosen", chosen, hit);
        int below = mtf_assembly_scale(m, "below", 2, hit);
        rest = mtf_parts_apply(m->p, MTF_OP_SUBTRACT, "rest", NULL, rest, below);
        mtf_parts_leave(m->p);
    }
    return chosen;
}

/* The share of each expert in each token; 0 for those that were not chosen. */
static int route(MtfAssembly *m, int experts, int x) {
    MtfLinear router = { .name = "router",
                         .file = m->stack->names.router,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(experts),
                         .spread = m->n->spread };
    int scores = mtf_assembly_linear(m, &router, x);
    m->p->b.attributes.dimension = experts;
    int shares = mtf_parts_apply(m->p, MTF_OP_SOFTMAX, "shares", NULL, scores, -1);
    int chosen = choose(m, shares);
    int kept = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "shares_kept", NULL, shares, chosen);
    if (!m->stack->renormalise)
        return kept;
    MtfShape each = MTF_SHAPE(m->batch, m->length);
    int sum = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "shares_sum", &each, kept, -1);
    return mtf_parts_apply(m->p, MTF_OP_DIVIDE, "shares_normal", NULL, kept, sum);
}

/* x through the gate's or the other matrix of every expert. Files have a tensor an expert. */
static int expert_up(MtfAssembly *m, const char *name, const char *file, const MtfShape *dims,
                     int x) {
    g_autofree char *weight = g_strdup_printf("w%s", name);
    int experts = dims->dims[0], width = dims->dims[1];
    int w =
        mtf_assembly_stack(m, weight, file, &MTF_SHAPE(experts, width, m->d_model), m->n->spread);
    MtfShape shape = MTF_SHAPE(m->batch, m->length, experts, width);
    return mtf_parts_einsum(m->p, name, &shape, x, w);
}

/* Every expert works on every token, and the shares leave those that were chosen. */
static int expert_ffn(MtfAssembly *m, int x) {
    const MtfStackNames *n = &m->stack->names;
    int experts = mtf_assembly_dimension(m, "experts", m->stack->experts);
    int width = mtf_assembly_dimension(m, "d_expert", m->stack->d_expert);
    MtfShape dims = MTF_SHAPE(experts, width);
    int shares = route(m, experts, x);
    int gate = mtf_assembly_activation(m, m->stack->activation,
                                       expert_up(m, "gate", n->expert_gate, &dims, x));
    int hidden = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gated", NULL, gate,
                                 expert_up(m, "hidden", n->expert_up, &dims, x));
    int shared = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "shared", NULL, hidden, shares);
    int w = mtf_assembly_stack(m, "wout", n->expert_down, &MTF_SHAPE(experts, m->d_model, width),
                               m->residual_spread);
    MtfShape shape = MTF_SHAPE(m->batch, m->length, m->d_model);
    return mtf_parts_einsum(m->p, "out", &shape, shared, w);
}

int mtf_assembly_ffn(MtfAssembly *m, int x) {
    return has_experts(m) ? expert_ffn(m, x) : dense_ffn(m, x);
}
