// SPDX-License-Identifier: GPL-3.0-or-later
/* Dominance: value p of a node makes value r needless when it uses no more memory in any row and
 * costs no more whatever the neighbours choose:
 *
 *     cost[p] - cost[r] + sum over edges of max_q (edge[p][q] - edge[r][q])  <=  0
 *
 * A quick test comes first: the maximum of a difference is at least the difference of the minima,
 * so p needs  cost[p] + sum of row minima  no larger than that of r. By how much it is smaller is
 * all that the maxima may lie above the differences of the minima, which ends most comparisons
 * after a few entries; mostly after one, as where the value before was seen to cost too much more
 * than r the next does, too. Which p are looked at first makes no difference to the answer: those
 * of the smallest sums are, which most likely dominate. */
#include "analyzer/solver/reduce/reductions.h"

#include <string.h>

#define MAX_WORK 20000000 /* edge entries compared for one node */

typedef struct Sweep {
    const MtfCoreNode *node;
    MtfCoreView *views; /* one for each edge */
    int64_t *minima;    /* [edges][values] of rows */
    int64_t *sums;      /* [values] own cost and row minima */
    int *order;         /* [values] by their sums */
    bool *keep;         /* [values] */
    guint edge; /* where a value was last seen to cost too much more than another: an edge */
    int entry;  /* and a value of its other end */
} Sweep;

static bool uses_no_more(const MtfCoreNode *node, int p, int r) {
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        if (piece->usage[p] > piece->usage[r])
            return false;
    }
    return true;
}

/* The most that p may cost more than r across edge k where all edges together have so much to spare. */
static int64_t most_more(const Sweep *sweep, guint k, int p, int r, MtfInt128 slack) {
    const int64_t *minima = sweep->minima + (gsize)k * (gsize)sweep->node->values;
    MtfInt128 most = (MtfInt128)minima[p] - minima[r] + slack;
    bool limited = sweep->sums[r] < MTF_CORE_IMPOSSIBLE && most < INT64_MAX;
    return limited ? (int64_t)most : INT64_MAX;
}

/* Whether p costs more than so much more than r beside one value of the other end. */
static bool costs_more(int64_t of_p, int64_t of_r, int64_t most) {
    return of_r < MTF_CORE_IMPOSSIBLE && (of_p >= MTF_CORE_IMPOSSIBLE || of_p - of_r > most);
}

/* The most that p costs more than r across edge k; impossible when only p is impossible, or when it is more
 * than `most`, which is noted. */
static int64_t worst_difference(Sweep *sweep, guint k, int p, int r, int64_t most) {
    const MtfCoreView *view = &sweep->views[k];
    const int64_t *of_p = view->costs + (gsize)p * view->down;
    const int64_t *of_r = view->costs + (gsize)r * view->down;
    int64_t worst = -MTF_CORE_IMPOSSIBLE;
    for (int q = 0; q < view->columns; q++, of_p += view->across, of_r += view->across) {
        if (costs_more(*of_p, *of_r, most)) {
            sweep->edge = k;
            sweep->entry = q;
            return MTF_CORE_IMPOSSIBLE;
        }
        if (*of_r < MTF_CORE_IMPOSSIBLE)
            worst = MAX(worst, *of_p - *of_r);
    }
    return worst;
}

/* Whether p costs too much more than r where the value before did. */
static bool fails_again(const Sweep *sweep, int p, int r, MtfInt128 slack) {
    if (sweep->node->edges->len == 0)
        return false;
    const MtfCoreView *view = &sweep->views[sweep->edge];
    int q = sweep->entry;
    return costs_more(mtf_view_cost(view, p, q), mtf_view_cost(view, r, q),
                      most_more(sweep, sweep->edge, p, r, slack));
}

static bool dominates(Sweep *sweep, int p, int r) {
    const MtfCoreNode *node = sweep->node;
    MtfInt128 slack = (MtfInt128)sweep->sums[r] - sweep->sums[p];
    if (fails_again(sweep, p, r, slack) || !uses_no_more(node, p, r))
        return false;
    MtfInt128 difference = (MtfInt128)node->cost[p] - node->cost[r];
    for (guint k = 0; k < node->edges->len; k++) {
        const int64_t *minima = sweep->minima + (gsize)k * (gsize)node->values;
        int64_t worst = worst_difference(sweep, k, p, r, most_more(sweep, k, p, r, slack));
        if (worst >= MTF_CORE_IMPOSSIBLE)
            return false;
        difference += worst;
        slack -= worst - ((MtfInt128)minima[p] - minima[r]);
    }
    return difference <= 0;
}

static int64_t work(const Sweep *sweep) {
    int64_t entries = 1;
    for (guint k = 0; k < sweep->node->edges->len; k++)
        entries += sweep->views[k].columns;
    return entries * sweep->node->values * sweep->node->values;
}

/* The least cost of each row of a view, along the memory. */
static void find_minima(const MtfCoreView *view, int64_t *minima) {
    for (int p = 0; p < view->rows; p++)
        minima[p] = MTF_CORE_IMPOSSIBLE;
    if (view->across == 1) {
        for (int p = 0; p < view->rows; p++)
            for (int q = 0; q < view->columns; q++)
                minima[p] = MIN(minima[p], mtf_view_cost(view, p, q));
        return;
    }
    for (int q = 0; q < view->columns; q++)
        for (int p = 0; p < view->rows; p++)
            minima[p] = MIN(minima[p], mtf_view_cost(view, p, q));
}

static int by_sum(const void *left, const void *right, void *sums) {
    int p = *(const int *)left, q = *(const int *)right;
    int64_t of_p = ((int64_t *)sums)[p], of_q = ((int64_t *)sums)[q];
    return of_p != of_q ? (of_p > of_q) - (of_p < of_q) : p - q;
}

static void find_sums(Sweep *sweep) {
    int values = sweep->node->values;
    memcpy(sweep->sums, sweep->node->cost, (gsize)values * sizeof *sweep->sums);
    for (guint k = 0; k < sweep->node->edges->len; k++) {
        int64_t *minima = sweep->minima + (gsize)k * (gsize)values;
        find_minima(&sweep->views[k], minima);
        for (int p = 0; p < values; p++)
            sweep->sums[p] = mtf_core_add(sweep->sums[p], minima[p]);
    }
    for (int p = 0; p < values; p++)
        sweep->order[p] = p;
    qsort_r(sweep->order, (gsize)values, sizeof *sweep->order, by_sum, sweep->sums);
}

static bool is_dominated(Sweep *sweep, int r) {
    for (int i = 0; i < sweep->node->values; i++) {
        int p = sweep->order[i];
        if (sweep->sums[p] > sweep->sums[r])
            return false;
        if (p != r && sweep->keep[p] && dominates(sweep, p, r))
            return true;
    }
    return false;
}

/* Lists the values to keep; returns how many. */
static int choose_values(Sweep *sweep, int16_t *list) {
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
static const int16_t *values_to_keep(MtfCore *core, Sweep *sweep, int *count) {
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
    g_autofree int *order = g_new(int, node->values);
    g_autofree bool *keep = g_new(bool, node->values);
    Sweep sweep = { node, views, minima, sums, order, keep, 0, 0 };
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
