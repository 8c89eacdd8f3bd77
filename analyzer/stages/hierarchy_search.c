// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/hierarchy_search.h"

#include <math.h>

/* What the best continuation from a downset does: the stage up to `middle` on `width` devices (or
 * machines), then the rest. */
typedef struct {
    double seconds;
    int middle;
    int64_t width;
} Step;

typedef struct {
    const MtfDownsets *cuts;
    const MtfStageLevels *levels;
    const MtfStageMachine *machine;
    MtfStagePricer *pricer;
    double *work;         /* by downset: seconds of its nodes on one device */
    GPtrArray *supersets; /* by downset: GArray of int, itself left out, ascending in work */
    GHashTable *tables;   /* by what comes after and machines: double *, from × to */
} Search;

/* Where an outer stage stands: devices after it, and on how many machines it runs. */
typedef struct {
    int64_t after, machines;
} Place;

static const GArray *supersets_of(const Search *search, int d) {
    return g_ptr_array_index(search->supersets, d);
}

static double exchange_seconds(const Search *search, int level, int from, int to, int64_t width) {
    double m = (double)width;
    return 4 * (m - 1) * mtf_stage_parameters(search->pricer, from, to) /
           (search->levels->bandwidth[level] * m);
}

/* An inner stage on d devices; INFINITY where it does not fit. `inside` devices of its machine are
 * used by it and by what follows it there. */
static double inner_stage(Search *search, const Place *place, int from, int to, int64_t d,
                          int64_t inside) {
    int64_t replicas = d * place->machines, after = place->after + inside * place->machines;
    int64_t flight = (after + replicas - 1) / replicas;
    MtfStageSpan span = { from, to, 1, replicas, flight };
    if (search->machine->batch > 0)
        span.flight = MIN(flight, search->machine->batch);
    if (isfinite(search->machine->memory) && isinf(mtf_stage_seconds(search->pricer, &span)))
        return INFINITY;
    return (mtf_stage_work(search->pricer, from, to) + exchange_seconds(search, 0, from, to, d)) /
           (double)d;
}

static void improve(Step *step, double seconds, int middle, int64_t width) {
    if (seconds < step->seconds)
        *step = (Step){ seconds, middle, width };
}

/* The first superset of `from`, in the order of work, that holds more than some. */
static guint first_above(const Search *search, const GArray *middles, double work) {
    guint low = 0, high = middles->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (search->work[g_array_index(middles, int, middle)] > work)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Splits behind a stage on d of `used` devices. A pipeline is at least as slow as its work spread
 * evenly, so what could improve a step of t seconds lies in a window of work that narrows with t:
 *
 *     W(to) − t (used − d)  <  W(middle)  <  W(from) + t d                                    */
static void split_inner(Search *search, const Place *place, MtfStageSpan span, int64_t used,
                        Step *steps) {
    const GArray *middles = supersets_of(search, span.from);
    int64_t n = search->levels->devices[0], d = span.replicas;
    Step *step = &steps[span.from * (n + 1) + used];
    double slack = 1e-12 * search->work[span.to];
    double low = search->work[span.to] - step->seconds * (double)(used - d) - slack;
    for (guint i = first_above(search, middles, low); i < middles->len; i++) {
        int middle = g_array_index(middles, int, i);
        if (search->work[middle] > search->work[span.from] + step->seconds * (double)d + slack)
            return;
        if (middle >= span.to || steps[middle * (n + 1)].middle != span.to)
            continue;
        double rest = steps[middle * (n + 1) + used - d].seconds;
        if (rest < step->seconds)
            improve(step, fmax(rest, inner_stage(search, place, span.from, middle, d, used)),
                    middle, d);
    }
}

/* The best inner pipeline from `from` to `to` on exactly `used` devices of a machine, given the best
 * ones from every superset; steps[d * (n + 1) + used]. */
static void extend_inner(Search *search, const Place *place, int from, int to, Step *steps) {
    int64_t n = search->levels->devices[0];
    for (int64_t used = 1; used <= n; used++) {
        Step *step = &steps[from * (n + 1) + used];
        *step = (Step){ INFINITY, -1, 0 };
        improve(step, inner_stage(search, place, from, to, used, used), to, used);
        for (int64_t d = 1; d < used; d++) {
            MtfStageSpan span = { .from = from, .to = to, .replicas = d };
            split_inner(search, place, span, used, steps);
        }
    }
}

/* Fills steps for every downset inside `to`; steps[d * (n + 1)].middle is `to` where d is one. */
static void plan_inner(Search *search, const Place *place, int to, Step *steps) {
    int64_t n = search->levels->devices[0];
    for (int d = 0; d < to; d++)
        steps[d * (n + 1)].middle = mtf_downsets_nested(search->cuts, d, to) ? to : -1;
    for (int from = to - 1; from >= 0; from--)
        if (steps[from * (n + 1)].middle == to)
            extend_inner(search, place, from, to, steps);
}

static int64_t best_use(const Search *search, const Step *steps, int from) {
    int64_t n = search->levels->devices[0], best = 1;
    for (int64_t used = 2; used <= n; used++)
        if (steps[from * (n + 1) + used].seconds < steps[from * (n + 1) + best].seconds)
            best = used;
    return best;
}

static Step *new_steps(const Search *search) {
    gsize row = (gsize)search->levels->devices[0] + 1;
    return g_new0(Step, row * (gsize)search->cuts->count);
}

/* The seconds of the best inner pipeline for every stage, where it stands. Without a limit of memory
 * every place is alike. */
static const double *inner_table(Search *search, Place place) {
    int count = search->cuts->count;
    int64_t n = search->levels->devices[0];
    if (!isfinite(search->machine->memory))
        place = (Place){ 0, 1 };
    gint64 key = place.after * (MTF_STAGE_DEVICES_MAX + 1) + place.machines;
    double *table = g_hash_table_lookup(search->tables, &key);
    if (table != NULL)
        return table;
    table = g_new(double, (gsize)count *(gsize)count);
    g_autofree Step *steps = new_steps(search);
    for (int to = 1; to < count; to++) {
        plan_inner(search, &place, to, steps);
        for (int from = 0; from < to; from++) {
            bool inside = steps[from * (n + 1)].middle == to;
            table[(gsize)from * (gsize)count + (gsize)to] =
                inside ? steps[from * (n + 1) + best_use(search, steps, from)].seconds : INFINITY;
        }
    }
    g_hash_table_insert(search->tables, g_memdup2(&key, sizeof key), table);
    return table;
}

static double outer_stage(const Search *search, const double *table, int from, int to, int64_t m) {
    double shared = from == 0 ? (double)search->levels->devices[0] : 1;
    double inner = table[(gsize)from * (gsize)search->cuts->count + (gsize)to];
    return (inner + exchange_seconds(search, 1, from, to, m) / shared) / (double)m;
}

/* outer[d * (n + 1) + u]: from downset d to the end on u machines, the first stage on m of them. */
static void extend_outer(Search *search, Step *outer, int64_t u, int64_t m) {
    int64_t n = search->levels->devices[1];
    Place place = { (u - m) * search->levels->devices[0], m };
    const double *table = inner_table(search, place);
    for (int from = 0; from < search->cuts->count - 1; from++) {
        const GArray *middles = supersets_of(search, from);
        Step *step = &outer[from * (n + 1) + u];
        for (guint i = 0; i < middles->len; i++) {
            int to = g_array_index(middles, int, i);
            double rest = outer[to * (n + 1) + u - m].seconds;
            if (rest < step->seconds)
                improve(step, fmax(rest, outer_stage(search, table, from, to, m)), to, m);
        }
    }
}

static Step *plan_outer(Search *search) {
    int64_t n = search->levels->devices[1];
    int count = search->cuts->count;
    Step *outer = g_new(Step, (gsize)count * (gsize)(n + 1));
    for (int d = 0; d < count; d++)
        for (int64_t u = 0; u <= n; u++)
            outer[d * (n + 1) + u] = (Step){ d == count - 1 && u == 0 ? 0 : INFINITY, -1, 0 };
    for (int64_t u = 1; u <= n; u++)
        for (int64_t m = 1; m <= u; m++)
            extend_outer(search, outer, u, m);
    return outer;
}

/* The inner stages of an outer one on m machines, with the outer level's share of their seconds. */
static void append_inner(Search *search, Place place, int from, int to, MtfStagePlan *plan) {
    int64_t n = search->levels->devices[0];
    g_autofree Step *steps = new_steps(search);
    plan_inner(search, &place, to, steps);
    double shared = from == 0 ? (double)n : 1;
    double outer = exchange_seconds(search, 1, from, to, place.machines) / shared;
    int64_t used = best_use(search, steps, from);
    for (const Step *step; from != to; from = step->middle, used -= step->width) {
        step = &steps[from * (n + 1) + used];
        int64_t after = place.after + used * place.machines, d = step->width * place.machines;
        MtfStage stage = { from, step->middle, 1, d, (after + d - 1) / d, 0, 0 };
        double inner = inner_stage(search, &place, from, step->middle, step->width, used);
        stage.seconds = (inner + outer) / (double)place.machines;
        if (search->machine->batch > 0)
            stage.flight = MIN(stage.flight, search->machine->batch);
        MtfStageSpan span = { from, step->middle, 1, d, stage.flight };
        stage.bytes = mtf_stage_bytes(search->pricer, &span, NULL);
        g_array_append_val(plan->stages, stage);
        plan->seconds = fmax(plan->seconds, stage.seconds);
    }
}

static MtfStagePlan *read_plan(Search *search, const Step *outer, int64_t machines) {
    int64_t n = search->levels->devices[1];
    MtfStagePlan *plan = mtf_stage_plan_new();
    int from = 0, last = search->cuts->count - 1;
    for (const Step *step; from != last; from = step->middle, machines -= step->width) {
        step = &outer[from * (n + 1) + machines];
        Place place = { (machines - step->width) * search->levels->devices[0], step->width };
        append_inner(search, place, from, step->middle, plan);
    }
    double even = mtf_stage_work(search->pricer, 0, last) /
                  (double)(search->levels->devices[0] * search->levels->devices[1]);
    plan->bound = search->cuts->complete ? plan->seconds : even;
    return plan;
}

static gint compare_work(gconstpointer a, gconstpointer b, gpointer user) {
    const double *work = user;
    int x = *(const int *)a, y = *(const int *)b;
    return work[x] < work[y] ? -1 : work[x] > work[y] ? 1 : x - y;
}

static void list_supersets(Search *search) {
    search->work = g_new(double, search->cuts->count);
    for (int d = 0; d < search->cuts->count; d++)
        search->work[d] = mtf_stage_work(search->pricer, 0, d);
    search->supersets = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (int from = 0; from < search->cuts->count; from++) {
        GArray *list = g_array_new(FALSE, FALSE, sizeof(int));
        for (int to = from + 1; to < search->cuts->count; to++)
            if (mtf_downsets_nested(search->cuts, from, to))
                g_array_append_val(list, to);
        g_array_sort_with_data(list, compare_work, search->work);
        g_ptr_array_add(search->supersets, list);
    }
}

MtfStagePlan *mtf_hierarchy_search(const MtfStageGraph *graph, const MtfDownsets *cuts,
                                   const MtfStageLevels *levels, const MtfStageMachine *machine,
                                   GError **error) {
    Search search = { .cuts = cuts, .levels = levels, .machine = machine };
    search.pricer = mtf_stage_pricer_new(graph, cuts, machine);
    search.tables = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    list_supersets(&search);
    g_autofree Step *outer = plan_outer(&search);
    MtfStagePlan *plan = NULL;
    int64_t n = levels->devices[1], best = 1;
    for (int64_t u = 2; u <= n; u++)
        best = outer[u].seconds < outer[best].seconds ? u : best;
    if (isinf(outer[best].seconds))
        mtf_stage_plan_fail(machine->memory, error);
    else
        plan = read_plan(&search, outer, best);
    g_ptr_array_unref(search.supersets);
    g_free(search.work);
    g_hash_table_unref(search.tables);
    mtf_stage_pricer_free(search.pricer);
    return plan;
}
