// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/reference/reference.h"

#include "layouts/graph/random.h"
#include "tests/support/reference/reference_expression.h"
#include "tests/support/reference/reference_point.h"

#include <math.h>
#include <string.h>

static double einsum(const Point *p) {
    double product = 1;
    for (int k = 0; k < p->n; k++)
        product *= p->x[k];
    return product;
}

static double add(const Point *p) {
    double sum = 0;
    for (int k = 0; k < p->n; k++)
        sum += p->x[k];
    return sum;
}

static double sigmoid_of(double x) {
    return 1 / (1 + exp(-x));
}

/* gelu(x) = x (1 + tanh(c (x + 0.044715 x^3))) / 2 with c = sqrt(2 / pi). */
static double gelu_of(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / G_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) {
    double c = sqrt(2 / G_PI), t = tanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

static double silu_slope(double x) {
    double s = sigmoid_of(x);
    return s * (1 + x * (1 - s));
}

TERM(subtract, x - y)
TERM(multiply, x *y)
TERM(divide, x / y)
TERM(maximum, fmax(x, y))
TERM(minimum, fmin(x, y))
TERM(equal, x == y)
TERM(less, x < y)
TERM(less_equal, x <= y)
TERM(greater, x > y)
TERM(greater_equal, x >= y)
TERM(not_equal, x != y)
TERM(where, x != 0 ? y : z)
TERM(modulo, y == 0 && mtf_dtype_is_integer(output(p)->dtype) ? 0 : x - y * floor(x / y))
TERM(power, pow(x, y))
TERM(logical_not, x == 0)
TERM(logical_and, x != 0 && y != 0)
TERM(logical_or, x != 0 || y != 0)
TERM(logical_xor, (x != 0) != (y != 0))
TERM(raise_term, pow(x, p->a->exponent))
TERM(reciprocal, 1 / x)
TERM(ceil_term, ceil(x))
TERM(floor_term, floor(x))
TERM(clip, fmin(fmax(x, p->a->low), p->a->high))
TERM(leaky_relu, x > 0 ? x : p->a->slope * x)
TERM(elu, x > 0 ? x : p->a->slope * expm1(x))
TERM(gelu_exact, x *erfc(-x / sqrt(2)) / 2)
TERM(gelu_exact_grad, (erfc(-x / sqrt(2)) / 2 + x * exp(-x * x / 2) / sqrt(2 * G_PI)) * y)
TERM(softplus, x > 30 ? x : log1p(exp(x)))
TERM(sin_term, sin(x))
TERM(cos_term, cos(x))
TERM(erf_term, erf(x))
TERM(truth, x != 0)
TERM(scale, p->a->factor *x)
TERM(relu, x > 0 ? x : 0)
TERM(gelu, gelu_of(x))
TERM(silu, x *sigmoid_of(x))
TERM(tanh_term, tanh(x))
TERM(sigmoid, sigmoid_of(x))
TERM(exp_term, exp(x))
TERM(log_term, log(x))
TERM(sqrt_term, sqrt(x))
TERM(rsqrt, 1 / sqrt(x))
TERM(square, x *x)
TERM(negate, -x)
TERM(abs_term, fabs(x))
TERM(sign, (x > 0) - (x < 0))
TERM(same, x)
TERM(mean, x / p->count)
TERM(cast, output(p)->dtype == MTF_BOOL             ? x != 0
           : mtf_dtype_is_integer(output(p)->dtype) ? trunc(x)
                                                    : x)
TERM(constant, p->a->value)
TERM(range, (double)p->coordinate[output(p)->shape.dims[0]])
TERM(relu_grad, x > 0 ? y : 0)
TERM(gelu_grad, gelu_slope(x) * y)
TERM(silu_grad, silu_slope(x) * y)
TERM(tanh_grad, (1 - x * x) * y)
TERM(sigmoid_grad, x *(1 - x) * y)
TERM(softmax_grad, x *(y - z))

/* The statistics' pieces. */
TERM(sum_exp, exp(x - y))
TERM(softmax_apply, exp(x - y) / z)
TERM(variance, (x - y) * (x - y) / p->count)
TERM(cross_entropy, (x + log(y) - z) * (p->n > 3 ? u : 1))

static bool is_masked(const Point *p) {
    return p->coordinate[p->a->memory] > p->coordinate[p->a->query];
}

TERM(causal_mask, is_masked(p) ? -1e30 : x)
TERM(causal_zero, is_masked(p) ? 0 : x)

static double dropout(const Point *p) {
    const char *name = p->a->stream != NULL ? p->a->stream : p->operation->name;
    MtfRandom random = mtf_random_stream(p->reference->seed, name,
                                         p->step | (uint64_t)p->reference->element << 40);
    return mtf_random_keeps(&random, p->a->rate, p->element) ? p->x[0] / (1 - p->a->rate) : 0;
}

/* Lookups: at each point of the whole vocabulary, what `id` chooses. */
static double chosen(const Point *p, int dim, double id, double value) {
    return (double)p->coordinate[dim] == id ? value : 0;
}

TERM(embedding, chosen(p, missing(&input(p, 0)->shape, &output(p)->shape), y, x))
TERM(label_logit, chosen(p, missing(&input(p, 0)->shape, &input(p, 1)->shape), y, x))

/* What is added counts once: at the first of the points that meet in an element. */
static double embedding_grad(const Point *p) {
    const MtfShape *ids = &input(p, 0)->shape;
    bool first = p->n > 2;
    for (int i = 0; i < ids->rank; i++)
        first = first && (p->coordinate[ids->dims[i]] == 0 ||
                          mtf_shape_find(&output(p)->shape, ids->dims[i]) >= 0);
    return chosen(p, missing(&output(p)->shape, &input(p, 1)->shape), p->x[0], p->x[1]) +
           (first ? p->x[2] : 0);
}

static double cross_entropy_grad(const Point *p) {
    const double *x = p->x;
    int classes = missing(&input(p, 0)->shape, &input(p, 1)->shape);
    double softmax = exp(x[0] - x[2]) / x[3];
    return (softmax - chosen(p, classes, x[1], 1)) * x[4] * (p->n > 5 ? x[5] : 1);
}

static double root_of(const Point *p, double variance_value) {
    return 1 / sqrt(variance_value + p->a->epsilon);
}

TERM(normalize, (x - y) * root_of(p, z) * u + (p->n > 4 ? v : 0))
TERM(normalize_dot, x *(y - z) * root_of(p, u) * v)
TERM(normalize_scale_grad, x *(y - z) * root_of(p, u))

static double normalize_grad(const Point *p) {
    const double *x = p->x;
    const MtfGraph *graph = p->reference->graph;
    double n = (double)mtf_graph_elements(graph, &input(p, 1)->shape) /
               (double)mtf_graph_elements(graph, &input(p, 2)->shape);
    double r = root_of(p, x[3]), normal = (x[1] - x[2]) * r;
    return r * (x[0] * x[4] - x[5] / n - normal * x[6] / n);
}

TERM(clip_factor, fmin(1, p->a->limit / sqrt(x)))

/* The frequency of pair i by its wave's length, as the configuration files of Llama 3.1 put it, or by its
 * number among `pairs`, as YaRN does (exponent * pairs is that number). */
static double rotary_frequency(const MtfAttributes *a, double exponent, double pairs, double text) {
    if (a->growth > 0) {
        double longest = fmax(text, a->context), width = 2 * pairs;
        double grown = a->growth * longest / a->context - (a->growth - 1);
        return pow(a->base * pow(grown, width / fmax(width - 2, 1)), -exponent);
    }
    double f = 1 / pow(a->base, exponent), length = 2 * G_PI / f;
    if (a->divisors != NULL) {
        bool longer = a->long_divisors != NULL && text > a->context;
        g_auto(GStrv) list = g_strsplit(longer ? a->long_divisors : a->divisors, " ", -1);
        return f / g_ascii_strtod(list[(int)rint(exponent * pairs)], NULL);
    }
    if (a->context > 0 && a->ramp == 1) {
        double mask = fmin(fmax((exponent * pairs - a->low) / (a->high - a->low), 0), 1);
        return f / a->stretch * mask + f * (1 - mask);
    }
    if (a->context == 0 || length < a->context / a->high)
        return f;
    if (length > a->context / a->low)
        return f / a->stretch;
    double smooth = (a->context / length - a->low) / (a->high - a->low);
    return (1 - smooth) * f / a->stretch + smooth * f;
}

static double rotary(const Point *p) {
    int dim = p->a->dimension;
    int64_t n = p->a->rotated > 0 ? (int64_t)p->a->rotated : size_of(p, dim);
    int64_t j = p->coordinate[dim], half = n / 2;
    if (j >= n)
        return p->x[0];
    bool adjacent = p->a->adjacent == 1, second = adjacent ? j % 2 == 1 : j >= half;
    int64_t pair = adjacent ? j / 2 : j % half, apart = adjacent ? 1 : half;
    double begin = p->operation->n_inputs > 1 ? p->x[1] : 0;
    double text =
        begin + (p->operation->n_inputs > 2 ? p->x[2] + 1 : (double)size_of(p, p->a->position));
    double u = p->a->angle * (begin + (double)p->coordinate[p->a->position]) *
               rotary_frequency(p->a, (double)(2 * pair) / (double)n, (double)half, text);
    double partner = at(p, 0, dim, second ? j - apart : j + apart);
    return p->a->gain * (p->x[0] * cos(u) + (second ? partner : -partner) * sin(u));
}

static double log_sum_exp(const Point *p, int dim) {
    double highest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < size_of(p, dim); i++)
        highest = fmax(highest, at(p, 0, dim, i));
    for (int64_t i = 0; i < size_of(p, dim); i++)
        sum += exp(at(p, 0, dim, i) - highest);
    return highest + log(sum);
}

TERM(softmax, exp(x - log_sum_exp(p, p->a->dimension)))

static double layer_norm(const Point *p) {
    int dim = p->a->dimension;
    double n = (double)size_of(p, dim), average = 0, spread = 0;
    for (int64_t i = 0; i < size_of(p, dim); i++)
        average += at(p, 0, dim, i) / n;
    for (int64_t i = 0; i < size_of(p, dim); i++)
        spread += pow(at(p, 0, dim, i) - average, 2) / n;
    return (p->x[0] - average) / sqrt(spread + p->a->epsilon) * p->x[1] + (p->n > 2 ? p->x[2] : 0);
}

static double rms_norm(const Point *p) {
    int dim = p->a->dimension;
    double sum = 0;
    for (int64_t i = 0; i < size_of(p, dim); i++)
        sum += pow(at(p, 0, dim, i), 2);
    return p->x[0] / sqrt(sum / (double)size_of(p, dim) + p->a->epsilon) * p->x[1];
}

/* Evaluated at every class; only the label's counts. */
static double softmax_cross_entropy(const Point *p) {
    int classes = missing(&input(p, 0)->shape, &input(p, 1)->shape);
    double lse = log_sum_exp(p, classes), n = (double)size_of(p, classes);
    double mask = (p->n > 2 ? p->x[2] : 1) * (p->a->ignore != 0 && p->x[1] < 0 ? 0 : 1);
    bool here = (double)p->coordinate[classes] == p->x[1];
    /* The parts that every class, or the label's alone, or the first for all, brings. */
    double each = p->a->smoothing * (lse - p->x[0]) / n, z = p->a->z_loss * lse * lse;
    return mask * (each + (here ? (1 - p->a->smoothing) * (lse - p->x[0]) : 0) +
                   (p->coordinate[classes] == 0 ? z : 0));
}

/* The logarithm of the sum: evaluate_output takes it. */
TERM(log_sum_exp_all, exp(x))

static double quantized(const Point *p) {
    return p->x[0] * p->x[1] * p->x[2];
}

static MtfRandom stream(const Point *p) {
    const char *name = p->a->stream != NULL ? p->a->stream : p->operation->name;
    return mtf_random_stream(p->reference->seed, name,
                             p->step | (uint64_t)p->reference->element << 40);
}

static double random_uniform(const Point *p) {
    MtfRandom random = stream(p);
    return p->a->low + (p->a->high - p->a->low) * mtf_random_uniform(&random, p->element);
}

static double random_normal(const Point *p) {
    MtfRandom random = stream(p);
    return p->a->mean + p->a->deviation * mtf_random_normal(&random, p->element);
}

static double one_hot(const Point *p) {
    return chosen(p, missing(&output(p)->shape, &input(p, 0)->shape), p->x[0], 1);
}

static double expression(const Point *p) {
    return mtf_reference_expression(p->a->expression, p->a->arguments, p->x);
}

/* How terms meet in an element. */
typedef struct {
    double start;
    double (*meet)(double a, double b);
    double (*last)(double total); /* NULL: as it is */
} Joining;

static double sum_of(double a, double b) {
    return a + b;
}

static double product_of(double a, double b) {
    return a * b;
}

static const Joining sums = { 0, sum_of, NULL };
static const Joining slots[MTF_OPERATIONS] = {
    [MTF_OP_SLOT_IDS] = { -1, fmax, NULL },          [MTF_OP_MAX_POOL] = { -INFINITY, fmax, NULL },
    [MTF_OP_REDUCE_MAX] = { -INFINITY, fmax, NULL }, [MTF_OP_REDUCE_MIN] = { INFINITY, fmin, NULL },
    [MTF_OP_REDUCE_ANY] = { -INFINITY, fmax, NULL }, [MTF_OP_REDUCE_ALL] = { INFINITY, fmin, NULL },
    [MTF_OP_LOG_SUM_EXP] = { 0, sum_of, log },       [MTF_OP_REDUCE_PROD] = { 1, product_of, NULL },
};

static const MtfReferenceTerm terms[MTF_OPERATIONS] = {
    [MTF_OP_EINSUM] = einsum,
    [MTF_OP_ADD] = add,
    [MTF_OP_SUBTRACT] = subtract,
    [MTF_OP_MULTIPLY] = multiply,
    [MTF_OP_DIVIDE] = divide,
    [MTF_OP_MAXIMUM] = maximum,
    [MTF_OP_MINIMUM] = minimum,
    [MTF_OP_EQUAL] = equal,
    [MTF_OP_RESHAPE] = same,
    [MTF_OP_RANDOM_UNIFORM] = random_uniform,
    [MTF_OP_RANDOM_NORMAL] = random_normal,
    [MTF_OP_GATHER] = embedding,
    [MTF_OP_SCATTER_ADD] = embedding_grad,
    [MTF_OP_REDUCE_PROD] = same,
    [MTF_OP_LESS] = less,
    [MTF_OP_LESS_EQUAL] = less_equal,
    [MTF_OP_GREATER] = greater,
    [MTF_OP_GREATER_EQUAL] = greater_equal,
    [MTF_OP_NOT_EQUAL] = not_equal,
    [MTF_OP_WHERE] = where,
    [MTF_OP_MODULO] = modulo,
    [MTF_OP_POWER] = power,
    [MTF_OP_LOGICAL_NOT] = logical_not,
    [MTF_OP_LOGICAL_AND] = logical_and,
    [MTF_OP_LOGICAL_OR] = logical_or,
    [MTF_OP_LOGICAL_XOR] = logical_xor,
    [MTF_OP_RAISE] = raise_term,
    [MTF_OP_RECIPROCAL] = reciprocal,
    [MTF_OP_CEIL] = ceil_term,
    [MTF_OP_FLOOR] = floor_term,
    [MTF_OP_CLIP] = clip,
    [MTF_OP_LEAKY_RELU] = leaky_relu,
    [MTF_OP_ELU] = elu,
    [MTF_OP_GELU_EXACT] = gelu_exact,
    [MTF_OP_GELU_EXACT_GRAD] = gelu_exact_grad,
    [MTF_OP_SOFTPLUS] = softplus,
    [MTF_OP_SIN] = sin_term,
    [MTF_OP_COS] = cos_term,
    [MTF_OP_ERF] = erf_term,
    [MTF_OP_REDUCE_MIN] = same,
    [MTF_OP_REDUCE_ANY] = truth,
    [MTF_OP_REDUCE_ALL] = truth,
    [MTF_OP_LOG_SUM_EXP] = log_sum_exp_all,
    [MTF_OP_ONE_HOT] = one_hot,
    [MTF_OP_SCALE] = scale,
    [MTF_OP_RELU] = relu,
    [MTF_OP_GELU] = gelu,
    [MTF_OP_SILU] = silu,
    [MTF_OP_TANH] = tanh_term,
    [MTF_OP_SIGMOID] = sigmoid,
    [MTF_OP_EXP] = exp_term,
    [MTF_OP_LOG] = log_term,
    [MTF_OP_SQRT] = sqrt_term,
    [MTF_OP_RSQRT] = rsqrt,
    [MTF_OP_SQUARE] = square,
    [MTF_OP_NEGATE] = negate,
    [MTF_OP_ABS] = abs_term,
    [MTF_OP_SIGN] = sign,
    [MTF_OP_REDUCE_SUM] = same,
    [MTF_OP_REDUCE_MEAN] = mean,
    [MTF_OP_REDUCE_MAX] = same,
    [MTF_OP_RENAME] = same,
    [MTF_OP_TRANSPOSE] = same,
    [MTF_OP_BROADCAST] = same,
    [MTF_OP_CAST] = cast,
    [MTF_OP_LOOP_BEGIN] = same,
    [MTF_OP_STOP_GRADIENT] = same,
    [MTF_OP_TO_HOST] = same,
    [MTF_OP_FROM_HOST] = same,
    [MTF_OP_IN_TRAIN_PHASE] = same,
    [MTF_OP_CONSTANT] = constant,
    [MTF_OP_RANGE] = range,
    [MTF_OP_DROPOUT] = dropout,
    [MTF_OP_CAUSAL_MASK] = causal_mask,
    [MTF_OP_ROTARY] = rotary,
    [MTF_OP_EMBEDDING] = embedding,
    [MTF_OP_QUANTIZED_EINSUM] = quantized,
    [MTF_OP_SOFTMAX] = softmax,
    [MTF_OP_LAYER_NORM] = layer_norm,
    [MTF_OP_RMS_NORM] = rms_norm,
    [MTF_OP_SOFTMAX_CROSS_ENTROPY] = softmax_cross_entropy,
    [MTF_OP_SUM_EXP] = sum_exp,
    [MTF_OP_SOFTMAX_APPLY] = softmax_apply,
    [MTF_OP_VARIANCE] = variance,
    [MTF_OP_NORMALIZE] = normalize,
    [MTF_OP_LABEL_LOGIT] = label_logit,
    [MTF_OP_CROSS_ENTROPY] = cross_entropy,
    [MTF_OP_RELU_GRAD] = relu_grad,
    [MTF_OP_GELU_GRAD] = gelu_grad,
    [MTF_OP_SILU_GRAD] = silu_grad,
    [MTF_OP_TANH_GRAD] = tanh_grad,
    [MTF_OP_SIGMOID_GRAD] = sigmoid_grad,
    [MTF_OP_CAUSAL_ZERO] = causal_zero,
    [MTF_OP_EMBEDDING_GRAD] = embedding_grad,
    [MTF_OP_SOFTMAX_GRAD] = softmax_grad,
    [MTF_OP_NORMALIZE_DOT] = normalize_dot,
    [MTF_OP_NORMALIZE_SCALE_GRAD] = normalize_scale_grad,
    [MTF_OP_NORMALIZE_GRAD] = normalize_grad,
    [MTF_OP_CROSS_ENTROPY_GRAD] = cross_entropy_grad,
    [MTF_OP_ACCUMULATE] = same,
    [MTF_OP_CLIP_FACTOR] = clip_factor,
    [MTF_OP_EXPRESSION] = expression,
};

static MtfReferenceTerm term_of(int kind) {
    static const MtfReferenceTerm *const files[] = { terms, mtf_reference_updates,
                                                     mtf_reference_moves, mtf_reference_routing,
                                                     mtf_reference_windows };
    for (int f = 0; f < (int)G_N_ELEMENTS(files); f++)
        if (files[f][kind] != NULL)
            return files[f][kind];
    g_assert_not_reached();
}

/* The dimensions of all the operation's tensors, each once; of a rename only the new name. */
static MtfShape space_of(const MtfGraph *graph, const MtfOperation *operation) {
    MtfShape space = mtf_graph_tensor(graph, operation->outputs[0])->shape;
    for (int k = 0; k < operation->n_inputs && operation->kind != MTF_OP_RENAME; k++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, operation->inputs[k])->shape;
        for (int i = 0; i < shape->rank; i++)
            if (mtf_shape_find(&space, shape->dims[i]) < 0)
                g_assert(mtf_shape_append(&space, shape->dims[i]));
    }
    return space;
}

/* Sets the coordinates of the `number`-th point of `space`. */
static void move_to(Point *p, const MtfShape *space, int64_t number) {
    for (int i = space->rank - 1; i >= 0; i--) {
        p->coordinate[space->dims[i]] = number % size_of(p, space->dims[i]);
        number /= size_of(p, space->dims[i]);
    }
    if (p->operation->kind == MTF_OP_RENAME)
        p->coordinate[p->a->from] = p->coordinate[p->a->to];
    for (int k = 0; k < p->n; k++)
        p->x[k] = p->reference->values[p->operation->inputs[k]][offset_of(p, &input(p, k)->shape)];
    p->element = offset_of(p, &output(p)->shape);
}

static void evaluate_output(Point *p, const MtfShape *space) {
    const Joining *row = &slots[p->operation->kind], *m = row->meet != NULL ? row : &sums;
    double *result = p->reference->values[p->operation->outputs[p->output]];
    int64_t elements = mtf_graph_elements(p->reference->graph, &output(p)->shape);
    int64_t points = mtf_graph_elements(p->reference->graph, space);
    MtfReferenceTerm term = term_of(p->operation->kind);
    p->count = (double)points / (double)elements;
    for (int64_t i = 0; i < elements; i++)
        result[i] = m->start;
    for (int64_t i = 0; i < points; i++) {
        move_to(p, space, i);
        result[p->element] = m->meet(result[p->element], term(p));
    }
    for (int64_t i = 0; p->operation->kind == MTF_OP_MAX_POOL && p->output == 1 && i < elements;
         i++)
        result[i] = isinf(result[i]) ? 0 : fabs(result[i]);
    for (int64_t i = 0; m->last != NULL && i < elements; i++)
        result[i] = m->last(result[i]);
}

/* Between one element of a tensor along the loop's dimension and a tensor without it. */
static void loop_element(Point *p, bool stacks) {
    const MtfGraph *graph = p->reference->graph;
    int x = p->operation->inputs[0], y = p->operation->outputs[0];
    int many = stacks ? y : x, one = stacks ? x : y;
    const MtfShape *shape = &mtf_graph_tensor(graph, one)->shape;
    for (int64_t i = 0; i < mtf_graph_elements(graph, shape); i++) {
        stand_at(p, shape, i);
        p->coordinate[p->a->dimension] = p->reference->element;
        int64_t at = offset_of(p, &mtf_graph_tensor(graph, many)->shape);
        double *there = &p->reference->values[many][at], *here = &p->reference->values[one][i];
        *(stacks ? there : here) = *(stacks ? here : there);
    }
}

static void hand_on(MtfReference *reference, const MtfOperation *next) {
    const MtfShape *shape = &mtf_graph_tensor(reference->graph, next->outputs[0])->shape;
    memcpy(reference->values[next->inputs[0]], reference->values[next->outputs[0]],
           sizeof(double) * (size_t)mtf_graph_elements(reference->graph, shape));
}

static void copy_elements(const Point *p, int from) {
    const MtfShape *shape = &mtf_graph_tensor(p->reference->graph, p->operation->outputs[0])->shape;
    memcpy(p->reference->values[p->operation->outputs[0]], p->reference->values[from],
           sizeof(double) * (size_t)mtf_graph_elements(p->reference->graph, shape));
}

static void reshape(Point *p) {
    copy_elements(p, p->operation->inputs[0]);
}

static void take_next(Point *p) {
    copy_elements(p, p->operation->inputs[1]);
}

static void slice_element(Point *p) {
    loop_element(p, false);
}

static void stack_element(Point *p) {
    loop_element(p, true);
}

/* What is no sum of terms, keyed like the operation table. */
static void (*const wholes[MTF_OPERATIONS])(Point *p) = {
    [MTF_OP_ATTENTION] = mtf_reference_attention,
    [MTF_OP_CACHED_ATTENTION] = mtf_reference_attention,
    [MTF_OP_ATTENTION_FURTHER] = mtf_reference_attention_further,
    [MTF_OP_ATTENTION_GRAD] = mtf_reference_attention_grad,
    [MTF_OP_ATTENTION_BIAS_GRAD] = mtf_reference_attention_grad,
    [MTF_OP_LINEAR_ATTENTION] = mtf_reference_linear_attention,
    [MTF_OP_KEPT_LINEAR_ATTENTION] = mtf_reference_linear_attention,
    [MTF_OP_LINEAR_ATTENTION_GRAD] = mtf_reference_linear_attention_grad,
    [MTF_OP_DELTA_RULE_GRAD] = mtf_reference_linear_attention_grad,
    [MTF_OP_SELECTIVE_SCAN] = mtf_reference_linear_attention,
    [MTF_OP_KEPT_SELECTIVE_SCAN] = mtf_reference_linear_attention,
    [MTF_OP_SELECTIVE_SCAN_GRAD] = mtf_reference_linear_attention_grad,
    [MTF_OP_LOOP_SLICE] = slice_element,
    [MTF_OP_LOOP_STACK] = stack_element,
    [MTF_OP_LOOP_NEXT] = take_next,
    [MTF_OP_CACHE_UPDATE] = mtf_reference_cache_update,
    [MTF_OP_RESHAPE] = reshape,
};

static void evaluate(MtfReference *reference, const MtfOperation *operation, uint64_t step) {
    g_autofree double *x = g_new0(double, operation->n_inputs);
    g_autofree int64_t *coordinate = g_new0(int64_t, reference->graph->dimensions->len);
    MtfShape space = space_of(reference->graph, operation);
    Point whole = { .reference = reference,
                    .operation = operation,
                    .step = step,
                    .a = &operation->attributes,
                    .coordinate = coordinate };
    if (wholes[operation->kind] != NULL) {
        wholes[operation->kind](&whole);
        return;
    }
    for (int k = 0; k < operation->n_outputs; k++) {
        Point point = { .reference = reference,
                        .operation = operation,
                        .a = &operation->attributes,
                        .output = k,
                        .n = operation->n_inputs,
                        .x = x,
                        .coordinate = coordinate,
                        .t = (double)step + 1,
                        .step = step };
        evaluate_output(&point, &space);
    }
}

MtfReference *mtf_reference_new(const MtfGraph *graph, uint64_t seed) {
    MtfReference *reference = g_new0(MtfReference, 1);
    reference->graph = graph;
    reference->seed = seed;
    reference->n_values = (int)graph->tensors->len;
    reference->values = g_new0(double *, graph->tensors->len);
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        int64_t elements = mtf_graph_elements(graph, &tensor->shape);
        reference->values[t] = g_new0(double, elements);
        MtfRandom random = mtf_random_initial_stream(seed, tensor->name);
        for (int64_t i = 0; i < elements && tensor->source == MTF_SOURCE_VARIABLE; i++)
            reference->values[t][i] = mtf_random_initial(&random, &tensor->init, i);
    }
    return reference;
}

void mtf_reference_free(MtfReference *reference) {
    if (reference == NULL)
        return;
    for (int t = 0; t < reference->n_values; t++)
        g_free(reference->values[t]);
    g_free(reference->values);
    g_free(reference);
}

/* How many values an int32 input may take: what its readers choose from. */
static int64_t choices(const MtfGraph *graph, int tensor) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *operation = mtf_graph_operation(graph, i);
        if (operation->n_inputs < 2 || operation->inputs[1] != tensor)
            continue;
        const MtfShape *from = &mtf_graph_tensor(graph, operation->inputs[0])->shape;
        const MtfShape *chosen_by = operation->kind == MTF_OP_EMBEDDING
                                        ? &mtf_graph_tensor(graph, operation->outputs[0])->shape
                                        : &mtf_graph_tensor(graph, tensor)->shape;
        return mtf_graph_size(graph, missing(from, chosen_by));
    }
    return 2;
}

void mtf_reference_fill_inputs(MtfReference *reference, uint64_t seed) {
    const MtfGraph *graph = reference->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_INPUT)
            continue;
        MtfRandom random = mtf_random_stream(seed, tensor->name, 0);
        for (int64_t i = 0; i < mtf_graph_elements(graph, &tensor->shape); i++) {
            double uniform = mtf_random_uniform(&random, i);
            if (mtf_dtype_is_integer(tensor->dtype))
                reference->values[t][i] = floor(uniform * (double)choices(graph, t));
            else if (tensor->feed == MTF_FEED_MASK || tensor->dtype == MTF_BOOL)
                reference->values[t][i] = uniform < 0.75;
            else
                reference->values[t][i] = mtf_random_normal(&random, i);
        }
    }
}

/* Operations [begin, end) of a loop, once for each element of its dimension. */
static void run_loop(MtfReference *reference, int begin, int end, uint64_t step) {
    const MtfGraph *graph = reference->graph;
    const MtfLoop *loop =
        &g_array_index(graph->loops, MtfLoop, mtf_graph_operation(graph, begin)->loop - 1);
    int64_t count = mtf_graph_size(graph, loop->dimension);
    for (int64_t k = 0; k < count; k++) {
        reference->element = loop->reverse ? count - 1 - k : k;
        for (int i = begin; i < end; i++)
            evaluate(reference, mtf_graph_operation(graph, i), step);
        for (int i = begin; i < end; i++)
            if (mtf_graph_operation(graph, i)->kind == MTF_OP_LOOP_NEXT)
                hand_on(reference, mtf_graph_operation(graph, i));
    }
    reference->element = 0;
}

void mtf_reference_run(MtfReference *reference, uint64_t step) {
    const MtfGraph *graph = reference->graph;
    int n = (int)graph->operations->len;
    for (int i = 0, end; i < n; i = end) {
        int loop = mtf_graph_operation(graph, i)->loop;
        for (end = i + 1; loop > 0 && end < n && mtf_graph_operation(graph, end)->loop == loop;)
            end++;
        if (loop > 0)
            run_loop(reference, i, end, step);
        else
            evaluate(reference, mtf_graph_operation(graph, i), step);
    }
}

void mtf_reference_update(MtfReference *reference) {
    for (guint i = 0; i < reference->graph->updates->len; i++) {
        const MtfUpdate *update = &g_array_index(reference->graph->updates, MtfUpdate, i);
        const MtfShape *shape = &mtf_graph_tensor(reference->graph, update->variable)->shape;
        memcpy(reference->values[update->variable], reference->values[update->value],
               sizeof(double) * (size_t)mtf_graph_elements(reference->graph, shape));
    }
}

double *mtf_reference_find(const MtfReference *reference, const char *name) {
    int tensor = mtf_graph_find_tensor(reference->graph, name);
    g_assert(tensor >= 0);
    return reference->values[tensor];
}
