// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/mixers/mixer_parts.h"

#include <math.h>

typedef struct {
    int heads, group, keys, values;  /* dimensions; group: -1 where each head has keys of its own */
    int64_t n_keys, n_values, share; /* features of all heads; heads of values that share keys */
} Delta;

/* The heads of values, and a further dimension (-1: none). */
static MtfShape value_heads(const Delta *d, int last) {
    MtfShape shape = MTF_SHAPE(d->heads);
    if (d->group >= 0)
        mtf_shape_append(&shape, d->group);
    if (last >= 0)
        mtf_shape_append(&shape, last);
    return shape;
}

static Delta delta_dimensions(MtfAssembly *m) {
    const MtfMixer *x = &m->stack->mixer;
    Delta d = { .group = -1, .share = x->value_heads / x->key_heads };
    d.heads = mtf_assembly_dimension(m, "delta_heads", x->key_heads);
    if (d.share > 1)
        d.group = mtf_assembly_dimension(m, "delta_group", d.share);
    d.keys = mtf_assembly_dimension(m, "delta_keys", x->d_key);
    d.values = mtf_assembly_dimension(m, "delta_values", x->d_value);
    d.n_keys = x->key_heads * x->d_key;
    d.n_values = x->value_heads * x->d_value;
    return d;
}

/* ---- What states are made of -------------------------------------------------------------------- */

/* q (0), k (1), v (2) or the gate (3): from one tensor, part after part or head after head, or from its own. */
static int project(MtfAssembly *m, const Delta *d, int which, int x) {
    static const char *const names[] = { "q", "k", "v", "gate" };
    const MtfMixer *mixer = &m->stack->mixer;
    bool by_head = mixer->gate == NULL;
    int64_t keys = by_head ? mixer->d_key : d->n_keys;
    int64_t values = by_head ? d->share * mixer->d_value : d->n_values;
    const int64_t begins[] = { 0, keys, 2 * keys, 2 * keys + values };
    MtfMixerInput input = { .name = names[which],
                            .file = mixer->in,
                            .out = which < 2 ? MTF_SHAPE(d->heads, d->keys)
                                             : value_heads(d, d->values),
                            .begin = begins[which],
                            .total = 2 * keys + (by_head ? 2 : 1) * values,
                            .blocks = by_head ? mixer->key_heads : 0 };
    if (which < 3 && mixer->ins[which] != NULL)
        input =
            (MtfMixerInput){ .name = names[which], .file = mixer->ins[which], .out = input.out };
    if (which == 3 && !by_head)
        input = (MtfMixerInput){ .name = "gate", .file = mixer->gate, .out = input.out };
    return mtf_mixer_input(m, &input, x);
}

/* What corrects (0) or forgets (1), a number a head. */
static int project_number(MtfAssembly *m, const Delta *d, int which, int x) {
    const MtfMixer *mixer = &m->stack->mixer;
    bool by_head = mixer->forget == NULL;
    MtfMixerInput input = { .name = which == 0 ? "correct" : "forget",
                            .file = which == 0 || by_head ? mixer->correct : mixer->forget,
                            .out = value_heads(d, -1),
                            .begin = by_head ? which * d->share : 0,
                            .total = by_head ? 2 * d->share : 0,
                            .blocks = by_head ? mixer->key_heads : 0 };
    return mtf_mixer_input(m, &input, x);
}

/* q, k or v behind its convolution. */
static int convolve(MtfAssembly *m, const Delta *d, int which, int x) {
    static const char *const prefixes[] = { "q_", "k_", "v_" };
    static const char *const names[] = { "q_active", "k_active", "v_active" };
    MtfMixerConvolution c = { .name = prefixes[which],
                              .features = which < 2 ? MTF_SHAPE(d->heads, d->keys)
                                                    : value_heads(d, d->values),
                              .begin = which * d->n_keys,
                              .total = 2 * d->n_keys + d->n_values };
    const char *own = m->stack->mixer.convolutions[which];
    if (own != NULL)
        c = (MtfMixerConvolution){ .name = c.name, .features = c.features, .file = own };
    return mtf_mixer_map(m, MTF_OP_SILU, names[which],
                         mtf_mixer_convolve(m, &c, project(m, d, which, x)), -1);
}

/* x / sqrt(|x|^2 + 1e-6) times a factor: the norm by the mean of squares, which are as many as there are keys. */
static int of_length_one(MtfAssembly *m, const Delta *d, const char *name, double factor, int x) {
    double keys = (double)m->stack->mixer.d_key;
    mtf_parts_enter(m->p, name);
    m->p->b.attributes.value = factor / sqrt(keys);
    int scale = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "scale", &MTF_SHAPE(d->keys));
    m->p->b.attributes.dimension = d->keys;
    m->p->b.attributes.epsilon = 1e-6 / keys;
    int y = mtf_mixer_map(m, MTF_OP_RMS_NORM, "norm", x, scale);
    mtf_parts_leave(m->p);
    return y;
}

/* The logarithm of what is kept of a head's matrix. */
static int kept_log(MtfAssembly *m, const Delta *d, int x) {
    const MtfMixer *mixer = &m->stack->mixer;
    MtfShape heads = value_heads(d, -1);
    int bias = mtf_mixer_vector(m, "forget_bias", mixer->forget_bias, &heads, 1);
    int rate = mtf_mixer_vector(m, "forget_rate", mixer->forget_rate, &heads, 1);
    int sum = mtf_parts_add(m->p, "forget_sum", project_number(m, d, 1, x), bias);
    int step = mtf_mixer_map(m, MTF_OP_SOFTPLUS, "forget_step", sum, -1);
    return mtf_mixer_map(m, MTF_OP_MULTIPLY, "kept_log", step, mtf_mixer_forget_speed(m, rate));
}

/* What the heads say [batch, length, heads, values]. */
static int said(MtfAssembly *m, const Delta *d, int x) {
    double factor = 1 / sqrt((double)m->stack->mixer.d_key);
    int q = of_length_one(m, d, "q_unit", factor, convolve(m, d, 0, x));
    int k = of_length_one(m, d, "k_unit", 1, convolve(m, d, 1, x));
    int v = convolve(m, d, 2, x), log = kept_log(m, d, x);
    int beta = mtf_mixer_map(m, MTF_OP_SIGMOID, "corrected", project_number(m, d, 0, x), -1);
    beta = mtf_assembly_scale(m, "corrected_scaled", m->stack->mixer.correct_scale, beta);
    return mtf_mixer_linear_attention(m, d->keys, (int[]){ v, q, k, log, beta });
}

/* The norm of what each head says, by one scale. */
static int norm(MtfAssembly *m, const Delta *d, int x) {
    const char *file = m->stack->mixer.norm;
    int scale =
        mtf_assembly_variable(m, "said_scale", file, &MTF_SHAPE(d->values), MTF_INIT_CONSTANT, 1);
    m->p->b.attributes.dimension = d->values;
    double own = m->stack->mixer.norm_epsilon;
    m->p->b.attributes.epsilon = own > 0 ? own : m->n->epsilon;
    return mtf_mixer_map(m, MTF_OP_RMS_NORM, "said_norm", x, scale);
}

int mtf_mixer_delta_rule(MtfAssembly *m, int x) {
    Delta d = delta_dimensions(m);
    int normal = norm(m, &d, said(m, &d, x));
    int gate = mtf_mixer_map(m, MTF_OP_SILU, "gate_active", project(m, &d, 3, x), -1);
    return mtf_mixer_output(m, value_heads(&d, d.values),
                            mtf_mixer_map(m, MTF_OP_MULTIPLY, "gated", normal, gate));
}
