// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/improvers.h"

#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/learned_prices.h"
#include "analyzer/solver/search/local_search.h"
#include "analyzer/solver/search/neighbourhoods.h"
#include "analyzer/solver/search/width_move.h"

#include <math.h>
#include <string.h>

#define LARGE_MOVES 3      /* before what they come to is repaired and improved, */
#define MOST_MOVES 9       /* or so many, until their prices are right */
#define LEAST_ENTRIES 3e4  /* of one of their tables, */
#define MOST_ENTRIES 5e5   /* twice as many after each try that betters nothing, to this */
#define LEAST_PRICE 0.9    /* Prices are the bound's times this */
#define MOST_PRICE 1.05    /* to this, times what moves before taught */
#define NEARLY_BEST 0.003  /* A try that ends this near to the best is where the next one begins. */
#define LEAST_WORK 2000000 /* In neighbourhoods between large moves; */
#define MOST_WORK 64000000 /* more while they gain more in their time; */
#define NEWEST 0.1         /* weight of the newest look in what either gains */

typedef struct Improver {
    MtfImprovers *all;
    MtfNeighbourhoods *search;
    MtfLocalSearch *local;
    GRand *rand;
    int tries;                  /* of large moves */
    double entries;             /* of a table of them */
    bool nearly_best;           /* what the last one came to, which is still in `trial` */
    int64_t work;               /* in neighbourhoods between them */
    double far_gain, near_gain; /* in a microsecond, on average */
    int *values;
    int64_t cost;              /* of them */
    int *decoded;              /* what the bound made last, */
    bool has_decoded;          /* if it made anything */
    double *prices;            /* of the bound */
    MtfLearnedPrices *learned; /* of its moves */
    int *trial;                /* scratch */
    GThread *thread;
} Improver;

struct MtfImprovers {
    const MtfCore *core;
    int count;
    Improver *each;
    MtfSearchControl control; /* cancelled when they are to end */
    GMutex lock;              /* of what follows */
    int *values;              /* the best of all */
    int64_t cost;             /* of them */
    bool found;               /* by an improver, and not taken yet */
    int *decoded;
    bool has_decoded;
    double *prices;
};

static void improver_init(Improver *improver, MtfImprovers *all, guint64 seed) {
    const MtfCore *core = all->core;
    gsize count = (gsize)core->node_count + 1, rows = (gsize)core->rows + 1;
    *improver = (Improver){ .all = all,
                            .search = mtf_neighbourhoods_new(core, seed),
                            .local = mtf_local_search_new(core, seed),
                            .rand = g_rand_new_with_seed((guint32)(seed ^ (seed >> 32))),
                            .work = LEAST_WORK,
                            .entries = LEAST_ENTRIES,
                            .values = g_new0(int, count),
                            .cost = INT64_MAX,
                            .decoded = g_new0(int, count),
                            .prices = g_new0(double, rows),
                            .learned = mtf_learned_prices_new(core),
                            .trial = g_new0(int, count) };
}

static void improver_clear(Improver *improver) {
    g_assert(improver->thread == NULL);
    mtf_neighbourhoods_free(improver->search);
    mtf_local_search_free(improver->local);
    g_rand_free(improver->rand);
    g_free(improver->values);
    g_free(improver->decoded);
    g_free(improver->prices);
    mtf_learned_prices_free(improver->learned);
    g_free(improver->trial);
}

static void copy_values(const MtfImprovers *all, const int *from, int *to) {
    memcpy(to, from, (gsize)all->core->node_count * sizeof *to);
}

static void copy_prices(const MtfImprovers *all, const double *from, double *to) {
    memcpy(to, from, (gsize)all->core->rows * sizeof *to);
}

/* Takes over values where they are cheaper. */
static bool keep_cheaper(MtfImprovers *all, const int *values) {
    int64_t cost = mtf_core_cost(all->core, values);
    if (cost >= all->cost)
        return false;
    copy_values(all, values, all->values);
    all->cost = cost;
    return true;
}

void mtf_improvers_tell(MtfImprovers *all, const int *values, const int *decoded,
                        const double *prices) {
    g_mutex_lock(&all->lock);
    if (keep_cheaper(all, values))
        all->found = false;
    all->has_decoded = decoded != NULL;
    if (decoded != NULL)
        copy_values(all, decoded, all->decoded);
    copy_prices(all, prices, all->prices);
    g_mutex_unlock(&all->lock);
}

/* What the others and the bound have come to. */
static void hear(Improver *improver) {
    MtfImprovers *all = improver->all;
    g_mutex_lock(&all->lock);
    if (all->cost < improver->cost)
        copy_values(all, all->values, improver->values);
    improver->cost = MIN(improver->cost, all->cost);
    improver->has_decoded = all->has_decoded;
    copy_values(all, all->decoded, improver->decoded);
    copy_prices(all, all->prices, improver->prices);
    g_mutex_unlock(&all->lock);
}

static void tell(Improver *improver) {
    MtfImprovers *all = improver->all;
    g_mutex_lock(&all->lock);
    all->found |= keep_cheaper(all, improver->values);
    g_mutex_unlock(&all->lock);
}

/* ---- Large moves ----------------------------------------------------------------------------- */

static void move_far(Improver *improver, int count, const int *others, int *values) {
    for (int i = 0; i < count && !mtf_search_is_over(&improver->all->control); i++)
        mtf_width_move(improver->all->core, improver->rand,
                       mtf_learned_prices_get(improver->learned), improver->entries, others,
                       values);
}

/* From what the last try came to, or the best choice. Every other time its better parts and those of what the
 * bound made last are mixed. */
static void begin_far(Improver *improver) {
    const MtfImprovers *all = improver->all;
    double factor = g_rand_double_range(improver->rand, LEAST_PRICE, MOST_PRICE);
    mtf_learned_prices_begin(improver->learned, improver->prices, factor);
    if (!improver->nearly_best)
        copy_values(all, improver->values, improver->trial);
    improver->nearly_best = false;
    if (!improver->has_decoded || improver->tries++ % 2 == 0)
        return;
    move_far(improver, LARGE_MOVES, NULL, improver->decoded);
    move_far(improver, LARGE_MOVES, improver->decoded, improver->trial);
}

/* Large moves, whose result is repaired and improved, and kept where that is cheaper. */
static void try_far(Improver *improver) {
    const MtfImprovers *all = improver->all;
    begin_far(improver);
    bool right = false;
    for (int i = 0; i < LARGE_MOVES || (!right && i < MOST_MOVES); i++) {
        move_far(improver, 1, NULL, improver->trial);
        if (mtf_search_is_over(&all->control))
            return;
        right = mtf_learned_prices_learn(improver->learned, improver->trial);
    }
    bool legal = mtf_local_search_improve(improver->local, improver->trial);
    int64_t cost = legal ? mtf_core_cost(all->core, improver->trial) : INT64_MAX;
    improver->nearly_best = (double)cost <= (1 + NEARLY_BEST) * (double)improver->cost;
    if (cost >= improver->cost) {
        improver->entries = fmin(2 * improver->entries, MOST_ENTRIES);
        return;
    }
    improver->entries = LEAST_ENTRIES;
    copy_values(all, improver->trial, improver->values);
    improver->cost = cost;
}

static void note_gain(double *average, int64_t gain, gint64 begin) {
    double time = fmax(1, (double)(g_get_monotonic_time() - begin));
    *average = (1 - NEWEST) * *average + NEWEST * (double)gain / time;
}

/* Large moves, then neighbourhoods, which get more of the time while they gain more in theirs. */
static void improve(Improver *improver) {
    MtfImprovers *all = improver->all;
    int64_t first = improver->cost;
    gint64 begin = g_get_monotonic_time();
    try_far(improver);
    note_gain(&improver->far_gain, first - improver->cost, begin);
    int64_t second = improver->cost;
    begin = g_get_monotonic_time();
    if (mtf_neighbourhoods_improve(improver->search, improver->prices, improver->work,
                                   improver->values, &all->control))
        improver->cost = mtf_core_cost(all->core, improver->values);
    note_gain(&improver->near_gain, second - improver->cost, begin);
    if (improver->near_gain > improver->far_gain)
        improver->work = MIN(2 * improver->work, MOST_WORK);
    else if (improver->near_gain < improver->far_gain)
        improver->work = MAX(improver->work / 2, LEAST_WORK);
    if (improver->cost < first)
        tell(improver);
}

static gpointer improve_until_ended(gpointer data) {
    Improver *improver = data;
    while (!mtf_search_is_over(&improver->all->control)) {
        hear(improver);
        improve(improver);
    }
    return NULL;
}

/* ---- For the caller -------------------------------------------------------------------------- */

MtfImprovers *mtf_improvers_begin(const MtfCore *core, int count, guint64 seed, const int *values,
                                  const double *prices) {
    MtfImprovers *all = g_new0(MtfImprovers, 1);
    all->core = core;
    all->count = count;
    all->each = g_new0(Improver, count + 1);
    all->values = g_new0(int, core->node_count + 1);
    all->cost = INT64_MAX;
    all->decoded = g_new0(int, core->node_count + 1);
    all->prices = g_new0(double, core->rows + 1);
    g_mutex_init(&all->lock);
    mtf_search_control_init(&all->control, 0);
    mtf_improvers_tell(all, values, NULL, prices);
    for (int i = 0; i < count; i++) {
        improver_init(&all->each[i], all, seed + (guint64)i);
        all->each[i].thread = g_thread_new("improver", improve_until_ended, &all->each[i]);
    }
    return all;
}

bool mtf_improvers_take(MtfImprovers *all, int *values) {
    g_mutex_lock(&all->lock);
    bool found = all->found;
    if (found)
        copy_values(all, all->values, values);
    all->found = false;
    g_mutex_unlock(&all->lock);
    return found;
}

void mtf_improvers_end(MtfImprovers *all) {
    mtf_search_cancel(&all->control);
    for (int i = 0; i < all->count; i++)
        if (all->each[i].thread != NULL)
            g_thread_join(g_steal_pointer(&all->each[i].thread));
}

void mtf_improvers_free(MtfImprovers *all) {
    if (all == NULL)
        return;
    mtf_improvers_end(all);
    for (int i = 0; i < all->count; i++)
        improver_clear(&all->each[i]);
    g_mutex_clear(&all->lock);
    g_free(all->each);
    g_free(all->values);
    g_free(all->decoded);
    g_free(all->prices);
    g_free(all);
}
