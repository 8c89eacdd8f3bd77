// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/latency_search.h"

#include "layouts/base/error.h"

#include <math.h>

typedef struct {
    double sum; /* of seconds over the stages from here to the end */
    int end, size;
} Step;

/* F(s, k, d): s layers of tables, or one for all s where memory has no limit. */
typedef struct {
    const MtfChain *chain;
    int stages;                /* the most counted; 0: not counted */
    int64_t smallest, largest; /* sizes of submeshes */
    Step *steps;               /* (s, k, d) */
    GArray *maxima;            /* of double: the different seconds of stages, ascending */
    MtfStagePlan *best;
} Search;

gsize mtf_chain_index(const MtfChain *chain, int first, int end, int size) {
    gsize row = (gsize)chain->layers + 1;
    return ((gsize)first * row + (gsize)end) * (gsize)chain->sizes + (gsize)size;
}

gsize mtf_chain_prices(const MtfChain *chain) {
    gsize row = (gsize)chain->layers + 1;
    return row * row * (gsize)chain->sizes;
}

static Step *step_at(const Search *search, int s, int first, int64_t devices) {
    gsize row = (gsize)search->chain->devices + 1;
    gsize plane = ((gsize)search->chain->layers + 1) * row;
    gsize table = search->stages > 0 ? (gsize)s : 0;
    return &search->steps[table * plane + (gsize)first * row + (gsize)devices];
}

static bool fits(const MtfChain *chain, const MtfChainPrice *price, int s) {
    double flight = (double)MIN((int64_t)s, chain->batch);
    return price->fixed + flight * price->flight <= chain->memory;
}

/* Whether the s-th stage from the end may be of that size. */
static bool suits(const MtfChain *chain, int s, int size) {
    return chain->kind_of_stage == NULL ||
           chain->kind_of_size[size] == chain->kind_of_stage[chain->most_stages - s];
}

static void clear_table(const Search *search, int s) {
    const MtfChain *chain = search->chain;
    for (int k = 0; k <= chain->layers; k++)
        for (int64_t d = 0; d <= chain->devices; d++)
            *step_at(search, s, k, d) = (Step){ INFINITY, -1, 0 };
}

/* Tries one stage before every number of devices that what follows it may use. */
static void try_stage(const Search *search, int s, int first, int end, int size) {
    const MtfChain *chain = search->chain;
    int64_t taken = chain->size[size];
    int after = search->stages > 0 ? s - 1 : 0;
    double seconds = chain->price[mtf_chain_index(chain, first, end, size)].seconds;
    /* What s - 1 stages may use: no more than the largest size for each. */
    int64_t most = search->stages > 0 ? taken + (s - 1) * search->largest : chain->devices;
    int64_t least = search->stages > 0 ? taken + (s - 1) * search->smallest : taken;
    for (int64_t d = least; d <= MIN(most, chain->devices); d++) {
        double sum = seconds + step_at(search, after, end, d - taken)->sum;
        Step *step = step_at(search, s, first, d);
        if (sum < step->sum)
            *step = (Step){ sum, end, size };
    }
}

static void fill_table(const Search *search, int s, double most) {
    const MtfChain *chain = search->chain;
    for (int first = chain->layers - 1; first >= 0; first--)
        for (int end = first + 1; end <= chain->layers; end++)
            for (int size = 0; size < chain->sizes; size++) {
                const MtfChainPrice *price =
                    &chain->price[mtf_chain_index(chain, first, end, size)];
                bool good = search->stages == 0 || (fits(chain, price, s) && suits(chain, s, size));
                if (price->seconds <= most && good)
                    try_stage(search, s, first, end, size);
            }
}

/* Where F(s, 0, d) is least over the stages and devices that are allowed. */
typedef struct {
    double sum;
    int stages;
    int64_t devices;
} Ending;

static Ending best_ending(const Search *search) {
    const MtfChain *chain = search->chain;
    Ending best = { INFINITY, 0, 0 };
    int least = search->stages > 0 ? MAX(1, chain->least_stages) : 0;
    for (int s = least; s <= search->stages; s++)
        for (int64_t d = chain->all_devices ? chain->devices : 1; d <= chain->devices; d++)
            if (step_at(search, s, 0, d)->sum < best.sum)
                best = (Ending){ step_at(search, s, 0, d)->sum, s, d };
    return best;
}

static void read_plan(const Search *search, Ending ending, MtfStagePlan *plan) {
    const MtfChain *chain = search->chain;
    double slowest = 0;
    int stages = 0;
    g_array_set_size(plan->stages, 0);
    for (int first = 0, s = ending.stages; first < chain->layers; stages++) {
        const Step *step = step_at(search, s, first, ending.devices);
        double seconds = chain->price[mtf_chain_index(chain, first, step->end, step->size)].seconds;
        MtfStage stage = { first, step->end, 1, chain->size[step->size], 0, seconds, 0 };
        g_array_append_val(plan->stages, stage);
        slowest = fmax(slowest, seconds);
        ending.devices -= stage.replicas;
        first = step->end;
        s -= search->stages > 0;
    }
    plan->seconds = ending.sum + (double)(chain->batch - 1) * slowest;
}

static void keep_better(Search *search, Ending ending) {
    g_autoptr(MtfStagePlan) plan = mtf_stage_plan_new();
    read_plan(search, ending, plan);
    if (search->best != NULL && search->best->seconds <= plan->seconds)
        return;
    mtf_stage_plan_free(search->best);
    search->best = g_steal_pointer(&plan);
}

/* F for a t_max, and the plan behind it when it is the best so far. */
static double solve(Search *search, double most) {
    clear_table(search, 0);
    step_at(search, 0, search->chain->layers, 0)->sum = 0;
    for (int s = 1; s <= search->stages; s++) {
        clear_table(search, s);
        fill_table(search, s, most);
    }
    if (search->stages == 0)
        fill_table(search, 0, most);
    Ending ending = best_ending(search);
    if (isfinite(ending.sum))
        keep_better(search, ending);
    return ending.sum;
}

static double maximum_at(const Search *search, int i) {
    return g_array_index(search->maxima, double, i);
}

/* Looks at t_max strictly between the maxima a and b, whose sums are known (F(a) may be infinite). */
static void search_between(Search *search, int a, int b, double at_a, double at_b) {
    if (b - a < 2 || at_a <= at_b)
        return;
    double wait = (double)(search->chain->batch - 1);
    if (at_b + wait * maximum_at(search, a + 1) >= search->best->seconds)
        return;
    int middle = a + (b - a) / 2;
    double at_middle = solve(search, maximum_at(search, middle));
    search_between(search, a, middle, at_a, at_middle);
    search_between(search, middle, b, at_middle, at_b);
}

static gint compare_seconds(gconstpointer a, gconstpointer b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void list_maxima(Search *search) {
    const MtfChain *chain = search->chain;
    GArray *all = g_array_new(FALSE, FALSE, sizeof(double));
    for (int first = 0; first < chain->layers; first++)
        for (int end = first + 1; end <= chain->layers; end++)
            for (int size = 0; size < chain->sizes; size++) {
                const MtfChainPrice *price =
                    &chain->price[mtf_chain_index(chain, first, end, size)];
                if (isfinite(price->seconds) && fits(chain, price, 1))
                    g_array_append_val(all, price->seconds);
            }
    g_array_sort(all, compare_seconds);
    search->maxima = all;
    guint kept = 0;
    for (guint i = 0; i < all->len; i++)
        if (kept == 0 || maximum_at(search, (int)i) > maximum_at(search, (int)kept - 1))
            g_array_index(all, double, kept++) = maximum_at(search, (int)i);
    g_array_set_size(all, kept);
}

static int most_stages(const MtfChain *chain) {
    int most = chain->most_stages > 0 ? MIN(chain->most_stages, chain->layers) : chain->layers;
    return (int)MIN((int64_t)most, chain->devices);
}

/* How many micro-batches the stages of a plan hold at most, and the bytes. */
static void measure_plan(const MtfChain *chain, MtfStagePlan *plan) {
    for (guint i = 0; i < plan->stages->len; i++) {
        MtfStage *stage = &g_array_index(plan->stages, MtfStage, i);
        int size = 0;
        while (chain->size[size] != stage->replicas)
            size++;
        const MtfChainPrice *price =
            &chain->price[mtf_chain_index(chain, stage->from, stage->to, size)];
        stage->flight = MIN((int64_t)(plan->stages->len - i), chain->batch);
        stage->bytes = price->fixed + (double)stage->flight * price->flight;
    }
    plan->bound = plan->seconds;
}

static void search_maxima(Search *search) {
    int last = (int)search->maxima->len - 1;
    double at_last = last >= 0 ? solve(search, maximum_at(search, last)) : INFINITY;
    if (isinf(at_last))
        return;
    search_between(search, -1, last, INFINITY, at_last);
}

MtfStagePlan *mtf_latency_search(const MtfChain *chain, GError **error) {
    Search search = { .chain = chain, .smallest = chain->size[0], .largest = chain->size[0] };
    for (int z = 1; z < chain->sizes; z++) {
        search.smallest = MIN(search.smallest, chain->size[z]);
        search.largest = MAX(search.largest, chain->size[z]);
    }
    bool counted = isfinite(chain->memory) || chain->most_stages > 0;
    search.stages = counted ? most_stages(chain) : 0;
    gsize tables = (gsize)search.stages + 1;
    search.steps = g_new(Step, tables * ((gsize)chain->layers + 1) * ((gsize)chain->devices + 1));
    list_maxima(&search);
    search_maxima(&search);
    g_array_unref(search.maxima);
    g_free(search.steps);
    if (search.best == NULL)
        g_set_error(error, MTF_ERROR, MTF_ERROR_FIT, "no division into stages fits the devices");
    else
        measure_plan(chain, search.best);
    return search.best;
}
