// SPDX-License-Identifier: GPL-3.0-or-later
/* Attention of a graph that generates: caches in place of what an example brings, and what counts from
 * the position of each example. */
#include "layouts/graph/operation_table.h"
#include "layouts/inference/generation_making.h"
#include "layouts/kernel_work/rotary_angles.h"

#define NEVER_SEEN (-1e30) /* what causal_mask gives */

/* Keys or values of the tokens at hand go where those of the text are kept: heads apart, so that
 * the rows of one follow one another. */
int mtf_make_cache(MtfMaking *m, const MtfOperation *op, int *inputs) {
    const MtfAttributes *a = &op->attributes;
    if (a->from != m->length)
        return mtf_making_copy(m, op, inputs);
    const MtfTensor *x = mtf_graph_tensor(m->graph, inputs[0]);
    MtfShape shape = { 0 };
    int last = x->shape.dims[x->shape.rank - 1];
    for (int i = 0; i < x->shape.rank; i++)
        if (x->shape.dims[i] != m->length && x->shape.dims[i] != last)
            mtf_shape_append(&shape, x->shape.dims[i]);
    mtf_shape_append(&shape, a->to);
    if (last != m->length)
        mtf_shape_append(&shape, last);
    g_autofree char *full = g_strconcat(op->name, "/cache", NULL);
    g_autofree char *name = mtf_making_free_name(m, full);
    int cache =
        mtf_graph_add_variable(m->graph, name, &shape, x->dtype, (MtfInit){ MTF_INIT_CONSTANT, 0 },
                               MTF_MEMORY_CACHE, &m->error);
    if (cache >= 0)
        mtf_graph_tensor(m->graph, cache)->layer = op->layer;
    MtfEmission e = { op->name, "", MTF_OP_CACHE_UPDATE, MTF_NO_ATTRIBUTES, &shape, false, 0 };
    e.attributes.from = m->length;
    e.attributes.to = a->to;
    int next = mtf_making_emit(m, &e, 3, (int[]){ inputs[0], cache, m->position });
    if (next >= 0)
        mtf_graph_add_update(m->graph, cache, next);
    return next;
}

/* where(memory <= place, x, -1e30), or with a window where(place - window < memory, x, -1e30), under the name of
 * `op`. */
static int hide(MtfMaking *m, const MtfOperation *op, const char *suffix, int memory_dim,
                double window, int x) {
    if (x < 0)
        return -1;
    MtfDtype dtype = mtf_graph_tensor(m->graph, x)->dtype;
    MtfShape along = { 1, { memory_dim } }, all = { 3, { m->batch, m->length, memory_dim } };
    MtfShape scalar = { 0 }, whole = *mtf_making_shape(m, x);
    g_autofree char *made = g_strconcat(op->name, suffix, NULL);
    MtfEmission range = { made, "/memory", MTF_OP_RANGE, MTF_NO_ATTRIBUTES, &along, true, MTF_I32 };
    MtfEmission size = {
        made, "/window", MTF_OP_CONSTANT, MTF_NO_ATTRIBUTES, &scalar, true, MTF_I32
    };
    MtfEmission begin = { made, "/before", MTF_OP_SUBTRACT, MTF_NO_ATTRIBUTES, NULL, false, 0 };
    MtfEmission less = {
        made, "/seen_place", MTF_OP_LESS_EQUAL, MTF_NO_ATTRIBUTES, &all, false, 0
    };
    MtfEmission cast = { made, "/seen", MTF_OP_CAST, MTF_NO_ATTRIBUTES, NULL, true, dtype };
    MtfEmission low = { made, "/unseen", MTF_OP_CONSTANT, MTF_NO_ATTRIBUTES, &scalar, true, dtype };
    MtfEmission choose = { made, "", MTF_OP_WHERE, MTF_NO_ATTRIBUTES, &whole, false, 0 };
    low.attributes.value = NEVER_SEEN;
    int pair[2] = { mtf_making_emit(m, &range, 0, NULL), mtf_making_place(m) };
    if (window > 0) {
        MtfShape both = { 2, { m->batch, m->length } };
        size.attributes.value = window;
        begin.shape = &both;
        less.kind = MTF_OP_LESS;
        int before =
            mtf_making_emit(m, &begin, 2, (int[]){ pair[1], mtf_making_emit(m, &size, 0, NULL) });
        pair[1] = pair[0];
        pair[0] = before;
    }
    int seen_place = mtf_making_emit(m, &less, 2, pair);
    int seen = mtf_making_emit(m, &cast, 1, &seen_place),
        unseen = mtf_making_emit(m, &low, 0, NULL);
    return mtf_making_emit(m, &choose, 3, (int[]){ seen, x, unseen });
}

int mtf_make_mask(MtfMaking *m, const MtfOperation *op, int *inputs) {
    const MtfAttributes *a = &op->attributes;
    m->hides[op->outputs[0]] = true;
    if (a->query != m->length || inputs[0] < 0)
        return mtf_making_copy(m, op, inputs);
    return hide(m, op, "", a->memory, 0, inputs[0]);
}

/* softcap tanh(scores / softcap), under the name of `op`. */
static int cap_scores(MtfMaking *m, const MtfOperation *op, int scores) {
    double cap = op->attributes.softcap;
    MtfEmission shrink = { op->name, "/shrunk", MTF_OP_SCALE, MTF_NO_ATTRIBUTES, NULL, false, 0 };
    MtfEmission bend = { op->name, "/bent", MTF_OP_TANH, MTF_NO_ATTRIBUTES, NULL, false, 0 };
    MtfEmission grow = { op->name, "/capped", MTF_OP_SCALE, MTF_NO_ATTRIBUTES, NULL, false, 0 };
    if (cap == 0 || scores < 0)
        return scores;
    shrink.attributes.factor = 1 / cap;
    grow.attributes.factor = cap;
    int shrunk = mtf_making_emit(m, &shrink, 1, &scores);
    int bent = mtf_making_emit(m, &bend, 1, &shrunk);
    return mtf_making_emit(m, &grow, 1, &bent);
}

/* softmax(scores) along `memory`, in the rows that it is made of: this graph may be laid out as it is. */
static int softmax(MtfMaking *m, const MtfOperation *op, int memory, int scores) {
    if (scores < 0)
        return -1;
    MtfShape rest = *mtf_making_shape(m, scores);
    mtf_shape_remove(&rest, memory);
    MtfEmission most = { op->name, "/most", MTF_OP_REDUCE_MAX, MTF_NO_ATTRIBUTES, &rest, false, 0 };
    MtfEmission add = { op->name, "/sum", MTF_OP_SUM_EXP, MTF_NO_ATTRIBUTES, &rest, false, 0 };
    MtfEmission apply = { op->name, "/shares", MTF_OP_SOFTMAX_APPLY, MTF_NO_ATTRIBUTES, NULL,
                          false,    0 };
    int max = mtf_making_emit(m, &most, 1, &scores);
    int sum = mtf_making_emit(m, &add, 2, (int[]){ scores, max });
    return mtf_making_emit(m, &apply, 3, (int[]){ scores, max, sum });
}

/* The scores of attention with something added, and their softmax: [batch, heads, length, memory]. */
static int biased_shares(MtfMaking *m, const MtfOperation *op, const int *inputs) {
    const MtfAttributes *a = &op->attributes;
    MtfShape all = *mtf_making_shape(m, inputs[0]);
    mtf_shape_remove(&all, a->dimension);
    if (!mtf_shape_append(&all, a->memory)) {
        mtf_making_fail(m, op, "has too many dimensions");
        return -1;
    }
    MtfEmission product = {
        op->name, "/products", MTF_OP_EINSUM, MTF_NO_ATTRIBUTES, &all, false, 0
    };
    MtfEmission scale = { op->name, "/scores", MTF_OP_SCALE, MTF_NO_ATTRIBUTES, NULL, false, 0 };
    MtfEmission add = { op->name, "/biased", MTF_OP_ADD, MTF_NO_ATTRIBUTES, &all, false, 0 };
    scale.attributes.factor = a->factor;
    int products = mtf_making_emit(m, &product, 2, inputs),
        scores = cap_scores(m, op, mtf_making_emit(m, &scale, 1, &products));
    int biased =
        mtf_making_emit(m, &add, op->n_inputs - 2, (int[]){ scores, inputs[3], inputs[4] });
    int seen = hide(m, op, "/causal", a->memory, 0, biased);
    if (a->window > 0)
        seen = hide(m, op, "/near", a->memory, a->window, seen);
    return softmax(m, op, a->memory, seen);
}

/* Attention with a bias, by rows that there are: cached_attention adds none. */
static int make_biased_attention(MtfMaking *m, const MtfOperation *op, const int *inputs) {
    for (int k = 0; k < op->n_inputs; k++)
        if (inputs[k] < 0)
            return -1;
    MtfShape out = *mtf_making_shape(m, inputs[0]);
    MtfEmission e = { op->name, "", MTF_OP_EINSUM, MTF_NO_ATTRIBUTES, &out, false, 0 };
    return mtf_making_emit(m, &e, 2, (int[]){ biased_shares(m, op, inputs), inputs[2] });
}

/* Attention to the caches; its lse is the next tensor. */
static int attend_cached(MtfMaking *m, const MtfOperation *op, const char *suffix,
                         const int *inputs) {
    MtfEmission e = { op->name, suffix, MTF_OP_CACHED_ATTENTION, op->attributes, NULL, false, 0 };
    e.attributes.causal = e.attributes.rate = 0;
    if (op->attributes.causal == 0)
        mtf_making_fail(m, op, "looks at what comes later, or at another text");
    return mtf_making_emit(m, &e, 4, (int[]){ inputs[0], inputs[1], inputs[2], m->position });
}

int mtf_make_attention(MtfMaking *m, const MtfOperation *op, int *inputs) {
    if (op->attributes.query != m->length)
        return mtf_making_copy(m, op, inputs);
    if (op->n_inputs > 3 && op->attributes.causal != 0)
        return make_biased_attention(m, op, inputs);
    return attend_cached(m, op, "", inputs);
}

/* Attention that goes on from o and lse: what the caches hold makes e^lse' of e^lse' + e^lse, and o the rest. */
int mtf_make_further_attention(MtfMaking *m, const MtfOperation *op, int *inputs) {
    if (op->attributes.query != m->length)
        return mtf_making_copy(m, op, inputs);
    if (op->n_inputs > 5)
        mtf_making_fail(m, op, "has a bias beside what it goes on from");
    int seen = attend_cached(m, op, "/seen", inputs), before = inputs[3];
    if (seen < 0)
        return -1;
    MtfShape whole = *mtf_making_shape(m, seen), rest = *mtf_making_shape(m, seen + 1);
    MtfEmission apart = { op->name, "/apart", MTF_OP_SUBTRACT, MTF_NO_ATTRIBUTES, &rest, false, 0 };
    MtfEmission share = { op->name, "/share", MTF_OP_SIGMOID, MTF_NO_ATTRIBUTES, NULL, false, 0 };
    MtfEmission narrow = { op->name, "/narrow", MTF_OP_CAST, MTF_NO_ATTRIBUTES, NULL, true, 0 };
    MtfEmission beyond = {
        op->name, "/beyond", MTF_OP_SUBTRACT, MTF_NO_ATTRIBUTES, &whole, false, 0
    };
    MtfEmission more = { op->name, "/more", MTF_OP_MULTIPLY, MTF_NO_ATTRIBUTES, &whole, false, 0 };
    MtfEmission sum = { op->name, "", MTF_OP_ADD, MTF_NO_ATTRIBUTES, &whole, false, 0 };
    narrow.dtype = mtf_graph_tensor(m->graph, seen)->dtype;
    int logs = mtf_making_emit(m, &apart, 2, (int[]){ seen + 1, inputs[4] });
    int part = mtf_making_emit(m, &share, 1, &logs);
    if (part >= 0 && mtf_graph_tensor(m->graph, part)->dtype != narrow.dtype)
        part = mtf_making_emit(m, &narrow, 1, &part);
    int change = mtf_making_emit(m, &beyond, 2, (int[]){ seen, before });
    return mtf_making_emit(
        m, &sum, 2, (int[]){ before, mtf_making_emit(m, &more, 2, (int[]){ change, part }) });
}

int mtf_make_rotary(MtfMaking *m, const MtfOperation *op, int *inputs) {
    if (op->attributes.position != m->length)
        return mtf_making_copy(m, op, inputs);
    MtfEmission e = { op->name, "", MTF_OP_ROTARY, op->attributes, NULL, false, 0 };
    int begin = m->position;
    if (op->n_inputs > 1) {
        MtfShape shape = *mtf_making_shape(m, m->position);
        MtfEmission sum = { op->name, "/begin", MTF_OP_ADD, MTF_NO_ATTRIBUTES, &shape, false, 0 };
        begin = mtf_making_emit(m, &sum, 2, (int[]){ inputs[1], m->position });
    }
    /* How long the text is matters only where frequencies follow it. */
    int n = mtf_rotary_follows_length(&op->attributes) ? 3 : 2;
    return mtf_making_emit(m, &e, n, (int[]){ inputs[0], begin, m->last });
}
