// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/mixers/mixer_parts.h"

#include <inttypes.h>

typedef struct {
    int inner;        /* features */
    int heads, block; /* the same in blocks, of whose features gates are made */
    int made;         /* a block's, as outputs */
} Recurrence;

/* A tensor of files without a suffix, behind the layer's prefix. */
static void keep_place(MtfAssembly *m, int variable, const char *file, const char *sizes) {
    if (m->p->b.error != NULL)
        return;
    g_autofree char *place = g_strdup_printf("%s%s[%s]", m->files, file, sizes);
    mtf_assembly_place(m, mtf_graph_tensor(m->p->b.graph, variable)->name, place);
}

/* sigmoid(W x + b), block by block, of x's features in blocks [batch, length, heads, block]. */
static int gate(MtfAssembly *m, const Recurrence *d, const char *name, const char *file, int x) {
    const MtfMixer *mixer = &m->stack->mixer;
    int64_t heads = mixer->value_heads, block = mixer->d_inner / heads;
    MtfShape result = MTF_SHAPE(m->batch, m->length, d->heads, d->made);
    MtfShape flat = MTF_SHAPE(m->batch, m->length, d->inner);
    g_autofree char *weights = g_strdup_printf("%s_weight", file);
    g_autofree char *biases = g_strdup_printf("%s_bias", file);
    g_autofree char *sizes =
        g_strdup_printf("%" PRId64 ",%" PRId64 ",%" PRId64, heads, block, block);
    g_autofree char *bias_sizes = g_strdup_printf("%" PRId64 ",%" PRId64, heads, block);
    mtf_parts_enter(m->p, name);
    int w = mtf_parts_variable(m->p, "w", &MTF_SHAPE(d->heads, d->block, d->made), MTF_INIT_NORMAL,
                               m->n->spread);
    keep_place(m, w, weights, sizes);
    int bias =
        mtf_parts_variable(m->p, "bias", &MTF_SHAPE(d->heads, d->made), MTF_INIT_CONSTANT, 0);
    keep_place(m, bias, biases, bias_sizes);
    int product = mtf_parts_einsum(m->p, "product", &result, x, w);
    int sum = mtf_parts_add(m->p, "sum", product, bias);
    int joined = mtf_parts_apply(m->p, MTF_OP_RESHAPE, "joined", &flat, sum, -1);
    int y = mtf_parts_apply(m->p, MTF_OP_SIGMOID, "y", NULL, joined, -1);
    mtf_parts_leave(m->p);
    return y;
}

/* sqrt(1 - a^2) of a = e^(step speed), which the first place, before which nothing was, has as 1. */
static int taken_share(MtfAssembly *m, int step, int speed) {
    MtfParts *p = m->p;
    int log = mtf_mixer_map(m, MTF_OP_MULTIPLY, "log", step, speed);
    int square =
        mtf_mixer_map(m, MTF_OP_EXP, "kept_square", mtf_assembly_scale(m, "log_twice", 2, log), -1);
    p->b.has_dtype = true;
    p->b.dtype = MTF_F32;
    int place = mtf_parts_range(p, "place", m->length);
    int later = mtf_mixer_map(m, MTF_OP_LESS, "later", mtf_parts_constant(p, "zero", 0), place);
    int kept = mtf_mixer_map(m, MTF_OP_MULTIPLY, "kept", square, later);
    int left = mtf_parts_add(p, "left", mtf_assembly_scale(m, "kept_less", -1, kept),
                             mtf_parts_constant(p, "one", 1));
    return mtf_mixer_map(m, MTF_OP_SQRT, "taken_share", left, -1);
}

/* What the states of u [batch, length, inner] tell. */
static int told(MtfAssembly *m, const Recurrence *d, int u) {
    const MtfMixer *mixer = &m->stack->mixer;
    int only = mtf_assembly_dimension(m, "d_state", 1);
    MtfShape blocks = MTF_SHAPE(m->batch, m->length, d->heads, d->block);
    MtfShape one = MTF_SHAPE(m->batch, m->length, only);
    int parts = mtf_parts_apply(m->p, MTF_OP_RESHAPE, "blocks", &blocks, u, -1);
    int step = gate(m, d, "step", mixer->step, parts);
    int open = gate(m, d, "open", mixer->read, parts);
    int rate = mtf_mixer_vector(m, "rate", mixer->forget_rate, &MTF_SHAPE(d->inner), 0.5);
    int size = mtf_mixer_map(m, MTF_OP_SOFTPLUS, "size", rate, -1);
    int speed = mtf_assembly_scale(m, "speed", -8, size);
    int share = taken_share(m, step, speed);
    int let = mtf_mixer_map(m, MTF_OP_MULTIPLY, "let", u, open);
    int taken = mtf_mixer_map(m, MTF_OP_MULTIPLY, "taken", let, share);
    int ones = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "ones", &one,
                               mtf_parts_constant(m->p, "unit", 1), -1);
    int speeds =
        mtf_parts_apply(m->p, MTF_OP_BROADCAST, "speeds", &MTF_SHAPE(only, d->inner), speed, -1);
    m->p->b.attributes.dimension = m->length;
    m->p->b.attributes.keys = only;
    return mtf_parts_apply_to(m->p, MTF_OP_SELECTIVE_SCAN, "told", 5,
                              (int[]){ taken, ones, ones, step, speeds });
}

int mtf_mixer_gated_recurrence(MtfAssembly *m, int x) {
    const MtfMixer *mixer = &m->stack->mixer;
    int64_t block = mixer->d_inner / mixer->value_heads;
    Recurrence d = { mtf_assembly_dimension(m, "d_inner", mixer->d_inner),
                     mtf_assembly_dimension(m, "blocks", mixer->value_heads),
                     mtf_assembly_dimension(m, "d_block", block),
                     mtf_assembly_dimension(m, "d_block_made", block) };
    MtfMixerInput entered = { .name = "entered", .file = mixer->in, .out = MTF_SHAPE(d.inner) };
    MtfMixerInput beside = { .name = "beside", .file = mixer->gate, .out = MTF_SHAPE(d.inner) };
    MtfMixerConvolution convolution = { .name = "", .features = MTF_SHAPE(d.inner) };
    int u = mtf_mixer_convolve(m, &convolution, mtf_mixer_input(m, &entered, x));
    int y = told(m, &d, u);
    int shown = mtf_assembly_activation(m, m->stack->activation, mtf_mixer_input(m, &beside, x));
    return mtf_mixer_output(m, MTF_SHAPE(d.inner),
                            mtf_mixer_map(m, MTF_OP_MULTIPLY, "gated", y, shown));
}
