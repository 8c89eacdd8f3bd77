// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/reference.h"

#include "layouts/graph/random.h"
#include "tests/support/reference_expression.h"

#include <math.h>
#include <string.h>

/* One point of an operation's space, and everything a term may depend on. */
typedef struct {
    const MtfReference *reference;
    const MtfOperation *operation;
    const MtfAttributes *a;
    int output;          /* which output is computed */
    int n;               /* inputs */
    double *x;           /* the inputs at this point */
    int64_t *coordinate; /* by dimension */
    double count;        /* points that meet in one output element */
    int64_t element;     /* global index of the output element */
    double t;            /* number of this step, from 1 */
    uint64_t step;       /* the same from 0 */
} Point;

typedef double (*Term)(const Point *p);

static const MtfTensor *input(const Point *p, int k) {
    return mtf_graph_tensor(p->reference->graph, p->operation->inputs[k]);
}

static const MtfTensor *output(const Point *p) {
    return mtf_graph_tensor(p->reference->graph, p->operation->outputs[p->output]);
}

/* The dimension that `whole` has and `part` lacks. */
static int missing(const MtfShape *whole, const MtfShape *part) {
    for (int i = 0; i < whole->rank; i++)
        if (mtf_shape_find(part, whole->dims[i]) < 0)
            return whole->dims[i];
    g_return_val_if_reached(0);
}

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

/* The input's value at this point, but at `place` along `dim`. */
static double at(const Point *p, int k, int dim, int64_t place) {
    const MtfTensor *tensor = input(p, k);
    int64_t offset = 0;
    for (int i = 0; i < tensor->shape.rank; i++) {
        int d = tensor->shape.dims[i];
        offset =
            offset * mtf_graph_size(p->reference->graph, d) + (d == dim ? place : p->coordinate[d]);
    }
    return p->reference->values[p->operation->inputs[k]][offset];
}

static int64_t size_of(const Point *p, int dim) {
    return mtf_graph_size(p->reference->graph, dim);
}

/* One-line terms; x is the first input, y the second, z the third and so on. */
#define TERM(name, expression)              \
    static double name(const Point *p) {    \
        double x = p->n > 0 ? p->x[0] : 0;  \
        double y = p->n > 1 ? p->x[1] : 0;  \
        double z = p->n > 2 ? p->x[2] : 0;  \
        double u = p->n > 3 ? p->x[3] : 0;  \
        double v = p->n > 4 ? p->x[4] : 0;  \
        (void)x, (void)y, (void)z, (void)u; \
        (void)v;                            \
        return (expression);                \
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
TERM(modulo, y == 0 && output(p)->dtype == MTF_I32 ? 0 : x - y * floor(x / y))
TERM(power, pow(x, y))
TERM(logical_not, x == 0)
TERM(logical_and, x != 0 && y != 0)
TERM(logical_or, x != 0 || y != 0)
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
TERM(cast, output(p)->dtype == MTF_I32 ? trunc(x) : x)
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

static double learning_rate(const Point *p) {
    const MtfAttributes *a = p->a;
    const char *schedule = a->schedule != NULL ? a->schedule : "constant";
    double warm = a->warmup > 0 ? fmin(1, p->t / a->warmup) : 1;
    if (strcmp(schedule, "constant") == 0)
        return a->rate;
    if (strcmp(schedule, "linear_warmup") == 0)
        return a->rate * warm;
    if (strcmp(schedule, "inverse_sqrt") == 0)
        return a->rate * fmin(warm, sqrt(fmax(a->warmup, 1) / p->t));
    if (strcmp(schedule, "step") == 0)
        return a->rate * warm * pow(a->drop, floor(fmax(0, p->t - a->warmup) / a->period));
    if (strcmp(schedule, "wsd") == 0) {
        bool stable = p->t <= a->total - a->cooldown;
        double left = fmax(0, a->total - p->t) / a->cooldown;
        return a->rate * warm * (stable ? 1 : a->final + (1 - a->final) * left);
    }
    double length = a->total - a->warmup;
    double done = length > 0 ? CLAMP((p->t - a->warmup) / length, 0, 1) : 1;
    if (strcmp(schedule, "linear") == 0)
        return a->rate * warm * (1 - done + done * a->final);
    if (strcmp(schedule, "polynomial") == 0)
        return a->rate * warm * (a->final + (1 - a->final) * pow(1 - done, a->power));
    g_assert(strcmp(schedule, "cosine") == 0);
    return a->rate * warm * (a->final + (1 - a->final) * (1 + cos(G_PI * done)) / 2);
}

static double sgd(const Point *p) {
    const double *x = p->x;
    double g = x[1] * (p->n > 3 ? x[3] : 1) + p->a->weight_decay * x[0];
    return x[0] - x[2] * g;
}

static double momentum(const Point *p) {
    const double *x = p->x;
    double g = x[1] * (p->n > 4 ? x[4] : 1) + p->a->weight_decay * x[0];
    double v = p->a->beta1 * x[2] + g;
    return p->output == 1 ? v : x[0] - x[3] * v;
}

static double lion(const Point *p) {
    const double *x = p->x;
    const MtfAttributes *a = p->a;
    double g = x[1] * (p->n > 4 ? x[4] : 1);
    if (p->output == 1)
        return a->beta2 * x[2] + (1 - a->beta2) * g;
    double mixed = a->beta1 * x[2] + (1 - a->beta1) * g;
    return x[0] - x[3] * ((mixed > 0) - (mixed < 0) + a->weight_decay * x[0]);
}

static double adam(const Point *p) {
    const double *x = p->x;
    const MtfAttributes *a = p->a;
    double g = x[1] * (p->n > 5 ? x[5] : 1);
    double m = a->beta1 * x[2] + (1 - a->beta1) * g;
    double v = a->beta2 * x[3] + (1 - a->beta2) * g * g;
    if (p->output > 0)
        return p->output == 1 ? m : v;
    double m_hat = m / (1 - pow(a->beta1, p->t)), v_hat = v / (1 - pow(a->beta2, p->t));
    return x[0] - x[4] * (m_hat / (sqrt(v_hat) + a->epsilon) + a->weight_decay * x[0]);
}

static double lamb_direction(const Point *p) {
    const double *x = p->x;
    const MtfAttributes *a = p->a;
    double g = x[1] * (p->n > 4 ? x[4] : 1);
    double m = a->beta1 * x[2] + (1 - a->beta1) * g;
    double v = a->beta2 * x[3] + (1 - a->beta2) * g * g;
    if (p->output > 0)
        return p->output == 1 ? m : v;
    double m_hat = m / (1 - pow(a->beta1, p->t)), v_hat = v / (1 - pow(a->beta2, p->t));
    return m_hat / (sqrt(v_hat) + a->epsilon) + a->weight_decay * x[0];
}

TERM(lamb_apply, x - v * (z > 0 && u > 0 ? sqrt(z / u) : 1) * y)

static double adafactor_moment(const Point *p) {
    double b = 1 - pow(p->t, -p->a->decay);
    return b * p->x[0] + (1 - b) * (p->x[1] + p->a->epsilon);
}

TERM(adafactor_direction, p->n == 2 ? x / sqrt(y) : x / sqrt(y * z / u))

static double adafactor_apply(const Point *p) {
    const double *x = p->x;
    double n = (double)mtf_graph_elements(p->reference->graph, &output(p)->shape);
    return x[0] - x[3] * x[1] / fmax(1, sqrt(x[2] / n) / p->a->threshold);
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

/* Its place, where no earlier element is as large and no later one larger; else nothing. */
static double argmax(const Point *p) {
    int dim = missing(&input(p, 0)->shape, &output(p)->shape);
    int64_t here = p->coordinate[dim];
    for (int64_t i = 0; i < size_of(p, dim); i++)
        if (i < here ? at(p, 0, dim, i) >= p->x[0] : at(p, 0, dim, i) > p->x[0])
            return 0;
    return (double)here;
}

static double resample(const Point *p) {
    double t = (double)p->coordinate[p->a->to], size = (double)size_of(p, p->a->from);
    double at_source = (p->a->start + p->a->stride * t) / p->a->dilation;
    if (p->a->wrap == 1)
        at_source -= size * floor(at_source / size);
    return (double)p->coordinate[p->a->from] == at_source ? p->x[0] : 0;
}

static double slice(const Point *p) {
    double t = (double)p->coordinate[p->a->to];
    return (double)p->coordinate[p->a->from] == p->a->start + p->a->stride * t ? p->x[0] : 0;
}

/* The value counts once, at the first of the points that meet. */
static double pad(const Point *p) {
    double f = (double)p->coordinate[p->a->to] - p->a->before;
    bool outside = f < 0 || f >= (double)size_of(p, p->a->from);
    if (outside)
        return p->coordinate[p->a->from] == 0 ? p->a->value : 0;
    return (double)p->coordinate[p->a->from] == f ? p->x[0] : 0;
}

static double reverse(const Point *p) {
    int dim = p->a->dimension;
    return at(p, 0, dim, size_of(p, dim) - 1 - p->coordinate[dim]);
}

static double roll(const Point *p) {
    int dim = p->a->dimension;
    int64_t size = size_of(p, dim), back = p->coordinate[dim] - (int64_t)p->a->shift;
    return at(p, 0, dim, ((back % size) + size) % size);
}

TERM(select_term, (double)p->coordinate[p->a->dimension] == p->a->index ? x : 0)

/* Of each input what stands at this place, at the first of all points of what only it has. */
static double concat(const Point *p) {
    const MtfShape *whole = &output(p)->shape;
    int64_t offset = 0;
    int to = -1;
    for (int i = 0; i < whole->rank; i++) {
        bool has = false;
        for (int k = 0; k < p->n; k++)
            has = has || mtf_shape_find(&input(p, k)->shape, whole->dims[i]) >= 0;
        to = has ? to : whole->dims[i];
    }
    for (int k = 0; k < p->n; k++) {
        const MtfShape *shape = &input(p, k)->shape;
        int from = shape->rank == whole->rank ? missing(shape, whole) : -1;
        int64_t given = from < 0 ? 1 : size_of(p, from), here = p->coordinate[to] - offset;
        offset += given;
        if (here >= given || here < 0)
            continue;
        for (int j = 0; j < p->n; j++) {
            const MtfShape *other = &input(p, j)->shape;
            int others = other->rank == whole->rank ? missing(other, whole) : -1;
            if (others >= 0 && p->coordinate[others] != 0)
                return 0;
        }
        return from < 0 ? p->x[k] : at(p, k, from, here);
    }
    return 0;
}

static double cumulative_sum(const Point *p) {
    int dim = p->a->dimension;
    double sum = 0;
    for (int64_t i = 0; i < size_of(p, dim); i++) {
        int64_t apart = p->a->reverse != 0 ? i - p->coordinate[dim] : p->coordinate[dim] - i;
        sum += apart > 0 || (apart == 0 && p->a->exclusive == 0) ? at(p, 0, dim, i) : 0;
    }
    return sum;
}

/* Of the elements up to this one, or before it. */
static double scan(const Point *p) {
    int dim = p->a->dimension, kind = p->operation->kind;
    double least = 1e30, most = -1e30, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < size_of(p, dim); i++) {
            int64_t apart = p->a->reverse != 0 ? i - p->coordinate[dim] : p->coordinate[dim] - i;
            if (apart < (p->a->exclusive != 0))
                continue;
            least = fmin(least, at(p, 0, dim, i));
            most = fmax(most, at(p, 0, dim, i));
            sum += pass == 1 ? exp(at(p, 0, dim, i) - most) : 0;
        }
    return kind == MTF_OP_CUMULATIVE_MIN                      ? least
           : kind == MTF_OP_CUMULATIVE_LOG_SUM_EXP && sum > 0 ? most + log(sum)
                                                              : most;
}

static double local_response(const Point *p) {
    int dim = p->a->dimension;
    int64_t here = p->coordinate[dim], size = (int64_t)p->a->size;
    double sum = 0;
    for (int64_t i = here - (size - 1) / 2; i <= here + size / 2; i++)
        sum += i >= 0 && i < size_of(p, dim) ? at(p, 0, dim, i) * at(p, 0, dim, i) : 0;
    return p->x[0] / pow(p->a->bias + p->a->alpha / (double)size * sum, p->a->beta);
}

/* The element that as many others come before as its place says. */
static double top_k(const Point *p) {
    int64_t before = 0, here = p->coordinate[p->a->from];
    for (int64_t i = 0; i < size_of(p, p->a->from); i++) {
        double other = at(p, 0, p->a->from, i);
        before += other > p->x[0] || (other == p->x[0] && i < here);
    }
    if (before != p->coordinate[p->a->to])
        return 0;
    return p->output == 1 ? (double)here : p->x[0];
}

/* Whether element i of two comes first along `dim`. */
static bool is_sorted_before(const Point *p, int dim, int64_t i, int64_t j) {
    double x = at(p, 0, dim, i), y = at(p, 0, dim, j);
    return x == y ? i < j : (p->a->reverse != 0) == (x > y);
}

/* Likewise among all. */
static double sort(const Point *p) {
    int dim = p->a->dimension;
    int64_t here = 0;
    for (int64_t before = -1; before != p->coordinate[dim]; here++) {
        before = 0;
        for (int64_t i = 0; i < size_of(p, dim); i++)
            before += is_sorted_before(p, dim, i, here);
    }
    return p->output == 1 ? (double)here - 1 : at(p, 0, dim, here - 1);
}

/* The number of this point's place among the dimensions of `of` that neither the slots nor the tokens
 * have. */
static int64_t place(const Point *p, const MtfShape *of, const MtfShape *slot,
                     const MtfShape *tokens) {
    int64_t number = 0;
    for (int i = 0; i < of->rank; i++)
        if (mtf_shape_find(slot, of->dims[i]) < 0 && mtf_shape_find(tokens, of->dims[i]) < 0)
            number = number * size_of(p, of->dims[i]) + p->coordinate[of->dims[i]];
    return number;
}

static double dispatch(const Point *p) {
    int64_t here = place(p, &output(p)->shape, &input(p, 1)->shape, &input(p, 0)->shape);
    return p->x[1] == (double)here ? p->x[0] * (p->n > 2 ? p->x[2] : 1) : 0;
}

static double combine(const Point *p) {
    int64_t here = place(p, &input(p, 0)->shape, &input(p, 1)->shape, &output(p)->shape);
    return p->x[1] == (double)here ? p->x[0] * (p->n > 2 ? p->x[2] : 1) : 0;
}

static double combine_gate_grad(const Point *p) {
    int64_t here = place(p, &input(p, 0)->shape, &input(p, 2)->shape, &input(p, 1)->shape);
    return p->x[2] == (double)here ? p->x[0] * p->x[1] : 0;
}

static double slot_ids(const Point *p) {
    const MtfShape *slot = &input(p, 1)->shape;
    return p->x[1] == (double)place(p, &output(p)->shape, slot, slot) ? p->x[0] : -1;
}

static double expert_einsum(const Point *p) {
    return p->x[2] == (double)p->coordinate[p->a->experts] ? p->x[0] * p->x[1] : 0;
}

static double quantized(const Point *p) {
    return p->x[0] * p->x[1] * p->x[2];
}

/* Input `k` of this point's group, at a token's choice. */
static double of_choice(const Point *p, int k, int64_t token, int64_t choice) {
    const int64_t kept[] = { p->coordinate[p->a->dimension], p->coordinate[p->a->choices] };
    p->coordinate[p->a->dimension] = token;
    p->coordinate[p->a->choices] = choice;
    double value = at(p, k, -1, 0);
    p->coordinate[p->a->dimension] = kept[0];
    p->coordinate[p->a->choices] = kept[1];
    return value;
}

typedef struct {
    int64_t token, choice;
} Choice;

/* Whether one choice is served before another. */
static bool comes_first(const Point *p, Choice a, Choice b) {
    bool earlier = p->a->queue == 1
                       ? a.choice < b.choice || (a.choice == b.choice && a.token < b.token)
                       : a.token < b.token || (a.token == b.token && a.choice < b.choice);
    if (p->a->priority == 0)
        return earlier;
    if (p->a->priority == 2 && p->a->queue == 1 && a.choice != b.choice)
        return a.choice < b.choice;
    bool by_token = p->a->priority == 2;
    double x = of_choice(p, 1, a.token, by_token ? 0 : a.choice);
    double y = of_choice(p, 1, b.token, by_token ? 0 : b.choice);
    bool before = a.token < b.token || (a.token == b.token && a.choice < b.choice);
    return x > y || (x == y && before);
}

/* How many of the same expert are served before a choice. */
static int64_t waiting_before(const Point *p, Choice c) {
    int64_t n = 0;
    for (int64_t t = 0; t < size_of(p, p->a->dimension); t++)
        for (int64_t k = 0; k < size_of(p, p->a->choices); k++)
            n += of_choice(p, 0, t, k) == of_choice(p, 0, c.token, c.choice) &&
                 comes_first(p, (Choice){ t, k }, c);
    return n;
}

/* Those who came first have the places; by gates, they take them in the order of tokens. */
static double slot(const Point *p) {
    Choice here = { p->coordinate[p->a->dimension], p->coordinate[p->a->choices] };
    double expert = p->x[0], lesser = 0;
    int64_t capacity = p->a->capacity < 0 ? INT64_MAX : size_of(p, p->a->capacity), before = 0;
    bool by_gate = p->a->priority == 1;
    if (expert < 0 || expert >= (double)size_of(p, p->a->experts) ||
        waiting_before(p, here) >= capacity)
        return -1;
    for (int64_t t = 0; t < size_of(p, p->a->dimension); t++)
        for (int64_t k = 0; k < size_of(p, p->a->choices); k++) {
            double other = of_choice(p, 0, t, k);
            bool earlier = t < here.token || (t == here.token && k < here.choice);
            lesser += other >= 0 && other < expert;
            before += by_gate && other == expert && earlier &&
                      waiting_before(p, (Choice){ t, k }) < capacity;
        }
    double start = p->a->capacity < 0 ? lesser : expert * (double)capacity;
    return start + (double)(by_gate ? before : waiting_before(p, here));
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

/* ---- Windows: every pair of elements, asked whether they meet ---------------------------------- */

/* Where in window `w` the elements meet at which we stand, whose larger side is `large`; -1: nowhere.
 */
static int64_t met(const Point *p, int w, int large, int small) {
    const MtfWindow *window = &p->a->windows[w];
    int64_t far = p->coordinate[large] - p->coordinate[small] * window->stride + window->before;
    int64_t n = window->kernel < 0 ? window->size : size_of(p, window->kernel);
    for (int64_t place = 0; place < n; place++)
        if (place * window->dilation == far)
            return place;
    return -1;
}

static bool in_filter(const Point *p, bool spreads) {
    for (int w = 0; w < p->a->n_windows; w++) {
        const MtfWindow *window = &p->a->windows[w];
        int large = spreads ? window->to : window->from, small = window->from + window->to - large;
        if (met(p, w, large, small) != p->coordinate[window->kernel])
            return false;
    }
    return true;
}

static double conv(const Point *p) {
    return in_filter(p, false) ? p->x[0] * p->x[1] : 0;
}

static double conv_transpose(const Point *p) {
    return in_filter(p, true) ? p->x[0] * p->x[1] : 0;
}

/* The number of the place in the whole window, or -1. */
static double place_in_window(const Point *p) {
    double number = 0;
    for (int w = 0; w < p->a->n_windows; w++) {
        int64_t place = met(p, w, p->a->windows[w].from, p->a->windows[w].to);
        if (place < 0)
            return -1;
        number = number * p->a->windows[w].size + (double)place;
    }
    return number;
}

/* The largest element of the window where we stand. */
static double largest_of_window(const Point *p) {
    Point q = *p;
    double largest = -INFINITY;
    g_autofree int64_t *coordinate =
        g_memdup2(p->coordinate, p->reference->graph->dimensions->len * sizeof *coordinate);
    q.coordinate = coordinate;
    int64_t points = 1;
    for (int w = 0; w < p->a->n_windows; w++)
        points *= size_of(p, p->a->windows[w].from);
    for (int64_t i = 0; i < points; i++) {
        int64_t rest = i;
        for (int w = 0; w < p->a->n_windows; w++) {
            coordinate[p->a->windows[w].from] = rest % size_of(p, p->a->windows[w].from);
            rest /= size_of(p, p->a->windows[w].from);
        }
        if (place_in_window(&q) >= 0)
            largest = fmax(largest, at(&q, 0, -1, 0));
    }
    return largest;
}

/* Output 1, where they meet by the largest of the negatives: the first place of the largest. */
static double max_pool(const Point *p) {
    double place = place_in_window(p);
    if (p->output == 0)
        return place < 0 ? -INFINITY : p->x[0];
    return place < 0 || p->x[0] < largest_of_window(p) ? -INFINITY : -place;
}

static double max_pool_grad(const Point *p) {
    return place_in_window(p) == p->x[0] ? p->x[1] : 0;
}

/* Elements of the window where we stand that count. */
static double window_count(const Point *p) {
    double count = 1;
    for (int w = 0; w < p->a->n_windows; w++) {
        const MtfWindow *window = &p->a->windows[w];
        int64_t pad = p->a->counted != 0, n = 0, size = size_of(p, window->from);
        for (int64_t at_place = 0; at_place < window->size; at_place++) {
            int64_t i = p->coordinate[window->to] * window->stride - window->before +
                        at_place * window->dilation;
            n += i >= -pad * window->before && i < size + pad * window->after;
        }
        count *= (double)n;
    }
    return count;
}

static double average_pool(const Point *p) {
    return place_in_window(p) < 0 ? 0 : p->x[p->n - 1] / window_count(p);
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

static const Term terms[MTF_OPERATIONS] = {
    [MTF_OP_EINSUM] = einsum,
    [MTF_OP_ADD] = add,
    [MTF_OP_SUBTRACT] = subtract,
    [MTF_OP_MULTIPLY] = multiply,
    [MTF_OP_DIVIDE] = divide,
    [MTF_OP_MAXIMUM] = maximum,
    [MTF_OP_MINIMUM] = minimum,
    [MTF_OP_EQUAL] = equal,
    [MTF_OP_RESHAPE] = same,
    [MTF_OP_RESAMPLE] = resample,
    [MTF_OP_CONCAT] = concat,
    [MTF_OP_RANDOM_UNIFORM] = random_uniform,
    [MTF_OP_RANDOM_NORMAL] = random_normal,
    [MTF_OP_CONV] = conv,
    [MTF_OP_CONV_TRANSPOSE] = conv_transpose,
    [MTF_OP_CONV_FILTER_GRAD] = conv,
    [MTF_OP_MAX_POOL] = max_pool,
    [MTF_OP_AVERAGE_POOL] = average_pool,
    [MTF_OP_MAX_POOL_GRAD] = max_pool_grad,
    [MTF_OP_AVERAGE_POOL_GRAD] = average_pool,
    [MTF_OP_CUMULATIVE_SUM] = cumulative_sum,
    [MTF_OP_TOP_K] = top_k,
    [MTF_OP_SORT] = sort,
    [MTF_OP_CUMULATIVE_MAX] = scan,
    [MTF_OP_CUMULATIVE_MIN] = scan,
    [MTF_OP_CUMULATIVE_LOG_SUM_EXP] = scan,
    [MTF_OP_LOCAL_RESPONSE_NORM] = local_response,
    [MTF_OP_SLICE] = slice,
    [MTF_OP_PAD] = pad,
    [MTF_OP_REVERSE] = reverse,
    [MTF_OP_ROLL] = roll,
    [MTF_OP_SELECT] = select_term,
    [MTF_OP_STACK] = concat,
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
    [MTF_OP_LOGICAL_XOR] = not_equal,
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
    [MTF_OP_ARGMAX] = argmax,
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
    [MTF_OP_SLOTS] = slot,
    [MTF_OP_SLOT_IDS] = slot_ids,
    [MTF_OP_DISPATCH] = dispatch,
    [MTF_OP_COMBINE] = combine,
    [MTF_OP_COMBINE_GATE_GRAD] = combine_gate_grad,
    [MTF_OP_QUANTIZED_EINSUM] = quantized,
    [MTF_OP_EXPERT_EINSUM] = expert_einsum,
    [MTF_OP_EXPERT_EINSUM_GRAD] = expert_einsum,
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
    [MTF_OP_LEARNING_RATE] = learning_rate,
    [MTF_OP_SGD] = sgd,
    [MTF_OP_MOMENTUM] = momentum,
    [MTF_OP_LION] = lion,
    [MTF_OP_ADAM] = adam,
    [MTF_OP_LAMB_DIRECTION] = lamb_direction,
    [MTF_OP_LAMB_APPLY] = lamb_apply,
    [MTF_OP_ADAFACTOR_MOMENT] = adafactor_moment,
    [MTF_OP_ADAFACTOR_DIRECTION] = adafactor_direction,
    [MTF_OP_ADAFACTOR_APPLY] = adafactor_apply,
    [MTF_OP_EXPRESSION] = expression,
};

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

static int64_t offset_of(const Point *p, const MtfShape *shape) {
    int64_t offset = 0;
    for (int i = 0; i < shape->rank; i++)
        offset = offset * size_of(p, shape->dims[i]) + p->coordinate[shape->dims[i]];
    return offset;
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
    p->count = (double)points / (double)elements;
    for (int64_t i = 0; i < elements; i++)
        result[i] = m->start;
    for (int64_t i = 0; i < points; i++) {
        move_to(p, space, i);
        result[p->element] = m->meet(result[p->element], terms[p->operation->kind](p));
    }
    for (int64_t i = 0; p->operation->kind == MTF_OP_MAX_POOL && p->output == 1 && i < elements;
         i++)
        result[i] = isinf(result[i]) ? 0 : fabs(result[i]);
    for (int64_t i = 0; m->last != NULL && i < elements; i++)
        result[i] = m->last(result[i]);
}

/* ---- Attention: what it means, from all scores at once ------------------------------------- */

/* The coordinates of `like` in element `number` of `shape`, and 0 elsewhere. */
static void stand_at(Point *p, const MtfShape *shape, int64_t number) {
    for (int i = shape->rank - 1; i >= 0; i--) {
        p->coordinate[shape->dims[i]] = number % size_of(p, shape->dims[i]);
        number /= size_of(p, shape->dims[i]);
    }
}

static double value_at(const Point *p, int tensor) {
    return p->reference
        ->values[tensor][offset_of(p, &mtf_graph_tensor(p->reference->graph, tensor)->shape)];
}

/* The sum over features of x y where we stand. */
static double over_features(Point *p, int x, int y) {
    double sum = 0;
    for (int64_t f = 0; f < size_of(p, p->a->dimension); f++) {
        p->coordinate[p->a->dimension] = f;
        sum += value_at(p, x) * value_at(p, y);
    }
    return sum;
}

static bool looks(const Point *p) {
    bool cached = p->operation->kind == MTF_OP_CACHED_ATTENTION;
    int64_t behind = p->coordinate[p->a->query] - p->coordinate[p->a->memory];
    if (cached)
        behind += (int64_t)value_at(p, p->operation->inputs[3]);
    if (p->a->parts >= 0)
        behind -= p->coordinate[p->a->parts] * size_of(p, p->a->memory);
    return (p->a->causal == 0 && !cached) ||
           (behind >= 0 && (p->a->window == 0 || (double)behind < p->a->window));
}

/* What is added to the score where we stand: input `bias`, where the operation has so many. */
static double bias_at(const Point *p, int bias) {
    bool has = p->operation->kind != MTF_OP_CACHED_ATTENTION && bias < p->operation->n_inputs;
    return has ? value_at(p, p->operation->inputs[bias]) : 0;
}

/* The score where we stand, and how fast it grows with factor q k. */
static double score_of(Point *p, int q, int k, double *growth) {
    double s = p->a->factor * over_features(p, q, k), cap = p->a->softcap;
    double t = cap > 0 ? tanh(s / cap) : 0;
    *growth = 1 - t * t;
    return cap > 0 ? cap * t : s;
}

/* What the share where we stand is multiplied by: its number counts heads, then queries, then parts of
 * memory, then memory. */
static double kept_share(const Point *p, const MtfShape *rest) {
    const int last[] = { p->a->query, p->a->parts, p->a->memory };
    const char *name = p->a->stream != NULL ? p->a->stream : p->operation->name;
    int64_t number = 0;
    if (p->operation->kind == MTF_OP_CACHED_ATTENTION || p->a->rate == 0)
        return 1;
    for (int i = 0; i < rest->rank; i++)
        if (rest->dims[i] != p->a->query && rest->dims[i] != p->a->parts)
            number = number * size_of(p, rest->dims[i]) + p->coordinate[rest->dims[i]];
    for (int i = 0; i < 3; i++)
        if (last[i] >= 0)
            number = number * size_of(p, last[i]) + p->coordinate[last[i]];
    MtfRandom random = mtf_random_stream(p->reference->seed, name,
                                         p->step | (uint64_t)p->reference->element << 40);
    return mtf_random_keeps(&random, p->a->rate, number) ? 1 / (1 - p->a->rate) : 0;
}

/* Each query: its largest score first, as is usual. */
static void attention(Point *p) {
    const int *in = p->operation->inputs, *out = p->operation->outputs;
    double *o = p->reference->values[out[0]], *lse = p->reference->values[out[1]];
    int64_t keys = size_of(p, p->a->memory), features = size_of(p, p->a->dimension);
    const MtfShape *rest = &mtf_graph_tensor(p->reference->graph, out[1])->shape;
    const MtfShape *whole = &mtf_graph_tensor(p->reference->graph, out[0])->shape;
    g_autofree double *share = g_new(double, (gsize)keys);
    for (int64_t i = 0; i < mtf_graph_elements(p->reference->graph, rest); i++) {
        double max = -INFINITY, sum = 0, growth;
        stand_at(p, rest, i);
        for (int64_t t = 0; t < keys; t++) {
            p->coordinate[p->a->memory] = t;
            share[t] = looks(p) ? score_of(p, in[0], in[1], &growth) + bias_at(p, 3) : -INFINITY;
            max = fmax(max, share[t] <= MTF_MASKED_SCORE ? -INFINITY : share[t]);
        }
        for (int64_t t = 0; t < keys; t++)
            sum += share[t] = share[t] <= MTF_MASKED_SCORE ? 0 : exp(share[t] - max);
        lse[i] = max + log(sum);
        for (int64_t t = 0; t < keys; t++) {
            p->coordinate[p->a->memory] = t;
            share[t] *= kept_share(p, rest);
        }
        for (int64_t f = 0; f < features; f++) {
            double total = 0;
            p->coordinate[p->a->dimension] = f;
            for (int64_t t = 0; t < keys; t++) {
                p->coordinate[p->a->memory] = t;
                total += share[t] > 0 ? share[t] / sum * value_at(p, in[2]) : 0;
            }
            o[offset_of(p, whole)] = sum > 0 ? total : 0;
        }
    }
}

/* Every pair of a query and a position of memory, from (q, k, v, o, lse, do). */
static void attention_grad(Point *p) {
    const MtfGraph *graph = p->reference->graph;
    const int *in = p->operation->inputs, *out = p->operation->outputs;
    const MtfShape *rest = &mtf_graph_tensor(graph, in[4])->shape;
    for (int k = 0; k < 3; k++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, out[k])->shape;
        memset(p->reference->values[out[k]], 0,
               (size_t)mtf_graph_elements(graph, shape) * sizeof(double));
    }
    for (int64_t i = 0; i < mtf_graph_elements(graph, rest); i++)
        for (int64_t t = 0; t < size_of(p, p->a->memory); t++) {
            stand_at(p, rest, i);
            p->coordinate[p->a->memory] = t;
            if (!looks(p))
                continue;
            double growth, score = score_of(p, in[0], in[1], &growth) + bias_at(p, 6);
            if (score <= MTF_MASKED_SCORE)
                continue;
            double share = exp(score - value_at(p, in[4]));
            double kept = kept_share(p, rest);
            double slope = p->a->factor * growth * share *
                           (kept * over_features(p, in[5], in[2]) - over_features(p, in[5], in[3]));
            for (int64_t f = 0; f < size_of(p, p->a->dimension); f++) {
                p->coordinate[p->a->dimension] = f;
                int64_t query = offset_of(p, &mtf_graph_tensor(graph, in[0])->shape);
                int64_t key = offset_of(p, &mtf_graph_tensor(graph, in[1])->shape);
                p->reference->values[out[0]][query] += slope * value_at(p, in[1]);
                p->reference->values[out[1]][key] += slope * value_at(p, in[0]);
                p->reference->values[out[2]][key] += kept * share * value_at(p, in[5]);
            }
        }
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

/* (x, cache, position), element by element of the cache. */
static void cache_update(Point *p) {
    const int *in = p->operation->inputs;
    const MtfShape *shape = &mtf_graph_tensor(p->reference->graph, p->operation->outputs[0])->shape;
    double *out = p->reference->values[p->operation->outputs[0]];
    for (int64_t i = 0; i < mtf_graph_elements(p->reference->graph, shape); i++) {
        stand_at(p, shape, i);
        int64_t token = p->coordinate[p->a->to] - (int64_t)value_at(p, in[2]);
        bool new = token >= 0 && token < size_of(p, p->a->from);
        p->coordinate[p->a->from] = new ? token : 0;
        out[i] = value_at(p, new ? in[0] : in[1]);
    }
}

static void evaluate(MtfReference *reference, const MtfOperation *operation, uint64_t step) {
    g_autofree double *x = g_new0(double, operation->n_inputs);
    g_autofree int64_t *coordinate = g_new0(int64_t, reference->graph->dimensions->len);
    MtfShape space = space_of(reference->graph, operation);
    Point whole = { .reference = reference,
                    .operation = operation,
                    .step = step,
                    .a = &operation->attributes,
                    .coordinate = coordinate };
    if (operation->kind == MTF_OP_ATTENTION || operation->kind == MTF_OP_ATTENTION_GRAD) {
        (operation->kind == MTF_OP_ATTENTION ? attention : attention_grad)(&whole);
        return;
    }
    if (operation->kind == MTF_OP_LOOP_SLICE || operation->kind == MTF_OP_LOOP_STACK) {
        loop_element(&whole, operation->kind == MTF_OP_LOOP_STACK);
        return;
    }
    if (operation->kind == MTF_OP_LOOP_NEXT) {
        const MtfShape *shape = &mtf_graph_tensor(reference->graph, operation->outputs[0])->shape;
        memcpy(reference->values[operation->outputs[0]], reference->values[operation->inputs[1]],
               sizeof(double) * (size_t)mtf_graph_elements(reference->graph, shape));
        return;
    }
    if (operation->kind == MTF_OP_CACHED_ATTENTION) {
        attention(&whole);
        return;
    }
    if (operation->kind == MTF_OP_CACHE_UPDATE) {
        cache_update(&whole);
        return;
    }
    if (operation->kind == MTF_OP_RESHAPE) {
        const MtfShape *shape = &mtf_graph_tensor(reference->graph, operation->outputs[0])->shape;
        memcpy(reference->values[operation->outputs[0]], reference->values[operation->inputs[0]],
               sizeof(double) * (size_t)mtf_graph_elements(reference->graph, shape));
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
            if (tensor->dtype == MTF_I32)
                reference->values[t][i] = floor(uniform * (double)choices(graph, t));
            else if (tensor->feed == MTF_FEED_MASK)
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
