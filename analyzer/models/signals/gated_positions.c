// SPDX-License-Identifier: GPL-3.0-or-later
/* WavLM's gated bias by positions (Chen and others, 2022, section 3.1, after Chi and others' XLM-E): with the features x_h of
 * head h at the place of a query,
 *
 *     a, b = sigmoid of the sums of four outputs each of a matrix of x_h
 *     bias of (query, memory) in h = (a (b factor_h - 1) + 2) d_h[distance]                          */
#include "analyzer/models/mixers/mixer_parts.h"

#include <inttypes.h>

static int one_of(MtfAssembly *m, const char *name, int both, int which, const MtfShape *shape,
                  int x) {
    m->p->b.attributes.dimension = both;
    m->p->b.attributes.index = which;
    return mtf_parts_apply(m->p, MTF_OP_SELECT, name, shape, x, -1);
}

/* a and b of each head's queries [batch, length, heads, 2]. */
static int gates(MtfAssembly *m, int both, int x) {
    MtfShape heads = MTF_SHAPE(m->batch, m->length, m->heads, m->d_kv);
    MtfShape pair = MTF_SHAPE(m->batch, m->length, m->heads, both);
    int outputs = mtf_assembly_dimension(m, "gate_outputs", 4);
    MtfLinear linear = { .name = "outputs",
                         .file = m->stack->names.position_gate,
                         .in = MTF_SHAPE(m->d_kv),
                         .out = MTF_SHAPE(both, outputs),
                         .bias = true,
                         .spread = m->n->spread };
    int apart = mtf_parts_apply(m->p, MTF_OP_RESHAPE, "heads", &heads, x, -1);
    int all = mtf_assembly_linear(m, &linear, apart);
    int sum = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "sum", &pair, all, -1);
    return mtf_mixer_map(m, MTF_OP_SIGMOID, "gates", sum, -1);
}

int mtf_assembly_gate_positions(MtfAssembly *m, int x, int bias) {
    const char *factor_file = m->stack->names.position_factor;
    if (m->stack->names.position_gate == NULL || bias < 0)
        return bias;
    mtf_parts_enter(m->p, "position_gate");
    int both = mtf_assembly_dimension(m, "gates_and_factors", 2);
    MtfShape each = MTF_SHAPE(m->batch, m->length, m->heads);
    MtfShape all = MTF_SHAPE(m->batch, m->heads, m->length, m->memory_length);
    g_autofree char *sizes = g_strdup_printf("1,%" PRId64 ",1,1", m->kv_heads);
    int open = gates(m, both, x);
    int a = one_of(m, "a", both, 0, &each, open), b = one_of(m, "b", both, 1, &each, open);
    int factor = mtf_mixer_row(m, "factor", factor_file, m->heads, sizes, 1);
    int scaled = mtf_mixer_map(m, MTF_OP_MULTIPLY, "scaled", b, factor);
    int less =
        mtf_mixer_map(m, MTF_OP_SUBTRACT, "less", scaled, mtf_parts_constant(m->p, "one", 1));
    int part = mtf_mixer_map(m, MTF_OP_MULTIPLY, "part", a, less);
    int gate = mtf_parts_add(m->p, "gate", part, mtf_parts_constant(m->p, "two", 2));
    int y = mtf_parts_einsum(m->p, "bias", &all, gate, bias);
    mtf_parts_leave(m->p);
    return y;
}
