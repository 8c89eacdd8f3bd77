// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/layer_ties.h"

#include "layouts/layers/layers.h"

/* ---- Places ------------------------------------------------------------------------------------ */

static MtfLayer layer_of(const MtfFreeProblem *problem, int node) {
    const MtfGraph *graph = mtf_free_problem_graph(problem);
    int operation = mtf_free_problem_node_operation(problem, node);
    return operation >= 0
               ? mtf_graph_operation(graph, operation)->layer
               : mtf_graph_tensor(graph, mtf_free_problem_node_tensor(problem, node))->layer;
}

/* ---- Ties -------------------------------------------------------------------------------------- */

typedef struct {
    const MtfFreeProblem *problem;
    MtfLayerTies *ties;
    GHashTable *layers; /* int64_t of block and iteration -> number + 1 */
    GHashTable *places; /* kind and name -> GArray of int: nodes that lead */
} Tying;

static int number_of(GHashTable *numbers, MtfLayer layer) {
    int64_t key = ((int64_t)layer.block << 32) + layer.iteration;
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, &key));
    if (number == 0) {
        number = g_hash_table_size(numbers) + 1;
        g_hash_table_insert(numbers, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(number));
    }
    return (int)number - 1;
}

/* The leaders of a place, none at first. */
static GArray *leaders_of(Tying *tying, int node, const char *place) {
    bool operation = mtf_free_problem_node_operation(tying->problem, node) >= 0;
    g_autofree char *key = g_strdup_printf("%c %s", operation ? 'o' : 't', place);
    GArray *leaders = g_hash_table_lookup(tying->places, key);
    if (leaders == NULL) {
        leaders = g_array_new(FALSE, FALSE, sizeof(int));
        g_hash_table_insert(tying->places, g_steal_pointer(&key), leaders);
    }
    return leaders;
}

static int find_leader(Tying *tying, int node, const char *place) {
    GArray *leaders = leaders_of(tying, node, place);
    for (guint i = 0; i < leaders->len; i++) {
        int leader = g_array_index(leaders, int, i);
        if (mtf_free_problem_nodes_alike(tying->problem, leader, node))
            return leader;
    }
    g_array_append_val(leaders, node);
    return node;
}

static void tie_nodes(Tying *tying) {
    const MtfGraph *graph = mtf_free_problem_graph(tying->problem);
    for (int v = 0; v < tying->ties->nodes; v++) {
        MtfLayer layer = layer_of(tying->problem, v);
        const char *name = mtf_free_problem_node_name(tying->problem, v);
        g_autofree char *place = mtf_layer_star(graph, name, layer);
        tying->ties->layer[v] = layer.block > 0 ? number_of(tying->layers, layer) : -1;
        tying->ties->leader[v] = layer.block > 0 ? find_leader(tying, v, place) : v;
    }
}

MtfLayerTies *mtf_layer_ties_new(const MtfFreeProblem *problem) {
    int nodes = mtf_layout_problem_node_count(mtf_free_problem_get(problem));
    MtfLayerTies *ties = g_new0(MtfLayerTies, 1);
    *ties = (MtfLayerTies){ .nodes = nodes,
                            .leader = g_new(int, nodes + 1),
                            .layer = g_new(int, nodes + 1) };
    g_autoptr(GHashTable) layers = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    g_autoptr(GHashTable) places =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
    Tying tying = { problem, ties, layers, places };
    tie_nodes(&tying);
    ties->layers = (int)g_hash_table_size(layers);
    bool tied = false;
    for (int v = 0; v < nodes; v++)
        tied |= ties->leader[v] != v;
    if (!tied)
        g_clear_pointer(&ties, mtf_layer_ties_free);
    return ties;
}

void mtf_layer_ties_free(MtfLayerTies *ties) {
    if (ties == NULL)
        return;
    g_free(ties->leader);
    g_free(ties->layer);
    g_free(ties);
}

/* ---- Differences ------------------------------------------------------------------------------- */

/* The nodes of each layer (GArray of int), in order. */
static GPtrArray *nodes_by_layer(const MtfLayerTies *ties) {
    GPtrArray *lists = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (int i = 0; i < ties->layers; i++)
        g_ptr_array_add(lists, g_array_new(FALSE, FALSE, sizeof(int)));
    for (int v = 0; v < ties->nodes; v++)
        if (ties->layer[v] >= 0)
            g_array_append_val((GArray *)g_ptr_array_index(lists, ties->layer[v]), v);
    return lists;
}

/* Whether a layer is laid out as another whose choices stand by leader in `known` (-1: it has none);
 * `*common` says whether they have a place in common at all. */
static bool matches(const MtfLayerTies *ties, const int *choice, const GArray *layer,
                    const int *known, bool *common) {
    *common = false;
    for (guint i = 0; i < layer->len; i++) {
        int v = g_array_index(layer, int, i), other = known[ties->leader[v]];
        *common |= other >= 0;
        if (other >= 0 && other != choice[v])
            return false;
    }
    return *common;
}

static void learn(const MtfLayerTies *ties, const int *choice, const GArray *layer, int *known) {
    for (guint i = 0; i < layer->len; i++) {
        int v = g_array_index(layer, int, i);
        known[ties->leader[v]] = choice[v];
    }
}

/* Each layer is compared with the ways found before; one that has nothing in common with any begins
 * another block. */
int mtf_layer_ties_differences(const MtfLayerTies *ties, const int *choice) {
    g_autoptr(GPtrArray) layers = nodes_by_layer(ties);
    g_autoptr(GPtrArray) ways = g_ptr_array_new_with_free_func(g_free); /* int * */
    int blocks = 0;
    for (int i = 0; i < ties->layers; i++) {
        const GArray *layer = g_ptr_array_index(layers, i);
        bool found = false, related = false;
        for (guint w = 0; w < ways->len && !found; w++) {
            bool common;
            found = matches(ties, choice, layer, g_ptr_array_index(ways, w), &common);
            related |= common;
            if (found)
                learn(ties, choice, layer, g_ptr_array_index(ways, w));
        }
        if (found)
            continue;
        int *way = g_new(int, ties->nodes + 1);
        for (int v = 0; v < ties->nodes; v++)
            way[v] = -1;
        learn(ties, choice, layer, way);
        g_ptr_array_add(ways, way);
        blocks += !related;
    }
    return (int)ways->len - blocks;
}
