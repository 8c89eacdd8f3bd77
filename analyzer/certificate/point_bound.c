// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/certificate/point_bound.h"

#include "layouts/base/error.h"

#define NEVER MTF_CERTIFIED_NEVER
#define MOST_SHIFT 60
#define MOST_PRICE_SHIFT 120

/* whole 2^-shift + part 2^-price_shift; the two of one number are never mixed up with rounding. */
typedef struct Exact {
    MtfInt128 whole, part;
    bool is_infinite;
} Exact;

typedef struct NodeTerms {
    Exact *theta;  /* [values] */
    Exact least;   /* of them */
    Exact *regret; /* [values] theta - least + sum over edges of low - least of the edge */
} NodeTerms;

typedef struct EdgeTerms {
    Exact least;
    Exact *low[2]; /* [values of an end] the least held beside the value */
} EdgeTerms;

struct MtfPointBound {
    const MtfPoint *point;
    const MtfCertifiedProblem *problem;
    Exact bound;
    NodeTerms *nodes;
    EdgeTerms *edges;
    int node_count, edge_count;
    bool overflow;
};

/* ---- exact numbers ---- */

static const Exact infinite = { 0, 0, true };

static Exact sum_of(MtfPointBound *bound, Exact a, Exact b) {
    Exact sum = { 0, 0, a.is_infinite || b.is_infinite };
    if (sum.is_infinite)
        return infinite;
    bound->overflow |= __builtin_add_overflow(a.whole, b.whole, &sum.whole);
    bound->overflow |= __builtin_add_overflow(a.part, b.part, &sum.part);
    return sum;
}

/* Of finite numbers. */
static Exact difference_of(MtfPointBound *bound, Exact a, Exact b) {
    Exact difference = { 0, 0, false };
    bound->overflow |= __builtin_sub_overflow(a.whole, b.whole, &difference.whole);
    bound->overflow |= __builtin_sub_overflow(a.part, b.part, &difference.part);
    return difference;
}

/* Whether a > b: parts are below a whole unit once their whole units are carried over. */
static bool is_more(const MtfPoint *point, Exact a, Exact b) {
    if (a.is_infinite || b.is_infinite)
        return a.is_infinite && !b.is_infinite;
    int bits = point->price_shift - point->shift;
    MtfInt128 unit = (MtfInt128)1 << bits;
    MtfInt128 whole_a = a.whole + (a.part >> bits), whole_b = b.whole + (b.part >> bits);
    return whole_a != whole_b ? whole_a > whole_b : (a.part & (unit - 1)) > (b.part & (unit - 1));
}

static Exact less_of(const MtfPoint *point, Exact a, Exact b) {
    return is_more(point, a, b) ? b : a;
}

static Exact exact_cost(MtfPointBound *bound, int64_t cost) {
    if (cost == NEVER)
        return infinite;
    Exact exact = { 0 };
    bound->overflow |=
        __builtin_mul_overflow((MtfInt128)cost, (MtfInt128)1 << bound->point->shift, &exact.whole);
    return exact;
}

static Exact exact_message(const int64_t *message, int value) {
    return (Exact){ .whole = message != NULL ? message[value] : 0 };
}

/* A price or a sum of prices for so much memory. */
static Exact payment(MtfPointBound *bound, MtfInt128 price, MtfInt128 memory) {
    Exact exact = { 0 };
    bound->overflow |= __builtin_mul_overflow(price, memory, &exact.part);
    return exact;
}

/* ---- the point ---- */

MtfPoint *mtf_point_new(const MtfCertifiedProblem *problem, int64_t shift, int64_t price_shift) {
    if (shift < 0 || shift > MOST_SHIFT || price_shift < shift || price_shift > MOST_PRICE_SHIFT)
        return NULL;
    MtfPoint *point = g_new0(MtfPoint, 1);
    *point =
        (MtfPoint){ (int)shift, (int)price_shift, problem->rows, (int)problem->edges->len, NULL,
                    NULL };
    point->price = g_new0(int64_t, point->rows + 1);
    point->message = g_new0(int64_t *, 2 * point->edges + 1);
    return point;
}

void mtf_point_free(MtfPoint *point) {
    if (point == NULL)
        return;
    for (int i = 0; i < 2 * point->edges; i++)
        g_free(point->message[i]);
    g_free(point->message);
    g_free(point->price);
    g_free(point);
}

bool mtf_point_set_price(MtfPoint *point, const MtfCertifiedProblem *problem, int64_t time,
                         int64_t price, GError **error) {
    if (price < 0)
        return mtf_input_error(error, "a price below zero proves nothing");
    for (int r = 0; r < problem->rows; r++)
        if (problem->times[r] == time) {
            point->price[r] = price;
            return true;
        }
    return mtf_input_error(error, "time %" G_GINT64_FORMAT " does not count", time);
}

bool mtf_point_set_message(MtfPoint *point, const MtfCertifiedProblem *problem, int64_t node,
                           int64_t other, const int64_t *message, int count, GError **error) {
    bool there = node >= 0 && other >= 0 && node < problem->node_count &&
                 other < problem->node_count && problem->nodes[node].alive &&
                 problem->nodes[other].alive;
    int edge = there ? mtf_certified_edge(problem, (int)node, (int)other) : -1;
    if (edge < 0 || count != problem->nodes[node].values)
        return mtf_input_error(error, "no edge between these nodes with %d values there", count);
    int64_t **to = &point->message[2 * edge + (mtf_certified_edge_at(problem, edge)->a != node)];
    g_free(*to);
    *to = g_memdup2(message, ((gsize)count + 1) * sizeof *message);
    return true;
}

/* ---- its terms ---- */

/* Adds what the node's memory is priced at to its values' terms. */
static void add_payments(MtfPointBound *bound, int v, const MtfInt128 *prefix, Exact *theta) {
    GPtrArray *spans = mtf_certified_spans(bound->problem, v);
    bound->overflow |= spans == NULL;
    for (guint k = 0; spans != NULL && k < spans->len; k++) {
        const MtfCertifiedSpan *span = g_ptr_array_index(spans, k);
        MtfInt128 price = prefix[span->last] - prefix[span->first];
        for (int p = 0; price > 0 && p < bound->problem->nodes[v].values; p++)
            theta[p] = sum_of(bound, theta[p], payment(bound, price, span->usage[p]));
    }
    if (spans != NULL)
        g_ptr_array_unref(spans);
}

static void add_messages(MtfPointBound *bound, int v, Exact *theta) {
    const MtfCertifiedNode *node = &bound->problem->nodes[v];
    for (guint k = 0; k < node->edges->len; k++) {
        int e = g_array_index(node->edges, int, k);
        bool second = mtf_certified_edge_at(bound->problem, e)->a != v;
        const int64_t *message = bound->point->message[2 * e + second];
        for (int p = 0; p < node->values; p++)
            theta[p] = sum_of(bound, theta[p], exact_message(message, p));
    }
}

static void find_node(MtfPointBound *bound, int v, const MtfInt128 *prefix) {
    const MtfCertifiedNode *node = &bound->problem->nodes[v];
    NodeTerms *terms = &bound->nodes[v];
    terms->theta = g_new(Exact, (gsize)node->values + 1);
    for (int p = 0; p < node->values; p++)
        terms->theta[p] = exact_cost(bound, node->cost[p]);
    add_payments(bound, v, prefix, terms->theta);
    add_messages(bound, v, terms->theta);
    terms->least = infinite;
    for (int p = 0; p < node->values; p++)
        terms->least = less_of(bound->point, terms->least, terms->theta[p]);
    bound->bound = sum_of(bound, bound->bound, terms->least);
}

/* What an edge holds at an entry; infinite where that, or one of its values, is impossible. */
static Exact held(MtfPointBound *bound, int e, int p, int q) {
    const MtfCertifiedEdge *edge = mtf_certified_edge_at(bound->problem, e);
    const MtfCertifiedNode *a = &bound->problem->nodes[edge->a],
                           *b = &bound->problem->nodes[edge->b];
    int64_t cost = edge->cost[(gsize)p * (gsize)b->values + (gsize)q];
    if (a->cost[p] == NEVER || b->cost[q] == NEVER || cost == NEVER)
        return infinite;
    Exact of_a = exact_message(bound->point->message[2 * e], p);
    Exact of_b = exact_message(bound->point->message[2 * e + 1], q);
    return difference_of(bound, difference_of(bound, exact_cost(bound, cost), of_a), of_b);
}

static Exact *infinities(int count) {
    Exact *list = g_new(Exact, (gsize)count + 1);
    for (int i = 0; i < count; i++)
        list[i] = infinite;
    return list;
}

static void find_edge(MtfPointBound *bound, int e) {
    const MtfCertifiedEdge *edge = mtf_certified_edge_at(bound->problem, e);
    int rows = bound->problem->nodes[edge->a].values,
        columns = bound->problem->nodes[edge->b].values;
    EdgeTerms *terms = &bound->edges[e];
    *terms = (EdgeTerms){ infinite, { infinities(rows), infinities(columns) } };
    for (int p = 0; p < rows; p++)
        for (int q = 0; q < columns; q++) {
            Exact entry = held(bound, e, p, q);
            terms->low[0][p] = less_of(bound->point, terms->low[0][p], entry);
            terms->low[1][q] = less_of(bound->point, terms->low[1][q], entry);
        }
    for (int p = 0; p < rows; p++)
        terms->least = less_of(bound->point, terms->least, terms->low[0][p]);
    bound->bound = sum_of(bound, bound->bound, terms->least);
}

static Exact above(MtfPointBound *bound, Exact value, Exact least) {
    return value.is_infinite ? value : difference_of(bound, value, least);
}

/* How far value p of node v is above the least of its own terms and of each of its edges. */
static Exact regret_of(MtfPointBound *bound, int v, int p) {
    const MtfCertifiedNode *node = &bound->problem->nodes[v];
    Exact regret = above(bound, bound->nodes[v].theta[p], bound->nodes[v].least);
    for (guint k = 0; k < node->edges->len; k++) {
        int e = g_array_index(node->edges, int, k);
        bool second = mtf_certified_edge_at(bound->problem, e)->a != v;
        Exact low = bound->edges[e].low[second][p];
        regret = sum_of(bound, regret, above(bound, low, bound->edges[e].least));
    }
    return regret;
}

/* By how much the bound rises with each value; only of a finite bound. */
static void find_regrets(MtfPointBound *bound, int v) {
    const MtfCertifiedNode *node = &bound->problem->nodes[v];
    NodeTerms *terms = &bound->nodes[v];
    terms->regret = g_new(Exact, (gsize)node->values + 1);
    for (int p = 0; p < node->values; p++)
        terms->regret[p] = regret_of(bound, v, p);
}

static void find_bound(MtfPointBound *bound) {
    const MtfCertifiedProblem *problem = bound->problem;
    g_autofree MtfInt128 *prefix = g_new0(MtfInt128, problem->rows + 1);
    bound->bound = exact_cost(bound, problem->constant);
    for (int r = 0; r < problem->rows; r++) {
        prefix[r + 1] = prefix[r] + bound->point->price[r];
        bound->bound =
            sum_of(bound, bound->bound,
                   payment(bound, -(MtfInt128)bound->point->price[r], problem->capacity[r]));
    }
    for (int v = 0; v < problem->node_count; v++)
        if (problem->nodes[v].alive)
            find_node(bound, v, prefix);
    for (int e = 0; e < bound->edge_count; e++)
        if (mtf_certified_edge_at(problem, e)->a >= 0)
            find_edge(bound, e);
    for (int v = 0; v < problem->node_count && !bound->bound.is_infinite; v++)
        if (problem->nodes[v].alive)
            find_regrets(bound, v);
}

MtfPointBound *mtf_point_bound_new(const MtfPoint *point, const MtfCertifiedProblem *problem,
                                   GError **error) {
    MtfPointBound *bound = g_new0(MtfPointBound, 1);
    bound->point = point;
    bound->problem = problem;
    bound->node_count = problem->node_count;
    bound->edge_count = (int)problem->edges->len;
    bound->nodes = g_new0(NodeTerms, bound->node_count + 1);
    bound->edges = g_new0(EdgeTerms, bound->edge_count + 1);
    find_bound(bound);
    if (!bound->overflow)
        return bound;
    mtf_point_bound_free(bound);
    mtf_input_error(error, "a sum of the point leaves 128 bits");
    return NULL;
}

void mtf_point_bound_free(MtfPointBound *bound) {
    if (bound == NULL)
        return;
    for (int v = 0; v < bound->node_count; v++) {
        g_free(bound->nodes[v].theta);
        g_free(bound->nodes[v].regret);
    }
    for (int e = 0; e < bound->edge_count; e++) {
        g_free(bound->edges[e].low[0]);
        g_free(bound->edges[e].low[1]);
    }
    g_free(bound->nodes);
    g_free(bound->edges);
    g_free(bound);
}

/* ---- what it says ---- */

static bool exceeds(const MtfPointBound *bound, Exact number, int64_t cost) {
    Exact limit = { .whole = (MtfInt128)cost * ((MtfInt128)1 << bound->point->shift) };
    return is_more(bound->point, number, limit);
}

bool mtf_point_bound_exceeds(const MtfPointBound *bound, int64_t cost) {
    return exceeds(bound, bound->bound, cost);
}

bool mtf_point_bound_is_infinite(const MtfPointBound *bound) {
    return bound->bound.is_infinite;
}

bool mtf_point_bound_excludes(const MtfPointBound *bound, int node, int value, int64_t cost) {
    MtfPointBound scratch = *bound;
    if (bound->bound.is_infinite)
        return true;
    Exact with = sum_of(&scratch, bound->bound, bound->nodes[node].regret[value]);
    return !scratch.overflow && exceeds(bound, with, cost);
}

/* The regret of a value but for what an edge has in it; infinite where the value is impossible. */
static Exact regret_beside(MtfPointBound *bound, int node, int value, Exact low, Exact least) {
    Exact regret = bound->nodes[node].regret[value];
    if (regret.is_infinite)
        return infinite;
    return difference_of(bound, regret, difference_of(bound, low, least));
}

bool mtf_point_bound_excludes_entry(const MtfPointBound *bound, int a, int b, int p, int q,
                                    int64_t cost) {
    if (bound->bound.is_infinite)
        return true;
    MtfPointBound scratch = *bound;
    int e = mtf_certified_edge(bound->problem, a, b);
    bool turned = mtf_certified_edge_at(bound->problem, e)->a != a;
    const EdgeTerms *terms = &bound->edges[e];
    Exact entry = turned ? held(&scratch, e, q, p) : held(&scratch, e, p, q);
    if (entry.is_infinite)
        return true;
    Exact with = sum_of(&scratch, bound->bound, difference_of(&scratch, entry, terms->least));
    with =
        sum_of(&scratch, with, regret_beside(&scratch, a, p, terms->low[turned][p], terms->least));
    with =
        sum_of(&scratch, with, regret_beside(&scratch, b, q, terms->low[!turned][q], terms->least));
    return !scratch.overflow && exceeds(bound, with, cost);
}

/* ---- its terms, rounded ---- */

static MtfInt128 rounded_down(const MtfPoint *point, Exact number) {
    return number.whole + (number.part >> (point->price_shift - point->shift));
}

static MtfInt128 rounded_term(const MtfPointBound *bound, Exact term, Exact least) {
    MtfPointBound scratch = *bound; /* nothing overflows that did not before */
    if (term.is_infinite)
        return MTF_POINT_NEVER;
    return rounded_down(bound->point, difference_of(&scratch, term, least));
}

MtfInt128 mtf_point_bound_term(const MtfPointBound *bound, int node, int value) {
    const NodeTerms *terms = &bound->nodes[node];
    return rounded_term(bound, terms->theta[value], terms->least);
}

MtfInt128 mtf_point_bound_entry_term(const MtfPointBound *bound, int e, int node, int p, int q) {
    MtfPointBound scratch = *bound;
    bool turned = mtf_certified_edge_at(bound->problem, e)->a != node;
    Exact entry = turned ? held(&scratch, e, q, p) : held(&scratch, e, p, q);
    return rounded_term(bound, entry, bound->edges[e].least);
}

MtfInt128 mtf_point_bound_slack(const MtfPointBound *bound, int64_t cost) {
    MtfPointBound scratch = *bound;
    Exact limit = { .whole = (MtfInt128)cost * ((MtfInt128)1 << bound->point->shift) };
    return rounded_down(bound->point, difference_of(&scratch, limit, bound->bound));
}

int64_t mtf_point_bound_price(const MtfPointBound *bound, int row) {
    return bound->point->price[row];
}
