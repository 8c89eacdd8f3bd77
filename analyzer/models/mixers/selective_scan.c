// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/mixers/mixer_parts.h"

typedef struct {
    int inner, state, rank; /* dimensions */
} Scan;

/* ---- What states are made of -------------------------------------------------------------------- */

/* The half of what `in` makes: u's features (0) or the gate (1). */
static int half(MtfAssembly *m, const Scan *d, int which, int x) {
    const MtfMixer *mixer = &m->stack->mixer;
    MtfMixerInput input = { .name = which == 0 ? "entered" : "gate",
                            .file = mixer->in,
                            .out = MTF_SHAPE(d->inner),
                            .begin = which * mixer->d_inner,
                            .total = 2 * mixer->d_inner };
    return mtf_mixer_input(m, &input, x);
}

/* What steps come from (0), B (1) or C (2). */
static int read_features(MtfAssembly *m, const Scan *d, int which, int u) {
    static const char *const names[] = { "step_from", "b", "c" }, *const norms[] = { "step_norm",
                                                                                     "b_norm",
                                                                                     "c_norm" };
    const MtfMixer *mixer = &m->stack->mixer;
    int out = which == 0 ? d->rank : d->state;
    MtfLinear linear = { .name = names[which],
                         .file = mixer->read,
                         .in = MTF_SHAPE(d->inner),
                         .out = MTF_SHAPE(out),
                         .begin = which == 0 ? 0 : mixer->d_rank + (which - 1) * mixer->d_state,
                         .total = mixer->d_rank + 2 * mixer->d_state,
                         .spread = m->n->spread };
    int y = mtf_assembly_linear(m, &linear, u);
    if (mixer->bare_epsilon == 0)
        return mtf_assembly_norm(m, norms[which], mixer->read_norms[which], out, y);
    mtf_parts_enter(m->p, norms[which]);
    m->p->b.attributes.value = 1;
    int ones = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "ones", &MTF_SHAPE(out));
    m->p->b.attributes.dimension = out;
    m->p->b.attributes.epsilon = mixer->bare_epsilon;
    int normal = mtf_mixer_map(m, MTF_OP_RMS_NORM, "norm", y, ones);
    mtf_parts_leave(m->p);
    return normal;
}

static int steps(MtfAssembly *m, const Scan *d, int from) {
    MtfLinear linear = { .name = "step",
                         .file = m->stack->mixer.step,
                         .in = MTF_SHAPE(d->rank),
                         .out = MTF_SHAPE(d->inner),
                         .bias = true,
                         .spread = m->n->spread };
    return mtf_mixer_map(m, MTF_OP_SOFTPLUS, "step_length", mtf_assembly_linear(m, &linear, from),
                         -1);
}

/* What the states tell [batch, length, inner]. */
static int told(MtfAssembly *m, const Scan *d, int u) {
    int rate =
        mtf_mixer_matrix(m, "forget_rate", m->stack->mixer.forget_rate, d->inner, d->state, 1);
    int speed =
        mtf_parts_apply(m->p, MTF_OP_TRANSPOSE, "forget_speeds", &MTF_SHAPE(d->state, d->inner),
                        mtf_mixer_forget_speed(m, rate), -1);
    int step = steps(m, d, read_features(m, d, 0, u));
    int b = read_features(m, d, 1, u), c = read_features(m, d, 2, u);
    int taken = mtf_mixer_map(m, MTF_OP_MULTIPLY, "taken", step, u);
    m->p->b.attributes.dimension = m->length;
    m->p->b.attributes.keys = d->state;
    return mtf_parts_apply_to(m->p, MTF_OP_SELECTIVE_SCAN, "told", 5,
                              (int[]){ taken, c, b, step, speed });
}

int mtf_mixer_selective_scan(MtfAssembly *m, int x) {
    const MtfMixer *mixer = &m->stack->mixer;
    Scan d = { mtf_assembly_dimension(m, "d_inner", mixer->d_inner),
               mtf_assembly_dimension(m, "d_state", mixer->d_state),
               mtf_assembly_dimension(m, "d_rank", mixer->d_rank) };
    MtfMixerConvolution convolution = { .name = "", .features = MTF_SHAPE(d.inner) };
    int u = mtf_assembly_activation(m, m->stack->activation,
                                    mtf_mixer_convolve(m, &convolution, half(m, &d, 0, x)));
    int y = told(m, &d, u);
    int skip = mtf_mixer_vector(m, "skip", mixer->skip, &MTF_SHAPE(d.inner), 1);
    y = mtf_parts_add(m->p, "y", y, mtf_mixer_map(m, MTF_OP_MULTIPLY, "skipped", u, skip));
    int gate = mtf_mixer_map(m, MTF_OP_SILU, "gate_active", half(m, &d, 1, x), -1);
    return mtf_mixer_output(m, MTF_SHAPE(d.inner),
                            mtf_mixer_map(m, MTF_OP_MULTIPLY, "gated", y, gate));
}
