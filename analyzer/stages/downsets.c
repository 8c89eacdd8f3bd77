// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/downsets.h"

#include <stdlib.h>
#include <string.h>

#define ORDERS 16 /* of the nodes, where there are too many downsets */

/* A family while it grows: sets of `words` words in one array, and a table that finds them. */
typedef struct {
    const MtfStageGraph *graph;
    int nodes, words, most;
    GArray *bits;      /* of guint64 */
    GHashTable *known; /* of Key */
} Growth;

typedef struct {
    int words;
    guint64 bits[];
} Key;

static guint hash_key(gconstpointer data) {
    const Key *key = data;
    guint64 hash = G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    for (int w = 0; w < key->words; w++)
        hash = (hash ^ key->bits[w]) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9), hash ^= hash >> 29;
    return (guint)(hash ^ (hash >> 32));
}

static gboolean equal_keys(gconstpointer a, gconstpointer b) {
    const Key *x = a, *y = b;
    return memcmp(x->bits, y->bits, (gsize)x->words * sizeof *x->bits) == 0;
}

static int count_of(const Growth *growth) {
    return (int)(growth->bits->len / (guint)growth->words);
}

static guint64 *set_at(const Growth *growth, int d) {
    return &g_array_index(growth->bits, guint64, (gsize)d * (gsize)growth->words);
}

static bool has_node(const guint64 *set, int node) {
    return (set[node / 64] >> (node % 64) & 1) != 0;
}

/* Keeps a set that is new; false when the family is full. */
static bool keep_set(Growth *growth, const guint64 *set) {
    gsize bytes = (gsize)growth->words * sizeof *set;
    Key *key = g_malloc(sizeof *key + bytes);
    key->words = growth->words;
    memcpy(key->bits, set, bytes);
    if (g_hash_table_contains(growth->known, key)) {
        g_free(key);
        return true;
    }
    if (count_of(growth) == growth->most) {
        g_free(key);
        return false;
    }
    g_hash_table_add(growth->known, key);
    g_array_append_vals(growth->bits, set, (guint)growth->words);
    return true;
}

static bool is_ready(const Growth *growth, const guint64 *set, int node) {
    const GArray *entries = mtf_stage_graph_node(growth->graph, node)->entries;
    for (guint i = 0; i < entries->len; i++) {
        int edge = g_array_index(entries, int, i);
        if (!has_node(set, mtf_stage_graph_edge(growth->graph, edge)->from))
            return false;
    }
    return true;
}

/* Every downset but the empty one is a smaller one with a node more. */
static bool grow_all(Growth *growth) {
    g_autofree guint64 *set = g_new0(guint64, growth->words);
    bool room = keep_set(growth, set);
    for (int d = 0; room && d < count_of(growth); d++) {
        memcpy(set, set_at(growth, d), (gsize)growth->words * sizeof *set);
        for (int v = 0; room && v < growth->nodes; v++) {
            if (has_node(set, v) || !is_ready(growth, set, v))
                continue;
            set[v / 64] |= UINT64_C(1) << (v % 64);
            room = keep_set(growth, set);
            set[v / 64] &= ~(UINT64_C(1) << (v % 64));
        }
    }
    return room;
}

/* What a kind of order prefers among the nodes that are ready: the least of these numbers. Depth
 * first finishes a branch before the next one, breadth first advances all branches alike, and both
 * take branches forward or backward; further orders mix depth with a hash of the node. */
static guint64 preference(int kind, int node, int age, int depth) {
    guint64 hash =
        ((guint64)node + 1) * (guint64)(2 * kind + 1) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    guint64 number = kind & 1 ? (guint64)(MTF_STAGE_NODES_MAX - node) : (guint64)node;
    switch (kind) {
    case 0:
    case 1:
        return (guint64)(MTF_STAGE_NODES_MAX - age) << 32 | number;
    case 2:
    case 3:
        return (guint64)depth << 32 | number;
    default:
        return kind & 1 ? (guint64)(depth / kind) << 32 | hash >> 40 : hash >> 8;
    }
}

typedef struct {
    int kind;
    int *missing, *age, *depth;
    guint64 *set;
} Walk;

static int next_of(const Growth *growth, const Walk *walk) {
    int best = -1;
    guint64 least = 0;
    for (int v = 0; v < growth->nodes; v++) {
        if (walk->missing[v] != 0 || has_node(walk->set, v))
            continue;
        guint64 value = preference(walk->kind, v, walk->age[v], walk->depth[v]);
        if (best < 0 || value < least) {
            best = v;
            least = value;
        }
    }
    return best;
}

static void take_node(const Growth *growth, Walk *walk, int node, int step) {
    const GArray *exits = mtf_stage_graph_node(growth->graph, node)->exits;
    walk->set[node / 64] |= UINT64_C(1) << (node % 64);
    for (guint i = 0; i < exits->len; i++) {
        int to = mtf_stage_graph_edge(growth->graph, g_array_index(exits, int, i))->to;
        walk->missing[to]--;
        walk->age[to] = step;
        walk->depth[to] = MAX(walk->depth[to], walk->depth[node] + 1);
    }
}

/* Keeps the prefixes of one order. */
static bool grow_along(Growth *growth, int kind) {
    g_autofree int *missing = g_new0(int, growth->nodes), *age = g_new0(int, growth->nodes);
    g_autofree int *depth = g_new0(int, growth->nodes);
    g_autofree guint64 *set = g_new0(guint64, growth->words);
    Walk walk = { kind, missing, age, depth, set };
    for (int v = 0; v < growth->nodes; v++)
        missing[v] = (int)mtf_stage_graph_node(growth->graph, v)->entries->len;
    bool room = keep_set(growth, set);
    for (int step = 1; room && step <= growth->nodes; step++) {
        take_node(growth, &walk, next_of(growth, &walk), step);
        room = keep_set(growth, set);
    }
    return room;
}

static void forget_all(Growth *growth) {
    g_array_set_size(growth->bits, 0);
    g_hash_table_remove_all(growth->known);
}

static int size_of(const guint64 *set, int words) {
    int size = 0;
    for (int w = 0; w < words; w++)
        size += __builtin_popcountll(set[w]);
    return size;
}

typedef struct {
    int size, place;
} Rank;

static int compare_ranks(const void *a, const void *b) {
    const Rank *x = a, *y = b;
    return x->size != y->size ? x->size - y->size : x->place - y->place;
}

static guint64 *sorted_bits(const Growth *growth) {
    int count = count_of(growth);
    g_autofree Rank *ranks = g_new(Rank, count);
    guint64 *bits = g_new(guint64, (gsize)count * (gsize)growth->words);
    for (int d = 0; d < count; d++)
        ranks[d] = (Rank){ size_of(set_at(growth, d), growth->words), d };
    qsort(ranks, (gsize)count, sizeof *ranks, compare_ranks);
    for (int d = 0; d < count; d++)
        memcpy(&bits[(gsize)d * (gsize)growth->words], set_at(growth, ranks[d].place),
               (gsize)growth->words * sizeof *bits);
    return bits;
}

MtfDownsets *mtf_downsets_new(const MtfStageGraph *graph, int most) {
    int nodes = mtf_stage_graph_size(graph);
    Growth growth = { .graph = graph, .nodes = nodes, .words = MAX(1, (nodes + 63) / 64) };
    growth.most = MAX(most, nodes + 1);
    growth.bits = g_array_new(FALSE, FALSE, sizeof(guint64));
    growth.known = g_hash_table_new_full(hash_key, equal_keys, g_free, NULL);
    bool complete = grow_all(&growth);
    if (!complete) {
        forget_all(&growth);
        for (int kind = 0, room = 1; kind < ORDERS && room; kind++)
            room = grow_along(&growth, kind);
    }
    MtfDownsets *downsets = g_new(MtfDownsets, 1);
    *downsets =
        (MtfDownsets){ nodes, growth.words, count_of(&growth), sorted_bits(&growth), complete };
    g_array_unref(growth.bits);
    g_hash_table_unref(growth.known);
    return downsets;
}

void mtf_downsets_free(MtfDownsets *downsets) {
    if (downsets == NULL)
        return;
    g_free(downsets->bits);
    g_free(downsets);
}

bool mtf_downsets_nested(const MtfDownsets *downsets, int a, int b) {
    const guint64 *x = &downsets->bits[(gsize)a * (gsize)downsets->words];
    const guint64 *y = &downsets->bits[(gsize)b * (gsize)downsets->words];
    for (int w = 0; w < downsets->words; w++)
        if ((x[w] & ~y[w]) != 0)
            return false;
    return true;
}

bool mtf_downsets_has(const MtfDownsets *downsets, int d, int node) {
    return has_node(&downsets->bits[(gsize)d * (gsize)downsets->words], node);
}
