// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/problems/stage_graphs.h"

#include <math.h>

guint64 mtf_test_draw(guint64 seed, guint64 *counter, guint64 below) {
    guint64 x = seed * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15) + ++*counter;
    x = (x ^ (x >> 30)) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % below;
}

static void add_ways(MtfStageGraph *graph, int node, guint64 seed, guint64 *n) {
    int degrees = graph->kind == MTF_STAGE_PIPER ? 1 + (int)mtf_test_draw(seed, n, 2) : 1;
    for (int degree = 1; degree <= degrees; degree++) {
        int ways = graph->kind == MTF_STAGE_PIPER ? 1 + (int)mtf_test_draw(seed, n, 2) : 1;
        double seconds = 1 + (double)mtf_test_draw(seed, n, 20),
               parameters = (double)mtf_test_draw(seed, n, 9);
        for (int w = 0; w < ways; w++) {
            MtfStageWay way = { .degree = degree, .parameter_bytes = parameters };
            way.seconds = (w == 0 ? seconds : seconds * 1.5) / degree;
            way.flight_bytes = w == 0 ? 4 + (double)mtf_test_draw(seed, n, 20) : 2;
            way.fixed_bytes = (double)mtf_test_draw(seed, n, 5);
            const MtfStageNode *of = mtf_stage_graph_node(graph, node);
            guint edges = of->entries->len + of->exits->len;
            if (graph->kind == MTF_STAGE_PIPER) {
                way.name = g_strdup(w == 0 ? "vanilla" : "again");
                way.edge_bytes = g_new0(double, edges + 1);
                for (guint e = 0; e < edges; e++)
                    way.edge_bytes[e] = degree == 1 ? 0 : (double)mtf_test_draw(seed, n, 3);
            }
            mtf_stage_graph_add_way(graph, node, &way);
        }
    }
}

MtfStageGraph *mtf_test_stage_graph(MtfStageKind kind, guint64 seed, int most) {
    MtfStageGraph *graph = mtf_stage_graph_new(kind);
    guint64 n = 0;
    int nodes = 1 + (int)mtf_test_draw(seed, &n, (guint64)most);
    for (int v = 0; v < nodes; v++) {
        g_autofree char *name = g_strdup_printf("%d", v);
        mtf_stage_graph_add_node(graph, name);
    }
    for (int to = 1; to < nodes; to++)
        for (int from = 0; from < to; from++)
            if (mtf_test_draw(seed, &n, 2) == 0)
                mtf_stage_graph_add_edge(
                    graph, from, to,
                    kind == MTF_STAGE_PIPER ? (double)mtf_test_draw(seed, &n, 4) : 0);
    for (int v = 0; v < nodes; v++)
        add_ways(graph, v, seed, &n);
    return graph;
}

/* Sets of nodes are bits of an int. */
static bool is_closed(const MtfStageGraph *graph, int set) {
    for (guint e = 0; e < graph->edges->len; e++) {
        const MtfStageEdge *edge = mtf_stage_graph_edge(graph, (int)e);
        if ((set >> edge->to & 1) && !(set >> edge->from & 1))
            return false;
    }
    return true;
}

typedef struct {
    const MtfStageGraph *graph;
    const MtfStageMachine *machine;
    int stage, degree;
    int64_t replicas, flight;
    double best;
} Pricing;

static double cut_of(const Pricing *pricing, const GArray *edges, bool incoming,
                     const double *added) {
    double bytes = 0;
    for (guint i = 0; i < edges->len; i++) {
        const MtfStageEdge *edge =
            mtf_stage_graph_edge(pricing->graph, g_array_index(edges, int, i));
        if (!(pricing->stage >> (incoming ? edge->from : edge->to) & 1))
            bytes += edge->bytes + (added != NULL ? added[i] : 0);
    }
    return bytes;
}

/* Every choice of ways, node after node. */
static void try_ways(Pricing *pricing, int node, double seconds, double bytes) {
    if (node == mtf_stage_graph_size(pricing->graph)) {
        if (bytes <= pricing->machine->memory)
            pricing->best = fmin(pricing->best, seconds);
        return;
    }
    if (!(pricing->stage >> node & 1)) {
        try_ways(pricing, node + 1, seconds, bytes);
        return;
    }
    const MtfStageNode *of = mtf_stage_graph_node(pricing->graph, node);
    double d = (double)pricing->replicas, b = pricing->machine->bandwidth;
    double q = pricing->graph->kind == MTF_STAGE_PIPEDREAM ? d : (double)pricing->machine->batch;
    for (guint w = 0; w < of->ways->len; w++) {
        const MtfStageWay *way = &g_array_index(of->ways, MtfStageWay, w);
        if (way->degree != pricing->degree)
            continue;
        const double *added = way->edge_bytes;
        double cut =
            cut_of(pricing, of->entries, true, added) +
            cut_of(pricing, of->exits, false, added != NULL ? added + of->entries->len : NULL);
        double own =
            (way->seconds + 2 * cut / b) / d + 4 * (d - 1) * way->parameter_bytes / (d * b * q);
        try_ways(pricing, node + 1, seconds + own,
                 bytes + way->fixed_bytes + (double)pricing->flight * way->flight_bytes);
    }
}

typedef struct {
    const MtfStageGraph *graph;
    const MtfStageMachine *machine;
    double best;
} Trial;

/* Stages from the last to the first: what is left before them is `left`. */
static void try_stages(Trial *trial, int left, int64_t devices, int64_t replicas, double slowest) {
    if (left == 0)
        trial->best = fmin(trial->best, slowest);
    int64_t n = trial->machine->devices, batch = trial->machine->batch;
    bool piper = trial->graph->kind == MTF_STAGE_PIPER;
    for (int before = left - 1; left > 0 && before >= 0; before--) {
        if ((before & ~left) != 0 || !is_closed(trial->graph, before))
            continue;
        for (int degree = 1; degree <= 2; degree++)
            for (int64_t d = 1; devices + d * degree <= n; d++) {
                if (piper && (batch % d != 0 || replicas + d > batch))
                    continue;
                int64_t flight = (replicas + d + d - 1) / d;
                Pricing pricing = { trial->graph,
                                    trial->machine,
                                    left & ~before,
                                    degree,
                                    d,
                                    batch > 0 ? MIN(flight, batch) : flight,
                                    INFINITY };
                try_ways(&pricing, 0, 0, 0);
                double now = fmax(slowest, pricing.best);
                if (now < trial->best)
                    try_stages(trial, before, devices + d * degree, replicas + d, now);
            }
    }
}

double mtf_test_best_throughput(const MtfStageGraph *graph, const MtfStageMachine *machine) {
    Trial trial = { graph, machine, INFINITY };
    try_stages(&trial, (1 << mtf_stage_graph_size(graph)) - 1, 0, 0, 0);
    return trial.best;
}

static double sum_of(const MtfStageGraph *graph, int set, bool parameters) {
    double sum = 0;
    for (int v = 0; v < mtf_stage_graph_size(graph); v++) {
        const MtfStageWay *way =
            &g_array_index(mtf_stage_graph_node(graph, v)->ways, MtfStageWay, 0);
        if (set >> v & 1)
            sum += parameters ? way->parameter_bytes : way->seconds;
    }
    return sum;
}

/* The best pipeline over the nodes of `to` that are not in `from`, on at most `left` devices of a
 * machine (level 0) or machines (level 1), its first stage first. */
static double best_pipeline(const MtfStageGraph *graph, const MtfStageLevels *levels, int level,
                            int from, int to, int64_t left) {
    double best = from == to ? 0 : INFINITY;
    for (int next = 1; from != to && next <= to; next++) {
        if ((next & ~to) != 0 || (from & ~next) != 0 || next == from || !is_closed(graph, next))
            continue;
        double inner = level == 0 ? sum_of(graph, next & ~from, false)
                                  : best_pipeline(graph, levels, 0, from, next, levels->devices[0]);
        double shared = level == 1 && from == 0 ? (double)levels->devices[0] : 1;
        for (int64_t m = 1; m <= left; m++) {
            double exchange = 4 * (double)(m - 1) * sum_of(graph, next & ~from, true) /
                              (levels->bandwidth[level] * (double)m * shared);
            double stage = (inner + exchange) / (double)m;
            if (stage < best)
                best = fmin(best,
                            fmax(stage, best_pipeline(graph, levels, level, next, to, left - m)));
        }
    }
    return best;
}

double mtf_test_best_hierarchy(const MtfStageGraph *graph, const MtfStageLevels *levels) {
    return best_pipeline(graph, levels, 1, 0, (1 << mtf_stage_graph_size(graph)) - 1,
                         levels->devices[1]);
}
