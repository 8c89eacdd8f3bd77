// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/elimination/priced_terms.h"

#include <math.h>

#define MOST_SHIFT 16
#define SLACK_BITS 50 /* of what the shift is chosen for */
#define PRICE_BITS 50 /* of a scaled price */
#define MOST_PRICE_SHIFT 62

/* Prices as whole numbers: prefix[r] is the sum of those before row r, in 2^-(shift + price_shift). */
typedef struct Prices {
    MtfInt128 *prefix;
    int64_t *price;
    int shift;
} Prices;

/* As fine as the costs allow where terms are of the size of the cutoff. */
static int choose_shift(const MtfCore *core, const double *prices, int64_t cutoff) {
    double size = fabs((double)cutoff) + fabs((double)core->constant);
    for (int r = 0; r < core->rows; r++)
        size += prices[r] * (double)core->capacity[r];
    int shift = SLACK_BITS - 1 - (int)ceil(log2(fmax(1, size)));
    return CLAMP(shift, 0, MOST_SHIFT);
}

static void prices_init(Prices *prices, const MtfCore *core, const double *given, int shift) {
    double largest = 0;
    for (int r = 0; r < core->rows; r++)
        largest = fmax(largest, given[r]);
    int bits = largest > 0 ? PRICE_BITS - 1 - (int)ceil(log2(largest)) - shift : 0;
    prices->shift = CLAMP(bits, 0, MOST_PRICE_SHIFT);
    prices->prefix = g_new0(MtfInt128, core->rows + 1);
    prices->price = g_new0(int64_t, core->rows + 1);
    for (int r = 0; r < core->rows; r++) {
        double scaled = floor(ldexp(given[r], shift + prices->shift));
        bool usable = scaled > 0 && scaled < 0x1p51;
        prices->price[r] = usable ? (int64_t)scaled : 0;
        prices->prefix[r + 1] = prices->prefix[r] + prices->price[r];
    }
}

/* Of a value's memory, rounded down. */
static MtfInt128 price_of(const Prices *prices, const MtfCoreNode *node, int p) {
    MtfInt128 sum = 0;
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCorePiece *piece = &g_array_index(node->pieces, MtfCorePiece, k);
        sum += piece->usage[p] * (prices->prefix[piece->last] - prices->prefix[piece->first]);
    }
    return sum >> prices->shift;
}

/* Of all room, rounded up. */
static MtfInt128 price_of_room(const Prices *prices, const MtfCore *core) {
    MtfInt128 sum = 0;
    for (int r = 0; r < core->rows; r++)
        sum += core->capacity[r] * (prices->prefix[r + 1] - prices->prefix[r]);
    return -(-sum >> prices->shift);
}

/* Fills a list of terms less the least of them, which it returns; NEVER for what is impossible or too
 * much. `costs` are scaled; negative means impossible where `possible` says so. */
static MtfInt128 take_least(const MtfInt128 *costs, const bool *possible, gsize count,
                            int64_t *terms) {
    bool any = false;
    MtfInt128 least = 0;
    for (gsize i = 0; i < count; i++) {
        if (!possible[i] || (any && costs[i] >= least))
            continue;
        least = costs[i];
        any = true;
    }
    for (gsize i = 0; i < count; i++) {
        MtfInt128 rest = possible[i] ? costs[i] - least : MTF_TERM_NEVER;
        terms[i] = (int64_t)MIN(rest, MTF_TERM_NEVER);
    }
    return least;
}

static MtfInt128 add_node(MtfPricedTerms *terms, const Prices *prices, int v) {
    const MtfCoreNode *node = &terms->core->nodes[v];
    g_autofree MtfInt128 *costs = g_new(MtfInt128, node->values);
    g_autofree bool *possible = g_new(bool, node->values);
    for (int p = 0; p < node->values; p++) {
        possible[p] = node->cost[p] < MTF_CORE_IMPOSSIBLE;
        costs[p] =
            (MtfInt128)node->cost[p] * ((MtfInt128)1 << terms->shift) + price_of(prices, node, p);
    }
    terms->node[v] = g_new(int64_t, node->values);
    return take_least(costs, possible, (gsize)node->values, terms->node[v]);
}

static MtfInt128 add_edge(MtfPricedTerms *terms, int e) {
    const MtfCore *core = terms->core;
    const MtfCoreEdge *edge = mtf_core_edge(core, e);
    gsize count = mtf_core_edge_entries(core, edge);
    g_autofree MtfInt128 *costs = g_new(MtfInt128, count);
    g_autofree bool *possible = g_new(bool, count);
    for (gsize i = 0; i < count; i++) {
        possible[i] = edge->cost[i] < MTF_CORE_IMPOSSIBLE;
        costs[i] = (MtfInt128)edge->cost[i] * ((MtfInt128)1 << terms->shift);
    }
    terms->edge[e] = g_new(int64_t, count);
    return take_least(costs, possible, count, terms->edge[e]);
}

/* All that was taken off the terms. */
static MtfInt128 add_all(MtfPricedTerms *terms, const Prices *prices) {
    const MtfCore *core = terms->core;
    MtfInt128 base = 0;
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            base += add_node(terms, prices, v);
    for (int e = -1; mtf_core_next_edge(core, &e);)
        base += add_edge(terms, e);
    return base;
}

/* The terms in multiples of 2^-shift, or NULL. */
static MtfPricedTerms *terms_at(const MtfCore *core, const double *prices, int64_t cutoff,
                                int shift) {
    g_autoptr(MtfPricedTerms) terms = g_new0(MtfPricedTerms, 1);
    terms->core = core;
    terms->shift = shift;
    terms->node = g_new0(int64_t *, core->node_count + 1);
    terms->edge = g_new0(int64_t *, core->edges->len + 1);
    Prices whole;
    prices_init(&whole, core, prices, shift);
    MtfInt128 room = price_of_room(&whole, core), base = add_all(terms, &whole);
    g_free(whole.prefix);
    terms->price = whole.price;
    terms->price_shift = shift + whole.shift;
    MtfInt128 above = (MtfInt128)cutoff - core->constant;
    MtfInt128 slack = above * ((MtfInt128)1 << shift) + room - base;
    if (slack >= MTF_TERM_NEVER)
        return NULL;
    terms->slack = (int64_t)MAX(slack, -1);
    return g_steal_pointer(&terms);
}

MtfPricedTerms *mtf_priced_terms_new(const MtfCore *core, const double *prices, int64_t cutoff) {
    int shift = choose_shift(core, prices, cutoff);
    MtfPricedTerms *terms = terms_at(core, prices, cutoff, shift);
    return terms != NULL || shift == 0 ? terms : terms_at(core, prices, cutoff, 0);
}

void mtf_priced_terms_free(MtfPricedTerms *terms) {
    if (terms == NULL)
        return;
    for (int v = 0; v < terms->core->node_count; v++)
        g_free(terms->node[v]);
    for (guint e = 0; e < terms->core->edges->len; e++)
        g_free(terms->edge[e]);
    g_free(terms->node);
    g_free(terms->edge);
    g_free(terms->price);
    g_free(terms);
}
