// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/rules/rule_search_levels.h"

#include <string.h>

/* Rounds over all dimensions, at most; fewer when one wins less than this share of the bound. */
#define MOST_ROUNDS 200
#define LEAST_WIN 1e-5

/* A dimension's place in a scope. */
typedef struct {
    int scope, position;
} Place;

/* A scope has no assignment with a dimension there. */
#define IMPOSSIBLE INT64_MAX

static int64_t least_of(const int64_t *prices, int n) {
    int64_t least = INT64_MAX;
    for (int k = 0; k < n; k++)
        least = MIN(least, prices[k]);
    return least;
}

int64_t mtf_rule_levels_bound(const MtfRuleLevels *levels, const MtfRuleTables *tables) {
    int64_t sum = 0;
    for (int s = 0; s < levels->n_scopes; s++)
        sum += least_of(levels->nanoseconds[s], tables->tables[s].n);
    return sum;
}

/* What a scope's assignments cost at least with its dimension unsharded (least[0]) or on an axis. */
static void measure_place(const MtfRuleLevels *levels, const MtfRuleTables *tables, Place place,
                          int64_t *least) {
    const MtfRuleTable *table = &tables->tables[place.scope];
    for (int a = 0; a <= tables->mesh.n_axes; a++)
        least[a] = IMPOSSIBLE;
    for (int k = 0; k < table->n; k++) {
        int64_t *at = &least[table->axes[k * table->n_dims + place.position] + 1];
        *at = MIN(*at, levels->nanoseconds[place.scope][k]);
    }
}

static void add_to_place(MtfRuleLevels *levels, const MtfRuleTables *tables, Place place,
                         const int64_t *gain) {
    const MtfRuleTable *table = &tables->tables[place.scope];
    for (int k = 0; k < table->n; k++)
        levels->nanoseconds[place.scope][k] +=
            gain[table->axes[k * table->n_dims + place.position] + 1];
}

/* Shares what a dimension costs on each axis evenly among the scopes it is in; the first takes what division
 * leaves. Where it cannot lie there in one of them, nothing needs sharing. */
static void level_dimension(MtfRuleLevels *levels, const MtfRuleTables *tables,
                            const GArray *places) {
    int choices = tables->mesh.n_axes + 1, n = (int)places->len;
    g_autofree int64_t *least = g_new(int64_t, (gsize)n * (gsize)choices + 1);
    for (int p = 0; p < n; p++)
        measure_place(levels, tables, g_array_index(places, Place, p), least + p * choices);
    for (int a = 0; a < choices; a++) {
        int64_t sum = 0;
        bool possible = true;
        for (int p = 0; p < n; p++)
            possible &= least[p * choices + a] < IMPOSSIBLE;
        for (int p = 0; p < n && possible; p++)
            sum += least[p * choices + a];
        int64_t part = sum / n, rest = sum - part * n;
        for (int p = 0; p < n; p++)
            least[p * choices + a] =
                possible ? part + (p == 0 ? rest : 0) - least[p * choices + a] : 0;
    }
    for (int p = 0; p < n; p++)
        add_to_place(levels, tables, g_array_index(places, Place, p), least + p * choices);
}

/* Where each dimension occurs: GArray of Place, one a dimension of the graph. */
static GPtrArray *find_places(const MtfRuleTables *tables) {
    GPtrArray *places = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (guint d = 0; d < tables->terms->graph->dimensions->len; d++)
        g_ptr_array_add(places, g_array_new(FALSE, FALSE, sizeof(Place)));
    for (int s = 0; s < (int)tables->terms->maximal->len; s++)
        for (int i = 0; i < tables->tables[s].n_dims; i++) {
            Place place = { s, i };
            g_array_append_val((GArray *)places->pdata[tables->tables[s].dims[i]], place);
        }
    return places;
}

MtfRuleLevels *mtf_rule_levels_new(const MtfRuleTables *tables) {
    MtfRuleLevels *levels = g_new(MtfRuleLevels, 1);
    levels->n_scopes = (int)tables->terms->maximal->len;
    levels->nanoseconds = g_new(int64_t *, levels->n_scopes + 1);
    for (int s = 0; s < levels->n_scopes; s++)
        levels->nanoseconds[s] =
            g_memdup2(tables->tables[s].nanoseconds, (gsize)tables->tables[s].n * sizeof(int64_t));
    g_autoptr(GPtrArray) places = find_places(tables);
    int64_t before = -1, bound = mtf_rule_levels_bound(levels, tables);
    for (int round = 0; round < MOST_ROUNDS && (double)(bound - before) > LEAST_WIN * (double)bound;
         round++) {
        for (guint d = 0; d < places->len; d++)
            if (((const GArray *)places->pdata[d])->len > 1)
                level_dimension(levels, tables, places->pdata[d]);
        before = bound;
        bound = mtf_rule_levels_bound(levels, tables);
    }
    return levels;
}

void mtf_rule_levels_free(MtfRuleLevels *levels) {
    if (levels == NULL)
        return;
    for (int s = 0; s < levels->n_scopes; s++)
        g_free(levels->nanoseconds[s]);
    g_free(levels->nanoseconds);
    g_free(levels);
}
