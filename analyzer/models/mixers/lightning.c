// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/mixers/mixer_parts.h"

#include <math.h>

typedef struct {
    int heads, keys, values; /* dimensions */
} Lightning;

/* q (0), k (1) or v (2), which stand one behind the other for each head. */
static int project(MtfAssembly *m, const Lightning *d, int which, int x) {
    static const char *const names[] = { "q", "k", "v" }, *const active[] = { "q_active",
                                                                              "k_active",
                                                                              "v_active" };
    const MtfMixer *mixer = &m->stack->mixer;
    MtfMixerInput input = { .name = names[which],
                            .file = mixer->in,
                            .out = MTF_SHAPE(d->heads, which == 2 ? d->values : d->keys),
                            .begin = which * mixer->d_key,
                            .total = 3 * mixer->d_key,
                            .blocks = mixer->value_heads };
    return mtf_mixer_map(m, MTF_OP_SILU, active[which], mtf_mixer_input(m, &input, x), -1);
}

/* -r of each head, at every place [batch, length, heads]. */
static int kept_log(MtfAssembly *m, const Lightning *d) {
    const MtfStack *s = m->stack;
    double slower = -8 * log(2) / (double)s->mixer.value_heads;
    double later = (double)m->layer / ((double)s->layers - 1 + 1e-5);
    MtfShape all = MTF_SHAPE(m->batch, m->length, d->heads);
    mtf_parts_enter(m->p, "forget");
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int head = mtf_parts_range(m->p, "head", d->heads);
    int number = mtf_parts_add(m->p, "number", head, mtf_parts_constant(m->p, "one", 1));
    int power = mtf_mixer_map(m, MTF_OP_EXP, "power",
                              mtf_assembly_scale(m, "exponent", slower, number), -1);
    int speed = mtf_assembly_scale(m, "speed", -(1 - later + 1e-5), power);
    int log_kept = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "kept_log", &all, speed, -1);
    mtf_parts_leave(m->p);
    return log_kept;
}

int mtf_mixer_lightning(MtfAssembly *m, int x) {
    const MtfMixer *mixer = &m->stack->mixer;
    Lightning d = { mtf_assembly_dimension(m, "linear_heads", mixer->value_heads),
                    mtf_assembly_dimension(m, "linear_keys", mixer->d_key),
                    mtf_assembly_dimension(m, "linear_values", mixer->d_value) };
    MtfShape features = MTF_SHAPE(d.heads, d.values);
    int q = project(m, &d, 0, x), k = project(m, &d, 1, x), v = project(m, &d, 2, x);
    int told = mtf_mixer_linear_attention(m, d.keys, (int[]){ v, q, k, kept_log(m, &d), -1 });
    int normal = mtf_assembly_wide_norm(m, "norm", mixer->norm, &features, told);
    MtfMixerInput gate = { .name = "gate", .file = mixer->gate, .out = features };
    int share = mtf_mixer_map(m, MTF_OP_SIGMOID, "gate_share", mtf_mixer_input(m, &gate, x), -1);
    return mtf_mixer_output(m, features, mtf_mixer_map(m, MTF_OP_MULTIPLY, "gated", normal, share));
}
