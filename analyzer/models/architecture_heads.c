// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_parts.h"

#include <inttypes.h>
#include <math.h>

/* ---- Scores of tokens ------------------------------------------------------------------------ */

static double head_spread(const MtfAssembly *m) {
    return m->n->spread > 0 ? m->n->spread : 1 / sqrt((double)m->n->d_model);
}

static int head_bias(MtfAssembly *m) {
    if (m->n->head_bias_row != NULL)
        return mtf_assembly_kept(m, "head_bias", m->n->head_bias_row, m->vocab, true);
    g_autofree char *place = g_strdup_printf("%s.bias[%" PRId64 "]", m->n->head, m->n->vocab);
    int bias = mtf_parts_variable(m->p, "head_bias", &MTF_SHAPE(m->vocab), MTF_INIT_CONSTANT, 0);
    mtf_assembly_place(m, "head_bias", place);
    return bias;
}

/* x in the width of embeddings, by a matrix of its own or the one that widens them. */
static int narrow(MtfAssembly *m, int x) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length, m->d_embed);
    MtfLinear linear = { .name = "narrowed",
                         .file = m->n->narrowing,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(m->d_embed),
                         .spread = m->n->spread };
    if (m->d_embed == m->d_model || m->p->b.error != NULL)
        return x;
    if (m->n->narrowing != NULL)
        return mtf_assembly_linear(m, &linear, x);
    int w = mtf_graph_find_tensor(m->p->b.graph, "w" MTF_WIDENED);
    return mtf_parts_einsum(m->p, "x_narrow", &shape, x, w);
}

/* The layer before the scores: a matrix to as many features as `width` has, its activation, a norm. */
static int head_layer(MtfAssembly *m, int x, int width) {
    const MtfHeadLayer *layer = &m->n->head_layer;
    mtf_parts_enter(m->p, "head");
    int in = mtf_parts_dimension(m->p, "d_head", m->n->d_model);
    m->p->b.attributes.from = m->d_model;
    m->p->b.attributes.to = in;
    int read = mtf_parts_apply(m->p, MTF_OP_RENAME, "read", NULL, x, -1);
    MtfLinear linear = { .name = "hidden",
                         .file = layer->dense,
                         .in = MTF_SHAPE(in),
                         .out = MTF_SHAPE(width),
                         .bias = !m->n->head_layer_bare,
                         .spread = m->n->spread };
    int hidden = mtf_assembly_linear(m, &linear, read);
    int y = mtf_assembly_activation(m, layer->activation, hidden);
    y = mtf_assembly_norm(m, "after", layer->norm, width, y);
    mtf_parts_leave(m->p);
    return y;
}

int mtf_assembly_scores(MtfAssembly *m, int x, int table) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length, m->vocab);
    if (m->n->head_layer.dense != NULL)
        x = head_layer(m, x, m->d_embed);
    else if (m->n->tied)
        x = narrow(m, x);
    if (!m->n->tied)
        table = mtf_assembly_variable(m, "head", m->n->head, &MTF_SHAPE(m->vocab, m->d_model),
                                      MTF_INIT_NORMAL, head_spread(m));
    int scaled = mtf_assembly_scale(m, "x_scaled", m->n->logit_scale, x);
    int logits = mtf_parts_einsum(m->p, "logits", &shape, scaled, table);
    if (m->n->head_bias)
        logits = mtf_parts_add(m->p, "logits_biased", logits, head_bias(m));
    return mtf_assembly_softcap(m, "logits_softcap", m->n->logit_softcap, logits);
}

/* The mean over the positions that count, those of the whole batch. */
static int mean_of_counted(MtfAssembly *m, int losses, int counted) {
    MtfShape none = { 0 };
    int sum = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "losses_sum", &none, losses, -1);
    int count = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "positions_counted", &none, counted, -1);
    return mtf_parts_apply(m->p, MTF_OP_DIVIDE, "loss", NULL, sum, count);
}

/* What fills up rows loses nothing. Beside losses of routing the others are divided by all positions, as
 * Mesh-TensorFlow divides (loss_denominator): the sum of both is then linear in micro-batches. */
void mtf_assembly_lose(MtfAssembly *m, int logits, int targets) {
    MtfShape shape = MTF_SHAPE(m->batch, m->length);
    int counted = mtf_assembly_counted(m);
    m->p->b.attributes.smoothing = m->n->smoothing;
    int losses =
        mtf_parts_apply_shape_to(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", &shape,
                                 counted >= 0 ? 3 : 2, (int[]){ logits, targets, counted });
    bool routes = m->routing_loss >= 0;
    if (counted >= 0 && !routes) {
        m->p->b.graph->loss = mean_of_counted(m, losses, counted);
        return;
    }
    int loss = mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, routes ? "prediction_loss" : "loss",
                               &(MtfShape){ 0 }, losses, -1);
    m->p->b.graph->loss = routes ? mtf_parts_add(m->p, "loss", loss, m->routing_loss) : loss;
}

/* ---- Classes of the whole --------------------------------------------------------------------- */

/* x at the first position: its sum with the weights 1, 0, 0, … */
static int first_position(MtfAssembly *m, int x) {
    mtf_parts_enter(m->p, "first");
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int place = mtf_parts_range(m->p, "place", m->length);
    int zero = mtf_parts_constant(m->p, "zero", 0);
    int is_first = mtf_parts_apply(m->p, MTF_OP_EQUAL, "is_first", NULL, place, zero);
    MtfShape shape = MTF_SHAPE(m->batch, m->d_model);
    int read = mtf_parts_einsum(m->p, "x", &shape, x, is_first);
    mtf_parts_leave(m->p);
    return read;
}

/* The layer over the first position that models for whole texts have. The loss does not see it. */
void mtf_assembly_pool(MtfAssembly *m, int x) {
    if (!m->n->pooler)
        return;
    mtf_parts_enter(m->p, "pooler");
    int first = first_position(m, x);
    int out = mtf_parts_dimension(m->p, "d_pooled", m->n->d_model);
    MtfLinear linear = { .name = "hidden",
                         .file = m->n->pooler_name,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(out),
                         .bias = true,
                         .spread = m->n->spread };
    mtf_parts_apply(m->p, MTF_OP_TANH, "out", NULL, mtf_assembly_linear(m, &linear, first), -1);
    mtf_parts_leave(m->p);
}

void mtf_assembly_classify(MtfAssembly *m, int x) {
    int read = first_position(m, x);
    if (m->n->head_layer.dense != NULL)
        read = mtf_parts_dropout(m->p, "head_dropped", m->n->dropout.branches,
                                 head_layer(m, read, m->d_model));
    MtfShape each = MTF_SHAPE(m->batch);
    MtfLinear linear = { .name = "logits",
                         .file = m->n->head,
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(mtf_parts_dimension(m->p, "classes", m->n->classes)),
                         .bias = true,
                         .spread = m->n->spread };
    int logits = mtf_assembly_linear(m, &linear, read);
    int labels = mtf_parts_input(m->p, "labels", &each, MTF_I32, MTF_FEED_LABELS);
    int losses =
        mtf_parts_apply(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", &each, logits, labels);
    m->p->b.graph->loss =
        mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, losses, -1);
}
