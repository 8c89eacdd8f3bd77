// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/elimination/elimination_tree.h"

#include "analyzer/solver/reduce/core_values.h"

#include <math.h>
#include <string.h>

#define MOST_NODES 2000

/* The graph while its nodes go. */
typedef struct Graph {
    const MtfCore *core;
    int count;
    int *node;          /* [count] of the core */
    guint8 *near;       /* [count][count] neighbours */
    GArray **others;    /* [count] int, the neighbours in a list */
    bool *gone, *stale; /* stale: its fill is to be counted again */
    int *fill;          /* edges that its neighbours lack */
} Graph;

static bool are_near(const Graph *graph, int a, int b) {
    return graph->near[(gsize)a * (gsize)graph->count + (gsize)b] != 0;
}

static void make_near(Graph *graph, int a, int b) {
    if (are_near(graph, a, b))
        return;
    graph->near[(gsize)a * (gsize)graph->count + (gsize)b] = 1;
    graph->near[(gsize)b * (gsize)graph->count + (gsize)a] = 1;
    g_array_append_val(graph->others[a], b);
    g_array_append_val(graph->others[b], a);
}

static void graph_init(Graph *graph, const MtfCore *core, int count) {
    gsize size = (gsize)count + 1;
    *graph = (Graph){ .core = core, .count = count };
    graph->node = g_new(int, size);
    graph->near = g_new0(guint8, size * size);
    graph->others = g_new0(GArray *, size);
    graph->gone = g_new0(bool, size);
    graph->stale = g_new0(bool, size);
    graph->fill = g_new0(int, size);
    g_autofree int *spot = g_new0(int, core->node_count + 1);
    int at = 0;
    for (int v = 0; v < core->node_count; v++) {
        if (!core->nodes[v].alive)
            continue;
        graph->others[at] = g_array_new(FALSE, FALSE, sizeof(int));
        graph->stale[at] = true;
        graph->node[at] = v;
        spot[v] = at++;
    }
    for (int e = -1; mtf_core_next_edge(core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(core, e);
        make_near(graph, spot[edge->a], spot[edge->b]);
    }
}

static void graph_clear(Graph *graph) {
    for (int i = 0; i < graph->count; i++)
        g_array_unref(graph->others[i]);
    g_free(graph->node);
    g_free(graph->near);
    g_free(graph->others);
    g_free(graph->gone);
    g_free(graph->stale);
    g_free(graph->fill);
}

static int other_at(const Graph *graph, int i, guint k) {
    return g_array_index(graph->others[i], int, k);
}

static int count_fill(const Graph *graph, int i) {
    int fill = 0;
    for (guint k = 0; k < graph->others[i]->len; k++)
        for (guint l = 0; l < k; l++)
            fill += !are_near(graph, other_at(graph, i, k), other_at(graph, i, l));
    return fill;
}

/* Logarithm of how many choices of values a node and its neighbours have. */
static double size_of(const Graph *graph, int i) {
    double size = log(graph->core->nodes[graph->node[i]].values);
    for (guint k = 0; k < graph->others[i]->len; k++)
        size += log(graph->core->nodes[graph->node[other_at(graph, i, k)]].values);
    return size;
}

/* The next to go. */
static int choose_next(Graph *graph) {
    int best = -1;
    double least = 0;
    for (int i = 0; i < graph->count; i++) {
        if (graph->gone[i])
            continue;
        if (graph->stale[i])
            graph->fill[i] = count_fill(graph, i);
        graph->stale[i] = false;
        if (best >= 0 && graph->fill[i] > graph->fill[best])
            continue;
        double size = size_of(graph, i);
        if (best >= 0 && graph->fill[i] == graph->fill[best] && size >= least)
            continue;
        best = i;
        least = size;
    }
    return best;
}

static void forget(GArray *list, int i) {
    for (guint k = 0; k < list->len; k++)
        if (g_array_index(list, int, k) == i) {
            g_array_remove_index_fast(list, k);
            return;
        }
}

/* Its neighbours become neighbours of one another; all that see them are to be counted again. */
static void eliminate(Graph *graph, int i) {
    const GArray *others = graph->others[i];
    graph->gone[i] = true;
    for (guint k = 0; k < others->len; k++) {
        int a = other_at(graph, i, k);
        forget(graph->others[a], i);
        for (guint l = 0; l < k; l++)
            make_near(graph, a, other_at(graph, i, l));
    }
    for (guint k = 0; k < others->len; k++) {
        int a = other_at(graph, i, k);
        graph->stale[a] = true;
        for (guint l = 0; l < graph->others[a]->len; l++)
            graph->stale[other_at(graph, a, l)] = true;
    }
}

/* ---- the tree ---- */

static int compare_positions(gconstpointer left, gconstpointer right, gpointer positions) {
    const int *position = positions;
    return position[*(const int *)right] - position[*(const int *)left];
}

/* The bucket that takes what another one leaves: of the first node of its scope to go, the next
 * bucket where the scope is empty. */
static int parent_of(const MtfEliminationTree *tree, int index) {
    const GArray *scope = tree->buckets[index].scope;
    if (scope->len > 0)
        return tree->position[g_array_index(scope, int, scope->len - 1)];
    return index + 1 < tree->count ? index + 1 : -1;
}

static void link_buckets(MtfEliminationTree *tree) {
    for (int i = 0; i < tree->count; i++) {
        MtfBucket *bucket = &tree->buckets[i];
        g_array_sort_with_data(bucket->scope, compare_positions, tree->position);
        bucket->parent = parent_of(tree, i);
        if (bucket->parent >= 0)
            g_array_append_val(tree->buckets[bucket->parent].children, i);
    }
}

/* Takes the next node; false where its scope is too wide. */
static bool add_bucket(MtfEliminationTree *tree, Graph *graph, int index, int most_width) {
    int next = choose_next(graph);
    MtfBucket *bucket = &tree->buckets[index];
    if (graph->others[next]->len > (guint)most_width)
        return false;
    bucket->node = graph->node[next];
    tree->position[bucket->node] = index;
    for (guint k = 0; k < graph->others[next]->len; k++)
        g_array_append_val(bucket->scope, graph->node[other_at(graph, next, k)]);
    eliminate(graph, next);
    return true;
}

static MtfEliminationTree *new_tree(const MtfCore *core, int count) {
    MtfEliminationTree *tree = g_new0(MtfEliminationTree, 1);
    tree->count = count;
    tree->buckets = g_new0(MtfBucket, count + 1);
    tree->position = g_new(int, core->node_count + 1);
    for (int v = 0; v < core->node_count; v++)
        tree->position[v] = -1;
    for (int i = 0; i < count; i++) {
        tree->buckets[i].scope = g_array_new(FALSE, FALSE, sizeof(int));
        tree->buckets[i].children = g_array_new(FALSE, FALSE, sizeof(int));
    }
    return tree;
}

MtfEliminationTree *mtf_elimination_tree_new(const MtfCore *core, int most_width) {
    int count = mtf_core_size(core).nodes;
    if (count > MOST_NODES)
        return NULL;
    g_autoptr(MtfEliminationTree) tree = new_tree(core, count);
    Graph graph;
    graph_init(&graph, core, count);
    bool fits = true;
    for (int i = 0; i < count && fits; i++)
        fits = add_bucket(tree, &graph, i, most_width);
    graph_clear(&graph);
    if (!fits)
        return NULL;
    link_buckets(tree);
    return g_steal_pointer(&tree);
}

void mtf_elimination_tree_free(MtfEliminationTree *tree) {
    if (tree == NULL)
        return;
    for (int i = 0; i < tree->count; i++) {
        g_array_unref(tree->buckets[i].scope);
        g_array_unref(tree->buckets[i].children);
    }
    g_free(tree->buckets);
    g_free(tree->position);
    g_free(tree);
}
