// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/cuts/cut_model.h"

#include "layouts/graph/microbatches.h"

#include <math.h>

/* Ways of one size that a stage may choose from, of each kind of recomputation: from the fastest to the
 * one that holds least. */
#define WAYS_A_SIZE 4

/* The sums over the units of a stage in one way, which grow as its end moves on. */
typedef struct {
    MtfChainPrice price; /* without the following */
    double work;
    double at_end; /* of the last unit */
} Sums;

/* The chain, and the way behind each of its prices. */
typedef struct {
    const MtfCutModel *model;
    Sums *sums; /* of each way, of the stage that is being priced */
    MtfChain chain;
    guint ways;    /* of a size */
    int64_t *size; /* of the chain: so many of each size */
    int *kind;     /* of the chain's sizes: the recomputation, where that of each stage is given */
    int *wanted;   /* likewise of its stages; or NULL */
    int *way;      /* at mtf_chain_index */
} Chain;

void mtf_cut_plan_free(MtfCutPlan *plan) {
    if (plan == NULL)
        return;
    g_array_unref(plan->stages);
    g_ptr_array_unref(plan->names);
    g_free(plan->recompute);
    g_free(plan);
}

/* ---- Prices of stages ------------------------------------------------------------------------ */

/* A stage in one way. */
typedef struct {
    int way;
    MtfChainPrice price;
} Candidate;

/* The unit that part k begins with. */
static int place_at(const MtfCutModel *model, int k) {
    return g_array_index(model->places, int, k);
}

/* What a stage receives of a micro-batch's forward pass. */
static double crossing_bytes(const MtfCutModel *model, int first) {
    bool narrow = g_strcmp0(model->variant.precision, "bf16") == 0;
    return (narrow ? 0.5 : 1) * model->units->crossing[first] / model->variant.microbatches;
}

/* What each device of it receives. */
static double carried_bytes(const MtfCutModel *model, int first, int64_t devices) {
    return crossing_bytes(model, first) / (double)devices;
}

/* Bytes for each one that crosses on a link into a child of c devices, which all of them share. A stage of D devices
 * fills D / c children, each of which gets its part; or it is one of c / D in a child, of which one has all of it
 * come from outside: D / c on average. */
static double share_of_link(double stage, double child) {
    return stage >= child ? child / stage : stage / child;
}

/* What crosses before a unit, one way, over the slowest of the levels of switches that the pipeline reaches over; on
 * a torus each device has links of its own. */
static double carried_seconds(const MtfCutModel *model, int unit, int64_t devices) {
    const MtfNetwork *network = &model->machine->network;
    bool crosses = unit > 0 && unit < model->units->units;
    int d = network->switched ? network->axes - 1 : 0;
    double bytes = crossing_bytes(model, unit), latency = 0, slowest = 0, child = 1;
    for (; crosses && d >= 0 && child < (double)model->devices; d--) {
        const MtfNetworkAxis *level = &network->axis[d];
        double share = share_of_link((double)devices, child);
        slowest = fmax(slowest, share * bytes / level->bandwidth);
        latency = level->latency;
        child *= (double)level->size;
    }
    return latency + slowest;
}

/* Sums over no units, of a stage that begins with unit `first`. */
static void begin_sums(Chain *chain, int first) {
    const MtfCutModel *model = chain->model;
    for (guint w = 0; w < model->ways->len; w++) {
        const MtfUnitWay *way = g_ptr_array_index(model->ways, w);
        chain->sums[w] = (Sums){ .price = { carried_seconds(model, first, way->devices), 0,
                                            carried_bytes(model, first, way->devices) +
                                                way->price[model->units->kind[first]].at_begin } };
    }
}

/* Adds the units of one part more. */
static void add_part(Chain *chain, int part) {
    const MtfCutModel *model = chain->model;
    for (guint w = 0; w < model->ways->len; w++) {
        const MtfUnitWay *way = g_ptr_array_index(model->ways, w);
        Sums *sums = &chain->sums[w];
        for (int u = place_at(model, part); u < place_at(model, part + 1); u++) {
            const MtfUnitPrice *unit = &way->price[model->units->kind[u]];
            sums->price.seconds += unit->seconds + unit->once / model->variant.microbatches;
            sums->price.fixed += unit->fixed;
            sums->price.flight += unit->flight;
            sums->work = fmax(sums->work, unit->work);
            sums->at_end = unit->at_end;
        }
    }
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

/* Micro-batches that follow one another: of steps that overlap so many that the slowest stage alone counts, and
 * a stage holds as many as there are behind it. */
static int64_t flowing_microbatches(const MtfCutModel *model) {
    return model->overlaps ? MTF_MAX_MICROBATCHES : model->variant.microbatches;
}

/* Micro-batches that the first domain holds of each of its chunks. */
static double held_by_first(const MtfCutModel *model) {
    double held = fmin(model->stages, (double)flowing_microbatches(model));
    return held * (1 + 1.0 / model->chunks);
}

/* Alone; of several chunks, each within its share of the memory. */
static bool fits_alone(const Chain *chain, const MtfChainPrice *price) {
    const MtfCutModel *model = chain->model;
    double memory = (double)model->memory;
    if (model->chunks == 1)
        return price->fixed + price->flight <= memory;
    return (price->fixed + held_by_first(model) * price->flight) * model->chunks <= memory;
}

/* The ways of so many devices with that recomputation, MTF_RECOMPUTES: with any. A stage waits for what it receives:
 * activations where it begins, and where it ends, `end`, their gradients. */
static GArray *list_candidates(const Chain *chain, int end, int64_t devices,
                               MtfRecompute recompute) {
    const MtfCutModel *model = chain->model;
    double gradients = carried_seconds(model, place_at(model, end), devices);
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Candidate));
    for (guint w = 0; w < model->ways->len; w++) {
        const MtfUnitWay *way = g_ptr_array_index(model->ways, w);
        if (way->devices != devices || (recompute != MTF_RECOMPUTES && way->recompute != recompute))
            continue;
        Candidate candidate = { (int)w, chain->sums[w].price };
        candidate.price.seconds += gradients;
        candidate.price.fixed += chain->sums[w].work;
        candidate.price.flight += chain->sums[w].at_end;
        if (fits_alone(chain, &candidate.price))
            g_array_append_val(all, candidate);
    }
    g_array_sort(all, compare_candidates);
    return all;
}

/* Ways for a stage at `count` places of the chain's sizes from `begin` on: the fastest, then those that
 * hold less for more time. */
static void fill_places(Chain *chain, int first, int end, int begin, guint count,
                        MtfRecompute recompute) {
    int64_t devices = g_array_index(chain->model->sizes, int64_t, begin / (int)chain->ways);
    g_autoptr(GArray) all = list_candidates(chain, end, devices, recompute);
    g_autoptr(GArray) kept = g_array_new(FALSE, FALSE, sizeof(Candidate));
    for (guint i = 0; i < all->len; i++)
        if (!is_dominated(kept, &g_array_index(all, Candidate, i)))
            g_array_append_val(kept, g_array_index(all, Candidate, i));
    for (guint k = 0; k < count; k++) {
        gsize at = mtf_chain_index(&chain->chain, first, end, begin + (int)k);
        chain->chain.price[at].seconds = INFINITY;
        if (k >= kept->len)
            continue;
        guint i = kept->len <= count ? k : k * (kept->len - 1) / (count - 1);
        chain->chain.price[at] = g_array_index(kept, Candidate, i).price;
        chain->way[at] = g_array_index(kept, Candidate, i).way;
        ((MtfUnitWay *)chain->model->ways->pdata[chain->way[at]])->wanted = true;
    }
}

/* The ways of one size; where what each stage recomputes is given, so many of each kind. */
static void fill_stage(Chain *chain, int first, int end, guint z) {
    int begin = (int)(z * chain->ways);
    if (chain->wanted == NULL) {
        fill_places(chain, first, end, begin, chain->ways, MTF_RECOMPUTES);
        return;
    }
    for (guint k = 0; k < chain->ways; k += WAYS_A_SIZE)
        fill_places(chain, first, end, begin + (int)k, WAYS_A_SIZE,
                    (MtfRecompute)chain->kind[begin + (int)k]);
}

/* The recomputations that stages are given, each once; returns how many. */
static int list_kinds(const MtfCutModel *model, MtfRecompute *kinds) {
    int n = 0;
    for (int r = 0; r < MTF_RECOMPUTES; r++) {
        bool given = false;
        for (int s = 0; s < model->stages * model->chunks; s++)
            given |= model->recompute_of_stage[s] == (MtfRecompute)r;
        if (given)
            kinds[n++] = (MtfRecompute)r;
    }
    return n;
}

/* Has every stage recompute what it is given. */
static void give_recomputations(Chain *chain, const MtfRecompute *kinds) {
    const MtfCutModel *model = chain->model;
    int stages = model->stages * model->chunks, sizes = chain->chain.sizes;
    chain->wanted = g_new(int, stages);
    chain->kind = g_new(int, sizes);
    for (int s = 0; s < stages; s++)
        chain->wanted[s] = (int)model->recompute_of_stage[s];
    for (int z = 0; z < sizes; z++)
        chain->kind[z] = (int)kinds[z % (int)chain->ways / WAYS_A_SIZE];
    chain->chain.kind_of_size = chain->kind;
    chain->chain.kind_of_stage = chain->wanted;
}

/* Chunks are stages of a chain that is as many times longer, and passes as many more micro-batches. */
static void chain_init(Chain *chain, const MtfCutModel *model) {
    int64_t unit = g_array_index(model->sizes, int64_t, 0);
    MtfRecompute kinds[MTF_RECOMPUTES];
    bool given = model->recompute_of_stage != NULL;
    int recomputations = given ? list_kinds(model, kinds) : model->recomputations;
    guint ways = WAYS_A_SIZE * (guint)recomputations, sizes = model->sizes->len * ways;
    *chain = (Chain){ .model = model, .ways = ways };
    chain->size = g_new(int64_t, sizes);
    for (guint z = 0; z < sizes; z++)
        chain->size[z] = g_array_index(model->sizes, int64_t, z / ways) / unit;
    chain->chain = (MtfChain){ .layers = (int)model->places->len - 1,
                               .sizes = (int)sizes,
                               .size = chain->size,
                               .devices = model->devices / unit * model->chunks,
                               .all_devices = true,
                               .batch = flowing_microbatches(model) * model->chunks,
                               .memory = model->chunks > 1 ? INFINITY : (double)model->memory,
                               .most_stages = model->stages * model->chunks,
                               .least_stages = model->stages * model->chunks };
    if (given)
        give_recomputations(chain, kinds);
    gsize prices = mtf_chain_prices(&chain->chain);
    chain->chain.price = g_new0(MtfChainPrice, prices);
    chain->way = g_new0(int, prices);
    chain->sums = g_new(Sums, model->ways->len);
    for (int first = 0; first < chain->chain.layers; first++) {
        begin_sums(chain, place_at(model, first));
        for (int end = first + 1; end <= chain->chain.layers; end++) {
            add_part(chain, end - 1);
            for (guint z = 0; z < model->sizes->len; z++)
                fill_stage(chain, first, end, z);
        }
    }
}

static void chain_clear(Chain *chain) {
    g_free(chain->sums);
    g_free(chain->size);
    g_free(chain->kind);
    g_free(chain->wanted);
    g_free(chain->chain.price);
    g_free(chain->way);
}

/* ---- Plans ----------------------------------------------------------------------------------- */

double mtf_cut_model_bound(const MtfCutModel *model) {
    double sum = 0;
    for (int u = 0; u < model->units->units; u++) {
        double least = INFINITY;
        for (guint w = 0; w < model->ways->len; w++) {
            const MtfUnitWay *way = g_ptr_array_index(model->ways, w);
            const MtfUnitPrice *price = &way->price[model->units->kind[u]];
            double seconds = model->variant.microbatches * price->seconds + price->once;
            least = fmin(least, seconds * (double)way->devices);
        }
        sum += least;
    }
    return sum / (double)model->devices + mtf_machine_step_seconds(model->machine);
}

/* The number of the price of stage i among those of its size. */
static int find_price(const Chain *chain, const MtfStage *stage, guint i) {
    for (int z = 0; z < chain->chain.sizes; z++) {
        const MtfChainPrice *price =
            &chain->chain.price[mtf_chain_index(&chain->chain, stage->from, stage->to, z)];
        double miss = fabs(price->seconds - stage->seconds);
        bool fits = price->fixed + (double)stage->flight * price->flight <= chain->chain.memory;
        bool suits = chain->wanted == NULL || chain->kind[z] == chain->wanted[i];
        if (chain->size[z] == stage->replicas && miss <= 1e-12 * stage->seconds && fits && suits)
            return z;
    }
    g_assert_not_reached();
}

static void add_stage(MtfCutPlan *plan, const Chain *chain, const MtfStage *stage) {
    const MtfCutModel *model = chain->model;
    int z = find_price(chain, stage, plan->stages->len);
    gsize at = mtf_chain_index(&chain->chain, stage->from, stage->to, z);
    const MtfUnitWay *way = g_ptr_array_index(model->ways, chain->way[at]);
    const MtfChainPrice *price = &chain->chain.price[at];
    double held = model->chunks > 1 ? held_by_first(model) : (double)stage->flight;
    MtfCutStage cut = { .first = model->units->begin[place_at(model, stage->from)],
                        .end = model->units->begin[place_at(model, stage->to)],
                        .devices = way->devices,
                        .mesh = way->mesh,
                        .recompute = way->recompute,
                        .style = way->style,
                        .seconds = stage->seconds,
                        .bytes = price->fixed + held * price->flight };
    g_ptr_array_add(plan->names, g_strdup(way->name));
    cut.layout = g_ptr_array_index(plan->names, plan->names->len - 1);
    g_array_append_val(plan->stages, cut);
}

/* The formulas at the head of cut_model.h. */
static double step_seconds(const MtfCutPlan *plan, bool overlaps) {
    int domains = (int)plan->stages->len / plan->chunks;
    double sum = 0, slowest = 0;
    for (int d = 0; d < domains; d++) {
        double own = 0;
        for (int s = d; s < (int)plan->stages->len; s += domains)
            own += g_array_index(plan->stages, MtfCutStage, s).seconds;
        sum += own;
        slowest = fmax(slowest, own);
    }
    return overlaps
               ? plan->variant.microbatches * slowest
               : sum / plan->chunks + (plan->variant.microbatches - 1.0 / plan->chunks) * slowest;
}

/* Gives the variant what stages recompute: one thing for all, or a list. */
static void settle_recomputation(MtfCutPlan *plan) {
    g_autofree MtfRecompute *each = g_new(MtfRecompute, plan->stages->len);
    bool alike = true;
    for (guint s = 0; s < plan->stages->len; s++) {
        each[s] = g_array_index(plan->stages, MtfCutStage, s).recompute;
        alike &= each[s] == each[0];
    }
    plan->variant.recompute = alike ? each[0] : MTF_RECOMPUTE_NONE;
    if (!alike)
        plan->variant.recompute_of_stage = plan->recompute = g_steal_pointer(&each);
}

MtfCutPlan *mtf_cut_model_solve(const MtfCutModel *model) {
    Chain chain;
    chain_init(&chain, model);
    g_autoptr(MtfStagePlan) found = mtf_latency_search(&chain.chain, NULL);
    MtfCutPlan *plan = NULL;
    if (found != NULL) {
        plan = g_new0(MtfCutPlan, 1);
        plan->stages = g_array_new(FALSE, FALSE, sizeof(MtfCutStage));
        plan->names = g_ptr_array_new_with_free_func(g_free);
        plan->chunks = model->chunks;
        plan->variant = model->variant;
        plan->bound = mtf_cut_model_bound(model);
        for (guint i = 0; i < found->stages->len; i++)
            add_stage(plan, &chain, &g_array_index(found->stages, MtfStage, i));
        settle_recomputation(plan);
        plan->seconds =
            step_seconds(plan, model->overlaps) + mtf_machine_step_seconds(model->machine);
    }
    chain_clear(&chain);
    return plan;
}
