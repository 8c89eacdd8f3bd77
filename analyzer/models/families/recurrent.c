// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/families/recurrent.h"

#include <math.h>
#include <string.h>

static bool is_gru(const MtfRecurrent *m) {
    return strcmp(m->s->cell, "gru") == 0;
}

static double spread(const MtfRecurrent *m, int dim) {
    return m->p->b.error != NULL ? 0 : 1 / sqrt((double)mtf_graph_size(m->p->b.graph, dim));
}

/* Features as a product with a matrix [features, …, hidden] reads them. */
static int readable(const MtfRecurrent *m, const char *name, int x, int *dim) {
    if (*dim != m->hidden)
        return x;
    m->p->b.attributes.from = m->hidden;
    m->p->b.attributes.to = m->before;
    *dim = m->before;
    return mtf_parts_apply(m->p, MTF_OP_RENAME, name, NULL, x, -1);
}

static int gate_at(const MtfRecurrent *m, const char *name, int gates, int index) {
    MtfShape shape = { 2, { m->batch, m->hidden } };
    m->p->b.attributes.dimension = m->gate;
    m->p->b.attributes.index = index;
    return mtf_parts_apply(m->p, MTF_OP_SELECT, name, &shape, gates, -1);
}

static int map(const MtfRecurrent *m, int kind, const char *name, int x, int y) {
    return mtf_parts_apply(m->p, kind, name, NULL, x, y);
}

/* A state of zeros, begun before the loop. */
static int begin(const MtfRecurrent *m, const char *name, int dim) {
    MtfShape shape = { 2, { m->batch, dim } };
    g_autofree char *zero = g_strdup_printf("%s/zero", name);
    g_autofree char *state = g_strdup_printf("%s/state", name);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    m->p->b.attributes.value = 0;
    int zeros = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, zero, &shape);
    return map(m, MTF_OP_LOOP_BEGIN, state, zeros, -1);
}

/* From the gates' sums and the cell's state; *next is the state that follows. */
static int lstm_cell(const MtfRecurrent *m, int gates, int cell, int *next) {
    int in = map(m, MTF_OP_SIGMOID, "in", gate_at(m, "in/sum", gates, 0), -1);
    int forget = map(m, MTF_OP_SIGMOID, "forget", gate_at(m, "forget/sum", gates, 1), -1);
    int new = map(m, MTF_OP_TANH, "new", gate_at(m, "new/sum", gates, 2), -1);
    int out = map(m, MTF_OP_SIGMOID, "out", gate_at(m, "out/sum", gates, 3), -1);
    int kept = map(m, MTF_OP_MULTIPLY, "kept", forget, cell);
    *next = mtf_parts_add(m->p, "next", kept, map(m, MTF_OP_MULTIPLY, "added", in, new));
    return map(m, MTF_OP_MULTIPLY, "shown", out, map(m, MTF_OP_TANH, "squashed", *next, -1));
}

/* From what the input and what the state give to the gates. n + z (h - n) = (1 - z) n + z h. */
static int gru_cell(const MtfRecurrent *m, int from_x, int from_h, int h) {
    int update_x = gate_at(m, "update/x", from_x, 0), reset_x = gate_at(m, "reset/x", from_x, 1);
    int new_x = gate_at(m, "new/x", from_x, 2), new_h = gate_at(m, "new/h", from_h, 2);
    int update_sum = mtf_parts_add(m->p, "update/sum", update_x, gate_at(m, "update/h", from_h, 0));
    int reset_sum = mtf_parts_add(m->p, "reset/sum", reset_x, gate_at(m, "reset/h", from_h, 1));
    int update = map(m, MTF_OP_SIGMOID, "update", update_sum, -1);
    int reset = map(m, MTF_OP_SIGMOID, "reset", reset_sum, -1);
    int new_sum =
        mtf_parts_add(m->p, "new/sum", new_x, map(m, MTF_OP_MULTIPLY, "gated", reset, new_h));
    int new = map(m, MTF_OP_TANH, "new", new_sum, -1);
    int difference = map(m, MTF_OP_SUBTRACT, "difference", h, new);
    return mtf_parts_add(m->p, "shown", new, map(m, MTF_OP_MULTIPLY, "kept", update, difference));
}

static int project(const MtfRecurrent *m, int shown) {
    if (m->last == m->hidden)
        return shown;
    MtfShape matrix = { 2, { m->hidden, m->last } }, result = { 2, { m->batch, m->last } };
    int w =
        mtf_parts_variable(m->p, "w_projection", &matrix, MTF_INIT_UNIFORM, spread(m, m->hidden));
    return mtf_parts_einsum(m->p, "projected", &result, shown, w);
}

/* What the input gives to the gates at all positions, biases included. */
static int gates_of_input(const MtfRecurrent *m, int x, int dim) {
    MtfShape matrix = { 3, { dim, m->gate, m->hidden } }, bias = { 2, { m->gate, m->hidden } };
    MtfShape gates = { 4, { m->length, m->gate, m->batch, m->hidden } };
    int w = mtf_parts_variable(m->p, "w_x", &matrix, MTF_INIT_UNIFORM, spread(m, dim));
    int sums = mtf_parts_einsum(m->p, "from_x", &gates, x, w);
    if (!m->s->biases)
        return sums;
    return mtf_parts_add(m->p, "biased", sums,
                         mtf_parts_variable(m->p, "bias", &bias, MTF_INIT_CONSTANT, 0));
}

int mtf_recurrent_layer(const MtfRecurrent *m, int x, int dim, int layer) {
    MtfParts *p = m->p;
    g_autofree char *name = g_strdup_printf("layer/%d", layer);
    mtf_parts_enter(p, name);
    int rows = m->last == m->hidden ? m->before : m->last, read = m->last, next = -1;
    MtfShape matrix = { 3, { rows, m->gate, m->hidden } };
    MtfShape gates = { 3, { m->gate, m->batch, m->hidden } };
    x = readable(m, "input", x, &dim);
    int all_gates = gates_of_input(m, x, dim);
    int u = mtf_parts_variable(p, "w_h", &matrix, MTF_INIT_UNIFORM, spread(m, rows));
    int h = begin(m, "h", m->last), cell = is_gru(m) ? -1 : begin(m, "cell", m->hidden);
    p->b.loop = p->b.error != NULL ? 0 : mtf_graph_add_loop(p->b.graph, name, m->length, false);
    p->b.attributes.dimension = m->length;
    int now = map(m, MTF_OP_LOOP_SLICE, "x_gates", all_gates, -1);
    int from_h = mtf_parts_einsum(p, "from_h", &gates, readable(m, "h_before", h, &read), u);
    int shown = is_gru(m) ? gru_cell(m, now, from_h, h)
                          : lstm_cell(m, mtf_parts_add(p, "gates", now, from_h), cell, &next);
    shown = project(m, shown);
    p->b.attributes.dimension = m->length;
    int all = map(m, MTF_OP_LOOP_STACK, "all", shown, -1);
    map(m, MTF_OP_LOOP_NEXT, "h", h, shown);
    if (cell >= 0)
        map(m, MTF_OP_LOOP_NEXT, "cell", cell, next);
    p->b.loop = 0;
    all = mtf_parts_dropout(p, "dropped", m->s->dropout, all);
    mtf_parts_leave(p);
    return all;
}

int mtf_recurrent_embedding(const MtfRecurrent *m) {
    MtfShape ids = { 2, { m->batch, m->length } }, table = { 2, { m->vocab, m->d_model } };
    MtfShape shape = { 3, { m->length, m->batch, m->d_model } };
    int tokens = mtf_parts_input(m->p, "tokens", &ids, MTF_I32, MTF_FEED_TOKENS);
    int w = mtf_parts_variable(m->p, "embedding", &table, MTF_INIT_UNIFORM, 0.1);
    int x = mtf_parts_apply(m->p, MTF_OP_EMBEDDING, "embedded", &shape, w, tokens);
    return mtf_parts_dropout(m->p, "embedded/dropped", m->s->dropout, x);
}

void mtf_recurrent_loss(const MtfRecurrent *m, int x, int extra) {
    MtfShape ids = { 2, { m->batch, m->length } }, matrix = { 2, { m->last, m->vocab } };
    MtfShape logits_shape = { 3, { m->batch, m->length, m->vocab } }, bias = { 1, { m->vocab } };
    int labels = mtf_parts_input(m->p, "labels", &ids, MTF_I32, MTF_FEED_NEXT_TOKENS);
    int w = mtf_parts_variable(m->p, "softmax", &matrix, MTF_INIT_UNIFORM, spread(m, m->last));
    int logits = mtf_parts_einsum(m->p, "logits", &logits_shape, x, w);
    if (m->s->biases)
        logits =
            mtf_parts_add(m->p, "logits/biased", logits,
                          mtf_parts_variable(m->p, "softmax/bias", &bias, MTF_INIT_CONSTANT, 0));
    int losses =
        mtf_parts_apply(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", &ids, logits, labels);
    int loss = mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, extra < 0 ? "loss" : "loss/words",
                               &(MtfShape){ 0 }, losses, -1);
    m->p->b.graph->loss = extra < 0 ? loss : mtf_parts_add(m->p, "loss", loss, extra);
}

void mtf_recurrent_init(MtfRecurrent *m, MtfParts *p, const MtfModelSettings *s) {
    *m = (MtfRecurrent){ .p = p, .s = s, .before = -1 };
    m->batch = mtf_parts_dimension(p, "batch", s->batch);
    m->length = mtf_parts_dimension(p, "length", s->length);
    m->vocab = mtf_parts_dimension(p, "vocab", s->vocab);
    m->d_model = mtf_parts_dimension(p, "d_model", s->d_model);
    m->gate = mtf_parts_dimension(p, "gate", is_gru(m) ? 3 : 4);
    m->last = m->hidden = mtf_parts_dimension(p, "hidden", s->hidden);
    if (s->projection > 0)
        m->last = mtf_parts_dimension(p, "projection", s->projection);
    else
        m->before = mtf_parts_dimension(p, "hidden_before", s->hidden);
}
