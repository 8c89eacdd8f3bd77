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
    int y =
        layer->activation != NULL ? mtf_assembly_activation(m, layer->activation, hidden) : hidden;
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
    int routing_loss = mtf_routed_loss(m->p, &m->routed);
    bool routes = routing_loss >= 0;
    if (counted >= 0 && !routes) {
        m->p->b.graph->loss = mean_of_counted(m, losses, counted);
        return;
    }
    int loss = mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, routes ? "prediction_loss" : "loss",
                               &(MtfShape){ 0 }, losses, -1);
    m->p->b.graph->loss = routes ? mtf_parts_add(m->p, "loss", loss, routing_loss) : loss;
}

/* ---- Classes of the whole --------------------------------------------------------------------- */

/* x at one position: its sum with weights that are 1 there and 0 elsewhere. */
static int one_position(MtfAssembly *m, const char *name, int64_t number, int x) {
    g_autofree char *is_it = g_strdup_printf("is_%s", name);
    mtf_parts_enter(m->p, name);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int place = mtf_parts_range(m->p, "place", m->length);
    int wanted = mtf_parts_constant(m->p, number == 0 ? "zero" : "wanted", (double)number);
    int is_there = mtf_parts_apply(m->p, MTF_OP_EQUAL, is_it, NULL, place, wanted);
    MtfShape shape = MTF_SHAPE(m->batch, m->d_model);
    int read = mtf_parts_einsum(m->p, "x", &shape, x, is_there);
    mtf_parts_leave(m->p);
    return read;
}

static int first_position(MtfAssembly *m, int x) {
    return one_position(m, "first", 0, x);
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

/* x at a text's last place, or its mean over the text's places. */
static int read_text(MtfAssembly *m, int x) {
    MtfShape each = MTF_SHAPE(m->batch), shape = MTF_SHAPE(m->batch, m->d_model);
    bool last = m->n->class_place == MTF_READ_LAST;
    mtf_parts_enter(m->p, last ? "last" : "text_mean");
    int is_text = mtf_assembly_text_places(m);
    int count = mtf_parts_apply(m->p, MTF_OP_REDUCE_SUM, "count", &each, is_text, -1);
    int y;
    if (last) {
        MtfShape all = MTF_SHAPE(m->batch, m->length);
        m->p->b.has_dtype = true;
        m->p->b.dtype = MTF_F32;
        int place = mtf_parts_range(m->p, "place", m->length);
        int number = mtf_parts_add(m->p, "number", place, mtf_parts_constant(m->p, "one", 1));
        int is_last = mtf_parts_apply(m->p, MTF_OP_EQUAL, "is_last", &all, count, number);
        y = mtf_parts_einsum(m->p, "x", &shape, x, is_last);
    } else {
        int sum = mtf_parts_einsum(m->p, "sum", &shape, x, is_text);
        y = mtf_parts_apply(m->p, MTF_OP_DIVIDE, "x", NULL, sum, count);
    }
    mtf_parts_leave(m->p);
    return y;
}

/* The mean over the places of patches, which begin behind the first and those that stand beside it. */
static int mean_of_patches(MtfAssembly *m, int x) {
    MtfShape shape = MTF_SHAPE(m->batch, m->d_model);
    int64_t before = m->n->picture.class_place != NULL, after = m->n->picture.n_registers;
    if (before + after == 0)
        return mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "mean", &shape, x, -1);
    int64_t count = m->positions - before - after;
    mtf_parts_enter(m->p, "patch_mean");
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int place = mtf_parts_range(m->p, "place", m->length);
    int first = mtf_parts_constant(m->p, "first", (double)before);
    int end = mtf_parts_constant(m->p, "end", (double)(before + count));
    int behind = mtf_parts_apply(m->p, MTF_OP_LESS_EQUAL, "behind", NULL, first, place);
    int early = mtf_parts_apply(m->p, MTF_OP_LESS, "early", NULL, place, end);
    int is_patch = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "is_patch", NULL, behind, early);
    int weight = mtf_assembly_scale(m, "weight", 1 / (double)count, is_patch);
    int mean = mtf_parts_einsum(m->p, "x", &shape, x, weight);
    mtf_parts_leave(m->p);
    return mean;
}

/* The probe's queries (0) or what they see as keys (1) or values (2), whose matrices lie in one tensor. */
static int probe_heads(MtfAssembly *m, int which, int x) {
    static const char *const names[] = { "q", "k", "v" };
    int64_t width = m->n->d_model;
    MtfLinear linear = { .name = names[which],
                         .in = MTF_SHAPE(m->d_model),
                         .out = MTF_SHAPE(m->heads, m->d_kv),
                         .bias = true,
                         .spread = m->n->spread };
    int y = mtf_assembly_linear(m, &linear, x);
    g_autofree char *rows = g_strdup_printf("%" PRId64 ":%" PRId64 "/%" PRId64, which * width,
                                            (which + 1) * width, 3 * width);
    g_autofree char *matrix = g_strdup_printf("probe/w%s", names[which]);
    g_autofree char *bias = g_strdup_printf("probe/%s_bias", names[which]);
    g_autofree char *weight = g_strdup_printf("%sattention.in_proj_weight[%s,%" PRId64 "]",
                                              m->n->picture.probe, rows, width);
    g_autofree char *of_bias =
        g_strdup_printf("%sattention.in_proj_bias[%s]", m->n->picture.probe, rows);
    mtf_assembly_place(m, matrix, weight);
    mtf_assembly_place(m, bias, of_bias);
    return y;
}

/* What the probe, one query for all pictures, finds in x [batch, d_model]. */
static int probe_attention(MtfAssembly *m, int x) {
    MtfShape heads = MTF_SHAPE(m->batch, m->heads, m->d_kv);
    g_autofree char *place =
        g_strdup_printf("%sprobe[1,1,%" PRId64 "]", m->n->picture.probe, m->n->d_model);
    int probe =
        mtf_parts_variable(m->p, "query", &MTF_SHAPE(m->d_model), MTF_INIT_NORMAL, m->n->spread);
    mtf_assembly_place(m, "probe/query", place);
    int q = probe_heads(m, 0, probe), k = probe_heads(m, 1, x), v = probe_heads(m, 2, x);
    MtfShape scored = MTF_SHAPE(m->batch, m->heads, m->length);
    int scores = mtf_parts_einsum(m->p, "scores", &scored, k, q);
    int scaled = mtf_assembly_scale(m, "scaled", m->stack->scale, scores);
    m->p->b.attributes.dimension = m->length;
    int shares = mtf_parts_apply(m->p, MTF_OP_SOFTMAX, "shares", NULL, scaled, -1);
    return mtf_parts_einsum(m->p, "context", &heads, shares, v);
}

/* That, through its matrix, and what a hidden layer makes of its norm beside it. */
static int read_by_probe(MtfAssembly *m, int x) {
    mtf_parts_enter(m->p, "probe");
    m->files = (char *)m->n->picture.probe;
    int d_ff = mtf_assembly_dimension(m, "d_ff", m->stack->d_ff);
    MtfLinear out = { .name = "out",
                      .file = "attention.out_proj",
                      .in = MTF_SHAPE(m->heads, m->d_kv),
                      .out = MTF_SHAPE(m->d_model),
                      .bias = true,
                      .spread = m->n->spread };
    MtfLinear up = { .name = "up",
                     .file = "mlp.fc1",
                     .in = MTF_SHAPE(m->d_model),
                     .out = MTF_SHAPE(d_ff),
                     .bias = true,
                     .spread = m->n->spread };
    MtfLinear down = { .name = "down",
                       .file = "mlp.fc2",
                       .in = MTF_SHAPE(d_ff),
                       .out = MTF_SHAPE(m->d_model),
                       .bias = true,
                       .spread = m->n->spread };
    int found = mtf_assembly_linear(m, &out, probe_attention(m, x));
    int normal = mtf_assembly_norm(m, "before", "layernorm", m->d_model, found);
    int hidden =
        mtf_assembly_activation(m, m->stack->activation, mtf_assembly_linear(m, &up, normal));
    int y = mtf_parts_add(m->p, "read", found, mtf_assembly_linear(m, &down, hidden));
    m->files = (char *)"";
    mtf_parts_leave(m->p);
    return y;
}

/* What the class is read from, and its dimensions but the batch. */
static int read_for_class(MtfAssembly *m, int x, MtfShape *in) {
    *in = MTF_SHAPE(m->d_model);
    if (m->n->class_place == MTF_READ_FIRST)
        return first_position(m, x);
    if (m->n->class_place == MTF_READ_TWO)
        return mtf_assembly_scale(m, "first_two", 0.5,
                                  mtf_parts_add(m->p, "first_and_second", first_position(m, x),
                                                one_position(m, "second", 1, x)));
    if (m->n->class_place == MTF_READ_ROW)
        return one_position(m, "last", m->positions - 1, x);
    if (m->n->class_place == MTF_READ_LAST || m->n->class_place == MTF_READ_TEXT)
        return read_text(m, x);
    if (m->n->class_place == MTF_READ_PATCHES)
        return mean_of_patches(m, x);
    if (m->n->class_place == MTF_READ_PROBE)
        return read_by_probe(m, x);
    int both = mtf_parts_dimension(m->p, "first_and_mean", 2);
    *in = MTF_SHAPE(both, m->d_model);
    MtfShape shape = MTF_SHAPE(m->batch, both, m->d_model);
    return mtf_parts_apply(m->p, MTF_OP_STACK, "first_and_mean_of_patches", &shape,
                           first_position(m, x), mean_of_patches(m, x));
}

/* The layer before the scores of classes, if there is one; `in` is what it makes. */
static int class_layer(MtfAssembly *m, MtfShape *in, int read) {
    if (m->n->head_layer.dense == NULL)
        return read;
    if (m->n->d_head == 0)
        return mtf_parts_dropout(m->p, "head_dropped", m->n->dropout.branches,
                                 head_layer(m, read, m->d_model));
    *in = MTF_SHAPE(mtf_assembly_dimension(m, "d_class", m->n->d_head));
    return head_layer(m, read, in->dims[0]);
}

static int class_scores(MtfAssembly *m, MtfShape *in, int read) {
    read = mtf_assembly_norm(m, "class_norm", m->n->class_norm, m->d_model, read);
    read = class_layer(m, in, read);
    MtfLinear linear = { .name = "logits",
                         .file = m->n->head,
                         .in = *in,
                         .out = MTF_SHAPE(mtf_parts_dimension(m->p, "classes", m->n->classes)),
                         .bias = !m->n->head_bare,
                         .out_first = true,
                         .spread = m->n->spread };
    return m->n->head != NULL ? mtf_assembly_linear(m, &linear, read) : read;
}

static int mean_of_all(MtfAssembly *m, int losses) {
    return mtf_parts_apply(m->p, MTF_OP_REDUCE_MEAN, "loss", &(MtfShape){ 0 }, losses, -1);
}

/* Which class each place is of; places without a label, below 0, are not counted. */
static void lose_places(MtfAssembly *m, int logits) {
    MtfShape places = MTF_SHAPE(m->batch, m->length);
    int labels = mtf_parts_input(m->p, "labels", &places, MTF_I32, MTF_FEED_LABELS);
    m->p->b.attributes.ignore = 1;
    int losses =
        mtf_parts_apply(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", &places, logits, labels);
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int number = mtf_parts_apply(m->p, MTF_OP_CAST, "label_numbers", NULL, labels, -1);
    int zero = mtf_parts_constant(m->p, "label_zero", 0);
    int counted = mtf_parts_apply(m->p, MTF_OP_LESS_EQUAL, "labelled", NULL, zero, number);
    m->p->b.graph->loss = mean_of_counted(m, losses, counted);
}

/* Which place an answer begins at, and which it ends at: all places are the classes of both. */
static void lose_ends(MtfAssembly *m, int logits) {
    int ends = m->p->b.error == NULL ? mtf_graph_find_dimension(m->p->b.graph, "classes") : -1;
    MtfShape both = MTF_SHAPE(m->batch, ends);
    int labels = mtf_parts_input(m->p, "labels", &both, MTF_I32, MTF_FEED_LABELS);
    int losses =
        mtf_parts_apply(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", &both, logits, labels);
    m->p->b.graph->loss = mean_of_all(m, losses);
}

static void lose_class(MtfAssembly *m, int logits) {
    MtfShape each = MTF_SHAPE(m->batch);
    int labels = mtf_parts_input(m->p, "labels", &each, MTF_I32, MTF_FEED_LABELS);
    int losses =
        mtf_parts_apply(m->p, MTF_OP_SOFTMAX_CROSS_ENTROPY, "losses", &each, logits, labels);
    m->p->b.graph->loss = mean_of_all(m, losses);
}

void mtf_assembly_classify_read(MtfAssembly *m, int read) {
    MtfShape in = MTF_SHAPE(m->d_model);
    lose_class(m, class_scores(m, &in, read));
}

void mtf_assembly_classify(MtfAssembly *m, int x) {
    MtfShape in = MTF_SHAPE(m->d_model);
    if (m->n->class_place == MTF_READ_EACH)
        lose_places(m, class_scores(m, &in, x));
    else if (m->n->class_place == MTF_READ_ALIGNED)
        mtf_assembly_lose_aligned(m, class_scores(m, &in, x));
    else if (m->n->class_place == MTF_READ_ENDS)
        lose_ends(m, class_scores(m, &in, x));
    else {
        int read = read_for_class(m, x, &in);
        lose_class(m, class_scores(m, &in, read));
    }
}
