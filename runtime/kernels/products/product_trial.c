// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/product_trial.h"

#include <math.h>
#include <time.h>

/* A way runs at least so often, and until so much time has passed. */
#define RUNS 3
#define LEAST_SECONDS 1e-3
#define SHORTEST 2e-5

/* What is tried of a large plan. */
#define MOST_TURNS 16
#define MOST_SIDE 2048

static double processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static MtfContraction cut(const MtfContraction *plan) {
    MtfContraction part = *plan;
    int64_t turns = MOST_TURNS;
    for (int i = 0; i < part.n_outer; i++) {
        part.outer[i].size = MIN(part.outer[i].size, turns);
        turns = MAX(1, turns / part.outer[i].size);
    }
    part.m.size = MIN(part.m.size, MOST_SIDE);
    part.n.size = MIN(part.n.size, MOST_SIDE);
    return part;
}

/* Elements from the first that the plan touches of a term to the last. */
static int64_t span(const MtfContraction *plan, int term) {
    int64_t last = (plan->m.size - 1) * plan->m.stride[term] +
                   (plan->n.size - 1) * plan->n.stride[term] +
                   (plan->k.size - 1) * plan->k.stride[term];
    for (int i = 0; i < plan->n_outer; i++)
        last += (plan->outer[i].size - 1) * plan->outer[i].stride[term];
    return last + 1;
}

static double seconds_of(const MtfProducts *products, void *const data[MTF_TERMS], void *workspace,
                         int times) {
    double start = processor_seconds();
    for (int i = 0; i < times; i++)
        mtf_products_run(products, data, workspace, NULL);
    return processor_seconds() - start;
}

/* Short runs are timed many at once, since the clock ticks more slowly than they run. */
static double least_seconds(const MtfProducts *products, void *const data[MTF_TERMS],
                            void *workspace) {
    int times = 1;
    while (seconds_of(products, data, workspace, times) < SHORTEST)
        times *= 4;
    double least = INFINITY, spent = 0;
    for (int i = 0; i < RUNS || spent < LEAST_SECONDS; i++) {
        double seconds = seconds_of(products, data, workspace, times);
        least = MIN(least, seconds / times);
        spent += seconds;
    }
    return least;
}

double mtf_product_trial(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                         MtfProductWay way) {
    MtfContraction part = cut(plan);
    MtfProducts products = { .way = mtf_products_way(way) };
    products.prepared = products.way->prepare(&part, types, &products.workspace_bytes);
    if (products.prepared == NULL)
        return INFINITY;
    void *data[MTF_TERMS];
    for (int t = 0; t < MTF_TERMS; t++)
        data[t] = g_aligned_alloc0(1, (gsize)(span(&part, t) * mtf_dtype_bytes(types[t])), 64);
    void *workspace = g_aligned_alloc0(1, (gsize)products.workspace_bytes + 64, 64);
    double seconds = least_seconds(&products, data, workspace);
    for (int t = 0; t < MTF_TERMS; t++)
        g_aligned_free(data[t]);
    g_aligned_free(workspace);
    mtf_products_clear(&products);
    return seconds;
}
