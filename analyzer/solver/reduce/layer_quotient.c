// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/reduce/layer_quotient.h"

#include <stdlib.h>
#include <string.h>

#define COLOUR_ROUNDS 3 /* how far a colour sees */
#define MAX_SEEDS 24    /* guesses tried */
#define NO_NODE (-1)
#define NO_LAYER INT_MIN

typedef struct Search {
    const MtfCore *core;
    guint64 *colour;
    int *next;  /* the same place of the next layer, itself for what all layers share, or NO_NODE */
    int *back;  /* the other way */
    int *layer; /* NO_LAYER outside the repeated part */
    int first, last; /* the layers that every place has */
    int fewest;      /* layers that are looked for */
} Search;

/* ---- colours ---- */

static guint64 mix(guint64 hash, guint64 word) {
    hash = (hash ^ word) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    return hash ^ hash >> 31;
}

/* Blocks are numbered as they turn up, so that colours depend on no address. */
static guint64 number_of(GHashTable *numbers, const void *block) {
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, block));
    if (number == 0) {
        number = g_hash_table_size(numbers) + 1;
        g_hash_table_insert(numbers, (gpointer)block, GUINT_TO_POINTER(number));
    }
    return number;
}

static const MtfCoreEdge *edge_of(const MtfCore *core, int node, guint k) {
    return mtf_core_edge(core, g_array_index(core->nodes[node].edges, int, k));
}

static guint64 own_colour(const MtfCoreNode *node, GHashTable *numbers) {
    guint64 hash = mix((guint64)node->values, number_of(numbers, node->cost));
    for (guint k = 0; k < node->pieces->len; k++)
        hash = mix(hash, number_of(numbers, g_array_index(node->pieces, MtfCorePiece, k).usage));
    return hash;
}

static guint64 seen_colour(const Search *search, int node, GHashTable *numbers) {
    guint64 sum = 0;
    for (guint k = 0; k < search->core->nodes[node].edges->len; k++) {
        const MtfCoreEdge *edge = edge_of(search->core, node, k);
        guint64 side = number_of(numbers, edge->cost) * 2 + (edge->a == node);
        sum += mix(side, search->colour[mtf_core_other_end(edge, node)]);
    }
    return mix(search->colour[node], sum);
}

static void find_colours(Search *search) {
    const MtfCore *core = search->core;
    g_autoptr(GHashTable) numbers = g_hash_table_new(NULL, NULL);
    g_autofree guint64 *seen = g_new0(guint64, core->node_count + 1);
    for (int v = 0; v < core->node_count; v++)
        if (core->nodes[v].alive)
            search->colour[v] = own_colour(&core->nodes[v], numbers);
    for (int round = 0; round < COLOUR_ROUNDS; round++) {
        for (int v = 0; v < core->node_count; v++)
            if (core->nodes[v].alive)
                seen[v] = seen_colour(search, v, numbers);
        memcpy(search->colour, seen, (gsize)core->node_count * sizeof *seen);
    }
}

/* ---- from one layer to the next ---- */

/* An edge as a node sees it; the same in another layer when all but `other` agree. */
typedef struct Link {
    const int64_t *cost;
    bool first;
    guint64 colour;
    int other;
} Link;

static int compare_kinds(const Link *a, const Link *b) {
    if (a->colour != b->colour)
        return a->colour < b->colour ? -1 : 1;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return a->first - b->first;
}

static int compare_links(const void *left, const void *right) {
    const Link *a = left, *b = right;
    int kinds = compare_kinds(a, b);
    return kinds != 0 ? kinds : a->other - b->other;
}

static Link *links_of(const Search *search, int node, guint *count) {
    *count = search->core->nodes[node].edges->len;
    Link *links = g_new(Link, *count + 1);
    for (guint k = 0; k < *count; k++) {
        const MtfCoreEdge *edge = edge_of(search->core, node, k);
        int other = mtf_core_other_end(edge, node);
        links[k] = (Link){ edge->cost, edge->a == node, search->colour[other], other };
    }
    qsort(links, *count, sizeof *links, compare_links);
    return links;
}

/* Notes that `after` follows `node`; false when that contradicts what is known. */
static bool follow(Search *search, int node, int after, GArray *queue) {
    if (search->next[node] == after)
        return true;
    if (search->next[node] != NO_NODE || search->back[after] != NO_NODE)
        return false;
    search->next[node] = after;
    search->back[after] = node;
    if (node != after)
        g_array_append_val(queue, node);
    return true;
}

/* Equal edges lead to places that follow one another, too. */
static bool follow_links(Search *search, int node, GArray *queue) {
    guint count, others;
    g_autofree Link *links = links_of(search, node, &count);
    g_autofree Link *after = links_of(search, search->next[node], &others);
    for (guint i = 0, j = 0; i < count && j < others;) {
        int order = compare_kinds(&links[i], &after[j]);
        if (order == 0 && !follow(search, links[i].other, after[j].other, queue))
            return false;
        i += order <= 0;
        j += order >= 0;
    }
    return true;
}

static bool grow(Search *search, int node, int after) {
    g_autoptr(GArray) queue = g_array_new(FALSE, FALSE, sizeof(int));
    for (int v = 0; v < search->core->node_count; v++)
        search->next[v] = search->back[v] = NO_NODE;
    follow(search, node, after, queue);
    for (guint i = 0; i < queue->len; i++)
        if (!follow_links(search, g_array_index(queue, int, i), queue))
            return false;
    return true;
}

/* ---- layers ---- */

static bool is_shared(const Search *search, int node) {
    return search->next[node] == node;
}

/* Numbers the places before and after a node, and narrows the layers that every place has. Places
 * of few layers, and those that follow one another in a ring, are no part of the repetition. */
static void number_place(Search *search, int node, int layer) {
    int first = node, last = node, low = layer, high = layer;
    while (search->back[first] != NO_NODE) {
        first = search->back[first];
        low--;
        if (first == node)
            return;
    }
    while (search->next[last] != NO_NODE) {
        last = search->next[last];
        high++;
    }
    if (high - low + 1 < search->fewest)
        return;
    for (int v = first, at = low; v != NO_NODE; v = search->next[v])
        search->layer[v] = at++;
    search->first = MAX(search->first, low);
    search->last = MIN(search->last, high);
}

static bool may_number(const Search *search, int node) {
    return search->layer[node] == NO_LAYER && !is_shared(search, node) &&
           (search->next[node] != NO_NODE || search->back[node] != NO_NODE);
}

/* Starting from the seed, a node lies in the layer of the neighbour it was reached from. */
static void number_layers(Search *search, int seed) {
    const MtfCore *core = search->core;
    g_autoptr(GArray) queue = g_array_new(FALSE, FALSE, sizeof(int));
    g_autofree bool *queued = g_new0(bool, core->node_count + 1);
    for (int v = 0; v < core->node_count; v++)
        search->layer[v] = NO_LAYER;
    search->first = INT_MIN;
    search->last = INT_MAX;
    number_place(search, seed, 0);
    if (search->layer[seed] == NO_LAYER)
        return;
    g_array_append_val(queue, seed);
    queued[seed] = true;
    for (guint i = 0; i < queue->len; i++) {
        int node = g_array_index(queue, int, i);
        for (guint k = 0; k < core->nodes[node].edges->len; k++) {
            int other = mtf_core_other_end(edge_of(core, node, k), node);
            if (may_number(search, other))
                number_place(search, other, search->layer[node]);
            if (search->layer[other] == NO_LAYER || queued[other])
                continue;
            queued[other] = true;
            g_array_append_val(queue, other);
        }
    }
}

/* The most layers that an edge reaches over; -1 when a place inside the layers first ... last has a
 * neighbour that is neither of a layer nor shared by all. */
static int find_reach(const Search *search) {
    int reach = 0;
    for (int e = -1; mtf_core_next_edge(search->core, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(search->core, e);
        int a = search->layer[edge->a], b = search->layer[edge->b];
        bool inside =
            (a > search->first && a < search->last) || (b > search->first && b < search->last);
        bool both = a != NO_LAYER && b != NO_LAYER;
        if (both)
            reach = MAX(reach, abs(a - b));
        else if (inside && !is_shared(search, a == NO_LAYER ? edge->a : edge->b))
            return -1;
    }
    return reach;
}

/* Nodes to start from: two neighbours of each colour that has as many nodes as the layer repeats, the number
 * that most nodes have of their colour. Where memory binds in a few of many layers, most colours are of those few.
 */
static GArray *find_seeds(const Search *search) {
    const MtfCore *core = search->core;
    g_autoptr(GHashTable) groups =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, (GDestroyNotify)g_array_unref);
    g_autofree int *popular = g_new0(int, core->node_count + 1);
    for (int v = 0; v < core->node_count; v++) {
        if (!core->nodes[v].alive)
            continue;
        GArray *group = g_hash_table_lookup(groups, &search->colour[v]);
        if (group == NULL) {
            group = g_array_new(FALSE, FALSE, sizeof(int));
            g_hash_table_insert(groups, &search->colour[v], group);
        }
        popular[group->len]--;
        g_array_append_val(group, v);
        popular[group->len]++;
    }
    int size = 0;
    for (int n = search->fewest; n <= core->node_count; n++)
        if ((int64_t)popular[n] * n > (int64_t)popular[size] * size)
            size = n;
    GArray *seeds = g_array_new(FALSE, FALSE, sizeof(int));
    for (int v = 0; size > 0 && v < core->node_count && seeds->len < 2 * MAX_SEEDS; v++) {
        const GArray *group =
            core->nodes[v].alive ? g_hash_table_lookup(groups, &search->colour[v]) : NULL;
        if (group != NULL && group->len == (guint)size && g_array_index(group, int, 0) == v)
            g_array_append_vals(seeds, &g_array_index(group, int, size / 2), 2);
    }
    return seeds;
}

/* Whether some guess gives layers; then `reach` is what edges reach over. */
static bool find_layers(Search *search, int *reach) {
    find_colours(search);
    g_autoptr(GArray) seeds = find_seeds(search);
    for (guint i = 0; i + 1 < seeds->len; i += 2) {
        int seed = g_array_index(seeds, int, i);
        if (!grow(search, seed, g_array_index(seeds, int, i + 1)))
            continue;
        number_layers(search, seed);
        *reach = find_reach(search);
        bool bounded = search->first > INT_MIN && search->last < INT_MAX;
        if (*reach >= 0 && bounded &&
            search->last - search->first + 1 >= search->fewest + 2 * *reach)
            return true;
    }
    return false;
}

/* ---- the quotient ---- */

typedef struct Cut {
    const Search *search;
    int after; /* the last layer kept on the left; it stands for those that go */
    int gone;  /* layers cut out */
    int *
        representative; /* for each node: itself, or where its layer goes the same place of that one */
} Cut;

static bool is_gone(const Cut *cut, int node) {
    int layer = cut->search->layer[node];
    return layer != NO_LAYER && layer > cut->after && layer <= cut->after + cut->gone;
}

/* Along each place once: to go back from every layer would take as many steps as there are layers squared. */
static void find_representatives(Cut *cut, int count) {
    for (int v = 0; v < count; v++)
        cut->representative[v] = v;
    for (int v = 0; v < count; v++) {
        if (cut->search->layer[v] != cut->after)
            continue;
        for (int u = cut->search->next[v]; u != NO_NODE && is_gone(cut, u);
             u = cut->search->next[u])
            cut->representative[u] = v;
    }
}

/* The same place `layers` layers before, which is none that goes; shared nodes are in all layers. */
static int shifted(const Cut *cut, int node, int layers) {
    const int *layer = cut->search->layer;
    if (layer[node] == NO_LAYER)
        return node;
    int from = cut->representative[node];
    for (layers -= layer[node] - layer[from]; layers > 0; layers--)
        from = cut->search->back[from];
    return from;
}

/* The two ends of the edge of the quotient that stands for an edge of the whole. */
static void represent_edge(const Cut *cut, const MtfCoreEdge *edge, int *a, int *b) {
    int high = MAX(cut->search->layer[edge->a], cut->search->layer[edge->b]);
    bool crosses = high > cut->after + cut->gone;
    *a = edge->a;
    *b = edge->b;
    if (!is_gone(cut, *a) && !is_gone(cut, *b))
        return;
    if (crosses) {
        *a = is_gone(cut, *a) ? shifted(cut, *a, cut->gone) : *a;
        *b = is_gone(cut, *b) ? shifted(cut, *b, cut->gone) : *b;
        return;
    }
    *a = shifted(cut, *a, high - cut->after);
    *b = shifted(cut, *b, high - cut->after);
}

static void quotient_nodes(MtfLayerQuotient *quotient, const Cut *cut) {
    const MtfCore *whole = quotient->whole;
    g_autofree bool *keep = g_new0(bool, whole->node_count + 1);
    for (int v = 0; v < whole->node_count; v++) {
        keep[v] = whole->nodes[v].alive && !is_gone(cut, v);
        quotient->node[v] = cut->representative[v];
        quotient->node_copies[quotient->node[v]]++;
    }
    quotient->core = mtf_core_excerpt(whole, keep);
}

static void quotient_edges(MtfLayerQuotient *quotient, const Cut *cut) {
    const MtfCore *whole = quotient->whole;
    for (guint e = 0; e < whole->edges->len; e++)
        quotient->edge[e] = -1;
    for (int e = -1; mtf_core_next_edge(whole, &e);) {
        const MtfCoreEdge *edge = mtf_core_edge(whole, e);
        int a, b;
        represent_edge(cut, edge, &a, &b);
        quotient->edge[e] = mtf_core_find_edge(quotient->core, a, b);
        if (quotient->edge[e] < 0)
            quotient->edge[e] = mtf_core_join(quotient->core, a, b, edge->cost);
    }
    quotient->edge_copies = g_new0(int, quotient->core->edges->len + 1);
    for (guint e = 0; e < whole->edges->len; e++)
        if (quotient->edge[e] >= 0)
            quotient->edge_copies[quotient->edge[e]]++;
}

static void list_copies(MtfLayerQuotient *quotient) {
    int count = quotient->whole->node_count;
    for (int v = 0; v < count; v++)
        quotient->first_copy[v + 1] = quotient->first_copy[v] + quotient->node_copies[v];
    g_autofree int *at = g_memdup2(quotient->first_copy, ((gsize)count + 1) * sizeof *at);
    for (int v = 0; v < count; v++)
        quotient->copies[at[quotient->node[v]]++] = v;
}

static MtfLayerQuotient *cut_out(const Search *search, int reach) {
    gsize nodes = (gsize)search->core->node_count + 1;
    int layers = search->last - search->first + 1, kept = 2 * reach + 2;
    g_autofree int *representative = g_new(int, nodes);
    Cut cut = { search, search->first + reach, layers - kept, representative };
    find_representatives(&cut, search->core->node_count);
    MtfLayerQuotient *quotient = g_new0(MtfLayerQuotient, 1);
    quotient->whole = search->core;
    quotient->node = g_new0(int, nodes);
    quotient->edge = g_new0(int, search->core->edges->len + 1);
    quotient->node_copies = g_new0(int, nodes);
    quotient->copies = g_new0(int, nodes);
    quotient->first_copy = g_new0(int, nodes + 1);
    quotient->layers = layers;
    quotient->kept = kept;
    quotient_nodes(quotient, &cut);
    quotient_edges(quotient, &cut);
    list_copies(quotient);
    return quotient;
}

/* The arrays of a search, freed by search_clear. */
static void search_init(Search *search, const MtfCore *core, int fewest) {
    gsize count = (gsize)core->node_count + 1;
    *search = (Search){ .core = core,
                        .colour = g_new0(guint64, count),
                        .next = g_new(int, count),
                        .back = g_new(int, count),
                        .layer = g_new(int, count),
                        .fewest = fewest };
}

static void search_clear(Search *search) {
    g_free(search->colour);
    g_free(search->next);
    g_free(search->back);
    g_free(search->layer);
}

MtfLayerQuotient *mtf_layer_quotient_new(const MtfCore *core) {
    Search search;
    int reach;
    search_init(&search, core, MTF_ALIKE_LAYERS);
    MtfLayerQuotient *quotient = find_layers(&search, &reach) ? cut_out(&search, reach) : NULL;
    search_clear(&search);
    return quotient;
}

int *mtf_layer_leaders(const MtfCore *core, int fewest) {
    Search search;
    int reach, *leader = NULL;
    search_init(&search, core, fewest);
    if (find_layers(&search, &reach)) {
        leader = g_new(int, core->node_count + 1);
        for (int v = 0; v < core->node_count; v++)
            leader[v] = v;
        for (int v = 0; v < core->node_count; v++)
            if (search.layer[v] != NO_LAYER && search.back[v] == NO_NODE)
                for (int u = search.next[v]; u != NO_NODE; u = search.next[u])
                    leader[u] = v;
    }
    search_clear(&search);
    return leader;
}

void mtf_layer_quotient_free(MtfLayerQuotient *quotient) {
    if (quotient == NULL)
        return;
    mtf_core_free(quotient->core);
    g_free(quotient->node);
    g_free(quotient->edge);
    g_free(quotient->node_copies);
    g_free(quotient->edge_copies);
    g_free(quotient->copies);
    g_free(quotient->first_copy);
    g_free(quotient);
}

void mtf_layer_quotient_expand(const MtfLayerQuotient *quotient, int *values) {
    for (int v = 0; v < quotient->whole->node_count; v++)
        values[v] = values[quotient->node[v]];
}

double mtf_layer_quotient_price(const MtfLayerQuotient *quotient, int node, guint k,
                                const double *prefix) {
    double sum = 0;
    for (int i = quotient->first_copy[node]; i < quotient->first_copy[node + 1]; i++) {
        const MtfCoreNode *copy = &quotient->whole->nodes[quotient->copies[i]];
        const MtfCorePiece *piece = &g_array_index(copy->pieces, MtfCorePiece, k);
        sum += prefix[piece->last] - prefix[piece->first];
    }
    return sum / quotient->node_copies[node];
}
