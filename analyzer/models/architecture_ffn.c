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

/* The tokens' choices of experts, and where they are among all choices of their sequence, sorted by
 * expert: each row goes through the matrices of its expert and no token is dropped. */
typedef struct {
    int experts, width, rows; /* dimensions */
    int gate;                 /* [batch, length, choices] */
    int slot;                 /* likewise: the row of each choice */
    int expert;               /* [batch, rows] */
} Routed;

/* The share of each expert in each token. */
static int share(MtfAssembly *m, int experts, int x) {
    MtfLinear router = { .name = "router",
                         .file = m->stack->names.router,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(experts),
                         .spread = m->n->spread };
    int scores = mtf_assembly_linear(m, &router, x);
    m->p->b.attributes.dimension = experts;
    return mtf_parts_apply(m->p, MTF_OP_SOFTMAX, "shares", NULL, scores, -1);
}

static Routed route(MtfAssembly *m, int x) {
    const MtfStack *s = m->stack;
    MtfShape each = MTF_SHAPE(m->batch, m->length);
    Routed r = { .experts = mtf_assembly_dimension(m, "experts", s->experts),
                 .width = mtf_assembly_dimension(m, "d_expert", s->d_expert) };
    int choices = mtf_assembly_dimension(m, "choices", s->experts_per_token);
    int64_t length = mtf_graph_size(m->p->b.graph, m->length);
    r.rows = mtf_assembly_dimension(m, "expert_rows", length * s->experts_per_token);
    int shares = share(m, r.experts, x);
    m->p->b.attributes.from = r.experts;
    m->p->b.attributes.to = choices;
    r.gate = mtf_parts_apply(m->p, MTF_OP_TOP_K, "chosen", NULL, shares, -1);
    int choice = r.gate + (r.gate >= 0);
    m->p->b.attributes.dimension = m->length;
    m->p->b.attributes.choices = choices;
    m->p->b.attributes.experts = r.experts;
    r.slot = mtf_parts_apply(m->p, MTF_OP_SLOTS, "slot", NULL, choice, -1);
    MtfShape rows = MTF_SHAPE(m->batch, r.rows);
    r.expert = mtf_parts_apply(m->p, MTF_OP_SLOT_IDS, "expert", &rows, choice, r.slot);
    if (s->renormalise) {
        int sum = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "chosen_sum", &each, r.gate, -1);
        r.gate = mtf_parts_apply(m->p, MTF_OP_DIVIDE, "chosen_shares", NULL, r.gate, sum);
    }
    return r;
}

/* Rows through one matrix of their experts. Files have a tensor an expert, [out, in]. */
static int expert_product(MtfAssembly *m, const Routed *r, const MtfLinear *linear, int x) {
    g_autofree char *weight = g_strdup_printf("w%s", linear->name);
    int in = linear->in.dims[0], out = linear->out.dims[0];
    int w = mtf_assembly_stack(m, weight, linear->file, &MTF_SHAPE(r->experts, out, in),
                               linear->spread);
    m->p->b.attributes.experts = r->experts;
    MtfShape shape = MTF_SHAPE(m->batch, r->rows, out);
    return mtf_parts_apply_shape_to(m->p, MTF_OP_EXPERT_EINSUM, linear->name, &shape, 3,
                                    (int[]){ x, w, r->expert });
}

static int expert_ffn(MtfAssembly *m, int x) {
    const MtfStackNames *n = &m->stack->names;
    Routed r = route(m, x);
    MtfShape all = MTF_SHAPE(m->batch, m->length, m->d_model);
    MtfShape rows = MTF_SHAPE(m->batch, r.rows, m->d_model);
    MtfLinear up = { .name = "gate",
                     .file = n->expert_gate,
                     .in = MTF_SHAPE(m->d_model),
                     .out = MTF_SHAPE(r.width),
                     .spread = m->n->spread };
    int sent = mtf_parts_apply(m->p, MTF_OP_DISPATCH, "sent", &rows, x, r.slot);
    int gate = mtf_assembly_activation(m, m->stack->activation, expert_product(m, &r, &up, sent));
    up.name = "hidden";
    up.file = n->expert_up;
    int hidden = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gated", NULL, gate,
                                 expert_product(m, &r, &up, sent));
    MtfLinear down = { .name = "out",
                       .file = n->expert_down,
                       .in = MTF_SHAPE(r.width),
                       .out = MTF_SHAPE(m->d_model),
                       .spread = m->residual_spread };
    int made = expert_product(m, &r, &down, hidden);
    return mtf_parts_apply_shape_to(m->p, MTF_OP_COMBINE, "combined", &all, 3,
                                    (int[]){ made, r.slot, r.gate });
}

int mtf_assembly_ffn(MtfAssembly *m, int x) {
    return has_experts(m) ? expert_ffn(m, x) : dense_ffn(m, x);
}
