// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/planner/variant_frontier.h"

#include "layouts/base/json_writer.h"

static const MtfVariantPoint *point_at(const GArray *points, guint i) {
    return &g_array_index(points, MtfVariantPoint, i);
}

static void clear_point(gpointer data) {
    g_free(((MtfVariantPoint *)data)->name);
}

GArray *mtf_variant_points_new(void) {
    GArray *points = g_array_new(FALSE, TRUE, sizeof(MtfVariantPoint));
    g_array_set_clear_func(points, clear_point);
    return points;
}

void mtf_variant_points_add(GArray *points, const GArray *frontier, int variant) {
    for (guint i = 0; i < frontier->len; i++) {
        const MtfFrontierPoint *from = &g_array_index(frontier, MtfFrontierPoint, i);
        MtfVariantPoint point = { .limit = from->limit,
                                  .variant = variant,
                                  .bytes = from->fastest->arena_bytes,
                                  .step_seconds = from->fastest->step_seconds,
                                  .name = g_strdup(from->fastest->name),
                                  .cost = from->cheapest->cost,
                                  .bound = from->bound };
        g_array_append_val(points, point);
    }
}

/* The least that a variant's layouts may cost within a limit: what holds for its next limit above, or
 * beyond all for its last, holds. INT64_MAX: nothing is known of it. */
static int64_t bound_within(const GArray *points, int variant, int64_t limit) {
    const MtfVariantPoint *next = NULL;
    for (guint i = 0; i < points->len; i++) {
        const MtfVariantPoint *point = point_at(points, i);
        if (point->variant != variant)
            continue;
        next = point;
        if (point->limit >= limit)
            break;
    }
    return next != NULL ? next->bound : INT64_MAX;
}

/* What is best within a limit; false where nothing fits. */
static bool best_within(const GArray *points, int64_t limit, MtfVariantPoint *best) {
    const MtfVariantPoint *fastest = NULL;
    int64_t cost = INT64_MAX, bound = INT64_MAX;
    for (guint i = 0; i < points->len; i++) {
        const MtfVariantPoint *point = point_at(points, i);
        bound = MIN(bound, bound_within(points, point->variant, limit));
        if (point->limit <= limit)
            cost = MIN(cost, point->cost);
        if (point->bytes <= limit &&
            (fastest == NULL || point->step_seconds < fastest->step_seconds))
            fastest = point;
    }
    if (fastest == NULL || cost == INT64_MAX)
        return false;
    *best = *fastest;
    best->limit = limit;
    best->cost = cost;
    best->bound = MIN(bound, cost);
    return true;
}

static int compare_limits(gconstpointer a, gconstpointer b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Some of the limits that were searched, spread evenly over their row; those are round already. */
static GArray *list_limits(const GArray *points, int n, int64_t own) {
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(int64_t));
    GArray *limits = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (guint i = 0; i < points->len; i++)
        g_array_append_val(all, point_at(points, i)->limit);
    g_array_sort(all, compare_limits);
    for (int i = 0; i < n && all->len > 0; i++) {
        guint at = (guint)((gint64)(all->len - 1) * i / (n - 1));
        g_array_append_val(limits, g_array_index(all, int64_t, at));
    }
    if (all->len > 0 && own > g_array_index(all, int64_t, 0) &&
        own < g_array_index(all, int64_t, all->len - 1))
        g_array_append_val(limits, own);
    g_array_sort(limits, compare_limits);
    return limits;
}

GArray *mtf_variant_frontier(const GArray *points, int n, int64_t own) {
    g_autoptr(GArray) limits = list_limits(points, n, own);
    GArray *frontier = mtf_variant_points_new();
    for (guint i = 0; i < limits->len; i++) {
        int64_t limit = g_array_index(limits, int64_t, i);
        MtfVariantPoint best;
        bool known = frontier->len > 0 && point_at(frontier, frontier->len - 1)->limit == limit;
        if (known || !best_within(points, limit, &best))
            continue;
        best.name = g_strdup(best.name);
        g_array_append_val(frontier, best);
    }
    return frontier;
}

cJSON *mtf_variant_frontier_to_json(const GArray *frontier, const GArray *variants) {
    cJSON *list = cJSON_CreateArray();
    for (guint i = 0; i < frontier->len; i++) {
        const MtfVariantPoint *point = point_at(frontier, i);
        const MtfStepVariant *variant =
            &g_array_index(variants, MtfStepCandidate, point->variant).variant;
        cJSON *object = cJSON_CreateObject();
        mtf_json_add_integer(object, "limit_bytes", point->limit);
        mtf_json_add_integer(object, "memory_bytes", point->bytes);
        mtf_json_add_integer(object, "cost", point->cost);
        mtf_json_add_integer(object, "bound", point->bound);
        mtf_json_add_number(object, "step_seconds", point->step_seconds);
        cJSON_AddStringToObject(object, "name", point->name);
        mtf_json_add_integer(object, "microbatches", MAX(1, variant->microbatches));
        mtf_step_variant_add_kept(object, variant);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}
