// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/mixers/mixer_parts.h"

typedef struct {
    int groups, heads, width, state; /* dimensions; groups: -1 where there is one */
    int64_t inner, read;             /* features of all heads; numbers of all groups' B, and C */
} Scan;

/* The groups where there are several, and further dimensions (b -1: none). */
static MtfShape grouped(const Scan *d, int a, int b) {
    const int dims[] = { d->groups, a, b };
    MtfShape shape = { 0 };
    for (gsize i = 0; i < G_N_ELEMENTS(dims); i++)
        if (dims[i] >= 0)
            mtf_shape_append(&shape, dims[i]);
    return shape;
}

static MtfShape heads_of(const Scan *d) {
    return grouped(d, d->heads, -1);
}

static MtfShape features_of(const Scan *d) {
    return grouped(d, d->heads, d->width);
}

static Scan scan_dimensions(MtfAssembly *m) {
    const MtfMixer *x = &m->stack->mixer;
    Scan d = { .groups = -1,
               .inner = x->value_heads * x->d_value,
               .read = x->key_heads * x->d_state };
    if (x->key_heads > 1)
        d.groups = mtf_assembly_dimension(m, "scan_groups", x->key_heads);
    d.heads = mtf_assembly_dimension(m, "scan_heads", x->value_heads / x->key_heads);
    d.width = mtf_assembly_dimension(m, "scan_width", x->d_value);
    d.state = mtf_assembly_dimension(m, "d_state", x->d_state);
    return d;
}

/* ---- What states are made of -------------------------------------------------------------------- */

/* The gate (0), u (1), B (2), C (3) or steps (4), which stand in one tensor in that order. */
static int project(MtfAssembly *m, const Scan *d, int which, int x) {
    static const char *const names[] = { "gate", "u", "b", "c", "step" };
    static const char *const scaled[] = { "gate_scaled", "u_scaled", "b_scaled", "c_scaled",
                                          "step_scaled" };
    int64_t read = 2 * d->inner + d->read;
    const int64_t begins[] = { 0, d->inner, 2 * d->inner, read, read + d->read };
    MtfMixerInput input = { .name = names[which],
                            .file = m->stack->mixer.in,
                            .out = which == 4  ? heads_of(d)
                                   : which < 2 ? features_of(d)
                                               : grouped(d, d->state, -1),
                            .begin = begins[which],
                            .total = read + d->read + m->stack->mixer.value_heads };
    return mtf_assembly_scale(m, scaled[which], m->stack->mixer.part_scales[which],
                              mtf_mixer_input(m, &input, x));
}

/* u (1), B (2) or C (3) behind its convolution. */
static int convolve(MtfAssembly *m, const Scan *d, int which, int x) {
    static const char *const prefixes[] = { NULL, "u_", "b_", "c_" };
    static const char *const names[] = { NULL, "u_active", "b_active", "c_active" };
    MtfMixerConvolution c = { .name = prefixes[which],
                              .features = which == 1 ? features_of(d) : grouped(d, d->state, -1),
                              .begin = which == 1 ? 0 : d->inner + (which - 2) * d->read,
                              .total = d->inner + 2 * d->read };
    return mtf_mixer_map(m, MTF_OP_SILU, names[which],
                         mtf_mixer_convolve(m, &c, project(m, d, which, x)), -1);
}

static int steps(MtfAssembly *m, const Scan *d, int x) {
    MtfShape heads = heads_of(d);
    int bias = mtf_mixer_vector(m, "forget_bias", m->stack->mixer.forget_bias, &heads, 1);
    const MtfMixer *mixer = &m->stack->mixer;
    int length = mtf_mixer_map(m, MTF_OP_SOFTPLUS, "step_length",
                               mtf_parts_add(m->p, "step_sum", project(m, d, 4, x), bias), -1);
    if (mixer->step_high == 0)
        return length;
    m->p->b.attributes.low = mixer->step_low;
    m->p->b.attributes.high = mixer->step_high;
    return mtf_mixer_map(m, MTF_OP_CLIP, "step_within", length, -1);
}

/* What the states tell [batch, length, heads, width]. */
static int told(MtfAssembly *m, const Scan *d, int u, int x) {
    MtfShape heads = heads_of(d);
    int rate = mtf_mixer_vector(m, "forget_rate", m->stack->mixer.forget_rate, &heads, 1);
    int step = steps(m, d, x), b = convolve(m, d, 2, x), c = convolve(m, d, 3, x);
    int log = mtf_mixer_map(m, MTF_OP_MULTIPLY, "kept_log", step, mtf_mixer_forget_speed(m, rate));
    int taken = mtf_mixer_map(m, MTF_OP_MULTIPLY, "taken", u, step);
    return mtf_mixer_linear_attention(m, d->state, (int[]){ taken, c, b, log, -1 });
}

/* The norm of what heads say, of each group by itself or of all; y itself where there is none. */
static int norm(MtfAssembly *m, const Scan *d, int y) {
    const MtfMixer *mixer = &m->stack->mixer;
    MtfShape features = features_of(d);
    if (mixer->norm == NULL)
        return y;
    return mixer->norm_by_group && d->groups >= 0
               ? mtf_assembly_group_norm(m, "norm", mixer->norm, &features, y)
               : mtf_assembly_wide_norm(m, "norm", mixer->norm, &features, y);
}

int mtf_mixer_head_scan(MtfAssembly *m, int x) {
    const MtfMixer *mixer = &m->stack->mixer;
    Scan d = scan_dimensions(m);
    MtfShape heads = heads_of(&d);
    int u = convolve(m, &d, 1, x), y = told(m, &d, u, x);
    int skip = mtf_mixer_vector(m, "skip", mixer->skip, &heads, 1);
    y = mtf_parts_add(m->p, "y", y, mtf_mixer_map(m, MTF_OP_MULTIPLY, "skipped", u, skip));
    int gate = mtf_mixer_map(m, MTF_OP_SILU, "gate_active", project(m, &d, 0, x), -1);
    if (mixer->norm_before_gate)
        y = norm(m, &d, y);
    int gated = mtf_mixer_map(m, MTF_OP_MULTIPLY, "gated", y, gate);
    return mtf_mixer_output(m, features_of(&d),
                            mixer->norm_before_gate ? gated : norm(m, &d, gated));
}
