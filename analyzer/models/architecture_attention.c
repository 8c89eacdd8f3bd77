// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_parts.h"

#include <math.h>

/* Names of one attention's tensors in files. */
typedef struct {
    const char *q, *k, *v, *o, *qkv;
} Names;

typedef struct {
    int q, k, v;
} Heads;

/* x in the heads of queries (0), keys (1) or values (2). Where a file keeps all three in one tensor
 * its outputs are q, k, v one after the other. */
static int project(MtfAssembly *m, const Names *names, int which, int x) {
    static const char *const results[] = { "q", "k", "v" };
    const MtfStack *s = m->stack;
    const char *const files[] = { names->q, names->k, names->v };
    const bool biases[] = { s->q_bias, s->k_bias, s->v_bias };
    int64_t queries = s->heads * s->d_kv, keys = s->kv_heads * s->d_kv;
    const int64_t begins[] = { 0, queries, queries + keys };
    MtfLinear linear = { .name = results[which],
                         .file = names->qkv != NULL ? names->qkv : files[which],
                         .in = MTF_SHAPE(m->d_model),
                         .out = which == 0 ? mtf_assembly_query_heads(m)
                                           : MTF_SHAPE(m->heads, m->d_kv),
                         .bias = biases[which],
                         .spread = m->n->spread };
    if (names->qkv != NULL) {
        linear.begin = begins[which];
        linear.total = queries + 2 * keys;
    }
    return mtf_assembly_linear(m, &linear, x);
}

/* Heads turned by their positions. */
static int turn(MtfAssembly *m, const char *name, int x) {
    const MtfStack *s = m->stack;
    if (s->rotary_base == 0)
        return x;
    MtfAttributes *a = &m->p->b.attributes;
    a->position = m->length;
    a->dimension = m->d_kv;
    a->base = s->rotary_base;
    a->rotated = s->rotary_share < 1 ? floor(s->rotary_share * (double)s->d_kv) : 0;
    a->angle = s->rotary_angle;
    a->context = s->rotary_context;
    a->stretch = s->rotary_stretch;
    a->low = s->rotary_low;
    a->high = s->rotary_high;
    return mtf_parts_apply(m->p, MTF_OP_ROTARY, name, NULL, x, -1);
}

static int remember(MtfAssembly *m, const char *name, int from, int to, int x) {
    m->p->b.attributes.from = from;
    m->p->b.attributes.to = to;
    return mtf_parts_apply(m->p, MTF_OP_RENAME, name, NULL, x, -1);
}

/* The window of this layer, or 0: none, or one that no text of this length fills. */
static int64_t layer_window(const MtfAssembly *m) {
    const MtfStack *s = m->stack;
    bool has = s->window_rule == MTF_WINDOW_ALL ||
               (s->window_rule == MTF_WINDOW_EVEN && m->layer % 2 == 0) ||
               (s->window_rule == MTF_WINDOW_FROM && m->layer >= s->window_from);
    return has && s->window < m->positions ? s->window : 0;
}

/* Softmax of the scores over `memory`, times the values, by the attention row. */
static int attend(MtfAssembly *m, const Heads *h, int memory, bool causal) {
    m->p->b.attributes.query = m->length;
    m->p->b.attributes.memory = memory;
    m->p->b.attributes.dimension = m->d_kv;
    m->p->b.attributes.factor = m->stack->scale;
    m->p->b.attributes.causal = causal;
    m->p->b.attributes.softcap = m->stack->softcap;
    m->p->b.attributes.window = causal ? (double)layer_window(m) : 0;
    return mtf_parts_apply_to(m->p, MTF_OP_ATTENTION, "context", 3, (int[]){ h->q, h->k, h->v });
}

static int project_out(MtfAssembly *m, const Names *names, int context) {
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = "out",
                                             .file = names->o,
                                             .in = mtf_assembly_query_heads(m),
                                             .out = MTF_SHAPE(m->d_model),
                                             .bias = m->stack->o_bias,
                                             .spread = m->residual_spread },
                               context);
}

int mtf_assembly_self_attention(MtfAssembly *m, int x) {
    const MtfStackNames *n = &m->stack->names;
    Names names = { n->q, n->k, n->v, n->o, n->qkv };
    int q = project(m, &names, 0, x), k = project(m, &names, 1, x), v = project(m, &names, 2, x);
    if (m->stack->qk_norm) {
        q = mtf_assembly_norm(m, "q_norm", n->q_norm, m->d_kv, q);
        k = mtf_assembly_norm(m, "k_norm", n->k_norm, m->d_kv, k);
    }
    q = turn(m, "q_turned", q);
    k = turn(m, "k_turned", k);
    Heads heads = { q, remember(m, "key", m->length, m->memory_length, k),
                    remember(m, "value", m->length, m->memory_length, v) };
    return project_out(m, &names, attend(m, &heads, m->memory_length, m->stack->causal));
}
