// SPDX-License-Identifier: GPL-3.0-or-later
/* What picks, moves, sorts or scans elements along a dimension. */
#include "tests/support/reference/reference_point.h"

#include <math.h>

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

/* The gradient of what came from here. */
static double sort_grad(const Point *p) {
    int dim = p->a->dimension;
    for (int64_t i = 0; i < size_of(p, dim); i++)
        if (at(p, 0, dim, i) == (double)p->coordinate[dim])
            return at(p, 1, dim, i);
    return 0;
}

const MtfReferenceTerm mtf_reference_moves[MTF_OPERATIONS] = {
    [MTF_OP_RESAMPLE] = resample,
    [MTF_OP_CONCAT] = concat,
    [MTF_OP_CUMULATIVE_SUM] = cumulative_sum,
    [MTF_OP_TOP_K] = top_k,
    [MTF_OP_SORT] = sort,
    [MTF_OP_SORT_GRAD] = sort_grad,
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
    [MTF_OP_ARGMAX] = argmax,
};
