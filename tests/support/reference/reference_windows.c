// SPDX-License-Identifier: GPL-3.0-or-later
/* Windows: every pair of elements, asked whether they meet. */
#include "tests/support/reference/reference_point.h"

#include <math.h>

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

const MtfReferenceTerm mtf_reference_windows[MTF_OPERATIONS] = {
    [MTF_OP_CONV] = conv,
    [MTF_OP_CONV_TRANSPOSE] = conv_transpose,
    [MTF_OP_CONV_FILTER_GRAD] = conv,
    [MTF_OP_MAX_POOL] = max_pool,
    [MTF_OP_AVERAGE_POOL] = average_pool,
    [MTF_OP_MAX_POOL_GRAD] = max_pool_grad,
    [MTF_OP_AVERAGE_POOL_GRAD] = average_pool,
};
