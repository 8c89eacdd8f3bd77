// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/mixers/mixer_parts.h"

#include <inttypes.h>
#include <math.h>

int mtf_assembly_mixer(MtfAssembly *m, int x) {
    switch (m->stack->mixer.kind) {
    case MTF_MIXER_CONVOLUTION:
        return mtf_mixer_short_convolution(m, x);
    case MTF_MIXER_DELTA:
        return mtf_mixer_delta_rule(m, x);
    case MTF_MIXER_SCAN:
        return mtf_mixer_selective_scan(m, x);
    case MTF_MIXER_HEAD_SCAN:
        return mtf_mixer_head_scan(m, x);
    case MTF_MIXER_LIGHTNING:
        return mtf_mixer_lightning(m, x);
    case MTF_MIXER_WKV:
        return mtf_mixer_wkv(m, x);
    case MTF_MIXER_GATED:
        return mtf_mixer_gated_recurrence(m, x);
    }
    g_assert_not_reached();
}

int mtf_mixer_input(MtfAssembly *m, const MtfMixerInput *input, int x) {
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = input->name,
                                             .file = input->file,
                                             .in = MTF_SHAPE(m->d_model),
                                             .out = input->out,
                                             .begin = input->begin,
                                             .total = input->total,
                                             .blocks = input->blocks,
                                             .bias = m->stack->mixer.bias,
                                             .spread = m->n->spread },
                               x);
}

int mtf_mixer_output(MtfAssembly *m, MtfShape in, int x) {
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = "out",
                                             .file = m->stack->mixer.out,
                                             .in = in,
                                             .out = MTF_SHAPE(m->d_model),
                                             .bias = m->stack->mixer.bias,
                                             .spread = m->residual_spread },
                               x);
}

static int64_t elements(const MtfAssembly *m, const MtfShape *shape) {
    return m->p->b.error != NULL ? 0 : mtf_graph_elements(m->p->b.graph, shape);
}

/* Says that files keep the variable as `file` and that suffix behind the layer's prefix, with those sizes. */
static void keep_place(MtfAssembly *m, int variable, const char *file, const char *suffix,
                       const char *sizes) {
    if (m->p->b.error != NULL)
        return;
    g_autofree char *place = g_strdup_printf("%s%s%s[%s]", m->files, file, suffix, sizes);
    mtf_assembly_place(m, mtf_graph_tensor(m->p->b.graph, variable)->name, place);
}

int mtf_mixer_row(MtfAssembly *m, const char *name, const char *file, int dim, const char *sizes,
                  double value) {
    int variable = mtf_parts_variable(m->p, name, &MTF_SHAPE(dim), MTF_INIT_CONSTANT, value);
    keep_place(m, variable, file, "", sizes);
    return variable;
}

int mtf_mixer_vector(MtfAssembly *m, const char *name, const char *file, const MtfShape *shape,
                     double value) {
    int variable = mtf_parts_variable(m->p, name, shape, MTF_INIT_CONSTANT, value);
    g_autofree char *size = g_strdup_printf("%" PRId64, elements(m, shape));
    keep_place(m, variable, file, "", size);
    return variable;
}

int mtf_mixer_matrix(MtfAssembly *m, const char *name, const char *file, int rows, int columns,
                     double value) {
    int variable =
        mtf_parts_variable(m->p, name, &MTF_SHAPE(rows, columns), MTF_INIT_CONSTANT, value);
    g_autofree char *sizes = g_strdup_printf("%" PRId64 ",%" PRId64, elements(m, &MTF_SHAPE(rows)),
                                             elements(m, &MTF_SHAPE(columns)));
    keep_place(m, variable, file, "", sizes);
    return variable;
}

/* Its weights, or its biases, which have no places. */
static int kernel(MtfAssembly *m, const MtfMixerConvolution *c, int taps) {
    const MtfMixer *mixer = &m->stack->mixer;
    MtfShape shape = c->features;
    g_autofree char *name = g_strdup_printf("%sconvolution_%s", c->name, taps >= 0 ? "w" : "bias");
    int64_t n = elements(m, &shape);
    g_autofree char *size = c->total == 0 ? g_strdup_printf("%" PRId64, n)
                                          : g_strdup_printf("%" PRId64 ":%" PRId64 "/%" PRId64,
                                                            c->begin, c->begin + n, c->total);
    g_autofree char *sizes =
        taps >= 0 ? g_strdup_printf("%s,1,%" PRId64, size, mixer->taps) : g_strdup(size);
    if (taps >= 0)
        mtf_shape_append(&shape, taps);
    int variable =
        mtf_parts_variable(m->p, name, &shape, taps >= 0 ? MTF_INIT_NORMAL : MTF_INIT_CONSTANT,
                           taps >= 0 ? 1 / sqrt((double)mixer->taps) : 0);
    keep_place(m, variable, c->file != NULL ? c->file : mixer->convolution,
               taps >= 0 ? ".weight" : ".bias", sizes);
    return variable;
}

int mtf_mixer_convolve(MtfAssembly *m, const MtfMixerConvolution *c, int x) {
    int64_t places = m->stack->mixer.taps;
    int taps = mtf_assembly_dimension(m, "taps", places);
    int convolved = mtf_assembly_dimension(m, "convolved_length", m->positions);
    g_autofree char *name = g_strdup_printf("%sconvolution", c->name);
    g_autofree char *sum = g_strdup_printf("%sconvolution_biased", c->name);
    g_autofree char *renamed = g_strdup_printf("%sconvolved", c->name);
    MtfShape result = MTF_SHAPE(m->batch, convolved);
    for (int i = 0; i < c->features.rank; i++)
        mtf_shape_append(&result, c->features.dims[i]);
    int w = kernel(m, c, taps);
    MtfAttributes *a = &m->p->b.attributes;
    a->n_windows = 1;
    a->windows[0] = (MtfWindow){ .from = m->length,
                                 .to = convolved,
                                 .kernel = taps,
                                 .size = 1,
                                 .stride = 1,
                                 .dilation = 1,
                                 .before = (int)places - 1 };
    int y = mtf_parts_apply(m->p, MTF_OP_CONV, name, &result, x, w);
    if (m->stack->mixer.convolution_bias)
        y = mtf_parts_add(m->p, sum, y, kernel(m, c, -1));
    m->p->b.attributes.from = convolved;
    m->p->b.attributes.to = m->length;
    return mtf_parts_apply(m->p, MTF_OP_RENAME, renamed, NULL, y, -1);
}

int mtf_mixer_map(MtfAssembly *m, int kind, const char *name, int x, int y) {
    return mtf_parts_apply(m->p, kind, name, NULL, x, y);
}

int mtf_mixer_forget_speed(MtfAssembly *m, int rate) {
    int size = mtf_mixer_map(m, MTF_OP_EXP, "forget_size", rate, -1);
    return mtf_mixer_map(m, MTF_OP_NEGATE, "forget_speed", size, -1);
}

int mtf_mixer_linear_attention(MtfAssembly *m, int keys, const int inputs[5]) {
    m->p->b.attributes.dimension = m->length;
    m->p->b.attributes.keys = keys;
    return mtf_parts_apply_to(m->p, MTF_OP_LINEAR_ATTENTION, "told", inputs[4] < 0 ? 4 : 5, inputs);
}
