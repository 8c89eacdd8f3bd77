// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/problems/bound_checker.h"

#define PRECISION 64 /* bits behind the point, of prices cut down to as many */

/* A number of at most 2^59 times 2^-shift as a multiple of 2^-PRECISION; more bits are cut off. */
static MtfInt128 fraction(int64_t number, int shift) {
    return shift > PRECISION ? (MtfInt128)number >> (shift - PRECISION)
                             : (MtfInt128)number * ((MtfInt128)1 << (PRECISION - shift));
}

/* Over all values of a node the least cost with messages and priced memory. */
static MtfInt128 node_term(const MtfCore *core, const MtfExactBound *exact, int v) {
    const MtfCoreNode *node = &core->nodes[v];
    MtfInt128 least = (MtfInt128)1 << 126;
    for (int p = 0; p < node->values; p++) {
        if (node->cost[p] >= MTF_CORE_IMPOSSIBLE)
            continue;
        MtfInt128 sum = fraction(node->cost[p], 0);
        for (guint k = 0; k < node->pieces->len; k++) {
            const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
            for (int r = piece->first; r < piece->last; r++)
                sum += piece->usage[p] * fraction(mtf_exact_bound_price(exact, r),
                                                  mtf_exact_bound_price_shift(exact));
        }
        for (guint k = 0; k < node->edges->len; k++)
            sum +=
                fraction(mtf_exact_bound_message(exact, g_array_index(node->edges, int, k), v)[p],
                         mtf_exact_bound_shift(exact));
        least = MIN(least, sum);
    }
    return least;
}

/* Over all pairs of values the least cost of an edge without what its messages took. */
static MtfInt128 edge_term(const MtfCore *core, const MtfExactBound *exact, int e) {
    const MtfCoreEdge *edge = mtf_core_edge(core, e);
    const int64_t *to_a = mtf_exact_bound_message(exact, e, edge->a);
    const int64_t *to_b = mtf_exact_bound_message(exact, e, edge->b);
    int columns = core->nodes[edge->b].values, shift = mtf_exact_bound_shift(exact);
    MtfInt128 least = (MtfInt128)1 << 126;
    for (int p = 0; p < core->nodes[edge->a].values; p++)
        for (int q = 0; q < columns; q++) {
            int64_t cost = edge->cost[p * columns + q];
            if (cost >= MTF_CORE_IMPOSSIBLE ||
                core->nodes[edge->a].cost[p] >= MTF_CORE_IMPOSSIBLE ||
                core->nodes[edge->b].cost[q] >= MTF_CORE_IMPOSSIBLE)
                continue;
            least =
                MIN(least, fraction(cost, 0) - fraction(to_a[p], shift) - fraction(to_b[q], shift));
        }
    return least;
}

bool mtf_test_bound_holds(const MtfCore *core, const MtfExactBound *exact, int64_t claimed) {
    MtfInt128 bound = fraction(core->constant, 0);
    for (int r = 0; r < core->rows; r++)
        if (mtf_exact_bound_price(exact, r) < 0)
            return false;
    for (int r = 0; r < core->rows; r++)
        bound -= core->capacity[r] *
                 fraction(mtf_exact_bound_price(exact, r), mtf_exact_bound_price_shift(exact));
    for (int v = 0; v < core->node_count; v++)
        bound += core->nodes[v].alive ? node_term(core, exact, v) : 0;
    for (guint e = 0; e < core->edges->len; e++)
        bound += mtf_core_edge(core, (int)e)->a >= 0 ? edge_term(core, exact, (int)e) : 0;
    /* a whole number that is not below the bound is at least the next one above it */
    return bound > fraction(claimed - 1, 0);
}
