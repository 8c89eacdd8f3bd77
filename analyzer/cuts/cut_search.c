// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/cuts/cut_search.h"

#include "analyzer/cuts/stage_sizes.h"
#include "analyzer/planner/mesh_shapes.h"
#include "analyzer/training/batch_dimension.h"
#include "layouts/base/command_line.h"
#include "layouts/base/error.h"

#include <inttypes.h>
#include <math.h>

/* Layers of a graph up to this number may all be cut between. */
#define MOST_UNITS 160
/* Stages of any size are chosen between at most this many parts of the graph. */
#define MOST_PARTS 32
#define MOST_MICROBATCHES 512
/* The number of micro-batches that is tried first, or the next above it. */
#define FIRST_MICROBATCHES 48
/* A stage that takes more than this share of the memory may have been laid out to save some. */
#define SHORT_OF_MEMORY 0.5
/* Stages of a size that takes more than this times the work of another are not priced again. */
#define WASTEFUL 3

/* The best plan with `chunks` chunks a domain; `mixed`: each stage with a recomputation of its own. */
typedef struct {
    int chunks;
    bool mixed;
    double seconds; /* a plan is to take less */
    MtfCutPlan *plan;
} Best;

/* Ways that were priced for a variant. */
typedef struct {
    int microbatches;
    MtfRecompute recompute;
    int64_t memory;  /* that they were last asked for */
    GArray *meshes;  /* MtfMesh: all that were priced */
    GPtrArray *ways; /* MtfUnitWay */
} Priced;

struct MtfCutSearch {
    const MtfCutRequest *request;
    int64_t memory; /* of a device, that plans are to fit into */
    MtfGraphUnits *units;
    GArray *sizes;   /* of int64_t */
    GArray *parts;   /* of int: the units that parts begin at, and the number of units */
    GArray *all;     /* likewise, each unit a part */
    GArray *layers;  /* likewise, each part begins with a layer */
    GPtrArray *ways; /* MtfUnitWay, for the variant; borrowed from `priced` */
    MtfStepVariant variant;
    bool thorough; /* all numbers of micro-batches are looked at until some fit */
    bool mixed;    /* the ways are of several recomputations: */
    MtfRecompute kinds[MTF_RECOMPUTES];
    int n_kinds;
    GArray *priced;    /* Priced */
    GArray *best;      /* Best, one for each number of chunks that is asked for, and a mixed one */
    GPtrArray *others; /* MtfCutPlan, of other numbers of micro-batches */
    int tried;
};

typedef MtfCutSearch Search;

void mtf_cut_plan_apply(const MtfCutPlan *plan, MtfGraph *forward) {
    for (guint s = 0; s < plan->stages->len; s++) {
        const MtfCutStage *stage = &g_array_index(plan->stages, MtfCutStage, s);
        for (int i = stage->first; i < stage->end; i++)
            mtf_graph_operation(forward, i)->stage = (int)s + 1;
    }
}

static MtfCutModel model_of(const Search *search, const GArray *places, const GArray *sizes,
                            int stages) {
    return (MtfCutModel){ .units = search->units,
                          .places = places,
                          .sizes = sizes,
                          .ways = search->ways,
                          .recomputations = search->mixed ? search->n_kinds : 1,
                          .recompute_of_stage = search->request->recompute_of_stage,
                          .variant = search->variant,
                          .machine = search->request->machine,
                          .devices = search->request->devices,
                          .memory = search->memory,
                          .stages = stages,
                          .chunks = 1,
                          .overlaps = search->request->overlaps };
}

/* ---- Divisions ------------------------------------------------------------------------------- */

/* Keeps the model's plan where it is better than all before; true where it is. */
static bool try_model(Best *best, MtfCutModel model) {
    model.chunks = best->chunks;
    MtfCutPlan *plan = mtf_cut_model_solve(&model);
    if (plan == NULL || best->seconds <= plan->seconds) {
        mtf_cut_plan_free(plan);
        return false;
    }
    mtf_cut_plan_free(best->plan);
    best->plan = plan;
    best->seconds = plan->seconds;
    return true;
}

/* Seconds of a micro-batch on `devices` devices, each unit in the way that is fastest; INFINITY: one has none. */
static double least_sum(const Search *search, const GPtrArray *ways, int microbatches,
                        int64_t devices) {
    double sum = 0;
    for (int u = 0; u < search->units->units; u++) {
        double least = INFINITY;
        for (guint w = 0; w < ways->len; w++) {
            const MtfUnitWay *way = g_ptr_array_index(ways, w);
            const MtfUnitPrice *price = &way->price[search->units->kind[u]];
            if (way->devices == devices)
                least = fmin(least, price->seconds + price->once / microbatches);
        }
        sum += least;
    }
    return sum;
}

/* No division into `stages` equal stages takes less: the units' fastest ways, the slowest stage at
 * least their mean. */
static double least_seconds(const Search *search, int chunks, int64_t devices, int64_t stages) {
    int microbatches = search->variant.microbatches;
    double sum = least_sum(search, search->ways, microbatches, devices);
    double filling = search->request->overlaps ? 0 : 1.0 / chunks;
    return sum * filling + sum * (microbatches - filling) / (double)stages +
           mtf_machine_step_seconds(search->request->machine);
}

/* Stages of equal devices, as Megatron and DeepSpeed cut. */
static bool try_equal_sizes(Search *search, Best *best) {
    const MtfCutRequest *request = search->request;
    bool better = false;
    for (guint z = 0; z < search->sizes->len; z++) {
        int64_t size = g_array_index(search->sizes, int64_t, z), stages = request->devices / size;
        bool wanted =
            (request->stages == 0 || request->stages == stages) && request->devices % size == 0;
        bool suits =
            best->chunks == 1 || (stages > 1 && search->variant.microbatches % stages == 0);
        if (!wanted || !suits || stages * best->chunks >= search->all->len ||
            least_seconds(search, best->chunks, size, stages) >= best->seconds)
            continue;
        g_autoptr(GArray) one = g_array_new(FALSE, FALSE, sizeof(int64_t));
        g_array_append_val(one, size);
        better |= try_model(best, model_of(search, search->all, one, (int)stages));
    }
    return better;
}

/* The sizes of the plan's stages, ascending. */
static GArray *list_used_sizes(const Search *search, const MtfCutPlan *plan) {
    GArray *used = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (guint z = 0; z < search->sizes->len; z++) {
        int64_t size = g_array_index(search->sizes, int64_t, z);
        bool found = false;
        for (guint s = 0; s < plan->stages->len; s++)
            found |= g_array_index(plan->stages, MtfCutStage, s).devices == size;
        if (found)
            g_array_append_val(used, size);
    }
    return used;
}

/* One way after another, which all stages have. */
static bool try_megatron(Search *search, Best *best) {
    GPtrArray *all = search->ways;
    bool better = false;
    for (guint w = 0; w < all->len; w++) {
        MtfUnitWay *way = g_ptr_array_index(all, w);
        if (!way->megatron)
            continue;
        g_autoptr(GPtrArray) one = g_ptr_array_new();
        g_ptr_array_add(one, way);
        search->ways = one;
        better |= try_equal_sizes(search, best);
    }
    search->ways = all;
    return better;
}

/* Sizes are chosen between parts; then, between all units, those sizes again. */
static bool try_any_sizes(Search *search, Best *best) {
    int stages = search->request->stages;
    MtfCutModel model = model_of(search, search->parts, search->sizes, stages);
    if (mtf_cut_model_bound(&model) >= best->seconds)
        return false;
    bool better = try_model(best, model);
    if (better && search->all->len > search->parts->len) {
        g_autoptr(GArray) used = list_used_sizes(search, best->plan);
        try_model(best, model_of(search, search->all, used, (int)best->plan->stages->len));
    }
    return better;
}

/* ---- Variants -------------------------------------------------------------------------------- */

static void priced_clear(void *data) {
    g_array_unref(((Priced *)data)->meshes);
    g_ptr_array_unref(((Priced *)data)->ways);
}

static void best_clear(void *data) {
    mtf_cut_plan_free(((Best *)data)->plan);
}

/* The fastest so far of any number of chunks; NULL where nothing fits yet. */
static const MtfCutPlan *best_plan(const Search *search) {
    const MtfCutPlan *best = NULL;
    for (guint i = 0; i < search->best->len; i++) {
        const MtfCutPlan *plan = g_array_index(search->best, Best, i).plan;
        if (plan != NULL && (best == NULL || plan->seconds < best->seconds))
            best = plan;
    }
    return best;
}

/* Whether the units take too many times the device-seconds on stages of this size that they take on others, in as many
 * micro-batches or fewer: in more they take no smaller a share. */
static bool is_wasteful(const Search *search, int64_t size) {
    for (guint i = 0; i < search->priced->len; i++) {
        const Priced *known = &g_array_index(search->priced, Priced, i);
        double own = (double)size * least_sum(search, known->ways, known->microbatches, size);
        double least = INFINITY;
        for (guint z = 0; z < search->sizes->len; z++) {
            int64_t other = g_array_index(search->sizes, int64_t, z);
            least = fmin(least, (double)other *
                                    least_sum(search, known->ways, known->microbatches, other));
        }
        if (known->microbatches <= search->variant.microbatches && isfinite(own) &&
            own > WASTEFUL * least)
            return true;
    }
    return false;
}

/* The sizes that the variant is priced on: of a large graph none above the best plan's that waste work. */
static GArray *list_priced_sizes(const Search *search) {
    GArray *wanted = g_array_new(FALSE, FALSE, sizeof(int64_t));
    const MtfCutPlan *best = search->request->each_number ? NULL : best_plan(search);
    int64_t most = best == NULL ? INT64_MAX : 0;
    for (guint s = 0; best != NULL && s < best->stages->len; s++)
        most = MAX(most, g_array_index(best->stages, MtfCutStage, s).devices);
    for (guint z = 0; z < search->sizes->len; z++) {
        int64_t size = g_array_index(search->sizes, int64_t, z);
        if (size <= most || !is_wasteful(search, size))
            g_array_append_val(wanted, size);
    }
    return wanted;
}

/* Whether ways on the mesh were priced, and none was one that some stage might have. */
static bool is_unwanted(const Search *search, const MtfMesh *mesh) {
    bool known = false;
    for (guint i = 0; i < search->priced->len; i++) {
        const GPtrArray *ways = g_array_index(search->priced, Priced, i).ways;
        for (guint w = 0; w < ways->len; w++) {
            const MtfUnitWay *way = g_ptr_array_index(ways, w);
            if (!mtf_mesh_equal(&way->mesh, mesh))
                continue;
            if (way->wanted)
                return false;
            known = true;
        }
    }
    return known;
}

GArray *mtf_cut_meshes(const MtfCutRequest *request, int64_t devices, GError **error) {
    if (request->mesh == NULL)
        return mtf_mesh_shapes_on(request->machine, (int)devices, request->max_axes, error);
    GArray *one = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    g_array_append_val(one, *request->mesh);
    return one;
}

static bool has_mesh(const GArray *meshes, const MtfMesh *mesh) {
    for (guint i = 0; meshes != NULL && i < meshes->len; i++)
        if (mtf_mesh_equal(&g_array_index(meshes, MtfMesh, i), mesh))
            return true;
    return false;
}

/* The meshes that the variant is to be priced on beside those that are `known` (or NULL): of a large graph, when there
 * is a plan, none that no stage has wanted so far. NULL on an error. */
static GArray *list_further_meshes(const Search *search, const GArray *known, GError **error) {
    const MtfCutRequest *request = search->request;
    g_autoptr(GArray) sizes = list_priced_sizes(search);
    g_autoptr(GArray) meshes = g_array_new(FALSE, TRUE, sizeof(MtfMesh));
    bool narrows = !request->each_number && best_plan(search) != NULL;
    for (guint z = 0; z < sizes->len; z++) {
        g_autoptr(GArray) shapes = mtf_cut_meshes(request, g_array_index(sizes, int64_t, z), error);
        if (shapes == NULL)
            return NULL;
        for (guint i = 0; i < shapes->len; i++) {
            const MtfMesh *mesh = &g_array_index(shapes, MtfMesh, i);
            if (!has_mesh(known, mesh) && !(narrows && is_unwanted(search, mesh)))
                g_array_append_val(meshes, *mesh);
        }
    }
    return g_steal_pointer(&meshes);
}

/* The ways of the variant with that recomputation, as far as they are priced; NULL: none is. */
static Priced *find_priced(const Search *search, MtfRecompute recompute) {
    for (guint i = 0; i < search->priced->len; i++) {
        Priced *known = &g_array_index(search->priced, Priced, i);
        if (known->microbatches == search->variant.microbatches && known->recompute == recompute)
            return known;
    }
    return NULL;
}

/* Notes ways on further meshes; takes both over. */
static GPtrArray *note_priced(Search *search, MtfRecompute recompute, GArray *meshes,
                              GPtrArray *ways) {
    Priced *known = find_priced(search, recompute);
    if (known == NULL) {
        Priced priced = { search->variant.microbatches, recompute, search->memory, meshes, ways };
        g_array_append_val(search->priced, priced);
        return ways;
    }
    g_array_append_vals(known->meshes, meshes->data, meshes->len);
    g_array_unref(meshes);
    g_ptr_array_extend_and_steal(known->ways, ways);
    known->memory = search->memory;
    return known->ways;
}

/* The ways of the variant with that recomputation: where they were priced for other memory, on further meshes that may
 * matter now. NULL on an error. */
static GPtrArray *price_ways(Search *search, MtfRecompute recompute, GError **error) {
    const Priced *known = find_priced(search, recompute);
    if (known != NULL && known->memory == search->memory)
        return known->ways;
    g_autoptr(GArray) meshes =
        list_further_meshes(search, known != NULL ? known->meshes : NULL, error);
    if (meshes == NULL)
        return NULL;
    MtfUnitPricing pricing = { search->request->forward, search->units, search->request->machine,
                               search->variant, meshes };
    pricing.variant.recompute = recompute;
    bool all = known != NULL && meshes->len == 0;
    GPtrArray *ways = all ? g_ptr_array_new() : mtf_unit_prices(&pricing, error);
    return ways != NULL ? note_priced(search, recompute, g_steal_pointer(&meshes), ways) : NULL;
}

/* Ways of all kinds of recomputation that are mixed; NULL on an error. */
static GPtrArray *list_mixed_ways(Search *search, GError **error) {
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (int k = 0; k < search->n_kinds; k++) {
        GPtrArray *ways = price_ways(search, search->kinds[k], error);
        if (ways == NULL)
            return NULL;
        for (guint w = 0; w < ways->len; w++)
            g_ptr_array_add(all, ways->pdata[w]);
    }
    return g_steal_pointer(&all);
}

/* Looks at one number of chunks for the variant; true where it is better than all before. What is not the best
 * is kept where the best of each number of micro-batches is asked for. */
static bool try_chunks(Search *search, Best *best) {
    const MtfCutRequest *request = search->request;
    Best own = { best->chunks, best->mixed, best->seconds, NULL };
    if (request->each_number && !best->mixed)
        own.seconds = INFINITY;
    if (own.chunks == 1 && !request->megatron)
        try_any_sizes(search, &own);
    request->megatron ? try_megatron(search, &own) : try_equal_sizes(search, &own);
    bool better = own.plan != NULL && own.seconds < best->seconds;
    MtfCutPlan *second = better ? best->plan : own.plan;
    if (better)
        *best = own;
    if (second != NULL)
        g_ptr_array_add(search->others, second);
    return better;
}

/* Looks at one number of micro-batches; true where it is better than all before. */
static bool try_variant(Search *search, GError **error) {
    GPtrArray *ways = search->mixed ? list_mixed_ways(search, error)
                                    : price_ways(search, search->variant.recompute, error);
    bool better = false;
    if (ways == NULL)
        return false;
    search->ways = ways;
    search->tried++;
    for (guint i = 0; i < search->best->len; i++) {
        Best *best = &g_array_index(search->best, Best, i);
        if (best->mixed == search->mixed)
            better |= try_chunks(search, best);
    }
    if (search->mixed)
        g_ptr_array_unref(ways);
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
    for (i += step; i >= 0 && i < (int)counts->len && (better || best_plan(search) == NULL);
         i += step) {
        if (!try_count(search, counts, i, &better, error))
            return false;
        *moved |= better;
    }
    return true;
}

/* Where to begin: the number of the best plan so far, or one at which bubbles are short. */
static int begin_at(const Search *search, const GArray *counts) {
    const MtfCutPlan *best = best_plan(search);
    int wanted = best != NULL ? best->variant.microbatches : FIRST_MICROBATCHES;
    int i = 0;
    while (i + 1 < (int)counts->len && g_array_index(counts, int, i) < wanted)
        i++;
    return i;
}

/* More micro-batches mean shorter bubbles and smaller products: the best number is looked for up and
 * down from one in the middle; where that does not fit, down from the largest, which holds least. Where neither
 * fits, others hardly do: they are looked at where nothing else fits, either. */
static bool try_recompute(Search *search, MtfRecompute recompute, const GArray *counts,
                          GError **error) {
    int begin = begin_at(search, counts), last = (int)counts->len - 1;
    bool better, up = false, down;
    search->variant.recompute = recompute;
    if (!try_count(search, counts, begin, &better, error))
        return false;
    bool fits = best_plan(search) != NULL;
    if (!fits && !try_count(search, counts, last, &better, error))
        return false;
    if (best_plan(search) == NULL && !search->thorough)
        return true;
    if (!fits)
        return try_direction(search, counts, last, -1, &down, error);
    return try_direction(search, counts, begin, 1, &up, error) &&
           (up || try_direction(search, counts, begin, -1, &down, error));
}

static Best *find_best(Search *search, int chunks, bool mixed) {
    for (guint i = 0; i < search->best->len; i++) {
        Best *best = &g_array_index(search->best, Best, i);
        if (best->chunks == chunks && best->mixed == mixed)
            return best;
    }
    return NULL;
}

static bool is_short_of_memory(const Search *search, const MtfCutPlan *plan) {
    double most = 0;
    for (guint s = 0; s < plan->stages->len; s++)
        most = fmax(most, g_array_index(plan->stages, MtfCutStage, s).bytes);
    return most > SHORT_OF_MEMORY * (double)search->memory;
}

/* Ways may be of this kind, too. */
static void mix(Search *search, MtfRecompute kind) {
    search->mixed = true;
    search->kinds[search->n_kinds++] = kind;
}

/* Stages recompute what the user says. */
static bool try_given(Search *search, const GArray *counts, GError **error) {
    const MtfCutRequest *request = search->request;
    Best *best = &g_array_index(search->best, Best, 0);
    best->mixed = search->thorough = true;
    for (int r = 0; r < MTF_RECOMPUTES; r++) {
        bool given = false;
        for (int s = 0; s < request->stages * best->chunks; s++)
            given |= (int)request->recompute_of_stage[s] == r;
        if (given)
            mix(search, (MtfRecompute)r);
    }
    return try_recompute(search, search->kinds[0], counts, error);
}

/* Stages that recompute what their own memory asks for: those in front, which hold the most micro-batches.
 * They are looked for where memory matters, and faster than all that recompute alike. Domains of several
 * chunks are taken to hold alike. */
static bool try_mixed(Search *search, const GArray *counts, GError **error) {
    const Best *alike = find_best(search, 1, false);
    const MtfCutPlan *plan = alike != NULL ? alike->plan : NULL;
    if (plan == NULL || plan->stages->len < 2 ||
        (plan->variant.recompute == MTF_RECOMPUTE_NONE && !is_short_of_memory(search, plan)))
        return true;
    Best mixed = { 1, true, plan->seconds, NULL };
    g_array_append_val(search->best, mixed);
    mix(search, MTF_RECOMPUTE_NONE);
    mix(search, MTF_RECOMPUTE_LAYERS);
    return try_recompute(search, MTF_RECOMPUTE_NONE, counts, error);
}

static bool try_each_recompute(Search *search, const GArray *counts, GError **error) {
    const MtfCutRequest *request = search->request;
    bool any = request->recompute == MTF_RECOMPUTES, layers = request->forward->repeats->len > 0;
    for (int r = 0; r < MTF_RECOMPUTES; r++) {
        bool asked = request->recompute == r;
        bool tried = any && r != MTF_RECOMPUTE_CHEAP && (r != MTF_RECOMPUTE_LAYERS || layers);
        if ((asked || tried) && !try_recompute(search, (MtfRecompute)r, counts, error))
            return false;
    }
    return true;
}

static bool try_all(Search *search, GError **error) {
    const MtfCutRequest *request = search->request;
    bool any = request->recompute == MTF_RECOMPUTES, layers = request->forward->repeats->len > 0;
    int batch = mtf_batch_dimension(request->forward, request->batch_dim, error);
    if (batch < 0)
        return false;
    g_autoptr(GArray) counts = list_microbatches(request, mtf_graph_size(request->forward, batch));
    if (counts->len == 0)
        return request->stages == 0 ||
               mtf_input_error(error,
                               "a batch of 1 cannot be divided into micro-batches for %d stages",
                               request->stages);
    if (request->recompute_of_stage != NULL)
        return try_given(search, counts, error);
    if (!try_each_recompute(search, counts, error))
        return false;
    search->thorough = best_plan(search) == NULL;
    if (search->thorough && !try_each_recompute(search, counts, error))
        return false;
    return !any || !layers || request->megatron || try_mixed(search, counts, error);
}

/* Units from `from` on that are of the same kind. */
static int run_length(const MtfGraphUnits *units, int from) {
    int end = from;
    while (end < units->units && units->kind[end] == units->kind[from])
        end++;
    return end - from;
}

/* Parts of one unit, but where many units are alike in a row, or the graph has too many: there parts
 * are of equal numbers of units, which divide the row where such a number is near. */
static GArray *list_parts(const MtfGraphUnits *units) {
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(int));
    int longest = 0;
    for (int u = 0; u < units->units; u++)
        longest = MAX(longest, run_length(units, u));
    int most = MAX(2, MOST_PARTS - (units->units - longest));
    int row = mtf_units_a_part(longest, most), others = 1;
    while (row == 1 && units->units > MOST_PARTS * others)
        others++;
    for (int u = 0, in_row = 0; u < units->units; u++) {
        bool starts = in_row == 0 && run_length(units, u) == longest;
        if (starts)
            in_row = longest;
        int group = in_row > 0 ? MAX(row, others) : others;
        int at = in_row > 0 ? longest - in_row : u;
        if (u == 0 || starts || at % group == 0)
            g_array_append_val(parts, u);
        in_row -= in_row > 0;
    }
    g_array_append_val(parts, units->units);
    return parts;
}

/* Whether a layer begins with the unit, behind another. */
static bool parts_layers(const MtfGraph *forward, const MtfGraphUnits *units, int unit) {
    const MtfLayer *before = &mtf_graph_operation(forward, units->begin[unit] - 1)->layer;
    const MtfLayer *after = &mtf_graph_operation(forward, units->begin[unit])->layer;
    return before->block != 0 && before->block == after->block &&
           before->iteration != after->iteration;
}

/* Each unit a part; or each row of units that ends with a layer. */
static GArray *list_all(const MtfGraph *forward, const MtfGraphUnits *units, bool between_layers) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(int));
    for (int u = 0; u <= units->units; u++)
        if (u == 0 || u == units->units || !between_layers || parts_layers(forward, units, u))
            g_array_append_val(all, u);
    return all;
}

static bool fail_unfit(const Search *search, GError **error) {
    g_autofree char *bytes = mtf_bytes_format((double)search->memory);
    g_set_error(error, MTF_ERROR, MTF_ERROR_FIT,
                "no cut into stages fits in %s a device under the layouts tried: more devices, "
                "smaller micro-batches or --recompute layers need less",
                bytes);
    return false;
}

MtfCutSearch *mtf_cut_search_new(const MtfCutRequest *request) {
    Search *search = g_new0(Search, 1);
    search->request = request;
    search->units = mtf_graph_units_new(request->forward, MOST_UNITS);
    search->variant =
        (MtfStepVariant){ .batch_dim = request->batch_dim,
                          .precision = request->precision,
                          .key_parts = request->key_parts,
                          .ring = request->ring,
                          .fuses = request->machine->software != NULL,
                          .framework = mtf_software_framework(request->machine->software) };
    search->layers = list_all(request->forward, search->units, true);
    search->all = request->between_layers || request->megatron
                      ? g_array_ref(search->layers)
                      : list_all(request->forward, search->units, false);
    search->parts = request->between_layers ? g_array_ref(search->all) : list_parts(search->units);
    search->sizes = mtf_stage_sizes_new(request, (int)search->parts->len - 1);
    search->priced = g_array_new(FALSE, TRUE, sizeof(Priced));
    g_array_set_clear_func(search->priced, priced_clear);
    search->others = g_ptr_array_new_with_free_func((GDestroyNotify)mtf_cut_plan_free);
    search->best = g_array_new(FALSE, TRUE, sizeof(Best));
    g_array_set_clear_func(search->best, best_clear);
    return search;
}

void mtf_cut_search_free(MtfCutSearch *search) {
    if (search == NULL)
        return;
    mtf_graph_units_free(search->units);
    g_array_unref(search->parts);
    g_array_unref(search->all);
    g_array_unref(search->layers);
    g_array_unref(search->sizes);
    g_array_unref(search->priced);
    g_array_unref(search->best);
    g_ptr_array_unref(search->others);
    g_free(search);
}

/* Forgets what was found, but for prices. */
static void begin_within(Search *search, int64_t memory) {
    search->memory = memory;
    search->mixed = search->thorough = false;
    search->n_kinds = search->tried = 0;
    g_array_set_size(search->best, 0);
    g_ptr_array_set_size(search->others, 0);
    for (const int *chunks = search->request->chunks; *chunks > 0; chunks++) {
        Best best = { *chunks, false, INFINITY, NULL };
        g_array_append_val(search->best, best);
    }
}

static gint compare_plans(gconstpointer a, gconstpointer b) {
    const MtfCutPlan *x = *(MtfCutPlan *const *)a, *y = *(MtfCutPlan *const *)b;
    return x->seconds < y->seconds ? -1 : x->seconds > y->seconds;
}

static void take_plan(const Search *search, bool mixed, MtfCutPlan *plan, GPtrArray *plans) {
    bool alike = mixed && search->request->recompute_of_stage == NULL && plan->recompute == NULL;
    if (alike) {
        mtf_cut_plan_free(plan);
        return;
    }
    plan->tried = search->tried;
    g_ptr_array_add(plans, plan);
}

static GPtrArray *take_plans(Search *search) {
    GPtrArray *plans = g_ptr_array_new_with_free_func((GDestroyNotify)mtf_cut_plan_free);
    for (guint i = 0; i < search->best->len; i++) {
        Best *best = &g_array_index(search->best, Best, i);
        if (best->plan != NULL)
            take_plan(search, best->mixed, g_steal_pointer(&best->plan), plans);
    }
    while (search->request->each_number && search->others->len > 0)
        take_plan(search, false, g_ptr_array_steal_index(search->others, 0), plans);
    g_ptr_array_sort(plans, compare_plans);
    return plans;
}

/* Whether there are as many parts that begin with a layer as stages and chunks ask for, where no others may. */
static bool check_layers(const Search *search, GError **error) {
    const MtfCutRequest *request = search->request;
    int parts = (int)search->all->len - 1, chunks = request->chunks[0];
    for (const int *next = request->chunks; *next > 0; next++)
        chunks = MIN(chunks, *next);
    int64_t wanted = (int64_t)request->stages * chunks;
    g_autofree char *each =
        chunks > 1 ? g_strdup_printf(" of %d parts of the graph each", chunks) : g_strdup("");
    return !(request->between_layers || request->megatron) || wanted <= parts ||
           mtf_input_error(error,
                           "%d stages%s that begin with layers need %" PRId64
                           " such parts, and graph \"%s\" can be cut into %d",
                           request->stages, each, wanted, request->forward->name, parts);
}

GPtrArray *mtf_cut_search_within(MtfCutSearch *search, int64_t memory, GError **error) {
    begin_within(search, memory);
    bool found = check_layers(search, error) &&
                 mtf_stage_sizes_check(search->request, search->sizes, error) &&
                 try_all(search, error) && (best_plan(search) != NULL || fail_unfit(search, error));
    return found ? take_plans(search) : NULL;
}

GPtrArray *mtf_cut_search_between_layers(MtfCutSearch *search, int64_t memory, GError **error) {
    GArray *parts = search->parts, *all = search->all;
    if (all->len == search->layers->len)
        return g_ptr_array_new_with_free_func((GDestroyNotify)mtf_cut_plan_free);
    search->parts = search->all = search->layers;
    GPtrArray *plans = mtf_cut_search_within(search, memory, error);
    search->parts = parts;
    search->all = all;
    return plans;
}

GPtrArray *mtf_cut_search_equal(MtfCutSearch *search, int64_t memory, GError **error) {
    const MtfCutRequest *request = search->request;
    GArray *sizes = search->sizes;
    if (sizes->len == 1 || request->stages == 0 || request->devices % request->stages != 0)
        return g_ptr_array_new_with_free_func((GDestroyNotify)mtf_cut_plan_free);
    g_autoptr(GArray) one = g_array_new(FALSE, FALSE, sizeof(int64_t));
    int64_t share = request->devices / request->stages;
    g_array_append_val(one, share);
    search->sizes = one;
    GPtrArray *plans = mtf_cut_search_within(search, memory, error);
    search->sizes = sizes;
    return plans;
}
