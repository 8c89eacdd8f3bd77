// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/composites/composite_scans.h"

#include <inttypes.h>

/* As far as numbers go where there is none, as masks have it. */
#define NOTHING 1e30

/* The blocks in which many elements of few rows are added up, or the largest of them looked for. */
#define MOST_BLOCKS 64
#define LEAST_BLOCK 4096
#define MANY_ROWS 8

/* Where nobody says how many blocks there are of rows of `size` elements: one, so that rows are split, unless these are
 * few; then as many as leave each so long that what travels of it, `wanted` elements, is little beside it. */
static int64_t chosen_blocks(int64_t rows, int64_t size, int64_t wanted) {
    int64_t n = MOST_BLOCKS;
    while (n > 1 &&
           (rows >= MANY_ROWS || size % n != 0 || size / n < MAX(LEAST_BLOCK, 16 * wanted)))
        n--;
    return n;
}

/* ---- Scans ----------------------------------------------------------------------------------- */

/* log(e^x + e^y) = max + log(1 + e^(min - max)). */
static int joined_exponents(MtfComposite *c, const char *level, int x, int y) {
    g_autofree char *more = g_strdup_printf("%s/more", level);
    g_autofree char *less = g_strdup_printf("%s/less", level);
    g_autofree char *apart = g_strdup_printf("%s/apart", level);
    g_autofree char *rest = g_strdup_printf("%s/rest", level);
    g_autofree char *sum = g_strdup_printf("%s/joined", level);
    int largest = mtf_composite_mapped(c, MTF_OP_MAXIMUM, more, x, y);
    int difference = mtf_composite_mapped(
        c, MTF_OP_SUBTRACT, apart, mtf_composite_mapped(c, MTF_OP_MINIMUM, less, x, y), largest);
    return mtf_composite_mapped(c, MTF_OP_ADD, sum, largest,
                                mtf_composite_mapped(c, MTF_OP_SOFTPLUS, rest, difference, -1));
}

static int larger(MtfComposite *c, const char *level, int x, int y) {
    g_autofree char *joined = g_strdup_printf("%s/joined", level);
    return mtf_composite_mapped(c, MTF_OP_MAXIMUM, joined, x, y);
}

static int smaller(MtfComposite *c, const char *level, int x, int y) {
    g_autofree char *joined = g_strdup_printf("%s/joined", level);
    return mtf_composite_mapped(c, MTF_OP_MINIMUM, joined, x, y);
}

/* What a scan makes of an element and what comes before it. */
typedef struct {
    int (*join)(MtfComposite *c, const char *level, int x, int y);
    int positions;  /* of elements */
    int to;         /* the dimension of elements that are moved */
    double nothing; /* what it makes of no elements, as masks have it */
} Scan;

/* 1 for those of `positions` that have no element `step` before them (in reverse: behind them). */
static int lacks_partner(MtfComposite *c, const char *level, int positions, int64_t step) {
    bool back = c->op->attributes.reverse != 0;
    int64_t size = mtf_graph_size(c->b->graph, c->op->attributes.dimension);
    g_autofree char *edge_name = g_strdup_printf("%s/edge", level);
    g_autofree char *name = g_strdup_printf("%s/first", level);
    int edge = mtf_composite_number(c, edge_name, mtf_composite_dtype(c, c->x[0]),
                                    (double)(back ? size - step : step));
    return back ? mtf_composite_mapped(c, MTF_OP_LESS_EQUAL, name, edge, positions)
                : mtf_composite_mapped(c, MTF_OP_LESS, name, positions, edge);
}

/* Each element that before it; that which has none `nothing`. */
static int moved_on(MtfComposite *c, const Scan *scan, int x) {
    MtfBuilder *b = c->b;
    int dim = c->op->attributes.dimension;
    bool back = c->op->attributes.reverse != 0;
    int moved = mtf_composite_shifted(c, "exclusive/moved", x, scan->to, back ? 1 : -1);
    b->attributes.from = scan->to;
    b->attributes.to = dim;
    int before = mtf_composite_mapped(c, MTF_OP_RENAME, "exclusive/before", moved, -1);
    int first = lacks_partner(c, "exclusive", scan->positions, 1);
    g_autofree char *name = g_strdup_printf("%s/exclusive", c->op->name);
    int nothing = mtf_composite_number(c, "nothing", mtf_composite_dtype(c, x), scan->nothing);
    return MTF_BUILD(b, MTF_OP_WHERE, name, c->shape, first, nothing, before);
}

/* Every element joined with that `step` before it, which stands for as many (Hillis and Steele, "Data
 * parallel algorithms", 1986). */
static int scan_level(MtfComposite *c, const Scan *scan, int x, int64_t step) {
    MtfBuilder *b = c->b;
    int dim = c->op->attributes.dimension;
    bool back = c->op->attributes.reverse != 0;
    bool last = 2 * step >= mtf_graph_size(b->graph, dim);
    g_autofree char *level = g_strdup_printf("%" PRId64, step);
    g_autofree char *moved_name = g_strdup_printf("%s/moved", level);
    g_autofree char *partner_name = g_strdup_printf("%s/partner", level);
    g_autofree char *name =
        g_strdup_printf("%s%s%s", c->op->name, last ? "" : "/", last ? "" : level);
    int moved = mtf_composite_shifted(c, moved_name, x, scan->to, (double)(back ? step : -step));
    b->attributes.from = scan->to;
    b->attributes.to = dim;
    int partner = mtf_composite_mapped(c, MTF_OP_RENAME, partner_name, moved, -1);
    int first = lacks_partner(c, level, scan->positions, step);
    int joined = scan->join(c, level, x, partner);
    return MTF_BUILD(b, MTF_OP_WHERE, name, c->shape, first, x, joined);
}

/* x under the composite's name. */
static int copied(MtfComposite *c, int x) {
    c->b->attributes.factor = 1;
    return MTF_BUILD(c->b, MTF_OP_SCALE, c->op->name, NULL, x);
}

static int scanned(MtfComposite *c, double nothing,
                   int (*join)(MtfComposite *, const char *, int, int)) {
    int dim = c->op->attributes.dimension, x = c->x[0];
    bool exclusive = c->op->attributes.exclusive != 0;
    int64_t size = mtf_graph_size(c->b->graph, dim);
    if (size == 1 && !exclusive)
        return copied(c, x);
    Scan scan = { join, mtf_composite_positions(c, "position", dim, mtf_composite_dtype(c, x)),
                  mtf_composite_dimension(c, "moved", size), nothing };
    x = exclusive ? moved_on(c, &scan, x) : x;
    if (size == 1)
        return copied(c, x);
    for (int64_t step = 1; step < size; step *= 2)
        x = scan_level(c, &scan, x, step);
    return x;
}

int mtf_expand_cumulative_max(MtfComposite *c) {
    return scanned(c, -NOTHING, larger);
}

int mtf_expand_cumulative_min(MtfComposite *c) {
    return scanned(c, NOTHING, smaller);
}

int mtf_expand_cumulative_log_sum_exp(MtfComposite *c) {
    return scanned(c, -NOTHING, joined_exponents);
}

static int summed_along(MtfComposite *c, const char *suffix, int x, int dim, double exclusive) {
    MtfAttributes *a = &c->b->attributes;
    a->dimension = dim;
    a->exclusive = exclusive;
    a->reverse = c->op->attributes.reverse;
    a->blocks = 1;
    return mtf_composite_mapped(c, MTF_OP_CUMULATIVE_SUM, suffix, x, -1);
}

/* In blocks, each by itself and then moved by the total of those before it: where blocks are split,
 * nothing but the totals travels (Blelloch, "Prefix sums and their applications", 1990). */
int mtf_expand_cumulative_sum(MtfComposite *c) {
    const MtfAttributes *a = &c->op->attributes;
    int64_t size = mtf_graph_size(c->b->graph, a->dimension);
    int64_t rows = mtf_graph_elements(c->b->graph, c->shape) / size;
    int64_t blocks = a->blocks == 0 ? chosen_blocks(rows, size, 1) : (int64_t)a->blocks;
    if (blocks == 1)
        return mtf_composite_copy(c);
    int outer = mtf_composite_dimension(c, "blocks", blocks);
    int inner = mtf_composite_dimension(c, "block", size / blocks);
    if (inner < 0)
        return -1;
    MtfShape whole = mtf_composite_divided(c->shape, a->dimension, outer, inner);
    MtfShape totals_shape = mtf_shape_without(&whole, inner);
    int x = mtf_composite_part(c, MTF_OP_RESHAPE, "divided", &whole, c->x[0], -1);
    int own = summed_along(c, "own", x, inner, a->exclusive);
    int totals = mtf_composite_part(c, MTF_OP_REDUCE_SUM, "totals", &totals_shape, x, -1);
    int before = summed_along(c, "before", totals, outer, 1);
    int sum = mtf_composite_part(c, MTF_OP_ADD, "sum", &whole, own, before);
    return MTF_BUILD(c->b, MTF_OP_RESHAPE, c->op->name, c->shape, sum);
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

/* As many of the largest along `from` as `to` has; `index`: where they stand. */
static int ranked(MtfComposite *c, const char *suffix, int x, int from, int to, int *index) {
    MtfBuilder *b = c->b;
    b->attributes.from = from;
    b->attributes.to = to;
    b->attributes.blocks = 1;
    int largest = mtf_composite_mapped(c, MTF_OP_TOP_K, suffix, x, -1);
    if (largest < 0)
        return -1;
    int producer = mtf_graph_tensor(b->graph, largest)->producer;
    *index = mtf_graph_operation(b->graph, producer)->outputs[1];
    return largest;
}

/* Where the candidates of each of `blocks` blocks stand in x, from where they stand in the block. */
static int candidate_places(MtfComposite *c, int blocks, int64_t block, int within,
                            const MtfShape *candidates) {
    MtfBuilder *b = c->b;
    int64_t size = mtf_graph_size(b->graph, c->op->attributes.from);
    int each = mtf_composite_number(c, "size", MTF_I32, (double)block);
    int begins = mtf_composite_mapped(c, MTF_OP_MULTIPLY, "begins",
                                      mtf_composite_positions(c, "number", blocks, MTF_I32), each);
    int places = mtf_composite_mapped(c, MTF_OP_ADD, "places", within, begins);
    int joined = mtf_composite_part(c, MTF_OP_RESHAPE, "places/joined", candidates, places, -1);
    return mtf_composite_converted(c, "places/wide", size < 1 << 24 ? MTF_F32 : MTF_F64, joined);
}

/* Of the largest of each block, one block behind the other, the largest: equal ones stand among them in
 * the order in which they stand in x. Where blocks are split nothing but these candidates travels. */
int mtf_expand_top_k(MtfComposite *c) {
    MtfBuilder *b = c->b;
    const MtfAttributes *a = &c->op->attributes;
    int64_t size = mtf_graph_size(b->graph, a->from), wanted = mtf_graph_size(b->graph, a->to);
    int64_t rows = mtf_graph_elements(b->graph, c->shape) / wanted;
    int64_t n = a->blocks == 0 ? chosen_blocks(rows, size, wanted) : (int64_t)a->blocks;
    if (n == 1)
        return mtf_composite_copy(c);
    int64_t each = size / n, few = MIN(each, wanted);
    int blocks = mtf_composite_dimension(c, "blocks", n),
        block = mtf_composite_dimension(c, "block", each);
    int some = mtf_composite_dimension(c, "few", few),
        all = mtf_composite_dimension(c, "candidates", n * few);
    if (all < 0)
        return -1;
    MtfShape whole = mtf_composite_divided(mtf_composite_shape(c, c->x[0]), a->from, blocks, block);
    MtfShape candidates = *mtf_composite_shape(c, c->x[0]);
    candidates.dims[mtf_shape_find(&candidates, a->from)] = all;
    int within = -1, chosen = -1;
    int x = mtf_composite_part(c, MTF_OP_RESHAPE, "divided", &whole, c->x[0], -1);
    x = ranked(c, "own", x, block, some, &within);
    x = mtf_composite_part(c, MTF_OP_RESHAPE, "own/joined", &candidates, x, -1);
    int places = candidate_places(c, blocks, each, within, &candidates);
    x = ranked(c, "best", x, all, a->to, &chosen);
    int found = mtf_composite_part(c, MTF_OP_EMBEDDING, "best/place", c->shape, places, chosen);
    c->index = mtf_composite_converted(c, "index", MTF_I32, found);
    return copied(c, x);
}
