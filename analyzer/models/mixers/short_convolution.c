// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/mixers/mixer_parts.h"

int mtf_mixer_short_convolution(MtfAssembly *m, int x) {
    static const char *const names[] = { "before", "behind", "mixed" };
    int64_t width = m->n->d_model;
    int features = mtf_assembly_dimension(m, "d_mixed", width), thirds[3];
    for (int i = 0; i < 3; i++)
        thirds[i] =
            mtf_mixer_input(m,
                            &(MtfMixerInput){ names[i], m->stack->mixer.in, MTF_SHAPE(features),
                                              i * width, 3 * width, 0 },
                            x);
    int opened = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "opened", NULL, thirds[0], thirds[2]);
    int convolved = mtf_mixer_convolve(
        m, &(MtfMixerConvolution){ .features = MTF_SHAPE(features), .name = "" }, opened);
    int y = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gated", NULL, thirds[1], convolved);
    return mtf_mixer_output(m, MTF_SHAPE(features), y);
}
