// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/bounds/node_pairs.h"

#include "analyzer/solver/reduce/core_certificate.h"
#include "analyzer/solver/reduce/core_values.h"

#include <stdlib.h>

typedef struct Pair {
    int edge;
    int values; /* possible pairs of values */
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

/* How many triangles and how many squares the edge is part of, a triangle counting for two. `mark`
 * is scratch, false everywhere before and after. */
static int count_cycles(const MtfCore *core, const MtfCoreEdge *edge, bool *mark) {
    int a = edge->a, b = edge->b, cycles = 0;
    for (guint k = 0; k < core->nodes[b].edges->len; k++)
        mark[neighbour(core, b, k)] = true;
    for (guint k = 0; k < core->nodes[a].edges->len; k++) {
        int x = neighbour(core, a, k);
        cycles += x != b && mark[x] ? 2 : 0;
        for (guint i = 0; x != b && i < core->nodes[x].edges->len; i++) {
            int y = neighbour(core, x, i);
            cycles += y != a && y != b && mark[y];
        }
    }
    for (guint k = 0; k < core->nodes[b].edges->len; k++)
        mark[neighbour(core, b, k)] = false;
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

/* What all matrices grow by when the pair is joined, at most. */
static double growth_of(const MtfCore *core, const Pair *pair) {
    const MtfCoreEdge *edge = mtf_core_edge(core, pair->edge);
    double of_a = entries_beside(core, edge->a, pair->edge);
    double of_b = entries_beside(core, edge->b, pair->edge);
    return pair->values *
               (of_a / core->nodes[edge->a].values + of_b / core->nodes[edge->b].values) -
           of_a - of_b;
}

static int compare_pairs(const void *left, const void *right) {
    const Pair *x = left, *y = right;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->edge - y->edge;
}

static GArray *find_pairs(const MtfCore *core, int most_values) {
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(Pair));
    g_autofree bool *mark = g_new0(bool, core->node_count + 1);
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        Pair pair = { .edge = (int)e, .values = count_possible(core, edge) };
        int cycles = pair.values <= most_values ? count_cycles(core, edge, mark) : 0;
        pair.score = (double)cycles / MAX(1, pair.values);
        if (cycles > 0)
            g_array_append_val(pairs, pair);
    }
    if (pairs->len > 0)
        qsort(pairs->data, pairs->len, sizeof(Pair), compare_pairs);
    return pairs;
}

/* The leader's values are repeated for each that the follower may have beside them, after which
 * they determine it. */
static void join(MtfCore *core, const Pair *pair) {
    const MtfCoreEdge *edge = mtf_core_edge(core, pair->edge);
    int leader = edge->a, follower = edge->b, count = 0;
    int columns = core->nodes[follower].values;
    g_autofree int16_t *of_leader = g_new(int16_t, pair->values);
    g_autofree int16_t *of_follower = g_new(int16_t, pair->values);
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

int mtf_core_pair_nodes(MtfCore *core, double most_entries, int most_values) {
    g_autoptr(GArray) pairs = find_pairs(core, most_values);
    g_autofree bool *joined = g_new0(bool, core->node_count + 1);
    double entries = (double)mtf_core_size(core).entries;
    int count = 0;
    for (guint i = 0; i < pairs->len; i++) {
        const Pair *pair = &g_array_index(pairs, Pair, i);
        const MtfCoreEdge *edge = mtf_core_edge(core, pair->edge);
        if (edge->a < 0 || joined[edge->a] || joined[edge->b] || pair->values == 0)
            continue;
        double growth = growth_of(core, pair);
        if (entries + growth > most_entries)
            continue;
        joined[edge->a] = joined[edge->b] = true;
        entries += growth;
        join(core, pair);
        count++;
    }
    mtf_shared_forget(core->shared);
    return count;
}
