// SPDX-License-Identifier: GPL-3.0-or-later
/* What each layer reads of the token beside what the layers before it made (Gemma 3n, 2025, "per-layer embeddings"): a
 * row of a table of its own and features of the embedding, few, that x lets through:
 *
 *     t = (sqrt(d_token) table[token] + norm(read(embedding) / sqrt(d_model))) / sqrt(2)
 *     x + norm(out(f(gate(x)) t))
 *
 * Files keep tables and matrices of all layers as columns and rows of one. */
#include "analyzer/models/architecture_parts.h"

#include <inttypes.h>
#include <math.h>

/* The layer's columns of the table. */
static int table(MtfAssembly *m, int width) {
    const MtfStack *s = m->stack;
    bool same = s->token_vocab == m->n->vocab;
    int rows = same ? m->vocab : mtf_assembly_dimension(m, "token_vocab", s->token_vocab);
    int begin = m->layer * (int)s->d_token;
    int variable = mtf_parts_variable(m->p, "token_table", &MTF_SHAPE(rows, width), MTF_INIT_NORMAL,
                                      m->n->spread);
    g_autofree char *place =
        g_strdup_printf("%s.weight[%" PRId64 ",%d:%" PRId64 "/%" PRId64 "]", s->names.token_table,
                        s->token_vocab, begin, begin + s->d_token, s->layers * s->d_token);
    if (m->p->b.error == NULL)
        mtf_assembly_place(m, mtf_graph_tensor(m->p->b.graph, variable)->name, place);
    return variable;
}

/* The norm of what the embedding gives, by the scale that all layers share. */
static int norm_read(MtfAssembly *m, int width, int x) {
    const char *file = m->stack->names.token_norm;
    if (m->token_scale < 0)
        m->token_scale = mtf_assembly_variable(m, "token_norm_scale", file, &MTF_SHAPE(width),
                                               MTF_INIT_CONSTANT, 1);
    m->p->b.attributes.dimension = width;
    m->p->b.attributes.epsilon = m->n->epsilon;
    return mtf_parts_apply(m->p, MTF_OP_RMS_NORM, "read_norm", NULL, x, m->token_scale);
}

/* t of the layer [batch, length, d_token]. */
static int told(MtfAssembly *m, int width) {
    const MtfStack *s = m->stack;
    MtfLinear linear = { .name = "read",
                         .file = s->names.token_read,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(width),
                         .begin = m->layer * s->d_token,
                         .total = s->layers * s->d_token,
                         .spread = m->n->spread };
    MtfShape shape = MTF_SHAPE(m->batch, m->length, width);
    char *files = m->files;
    m->files = (char *)"";
    int row = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "row", &shape, table(m, width), m->tokens);
    int read = mtf_assembly_linear(m, &linear, m->embedded);
    double few = sqrt((double)s->d_token), many = sqrt((double)m->n->d_model);
    int normal = norm_read(m, width, mtf_assembly_scale(m, "read_scaled", 1 / many, read));
    m->files = files;
    int sum = mtf_parts_add(m->p, "sum", mtf_assembly_scale(m, "row_scaled", few, row), normal);
    return mtf_assembly_scale(m, "told", sqrt(0.5), sum);
}

int mtf_assembly_token_branch(MtfAssembly *m, int x) {
    const MtfStack *s = m->stack;
    mtf_parts_enter(m->p, "token");
    int width = mtf_assembly_dimension(m, "d_token", s->d_token);
    MtfLinear gate = { .name = "gate",
                       .file = s->names.token_gate,
                       .in = MTF_SHAPE(m->d_model),
                       .out = MTF_SHAPE(width),
                       .spread = m->n->spread };
    MtfLinear out = { .name = "out",
                      .file = s->names.token_out,
                      .in = MTF_SHAPE(width),
                      .out = MTF_SHAPE(m->d_model),
                      .spread = m->residual_spread };
    int open = mtf_assembly_activation(m, s->activation, mtf_assembly_linear(m, &gate, x));
    int through = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "through", NULL, open, told(m, width));
    int branch = mtf_assembly_norm(m, "on", s->names.on_token, m->d_model,
                                   mtf_assembly_linear(m, &out, through));
    mtf_parts_leave(m->p);
    return branch;
}

int mtf_assembly_add_token(MtfAssembly *m, int x) {
    if (m->stack->d_token == 0)
        return x;
    return mtf_parts_add(m->p, "token/x", x, mtf_assembly_token_branch(m, x));
}
