// SPDX-License-Identifier: GPL-3.0-or-later
/* Keys and values from a few features of their own (DeepSeek-V2, 2024, 2.1), as published files have them:
 *
 *     x ──► latent ─norm─► k of each head, v of each head     k = [k without positions │ turned key of all heads]
 *       └─► key that turns, one for all heads                 q = [q without positions │ turned q]
 *       └─► (latent ─norm─►) q of each head
 *
 * Values are narrower than queries and keys; to the attention row they come filled up with zeros, and what it
 * makes of those is cut off. */
#include "analyzer/models/architecture_parts.h"

/* Of norms of few features, whatever the model's (DeepSeek-V2's norms have it where they are not given one). */
#define LATENT_EPSILON 1e-6

/* Which features of each head a matrix makes: those from `begin` on of `total`, in the dimension `out`. */
typedef struct {
    const char *name, *file;
    int in, out;
    int64_t begin, total;
} Features;

static int of_heads(MtfAssembly *m, const Features *f, int x) {
    MtfLinear linear = { .name = f->name,
                         .file = f->file,
                         .in = MTF_SHAPE(f->in),
                         .out = MTF_SHAPE(m->heads, f->out),
                         .begin = f->begin,
                         .total = f->total,
                         .blocks = m->stack->heads,
                         .spread = m->n->spread };
    return mtf_assembly_linear(m, &linear, x);
}

/* `size` features from `begin` on of what a file's matrix makes of x, which has `total`. */
static int some_of(MtfAssembly *m, const char *name, const char *file, int dim, int64_t begin,
                   int x) {
    const MtfStack *s = m->stack;
    MtfLinear linear = { .name = name,
                         .file = file,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(dim),
                         .begin = begin,
                         .total = s->d_latent + s->d_turned,
                         .spread = m->n->spread };
    return mtf_assembly_linear(m, &linear, x);
}

/* Both parts of each head one behind the other. */
static int join(MtfAssembly *m, const char *name, int still, int turned) {
    MtfShape all = MTF_SHAPE(m->batch, m->length, m->heads, m->d_kv);
    return mtf_parts_apply(m->p, MTF_OP_CONCAT, name, &all, still, turned);
}

static int queries(MtfAssembly *m, int still, int turning, int x) {
    const MtfStack *s = m->stack;
    int in = m->d_model;
    if (s->d_query_latent > 0) {
        in = mtf_assembly_dimension(m, "d_query_latent", s->d_query_latent);
        MtfLinear down = { .name = "q_latent",
                           .file = s->names.q_down,
                           .in = MTF_SHAPE(m->d_model),
                           .out = MTF_SHAPE(in),
                           .spread = m->n->spread };
        x = mtf_assembly_norm_by(m, "q_norm", s->names.q_norm, in, LATENT_EPSILON,
                                 mtf_assembly_linear(m, &down, x));
    }
    int64_t rest = s->d_kv - s->d_turned;
    Features first = { "q_still", s->names.q, in, still, 0, s->d_kv };
    Features last = { "q_turning", s->names.q, in, turning, rest, s->d_kv };
    int a = of_heads(m, &first, x);
    return join(m, "q", a, mtf_assembly_turn(m, "q_turned", turning, of_heads(m, &last, x)));
}

/* Values filled up to the width of keys. */
static int widen(MtfAssembly *m, int value, int v) {
    if (value == m->d_kv)
        return v;
    m->p->b.attributes.from = value;
    m->p->b.attributes.to = m->d_kv;
    return mtf_parts_apply(m->p, MTF_OP_PAD, "v_filled", NULL, v, -1);
}

void mtf_assembly_latent_heads(MtfAssembly *m, int x, int heads[3]) {
    const MtfStack *s = m->stack;
    int64_t rest = s->d_kv - s->d_turned;
    int still = mtf_assembly_dimension(m, "d_still", rest);
    int turning = mtf_assembly_dimension(m, "d_turned", s->d_turned);
    int latent = mtf_assembly_dimension(m, "d_latent", s->d_latent);
    int value = mtf_assembly_value_dimension(m);
    heads[0] = queries(m, still, turning, x);
    int few = mtf_assembly_norm_by(m, "k_norm", s->names.k_norm, latent, LATENT_EPSILON,
                                   some_of(m, "latent", s->names.kv_down, latent, 0, x));
    int one = mtf_assembly_turn(m, "k_turned", turning,
                                some_of(m, "k_turning", s->names.kv_down, turning, s->d_latent, x));
    MtfShape each = MTF_SHAPE(m->batch, m->length, m->heads, turning);
    int turned = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "k_of_all", &each, one, -1);
    Features keys = { "k_still", s->names.kv_up, latent, still, 0, rest + s->d_value };
    Features values = { "v", s->names.kv_up, latent, value, rest, rest + s->d_value };
    heads[1] = join(m, "k", of_heads(m, &keys, few), turned);
    heads[2] = widen(m, value, of_heads(m, &values, few));
}

int mtf_assembly_value_dimension(MtfAssembly *m) {
    const MtfStack *s = m->stack;
    bool narrow = s->d_latent > 0 && s->d_value != s->d_kv;
    return narrow ? mtf_assembly_dimension(m, "d_value", s->d_value) : m->d_kv;
}

int mtf_assembly_latent_values(MtfAssembly *m, int context) {
    int value = mtf_assembly_value_dimension(m);
    if (value == m->d_kv)
        return context;
    m->p->b.attributes.from = m->d_kv;
    m->p->b.attributes.to = value;
    m->p->b.attributes.start = 0;
    m->p->b.attributes.stride = 1;
    return mtf_parts_apply(m->p, MTF_OP_SLICE, "context_of_values", NULL, context, -1);
}
