// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/judge/layout_groups.h"

#include "layouts/graph/random.h"

#include <math.h>

#define FEWEST_LAYOUTS 3
#define DRAWS 200

MtfLayoutGroup *mtf_layout_group_new(const char *key) {
    MtfLayoutGroup *group = g_new0(MtfLayoutGroup, 1);
    group->key = g_strdup(key);
    group->layouts = g_array_new(FALSE, FALSE, sizeof(MtfTimedLayout));
    return group;
}

void mtf_layout_group_free(void *data) {
    MtfLayoutGroup *group = (MtfLayoutGroup *)data;
    g_free(group->key);
    g_array_unref(group->layouts);
    g_free(group);
}

bool mtf_layout_group_counts(const MtfLayoutGroup *group) {
    return group->layouts->len >= FEWEST_LAYOUTS;
}

static int compare_seconds(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Values below `value` in a sorted array, or those not above it. */
static guint count_below(const double *sorted, guint n, double value, bool not_above) {
    guint low = 0, high = n;
    while (low < high) {
        guint middle = (low + high) / 2;
        if (sorted[middle] < value || (not_above && sorted[middle] <= value))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Each value's rank less the mean of all, those that are equal sharing theirs. */
static double *ranks_of(const double *values, guint n) {
    g_autofree double *sorted = (double *)g_memdup2(values, n * sizeof(double));
    double *ranks = g_new(double, n);
    qsort(sorted, n, sizeof(double), compare_seconds);
    for (guint i = 0; i < n; i++)
        ranks[i] = ((double)count_below(sorted, n, values[i], false) +
                    (double)count_below(sorted, n, values[i], true) - (double)n) /
                   2;
    return ranks;
}

/* Pearson's correlation of ranks; 0 where all of one side are alike. */
static double spearman(const double *x_values, const double *y_values, guint n) {
    g_autofree double *x = ranks_of(x_values, n), *y = ranks_of(y_values, n);
    double xy = 0, xx = 0, yy = 0;
    for (guint i = 0; i < n; i++) {
        xy += x[i] * y[i];
        xx += x[i] * x[i];
        yy += y[i] * y[i];
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

/* Of measurements and others of the same runs. */
static double expected_rank(const char *key, const double *measured, guint n) {
    g_autofree double *again = g_new(double, n);
    double sum = 0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        MtfRandom random = mtf_random_stream(0, key, draw);
        for (guint i = 0; i < n; i++)
            again[i] = measured[i] * (1 + MTF_MEASURED_SPREAD * mtf_random_normal(&random, i));
        sum += spearman(measured, again, n);
    }
    return sum / DRAWS;
}

MtfLayoutOrder mtf_layout_group_order(const MtfLayoutGroup *group) {
    guint n = group->layouts->len, chosen = 0, best = 0;
    g_autofree double *predicted = g_new(double, n), *measured = g_new(double, n);
    for (guint i = 0; i < n; i++) {
        const MtfTimedLayout *layout = &g_array_index(group->layouts, MtfTimedLayout, i);
        predicted[i] = layout->predicted;
        measured[i] = layout->measured;
        chosen = predicted[i] < predicted[chosen] ? i : chosen;
        best = measured[i] < measured[best] ? i : best;
    }
    return (MtfLayoutOrder){ .rank = spearman(predicted, measured, n),
                             .remeasured = expected_rank(group->key, measured, n),
                             .regret = measured[chosen] / measured[best] - 1 };
}

MtfLayoutOrder mtf_layout_groups_mean(const GPtrArray *groups, int *counted) {
    MtfLayoutOrder sum = { 0 };
    double weight = 0;
    *counted = 0;
    for (guint i = 0; i < groups->len; i++) {
        const MtfLayoutGroup *group = (const MtfLayoutGroup *)groups->pdata[i];
        double rows = (double)group->layouts->len;
        if (!mtf_layout_group_counts(group))
            continue;
        MtfLayoutOrder order = mtf_layout_group_order(group);
        sum.rank += rows * order.rank;
        sum.remeasured += rows * order.remeasured;
        sum.regret += rows * order.regret;
        weight += rows;
        ++*counted;
    }
    if (*counted == 0)
        return (MtfLayoutOrder){ NAN, NAN, NAN };
    return (MtfLayoutOrder){ sum.rank / weight, sum.remeasured / weight, sum.regret / weight };
}
