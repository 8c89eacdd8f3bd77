// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/expand.h"

#include "analyzer/training/builder.h"

#include <inttypes.h>
#include <math.h>

/* Inputs that are optional are looked at up to here. */
#define LEAST_INPUTS 4

/* As far as numbers go where there is none, as masks have it. */
#define NOTHING 1e30

typedef struct {
    const MtfGraph *from;
    MtfBuilder b;
    int *tensors; /* of `from` -> of the new graph */
} Expansion;

/* One operation that is being rewritten. */
typedef struct {
    Expansion *e;
    const MtfOperation *op;
    const int *x;          /* its inputs in the new graph; -1 where it could have some more */
    const MtfShape *shape; /* of its output */
    int index; /* its second output, where another operation makes it than the first; or -1 */
} Composite;

static const MtfShape *shape_of(const Composite *c, int tensor) {
    return &mtf_graph_tensor(c->e->b.graph, tensor)->shape;
}

static int part(Composite *c, int kind, const char *suffix, const MtfShape *shape, int x, int y) {
    g_autofree char *name = g_strdup_printf("%s/%s", c->op->name, suffix);
    return mtf_build(&c->e->b, kind, name, shape, y < 0 ? 1 : 2, (int[]){ x, y });
}

static int expand_softmax(Composite *c) {
    int x = c->x[0];
    MtfShape rest = mtf_shape_without(c->shape, c->op->attributes.dimension);
    int max = part(c, MTF_OP_REDUCE_MAX, "max", &rest, x, -1);
    int sum = part(c, MTF_OP_SUM_EXP, "sum", &rest, x, max);
    return MTF_BUILD(&c->e->b, MTF_OP_SOFTMAX_APPLY, c->op->name, c->shape, x, max, sum);
}

static int expand_layer_norm(Composite *c) {
    int x = c->x[0];
    MtfShape rest = mtf_shape_without(c->shape, c->op->attributes.dimension);
    int mean = part(c, MTF_OP_REDUCE_MEAN, "mean", &rest, x, -1);
    int variance = part(c, MTF_OP_VARIANCE, "variance", &rest, x, mean);
    c->e->b.attributes.epsilon = c->op->attributes.epsilon;
    return mtf_build(&c->e->b, MTF_OP_NORMALIZE, c->op->name, c->shape, c->op->n_inputs + 2,
                     (int[]){ x, mean, variance, c->x[1], c->x[2] });
}

static MtfBuilder *builder_of(const Composite *c) {
    return &c->e->b;
}

/* A part of one input in the shape of the result. */
static int mapped(Composite *c, int kind, const char *suffix, int x, int y) {
    return part(c, kind, suffix, NULL, x, y);
}

static int expand_not_equal(Composite *c) {
    int equal = part(c, MTF_OP_EQUAL, "equal", c->shape, c->x[0], c->x[1]);
    return MTF_BUILD(builder_of(c), MTF_OP_LOGICAL_NOT, c->op->name, NULL, equal);
}

/* a > b is b < a. */
static int expand_greater(Composite *c) {
    return MTF_BUILD(builder_of(c), MTF_OP_LESS, c->op->name, c->shape, c->x[1], c->x[0]);
}

static int expand_greater_equal(Composite *c) {
    return MTF_BUILD(builder_of(c), MTF_OP_LESS_EQUAL, c->op->name, c->shape, c->x[1], c->x[0]);
}

static int expand_logical_and(Composite *c) {
    return MTF_BUILD(builder_of(c), MTF_OP_MULTIPLY, c->op->name, c->shape, c->x[0], c->x[1]);
}

static int expand_logical_or(Composite *c) {
    return MTF_BUILD(builder_of(c), MTF_OP_MAXIMUM, c->op->name, c->shape, c->x[0], c->x[1]);
}

static int expand_reciprocal(Composite *c) {
    builder_of(c)->attributes.exponent = -1;
    return MTF_BUILD(builder_of(c), MTF_OP_RAISE, c->op->name, NULL, c->x[0]);
}

static int expand_ceil(Composite *c) {
    int floor =
        mapped(c, MTF_OP_FLOOR, "floor", mapped(c, MTF_OP_NEGATE, "negated", c->x[0], -1), -1);
    return MTF_BUILD(builder_of(c), MTF_OP_NEGATE, c->op->name, NULL, floor);
}

/* The negative of the largest of the negated, so that parts of it meet as maxima do. */
static int smallest(Composite *c, int x) {
    int negated = mapped(c, MTF_OP_NEGATE, "negated", x, -1);
    return part(c, MTF_OP_REDUCE_MAX, "max", c->shape, negated, -1);
}

static int expand_reduce_min(Composite *c) {
    int max = smallest(c, c->x[0]);
    return MTF_BUILD(builder_of(c), MTF_OP_NEGATE, c->op->name, NULL, max);
}

/* 1 where x is not 0. */
static int truth(Composite *c) {
    int zero = mapped(c, MTF_OP_LOGICAL_NOT, "zero", c->x[0], -1);
    return mapped(c, MTF_OP_LOGICAL_NOT, "truth", zero, -1);
}

static int expand_reduce_any(Composite *c) {
    return MTF_BUILD(builder_of(c), MTF_OP_REDUCE_MAX, c->op->name, c->shape, truth(c));
}

static int expand_reduce_all(Composite *c) {
    int zero = mapped(c, MTF_OP_LOGICAL_NOT, "zero", c->x[0], -1);
    int some = part(c, MTF_OP_REDUCE_MAX, "some", c->shape, zero, -1);
    return MTF_BUILD(builder_of(c), MTF_OP_LOGICAL_NOT, c->op->name, NULL, some);
}

static MtfDtype dtype_of(const Composite *c, int tensor) {
    return mtf_graph_tensor(c->e->b.graph, tensor)->dtype;
}

/* `x` in another type, if it has not that type. */
static int converted(Composite *c, const char *suffix, MtfDtype dtype, int x) {
    if (x < 0 || dtype_of(c, x) == dtype)
        return x;
    builder_of(c)->has_dtype = true;
    builder_of(c)->dtype = dtype;
    return mapped(c, MTF_OP_CAST, suffix, x, -1);
}

/* A scalar of the type that losses have. */
static int loss_number(Composite *c, const char *suffix, double value) {
    g_autofree char *name = g_strdup_printf("%s/%s", c->op->name, suffix);
    return mtf_build_constant(builder_of(c), name, mtf_dtype_wide(dtype_of(c, c->x[0])), value);
}

/* The mask, or with `ignore` the mask times whether the label is not below 0; -1: none. */
static int mask_of(Composite *c) {
    if (c->op->attributes.ignore == 0)
        return c->x[2];
    MtfBuilder *b = builder_of(c);
    g_autofree char *name = g_strdup_printf("%s/zero", c->op->name);
    int zero = mtf_build_constant(b, name, MTF_I32, 0);
    int counts = mapped(c, MTF_OP_LESS_EQUAL, "counts", zero, c->x[1]);
    int mask =
        counts < 0 ? -1 : converted(c, "counted", mtf_dtype_wide(dtype_of(c, c->x[0])), counts);
    return c->x[2] < 0 ? mask : part(c, MTF_OP_MULTIPLY, "mask", c->shape, mask, c->x[2]);
}

/* The logarithm of the sum of e^x, whose maximum only keeps numbers small: no gradient passes there. */
static int log_of_sum(Composite *c, const char *suffix, int max) {
    int stopped = mapped(c, MTF_OP_STOP_GRADIENT, "steady", max, -1);
    int sum = part(c, MTF_OP_SUM_EXP, "steady/sum", c->shape, c->x[0], stopped);
    if (sum < 0)
        return -1;
    stopped = converted(c, "wide", dtype_of(c, sum), stopped);
    int log = mapped(c, MTF_OP_LOG, "log", sum, -1);
    g_autofree char *name =
        suffix == NULL ? g_strdup(c->op->name) : g_strdup_printf("%s/%s", c->op->name, suffix);
    return MTF_BUILD(builder_of(c), MTF_OP_ADD, name, c->shape, stopped, log);
}

/* s (logit of the label - mean of all logits), what smoothing adds. */
static int smoothing_term(Composite *c, int logit) {
    MtfDtype wide = mtf_dtype_wide(dtype_of(c, c->x[0]));
    builder_of(c)->has_dtype = true;
    builder_of(c)->dtype = wide;
    int mean = part(c, MTF_OP_REDUCE_MEAN, "average", c->shape, c->x[0], -1);
    int chosen = converted(c, "logit/wide", wide, logit);
    int apart = mapped(c, MTF_OP_SUBTRACT, "apart", chosen, mean);
    return mapped(c, MTF_OP_MULTIPLY, "smoothing", apart,
                  loss_number(c, "share", c->op->attributes.smoothing));
}

static int z_term(Composite *c, int max) {
    int square = mapped(c, MTF_OP_SQUARE, "z/square", log_of_sum(c, "z", max), -1);
    return mapped(c, MTF_OP_MULTIPLY, "z/loss", square,
                  loss_number(c, "z/share", c->op->attributes.z_loss));
}

/* What smoothing and z_loss add to the loss of each position; a loss of the plain kind is `plain`. */
static int add_terms(Composite *c, int plain, int max, int logit, int mask) {
    const MtfAttributes *a = &c->op->attributes;
    int terms[3] = { plain }, n = 1;
    if (a->smoothing > 0)
        terms[n++] = smoothing_term(c, logit);
    if (a->z_loss > 0)
        terms[n++] = z_term(c, max);
    for (int i = 1; i < n && mask >= 0; i++)
        terms[i] = mapped(c, MTF_OP_MULTIPLY, i == 1 ? "masked" : "masked/2", terms[i], mask);
    return mtf_build(builder_of(c), MTF_OP_ADD, c->op->name, c->shape, n, terms);
}

static int expand_cross_entropy(Composite *c) {
    int logits = c->x[0], labels = c->x[1], mask = mask_of(c);
    bool more = c->op->attributes.smoothing > 0 || c->op->attributes.z_loss > 0;
    g_autofree char *plain = g_strdup_printf("%s/plain", c->op->name);
    int max = part(c, MTF_OP_REDUCE_MAX, "max", c->shape, logits, -1);
    int sum = part(c, MTF_OP_SUM_EXP, "sum", c->shape, logits, max);
    int logit = part(c, MTF_OP_LABEL_LOGIT, "logit", c->shape, logits, labels);
    int loss = mtf_build(&c->e->b, MTF_OP_CROSS_ENTROPY, more ? plain : c->op->name, c->shape,
                         mask >= 0 ? 4 : 3, (int[]){ max, sum, logit, mask });
    return more ? add_terms(c, loss, max, logit, mask) : loss;
}

static int expand_log_sum_exp(Composite *c) {
    int max = part(c, MTF_OP_REDUCE_MAX, "max", c->shape, c->x[0], -1);
    return log_of_sum(c, NULL, max);
}

/* 0, 1, 2, … along `dim`. */
static int positions(Composite *c, const char *suffix, int dim, MtfDtype dtype) {
    MtfShape along = { .rank = 1, .dims = { dim } };
    g_autofree char *name = g_strdup_printf("%s/%s", c->op->name, suffix);
    builder_of(c)->has_dtype = true;
    builder_of(c)->dtype = dtype;
    return mtf_build(builder_of(c), MTF_OP_RANGE, name, &along, 0, NULL);
}

/* The one dimension that `whole` has and `rest` lacks. */
static int lacking(const MtfShape *whole, const MtfShape *rest) {
    int i = 0;
    while (mtf_shape_find(rest, whole->dims[i]) >= 0)
        i++;
    return whole->dims[i];
}

/* The smallest position of those where x is the largest: of the others, the dimension's size. */
static int expand_argmax(Composite *c) {
    MtfBuilder *b = builder_of(c);
    MtfShape whole = *shape_of(c, c->x[0]);
    int dim = lacking(&whole, c->shape);
    MtfDtype wide = mtf_dtype_wide(dtype_of(c, c->x[0]));
    int max = part(c, MTF_OP_REDUCE_MAX, "max", c->shape, c->x[0], -1);
    int is = part(c, MTF_OP_EQUAL, "is", &whole, c->x[0], max);
    is = converted(c, "is/wide", wide, is);
    int position = positions(c, "position", dim, wide);
    g_autofree char *end_name = g_strdup_printf("%s/end", c->op->name);
    int end = mtf_build_constant(b, end_name, wide, (double)mtf_graph_size(b->graph, dim));
    g_autofree char *name = g_strdup_printf("%s/where", c->op->name);
    int found = MTF_BUILD(b, MTF_OP_WHERE, name, &whole, is, position, end);
    int last = part(c, MTF_OP_REDUCE_MAX, "last", c->shape,
                    mapped(c, MTF_OP_NEGATE, "negated", found, -1), -1);
    int first = mapped(c, MTF_OP_NEGATE, "first", last, -1);
    b->has_dtype = true;
    b->dtype = MTF_I32;
    return MTF_BUILD(b, MTF_OP_CAST, c->op->name, NULL, first);
}

static int expand_one_hot(Composite *c) {
    MtfBuilder *b = builder_of(c);
    int position = positions(c, "position", lacking(c->shape, shape_of(c, c->x[0])), MTF_I32);
    int is = part(c, MTF_OP_EQUAL, "is", c->shape, c->x[0], position);
    b->has_dtype = true;
    b->dtype = mtf_graph_tensor(c->e->from, c->op->outputs[0])->dtype;
    return MTF_BUILD(b, MTF_OP_CAST, c->op->name, NULL, is);
}

/* A dimension that the graph has not, of `size`. */
static int hidden_dimension(Composite *c, const char *what, int64_t size) {
    g_autofree char *name = g_strdup_printf("%s/%s", c->op->name, what);
    MtfBuilder *b = builder_of(c);
    return b->error != NULL ? -1 : mtf_graph_add_dimension(b->graph, name, size, &b->error);
}

/* Sets the attributes of a resample to be built next. */
static void aim(Composite *c, int from, int to, double start, double stride) {
    MtfAttributes *a = &builder_of(c)->attributes;
    a->from = from;
    a->to = to;
    a->start = start;
    a->stride = stride;
    a->dilation = 1;
}

static int expand_slice(Composite *c) {
    const MtfAttributes *a = &c->op->attributes;
    aim(c, a->from, a->to, a->start, a->stride);
    return MTF_BUILD(builder_of(c), MTF_OP_RESAMPLE, c->op->name, NULL, c->x[0]);
}

/* With a value other than 0: what differs from it is padded with 0, and it is added again. */
static int expand_pad(Composite *c) {
    MtfBuilder *b = builder_of(c);
    const MtfAttributes *a = &c->op->attributes;
    int x = c->x[0], value = -1;
    if (a->value != 0) {
        g_autofree char *name = g_strdup_printf("%s/value", c->op->name);
        value = mtf_build_constant(b, name, dtype_of(c, x), a->value);
        x = mapped(c, MTF_OP_SUBTRACT, "difference", x, value);
    }
    aim(c, a->from, a->to, 0 - a->before, 1);
    if (value < 0)
        return MTF_BUILD(b, MTF_OP_RESAMPLE, c->op->name, NULL, x);
    int padded = mapped(c, MTF_OP_RESAMPLE, "padded", x, -1);
    return MTF_BUILD(b, MTF_OP_ADD, c->op->name, NULL, padded, value);
}

/* Along a dimension of another name, which then takes the old one's. */
static int turned(Composite *c, double start, double stride, double wrap) {
    int dim = c->op->attributes.dimension;
    int to = hidden_dimension(c, "turned", mtf_graph_size(c->e->b.graph, dim));
    aim(c, dim, to, start, stride);
    builder_of(c)->attributes.wrap = wrap;
    int moved = mapped(c, MTF_OP_RESAMPLE, "moved", c->x[0], -1);
    builder_of(c)->attributes.from = to;
    builder_of(c)->attributes.to = dim;
    return MTF_BUILD(builder_of(c), MTF_OP_RENAME, c->op->name, NULL, moved);
}

static int expand_reverse(Composite *c) {
    return turned(c, (double)mtf_graph_size(c->e->b.graph, c->op->attributes.dimension) - 1, -1, 0);
}

/* x[t + start] along the composite's dimension, called `to`, and 0 where that is no element. */
static int shifted(Composite *c, const char *suffix, int x, int to, double start) {
    aim(c, c->op->attributes.dimension, to, start, 1);
    return mapped(c, MTF_OP_RESAMPLE, suffix, x, -1);
}

/* What stays within the ends and what goes round them, so that parts read what their neighbours hold. */
static int expand_roll(Composite *c) {
    MtfBuilder *b = builder_of(c);
    int dim = c->op->attributes.dimension;
    double size = (double)mtf_graph_size(b->graph, dim), shift = c->op->attributes.shift;
    shift -= size * floor(shift / size);
    if (shift == 0)
        return turned(c, 0, 1, 0);
    int to = hidden_dimension(c, "turned", mtf_graph_size(b->graph, dim));
    int within = shifted(c, "within", c->x[0], to, 0 - shift);
    int round = shifted(c, "round", c->x[0], to, size - shift);
    int both = mapped(c, MTF_OP_ADD, "both", within, round);
    b->attributes.from = to;
    b->attributes.to = dim;
    return MTF_BUILD(b, MTF_OP_RENAME, c->op->name, NULL, both);
}

static int copy_operation(Composite *c) {
    c->e->b.attributes = c->op->attributes;
    c->e->b.has_dtype = mtf_operation_row_chooses_dtype(mtf_operation_row(c->op->kind));
    c->e->b.dtype = mtf_graph_tensor(c->e->from, c->op->outputs[0])->dtype;
    return mtf_build(&c->e->b, c->op->kind, c->op->name, c->shape, c->op->n_inputs, c->x);
}

/* ---- Scans ----------------------------------------------------------------------------------- */

/* log(e^x + e^y) = max + log(1 + e^(min - max)). */
static int joined_exponents(Composite *c, const char *level, int x, int y) {
    g_autofree char *more = g_strdup_printf("%s/more", level);
    g_autofree char *less = g_strdup_printf("%s/less", level);
    g_autofree char *apart = g_strdup_printf("%s/apart", level);
    g_autofree char *rest = g_strdup_printf("%s/rest", level);
    g_autofree char *sum = g_strdup_printf("%s/joined", level);
    int largest = mapped(c, MTF_OP_MAXIMUM, more, x, y);
    int difference =
        mapped(c, MTF_OP_SUBTRACT, apart, mapped(c, MTF_OP_MINIMUM, less, x, y), largest);
    return mapped(c, MTF_OP_ADD, sum, largest, mapped(c, MTF_OP_SOFTPLUS, rest, difference, -1));
}

static int larger(Composite *c, const char *level, int x, int y) {
    g_autofree char *joined = g_strdup_printf("%s/joined", level);
    return mapped(c, MTF_OP_MAXIMUM, joined, x, y);
}

static int smaller(Composite *c, const char *level, int x, int y) {
    g_autofree char *joined = g_strdup_printf("%s/joined", level);
    return mapped(c, MTF_OP_MINIMUM, joined, x, y);
}

/* What a scan makes of an element and what comes before it. */
typedef struct {
    int (*join)(Composite *c, const char *level, int x, int y);
    int positions;  /* of elements */
    int to;         /* the dimension of elements that are moved */
    double nothing; /* what it makes of no elements, as masks have it */
} Scan;

/* 1 for those of `positions` that have no element `step` before them (in reverse: behind them). */
static int lacks_partner(Composite *c, const char *level, int positions, int64_t step) {
    bool back = c->op->attributes.reverse != 0;
    int64_t size = mtf_graph_size(c->e->b.graph, c->op->attributes.dimension);
    g_autofree char *edge_name = g_strdup_printf("%s/%s/edge", c->op->name, level);
    g_autofree char *name = g_strdup_printf("%s/first", level);
    int edge = mtf_build_constant(builder_of(c), edge_name, dtype_of(c, c->x[0]),
                                  (double)(back ? size - step : step));
    return back ? mapped(c, MTF_OP_LESS_EQUAL, name, edge, positions)
                : mapped(c, MTF_OP_LESS, name, positions, edge);
}

/* Each element that before it; that which has none `nothing`. */
static int moved_on(Composite *c, const Scan *scan, int x) {
    MtfBuilder *b = builder_of(c);
    int dim = c->op->attributes.dimension;
    bool back = c->op->attributes.reverse != 0;
    int moved = shifted(c, "exclusive/moved", x, scan->to, back ? 1 : -1);
    b->attributes.from = scan->to;
    b->attributes.to = dim;
    int before = mapped(c, MTF_OP_RENAME, "exclusive/before", moved, -1);
    int first = lacks_partner(c, "exclusive", scan->positions, 1);
    g_autofree char *name = g_strdup_printf("%s/exclusive", c->op->name);
    g_autofree char *nothing_name = g_strdup_printf("%s/nothing", c->op->name);
    int nothing = mtf_build_constant(b, nothing_name, dtype_of(c, x), scan->nothing);
    return MTF_BUILD(b, MTF_OP_WHERE, name, c->shape, first, nothing, before);
}

/* Every element joined with that `step` before it, which stands for as many (Hillis and Steele, "Data
 * parallel algorithms", 1986). */
static int scan_level(Composite *c, const Scan *scan, int x, int64_t step) {
    MtfBuilder *b = builder_of(c);
    int dim = c->op->attributes.dimension;
    bool back = c->op->attributes.reverse != 0;
    bool last = 2 * step >= mtf_graph_size(b->graph, dim);
    g_autofree char *level = g_strdup_printf("%" PRId64, step);
    g_autofree char *moved_name = g_strdup_printf("%s/moved", level);
    g_autofree char *partner_name = g_strdup_printf("%s/partner", level);
    g_autofree char *name =
        g_strdup_printf("%s%s%s", c->op->name, last ? "" : "/", last ? "" : level);
    int moved = shifted(c, moved_name, x, scan->to, (double)(back ? step : -step));
    b->attributes.from = scan->to;
    b->attributes.to = dim;
    int partner = mapped(c, MTF_OP_RENAME, partner_name, moved, -1);
    int first = lacks_partner(c, level, scan->positions, step);
    int joined = scan->join(c, level, x, partner);
    return MTF_BUILD(b, MTF_OP_WHERE, name, c->shape, first, x, joined);
}

/* x under the composite's name. */
static int copied(Composite *c, int x) {
    builder_of(c)->attributes.factor = 1;
    return MTF_BUILD(builder_of(c), MTF_OP_SCALE, c->op->name, NULL, x);
}

static int scanned(Composite *c, double nothing, int (*join)(Composite *, const char *, int, int)) {
    int dim = c->op->attributes.dimension, x = c->x[0];
    bool exclusive = c->op->attributes.exclusive != 0;
    int64_t size = mtf_graph_size(c->e->b.graph, dim);
    if (size == 1 && !exclusive)
        return copied(c, x);
    Scan scan = { join, positions(c, "position", dim, dtype_of(c, x)),
                  hidden_dimension(c, "moved", size), nothing };
    x = exclusive ? moved_on(c, &scan, x) : x;
    if (size == 1)
        return copied(c, x);
    for (int64_t step = 1; step < size; step *= 2)
        x = scan_level(c, &scan, x, step);
    return x;
}

static int expand_cumulative_max(Composite *c) {
    return scanned(c, -NOTHING, larger);
}

static int expand_cumulative_min(Composite *c) {
    return scanned(c, NOTHING, smaller);
}

static int expand_cumulative_log_sum_exp(Composite *c) {
    return scanned(c, -NOTHING, joined_exponents);
}

/* The dimension of a shape divided into two. */
static MtfShape divided(const MtfShape *shape, int dim, int outer, int inner) {
    MtfShape result = { 0 };
    for (int i = 0; i < shape->rank; i++) {
        mtf_shape_append(&result, shape->dims[i] == dim ? outer : shape->dims[i]);
        if (shape->dims[i] == dim)
            mtf_shape_append(&result, inner);
    }
    return result;
}

static int summed_along(Composite *c, const char *suffix, int x, int dim, double exclusive) {
    MtfAttributes *a = &builder_of(c)->attributes;
    a->dimension = dim;
    a->exclusive = exclusive;
    a->reverse = c->op->attributes.reverse;
    return mapped(c, MTF_OP_CUMULATIVE_SUM, suffix, x, -1);
}

/* In blocks, each by itself and then moved by the total of those before it: where blocks are split,
 * nothing but the totals travels (Blelloch, "Prefix sums and their applications", 1990). */
static int expand_cumulative_sum(Composite *c) {
    const MtfAttributes *a = &c->op->attributes;
    if (a->blocks <= 1)
        return copy_operation(c);
    int64_t blocks = (int64_t)a->blocks, size = mtf_graph_size(c->e->b.graph, a->dimension);
    int outer = hidden_dimension(c, "blocks", blocks);
    int inner = hidden_dimension(c, "block", size / blocks);
    if (inner < 0)
        return -1;
    MtfShape whole = divided(c->shape, a->dimension, outer, inner);
    MtfShape totals_shape = mtf_shape_without(&whole, inner);
    int x = part(c, MTF_OP_RESHAPE, "divided", &whole, c->x[0], -1);
    int own = summed_along(c, "own", x, inner, a->exclusive);
    int totals = part(c, MTF_OP_REDUCE_SUM, "totals", &totals_shape, x, -1);
    int before = summed_along(c, "before", totals, outer, 1);
    int sum = part(c, MTF_OP_ADD, "sum", &whole, own, before);
    return MTF_BUILD(builder_of(c), MTF_OP_RESHAPE, c->op->name, c->shape, sum);
}

/* x / (bias + alpha mean of x^2 over the window)^beta (Krizhevsky et al., 2012, section 3.3, with alpha
 * divided by the window's size, as in Caffe, ONNX and PyTorch). Beyond the ends there are zeros. */
static int expand_local_response(Composite *c) {
    MtfBuilder *b = builder_of(c);
    const MtfAttributes *a = &c->op->attributes;
    int size = (int)a->size, dim = a->dimension;
    int to = hidden_dimension(c, "window", mtf_graph_size(b->graph, dim));
    MtfShape windows = *c->shape;
    windows.dims[mtf_shape_find(&windows, dim)] = to;
    int square = mapped(c, MTF_OP_SQUARE, "square", c->x[0], -1);
    b->attributes.n_windows = 1;
    b->attributes.windows[0] = (MtfWindow){ dim, to, -1, size, 1, 1, (size - 1) / 2, size / 2 };
    b->attributes.counted = 1;
    int mean = part(c, MTF_OP_AVERAGE_POOL, "mean", &windows, square, -1);
    b->attributes.from = to;
    b->attributes.to = dim;
    int here = mapped(c, MTF_OP_RENAME, "here", mean, -1);
    b->attributes.factor = a->alpha;
    int scaled = mapped(c, MTF_OP_SCALE, "scaled", here, -1);
    g_autofree char *name = g_strdup_printf("%s/bias", c->op->name);
    int bias = mtf_build_constant(b, name, dtype_of(c, c->x[0]), a->bias);
    int base = mapped(c, MTF_OP_ADD, "base", scaled, bias);
    b->attributes.exponent = 0 - a->beta;
    int factor = mapped(c, MTF_OP_RAISE, "factor", base, -1);
    return MTF_BUILD(b, MTF_OP_MULTIPLY, c->op->name, c->shape, c->x[0], factor);
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

/* As many of the largest along `from` as `to` has; `index`: where they stand. */
static int ranked(Composite *c, const char *suffix, int x, int from, int to, int *index) {
    MtfBuilder *b = builder_of(c);
    b->attributes.from = from;
    b->attributes.to = to;
    int largest = mapped(c, MTF_OP_TOP_K, suffix, x, -1);
    if (largest < 0)
        return -1;
    int producer = mtf_graph_tensor(b->graph, largest)->producer;
    *index = mtf_graph_operation(b->graph, producer)->outputs[1];
    return largest;
}

/* All of them, or of their negatives, of which equal ones stand in the same order. */
static int expand_sort(Composite *c) {
    MtfBuilder *b = builder_of(c);
    const MtfAttributes *a = &c->op->attributes;
    bool back = a->reverse != 0;
    int to = hidden_dimension(c, "sorted", mtf_graph_size(b->graph, a->dimension));
    int x = back ? c->x[0] : mapped(c, MTF_OP_NEGATE, "negative", c->x[0], -1), index = -1;
    int largest = ranked(c, "largest", x, a->dimension, to, &index);
    x = back ? largest : mapped(c, MTF_OP_NEGATE, "smallest", largest, -1);
    b->attributes.from = to;
    b->attributes.to = a->dimension;
    c->index = mapped(c, MTF_OP_RENAME, "index", index, -1);
    b->attributes.from = to;
    b->attributes.to = a->dimension;
    return MTF_BUILD(b, MTF_OP_RENAME, c->op->name, NULL, x);
}

/* Where the candidates of each of `blocks` blocks stand in x, from where they stand in the block. */
static int candidate_places(Composite *c, int blocks, int64_t block, int within,
                            const MtfShape *candidates) {
    MtfBuilder *b = builder_of(c);
    int64_t size = mtf_graph_size(b->graph, c->op->attributes.from);
    g_autofree char *name = g_strdup_printf("%s/size", c->op->name);
    int each = mtf_build_constant(b, name, MTF_I32, (double)block);
    int begins =
        mapped(c, MTF_OP_MULTIPLY, "begins", positions(c, "number", blocks, MTF_I32), each);
    int places = mapped(c, MTF_OP_ADD, "places", within, begins);
    int joined = part(c, MTF_OP_RESHAPE, "places/joined", candidates, places, -1);
    return converted(c, "places/wide", size < 1 << 24 ? MTF_F32 : MTF_F64, joined);
}

/* Of the largest of each block, one block behind the other, the largest: equal ones stand among them in
 * the order in which they stand in x. Where blocks are split nothing but these candidates travels. */
static int expand_top_k(Composite *c) {
    MtfBuilder *b = builder_of(c);
    const MtfAttributes *a = &c->op->attributes;
    if (a->blocks <= 1)
        return copy_operation(c);
    int64_t n = (int64_t)a->blocks, each = mtf_graph_size(b->graph, a->from) / n;
    int64_t few = MIN(each, mtf_graph_size(b->graph, a->to));
    int blocks = hidden_dimension(c, "blocks", n), block = hidden_dimension(c, "block", each);
    int some = hidden_dimension(c, "few", few), all = hidden_dimension(c, "candidates", n * few);
    if (all < 0)
        return -1;
    MtfShape whole = divided(shape_of(c, c->x[0]), a->from, blocks, block);
    MtfShape candidates = *shape_of(c, c->x[0]);
    candidates.dims[mtf_shape_find(&candidates, a->from)] = all;
    int within = -1, chosen = -1;
    int x = part(c, MTF_OP_RESHAPE, "divided", &whole, c->x[0], -1);
    x = ranked(c, "own", x, block, some, &within);
    x = part(c, MTF_OP_RESHAPE, "own/joined", &candidates, x, -1);
    int places = candidate_places(c, blocks, each, within, &candidates);
    x = ranked(c, "best", x, all, a->to, &chosen);
    int found = part(c, MTF_OP_EMBEDDING, "best/place", c->shape, places, chosen);
    c->index = converted(c, "index", MTF_I32, found);
    return copied(c, x);
}

static int expand_select(Composite *c) {
    const MtfAttributes *a = &c->op->attributes;
    int one = hidden_dimension(c, "one", 1);
    aim(c, a->dimension, one, a->index, 1);
    int piece = mapped(c, MTF_OP_RESAMPLE, "piece", c->x[0], -1);
    return MTF_BUILD(builder_of(c), MTF_OP_REDUCE_SUM, c->op->name, c->shape, piece);
}

static int expand_stack(Composite *c) {
    return mtf_build(builder_of(c), MTF_OP_CONCAT, c->op->name, c->shape, c->op->n_inputs, c->x);
}

static int expand_gather(Composite *c) {
    return MTF_BUILD(builder_of(c), MTF_OP_EMBEDDING, c->op->name, c->shape, c->x[0], c->x[1]);
}

static int expand_scatter_add(Composite *c) {
    return mtf_build(builder_of(c), MTF_OP_EMBEDDING_GRAD, c->op->name, c->shape, c->op->n_inputs,
                     c->x);
}

/* e^(sum of log |x|), with a sign for an odd number of factors below 0. */
static int expand_reduce_prod(Composite *c) {
    MtfBuilder *b = builder_of(c);
    g_autofree char *zero_name = g_strdup_printf("%s/0", c->op->name);
    g_autofree char *one_name = g_strdup_printf("%s/1", c->op->name);
    g_autofree char *two_name = g_strdup_printf("%s/2", c->op->name);
    int zero = mtf_build_constant(b, zero_name, dtype_of(c, c->x[0]), 0);
    int one = mtf_build_constant(b, one_name, dtype_of(c, c->x[0]), 1);
    int two = mtf_build_constant(b, two_name, dtype_of(c, c->x[0]), 2);
    int logs = mapped(c, MTF_OP_LOG, "log", mapped(c, MTF_OP_ABS, "abs", c->x[0], -1), -1);
    int size =
        mapped(c, MTF_OP_EXP, "size", part(c, MTF_OP_REDUCE_SUM, "sum", c->shape, logs, -1), -1);
    int below = mapped(c, MTF_OP_LESS, "below", c->x[0], zero);
    int count = part(c, MTF_OP_REDUCE_SUM, "count", c->shape, below, -1);
    int odd = mapped(c, MTF_OP_MULTIPLY, "twice", two, mapped(c, MTF_OP_MODULO, "odd", count, two));
    int sign = part(c, MTF_OP_SUBTRACT, "sign", c->shape, one, odd);
    return MTF_BUILD(b, MTF_OP_MULTIPLY, c->op->name, c->shape, size, sign);
}

/* The statistics of layer_norm with a mean of 0: the variance is the mean square. */
static int expand_rms_norm(Composite *c) {
    MtfBuilder *b = &c->e->b;
    MtfShape rest = mtf_shape_without(c->shape, c->op->attributes.dimension);
    b->has_dtype = true;
    b->dtype = mtf_dtype_wide(mtf_graph_tensor(b->graph, c->x[0])->dtype);
    g_autofree char *name = g_strdup_printf("%s/mean", c->op->name);
    int mean = mtf_build(b, MTF_OP_CONSTANT, name, &rest, 0, NULL);
    int square = part(c, MTF_OP_VARIANCE, "square", &rest, c->x[0], mean);
    b->attributes.epsilon = c->op->attributes.epsilon;
    return MTF_BUILD(b, MTF_OP_NORMALIZE, c->op->name, c->shape, c->x[0], mean, square, c->x[1]);
}

/* The factors of an einsum that are still to be multiplied. */
typedef struct {
    int n;
    int *tensors;
} Factors;

static bool occurs(const Composite *c, const Factors *factors, int dim, int i, int j) {
    if (mtf_shape_find(c->shape, dim) >= 0)
        return true;
    for (int k = 0; k < factors->n; k++)
        if (k != i && k != j && mtf_shape_find(shape_of(c, factors->tensors[k]), dim) >= 0)
            return true;
    return false;
}

/* The union of a pair's dimensions, and the part of it that is needed later. False when the union
 * is too large for a shape. */
static bool pair_shapes(const Composite *c, const Factors *factors, int i, int j, MtfShape *all,
                        MtfShape *kept) {
    *all = *shape_of(c, factors->tensors[i]);
    const MtfShape *other = shape_of(c, factors->tensors[j]);
    for (int d = 0; d < other->rank; d++)
        if (mtf_shape_find(all, other->dims[d]) < 0 && !mtf_shape_append(all, other->dims[d]))
            return false;
    *kept = (MtfShape){ 0 };
    for (int d = 0; d < all->rank; d++)
        if (occurs(c, factors, all->dims[d], i, j))
            mtf_shape_append(kept, all->dims[d]);
    return true;
}

/* As a double: the union may have more elements than a tensor may. */
static double points(const Composite *c, const MtfShape *shape) {
    double product = 1;
    for (int d = 0; d < shape->rank; d++)
        product *= (double)mtf_graph_size(c->e->b.graph, shape->dims[d]);
    return product;
}

static void cheapest_pair(const Composite *c, const Factors *factors, int *first, int *second,
                          MtfShape *kept) {
    double best_work = 0, best_size = 0;
    *first = *second = -1;
    for (int i = 0; i < factors->n; i++) {
        for (int j = i + 1; j < factors->n; j++) {
            MtfShape all, rest;
            if (!pair_shapes(c, factors, i, j, &all, &rest))
                continue;
            double work = points(c, &all), size = points(c, &rest);
            if (*first >= 0 && (work > best_work || (work == best_work && size >= best_size)))
                continue;
            *first = i, *second = j;
            *kept = rest;
            best_work = work, best_size = size;
        }
    }
}

/* The row's check limits the union of all factors' dimensions to one shape, so a pair exists. */
static int expand_einsum(Composite *c) {
    g_autofree int *tensors = g_memdup2(c->x, sizeof(int) * (gsize)c->op->n_inputs);
    Factors factors = { c->op->n_inputs, tensors };
    for (int step = 1; factors.n > 2 && c->e->b.error == NULL; step++) {
        int i = 0, j = 1;
        MtfShape kept;
        cheapest_pair(c, &factors, &i, &j, &kept);
        g_autofree char *suffix = g_strdup_printf("%d", step);
        tensors[i] = part(c, MTF_OP_EINSUM, suffix, &kept, tensors[i], tensors[j]);
        tensors[j] = tensors[--factors.n];
    }
    return mtf_build(&c->e->b, MTF_OP_EINSUM, c->op->name, c->shape, factors.n, tensors);
}

static int expand_expression(Composite *c) {
    MtfBuilder *b = builder_of(c);
    const MtfAttributes *a = &c->op->attributes;
    g_autoptr(MtfExpression) expression =
        mtf_expression_read(a->expression, a->arguments, c->op->n_inputs, &b->error);
    return expression == NULL ? -1
                              : mtf_build_expression(b, c->op->name, c->shape, expression, c->x);
}

/* How operations are rewritten, keyed like the operation table; NULL: they are copied. */
static int (*const rewrites[MTF_OPERATIONS])(Composite *c) = {
    [MTF_OP_SOFTMAX] = expand_softmax,
    [MTF_OP_LAYER_NORM] = expand_layer_norm,
    [MTF_OP_SLICE] = expand_slice,
    [MTF_OP_PAD] = expand_pad,
    [MTF_OP_REVERSE] = expand_reverse,
    [MTF_OP_ROLL] = expand_roll,
    [MTF_OP_SELECT] = expand_select,
    [MTF_OP_CUMULATIVE_SUM] = expand_cumulative_sum,
    [MTF_OP_CUMULATIVE_MAX] = expand_cumulative_max,
    [MTF_OP_CUMULATIVE_MIN] = expand_cumulative_min,
    [MTF_OP_CUMULATIVE_LOG_SUM_EXP] = expand_cumulative_log_sum_exp,
    [MTF_OP_LOCAL_RESPONSE_NORM] = expand_local_response,
    [MTF_OP_TOP_K] = expand_top_k,
    [MTF_OP_SORT] = expand_sort,
    [MTF_OP_STACK] = expand_stack,
    [MTF_OP_GATHER] = expand_gather,
    [MTF_OP_SCATTER_ADD] = expand_scatter_add,
    [MTF_OP_REDUCE_PROD] = expand_reduce_prod,
    [MTF_OP_NOT_EQUAL] = expand_not_equal,
    [MTF_OP_GREATER] = expand_greater,
    [MTF_OP_GREATER_EQUAL] = expand_greater_equal,
    [MTF_OP_LOGICAL_AND] = expand_logical_and,
    [MTF_OP_LOGICAL_OR] = expand_logical_or,
    [MTF_OP_LOGICAL_XOR] = expand_not_equal,
    [MTF_OP_RECIPROCAL] = expand_reciprocal,
    [MTF_OP_CEIL] = expand_ceil,
    [MTF_OP_REDUCE_MIN] = expand_reduce_min,
    [MTF_OP_REDUCE_ANY] = expand_reduce_any,
    [MTF_OP_REDUCE_ALL] = expand_reduce_all,
    [MTF_OP_LOG_SUM_EXP] = expand_log_sum_exp,
    [MTF_OP_ARGMAX] = expand_argmax,
    [MTF_OP_ONE_HOT] = expand_one_hot,
    [MTF_OP_RMS_NORM] = expand_rms_norm,
    [MTF_OP_SOFTMAX_CROSS_ENTROPY] = expand_cross_entropy,
    [MTF_OP_EINSUM] = expand_einsum,
    [MTF_OP_EXPRESSION] = expand_expression,
};

static void expand_operation(Expansion *e, const MtfOperation *op) {
    g_autofree int *inputs = g_new(int, op->n_inputs + LEAST_INPUTS);
    for (int k = 0; k < op->n_inputs + LEAST_INPUTS; k++)
        inputs[k] = k < op->n_inputs ? e->tensors[op->inputs[k]] : -1;
    Composite c = { e, op, inputs, &mtf_graph_tensor(e->from, op->outputs[0])->shape, -1 };
    e->b.phase = op->phase;
    e->b.stage = op->stage;
    e->b.loop = op->loop;
    e->b.layer = op->layer;
    e->b.origin = op->origin;
    e->b.of = op->of;
    int (*rewrite)(Composite *) = rewrites[op->kind];
    int before = (int)e->b.graph->operations->len;
    int first = rewrite != NULL ? rewrite(&c) : copy_operation(&c);
    if (first < 0)
        return;
    int last = mtf_graph_tensor(e->b.graph, first)->producer;
    for (int i = before; i < (int)e->b.graph->operations->len; i++)
        if (i != last)
            mtf_graph_set_origin(e->b.graph, mtf_graph_operation(e->b.graph, i)->outputs[0],
                                 MTF_ORIGIN_PART, op->name);
    const MtfOperation *made = mtf_graph_operation(e->b.graph, last);
    for (int k = 0; k < op->n_outputs; k++)
        e->tensors[op->outputs[k]] = k == 1 && c.index >= 0 ? c.index : made->outputs[k];
}

static void copy_tensor(Expansion *e, int t) {
    const MtfTensor *tensor = mtf_graph_tensor(e->from, t);
    switch (tensor->source) {
    case MTF_SOURCE_INPUT:
        e->tensors[t] = mtf_graph_add_input(e->b.graph, tensor->name, &tensor->shape, tensor->dtype,
                                            tensor->feed, &e->b.error);
        return;
    case MTF_SOURCE_VARIABLE:
        e->tensors[t] = mtf_build_variable_like(&e->b, tensor);
        return;
    case MTF_SOURCE_OPERATION:
        if (mtf_graph_operation(e->from, tensor->producer)->outputs[0] == t)
            expand_operation(e, mtf_graph_operation(e->from, tensor->producer));
        return;
    }
}

MtfGraph *mtf_expand(const MtfGraph *graph, GError **error) {
    g_autoptr(MtfGraph) expanded = mtf_graph_new(graph->name);
    g_autofree int *tensors = g_new(int, graph->tensors->len + 1);
    Expansion e = { .from = graph,
                    .b = mtf_builder(expanded, MTF_PHASE_FORWARD),
                    .tensors = tensors };
    mtf_build_frame(expanded, graph);
    for (int t = 0; t < (int)graph->tensors->len && e.b.error == NULL; t++)
        copy_tensor(&e, t);
    if (!mtf_builder_end(&e.b, error))
        return NULL;
    for (guint i = 0; i < graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(graph->updates, MtfUpdate, i);
        mtf_graph_add_update(expanded, tensors[update->variable], tensors[update->value]);
    }
    expanded->loss = graph->loss < 0 ? -1 : tensors[graph->loss];
    return g_steal_pointer(&expanded);
}
