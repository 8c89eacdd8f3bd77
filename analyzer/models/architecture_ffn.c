// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_parts.h"

static int up(MtfAssembly *m, const char *name, const char *file, int part, int x) {
    const MtfStackNames *n = &m->stack->names;
    MtfLinear linear = { .name = name,
                         .file = file,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(m->d_ff),
                         .bias = m->stack->ffn_bias,
                         .spread = m->n->spread };
    if (n->gate_up != NULL) {
        linear.file = n->gate_up;
        linear.begin = part * m->stack->d_ff;
        linear.total = 2 * m->stack->d_ff;
    }
    return mtf_assembly_linear(m, &linear, x);
}

int mtf_assembly_ffn(MtfAssembly *m, int x) {
    const MtfStack *s = m->stack;
    int hidden;
    if (s->gated) {
        int barrier =
            mtf_assembly_activation(m, s->activation, up(m, "gate", s->names.barrier, 0, x));
        hidden = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "gated", NULL, barrier,
                                 up(m, "hidden", s->names.up, 1, x));
    } else {
        hidden = mtf_assembly_activation(m, s->activation, up(m, "hidden", s->names.up, 1, x));
    }
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = "out",
                                             .file = s->names.down,
                                             .in = MTF_SHAPE(m->d_ff),
                                             .out = MTF_SHAPE(m->d_model),
                                             .bias = s->ffn_bias,
                                             .spread = m->residual_spread },
                               hidden);
}
