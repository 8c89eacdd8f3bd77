// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/improvers.h"

#include "analyzer/solver/reduce/core_values.h"
#include "analyzer/solver/search/local_search.h"
#include "analyzer/solver/search/neighbourhoods.h"
#include "analyzer/solver/search/width_move.h"

#include <string.h>

#define LARGE_MOVES 3      /* before what they come to is repaired and improved, */
#define MOST_ENTRIES 3e4   /* of one of their tables, */
#define LEAST_PRICE 0.9    /* and their prices: the bound's times this */
#define MOST_PRICE 1.05    /* to this */
#define LEAST_WORK 2000000 /* in neighbourhoods between large moves; */
#define MOST_WORK 64000000 /* more where they are what improves */

typedef struct Improver {
    MtfImprovers *all;
    MtfNeighbourhoods *search;
    MtfLocalSearch *local;
    GRand *rand;
    int tries;    /* of large moves */
    int64_t work; /* in neighbourhoods between them */
    int *values;
    int *trial, *other; /* scratch */
    double *prices;     /* likewise */
    bool better;
    GThread *thread; /* NULL: not at work */
} Improver;

struct MtfImprovers {
    const MtfCore *core;
    int count;
    Improver *each;
    int *values;  /* what they begin with */
    int *decoded; /* what the bound made, and whether it made anything */
    bool has_decoded;
    double *prices;
    MtfSearchControl control; /* cancelled when they are to stop */
};

static void improver_init(Improver *improver, MtfImprovers *all, guint64 seed) {
    const MtfCore *core = all->core;
    gsize count = (gsize)core->node_count + 1;
    *improver = (Improver){ .all = all,
                            .search = mtf_neighbourhoods_new(core, seed),
                            .local = mtf_local_search_new(core, seed),
                            .rand = g_rand_new_with_seed((guint32)(seed ^ (seed >> 32))),
                            .work = LEAST_WORK,
                            .values = g_new0(int, count),
                            .trial = g_new0(int, count),
                            .other = g_new0(int, count),
                            .prices = g_new0(double, core->rows + 1) };
}

static void improver_clear(Improver *improver) {
    g_assert(improver->thread == NULL);
    mtf_neighbourhoods_free(improver->search);
    mtf_local_search_free(improver->local);
    g_rand_free(improver->rand);
    g_free(improver->values);
    g_free(improver->trial);
    g_free(improver->other);
    g_free(improver->prices);
}

MtfImprovers *mtf_improvers_new(const MtfCore *core, int count, guint64 seed) {
    MtfImprovers *all = g_new0(MtfImprovers, 1);
    all->core = core;
    all->count = count;
    all->each = g_new0(Improver, count + 1);
    all->values = g_new0(int, core->node_count + 1);
    all->decoded = g_new0(int, core->node_count + 1);
    all->prices = g_new0(double, core->rows + 1);
    for (int i = 0; i < count; i++)
        improver_init(&all->each[i], all, seed + (guint64)i);
    return all;
}

void mtf_improvers_free(MtfImprovers *all) {
    if (all == NULL)
        return;
    for (int i = 0; i < all->count; i++)
        improver_clear(&all->each[i]);
    g_free(all->each);
    g_free(all->values);
    g_free(all->decoded);
    g_free(all->prices);
    g_free(all);
}

static void copy_values(const MtfImprovers *all, const int *from, int *to) {
    memcpy(to, from, (gsize)all->core->node_count * sizeof *to);
}

void mtf_improvers_set(MtfImprovers *all, const int *values, const int *decoded,
                       const double *prices) {
    copy_values(all, values, all->values);
    all->has_decoded = decoded != NULL;
    if (decoded != NULL)
        copy_values(all, decoded, all->decoded);
    memcpy(all->prices, prices, (gsize)all->core->rows * sizeof *prices);
}

static void prepare(Improver *improver) {
    copy_values(improver->all, improver->all->values, improver->values);
    improver->better = false;
}

/* ---- Large moves ----------------------------------------------------------------------------- */

static void move_far(Improver *improver, int count, const int *others, int *values) {
    for (int i = 0; i < count && !mtf_search_is_over(&improver->all->control); i++)
        mtf_width_move(improver->all->core, improver->rand, improver->prices, MOST_ENTRIES, others,
                       values);
}

/* Large moves from the best choice or, every other time, from what the bound made last, whose better
 * parts the best choice then takes over; repaired and improved. Returns whether it got cheaper. */
static bool try_far(Improver *improver) {
    const MtfImprovers *all = improver->all;
    bool decoded = all->has_decoded && improver->tries++ % 2 == 1;
    double factor = g_rand_double_range(improver->rand, LEAST_PRICE, MOST_PRICE);
    for (int r = 0; r < all->core->rows; r++)
        improver->prices[r] = factor * all->prices[r];
    copy_values(all, improver->values, improver->trial);
    if (decoded) {
        copy_values(all, all->decoded, improver->other);
        move_far(improver, LARGE_MOVES, NULL, improver->other);
        move_far(improver, LARGE_MOVES, improver->other, improver->trial);
    }
    move_far(improver, LARGE_MOVES, NULL, improver->trial);
    if (mtf_search_is_over(&all->control) ||
        !mtf_local_search_improve(improver->local, improver->trial) ||
        mtf_core_cost(all->core, improver->trial) >= mtf_core_cost(all->core, improver->values))
        return false;
    copy_values(all, improver->trial, improver->values);
    return true;
}

/* Large moves and neighbourhoods in turn; these get more of the time where they alone improve. */
static gpointer improve_until_stopped(gpointer data) {
    Improver *improver = data;
    MtfImprovers *all = improver->all;
    while (!mtf_search_is_over(&all->control)) {
        bool far = try_far(improver);
        bool near = mtf_neighbourhoods_improve(improver->search, all->prices, improver->work,
                                               improver->values, &all->control);
        improver->better |= far || near;
        if (near && !far)
            improver->work = MIN(2 * improver->work, MOST_WORK);
        else if (far && !near)
            improver->work = MAX(improver->work / 2, LEAST_WORK);
    }
    return NULL;
}

void mtf_improvers_begin(MtfImprovers *all) {
    mtf_search_control_init(&all->control, 0);
    for (int i = 0; i < all->count; i++) {
        prepare(&all->each[i]);
        all->each[i].thread = g_thread_new("improver", improve_until_stopped, &all->each[i]);
    }
}

const int *mtf_improvers_end(MtfImprovers *all) {
    const int *best = NULL;
    mtf_search_cancel(&all->control);
    for (int i = 0; i < all->count; i++) {
        Improver *improver = &all->each[i];
        if (improver->thread != NULL)
            g_thread_join(g_steal_pointer(&improver->thread));
        bool cheaper =
            improver->better && (best == NULL || mtf_core_cost(all->core, improver->values) <
                                                     mtf_core_cost(all->core, best));
        best = cheaper ? improver->values : best;
    }
    return best;
}
