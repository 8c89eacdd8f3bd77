// SPDX-License-Identifier: GPL-3.0-or-later
/* Dominance: value p of a node makes value r needless when it uses no more memory in any row and
 * costs no more whatever the neighbours choose:
 *
 *     cost[p] - cost[r] + sum over edges of max_q (edge[p][q] - edge[r][q])  <=  0
 *
 * A quick test comes first: the maximum of a difference is at least the difference of the minima,
 * so p needs  cost[p] + sum of row minima  no larger than that of r. By how much it is smaller is
 * all that the maxima may lie above the differences of the minima, which ends most comparisons
 * after a few entries. */
#include "analyzer/solver/reduce/reductions.h"

#include <string.h>

#define MAX_WORK 20000000 /* edge entries compared for one node */

typedef struct Sweep {
    const MtfCoreNode *node;
    MtfCoreView *views; /* one for each edge */
    int64_t *minima;    /* [edges][values] of rows */
    int64_t *sums;      /* [values] own cost and row minima */
    bool *keep;         /* [values] */
} Sweep;

static bool uses_no_more(const MtfCoreNode *node, int p, int r) {
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        if (piece->usage[p] > piece->usage[r])
            return false;
    }
    return true;
}

/* The most that p costs more than r across one edge; impossible when only p is impossible, or when
 * it is more than `most`. */
static int64_t worst_difference(const MtfCoreView *view, int p, int r, int64_t most) {
    const int64_t *of_p = view->costs + (gsize)p * view->down;
    const int64_t *of_r = view->costs + (gsize)r * view->down;
    int64_t worst = -MTF_CORE_IMPOSSIBLE;
    for (int q = 0; q < view->columns; q++, of_p += view->across, of_r += view->across) {
        if (*of_r >= MTF_CORE_IMPOSSIBLE)
            continue;
        if (*of_p >= MTF_CORE_IMPOSSIBLE || *of_p - *of_r > most)
            return MTF_CORE_IMPOSSIBLE;
        worst = MAX(worst, *of_p - *of_r);
    }
    return worst;
}

static bool dominates(const Sweep *sweep, int p, int r) {
    const MtfCoreNode *node = sweep->node;
    if (!uses_no_more(node, p, r))
        return false;
    MtfInt128 difference = (MtfInt128)node->cost[p] - node->cost[r];
    MtfInt128 slack = (MtfInt128)sweep->sums[r] - sweep->sums[p];
    for (guint k = 0; k < node->edges->len; k++) {
        const int64_t *minima = sweep->minima + (gsize)k * (gsize)node->values;
        MtfInt128 least = (MtfInt128)minima[p] - minima[r];
        bool limited = sweep->sums[r] < MTF_CORE_IMPOSSIBLE && least + slack < INT64_MAX;
        int64_t worst = worst_difference(&sweep->views[k], p, r,
                                         limited ? (int64_t)(least + slack) : INT64_MAX);
        if (worst >= MTF_CORE_IMPOSSIBLE)
            return false;
        difference += worst;
        slack -= worst - least;
    }
    return difference <= 0;
}

static int64_t work(const Sweep *sweep) {
    int64_t entries = 1;
    for (guint k = 0; k < sweep->node->edges->len; k++)
        entries += sweep->views[k].columns;
    return entries * sweep->node->values * sweep->node->values;
}

static int64_t row_minimum(const MtfCoreView *view, int p) {
    int64_t least = MTF_CORE_IMPOSSIBLE;
    for (int q = 0; q < view->columns; q++)
        least = MIN(least, mtf_view_cost(view, p, q));
    return least;
}

static void find_sums(const Sweep *sweep) {
    for (int p = 0; p < sweep->node->values; p++) {
        sweep->sums[p] = sweep->node->cost[p];
        for (guint k = 0; k < sweep->node->edges->len; k++) {
            int64_t least = row_minimum(&sweep->views[k], p);
            sweep->minima[(int)k * sweep->node->values + p] = least;
            sweep->sums[p] = mtf_core_add(sweep->sums[p], least);
        }
    }
}

static bool is_dominated(const Sweep *sweep, int r) {
    for (int p = 0; p < sweep->node->values; p++)
        if (p != r && sweep->keep[p] && sweep->sums[p] <= sweep->sums[r] && dominates(sweep, p, r))
            return true;
    return false;
}

/* Lists the values to keep; returns how many. */
static int choose_values(const Sweep *sweep, int16_t *list) {
    int values = sweep->node->values, count = 0;
    find_sums(sweep);
    for (int p = 0; p < values; p++)
        sweep->keep[p] = true;
    for (int r = values - 1; r >= 0; r--)
        sweep->keep[r] = !is_dominated(sweep, r);
    for (int p = 0; p < values; p++)
        if (sweep->keep[p])
            list[count++] = (int16_t)p;
    return count;
}

/* All that the answer depends on. False when that is too much for a question. */
static bool ask(const Sweep *sweep, MtfQuestion *question) {
    const MtfCoreNode *node = sweep->node;
    bool fits = mtf_question_add(question, node->cost, node->values);
    for (guint k = 0; k < node->pieces->len; k++)
        fits = fits &&
               mtf_question_add(question, g_array_index(node->pieces, MtfCorePiece, k).usage, -1);
    for (guint k = 0; k < node->edges->len; k++)
        fits = fits && mtf_question_add_view(question, &sweep->views[k]);
    return fits;
}

/* The list of the node's values to keep, shared, a reference for the caller. */
static const int16_t *values_to_keep(MtfCore *core, const Sweep *sweep, int *count) {
    MtfQuestion question = { .kind = MTF_ASK_DOMINATED };
    bool asked = ask(sweep, &question);
    const MtfAnswer *known = asked ? mtf_shared_recall(core->shared, &question) : NULL;
    if (known != NULL) {
        *count = known->number;
        return mtf_shared_ref(known->blocks[0]);
    }
    int16_t *list = mtf_shared_alloc((gsize)sweep->node->values * sizeof *list);
    memset(list, 0, (gsize)sweep->node->values * sizeof *list);
    *count = choose_values(sweep, list);
    const int16_t *kept = mtf_shared_keep(core->shared, list);
    if (asked)
        mtf_shared_remember(core->shared, &question, (MtfAnswer){ { kept, NULL }, *count });
    return kept;
}

static bool sweep_node(MtfCore *core, int index) {
    const MtfCoreNode *node = &core->nodes[index];
    if (!node->alive || node->values < 2)
        return false;
    g_autofree MtfCoreView *views = g_new(MtfCoreView, node->edges->len + 1);
    for (guint k = 0; k < node->edges->len; k++)
        views[k] =
            mtf_core_view(core, mtf_core_edge(core, g_array_index(node->edges, int, k)), index);
    g_autofree int64_t *minima = g_new(int64_t, (node->edges->len + 1) * (guint)node->values);
    g_autofree int64_t *sums = g_new(int64_t, node->values);
    g_autofree bool *keep = g_new(bool, node->values);
    Sweep sweep = { node, views, minima, sums, keep };
    if (work(&sweep) > MAX_WORK)
        return false;
    int count, values = node->values;
    const int16_t *list = values_to_keep(core, &sweep, &count);
    if (count < values)
        mtf_core_keep_listed(core, index, list, count);
    mtf_shared_unref(core->shared, list);
    return count < values;
}

bool mtf_reduce_dominance(MtfCore *core) {
    bool changed = false;
    for (int v = 0; v < core->node_count && !core->infeasible; v++)
        changed |= sweep_node(core, v);
    mtf_shared_forget(core->shared);
    return changed;
}
