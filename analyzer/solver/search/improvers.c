// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/search/improvers.h"

#include "analyzer/solver/search/neighbourhoods.h"

#include <string.h>

typedef struct Improver {
    MtfImprovers *all;
    MtfNeighbourhoods *search;
    int *values;
    bool better;
    GThread *thread; /* NULL: not at work */
} Improver;

struct MtfImprovers {
    const MtfCore *core;
    int count;
    Improver *each;
    int *values; /* what they begin with */
    double *prices;
    MtfSearchControl control; /* cancelled when they are to stop */
};

MtfImprovers *mtf_improvers_new(const MtfCore *core, int count, guint64 seed) {
    MtfImprovers *all = g_new0(MtfImprovers, 1);
    all->core = core;
    all->count = count;
    all->each = g_new0(Improver, count + 1);
    all->values = g_new0(int, core->node_count + 1);
    all->prices = g_new0(double, core->rows + 1);
    for (int i = 0; i < count; i++)
        all->each[i] = (Improver){ .all = all,
                                   .search = mtf_neighbourhoods_new(core, seed + (guint64)i),
                                   .values = g_new0(int, core->node_count + 1) };
    return all;
}

void mtf_improvers_free(MtfImprovers *all) {
    if (all == NULL)
        return;
    for (int i = 0; i < all->count; i++) {
        g_assert(all->each[i].thread == NULL);
        mtf_neighbourhoods_free(all->each[i].search);
        g_free(all->each[i].values);
    }
    g_free(all->each);
    g_free(all->values);
    g_free(all->prices);
    g_free(all);
}

void mtf_improvers_set(MtfImprovers *all, const int *values, const double *prices) {
    memcpy(all->values, values, (gsize)all->core->node_count * sizeof *values);
    memcpy(all->prices, prices, (gsize)all->core->rows * sizeof *prices);
}

static void prepare(Improver *improver) {
    const MtfImprovers *all = improver->all;
    memcpy(improver->values, all->values, (gsize)all->core->node_count * sizeof *all->values);
    improver->better = false;
}

static gpointer improve_until_stopped(gpointer data) {
    Improver *improver = data;
    MtfImprovers *all = improver->all;
    improver->better = mtf_neighbourhoods_improve(improver->search, all->prices, INT64_MAX,
                                                  improver->values, &all->control);
    return NULL;
}

void mtf_improvers_begin(MtfImprovers *all) {
    mtf_search_control_init(&all->control, 0);
    for (int i = 0; i < all->count; i++) {
        prepare(&all->each[i]);
        all->each[i].thread = g_thread_new("improver", improve_until_stopped, &all->each[i]);
    }
}

void mtf_improvers_work(MtfImprovers *all, int64_t work) {
    for (int i = 0; i < all->count; i++)
        prepare(&all->each[i]);
    all->each[0].better = mtf_neighbourhoods_improve(all->each[0].search, all->prices, work,
                                                     all->each[0].values, NULL);
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
