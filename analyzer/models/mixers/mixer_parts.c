// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/mixers/mixer_parts.h"

#include <inttypes.h>
#include <math.h>

int mtf_assembly_mixer(MtfAssembly *m, int x) {
    switch (m->stack->mixer.kind) {
    case MTF_MIXER_CONVOLUTION:
        return mtf_mixer_short_convolution(m, x);
    }
    g_assert_not_reached();
}

int mtf_mixer_input(MtfAssembly *m, const MtfMixerInput *input, int x) {
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = input->name,
                                             .file = input->file,
                                             .in = MTF_SHAPE(m->d_model),
                                             .out = MTF_SHAPE(input->out),
                                             .begin = input->begin,
                                             .total = input->total,
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

/* A weight or bias of the convolution, which files keep with the dimensions `sizes`. */
static int kernel(MtfAssembly *m, const char *name, const MtfShape *shape, const char *suffix,
                  const char *sizes) {
    bool is_bias = *suffix == 'b';
    double spread = is_bias ? 0 : 1 / sqrt((double)m->stack->mixer.taps);
    int variable = mtf_parts_variable(m->p, name, shape,
                                      is_bias ? MTF_INIT_CONSTANT : MTF_INIT_NORMAL, spread);
    if (m->p->b.error == NULL) {
        g_autofree char *place =
            g_strdup_printf("%s%s.%s[%s]", m->files, m->stack->mixer.convolution, suffix, sizes);
        mtf_assembly_place(m, mtf_graph_tensor(m->p->b.graph, variable)->name, place);
    }
    return variable;
}

int mtf_mixer_convolve(MtfAssembly *m, int dim, int x) {
    int64_t taps = m->stack->mixer.taps,
            features = m->p->b.error == NULL ? mtf_graph_size(m->p->b.graph, dim) : 0;
    int places = mtf_assembly_dimension(m, "taps", taps);
    int convolved = mtf_assembly_dimension(m, "convolved_length", m->positions);
    g_autofree char *sizes = g_strdup_printf("%" PRId64 ",1,%" PRId64, features, taps);
    g_autofree char *size = g_strdup_printf("%" PRId64, features);
    MtfShape result = MTF_SHAPE(m->batch, convolved, dim);
    int w = kernel(m, "w_convolution", &MTF_SHAPE(dim, places), "weight", sizes);
    MtfAttributes *a = &m->p->b.attributes;
    a->n_windows = 1;
    a->windows[0] = (MtfWindow){ .from = m->length,
                                 .to = convolved,
                                 .kernel = places,
                                 .size = 1,
                                 .stride = 1,
                                 .dilation = 1,
                                 .before = (int)taps - 1 };
    int y = mtf_parts_apply(m->p, MTF_OP_CONV, "convolution", &result, x, w);
    if (m->stack->mixer.bias)
        y = mtf_parts_add(m->p, "convolution_biased", y,
                          kernel(m, "convolution_bias", &MTF_SHAPE(dim), "bias", size));
    m->p->b.attributes.from = convolved;
    m->p->b.attributes.to = m->length;
    return mtf_parts_apply(m->p, MTF_OP_RENAME, "convolved", NULL, y, -1);
}
