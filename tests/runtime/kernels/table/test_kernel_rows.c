// SPDX-License-Identifier: GPL-3.0-or-later
// kernels: einsums are multiplied by a library
/* Every row's kernel against the plain loops of tests/support/reference/reference.h, on random shapes and
 * cuts. A row's operands are written as letters:
 *
 *     x  the whole shape X of this case             s  some of X's dimensions, in any order
 *     r  X without its reduced dimensions           d  X's reduced dimensions
 *     1  no dimensions                              i  int32 ids: some of r's dimensions
 *     l  int32 labels: X without its last           m  some of l's dimensions
 *     V  a table: last dimension of X as ids, then d
 *     f  X with its first two dimensions merged      j  X with the join in the place of its last
 *     k  X with the twin of its first dimension in its place, perhaps without some others: memory
 *
 * Each row runs in float32, float64 and bfloat16, and those that take them in int32, int64 and bool.
 * bfloat16 is compared with the same reference on
 * the inputs as bfloat16 holds them, which the result may miss by one rounding and no more. */
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "tests/support/cases/kernel_slices.h"
#include "tests/support/reference/reference.h"

#include <math.h>
#include <string.h>

typedef struct {
    int kind;
    const char *inputs; /* letters; a capital O separates inputs that may be left out */
    char output;        /* a letter, or 0 when it follows from the inputs */
    bool positive;      /* inputs are kept away from 0 and below */
} Row;

static const Row rows[] = {
    { MTF_OP_ADD, "xsO", 0, false },
    { MTF_OP_ADD, "sxxssxxsxx", 0, false },
    { MTF_OP_SUBTRACT, "sx", 0, false },
    { MTF_OP_MULTIPLY, "ss", 0, false },
    { MTF_OP_DIVIDE, "xs", 0, true },
    { MTF_OP_MAXIMUM, "xs", 0, false },
    { MTF_OP_MINIMUM, "sx", 0, false },
    { MTF_OP_EQUAL, "xs", 0, false },
    { MTF_OP_LESS, "xs", 0, false },
    { MTF_OP_LESS_EQUAL, "sx", 0, false },
    { MTF_OP_WHERE, "xss", 0, false },
    { MTF_OP_WHERE, "sxx", 0, false },
    { MTF_OP_MODULO, "xs", 0, true },
    { MTF_OP_POWER, "xs", 0, true },
    { MTF_OP_LOGICAL_NOT, "x", 0, false },
    { MTF_OP_RAISE, "x", 0, true },
    { MTF_OP_CLIP, "x", 0, false },
    { MTF_OP_LEAKY_RELU, "x", 0, false },
    { MTF_OP_ELU, "x", 0, false },
    { MTF_OP_GELU_EXACT, "x", 0, false },
    { MTF_OP_SOFTPLUS, "x", 0, false },
    { MTF_OP_SIN, "x", 0, false },
    { MTF_OP_COS, "x", 0, false },
    { MTF_OP_ERF, "x", 0, false },
    { MTF_OP_FLOOR, "x", 0, false },
    { MTF_OP_GELU_EXACT_GRAD, "xx", 0, false },
    { MTF_OP_SCALE, "x", 0, false },
    { MTF_OP_RELU, "x", 0, false },
    { MTF_OP_GELU, "x", 0, false },
    { MTF_OP_SILU, "x", 0, false },
    { MTF_OP_TANH, "x", 0, false },
    { MTF_OP_SIGMOID, "x", 0, false },
    { MTF_OP_EXP, "x", 0, false },
    { MTF_OP_LOG, "x", 0, true },
    { MTF_OP_SQRT, "x", 0, true },
    { MTF_OP_RSQRT, "x", 0, true },
    { MTF_OP_SQUARE, "x", 0, false },
    { MTF_OP_NEGATE, "x", 0, false },
    { MTF_OP_ABS, "x", 0, false },
    { MTF_OP_SIGN, "x", 0, false },
    { MTF_OP_REDUCE_SUM, "x", 's', false },
    { MTF_OP_REDUCE_MEAN, "x", 's', false },
    { MTF_OP_REDUCE_MAX, "x", 's', false },
    { MTF_OP_REDUCE_SUM, "x", '1', false },
    { MTF_OP_RENAME, "x", 0, false },
    { MTF_OP_TRANSPOSE, "x", 'p', false },
    { MTF_OP_BROADCAST, "s", 'x', false },
    { MTF_OP_RESHAPE, "x", 'f', false },
    { MTF_OP_RESAMPLE, "x", 0, false },
    { MTF_OP_CONCAT, "xxL", 'j', false },
    { MTF_OP_RANDOM_UNIFORM, "", 'x', false },
    { MTF_OP_RANDOM_NORMAL, "", 'x', false },
    { MTF_OP_CUMULATIVE_SUM, "x", 0, false },
    { MTF_OP_LOOP_BEGIN, "x", 0, false },
    { MTF_OP_LOOP_NEXT, "xx", 0, false },
    { MTF_OP_LOOP_SLICE, "x", 0, false },
    { MTF_OP_TOP_K, "x", 0, false },
    { MTF_OP_CAST, "x", 0, false },
    { MTF_OP_STOP_GRADIENT, "x", 0, false },
    { MTF_OP_IN_TRAIN_PHASE, "xx", 0, false },
    { MTF_OP_CONSTANT, "", 'x', false },
    { MTF_OP_RANGE, "", 'd', false },
    { MTF_OP_DROPOUT, "x", 0, false },
    { MTF_OP_CAUSAL_MASK, "x", 0, false },
    { MTF_OP_CAUSAL_ZERO, "x", 0, false },
    { MTF_OP_EINSUM, "s", 's', false },
    { MTF_OP_EINSUM, "ss", 's', false },
    { MTF_OP_EINSUM, "xx", 's', false },
    { MTF_OP_EINSUM, "sss", 's', false },
    { MTF_OP_EINSUM, "ssss", 's', false },
    { MTF_OP_ROTARY, "x", 0, false },
    { MTF_OP_ROTARY, "xb", 0, false },
    { MTF_OP_EMBEDDING, "Vl", 'e', false },
    { MTF_OP_EMBEDDING_GRAD, "le", 'V', false },
    { MTF_OP_EMBEDDING_GRAD, "leV", 'V', false },
    { MTF_OP_SLOTS, "zOZ", 0, false },
    { MTF_OP_SLOT_IDS, "zz", 'P', false },
    { MTF_OP_DISPATCH, "xzOZ", 'y', false },
    { MTF_OP_COMBINE, "yzOZ", 'x', false },
    { MTF_OP_COMBINE_GATE_GRAD, "yxz", 'Z', false },
    { MTF_OP_EXPERT_EINSUM, "xwl", 'Y', false },
    { MTF_OP_EXPERT_EINSUM, "Ywl", 'x', false },
    { MTF_OP_EXPERT_EINSUM_GRAD, "xYl", 'w', false },
    { MTF_OP_SUM_EXP, "xr", 'r', false },
    { MTF_OP_SOFTMAX_APPLY, "xrr", 0, true },
    { MTF_OP_SOFTMAX_APPLY, "xss", 0, true },
    { MTF_OP_SOFTMAX_GRAD, "xxr", 0, false },
    { MTF_OP_VARIANCE, "xr", 'r', false },
    { MTF_OP_NORMALIZE, "xrrdOd", 0, true },
    { MTF_OP_NORMALIZE, "xrrsOs", 0, true },
    { MTF_OP_NORMALIZE_DOT, "xxrrd", 'r', true },
    { MTF_OP_NORMALIZE_SCALE_GRAD, "xxrr", 'd', true },
    { MTF_OP_NORMALIZE_GRAD, "xxrrdrr", 0, true },
    { MTF_OP_NORMALIZE_GRAD, "xxrrsrr", 0, true },
    { MTF_OP_ATTENTION, "xkk", 0, false },
    { MTF_OP_ATTENTION_FURTHER, "xkkxL", 0, false },
    { MTF_OP_ATTENTION_GRAD, "xkkxLx", 0, false },
    { MTF_OP_ATTENTION, "xkkBB", 0, false },
    { MTF_OP_ATTENTION_FURTHER, "xkkxLBB", 0, false },
    { MTF_OP_ATTENTION_BIAS_GRAD, "xkkxLxBOB", 0, false },
    { MTF_OP_LINEAR_ATTENTION, "xggLOL", 0, false },
    { MTF_OP_LINEAR_ATTENTION_GRAD, "xggLx", 0, false },
    { MTF_OP_DELTA_RULE_GRAD, "xggLxL", 0, false },
    { MTF_OP_KEPT_LINEAR_ATTENTION, "xggLSOL", 0, false },
    { MTF_OP_SELECTIVE_SCAN, "xggxE", 0, false },
    { MTF_OP_SELECTIVE_SCAN_GRAD, "xggxxE", 0, false },
    { MTF_OP_KEPT_SELECTIVE_SCAN, "xggxSE", 0, false },
    { MTF_OP_LABEL_LOGIT, "xl", 'l', false },
    { MTF_OP_CROSS_ENTROPY, "xxxOs", 0, true },
    { MTF_OP_CROSS_ENTROPY_GRAD, "xlLLLOm", 0, true },
    { MTF_OP_RELU_GRAD, "xx", 0, false },
    { MTF_OP_GELU_GRAD, "xx", 0, false },
    { MTF_OP_SILU_GRAD, "xx", 0, false },
    { MTF_OP_TANH_GRAD, "xx", 0, false },
    { MTF_OP_SIGMOID_GRAD, "xx", 0, false },
    { MTF_OP_ACCUMULATE, "x", 0, false },
    { MTF_OP_CLIP_FACTOR, "1", 0, true },
    { MTF_OP_LEARNING_RATE, "", '1', false },
    { MTF_OP_SGD, "xx1O1", 0, true },
    { MTF_OP_MOMENTUM, "xxx1O1", 0, true },
    { MTF_OP_LION, "xxx1O1", 0, true },
    { MTF_OP_ADAM, "xxxx1O1", 0, true },
    { MTF_OP_LAMB_DIRECTION, "xxxxO1", 0, true },
    { MTF_OP_LAMB_APPLY, "xx111", 0, true },
    { MTF_OP_ADAFACTOR_MOMENT, "xx", 0, true },
    { MTF_OP_ADAFACTOR_DIRECTION, "xx", 0, true },
    { MTF_OP_ADAFACTOR_DIRECTION, "xrss", 0, true },
    { MTF_OP_ADAFACTOR_APPLY, "xx11", 0, true },
    { MTF_OP_CACHE_UPDATE, "xcb", 'c', false },
    { MTF_OP_CACHED_ATTENTION, "xkkb", 0, false },
    { MTF_OP_QUANTIZED_EINSUM, "xqu", 'Y', false },
    { MTF_OP_ROTARY, "xbb", 0, false },
    { MTF_OP_TO_HOST, "x", 0, false },
    { MTF_OP_SORT, "x", 0, false },
};

typedef struct {
    const Row *row;
    GRand *rand;
    MtfGraph *graph;
    MtfDtype dtype;
    MtfShape x, r, d;
    int ids;  /* a dimension beside X's */
    int twin; /* of the same size as X's first */
    int merged, join;
    MtfShape memory;
    MtfShape queries; /* of linear attention to X */
} Case;

static bool chance(const Case *c, double p) {
    return g_rand_double(c->rand) < p;
}

static void shuffle(const Case *c, MtfShape *shape) {
    for (int i = shape->rank - 1; i > 0; i--) {
        int j = g_rand_int_range(c->rand, 0, i + 1), swap = shape->dims[i];
        shape->dims[i] = shape->dims[j];
        shape->dims[j] = swap;
    }
}

static MtfShape some_of(const Case *c, const MtfShape *from) {
    MtfShape shape = { 0 };
    for (int i = 0; i < from->rank; i++)
        if (chance(c, 0.6))
            mtf_shape_append(&shape, from->dims[i]);
    if (chance(c, 0.5))
        shuffle(c, &shape);
    return shape;
}

static MtfShape without_last(const MtfShape *from) {
    MtfShape shape = *from;
    shape.rank--;
    shape.dims[shape.rank] = 0;
    return shape;
}

/* Slots of tokens along the first of X in groups, their places, what lies there, matrices of experts
 * and rows behind them. */
static MtfShape routed_shape_of(const Case *c, char letter) {
    MtfShape shape = without_last(&c->x);
    int last = c->x.dims[c->x.rank - 1];
    if (letter == 'w') {
        shape.rank = 0;
        mtf_shape_append(&shape, c->twin);
        bool turned = chance(c, 0.5);
        mtf_shape_append(&shape, turned ? c->join : last);
        mtf_shape_append(&shape, turned ? last : c->join);
        return shape;
    }
    if (letter == 'P' || letter == 'y')
        mtf_shape_remove(&shape, c->x.dims[0]);
    mtf_shape_append(&shape, letter == 'Y' ? c->join : strchr("zZ", letter) ? c->ids : c->twin);
    if (letter == 'P' || letter == 'y')
        mtf_shape_append(&shape, c->join);
    if (letter == 'y')
        mtf_shape_append(&shape, last);
    if (letter != 'Y' && letter != 'P' && letter != 'y' && chance(c, 0.3))
        shuffle(c, &shape);
    return shape;
}

/* The same for all tensors of a case. */
static bool chance_is_odd(const Case *c) {
    return mtf_graph_size(c->graph, c->ids) % 2 == 1;
}

/* A matrix from the last of X to another dimension, and its units. */
static MtfShape quantized_shape_of(const Case *c, char letter) {
    MtfShape shape = { 0 };
    mtf_shape_append(&shape, c->join);
    if (letter == 'q')
        mtf_shape_append(&shape, c->x.dims[c->x.rank - 1]);
    if (letter == 'q' && chance(c, 0.5))
        shuffle(c, &shape);
    return shape;
}

/* What is added to scores: along memory, last, and some of what X's scores have. */
static MtfShape bias_shape_of(const Case *c) {
    MtfShape labels = without_last(&c->x), shape = some_of(c, &labels);
    mtf_shape_append(&shape, c->twin);
    return shape;
}

/* Memory; or queries, the state, or rates of linear attention to X, whose keys are ids. */
static MtfShape attended_shape_of(const Case *c, char letter) {
    MtfShape state = { 0 };
    for (int i = 1; letter == 'S' && i < c->x.rank - 1; i++)
        mtf_shape_append(&state, c->x.dims[i]);
    mtf_shape_append(&state, c->ids);
    mtf_shape_append(&state, c->x.dims[c->x.rank - 1]);
    return letter == 'k' ? c->memory : letter == 'g' ? c->queries : state;
}

static MtfShape shape_of(const Case *c, char letter) {
    MtfShape labels = without_last(&c->x), shape = { 0 };
    int last = c->x.dims[c->x.rank - 1];
    if (letter == 'q' || letter == 'u')
        return quantized_shape_of(c, letter);
    if (letter != 0 && strchr("kgSE", letter) != NULL)
        return attended_shape_of(c, letter);
    if (strchr("zZPywY", letter) != NULL && letter != 0)
        return routed_shape_of(c, letter);
    switch (letter) {
    case 'x':
        return c->x;
    case 'p':
        shape = c->x;
        shuffle(c, &shape);
        return shape;
    case 's':
        return some_of(c, &c->x);
    case 'r':
        return c->r;
    case 'd':
        return c->d;
    case 'l':
    case 'L':
        return labels;
    case 'b': /* a position: none of the first, the second or the last */
        for (int i = 2; i < c->x.rank - 1; i++)
            mtf_shape_append(&shape, c->x.dims[i]);
        return shape;
    case 'c': /* a cache of X, with ids in place of its first */
        mtf_shape_append(&shape, c->ids);
        for (int i = c->x.rank - 1; i > 0; i--)
            mtf_shape_append(&shape, c->x.dims[chance_is_odd(c) ? i : c->x.rank - i]);
        return shape;
    case 'f':
        shape = c->x;
        shape.dims[0] = c->merged;
        mtf_shape_remove(&shape, c->x.dims[1]);
        return shape;
    case 'j':
        shape = c->x;
        shape.dims[shape.rank - 1] = c->join;
        return shape;
    case 'm':
        return some_of(c, &labels);
    case 'V': /* the last of X is what each id chooses a row of */
        mtf_shape_append(&shape, c->ids);
        mtf_shape_append(&shape, last);
        if (chance(c, 0.3))
            shuffle(c, &shape);
        return shape;
    case 'e':
        shape = c->x;
        if (chance(c, 0.3))
            shuffle(c, &shape);
        return shape;
    default:
        return shape;
    }
}

/* What is routed meets every place. */
static int random_size(const Case *c) {
    bool small = strpbrk(c->row->inputs, "zw") != NULL || c->row->output == 'w';
    double draw = g_rand_double(c->rand) * (small ? 0.9 : 1);
    return draw < 0.2   ? 1
           : draw < 0.9 ? g_rand_int_range(c->rand, 2, 6)
                        : g_rand_int_range(c->rand, 17, 70);
}

static void make_dimensions(Case *c) {
    int rank = g_rand_int_range(c->rand, 2, 5);
    for (int i = 0; i < rank; i++) {
        char name[2] = { (char)('a' + i), 0 };
        mtf_shape_append(&c->x, mtf_graph_add_dimension(c->graph, name, random_size(c), NULL));
    }
    int reduced = g_rand_int_range(c->rand, 0, rank);
    bool is_range = c->row->kind == MTF_OP_RANGE;
    for (int i = 0; i < rank; i++)
        mtf_shape_append(i == reduced || (!is_range && chance(c, 0.2)) ? &c->d : &c->r,
                         c->x.dims[i]);
    c->ids = mtf_graph_add_dimension(c->graph, "ids", random_size(c), NULL);
    c->twin =
        mtf_graph_add_dimension(c->graph, "twin", mtf_graph_size(c->graph, c->x.dims[0]), NULL);
    int64_t first = mtf_graph_size(c->graph, c->x.dims[0]);
    int64_t last = mtf_graph_size(c->graph, c->x.dims[rank - 1]);
    c->merged = mtf_graph_add_dimension(c->graph, "merged",
                                        first * mtf_graph_size(c->graph, c->x.dims[1]), NULL);
    c->join = mtf_graph_add_dimension(c->graph, "join", 2 * last + 1, NULL);
    for (int i = 0; i < rank - 1; i++)
        if (i == 0 || chance(c, 0.7))
            mtf_shape_append(&c->queries, c->x.dims[i]);
    mtf_shape_append(&c->queries, c->ids);
    mtf_shape_append(&c->memory, c->twin);
    for (int i = 1; i < rank; i++)
        if (i == rank - 1 || chance(c, 0.7))
            mtf_shape_append(&c->memory, c->x.dims[i]);
}

/* Of rows that move elements. */
static void add_moves(const Case *c, MtfAttributes *a) {
    if (c->row->kind == MTF_OP_RESAMPLE || c->row->kind == MTF_OP_TOP_K)
        a->to = chance(c, 0.5) ? c->twin : c->ids;
    a->wrap = a->to == c->twin && chance(c, 0.3) ? 1 : 0;
    a->start = g_rand_int_range(c->rand, -3, 4);
    a->stride = a->wrap != 0 || chance(c, 0.5) ? 1 : g_rand_int_range(c->rand, -2, 3);
    a->dilation = a->wrap != 0 || chance(c, 0.5) ? 1 : 2;
    if (c->row->kind == MTF_OP_CUMULATIVE_SUM || c->row->kind == MTF_OP_LOOP_SLICE ||
        c->row->kind == MTF_OP_SORT)
        a->dimension = c->x.dims[0];
    a->exclusive = chance(c, 0.5) ? 1 : 0;
    a->reverse = chance(c, 0.5) ? 1 : 0;
    a->deviation = 1;
    a->mean = 0.5;
}

static void add_routing(const Case *c, MtfAttributes *a) {
    a->experts = c->twin;
    if (c->row->kind != MTF_OP_SLOTS)
        return;
    a->dimension = c->x.dims[0];
    a->choices = c->ids;
    a->capacity = chance(c, 0.7) ? c->join : -1;
    a->queue = g_rand_int_range(c->rand, 0, 2);
    a->priority = g_rand_int_range(c->rand, 0, 3);
}

/* Numbers for 35 pairs at most, of which the operation has fewer. */
static char *draw_divisors(const Case *c, char *list, int64_t pairs) {
    char *end = list;
    for (int64_t i = 0; i < pairs; i++)
        end += g_snprintf(end, 8, i > 0 ? " %.2f" : "%.2f", g_rand_double_range(c->rand, 0.5, 9));
    *end = 0;
    return list;
}

static void add_turns(const Case *c, MtfAttributes *a) {
    a->position = c->x.dims[1];
    a->base = 100;
    a->angle = chance(c, 0.5) ? 1 : -0.5;
    a->adjacent = chance(c, 0.5) ? 1 : 0;
    a->context = chance(c, 0.5) ? 64 : 0;
    a->stretch = 8, a->gain = chance(c, 0.5) ? 1 : 1.5;
    a->low = 1, a->high = 4, a->ramp = chance(c, 0.5);
    if (c->row->kind == MTF_OP_ROTARY && a->context == 0)
        a->growth = 2, a->context = 3, a->stretch = 1;
    a->rotated = (double)(mtf_graph_size(c->graph, c->x.dims[0]) / 2 * 2);
    if (c->row->kind == MTF_OP_ROTARY)
        a->dimension = c->x.dims[0];
    if (c->row->kind != MTF_OP_ROTARY || strlen(c->row->inputs) < 3 || chance(c, 0.5))
        return;
    static char shorter[256], longer[256];
    a->growth = 0, a->context = 3, a->stretch = 1;
    a->divisors = draw_divisors(c, shorter, (int64_t)a->rotated / 2);
    a->long_divisors = draw_divisors(c, longer, (int64_t)a->rotated / 2);
}

static bool keeps_states(const Case *c) {
    return mtf_operation_row(c->row->kind)->scratch == MTF_SCRATCH_LINEAR_ATTENTION;
}

static MtfAttributes make_attributes(const Case *c) {
    static const char *const schedules[] = { "constant", "linear_warmup", "inverse_sqrt", "cosine",
                                             "linear",   "polynomial",    "wsd",          "step" };
    bool cached = c->row->kind == MTF_OP_CACHED_ATTENTION;
    MtfProductsKind products = mtf_operation_row(c->row->kind)->products;
    bool attends = products == MTF_PRODUCTS_ATTENTION || products == MTF_PRODUCTS_ATTENTION_GRAD;
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    a.from = c->x.dims[0];
    a.to = c->twin;
    a.query = c->x.dims[g_rand_int_range(c->rand, 0, c->x.rank - 1)];
    a.memory = c->x.dims[c->x.rank - 1];
    a.value = mtf_dtype_is_float(c->dtype) ? a.factor = -1.5 : 1;
    if (attends) {
        a.query = c->x.dims[0];
        a.memory = c->twin;
        a.dimension = c->x.dims[c->x.rank - 1];
        a.factor = 0.02;
        a.causal = !cached && chance(c, 0.5) ? 1 : 0;
        a.softcap = chance(c, 0.5) ? 0.3 : 0;
        a.window =
            (cached || a.causal == 1) && chance(c, 0.5) ? g_rand_int_range(c->rand, 1, 6) : 0;
    }
    if (keeps_states(c))
        a.dimension = c->x.dims[0], a.keys = c->ids;
    add_routing(c, &a);
    static const double exponents[] = { -1, 2, 3, 0.5 };
    a.exponent = exponents[g_rand_int_range(c->rand, 0, 4)];
    a.slope = 0.2;
    add_turns(c, &a);
    if (c->row->kind == MTF_OP_CLIP)
        a.low = -1, a.high = 0.5;
    add_moves(c, &a);
    if (c->row->kind == MTF_OP_CACHE_UPDATE)
        a.to = c->ids;
    a.epsilon = 1e-3;
    a.rate = 0.3;
    a.limit = 0.9;
    a.beta1 = 0.8;
    a.beta2 = 0.95;
    a.weight_decay = 0.1;
    a.decay = 0.8;
    a.threshold = 0.5;
    a.warmup = 3;
    a.total = 9;
    a.power = 2;
    a.cooldown = 6;
    a.period = 1;
    a.drop = 0.5;
    a.final = 0.1;
    a.schedule = (char *)schedules[g_rand_int_range(c->rand, 0, 8)];
    return a;
}

/* The type of input k: ids, statistics beside bfloat16, or this case's. */
static MtfDtype input_type(const Case *c, char letter, int k) {
    if (letter == 'l' || letter == 'b' || letter == 'z')
        return MTF_I32;
    if (letter == 'q')
        return MTF_I8;
    if (c->row->kind == MTF_OP_CAST && chance(c, 0.7))
        return (MtfDtype[]){ MTF_F32, MTF_BF16, MTF_I32, MTF_I64,
                             MTF_BOOL }[g_rand_int_range(c->rand, 0, 5)];
    if (mtf_operation_mask_has(mtf_operation_row(c->row->kind)->conditions, k) && chance(c, 0.5))
        return MTF_BOOL;
    return mtf_operation_mask_has(mtf_operation_row(c->row->kind)->wide_inputs, k)
               ? mtf_dtype_wide(c->dtype)
               : c->dtype;
}

/* Where a row leaves the choice between narrow and wide, or what it takes and bool, both. */
static MtfDtype output_type(const Case *c) {
    MtfDtypeRule rule = mtf_operation_row(c->row->kind)->dtype;
    if (rule == MTF_DTYPE_TRUTH && chance(c, 0.5))
        return MTF_BOOL;
    return rule == MTF_DTYPE_EITHER && chance(c, 0.5) ? mtf_dtype_wide(c->dtype) : c->dtype;
}

/* Adds the inputs and the operation; returns the first output, or -1 if this draw is not legal. */
static int make_operation(const Case *c) {
    int inputs[16], n = 0;
    bool all = chance(c, 0.5);
    for (const char *letter = c->row->inputs; *letter != 0; letter++) {
        if (*letter == 'O' && !all)
            break;
        if (*letter == 'O')
            continue;
        g_autofree char *name = g_strdup_printf("in%d", n);
        MtfShape shape = *letter == 'B' ? bias_shape_of(c) : shape_of(c, *letter);
        MtfDtype type = input_type(c, *letter, n);
        inputs[n++] = mtf_graph_add_input(
            c->graph, name, &shape, type,
            mtf_dtype_is_float(type) ? MTF_FEED_FEATURES : MTF_FEED_LABELS, NULL);
    }
    MtfShape output = shape_of(c, c->row->output);
    MtfNewOperation operation = { .name = "op",
                                  .kind = c->row->kind,
                                  .n_inputs = n,
                                  .inputs = inputs,
                                  .shape = c->row->output != 0 ? &output : NULL,
                                  .has_dtype = true,
                                  .dtype = output_type(c),
                                  .attributes = make_attributes(c) };
    return mtf_graph_add_operation(c->graph, &operation, NULL);
}

/* The size of what ids and labels choose from, and a little more. */
static double draw_id(const Case *c) {
    bool has_places = c->row->kind == MTF_OP_SLOT_IDS || c->row->kind == MTF_OP_DISPATCH ||
                      c->row->kind == MTF_OP_COMBINE || c->row->kind == MTF_OP_COMBINE_GATE_GRAD;
    bool has_experts = c->row->kind == MTF_OP_SLOTS || c->row->kind == MTF_OP_EXPERT_EINSUM ||
                       c->row->kind == MTF_OP_EXPERT_EINSUM_GRAD;
    gint32 experts = (gint32)mtf_graph_size(c->graph, c->twin);
    gint32 places = experts * (gint32)mtf_graph_size(c->graph, c->join);
    if (has_places || has_experts)
        return g_rand_int_range(c->rand, -1, (has_places ? places : experts) + 1);
    bool looks_up = c->row->kind == MTF_OP_EMBEDDING || c->row->kind == MTF_OP_EMBEDDING_GRAD;
    int dim = looks_up ? c->ids : c->x.dims[c->x.rank - 1];
    return g_rand_int_range(c->rand, -1, (gint32)mtf_graph_size(c->graph, dim) + 1);
}

/* States neither grow nor are corrected by more than what they say; logarithms are at most 0, or steps at least that
 * and rates at most. */
static double of_states(const Case *c, int k, double value) {
    bool scans = mtf_operation_row(c->row->kind)->scans;
    if (c->row->inputs[k] == 'E')
        return -fabs(value);
    return k == 3 ? fabs(value) / (scans ? 10 : -10) : value / 10;
}

/* An element of input `k`. */
static double draw_value(const Case *c, const MtfTensor *tensor, int k) {
    bool chooses = mtf_operation_mask_has(mtf_operation_row(c->row->kind)->integer_inputs, k);
    if (tensor->dtype == MTF_I8)
        return g_rand_int_range(c->rand, -127, 128);
    if (chooses)
        return draw_id(c);
    if (tensor->dtype == MTF_BOOL)
        return chance(c, 0.5);
    if (mtf_dtype_is_integer(tensor->dtype))
        return g_rand_int_range(c->rand, -4, 5);
    double value = g_rand_double_range(c->rand, c->row->positive ? 0.3 : -3, 3);
    if (keeps_states(c))
        value = of_states(c, k, value);
    else if (c->row->kind == MTF_OP_EQUAL || chance(c, 0.05))
        value = c->row->positive ? 1 : rint(value / 2);
    return tensor->dtype == MTF_F64    ? value
           : tensor->dtype == MTF_BF16 ? (double)mtf_bf16_wide(mtf_bf16_rounded((float)value))
                                       : (double)(float)value;
}

/* Half the distance of neighbours in bfloat16 is at most 2^-8 of them. A sum of more terms than one
 * pass takes is rounded between the passes too, where it is eight terms of at most 3. */
static double rounding(const Case *c, const MtfTensor *tensor, double value) {
    bool passes = mtf_graph_operation(c->graph, 0)->n_inputs > 8;
    return tensor->dtype == MTF_BF16 ? ldexp(fabs(value) + (passes ? 8 * 3 : 0), -8) : 0;
}

static void compare(const Case *c, const double *expected, const double *actual, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(c->graph, tensor);
    double tolerance = c->dtype == MTF_F64 && t->dtype == MTF_F64 ? 1e-12 : 1e-5;
    for (int64_t i = 0; i < mtf_graph_elements(c->graph, &t->shape); i++) {
        double scale = 1 + fabs(expected[i]);
        if (mtf_operation_row(c->row->kind)->kernel_class == MTF_CLASS_MATMUL)
            scale += 100;
        bool equal = expected[i] == actual[i];
        if (!equal &&
            !(fabs(expected[i] - actual[i]) <= tolerance * scale + rounding(c, t, expected[i]))) {
            g_autofree char *text = mtf_graph_tensor_format(c->graph, tensor);
            fail_msg("%s %s: element %d is %.17g, not %.17g", mtf_operation_row(c->row->kind)->name,
                     text, (int)i, actual[i], expected[i]);
        }
    }
}

/* Whether some dimension of one input of a product of two is nowhere else: then it is summed into
 * scratch, which the kernel cannot do without. */
static bool needs_scratch(const MtfGraph *graph) {
    const MtfOperation *operation = mtf_graph_operation(graph, 0);
    if (operation->n_inputs != 2 ||
        mtf_operation_row(operation->kind)->scratch == MTF_SCRATCH_SLOTS)
        return true;
    for (int k = 0; k < 2; k++) {
        const MtfShape *one = &mtf_graph_tensor(graph, operation->inputs[k])->shape;
        const MtfShape *other = &mtf_graph_tensor(graph, operation->inputs[1 - k])->shape;
        const MtfShape *out = &mtf_graph_tensor(graph, operation->outputs[0])->shape;
        for (int i = 0; i < one->rank; i++)
            if (mtf_shape_find(other, one->dims[i]) < 0 && mtf_shape_find(out, one->dims[i]) < 0)
                return true;
    }
    return false;
}

/* Slots are taken once: what is dispatched is moved, and a second time rounded again; and of several
 * choices in one place the last one would be told. */
static void take_slots_once(const Case *c, MtfReference *reference) {
    const MtfOperation *op = mtf_graph_operation(c->graph, 0);
    if (op->kind != MTF_OP_SLOT_IDS && (op->kind != MTF_OP_DISPATCH || c->dtype != MTF_BF16))
        return;
    double *slot = reference->values[op->inputs[1]];
    int64_t n = mtf_graph_elements(c->graph, &mtf_graph_tensor(c->graph, op->inputs[1])->shape);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            slot[i] = slot[i] == slot[j] ? -1 : slot[i];
}

/* Parts of a sum would be rounded each. */
static void keep_sums_whole(const MtfGraph *graph, MtfSlicing *slicing) {
    MtfIteration iteration;
    mtf_operation_iteration(graph, 0, &iteration);
    for (int i = 0; i < iteration.n; i++)
        if (iteration.index[i].reduced)
            slicing->parts[i] = 1;
}

/* Returns false when the draw is no legal operation. */
static bool run_case(const Row *row, guint32 seed, MtfDtype dtype) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(MtfGraph) graph = mtf_graph_new("case");
    Case c = { .row = row, .rand = rand, .graph = graph, .dtype = dtype };
    make_dimensions(&c);
    int output = make_operation(&c);
    if (output < 0)
        return false;
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 7);
    const MtfOperation *operation = mtf_graph_operation(graph, 0);
    for (int k = 0; k < operation->n_inputs; k++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, operation->inputs[k]);
        for (int64_t i = 0; i < mtf_graph_elements(graph, &tensor->shape); i++)
            reference->values[operation->inputs[k]][i] = draw_value(&c, tensor, k);
    }
    take_slots_once(&c, reference);
    mtf_reference_run(reference, 4);
    MtfSlicing slicing = { .in_place = chance(&c, 0.5), .scratch_limit = -1, .seed = 7, .step = 5 };
    for (int i = 0; i < MTF_MAX_INDEXES; i++)
        slicing.parts[i] = chance(&c, 0.5) ? 1 : g_rand_int_range(rand, 2, 5);
    if (mtf_graph_tensor(graph, output)->dtype == MTF_BF16)
        keep_sums_whole(graph, &slicing);
    if (dtype != MTF_BF16 && !needs_scratch(graph) && chance(&c, 0.3))
        slicing.scratch_limit = 0;
    double *results[MTF_MAX_OUTPUTS];
    mtf_kernel_run_sliced(graph, 0, reference->values, &slicing, results);
    for (int j = 0; j < operation->n_outputs; j++) {
        compare(&c, reference->values[operation->outputs[j]], results[j], operation->outputs[j]);
        g_free(results[j]);
    }
    return true;
}

TEST(every_row_matches_the_reference_on_any_slices) {
    static const MtfDtype types[] = { MTF_F32, MTF_F64, MTF_BF16 };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        int cases = rows[i].kind == MTF_OP_EINSUM ? 450 : 60, legal = 0;
        for (int k = 0; k < cases; k++)
            legal += run_case(&rows[i], (guint32)(1000 * i + (size_t)k), types[k % 3]);
        if (legal < cases / 4)
            fail_msg("%s: only %d of %d draws are legal", mtf_operation_row(rows[i].kind)->name,
                     legal, cases);
    }
}

/* Whether numbers of the type may stand where a row asks for floats. */
static bool takes(const MtfOperationRow *row, MtfDtype dtype) {
    bool moves = row->kernel_class == MTF_CLASS_MOVE && row->dtype != MTF_DTYPE_EITHER;
    if (row->kernel_class == MTF_CLASS_MOVE && row->integer_result)
        return dtype != MTF_BOOL; /* which counts */
    return moves || (dtype == MTF_BOOL ? row->truths : row->integers);
}

TEST(rows_that_take_integers_and_bools_match_it_there_too) {
    static const MtfDtype types[] = { MTF_I32, MTF_I64, MTF_BOOL };
    int taken = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (int t = 0; t < 3; t++) {
            int legal = 0, cases = takes(mtf_operation_row(rows[i].kind), types[t]) ? 20 : 0;
            taken += cases > 0;
            for (int k = 0; k < cases; k++)
                legal += run_case(&rows[i], (guint32)(1000 * i + (size_t)k), types[t]);
            if (legal < cases / 4)
                fail_msg("%s of %s: only %d of %d draws are legal",
                         mtf_operation_row(rows[i].kind)->name, mtf_dtype_name(types[t]), legal,
                         cases);
        }
    }
    assert_true(taken > 40);
}

TEST(every_primitive_row_has_a_kernel) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
        const MtfOperationRow *row = mtf_operation_row(kind);
        if ((mtf_kernel(kind) == NULL) != row->composite)
            fail_msg("%s: %s", row->name,
                     row->composite ? "a composite has a kernel" : "no kernel");
    }
}

/* A stack takes several calls: test_layout_invariance.c trains with them. */
TEST(every_kernel_is_tested_here) {
    for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
        /* those with windows are in windows/test_kernel_windows.c */
        const MtfOperationRow *row = mtf_operation_row(kind);
        bool found = row->windows != MTF_WINDOWS_NONE && !row->samples;
        /* which reads what lies with the host, is in session/test_offloaded_bits.c */
        found = found || row->host == MTF_HOST_FROM;
        /* which undoes what was sorted, is in session/test_sorted_columns.c */
        found = found || kind == MTF_OP_SORT_GRAD;
        for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
            found = found || rows[i].kind == kind;
        if (!found && mtf_kernel(kind) != NULL && kind != MTF_OP_LOOP_STACK)
            fail_msg("%s is not in the list", mtf_operation_row(kind)->name);
    }
}
