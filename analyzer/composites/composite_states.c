// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/composites/composite_states.h"

/* The log of what is kept of a state that lies behind: nothing. */
#define NOTHING 1e30

/* The tensors of an operation whose places are in blocks, and those dimensions. */
typedef struct {
    int blocks, block, others; /* which block; which place of it; which of the other blocks */
    int v, q, k, log;
    MtfShape values, heads, states; /* of v, of log, of the state behind each block */
} Blocks;

static int divided(MtfComposite *c, const Blocks *d, const char *suffix, int x) {
    MtfShape whole = mtf_composite_divided(mtf_composite_shape(c, x), c->op->attributes.dimension,
                                           d->blocks, d->block);
    return mtf_composite_part(c, MTF_OP_RESHAPE, suffix, &whole, x, -1);
}

static int summed(MtfComposite *c, const char *suffix, int x, int dim, bool exclusive,
                  bool reverse) {
    MtfAttributes *a = &c->b->attributes;
    a->dimension = dim;
    a->exclusive = exclusive;
    a->reverse = reverse;
    return mtf_composite_mapped(c, MTF_OP_CUMULATIVE_SUM, suffix, x, -1);
}

/* e^x in the type of the values. */
static int share(MtfComposite *c, const char *suffix, const char *wide, int x) {
    return mtf_composite_converted(c, suffix, mtf_composite_dtype(c, c->x[0]),
                                   mtf_composite_mapped(c, MTF_OP_EXP, wide, x, -1));
}

/* The same along the dimension of the other blocks. */
static int of_others(MtfComposite *c, const Blocks *d, const char *suffix, int x) {
    c->b->attributes.from = d->blocks;
    c->b->attributes.to = d->others;
    return mtf_composite_mapped(c, MTF_OP_RENAME, suffix, x, -1);
}

/* S = sum of k v e^(the logs of later places of the block): what a block leaves behind by itself. */
static int states_left(MtfComposite *c, const Blocks *d) {
    int later = summed(c, "later", d->log, d->block, true, true);
    int kept = share(c, "later/share", "later/kept", later);
    int left = mtf_composite_part(c, MTF_OP_MULTIPLY, "left", &d->values, d->v, kept);
    return mtf_composite_part(c, MTF_OP_EINSUM, "states", &d->states, d->k, left);
}

/* What is left of each other block's state before each block: e^(the logs of the blocks between them), and
 * nothing of those that do not come before it. */
static int shares_between(MtfComposite *c, const Blocks *d) {
    MtfShape rest = mtf_shape_without(&d->heads, d->block), pairs = rest;
    MtfShape places = { 2, { d->blocks, d->others } };
    mtf_shape_append(&pairs, d->others);
    int totals = mtf_composite_part(c, MTF_OP_REDUCE_SUM, "totals", &rest, d->log, -1);
    int before = summed(c, "before", totals, d->blocks, true, false);
    int upto = of_others(c, d, "others/upto", summed(c, "upto", totals, d->blocks, false, false));
    int apart = mtf_composite_part(c, MTF_OP_SUBTRACT, "between", &pairs, before, upto);
    MtfDtype dtype = mtf_composite_dtype(c, d->log);
    int number = mtf_composite_positions(c, "number", d->blocks, dtype);
    int other = mtf_composite_positions(c, "others/number", d->others, dtype);
    int comes = mtf_composite_part(c, MTF_OP_LESS, "others/come", &places, other, number);
    int nothing = mtf_composite_number(c, "nothing", dtype, -NOTHING);
    g_autofree char *name = g_strdup_printf("%s/between/kept", c->op->name);
    int logs = MTF_BUILD(c->b, MTF_OP_WHERE, name, &pairs, comes, apart, nothing);
    return share(c, "between/share", "between/shares", logs);
}

/* q times the state before the block, of which e^(the logs up to a place) is left there. */
static int from_before(MtfComposite *c, const Blocks *d) {
    int left = of_others(c, d, "others/states", states_left(c, d));
    int states = mtf_composite_part(c, MTF_OP_EINSUM, "states/before", &d->states,
                                    shares_between(c, d), left);
    int read = mtf_composite_part(c, MTF_OP_EINSUM, "read", &d->values, d->q, states);
    int passed = summed(c, "passed", d->log, d->block, false, false);
    return mtf_composite_part(c, MTF_OP_MULTIPLY, "further", &d->values, read,
                              share(c, "passed/share", "passed/kept", passed));
}

int mtf_expand_linear_attention(MtfComposite *c) {
    const MtfAttributes *a = &c->op->attributes;
    if (a->blocks <= 1)
        return mtf_composite_copy(c);
    int64_t n = (int64_t)a->blocks, size = mtf_graph_size(c->b->graph, a->dimension);
    Blocks d = { .blocks = mtf_composite_dimension(c, "blocks", n),
                 .block = mtf_composite_dimension(c, "block", size / n),
                 .others = mtf_composite_dimension(c, "others", n) };
    if (d.others < 0)
        return -1;
    d.v = divided(c, &d, "v", c->x[0]);
    d.q = divided(c, &d, "q", c->x[1]);
    d.k = divided(c, &d, "k", c->x[2]);
    d.log = divided(c, &d, "log", c->x[3]);
    if (d.log < 0)
        return -1;
    d.values = *mtf_composite_shape(c, d.v);
    d.heads = *mtf_composite_shape(c, d.log);
    d.states = mtf_shape_without(&d.values, d.block);
    int last = d.states.dims[d.states.rank - 1];
    d.states.dims[d.states.rank - 1] = a->keys;
    mtf_shape_append(&d.states, last);
    g_autofree char *name = g_strdup_printf("%s/own", c->op->name);
    c->b->attributes.dimension = d.block;
    c->b->attributes.keys = a->keys;
    int own = MTF_BUILD(c->b, MTF_OP_LINEAR_ATTENTION, name, &d.values, d.v, d.q, d.k, d.log);
    int sum = mtf_composite_part(c, MTF_OP_ADD, "sum", &d.values, own, from_before(c, &d));
    return MTF_BUILD(c->b, MTF_OP_RESHAPE, c->op->name, c->shape, sum);
}
