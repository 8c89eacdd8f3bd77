// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/frontier.h"

#include "layouts/base/json_writer.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

/* Searches beside those of the points asked for: of the least and the most limit, and under the user's. */
#define UNLISTED 3

typedef struct {
    MtfFreeProblem *problem;
    MtfFreeSearchOptions options;
    MtfIncumbents *pool;
    GArray *points;
    int searches;            /* to come, at most: time is divided among them */
    int64_t unlimited_bound; /* whatever the memory */
} Sweep;

/* Searches under one limit and adds what is found to the pool; in time that is up nothing is. `answer` must be
 * cleared. */
static bool search_under(Sweep *sweep, int64_t limit, MtfFreeAnswer *answer, GError **error) {
    GError *cause = NULL;
    MtfFreeSearchOptions options = sweep->options;
    MtfSearchControl part;
    mtf_search_control_init_share(&part, options.control, 1.0 / MAX(1, sweep->searches--));
    part.listener = options.control != NULL ? options.control->listener : NULL;
    options.control = mtf_search_has_deadline(options.control) ? &part : options.control;
    options.memory_limit = limit;
    options.incumbents = sweep->pool;
    if (!mtf_free_search(sweep->problem, &options, answer, &cause)) {
        if (mtf_search_is_over(options.control))
            g_clear_error(&cause);
        else
            g_propagate_error(error, cause);
        return cause == NULL;
    }
    const MtfIncumbent *known = mtf_incumbents_best(sweep->pool, limit);
    if (answer->layout != NULL && (known == NULL || answer->cost < known->cost))
        mtf_incumbents_add(sweep->pool, MTF_FREE_LAYOUT, answer->layout);
    return true;
}

/* The least limit that would do, as far as is known, or as one layout is known to do; 0: neither. */
static bool find_least(Sweep *sweep, int64_t *least, GError **error) {
    MtfFreeAnswer answer;
    bool done = search_under(sweep, 1, &answer, error);
    *least = answer.limit_enough;
    const MtfIncumbent *smallest = mtf_incumbents_smallest(sweep->pool);
    if (*least == 0 && smallest != NULL)
        *least = smallest->arena_bytes;
    mtf_free_answer_clear(&answer);
    return done;
}

/* The limit under which nothing is gained any more. */
static bool find_most(Sweep *sweep, int64_t *most, GError **error) {
    MtfFreeAnswer answer;
    bool done = search_under(sweep, INT64_MAX, &answer, error);
    sweep->unlimited_bound = answer.bound;
    *most = done && answer.layout != NULL ? mtf_incumbents_best(sweep->pool, INT64_MAX)->arena_bytes
                                          : 0;
    mtf_free_answer_clear(&answer);
    return done;
}

static int64_t step_unit(int64_t step) {
    return step >= GIB ? GIB : step >= MIB ? MIB : 1;
}

static int compare_limits(gconstpointer a, gconstpointer b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void add_limit(GArray *limits, int64_t limit) {
    for (guint i = 0; i < limits->len; i++)
        if (g_array_index(limits, int64_t, i) == limit)
            return;
    g_array_append_val(limits, limit);
}

/* `n` limits from `least` to `most`, rounded up to whole units, and `own` where it lies between. */
static GArray *list_limits(int64_t least, int64_t most, int n, int64_t own) {
    GArray *limits = g_array_new(FALSE, FALSE, sizeof(int64_t));
    int64_t range = MAX(0, most - least), unit = step_unit(range / (n - 1));
    for (int i = 0; i < n; i++) {
        int64_t limit = least + (int64_t)((double)range * i / (n - 1));
        add_limit(limits, (limit + unit - 1) / unit * unit);
    }
    if (own >= least && own <= most)
        add_limit(limits, own);
    g_array_sort(limits, compare_limits);
    return limits;
}

static bool sweep_limits(Sweep *sweep, const GArray *limits, GError **error) {
    for (guint i = 0; i < limits->len; i++) {
        int64_t limit = g_array_index(limits, int64_t, i);
        MtfFreeAnswer answer;
        bool done = search_under(sweep, limit, &answer, error);
        MtfFrontierPoint point = { .limit = limit, .bound = answer.bound };
        mtf_free_answer_clear(&answer);
        if (!done)
            return false;
        g_array_append_val(sweep->points, point);
    }
    return true;
}

/* Gives every limit the best layouts of the whole pool. A bound holds for lower limits, too; that of the
 * last limit for higher ones. */
static void compute_points(Sweep *sweep) {
    int64_t bound = INT64_MIN;
    if (sweep->points->len > 0) {
        MtfFrontierPoint *last =
            &g_array_index(sweep->points, MtfFrontierPoint, sweep->points->len - 1);
        last->bound = MIN(last->bound, sweep->unlimited_bound);
    }
    for (guint i = sweep->points->len; i-- > 0;) {
        MtfFrontierPoint *point = &g_array_index(sweep->points, MtfFrontierPoint, i);
        point->cheapest = mtf_incumbents_best(sweep->pool, point->limit);
        point->fastest = mtf_incumbents_fastest(sweep->pool, point->limit);
        if (point->cheapest == NULL) {
            g_array_remove_index(sweep->points, i);
            continue;
        }
        bound = MIN(MAX(bound, point->bound), point->cheapest->cost);
        point->bound = bound;
    }
}

GArray *mtf_frontier(MtfFreeProblem *problem, const MtfFreeSearchOptions *options, int n,
                     MtfIncumbents *pool, GError **error) {
    g_autoptr(GArray) points = g_array_new(FALSE, TRUE, sizeof(MtfFrontierPoint));
    Sweep sweep = { .problem = problem,
                    .options = *options,
                    .pool = pool,
                    .points = points,
                    .searches = n + UNLISTED };
    int64_t least = 0, most = 0;
    g_assert(n >= 2);
    if (!find_least(&sweep, &least, error) || !find_most(&sweep, &most, error))
        return NULL;
    if (least > 0 && most > 0) {
        g_autoptr(GArray) limits = list_limits(least, most, n, options->memory_limit);
        if (!sweep_limits(&sweep, limits, error))
            return NULL;
    }
    compute_points(&sweep);
    return g_steal_pointer(&points);
}

cJSON *mtf_frontier_to_json(const GArray *frontier) {
    cJSON *list = cJSON_CreateArray();
    for (guint i = 0; i < frontier->len; i++) {
        const MtfFrontierPoint *point = &g_array_index(frontier, MtfFrontierPoint, i);
        cJSON *object = cJSON_CreateObject();
        mtf_json_add_integer(object, "limit_bytes", point->limit);
        mtf_json_add_integer(object, "memory_bytes", point->fastest->arena_bytes);
        mtf_json_add_integer(object, "cost", point->cheapest->cost);
        mtf_json_add_integer(object, "bound", point->bound);
        mtf_json_add_number(object, "step_seconds", point->fastest->step_seconds);
        cJSON_AddStringToObject(object, "name", point->fastest->name);
        cJSON_AddItemToArray(list, object);
    }
    return list;
}
