// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/stage_price.h"

#include <math.h>
#include <stdlib.h>

/* Sums over the nodes of a downset, or of a stage in the ways that are fastest without a limit. */
typedef struct {
    double seconds, parameters, flight, fixed;
    double least_flight, least_fixed; /* the least of each over the ways */
    bool possible;                    /* every node has a way of the degree */
} Sums;

/* A node of a stage in one of its ways. */
typedef struct {
    int node, way;  /* way: its place among all ways of the node */
    double seconds; /* with the transfers over the edges that the stage cuts */
    double parameters, flight, fixed;
} Item;

struct MtfStagePricer {
    const MtfStageGraph *graph;
    const MtfDownsets *cuts;
    MtfStageMachine machine;
    GArray *degrees;   /* of int */
    bool plain;        /* one way a node and free edges: differences of sums over downsets */
    bool alike;        /* all ways of a node and degree hold the same parameters */
    Sums *of_downset;  /* plain */
    double *cut_bytes; /* by downset */
    GHashTable *sums;  /* pair and degree to Sums */
    GHashTable *known; /* span to seconds */
    GArray *items;     /* of Item: scratch, those of one node next to one another */
    GArray *starts;    /* of int: where a node's items begin, and the end */
    GArray *chosen;    /* of int: an item for each node */
};

typedef struct {
    gint64 pair;
    gint32 replicas, flight;
} SpanKey;

static guint hash_span(gconstpointer data) {
    const SpanKey *key = data;
    guint64 hash = (guint64)key->pair * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    hash ^= (guint64)(guint32)key->replicas << 32 | (guint32)key->flight;
    hash *= G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    return (guint)(hash >> 32);
}

static gboolean equal_spans(gconstpointer a, gconstpointer b) {
    const SpanKey *x = a, *y = b;
    return x->pair == y->pair && x->replicas == y->replicas && x->flight == y->flight;
}

static const MtfStageWay *way_at(const MtfStageNode *node, guint way) {
    return &g_array_index(node->ways, MtfStageWay, way);
}

static gint compare_ints(gconstpointer a, gconstpointer b) {
    return *(const int *)a - *(const int *)b;
}

static GArray *list_degrees(const MtfStageGraph *graph) {
    GArray *degrees = g_array_new(FALSE, FALSE, sizeof(int));
    for (int v = 0; v < mtf_stage_graph_size(graph); v++) {
        const MtfStageNode *node = mtf_stage_graph_node(graph, v);
        for (guint w = 0; w < node->ways->len; w++) {
            bool known = false;
            for (guint i = 0; i < degrees->len && !known; i++)
                known = g_array_index(degrees, int, i) == way_at(node, w)->degree;
            if (!known)
                g_array_append_val(degrees, way_at(node, w)->degree);
        }
    }
    g_array_sort(degrees, compare_ints);
    return degrees;
}

static bool is_plain(const MtfStageGraph *graph) {
    for (int v = 0; v < mtf_stage_graph_size(graph); v++) {
        const MtfStageNode *node = mtf_stage_graph_node(graph, v);
        if (node->ways->len != 1 || way_at(node, 0)->degree != 1 ||
            way_at(node, 0)->edge_bytes != NULL)
            return false;
    }
    for (guint e = 0; e < graph->edges->len; e++)
        if (mtf_stage_graph_edge(graph, (int)e)->bytes > 0)
            return false;
    return true;
}

static bool holds_alike(const MtfStageGraph *graph) {
    for (int v = 0; v < mtf_stage_graph_size(graph); v++) {
        const MtfStageNode *node = mtf_stage_graph_node(graph, v);
        for (guint w = 1; w < node->ways->len; w++) {
            const MtfStageWay *way = way_at(node, w), *before = way_at(node, w - 1);
            double more = way->parameter_bytes - before->parameter_bytes;
            if (way->degree == before->degree && (more < 0 || more > 0))
                return false;
        }
    }
    return true;
}

static void sum_downset(MtfStagePricer *pricer, int d) {
    Sums *sums = &pricer->of_downset[d];
    for (int v = 0; v < pricer->cuts->nodes; v++) {
        const MtfStageWay *way = way_at(mtf_stage_graph_node(pricer->graph, v), 0);
        if (!mtf_downsets_has(pricer->cuts, d, v))
            continue;
        sums->seconds += way->seconds;
        sums->parameters += way->parameter_bytes;
        sums->flight += way->flight_bytes;
        sums->fixed += way->fixed_bytes;
    }
}

/* A node's output crosses a cut once when a later stage reads it; bytes of edges cross each. */
static double bytes_over(const MtfStagePricer *pricer, int cut) {
    double bytes = 0;
    for (int v = 0; v < pricer->cuts->nodes; v++) {
        const MtfStageNode *node = mtf_stage_graph_node(pricer->graph, v);
        bool read = false;
        for (guint i = 0; i < node->exits->len && mtf_downsets_has(pricer->cuts, cut, v); i++) {
            const MtfStageEdge *edge =
                mtf_stage_graph_edge(pricer->graph, g_array_index(node->exits, int, i));
            if (mtf_downsets_has(pricer->cuts, cut, edge->to))
                continue;
            read = true;
            bytes += edge->bytes;
        }
        bytes += read ? node->output_bytes : 0;
    }
    return bytes;
}

MtfStagePricer *mtf_stage_pricer_new(const MtfStageGraph *graph, const MtfDownsets *cuts,
                                     const MtfStageMachine *machine) {
    MtfStagePricer *pricer = g_new0(MtfStagePricer, 1);
    pricer->graph = graph;
    pricer->cuts = cuts;
    pricer->machine = *machine;
    pricer->degrees = list_degrees(graph);
    pricer->plain = is_plain(graph);
    pricer->alike = holds_alike(graph);
    pricer->of_downset = g_new0(Sums, cuts->count);
    pricer->cut_bytes = g_new0(double, cuts->count);
    pricer->sums = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    pricer->known = g_hash_table_new_full(hash_span, equal_spans, g_free, g_free);
    pricer->items = g_array_new(FALSE, FALSE, sizeof(Item));
    pricer->starts = g_array_new(FALSE, FALSE, sizeof(int));
    pricer->chosen = g_array_new(FALSE, FALSE, sizeof(int));
    for (int d = 0; d < cuts->count; d++) {
        pricer->cut_bytes[d] = bytes_over(pricer, d);
        if (pricer->plain)
            sum_downset(pricer, d);
    }
    return pricer;
}

void mtf_stage_pricer_free(MtfStagePricer *pricer) {
    if (pricer == NULL)
        return;
    g_array_unref(pricer->degrees);
    g_free(pricer->of_downset);
    g_free(pricer->cut_bytes);
    g_hash_table_unref(pricer->sums);
    g_hash_table_unref(pricer->known);
    g_array_unref(pricer->items);
    g_array_unref(pricer->starts);
    g_array_unref(pricer->chosen);
    g_free(pricer);
}

const GArray *mtf_stage_pricer_degrees(const MtfStagePricer *pricer) {
    return pricer->degrees;
}

static bool holds(const MtfStagePricer *pricer, const MtfStageSpan *span, int node) {
    return mtf_downsets_has(pricer->cuts, span->to, node) &&
           !mtf_downsets_has(pricer->cuts, span->from, node);
}

/* Bytes over the edges of a list that the stage cuts, with what the way adds to each. */
static double edge_bytes(const MtfStagePricer *pricer, const MtfStageSpan *span,
                         const GArray *edges, bool incoming, const double *added) {
    double bytes = 0;
    for (guint i = 0; i < edges->len; i++) {
        const MtfStageEdge *edge =
            mtf_stage_graph_edge(pricer->graph, g_array_index(edges, int, i));
        if (!holds(pricer, span, incoming ? edge->from : edge->to))
            bytes += edge->bytes + (added != NULL ? added[i] : 0);
    }
    return bytes;
}

static Item item_of(const MtfStagePricer *pricer, const MtfStageSpan *span, int v, int w) {
    const MtfStageNode *node = mtf_stage_graph_node(pricer->graph, v);
    const MtfStageWay *way = way_at(node, (guint)w);
    const double *added = way->edge_bytes;
    double bytes = edge_bytes(pricer, span, node->entries, true, added) +
                   edge_bytes(pricer, span, node->exits, false,
                              added != NULL ? added + node->entries->len : NULL);
    return (Item){ v,
                   w,
                   way->seconds + 2 * bytes / pricer->machine.bandwidth,
                   way->parameter_bytes,
                   way->flight_bytes,
                   way->fixed_bytes };
}

/* Lists all ways of all nodes of a stage; false where a node has none of the degree. */
static bool list_items(MtfStagePricer *pricer, const MtfStageSpan *span) {
    g_array_set_size(pricer->items, 0);
    g_array_set_size(pricer->starts, 0);
    for (int v = 0; v < pricer->cuts->nodes; v++) {
        guint before = pricer->items->len;
        if (!holds(pricer, span, v))
            continue;
        g_array_append_val(pricer->starts, before);
        const MtfStageNode *node = mtf_stage_graph_node(pricer->graph, v);
        for (guint w = 0; w < node->ways->len; w++) {
            if (way_at(node, w)->degree != span->degree)
                continue;
            Item item = item_of(pricer, span, v, (int)w);
            g_array_append_val(pricer->items, item);
        }
        if (pricer->items->len == before)
            return false;
    }
    g_array_append_val(pricer->starts, pricer->items->len);
    return true;
}

/* 4 (d−1) / (d B q): seconds a byte of parameters. */
static double exchange_factor(const MtfStagePricer *pricer, int64_t replicas) {
    double d = (double)replicas;
    double q = pricer->graph->kind == MTF_STAGE_PIPEDREAM ? d
               : pricer->machine.batch > 0                ? (double)pricer->machine.batch
                                                          : 1;
    return 4 * (d - 1) / (d * pricer->machine.bandwidth * q);
}

static double item_seconds(const Item *item, double replicas, double factor) {
    return item->seconds / replicas + factor * item->parameters;
}

static const Item *item_at(const MtfStagePricer *pricer, int i) {
    return &g_array_index(pricer->items, Item, i);
}

static int start_of(const MtfStagePricer *pricer, guint n) {
    return g_array_index(pricer->starts, int, n);
}

static guint node_count(const MtfStagePricer *pricer) {
    return pricer->starts->len - 1;
}

static double item_bytes(const Item *item, double flight) {
    return item->flight * flight + item->fixed;
}

/* The fastest way of every node, whatever it holds. */
static void choose_fastest(MtfStagePricer *pricer, const MtfStageSpan *span) {
    double d = (double)span->replicas, factor = exchange_factor(pricer, span->replicas);
    g_array_set_size(pricer->chosen, node_count(pricer));
    for (guint n = 0; n < node_count(pricer); n++) {
        int best = start_of(pricer, n);
        for (int i = best + 1; i < start_of(pricer, n + 1); i++)
            if (item_seconds(item_at(pricer, i), d, factor) <
                item_seconds(item_at(pricer, best), d, factor))
                best = i;
        g_array_index(pricer->chosen, int, n) = best;
    }
}

static void sum_chosen(const MtfStagePricer *pricer, Sums *sums) {
    for (guint n = 0; n < node_count(pricer); n++) {
        const Item *item = item_at(pricer, g_array_index(pricer->chosen, int, n));
        double flight = item->flight, fixed = item->fixed;
        sums->seconds += item->seconds;
        sums->parameters += item->parameters;
        sums->flight += flight;
        sums->fixed += fixed;
        for (int i = start_of(pricer, n); i < start_of(pricer, n + 1); i++) {
            flight = fmin(flight, item_at(pricer, i)->flight);
            fixed = fmin(fixed, item_at(pricer, i)->fixed);
        }
        sums->least_flight += flight;
        sums->least_fixed += fixed;
    }
}

static gint64 pair_key(const MtfStagePricer *pricer, const MtfStageSpan *span) {
    gint64 pair = (gint64)span->from * pricer->cuts->count + span->to;
    return pair * (MTF_STAGE_DEVICES_MAX + 1) + span->degree;
}

static Sums difference(const Sums *to, const Sums *from) {
    Sums sums = { to->seconds - from->seconds,
                  to->parameters - from->parameters,
                  to->flight - from->flight,
                  to->fixed - from->fixed,
                  0,
                  0,
                  true };
    sums.least_flight = sums.flight;
    sums.least_fixed = sums.fixed;
    return sums;
}

/* The sums of a stage; with ways that hold alike, what is fastest is so for any replicas. */
static Sums sums_of(MtfStagePricer *pricer, const MtfStageSpan *span) {
    if (pricer->plain && span->degree == 1)
        return difference(&pricer->of_downset[span->to], &pricer->of_downset[span->from]);
    gint64 key = pair_key(pricer, span);
    const Sums *known = pricer->alike ? g_hash_table_lookup(pricer->sums, &key) : NULL;
    if (known != NULL)
        return *known;
    Sums sums = { .possible = list_items(pricer, span) };
    if (sums.possible) {
        choose_fastest(pricer, span);
        sum_chosen(pricer, &sums);
    }
    if (pricer->alike)
        g_hash_table_insert(pricer->sums, g_memdup2(&key, sizeof key),
                            g_memdup2(&sums, sizeof sums));
    return sums;
}

/* PipeDream's bound by transfers: what enters and what leaves, forward and backward. */
static double carried_seconds(const MtfStagePricer *pricer, const MtfStageSpan *span) {
    if (!pricer->machine.transfers)
        return 0;
    double bytes = fmax(pricer->cut_bytes[span->from], pricer->cut_bytes[span->to]);
    return 2 * bytes / (pricer->machine.bandwidth * (double)span->replicas);
}

static double seconds_of(const MtfStagePricer *pricer, const MtfStageSpan *span, const Sums *sums) {
    double seconds = sums->seconds / (double)span->replicas +
                     exchange_factor(pricer, span->replicas) * sums->parameters;
    return fmax(seconds, carried_seconds(pricer, span));
}

double mtf_stage_least_seconds(MtfStagePricer *pricer, const MtfStageSpan *span) {
    Sums sums = sums_of(pricer, span);
    return sums.possible ? seconds_of(pricer, span, &sums) : INFINITY;
}

/* A change of a node's way that saves memory for time. */
typedef struct {
    double price; /* seconds a byte */
    double seconds, bytes;
    guint place; /* of the node in the stage */
    int item, before;
} Swap;

static int compare_swaps(const void *a, const void *b) {
    const Swap *x = a, *y = b;
    if (x->price < y->price || x->price > y->price)
        return x->price < y->price ? -1 : 1;
    return x->item - y->item;
}

static GArray *list_swaps(const MtfStagePricer *pricer, const MtfStageSpan *span) {
    double d = (double)span->replicas, factor = exchange_factor(pricer, span->replicas);
    double flight = (double)span->flight;
    GArray *swaps = g_array_new(FALSE, FALSE, sizeof(Swap));
    for (guint n = 0; n < node_count(pricer); n++) {
        int now = g_array_index(pricer->chosen, int, n);
        const Item *item = item_at(pricer, now);
        for (int i = start_of(pricer, n); i < start_of(pricer, n + 1); i++) {
            const Item *other = item_at(pricer, i);
            double bytes = item_bytes(item, flight) - item_bytes(other, flight);
            double seconds = item_seconds(other, d, factor) - item_seconds(item, d, factor);
            Swap swap = { seconds / bytes, seconds, bytes, n, i, now };
            if (bytes > 0)
                g_array_append_val(swaps, swap);
        }
    }
    if (swaps->len > 0)
        qsort(swaps->data, swaps->len, sizeof(Swap), compare_swaps);
    return swaps;
}

/* What the choice is, and how much of the last swap was more than needed. */
typedef struct {
    double seconds, bytes, too_much;
} Choice;

static Choice measure_choice(const MtfStagePricer *pricer, const MtfStageSpan *span) {
    double d = (double)span->replicas, factor = exchange_factor(pricer, span->replicas);
    Choice choice = { 0, 0, 0 };
    for (guint n = 0; n < node_count(pricer); n++) {
        const Item *item = item_at(pricer, g_array_index(pricer->chosen, int, n));
        choice.seconds += item_seconds(item, d, factor);
        choice.bytes += item_bytes(item, (double)span->flight);
    }
    return choice;
}

/* Swaps that turned out to be more than needed are taken back, the costliest first. */
static void take_back(MtfStagePricer *pricer, const GArray *swaps, guint made, double room) {
    for (guint s = made; s-- > 0;) {
        const Swap *swap = &g_array_index(swaps, Swap, s);
        int *chosen = &g_array_index(pricer->chosen, int, swap->place);
        if (*chosen != swap->item || swap->bytes > room)
            continue;
        *chosen = swap->before;
        room -= swap->bytes;
    }
}

/* Cheapest swaps first until the stage fits: what is left over at the end makes the difference to
 * the relaxed knapsack, which would make a part of the last swap (Dantzig 1957). */
static Choice swap_until_fit(MtfStagePricer *pricer, const MtfStageSpan *span) {
    g_autoptr(GArray) swaps = list_swaps(pricer, span);
    Choice choice = measure_choice(pricer, span);
    double over = choice.bytes - pricer->machine.memory;
    guint made = 0;
    for (; made < swaps->len && over > 0; made++) {
        const Swap *swap = &g_array_index(swaps, Swap, made);
        int *chosen = &g_array_index(pricer->chosen, int, swap->place);
        double saved = item_bytes(item_at(pricer, *chosen), (double)span->flight) -
                       item_bytes(item_at(pricer, swap->item), (double)span->flight);
        if (saved <= 0)
            continue;
        *chosen = swap->item;
        over -= saved;
        if (over <= 0)
            choice.too_much = -over * swap->price;
    }
    if (over > 0)
        return (Choice){ INFINITY, INFINITY, 0 };
    double too_much = choice.too_much, relaxed = measure_choice(pricer, span).seconds - too_much;
    take_back(pricer, swaps, made, -over);
    choice = measure_choice(pricer, span);
    choice.too_much = choice.seconds - relaxed;
    return choice;
}

static Choice choose_ways(MtfStagePricer *pricer, const MtfStageSpan *span) {
    if (!list_items(pricer, span))
        return (Choice){ INFINITY, INFINITY, 0 };
    choose_fastest(pricer, span);
    Choice choice = measure_choice(pricer, span);
    if (choice.bytes > pricer->machine.memory)
        choice = swap_until_fit(pricer, span);
    choice.seconds = fmax(choice.seconds, carried_seconds(pricer, span));
    return choice;
}

/* Whether the fastest ways fit (1), nothing can (-1), or a choice is to be made (0). */
static int judge_memory(const MtfStagePricer *pricer, const MtfStageSpan *span, const Sums *sums) {
    double y = (double)span->flight;
    if (sums->flight * y + sums->fixed <= pricer->machine.memory)
        return 1;
    return sums->least_flight * y + sums->least_fixed > pricer->machine.memory ? -1 : 0;
}

static Choice choice_of(MtfStagePricer *pricer, const MtfStageSpan *span) {
    Sums sums = sums_of(pricer, span);
    int judged = sums.possible ? judge_memory(pricer, span, &sums) : -1;
    if (judged < 0 || (judged == 0 && pricer->plain))
        return (Choice){ INFINITY, INFINITY, 0 };
    if (judged > 0)
        return (Choice){ seconds_of(pricer, span, &sums),
                         sums.flight * (double)span->flight + sums.fixed, 0 };
    SpanKey key = { pair_key(pricer, span), (gint32)span->replicas, (gint32)span->flight };
    const Choice *known = g_hash_table_lookup(pricer->known, &key);
    if (known != NULL)
        return *known;
    Choice choice = choose_ways(pricer, span);
    g_hash_table_insert(pricer->known, g_memdup2(&key, sizeof key),
                        g_memdup2(&choice, sizeof choice));
    return choice;
}

double mtf_stage_seconds(MtfStagePricer *pricer, const MtfStageSpan *span) {
    return choice_of(pricer, span).seconds;
}

/* Ways beyond two have swaps of swaps, for which the greedy bound does not hold. */
static bool has_two_ways(const MtfStagePricer *pricer) {
    for (int v = 0; v < pricer->cuts->nodes; v++) {
        const GArray *ways = mtf_stage_graph_node(pricer->graph, v)->ways;
        for (guint w = 2; w < ways->len; w++)
            if (g_array_index(ways, MtfStageWay, w).degree ==
                g_array_index(ways, MtfStageWay, w - 2).degree)
                return false;
    }
    return true;
}

double mtf_stage_relaxed_seconds(MtfStagePricer *pricer, const MtfStageSpan *span) {
    Choice choice = choice_of(pricer, span);
    if (isinf(choice.seconds) || choice.too_much <= 0)
        return choice.seconds;
    if (!has_two_ways(pricer))
        return mtf_stage_least_seconds(pricer, span);
    return fmax(choice.seconds - choice.too_much, carried_seconds(pricer, span));
}

double mtf_stage_bytes(MtfStagePricer *pricer, const MtfStageSpan *span, int *ways) {
    for (int v = 0; ways != NULL && v < pricer->cuts->nodes; v++)
        ways[v] = -1;
    Choice choice = choose_ways(pricer, span);
    for (guint n = 0; ways != NULL && n < node_count(pricer); n++) {
        const Item *item = item_at(pricer, g_array_index(pricer->chosen, int, n));
        ways[item->node] = item->way;
    }
    return choice.bytes;
}

double mtf_stage_work(const MtfStagePricer *pricer, int from, int to) {
    return pricer->of_downset[to].seconds - pricer->of_downset[from].seconds;
}

double mtf_stage_parameters(const MtfStagePricer *pricer, int from, int to) {
    return pricer->of_downset[to].parameters - pricer->of_downset[from].parameters;
}
