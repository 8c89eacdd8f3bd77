// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/bounds/node_pairs.h"

#include "analyzer/solver/reduce/core_certificate.h"
#include "analyzer/solver/reduce/core_values.h"

#include <math.h>
#include <stdlib.h>

#define MOST_TRIPLES 300000 /* of values of a triangle that is looked at */
#define LEAST_GROWTH 1e4    /* entries; that a pair takes less counts for nothing */

/* An edge whose ends may be joined, or those that lie alike in repeated layers: all of them, or none. */
typedef struct Pair {
    int first, count; /* of them in a list */
    int values;       /* possible pairs of values */
    double gain;      /* what its triangles would raise the bound by, for what they cost */
    double score;
} Pair;

static int neighbour(const MtfCore *core, int node, guint k) {
    const MtfCoreEdge *edge = mtf_core_edge(core, g_array_index(core->nodes[node].edges, int, k));
    return mtf_core_other_end(edge, node);
}

static int count_possible(const MtfCore *core, const MtfCoreEdge *edge) {
    int count = core->nodes[edge->a].values * core->nodes[edge->b].values, possible = 0;
    for (int i = 0; i < count; i++)
        possible += edge->cost[i] < MTF_CORE_IMPOSSIBLE;
    return possible;
}

static void mark_neighbours(const MtfCore *core, int node, bool value, bool *mark) {
    for (guint k = 0; k < core->nodes[node].edges->len; k++)
        mark[neighbour(core, node, k)] = value;
}

/* How many triangles and how many squares the edge is part of, a triangle counting for two. `mark`
 * is scratch, false everywhere before and after. */
static int count_cycles(const MtfCore *core, const MtfCoreEdge *edge, bool *mark) {
    int a = edge->a, b = edge->b, cycles = 0;
    mark_neighbours(core, b, true, mark);
    for (guint k = 0; k < core->nodes[a].edges->len; k++) {
        int x = neighbour(core, a, k);
        cycles += x != b && mark[x] ? 2 : 0;
        for (guint i = 0; x != b && i < core->nodes[x].edges->len; i++) {
            int y = neighbour(core, x, i);
            cycles += y != a && y != b && mark[y];
        }
    }
    mark_neighbours(core, b, false, mark);
    return cycles;
}

/* The entries of a node's matrices, but for those of one edge. */
static double entries_beside(const MtfCore *core, int node, int edge) {
    double others = 0;
    for (guint k = 0; k < core->nodes[node].edges->len; k++)
        if (g_array_index(core->nodes[node].edges, int, k) != edge)
            others += core->nodes[neighbour(core, node, k)].values;
    return others * core->nodes[node].values;
}

/* What all matrices grow by when the edge's ends are joined, at most. */
static double growth_of(const MtfCore *core, int index, int values) {
    const MtfCoreEdge *edge = mtf_core_edge(core, index);
    double of_a = entries_beside(core, edge->a, index);
    double of_b = entries_beside(core, edge->b, index);
    return values * (of_a / core->nodes[edge->a].values + of_b / core->nodes[edge->b].values) -
           of_a - of_b;
}

static const MtfCoreEdge *edge_between(const MtfCore *core, int a, int b) {
    for (guint k = 0; k < core->nodes[a].edges->len; k++)
        if (neighbour(core, a, k) == b)
            return mtf_core_edge(core, g_array_index(core->nodes[a].edges, int, k));
    return NULL;
}

/* Costs [values of node][values of third] of the edge between them; returns the least. */
static int64_t costs_to(const MtfCore *core, int node, int third, bool with_third, int64_t *costs) {
    const MtfCoreEdge *edge = edge_between(core, node, third);
    int64_t least = MTF_CORE_IMPOSSIBLE;
    for (int p = 0; p < core->nodes[node].values; p++)
        for (int r = 0; r < core->nodes[third].values; r++, costs++) {
            *costs = mtf_core_add(mtf_core_edge_cost(core, edge, node, p, r),
                                  with_third ? core->nodes[third].cost[r] : 0);
            least = MIN(least, *costs);
        }
    return least;
}

/* What the best choice of three nodes costs more than the best of the edge with its ends and of the two edges
 * to the third: what closing their triangle alone raises the bound by, at the costs that messages left. */
static int64_t triangle_gain(const MtfCore *core, const MtfCoreEdge *edge, int third) {
    int a = edge->a, b = edge->b, count = core->nodes[third].values;
    if ((double)core->nodes[a].values * core->nodes[b].values * count > MOST_TRIPLES)
        return 0;
    g_autofree int64_t *of_a = g_new(int64_t, core->nodes[a].values * count);
    g_autofree int64_t *of_b = g_new(int64_t, core->nodes[b].values * count);
    int64_t beside =
        mtf_core_add(costs_to(core, a, third, true, of_a), costs_to(core, b, third, false, of_b));
    int64_t apart = MTF_CORE_IMPOSSIBLE, together = MTF_CORE_IMPOSSIBLE;
    for (int p = 0; p < core->nodes[a].values; p++)
        for (int q = 0; q < core->nodes[b].values; q++) {
            int64_t own =
                mtf_core_add(edge->cost[p * core->nodes[b].values + q],
                             mtf_core_add(core->nodes[a].cost[p], core->nodes[b].cost[q]));
            apart = MIN(apart, own);
            for (int r = 0; mtf_core_add(own, beside) < together && r < count; r++)
                together =
                    MIN(together,
                        mtf_core_add(own, mtf_core_add(of_a[p * count + r], of_b[q * count + r])));
        }
    return together < MTF_CORE_IMPOSSIBLE ? together - mtf_core_add(apart, beside) : 0;
}

/* Of all triangles that the edge is part of; `mark` as above. */
static double gain_of(const MtfCore *core, const MtfCoreEdge *edge, bool *mark) {
    int a = edge->a, b = edge->b;
    double gain = 0;
    mark_neighbours(core, b, true, mark);
    for (guint k = 0; k < core->nodes[a].edges->len; k++) {
        int third = neighbour(core, a, k);
        if (third != b && mark[third])
            gain += (double)triangle_gain(core, edge, third);
    }
    mark_neighbours(core, b, false, mark);
    return gain;
}

static int compare_pairs(const void *left, const void *right) {
    const Pair *x = left, *y = right;
    if (x->gain != y->gain)
        return x->gain > y->gain ? -1 : 1;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->first - y->first;
}

/* Edges, and what those that lie alike have in common. */
typedef struct Kind {
    int edge;
    int a, b; /* the leaders of its ends */
} Kind;

static int compare_kinds(const void *left, const void *right) {
    const Kind *x = left, *y = right;
    if (x->a != y->a)
        return x->a - y->a;
    return x->b != y->b ? x->b - y->b : x->edge - y->edge;
}

/* All edges, those that lie alike side by side; without leaders none do. */
static GArray *list_edges(const MtfCore *core, const int *leader) {
    GArray *kinds = g_array_new(FALSE, FALSE, sizeof(Kind));
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        Kind kind = { e, leader != NULL ? leader[edge->a] : e,
                      leader != NULL ? leader[edge->b] : e };
        g_array_append_val(kinds, kind);
    }
    if (leader != NULL && kinds->len > 0)
        qsort(kinds->data, kinds->len, sizeof(Kind), compare_kinds);
    return kinds;
}

static int edge_at(const GArray *kinds, int i) {
    return g_array_index(kinds, Kind, i).edge;
}

/* How many edges from number `first` on lie alike. */
static int count_alike(const GArray *kinds, int first) {
    const Kind *kind = &g_array_index(kinds, Kind, first);
    int last = first + 1;
    while (last < (int)kinds->len && g_array_index(kinds, Kind, last).a == kind->a &&
           g_array_index(kinds, Kind, last).b == kind->b)
        last++;
    return last - first;
}

/* Pairs that are part of cycles, the best first; of alike ones, for which the one in the middle stands, those with
 * a gain. */
static GArray *find_pairs(const MtfCore *core, const GArray *kinds, bool alike, int most_values) {
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(Pair));
    g_autofree bool *mark = g_new0(bool, core->node_count + 1);
    for (int first = 0, count; first < (int)kinds->len; first += count) {
        count = count_alike(kinds, first);
        int index = edge_at(kinds, first + count / 2);
        const MtfCoreEdge *edge = mtf_core_edge(core, index);
        Pair pair = { .first = first, .count = count, .values = count_possible(core, edge) };
        int cycles = pair.values <= most_values ? count_cycles(core, edge, mark) : 0;
        if (cycles == 0)
            continue;
        pair.gain = gain_of(core, edge, mark) /
                    sqrt(fmax(LEAST_GROWTH, growth_of(core, index, pair.values)));
        pair.score = (double)cycles / MAX(1, pair.values);
        if (!alike || pair.gain > 0)
            g_array_append_val(pairs, pair);
    }
    if (pairs->len > 0)
        qsort(pairs->data, pairs->len, sizeof(Pair), compare_pairs);
    return pairs;
}

/* The leader's values are repeated for each that the follower may have beside them, after which
 * they determine it. */
static void join(MtfCore *core, int index) {
    const MtfCoreEdge *edge = mtf_core_edge(core, index);
    int leader = edge->a, follower = edge->b, count = 0, values = count_possible(core, edge);
    int columns = core->nodes[follower].values;
    g_autofree int16_t *of_leader = g_new(int16_t, values);
    g_autofree int16_t *of_follower = g_new(int16_t, values);
    for (int p = 0; p < core->nodes[leader].values; p++)
        for (int q = 0; q < columns; q++) {
            if (edge->cost[p * columns + q] >= MTF_CORE_IMPOSSIBLE)
                continue;
            of_leader[count] = (int16_t)p;
            of_follower[count++] = (int16_t)q;
        }
    mtf_certify_join(core, leader, follower, of_leader, of_follower, count);
    MtfCertificate *certificate = g_steal_pointer(&core->certificate); /* one step of two */
    mtf_core_keep_listed(core, leader, of_leader, count);
    mtf_core_contract(core, leader, follower, of_follower);
    core->certificate = certificate;
}

typedef struct Joining {
    MtfCore *core;
    const GArray *kinds;
    bool *joined; /* nodes */
    int most_values;
} Joining;

/* Marks an edge's ends as joined, where neither is yet. Returns what that adds; INFINITY: it is not to be. */
static double mark(const Joining *joining, int index) {
    const MtfCoreEdge *edge = mtf_core_edge(joining->core, index);
    if (edge->a < 0 || joining->joined[edge->a] || joining->joined[edge->b])
        return INFINITY;
    int values = count_possible(joining->core, edge);
    if (values == 0 || values > joining->most_values)
        return INFINITY;
    joining->joined[edge->a] = joining->joined[edge->b] = true;
    return growth_of(joining->core, index, values);
}

/* The same of all edges of a pair, while that is at most `room`. */
static double mark_all(const Joining *joining, const Pair *pair, double room) {
    double growth = 0;
    int k = 0;
    for (; k < pair->count && growth <= room; k++) {
        double more = mark(joining, edge_at(joining->kinds, pair->first + k));
        growth += more;
        if (isinf(more))
            break;
    }
    if (growth <= room)
        return growth;
    while (--k >= 0) {
        const MtfCoreEdge *edge =
            mtf_core_edge(joining->core, edge_at(joining->kinds, pair->first + k));
        joining->joined[edge->a] = joining->joined[edge->b] = false;
    }
    return INFINITY;
}

int mtf_core_pair_nodes(MtfCore *core, const int *leader, double most_entries, int most_values) {
    g_autoptr(GArray) kinds = list_edges(core, leader);
    g_autoptr(GArray) pairs = find_pairs(core, kinds, leader != NULL, most_values);
    g_autofree bool *joined = g_new0(bool, core->node_count + 1);
    Joining joining = { core, kinds, joined, most_values };
    double room = most_entries - (double)mtf_core_size(core).entries;
    int count = 0;
    for (guint i = 0; i < pairs->len; i++) {
        const Pair *pair = &g_array_index(pairs, Pair, i);
        double growth = mark_all(&joining, pair, room);
        if (isinf(growth))
            continue;
        room -= growth;
        for (int k = 0; k < pair->count; k++)
            join(core, edge_at(kinds, pair->first + k));
        count += pair->count;
    }
    mtf_shared_forget(core->shared);
    return count;
}
