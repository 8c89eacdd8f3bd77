// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/models/architecture_parts.h"

#include <math.h>

/* Names of one attention's tensors in files. */
typedef struct {
    const char *q, *k, *v, *o, *qkv;
} Names;

typedef struct {
    int q, k, v;
} Heads;

/* What queries look at, and what is added to the scores; -1: nothing. */
typedef struct {
    int memory;
    bool causal;
    int added[2]; /* to scores; -1: nothing */
} Looks;

/* x within the stack's limit, where it has one. */
static int limit(MtfAssembly *m, const char *name, int x) {
    double most = m->stack->qkv_limit;
    if (most == 0)
        return x;
    g_autofree char *limited = g_strdup_printf("%s_limited", name);
    m->p->b.attributes.low = -most;
    m->p->b.attributes.high = most;
    return mtf_parts_apply(m->p, MTF_OP_CLIP, limited, NULL, x, -1);
}

/* x in the heads of queries (0), keys (1) or values (2). Where a file keeps all three in one tensor
 * its outputs are q, k, v one after the other. */
static int project(MtfAssembly *m, const Names *names, int which, int x) {
    static const char *const results[] = { "q", "k", "v" };
    const MtfStack *s = m->stack;
    const char *const files[] = { names->q, names->k, names->v };
    const bool biases[] = { s->q_bias, s->k_bias, s->v_bias };
    const char *const bias_files[] = { s->names.q_bias, NULL, s->names.v_bias };
    int64_t blocks = s->qkv_by_head ? m->kv_heads : MAX(1, s->qkv_parts);
    int64_t queries = s->heads * m->width_kv / blocks, keys = m->kv_heads * m->width_kv / blocks;
    const int64_t begins[] = { 0, queries + (s->values_before_keys ? keys : 0),
                               queries + (s->values_before_keys ? 0 : keys) };
    MtfLinear linear = { .name = results[which],
                         .file = names->qkv != NULL ? names->qkv : files[which],
                         .in = MTF_SHAPE(m->d_model),
                         .out = which == 0 ? mtf_assembly_query_heads(m)
                                           : MTF_SHAPE(m->heads, m->d_kv),
                         .bias = biases[which],
                         .bias_file = bias_files[which],
                         .spread = m->n->spread };
    /* Scores that nothing divides begin as small by their weights. */
    if (which == 0 && m->n->spread == 0 && s->scale == 1)
        linear.spread = 1 / sqrt((double)(m->n->d_model * m->width_kv));
    if (names->qkv != NULL) {
        linear.blocks = s->qkv_by_head || s->qkv_parts > 0 ? blocks : 0;
        linear.begin = begins[which];
        linear.total = queries + 2 * keys;
    } else if (which == 0 && s->head_gate && m->stack->names.head_gate == NULL) {
        linear.blocks = s->heads;
        linear.total = 2 * m->width_kv;
    }
    return limit(m, results[which], mtf_assembly_linear(m, &linear, x));
}

/* Numbers between spaces, as the rotary row has them; NULL where there are none. */
static char *number_list(const double *numbers, int n) {
    GString *list = g_string_new(NULL);
    for (int i = 0; i < n; i++) {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(list, i > 0 ? " %s" : "%s",
                               g_ascii_dtostr(text, sizeof text, numbers[i]));
    }
    return g_string_free(list, n == 0);
}

bool mtf_assembly_has_window(const MtfAssembly *m) {
    const MtfStack *s = m->stack;
    return s->window_rule == MTF_WINDOW_ALL ||
           (s->window_rule == MTF_WINDOW_EVEN && m->layer % 2 == 0) ||
           (s->window_rule == MTF_WINDOW_FROM && m->layer >= s->window_from) ||
           (s->window_rule == MTF_WINDOW_LISTED && mtf_layers_have(s->window_layers, m->layer));
}

/* By angles that nothing stretches. */
static int turn_as_it_is(MtfAssembly *m, const char *name, int dim, int x) {
    const MtfStack *s = m->stack;
    MtfAttributes *a = &m->p->b.attributes;
    a->position = m->length;
    a->dimension = dim;
    a->base = s->window_rotary_base;
    a->rotated = s->rotary_share < 1 ? floor(s->rotary_share * (double)m->width_kv) : 0;
    a->angle = a->stretch = a->low = a->gain = 1;
    a->high = 4;
    return mtf_parts_apply(m->p, MTF_OP_ROTARY, name, NULL, x, -1);
}

static bool is_straight(const MtfAssembly *m) {
    return mtf_layers_have(m->stack->straight_layers, m->layer);
}

int mtf_assembly_turn(MtfAssembly *m, const char *name, int dim, int x) {
    const MtfStack *s = m->stack;
    if (s->grid_base > 0)
        return mtf_assembly_grid_turn(m, name, x);
    if (s->rotary_base == 0 || is_straight(m))
        return x;
    if (s->window_rotary_base > 0 && mtf_assembly_has_window(m))
        return turn_as_it_is(m, name, dim, x);
    g_autofree char *divisors = number_list(s->rotary_short, s->rotary_divided);
    g_autofree char *long_divisors =
        number_list(s->rotary_long, s->rotary_context > 0 ? s->rotary_divided : 0);
    MtfAttributes *a = &m->p->b.attributes;
    a->adjacent = s->rotary_adjacent;
    a->divisors = divisors;
    a->long_divisors = long_divisors;
    a->position = m->length;
    a->dimension = dim;
    a->base = s->rotary_base;
    a->rotated = s->rotary_share < 1 ? floor(s->rotary_share * (double)m->width_kv) : 0;
    a->angle = s->rotary_angle;
    a->context = s->rotary_context;
    a->stretch = s->rotary_stretch;
    a->low = s->rotary_low;
    a->high = s->rotary_high;
    a->ramp = s->rotary_ramp;
    a->gain = s->rotary_gain;
    a->growth = s->rotary_growth;
    return mtf_parts_apply(m->p, MTF_OP_ROTARY, name, NULL, x, -1);
}

static int remember(MtfAssembly *m, const char *name, int from, int to, int x) {
    m->p->b.attributes.from = from;
    m->p->b.attributes.to = to;
    return mtf_parts_apply(m->p, MTF_OP_RENAME, name, NULL, x, -1);
}

/* The window of this layer, or 0: none, or one that no text of this length fills. */
static int64_t layer_window(const MtfAssembly *m) {
    const MtfStack *s = m->stack;
    return mtf_assembly_has_window(m) && s->window < m->positions ? s->window : 0;
}

/* What attention with sinks goes on from: nothing, whose scores are each head's number (gpt-oss). */
static void begin_at_sinks(MtfAssembly *m, const Heads *h, int *nothing, int *sinks) {
    MtfShape heads = mtf_assembly_query_heads(m), whole = { 0 };
    heads.rank--;
    if (m->p->b.error == NULL)
        whole = mtf_graph_tensor(m->p->b.graph, h->q)->shape;
    *nothing = mtf_parts_apply_shaped(m->p, MTF_OP_CONSTANT, "nothing", &whole);
    mtf_shape_remove(&whole, m->d_kv);
    int numbers = mtf_assembly_sinks(m, &heads);
    *sinks = mtf_parts_apply(m->p, MTF_OP_BROADCAST, "sinks_of_queries", &whole, numbers, -1);
}

/* Softmax of the scores over `memory`, times the values, by the attention row. */
static int attend(MtfAssembly *m, const Heads *h, const Looks *looks) {
    int memory = looks->memory, nothing = -1, sinks = -1;
    bool causal = looks->causal;
    if (m->stack->names.sinks != NULL)
        begin_at_sinks(m, h, &nothing, &sinks);
    m->p->b.attributes.query = m->length;
    m->p->b.attributes.memory = memory;
    m->p->b.attributes.dimension = m->d_kv;
    m->p->b.attributes.factor = m->stack->scale / (m->stack->scale_by_layer ? m->layer + 1 : 1);
    m->p->b.attributes.causal = causal;
    m->p->b.attributes.softcap = m->stack->softcap;
    m->p->b.attributes.window = causal ? (double)layer_window(m) : 0;
    m->p->b.attributes.rate = m->n->dropout.shares;
    int kind = sinks < 0 ? MTF_OP_ATTENTION : MTF_OP_ATTENTION_FURTHER;
    int n = sinks < 0 ? 3 : 5, inputs[7] = { h->q, h->k, h->v, nothing, sinks };
    for (int i = 0; i < 2; i++)
        if (looks->added[i] >= 0)
            inputs[n++] = looks->added[i];
    return mtf_parts_apply_to(m->p, kind, "context", n, inputs);
}

static int project_out(MtfAssembly *m, const Names *names, int context) {
    MtfShape in = mtf_assembly_query_heads(m);
    in.dims[in.rank - 1] = mtf_assembly_value_dimension(m);
    return mtf_assembly_linear(m,
                               &(MtfLinear){ .name = "out",
                                             .file = names->o,
                                             .in = in,
                                             .out = MTF_SHAPE(m->d_model),
                                             .bias = m->stack->o_bias,
                                             .spread = m->residual_spread },
                               context);
}

/* What the heads made of x, each feature as far as it is let through. */
static int gate_heads(MtfAssembly *m, int x, int context) {
    const MtfStack *s = m->stack;
    bool own = s->names.head_gate != NULL;
    MtfLinear linear = { .name = "head_gate",
                         .file = own ? s->names.head_gate : s->names.q,
                         .in = MTF_SHAPE(m->d_model),
                         .out = mtf_assembly_query_heads(m),
                         .blocks = own ? 0 : s->heads,
                         .begin = own ? 0 : m->width_kv,
                         .total = own ? 0 : 2 * m->width_kv,
                         .bias = s->q_bias && !own,
                         .spread = m->n->spread };
    if (!s->head_gate)
        return context;
    int share = mtf_parts_apply(m->p, MTF_OP_SIGMOID, "head_share", NULL,
                                mtf_assembly_linear(m, &linear, x), -1);
    return mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "context_gated", NULL, context, share);
}

/* The norm of what all heads made together. */
static int norm_context(MtfAssembly *m, int context) {
    const char *file = m->stack->names.on_heads;
    MtfShape heads = mtf_assembly_query_heads(m);
    return file == NULL ? context : mtf_assembly_wide_norm(m, "heads_norm", file, &heads, context);
}

/* The norm of queries (0) or keys (1). */
static int norm_heads(MtfAssembly *m, int which, int x) {
    const MtfStackNames *n = &m->stack->names;
    const char *name = which == 0 ? "q_norm" : "k_norm";
    const char *file = which == 0 ? n->q_norm : n->k_norm;
    MtfShape heads = which == 0 ? mtf_assembly_query_heads(m) : MTF_SHAPE(m->heads, m->d_kv);
    switch (m->stack->head_norm) {
    case MTF_HEAD_NORM_EACH:
        return mtf_assembly_norm(m, name, file, m->d_kv, x);
    case MTF_HEAD_NORM_OWN:
        return mtf_assembly_own_norm(m, name, file, &heads, x);
    case MTF_HEAD_NORM_WIDE:
        return mtf_assembly_wide_norm(m, name, file, &heads, x);
    case MTF_HEAD_NORM_BARE:
        if (!is_straight(m)) {
            mtf_parts_enter(m->p, name);
            x = mtf_assembly_bare_norm(m, "norm", m->d_kv, x);
            mtf_parts_leave(m->p);
        }
        break;
    case MTF_HEAD_NORM_NONE:
        break;
    }
    return x;
}

/* Queries of long texts in layers that do not turn: x (1 + temper ln(1 + floor((position + 1) / places))); or
 * in all, without that first 1. */
static int temper(MtfAssembly *m, int x) {
    const MtfStack *s = m->stack;
    if (s->temper_places == 0 || m->positions < s->temper_places ||
        !(s->temper_all || is_straight(m)))
        return x;
    mtf_parts_enter(m->p, "temper");
    m->p->b.has_dtype = true;
    m->p->b.dtype = MTF_F32;
    int position = mtf_parts_range(m->p, "position", m->length);
    int one = mtf_parts_constant(m->p, "one", 1);
    int places = mtf_parts_constant(m->p, "places", (double)s->temper_places);
    int place = s->temper_all ? position : mtf_parts_add(m->p, "place", position, one);
    int times = mtf_parts_apply(m->p, MTF_OP_DIVIDE, "times", NULL, place, places);
    int whole = mtf_parts_apply(m->p, MTF_OP_FLOOR, "whole", NULL, times, -1);
    int log =
        mtf_parts_apply(m->p, MTF_OP_LOG, "log", NULL, mtf_parts_add(m->p, "more", whole, one), -1);
    int factor =
        mtf_parts_add(m->p, "factor", mtf_assembly_scale(m, "growth", s->temper, log), one);
    int y = mtf_parts_apply(m->p, MTF_OP_MULTIPLY, "q", NULL, x, factor);
    mtf_parts_leave(m->p);
    return y;
}

/* Queries (0) or keys (1) with their norm, turned. */
static int norm_and_turn(MtfAssembly *m, int which, int x) {
    static const char *const turned[] = { "q_turned", "k_turned" };
    bool last = m->stack->head_norm_last;
    int y = last ? x : norm_heads(m, which, x);
    int z = mtf_assembly_turn(m, turned[which], m->d_kv, y);
    return last ? norm_heads(m, which, z) : z;
}

static int norm_values(MtfAssembly *m, int x) {
    if (!m->stack->value_norm)
        return x;
    mtf_parts_enter(m->p, "v_norm");
    int y = mtf_assembly_bare_norm(m, "norm", m->d_kv, x);
    mtf_parts_leave(m->p);
    return y;
}

/* Queries, and unless they are borrowed keys and values, of the layer's own input. */
static void own_heads(MtfAssembly *m, const Names *names, int x, int heads[3]) {
    heads[0] = norm_and_turn(m, 0, project(m, names, 0, x));
    if (mtf_assembly_borrows(m))
        return;
    bool one = m->stack->values_are_keys && !mtf_assembly_has_window(m);
    int keys = project(m, names, 1, x), values = one ? keys : project(m, names, 2, x);
    heads[1] = norm_and_turn(m, 1, keys);
    heads[2] = norm_values(m, values);
}

/* What is added to the scores of the layer beside its mask, or -1. */
static int added(MtfAssembly *m) {
    if (m->stack->buckets_by_layer)
        return mtf_assembly_buckets(m);
    if (m->stack->names.grid_table != NULL)
        return mtf_assembly_grid_bias(m);
    bool looks_near = m->stack->chunk > 0 ? !is_straight(m) : mtf_assembly_has_window(m);
    return m->near >= 0 && looks_near ? m->near : m->buckets;
}

bool mtf_assembly_borrows(const MtfAssembly *m) {
    return m->layer >= m->stack->layers - m->stack->borrowing_layers;
}

/* Keys and values as memory: the layer's own, or those of the last layer of its kind. */
static Heads memory_of(MtfAssembly *m, const int h[3]) {
    int *lent = m->lent[mtf_assembly_has_window(m)];
    if (!mtf_assembly_borrows(m)) {
        lent[0] = remember(m, "key", m->length, m->memory_length, h[1]);
        lent[1] = remember(m, "value", m->length, m->memory_length, h[2]);
    }
    return (Heads){ temper(m, h[0]), lent[0], lent[1] };
}

int mtf_assembly_self_attention(MtfAssembly *m, int x) {
    const MtfStackNames *n = &m->stack->names;
    Names names = { n->q, n->k, n->v, n->o, n->qkv };
    int h[3];
    if (m->stack->d_latent > 0)
        mtf_assembly_latent_heads(m, x, h);
    else
        own_heads(m, &names, x, h);
    Heads heads = memory_of(m, h);
    int by_positions = m->stack->distance_rows > 0 ? mtf_assembly_disentangled(m, heads.q, heads.k)
                                                   : mtf_assembly_gate_positions(m, x, added(m));
    Looks looks = { m->memory_length, m->stack->causal, { by_positions, m->mask } };
    int context = mtf_assembly_latent_values(m, attend(m, &heads, &looks));
    context = norm_context(m, gate_heads(m, x, context));
    return project_out(m, &names, context);
}

int mtf_assembly_cross_attention(MtfAssembly *m, int x, int source) {
    const MtfStackNames *n = &m->stack->names;
    Names names = { n->cross_q, n->cross_k, n->cross_v, n->cross_o, NULL };
    int q = project(m, &names, 0, x);
    int k = project(m, &names, 1, source), v = project(m, &names, 2, source);
    Heads heads = { q, remember(m, "key", m->source_length, m->source_memory, k),
                    remember(m, "value", m->source_length, m->source_memory, v) };
    Looks looks = { m->source_memory, false, { m->source_mask, -1 } };
    return project_out(m, &names, attend(m, &heads, &looks));
}
