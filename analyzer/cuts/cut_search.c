// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/cuts/cut_search.h"

#include "analyzer/cuts/unit_prices.h"
#include "analyzer/stages/latency_search.h"
#include "analyzer/training/microbatch_graph.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"

#include <math.h>

#define MOST_UNITS 32
/* Ways of one size that a stage may choose from: from the fastest to the one that holds least. */
#define WAYS_A_SIZE 4
/* Sizes of a stage, from the largest down by halves. */
#define MOST_SIZES 7
#define MOST_MICROBATCHES 512
/* The number of micro-batches that is tried first, or the next above it. */
#define FIRST_MICROBATCHES 48

typedef struct {
    const MtfCutRequest *request;
    const MtfGraphUnits *units;
    GArray *sizes;         /* of int64_t */
    const GPtrArray *ways; /* MtfUnitWay */
    MtfStepVariant variant;
    MtfCutPlan *best;
    int tried;
} Search;

/* One variant of the step: the chain and the way behind each of its prices. */
typedef struct {
    const Search *search;
    MtfChain chain;
    int64_t *size; /* of the chain: WAYS_A_SIZE of each size */
    int *way;      /* at mtf_chain_index */
} Model;

/* ---- Prices of stages ------------------------------------------------------------------------ */

/* The sums over a stage's units in one way. */
typedef struct {
    int way;
    MtfChainPrice price;
} Candidate;

static double carried_seconds(const Search *search, int first, int64_t devices) {
    const MtfNetworkAxis *link = &search->request->machine->network.axis[0];
    bool narrow = g_strcmp0(search->variant.precision, "bf16") == 0;
    double bytes = search->units->crossing[first] / search->variant.microbatches;
    if (first == 0)
        return 0;
    return 2 * (link->latency + (narrow ? 0.5 : 1) * bytes / (double)devices / link->bandwidth);
}

static MtfChainPrice sum_units(const Search *search, const MtfUnitWay *way, int first, int end) {
    MtfChainPrice price = { carried_seconds(search, first, way->devices), 0, 0 };
    double work = 0;
    for (int u = first; u < end; u++) {
        const MtfUnitPrice *unit = &way->price[search->units->kind[u]];
        price.seconds += unit->seconds + unit->once / search->variant.microbatches;
        price.fixed += unit->fixed;
        price.flight += unit->flight;
        work = fmax(work, unit->work);
    }
    price.fixed += work;
    return price;
}

static gint compare_candidates(gconstpointer a, gconstpointer b) {
    const Candidate *x = a, *y = b;
    if (x->price.seconds < y->price.seconds || x->price.seconds > y->price.seconds)
        return x->price.seconds < y->price.seconds ? -1 : 1;
    return x->way - y->way;
}

/* Whether a faster way holds no more. */
static bool is_dominated(const GArray *kept, const Candidate *candidate) {
    for (guint i = 0; i < kept->len; i++) {
        const MtfChainPrice *other = &g_array_index(kept, Candidate, i).price;
        if (other->fixed <= candidate->price.fixed && other->flight <= candidate->price.flight)
            return true;
    }
    return false;
}

/* The ways of one size for a stage: the fastest, then those that hold less for more time. */
static void fill_stage(Model *model, int first, int end, guint z) {
    const Search *search = model->search;
    int64_t devices = g_array_index(search->sizes, int64_t, z);
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Candidate));
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(Candidate));
    for (guint w = 0; w < search->ways->len; w++) {
        const MtfUnitWay *way = g_ptr_array_index(search->ways, w);
        if (way->devices != devices)
            continue;
        Candidate candidate = { (int)w, sum_units(search, way, first, end) };
        if (candidate.price.fixed + candidate.price.flight <= model->chain.memory)
            g_array_append_val(all, candidate);
    }
    g_array_sort(all, compare_candidates);
    for (guint i = 0; i < all->len; i++)
        if (!is_dominated(kept, &g_array_index(all, Candidate, i)))
            g_array_append_val(kept, g_array_index(all, Candidate, i));
    for (guint k = 0; k < WAYS_A_SIZE; k++) {
        gsize at = mtf_chain_index(&model->chain, first, end, (int)(z * WAYS_A_SIZE + k));
        model->chain.price[at].seconds = INFINITY;
        if (k >= kept->len)
            continue;
        guint i = kept->len <= WAYS_A_SIZE ? k : k * (kept->len - 1) / (WAYS_A_SIZE - 1);
        model->chain.price[at] = g_array_index(kept, Candidate, i).price;
        model->way[at] = g_array_index(kept, Candidate, i).way;
    }
}

static void model_init(Model *model, const Search *search) {
    const MtfCutRequest *request = search->request;
    int64_t unit = g_array_index(search->sizes, int64_t, 0);
    *model = (Model){ .search = search };
    model->size = g_new(int64_t, search->sizes->len * WAYS_A_SIZE);
    for (guint z = 0; z < search->sizes->len * WAYS_A_SIZE; z++)
        model->size[z] = g_array_index(search->sizes, int64_t, z / WAYS_A_SIZE) / unit;
    model->chain = (MtfChain){ .layers = search->units->units,
                               .sizes = (int)search->sizes->len * WAYS_A_SIZE,
                               .size = model->size,
                               .devices = request->devices / unit,
                               .all_devices = true,
                               .batch = search->variant.microbatches,
                               .memory = (double)request->memory,
                               .most_stages = request->stages,
                               .least_stages = request->stages };
    gsize prices = mtf_chain_prices(&model->chain);
    model->chain.price = g_new0(MtfChainPrice, prices);
    model->way = g_new0(int, prices);
    for (int first = 0; first < model->chain.layers; first++)
        for (int end = first + 1; end <= model->chain.layers; end++)
            for (guint z = 0; z < search->sizes->len; z++)
                fill_stage(model, first, end, z);
}

static void model_clear(Model *model) {
    g_free(model->size);
    g_free(model->chain.price);
    g_free(model->way);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

/* Each unit's work where it costs least device-seconds, spread evenly. */
static double even_seconds(const Search *search) {
    double sum = 0;
    for (int u = 0; u < search->units->units; u++) {
        double least = INFINITY;
        for (guint w = 0; w < search->ways->len; w++) {
            const MtfUnitWay *way = g_ptr_array_index(search->ways, w);
            const MtfUnitPrice *price = &way->price[search->units->kind[u]];
            double seconds = search->variant.microbatches * price->seconds + price->once;
            least = fmin(least, seconds * (double)way->devices);
        }
        sum += least;
    }
    return sum / (double)search->request->devices;
}

/* The number of the stage's price among those of its size. */
static int find_price(const Model *model, const MtfStage *stage) {
    for (int z = 0; z < model->chain.sizes; z++) {
        const MtfChainPrice *price =
            &model->chain.price[mtf_chain_index(&model->chain, stage->from, stage->to, z)];
        double miss = fabs(price->seconds - stage->seconds);
        bool fits = price->fixed + (double)stage->flight * price->flight <= model->chain.memory;
        if (model->size[z] == stage->replicas && miss <= 1e-12 * stage->seconds && fits)
            return z;
    }
    g_assert_not_reached();
}

static MtfCutPlan *plan_new(const Model *model, const MtfStagePlan *found) {
    const Search *search = model->search;
    MtfCutPlan *plan = g_new0(MtfCutPlan, 1);
    plan->stages = g_array_new(FALSE, FALSE, sizeof(MtfCutStage));
    plan->names = g_ptr_array_new_with_free_func(g_free);
    plan->variant = search->variant;
    plan->seconds = found->seconds;
    plan->bound = even_seconds(search);
    for (guint i = 0; i < found->stages->len; i++) {
        const MtfStage *stage = &g_array_index(found->stages, MtfStage, i);
        int z = find_price(model, stage);
        gsize at = mtf_chain_index(&model->chain, stage->from, stage->to, z);
        const MtfUnitWay *way = g_ptr_array_index(search->ways, model->way[at]);
        const MtfChainPrice *price = &model->chain.price[at];
        MtfCutStage cut = { .first = search->units->begin[stage->from],
                            .end = search->units->begin[stage->to],
                            .devices = way->devices,
                            .mesh = way->mesh,
                            .seconds = stage->seconds,
                            .bytes = price->fixed + (double)stage->flight * price->flight };
        g_ptr_array_add(plan->names, g_strdup(way->name));
        cut.layout = g_ptr_array_index(plan->names, i);
        g_array_append_val(plan->stages, cut);
    }
    return plan;
}

void mtf_cut_plan_free(MtfCutPlan *plan) {
    if (plan == NULL)
        return;
    g_array_unref(plan->stages);
    g_ptr_array_unref(plan->names);
    g_free(plan);
}

void mtf_cut_plan_apply(const MtfCutPlan *plan, MtfGraph *forward) {
    for (guint s = 0; s < plan->stages->len; s++) {
        const MtfCutStage *stage = &g_array_index(plan->stages, MtfCutStage, s);
        for (int i = stage->first; i < stage->end; i++)
            mtf_graph_operation(forward, i)->stage = (int)s + 1;
    }
}

/* ---- Variants -------------------------------------------------------------------------------- */

/* Looks at one number of micro-batches; true where it is better than all before. */
static bool try_variant(Search *search, GError **error) {
    MtfUnitPricing pricing = { search->request->forward, search->units, search->request->machine,
                               search->variant,          search->sizes, search->request->max_axes };
    g_autoptr(GPtrArray) ways = mtf_unit_prices(&pricing, error);
    if (ways == NULL)
        return false;
    search->ways = ways;
    search->tried++;
    bool better = false;
    if (search->best == NULL || even_seconds(search) < search->best->seconds) {
        Model model;
        model_init(&model, search);
        g_autoptr(MtfStagePlan) found = mtf_latency_search(&model.chain, NULL);
        better = found != NULL && (search->best == NULL || found->seconds < search->best->seconds);
        if (better) {
            mtf_cut_plan_free(search->best);
            search->best = plan_new(&model, found);
        }
        model_clear(&model);
    }
    search->ways = NULL;
    return better;
}

/* Numbers of micro-batches, ascending: so that each holds a power of two of examples, which divides
 * well among devices; or, of an odd batch, all divisors. */
static GArray *list_microbatches(const MtfCutRequest *request, int64_t batch) {
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(int));
    if (request->microbatches > 0)
        g_array_append_val(counts, request->microbatches);
    for (int m = 2; request->microbatches == 0 && m <= batch && m <= MOST_MICROBATCHES; m++) {
        int64_t examples = batch / m;
        bool power = (examples & (examples - 1)) == 0 || batch % 2 != 0;
        if (batch % m == 0 && power && (m >= request->stages || m == batch))
            g_array_append_val(counts, m);
    }
    for (int m = 2; counts->len == 0 && m <= batch; m++)
        if (batch % m == 0)
            g_array_append_val(counts, m);
    return counts;
}

/* Looks at the i-th number; false on an error. */
static bool try_count(Search *search, const GArray *counts, int i, bool *better, GError **error) {
    GError *cause = NULL;
    search->variant.microbatches = g_array_index(counts, int, i);
    *better = try_variant(search, &cause);
    if (cause != NULL)
        g_propagate_error(error, cause);
    return cause == NULL;
}

/* From one number on in one direction, until the next is no better than the best so far. */
static bool try_direction(Search *search, const GArray *counts, int i, int step, bool *moved,
                          GError **error) {
    bool better = true;
    *moved = false;
    for (i += step; i >= 0 && i < (int)counts->len && (better || search->best == NULL); i += step) {
        if (!try_count(search, counts, i, &better, error))
            return false;
        *moved |= better;
    }
    return true;
}

/* Where to begin: the number of the best plan so far, or one at which bubbles are short. */
static int begin_at(const Search *search, const GArray *counts) {
    int wanted = search->best != NULL ? search->best->variant.microbatches : FIRST_MICROBATCHES;
    int i = 0;
    while (i + 1 < (int)counts->len && g_array_index(counts, int, i) < wanted)
        i++;
    return i;
}

/* More micro-batches mean shorter bubbles and smaller products: the best number is looked for up and
 * down from one in the middle. */
static bool try_recompute(Search *search, MtfRecompute recompute, const GArray *counts,
                          GError **error) {
    int begin = begin_at(search, counts);
    bool better, up, down;
    search->variant.recompute = recompute;
    return try_count(search, counts, begin, &better, error) &&
           try_direction(search, counts, begin, 1, &up, error) &&
           (up || try_direction(search, counts, begin, -1, &down, error));
}

static bool try_all(Search *search, GError **error) {
    const MtfCutRequest *request = search->request;
    int batch = mtf_batch_dimension(request->forward, request->batch_dim, error);
    if (batch < 0)
        return false;
    g_autoptr(GArray) counts = list_microbatches(request, mtf_graph_size(request->forward, batch));
    for (int r = 0; r < MTF_RECOMPUTES; r++) {
        bool asked = request->recompute == r;
        bool any = request->recompute == MTF_RECOMPUTES && r != MTF_RECOMPUTE_CHEAP &&
                   (r != MTF_RECOMPUTE_LAYERS || request->forward->repeats->len > 0);
        if ((asked || any) && !try_recompute(search, (MtfRecompute)r, counts, error))
            return false;
    }
    return true;
}

/* Halves of the devices down to what so many units or stages can use. */
static GArray *list_sizes(const MtfCutRequest *request, int units) {
    GArray *sizes = g_array_new(FALSE, FALSE, sizeof(int64_t));
    int64_t size = request->devices;
    if (request->stages > 0)
        size = request->devices % request->stages == 0 ? request->devices / request->stages : 1;
    for (int i = 0; i < MOST_SIZES; i++) {
        g_array_prepend_val(sizes, size);
        bool enough = request->stages > 0 || request->devices / size >= units;
        if (size % 2 != 0 || enough)
            break;
        size /= 2;
    }
    return sizes;
}

static bool fail_unfit(const MtfCutRequest *request, GError **error) {
    g_autofree char *bytes = mtf_bytes_format((double)request->memory);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no cut into stages fits in %s a device under the layouts tried: more devices, "
                "smaller micro-batches or --recompute layers need less",
                bytes);
    return false;
}

MtfCutPlan *mtf_cut_search(const MtfCutRequest *request, GError **error) {
    g_autoptr(MtfGraphUnits) units = mtf_graph_units_new(request->forward, MOST_UNITS);
    Search search = { .request = request, .units = units };
    search.variant = (MtfStepVariant){ .batch_dim = request->batch_dim,
                                       .precision = request->precision,
                                       .fuses = request->machine->software != NULL };
    search.sizes = list_sizes(request, units->units);
    bool done = try_all(&search, error) && (search.best != NULL || fail_unfit(request, error));
    g_array_unref(search.sizes);
    if (!done) {
        mtf_cut_plan_free(search.best);
        return NULL;
    }
    search.best->tried = search.tried;
    return search.best;
}
