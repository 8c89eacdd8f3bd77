// SPDX-License-Identifier: GPL-3.0-or-later
/* Separation: an edge whose costs are a sum of one cost for each end says nothing of the two
 * together. They go to the ends, and the edge goes:
 *
 *     3 5 4       0                             3 = least of the row
 *     7 9 8   =   4   +   0 2 1   + 3           0 2 1 = what is left of any row
 *
 * So does each edge of a node with one value. */
#include "analyzer/solver/reduce/core_certificate.h"
#include "analyzer/solver/reduce/reductions.h"

/* The least of a row. */
static int64_t least_of_row(const MtfCoreView *view, int p) {
    int64_t least = mtf_view_cost(view, p, 0);
    for (int q = 1; q < view->columns; q++)
        least = MIN(least, mtf_view_cost(view, p, q));
    return least;
}

/* Whether all rows are possible and the first one plus a number each. */
static bool is_separable(const MtfCoreView *view) {
    for (int p = 0; p < view->rows; p++) {
        int64_t more = mtf_view_cost(view, p, 0) - mtf_view_cost(view, 0, 0);
        for (int q = 0; q < view->columns; q++)
            if (mtf_view_cost(view, p, q) >= MTF_CORE_IMPOSSIBLE ||
                mtf_view_cost(view, p, q) - mtf_view_cost(view, 0, q) != more)
                return false;
    }
    return true;
}

/* Adds to a node what each of its values costs beside the other end; takes the costs over. */
static void move_costs(MtfCore *core, int node, int other, int64_t *cost) {
    mtf_certify_move(core, node, other, cost);
    for (int p = 0; p < core->nodes[node].values; p++)
        cost[p] = mtf_core_add(core->nodes[node].cost[p], cost[p]);
    mtf_core_set_cost(core, node, cost);
}

static void separate(MtfCore *core, int index) {
    const MtfCoreEdge *edge = mtf_core_edge(core, index);
    MtfCoreView view = mtf_core_view(core, edge, edge->a);
    int64_t *of_a = mtf_core_new_costs((gsize)view.rows);
    int64_t *of_b = mtf_core_new_costs((gsize)view.columns);
    for (int p = 0; p < view.rows; p++)
        of_a[p] = least_of_row(&view, p);
    for (int q = 0; q < view.columns; q++)
        of_b[q] = mtf_view_cost(&view, 0, q) - of_a[0];
    move_costs(core, edge->a, edge->b, of_a);
    move_costs(core, edge->b, edge->a, of_b);
    mtf_core_drop_edge(core, index);
}

bool mtf_reduce_separation(MtfCore *core) {
    bool changed = false;
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        MtfCoreView view = mtf_core_view(core, edge, edge->a);
        if (!is_separable(&view))
            continue;
        separate(core, e);
        changed = true;
    }
    return changed;
}
