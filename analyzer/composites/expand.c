// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/composites/expand.h"

#include "analyzer/composites/composite.h"
#include "analyzer/composites/composite_scans.h"
#include "analyzer/composites/composite_states.h"

#include <math.h>

/* Inputs that are optional are looked at up to here. */
#define LEAST_INPUTS 4

typedef struct {
    const MtfGraph *from;
    MtfBuilder b;
    int *tensors; /* of `from` -> of the new graph */
} Expansion;

static int expand_softmax(MtfComposite *c) {
    int x = c->x[0];
    MtfShape rest = mtf_shape_without(c->shape, c->op->attributes.dimension);
    int max = mtf_composite_part(c, MTF_OP_REDUCE_MAX, "max", &rest, x, -1);
    int sum = mtf_composite_part(c, MTF_OP_SUM_EXP, "sum", &rest, x, max);
    return MTF_BUILD(c->b, MTF_OP_SOFTMAX_APPLY, c->op->name, c->shape, x, max, sum);
}

static int expand_layer_norm(MtfComposite *c) {
    int x = c->x[0];
    MtfShape rest = mtf_shape_without(c->shape, c->op->attributes.dimension);
    int mean = mtf_composite_part(c, MTF_OP_REDUCE_MEAN, "mean", &rest, x, -1);
    int variance = mtf_composite_part(c, MTF_OP_VARIANCE, "variance", &rest, x, mean);
    c->b->attributes.epsilon = c->op->attributes.epsilon;
    return mtf_build(c->b, MTF_OP_NORMALIZE, c->op->name, c->shape, c->op->n_inputs + 2,
                     (int[]){ x, mean, variance, c->x[1], c->x[2] });
}

/* The next operation's result is of the composite's type, which may be bool where its inputs are not. */
static MtfComposite *as_result(MtfComposite *c) {
    c->b->has_dtype = true;
    c->b->dtype = mtf_graph_tensor(c->from, c->op->outputs[0])->dtype;
    return c;
}

static int expand_not_equal(MtfComposite *c) {
    int equal = mtf_composite_part(as_result(c), MTF_OP_EQUAL, "equal", c->shape, c->x[0], c->x[1]);
    return MTF_BUILD(c->b, MTF_OP_LOGICAL_NOT, c->op->name, NULL, equal);
}

/* a > b is b < a. */
static int expand_greater(MtfComposite *c) {
    return MTF_BUILD(as_result(c)->b, MTF_OP_LESS, c->op->name, c->shape, c->x[1], c->x[0]);
}

static int expand_greater_equal(MtfComposite *c) {
    return MTF_BUILD(as_result(c)->b, MTF_OP_LESS_EQUAL, c->op->name, c->shape, c->x[1], c->x[0]);
}

/* Input `k` of a logical operation in the result's type: a bool where that is bool. */
static int logical_input(MtfComposite *c, int k) {
    MtfDtype dtype = mtf_graph_tensor(c->from, c->op->outputs[0])->dtype;
    return mtf_composite_converted(c, k == 0 ? "first" : "second", dtype, c->x[k]);
}

static int expand_logical_and(MtfComposite *c) {
    int first = logical_input(c, 0), second = logical_input(c, 1);
    return MTF_BUILD(c->b, MTF_OP_MULTIPLY, c->op->name, c->shape, first, second);
}

static int expand_logical_or(MtfComposite *c) {
    int first = logical_input(c, 0), second = logical_input(c, 1);
    return MTF_BUILD(c->b, MTF_OP_MAXIMUM, c->op->name, c->shape, first, second);
}

/* Whether they differ. */
static int expand_logical_xor(MtfComposite *c) {
    int first = logical_input(c, 0), second = logical_input(c, 1);
    int equal = mtf_composite_part(c, MTF_OP_EQUAL, "equal", c->shape, first, second);
    return MTF_BUILD(c->b, MTF_OP_LOGICAL_NOT, c->op->name, NULL, equal);
}

static int expand_reciprocal(MtfComposite *c) {
    c->b->attributes.exponent = -1;
    return MTF_BUILD(c->b, MTF_OP_RAISE, c->op->name, NULL, c->x[0]);
}

static int expand_ceil(MtfComposite *c) {
    int floor =
        mtf_composite_mapped(c, MTF_OP_FLOOR, "floor",
                             mtf_composite_mapped(c, MTF_OP_NEGATE, "negated", c->x[0], -1), -1);
    return MTF_BUILD(c->b, MTF_OP_NEGATE, c->op->name, NULL, floor);
}

/* The negative of the largest of the negated, so that parts of it meet as maxima do. */
static int smallest(MtfComposite *c, int x) {
    int negated = mtf_composite_mapped(c, MTF_OP_NEGATE, "negated", x, -1);
    return mtf_composite_part(c, MTF_OP_REDUCE_MAX, "max", c->shape, negated, -1);
}

static int expand_reduce_min(MtfComposite *c) {
    int max = smallest(c, c->x[0]);
    return MTF_BUILD(c->b, MTF_OP_NEGATE, c->op->name, NULL, max);
}

/* 1 where x is not 0. */
static int truth(MtfComposite *c) {
    if (mtf_composite_dtype(c, c->x[0]) == MTF_BOOL)
        return c->x[0];
    int zero = mtf_composite_mapped(as_result(c), MTF_OP_LOGICAL_NOT, "zero", c->x[0], -1);
    return mtf_composite_mapped(c, MTF_OP_LOGICAL_NOT, "truth", zero, -1);
}

static int expand_reduce_any(MtfComposite *c) {
    return MTF_BUILD(c->b, MTF_OP_REDUCE_MAX, c->op->name, c->shape, truth(c));
}

static int expand_reduce_all(MtfComposite *c) {
    int zero = mtf_composite_mapped(as_result(c), MTF_OP_LOGICAL_NOT, "zero", c->x[0], -1);
    int some = mtf_composite_part(c, MTF_OP_REDUCE_MAX, "some", c->shape, zero, -1);
    return MTF_BUILD(c->b, MTF_OP_LOGICAL_NOT, c->op->name, NULL, some);
}

/* A scalar of the type that losses have. */
static int loss_number(MtfComposite *c, const char *suffix, double value) {
    return mtf_composite_number(c, suffix, mtf_dtype_wide(mtf_composite_dtype(c, c->x[0])), value);
}

/* The mask, or with `ignore` the mask times whether the label is not below 0; -1: none. */
static int mask_of(MtfComposite *c) {
    MtfDtype wide = mtf_dtype_wide(mtf_composite_dtype(c, c->x[0]));
    int given = mtf_composite_converted(c, "weights", wide, c->x[2]);
    if (c->op->attributes.ignore == 0)
        return given;
    int zero = mtf_composite_number(c, "zero", MTF_I32, 0);
    int counts = mtf_composite_mapped(c, MTF_OP_LESS_EQUAL, "counts", zero, c->x[1]);
    int mask = counts < 0 ? -1 : mtf_composite_converted(c, "counted", wide, counts);
    return given < 0 ? mask : mtf_composite_part(c, MTF_OP_MULTIPLY, "mask", c->shape, mask, given);
}

/* The logarithm of the sum of e^x, whose maximum only keeps numbers small: no gradient passes there. */
static int log_of_sum(MtfComposite *c, const char *suffix, int max) {
    int stopped = mtf_composite_mapped(c, MTF_OP_STOP_GRADIENT, "steady", max, -1);
    int sum = mtf_composite_part(c, MTF_OP_SUM_EXP, "steady/sum", c->shape, c->x[0], stopped);
    if (sum < 0)
        return -1;
    stopped = mtf_composite_converted(c, "wide", mtf_composite_dtype(c, sum), stopped);
    int log = mtf_composite_mapped(c, MTF_OP_LOG, "log", sum, -1);
    g_autofree char *name =
        suffix == NULL ? g_strdup(c->op->name) : g_strdup_printf("%s/%s", c->op->name, suffix);
    return MTF_BUILD(c->b, MTF_OP_ADD, name, c->shape, stopped, log);
}

/* s (logit of the label - mean of all logits), what smoothing adds. */
static int smoothing_term(MtfComposite *c, int logit) {
    MtfDtype wide = mtf_dtype_wide(mtf_composite_dtype(c, c->x[0]));
    c->b->has_dtype = true;
    c->b->dtype = wide;
    int mean = mtf_composite_part(c, MTF_OP_REDUCE_MEAN, "average", c->shape, c->x[0], -1);
    int chosen = mtf_composite_converted(c, "logit/wide", wide, logit);
    int apart = mtf_composite_mapped(c, MTF_OP_SUBTRACT, "apart", chosen, mean);
    return mtf_composite_mapped(c, MTF_OP_MULTIPLY, "smoothing", apart,
                                loss_number(c, "share", c->op->attributes.smoothing));
}

static int z_term(MtfComposite *c, int max) {
    int square = mtf_composite_mapped(c, MTF_OP_SQUARE, "z/square", log_of_sum(c, "z", max), -1);
    return mtf_composite_mapped(c, MTF_OP_MULTIPLY, "z/loss", square,
                                loss_number(c, "z/share", c->op->attributes.z_loss));
}

/* What smoothing and z_loss add to the loss of each position; a loss of the plain kind is `plain`. */
static int add_terms(MtfComposite *c, int plain, int max, int logit, int mask) {
    const MtfAttributes *a = &c->op->attributes;
    int terms[3] = { plain }, n = 1;
    if (a->smoothing > 0)
        terms[n++] = smoothing_term(c, logit);
    if (a->z_loss > 0)
        terms[n++] = z_term(c, max);
    for (int i = 1; i < n && mask >= 0; i++)
        terms[i] = mtf_composite_mapped(c, MTF_OP_MULTIPLY, i == 1 ? "masked" : "masked/2",
                                        terms[i], mask);
    return mtf_build(c->b, MTF_OP_ADD, c->op->name, c->shape, n, terms);
}

static int expand_cross_entropy(MtfComposite *c) {
    int logits = c->x[0], labels = c->x[1], mask = mask_of(c);
    bool more = c->op->attributes.smoothing > 0 || c->op->attributes.z_loss > 0;
    g_autofree char *plain = g_strdup_printf("%s/plain", c->op->name);
    int max = mtf_composite_part(c, MTF_OP_REDUCE_MAX, "max", c->shape, logits, -1);
    int sum = mtf_composite_part(c, MTF_OP_SUM_EXP, "sum", c->shape, logits, max);
    int logit = mtf_composite_part(c, MTF_OP_LABEL_LOGIT, "logit", c->shape, logits, labels);
    int loss = mtf_build(c->b, MTF_OP_CROSS_ENTROPY, more ? plain : c->op->name, c->shape,
                         mask >= 0 ? 4 : 3, (int[]){ max, sum, logit, mask });
    return more ? add_terms(c, loss, max, logit, mask) : loss;
}

static int expand_log_sum_exp(MtfComposite *c) {
    int max = mtf_composite_part(c, MTF_OP_REDUCE_MAX, "max", c->shape, c->x[0], -1);
    return log_of_sum(c, NULL, max);
}

/* The one dimension that `whole` has and `rest` lacks. */
static int lacking(const MtfShape *whole, const MtfShape *rest) {
    int i = 0;
    while (mtf_shape_find(rest, whole->dims[i]) >= 0)
        i++;
    return whole->dims[i];
}

/* The smallest position of those where x is the largest: of the others, the dimension's size. */
static int expand_argmax(MtfComposite *c) {
    MtfBuilder *b = c->b;
    MtfShape whole = *mtf_composite_shape(c, c->x[0]);
    int dim = lacking(&whole, c->shape);
    MtfDtype wide = mtf_dtype_wide(mtf_composite_dtype(c, c->x[0]));
    int max = mtf_composite_part(c, MTF_OP_REDUCE_MAX, "max", c->shape, c->x[0], -1);
    int is = mtf_composite_part(c, MTF_OP_EQUAL, "is", &whole, c->x[0], max);
    is = mtf_composite_converted(c, "is/wide", wide, is);
    int position = mtf_composite_positions(c, "position", dim, wide);
    int end = mtf_composite_number(c, "end", wide, (double)mtf_graph_size(b->graph, dim));
    g_autofree char *name = g_strdup_printf("%s/where", c->op->name);
    int found = MTF_BUILD(b, MTF_OP_WHERE, name, &whole, is, position, end);
    int last = mtf_composite_part(c, MTF_OP_REDUCE_MAX, "last", c->shape,
                                  mtf_composite_mapped(c, MTF_OP_NEGATE, "negated", found, -1), -1);
    int first = mtf_composite_mapped(c, MTF_OP_NEGATE, "first", last, -1);
    b->has_dtype = true;
    b->dtype = MTF_I32;
    return MTF_BUILD(b, MTF_OP_CAST, c->op->name, NULL, first);
}

static int expand_one_hot(MtfComposite *c) {
    MtfBuilder *b = c->b;
    int position = mtf_composite_positions(
        c, "position", lacking(c->shape, mtf_composite_shape(c, c->x[0])), MTF_I32);
    int is = mtf_composite_part(c, MTF_OP_EQUAL, "is", c->shape, c->x[0], position);
    b->has_dtype = true;
    b->dtype = mtf_graph_tensor(c->from, c->op->outputs[0])->dtype;
    return MTF_BUILD(b, MTF_OP_CAST, c->op->name, NULL, is);
}

static int expand_slice(MtfComposite *c) {
    const MtfAttributes *a = &c->op->attributes;
    mtf_composite_aim(c, a->from, a->to, a->start, a->stride);
    return MTF_BUILD(c->b, MTF_OP_RESAMPLE, c->op->name, NULL, c->x[0]);
}

/* 1 where a position of the padded dimension is below `end`, or not below where it is at least that. */
static int places_at(MtfComposite *c, const char *name, int position, int64_t end, bool below) {
    g_autofree char *number = g_strdup_printf("%s/end", name);
    int edge = mtf_composite_number(c, number, MTF_I32, (double)end);
    c->b->has_dtype = true;
    c->b->dtype = MTF_BOOL;
    return below ? mtf_composite_mapped(c, MTF_OP_LESS, name, position, edge)
                 : mtf_composite_part(c, MTF_OP_LESS_EQUAL, name, mtf_composite_shape(c, position),
                                      edge, position);
}

/* Where the elements of what is padded stand: behind those before, before those behind; -1: everywhere. */
static int padded_places(MtfComposite *c) {
    const MtfAttributes *a = &c->op->attributes;
    const MtfGraph *graph = c->b->graph;
    int64_t begin = (int64_t)a->before, end = begin + mtf_graph_size(graph, a->from);
    bool before = begin > 0, behind = end < mtf_graph_size(graph, a->to);
    if (!before && !behind)
        return -1;
    int position = mtf_composite_positions(c, "position", a->to, MTF_I32);
    int first = before ? places_at(c, "begun", position, begin, false) : -1;
    int second = behind ? places_at(c, "goes_on", position, end, true) : -1;
    if (!before || !behind)
        return before ? first : second;
    return mtf_composite_mapped(c, MTF_OP_MULTIPLY, "within", first, second);
}

/* Another value than 0 is chosen where there are no elements, which stay what they are. */
static int expand_pad(MtfComposite *c) {
    MtfBuilder *b = c->b;
    const MtfAttributes *a = &c->op->attributes;
    int x = c->x[0], within = a->value != 0 ? padded_places(c) : -1;
    mtf_composite_aim(c, a->from, a->to, 0 - a->before, 1);
    if (within < 0)
        return MTF_BUILD(b, MTF_OP_RESAMPLE, c->op->name, NULL, x);
    int padded = mtf_composite_mapped(c, MTF_OP_RESAMPLE, "padded", x, -1);
    int value = mtf_composite_number(c, "value", mtf_composite_dtype(c, x), a->value);
    MtfShape shape = *mtf_composite_shape(c, padded);
    return MTF_BUILD(b, MTF_OP_WHERE, c->op->name, &shape, within, padded, value);
}

/* Along a dimension of another name, which then takes the old one's. */
static int turned(MtfComposite *c, double start, double stride, double wrap) {
    int dim = c->op->attributes.dimension;
    int to = mtf_composite_dimension(c, "turned", mtf_graph_size(c->b->graph, dim));
    mtf_composite_aim(c, dim, to, start, stride);
    c->b->attributes.wrap = wrap;
    int moved = mtf_composite_mapped(c, MTF_OP_RESAMPLE, "moved", c->x[0], -1);
    c->b->attributes.from = to;
    c->b->attributes.to = dim;
    return MTF_BUILD(c->b, MTF_OP_RENAME, c->op->name, NULL, moved);
}

static int expand_reverse(MtfComposite *c) {
    return turned(c, (double)mtf_graph_size(c->b->graph, c->op->attributes.dimension) - 1, -1, 0);
}

static int expand_roll(MtfComposite *c) {
    return turned(c, 0 - c->op->attributes.shift, 1, 1);
}

/* x / (bias + alpha mean of x^2 over the window)^beta (Krizhevsky et al., 2012, section 3.3, with alpha
 * divided by the window's size, as in Caffe, ONNX and PyTorch). Beyond the ends there are zeros. */
static int expand_local_response(MtfComposite *c) {
    MtfBuilder *b = c->b;
    const MtfAttributes *a = &c->op->attributes;
    int size = (int)a->size, dim = a->dimension;
    int to = mtf_composite_dimension(c, "window", mtf_graph_size(b->graph, dim));
    MtfShape windows = *c->shape;
    windows.dims[mtf_shape_find(&windows, dim)] = to;
    int square = mtf_composite_mapped(c, MTF_OP_SQUARE, "square", c->x[0], -1);
    b->attributes.n_windows = 1;
    b->attributes.windows[0] =
        (MtfWindow){ dim, to, -1, size, 1, 1, (size - 1) / 2, size / 2, false };
    b->attributes.counted = 1;
    int mean = mtf_composite_part(c, MTF_OP_AVERAGE_POOL, "mean", &windows, square, -1);
    b->attributes.from = to;
    b->attributes.to = dim;
    int here = mtf_composite_mapped(c, MTF_OP_RENAME, "here", mean, -1);
    b->attributes.factor = a->alpha;
    int scaled = mtf_composite_mapped(c, MTF_OP_SCALE, "scaled", here, -1);
    int bias = mtf_composite_number(c, "bias", mtf_composite_dtype(c, c->x[0]), a->bias);
    int base = mtf_composite_mapped(c, MTF_OP_ADD, "base", scaled, bias);
    b->attributes.exponent = 0 - a->beta;
    int factor = mtf_composite_mapped(c, MTF_OP_RAISE, "factor", base, -1);
    return MTF_BUILD(b, MTF_OP_MULTIPLY, c->op->name, c->shape, c->x[0], factor);
}

static int expand_select(MtfComposite *c) {
    const MtfAttributes *a = &c->op->attributes;
    int one = mtf_composite_dimension(c, "one", 1);
    mtf_composite_aim(c, a->dimension, one, a->index, 1);
    int piece = mtf_composite_mapped(c, MTF_OP_RESAMPLE, "piece", c->x[0], -1);
    bool truths = mtf_composite_dtype(c, c->x[0]) == MTF_BOOL;
    return MTF_BUILD(c->b, truths ? MTF_OP_REDUCE_MAX : MTF_OP_REDUCE_SUM, c->op->name, c->shape,
                     piece);
}

static int expand_stack(MtfComposite *c) {
    return mtf_build(c->b, MTF_OP_CONCAT, c->op->name, c->shape, c->op->n_inputs, c->x);
}

static int expand_gather(MtfComposite *c) {
    return MTF_BUILD(c->b, MTF_OP_EMBEDDING, c->op->name, c->shape, c->x[0], c->x[1]);
}

static int expand_scatter_add(MtfComposite *c) {
    return mtf_build(c->b, MTF_OP_EMBEDDING_GRAD, c->op->name, c->shape, c->op->n_inputs, c->x);
}

/* e^(sum of log |x|), with a sign for an odd number of factors below 0. */
static int expand_reduce_prod(MtfComposite *c) {
    MtfBuilder *b = c->b;
    MtfDtype dtype = mtf_composite_dtype(c, c->x[0]);
    int zero = mtf_composite_number(c, "0", dtype, 0), one = mtf_composite_number(c, "1", dtype, 1);
    int two = mtf_composite_number(c, "2", dtype, 2);
    int logs = mtf_composite_mapped(c, MTF_OP_LOG, "log",
                                    mtf_composite_mapped(c, MTF_OP_ABS, "abs", c->x[0], -1), -1);
    int size = mtf_composite_mapped(
        c, MTF_OP_EXP, "size", mtf_composite_part(c, MTF_OP_REDUCE_SUM, "sum", c->shape, logs, -1),
        -1);
    int below = mtf_composite_mapped(c, MTF_OP_LESS, "below", c->x[0], zero);
    int count = mtf_composite_part(c, MTF_OP_REDUCE_SUM, "count", c->shape, below, -1);
    int odd = mtf_composite_mapped(c, MTF_OP_MULTIPLY, "twice", two,
                                   mtf_composite_mapped(c, MTF_OP_MODULO, "odd", count, two));
    int sign = mtf_composite_part(c, MTF_OP_SUBTRACT, "sign", c->shape, one, odd);
    return MTF_BUILD(b, MTF_OP_MULTIPLY, c->op->name, c->shape, size, sign);
}

/* The statistics of layer_norm with a mean of 0: the variance is the mean square. */
static int expand_rms_norm(MtfComposite *c) {
    MtfBuilder *b = c->b;
    MtfShape rest = mtf_shape_without(c->shape, c->op->attributes.dimension);
    b->has_dtype = true;
    b->dtype = mtf_dtype_wide(mtf_graph_tensor(b->graph, c->x[0])->dtype);
    g_autofree char *name = g_strdup_printf("%s/mean", c->op->name);
    int mean = mtf_build(b, MTF_OP_CONSTANT, name, &rest, 0, NULL);
    int square = mtf_composite_part(c, MTF_OP_VARIANCE, "square", &rest, c->x[0], mean);
    b->attributes.epsilon = c->op->attributes.epsilon;
    return MTF_BUILD(b, MTF_OP_NORMALIZE, c->op->name, c->shape, c->x[0], mean, square, c->x[1]);
}

/* The factors of an einsum that are still to be multiplied. */
typedef struct {
    int n;
    int *tensors;
} Factors;

static bool occurs(const MtfComposite *c, const Factors *factors, int dim, int i, int j) {
    if (mtf_shape_find(c->shape, dim) >= 0)
        return true;
    for (int k = 0; k < factors->n; k++)
        if (k != i && k != j &&
            mtf_shape_find(mtf_composite_shape(c, factors->tensors[k]), dim) >= 0)
            return true;
    return false;
}

/* The union of a pair's dimensions, and the part of it that is needed later. False when the union
 * is too large for a shape. */
static bool pair_shapes(const MtfComposite *c, const Factors *factors, int i, int j, MtfShape *all,
                        MtfShape *kept) {
    *all = *mtf_composite_shape(c, factors->tensors[i]);
    const MtfShape *other = mtf_composite_shape(c, factors->tensors[j]);
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
static double points(const MtfComposite *c, const MtfShape *shape) {
    double product = 1;
    for (int d = 0; d < shape->rank; d++)
        product *= (double)mtf_graph_size(c->b->graph, shape->dims[d]);
    return product;
}

static void cheapest_pair(const MtfComposite *c, const Factors *factors, int *first, int *second,
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
static int expand_einsum(MtfComposite *c) {
    g_autofree int *tensors = g_memdup2(c->x, sizeof(int) * (gsize)c->op->n_inputs);
    Factors factors = { c->op->n_inputs, tensors };
    for (int step = 1; factors.n > 2 && c->b->error == NULL; step++) {
        int i = 0, j = 1;
        MtfShape kept;
        cheapest_pair(c, &factors, &i, &j, &kept);
        g_autofree char *suffix = g_strdup_printf("%d", step);
        tensors[i] = mtf_composite_part(c, MTF_OP_EINSUM, suffix, &kept, tensors[i], tensors[j]);
        tensors[j] = tensors[--factors.n];
    }
    return mtf_build(c->b, MTF_OP_EINSUM, c->op->name, c->shape, factors.n, tensors);
}

static int expand_expression(MtfComposite *c) {
    MtfBuilder *b = c->b;
    const MtfAttributes *a = &c->op->attributes;
    g_autoptr(MtfExpression) expression =
        mtf_expression_read(a->expression, a->arguments, c->op->n_inputs, &b->error);
    return expression == NULL ? -1
                              : mtf_build_expression(b, c->op->name, c->shape, expression, c->x);
}

/* How operations are rewritten, keyed like the operation table; NULL: they are copied. */
static int (*const rewrites[MTF_OPERATIONS])(MtfComposite *c) = {
    [MTF_OP_SOFTMAX] = expand_softmax,
    [MTF_OP_LAYER_NORM] = expand_layer_norm,
    [MTF_OP_SLICE] = expand_slice,
    [MTF_OP_PAD] = expand_pad,
    [MTF_OP_REVERSE] = expand_reverse,
    [MTF_OP_ROLL] = expand_roll,
    [MTF_OP_SELECT] = expand_select,
    [MTF_OP_CUMULATIVE_SUM] = mtf_expand_cumulative_sum,
    [MTF_OP_LINEAR_ATTENTION] = mtf_expand_linear_attention,
    [MTF_OP_CUMULATIVE_MAX] = mtf_expand_cumulative_max,
    [MTF_OP_CUMULATIVE_MIN] = mtf_expand_cumulative_min,
    [MTF_OP_CUMULATIVE_LOG_SUM_EXP] = mtf_expand_cumulative_log_sum_exp,
    [MTF_OP_LOCAL_RESPONSE_NORM] = expand_local_response,
    [MTF_OP_TOP_K] = mtf_expand_top_k,
    [MTF_OP_STACK] = expand_stack,
    [MTF_OP_GATHER] = expand_gather,
    [MTF_OP_SCATTER_ADD] = expand_scatter_add,
    [MTF_OP_REDUCE_PROD] = expand_reduce_prod,
    [MTF_OP_NOT_EQUAL] = expand_not_equal,
    [MTF_OP_GREATER] = expand_greater,
    [MTF_OP_GREATER_EQUAL] = expand_greater_equal,
    [MTF_OP_LOGICAL_AND] = expand_logical_and,
    [MTF_OP_LOGICAL_OR] = expand_logical_or,
    [MTF_OP_LOGICAL_XOR] = expand_logical_xor,
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

/* Ids of int64 become int32, which kernels read. */
static void narrow_ids(MtfComposite *c, int *inputs) {
    for (int k = 0; k < c->op->n_inputs; k++) {
        g_autofree char *suffix = g_strdup_printf(k == 0 ? "ids" : "ids/%d", k);
        if (mtf_operation_mask_has(mtf_operation_row(c->op->kind)->integer_inputs, k) &&
            inputs[k] >= 0 && mtf_composite_dtype(c, inputs[k]) == MTF_I64)
            inputs[k] = mtf_composite_converted(c, suffix, MTF_I32, inputs[k]);
    }
}

/* What the graph's author calls so keeps its name; a part of a composite before it gets another. */
static void claim_name(Expansion *e, int t) {
    int other = mtf_graph_find_tensor(e->b.graph, mtf_graph_tensor(e->from, t)->name);
    if (other < 0)
        return;
    const MtfOperation *part =
        mtf_graph_operation(e->b.graph, mtf_graph_tensor(e->b.graph, other)->producer);
    g_autofree char *name = g_strdup(part->name);
    mtf_build_rename(&e->b, part->outputs[0], name);
}

static void expand_operation(Expansion *e, const MtfOperation *op) {
    g_autofree int *inputs = g_new(int, op->n_inputs + LEAST_INPUTS);
    for (int k = 0; k < op->n_outputs; k++)
        claim_name(e, op->outputs[k]);
    for (int k = 0; k < op->n_inputs + LEAST_INPUTS; k++)
        inputs[k] = k < op->n_inputs ? e->tensors[op->inputs[k]] : -1;
    MtfComposite c = { .b = &e->b,
                       .from = e->from,
                       .op = op,
                       .x = inputs,
                       .shape = &mtf_graph_tensor(e->from, op->outputs[0])->shape,
                       .index = -1 };
    e->b.phase = op->phase;
    e->b.stage = op->stage;
    e->b.loop = op->loop;
    e->b.layer = op->layer;
    e->b.origin = op->origin;
    e->b.of = op->of;
    int (*rewrite)(MtfComposite *) = rewrites[op->kind];
    int before = (int)e->b.graph->operations->len;
    narrow_ids(&c, inputs);
    int first = rewrite != NULL ? rewrite(&c) : mtf_composite_copy(&c);
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
        claim_name(e, t);
        e->tensors[t] = mtf_graph_add_input(e->b.graph, tensor->name, &tensor->shape, tensor->dtype,
                                            tensor->feed, &e->b.error);
        return;
    case MTF_SOURCE_VARIABLE:
        claim_name(e, t);
        e->tensors[t] = mtf_build_variable_like(&e->b, tensor);
        return;
    case MTF_SOURCE_OPERATION:
        if (mtf_graph_operation(e->from, tensor->producer)->outputs[0] == t)
            expand_operation(e, mtf_graph_operation(e->from, tensor->producer));
        return;
    }
}

MtfGraph *mtf_expand(const MtfGraph *graph, GError **error) {
    g_autoptr(MtfGraph) expanded = mtf_graph_new_like(graph);
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
