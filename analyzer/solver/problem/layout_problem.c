// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/problem/layout_problem.h"

#include "analyzer/solver/problem/shared_blocks.h"

#include <stdlib.h>
#include <string.h>

struct MtfLayoutProblem {
    char *name;
    int64_t limit;
    GArray *nodes; /* MtfLayoutNode */
    GArray *edges; /* MtfLayoutEdge */
    MtfShared
        *shared; /* the numbers that nodes and edges point at, or those that were added last */
};

/* An empty problem whose arrays are among those of `shared`, which it takes over. */
static MtfLayoutProblem *new_among(const char *name, MtfShared *shared) {
    MtfLayoutProblem *problem = g_new0(MtfLayoutProblem, 1);
    problem->name = g_strdup(name);
    problem->limit = MTF_NO_LIMIT;
    problem->nodes = g_array_new(FALSE, FALSE, sizeof(MtfLayoutNode));
    problem->edges = g_array_new(FALSE, FALSE, sizeof(MtfLayoutEdge));
    problem->shared = shared;
    return problem;
}

MtfLayoutProblem *mtf_layout_problem_new(const char *name) {
    return new_among(name, mtf_shared_new());
}

void mtf_layout_problem_free(MtfLayoutProblem *problem) {
    if (problem == NULL)
        return;
    g_free(problem->name);
    g_array_unref(problem->nodes);
    g_array_unref(problem->edges);
    mtf_shared_free(problem->shared);
    g_free(problem);
}

static const int64_t *copy_costs(MtfLayoutProblem *problem, const int64_t *costs, gsize count) {
    int64_t *copy = mtf_shared_alloc(count * sizeof *copy);
    for (gsize i = 0; i < count; i++) {
        g_assert(costs[i] >= MTF_IMPOSSIBLE || ABS(costs[i]) <= MTF_LAYOUT_MAX_COST);
        copy[i] = MIN(costs[i], MTF_IMPOSSIBLE);
    }
    return mtf_shared_keep(problem->shared, copy);
}

int mtf_layout_problem_add_node(MtfLayoutProblem *problem, MtfLayoutNode node) {
    g_assert(node.strategies >= 1 && node.strategies <= MTF_LAYOUT_MAX_STRATEGIES);
    g_assert(node.start <= node.end);
    gsize count = (gsize)node.strategies;
    for (gsize i = 0; i < count; i++)
        g_assert(node.usages[i] >= 0 && node.usages[i] <= MTF_LAYOUT_MAX_COST);
    node.costs = copy_costs(problem, node.costs, count);
    node.usages = mtf_shared_copy(problem->shared, node.usages, count * sizeof *node.usages);
    g_array_append_val(problem->nodes, node);
    return (int)problem->nodes->len - 1;
}

int mtf_layout_problem_add_edge(MtfLayoutProblem *problem, MtfLayoutEdge edge) {
    g_assert(edge.from != edge.to);
    gsize rows = (gsize)mtf_layout_problem_node(problem, edge.from)->strategies;
    gsize columns = (gsize)mtf_layout_problem_node(problem, edge.to)->strategies;
    edge.costs = copy_costs(problem, edge.costs, rows * columns);
    g_array_append_val(problem->edges, edge);
    return (int)problem->edges->len - 1;
}

int mtf_layout_problem_repeat_edge(MtfLayoutProblem *problem, int edge, int from, int to) {
    const MtfLayoutEdge *old = mtf_layout_problem_edge(problem, edge);
    g_assert(from != to);
    g_assert(mtf_layout_problem_node(problem, from)->strategies ==
             mtf_layout_problem_node(problem, old->from)->strategies);
    g_assert(mtf_layout_problem_node(problem, to)->strategies ==
             mtf_layout_problem_node(problem, old->to)->strategies);
    MtfLayoutEdge copy = { from, to, mtf_shared_ref(old->costs) };
    g_array_append_val(problem->edges, copy);
    return (int)problem->edges->len - 1;
}

void mtf_layout_problem_set_limit(MtfLayoutProblem *problem, int64_t limit) {
    problem->limit = limit;
}

static MtfLayoutProblem *copy_among(const MtfLayoutProblem *problem, MtfShared *shared) {
    MtfLayoutProblem *copy = new_among(problem->name, shared);
    copy->limit = problem->limit;
    g_array_append_vals(copy->nodes, problem->nodes->data, problem->nodes->len);
    g_array_append_vals(copy->edges, problem->edges->data, problem->edges->len);
    return copy;
}

MtfLayoutProblem *mtf_layout_problem_copy(const MtfLayoutProblem *problem) {
    return copy_among(problem, mtf_shared_join(problem->shared));
}

MtfLayoutProblem *mtf_layout_problem_extend(const MtfLayoutProblem *problem) {
    return copy_among(problem, mtf_shared_new());
}

MtfLayoutProblem *mtf_layout_problem_forbid(const MtfLayoutProblem *problem, int node,
                                            const bool *forbidden) {
    MtfLayoutProblem *copy = mtf_layout_problem_copy(problem);
    MtfLayoutNode *changed = &g_array_index(copy->nodes, MtfLayoutNode, node);
    gsize bytes = (gsize)changed->strategies * sizeof *changed->costs;
    int64_t *costs = memcpy(mtf_shared_alloc(bytes), changed->costs, bytes);
    for (int s = 0; s < changed->strategies; s++)
        costs[s] = forbidden[s] ? MTF_IMPOSSIBLE : costs[s];
    changed->costs = mtf_shared_keep(copy->shared, costs);
    return copy;
}

/* Costs without what they cost. Returns whether they forbid anything. */
static bool forget_costs(const int64_t *costs, gsize count, int64_t *to) {
    bool forbids = false;
    for (gsize i = 0; i < count; i++) {
        to[i] = costs[i] >= MTF_IMPOSSIBLE ? MTF_IMPOSSIBLE : 0;
        forbids |= to[i] > 0;
    }
    return forbids;
}

static void add_forbidding_edges(MtfLayoutProblem *copy, const MtfLayoutProblem *problem) {
    g_autoptr(GHashTable) free_ones = g_hash_table_new(NULL, NULL);
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        MtfLayoutEdge edge = *mtf_layout_problem_edge(problem, e);
        gsize count = (gsize)mtf_layout_problem_node(problem, edge.from)->strategies *
                      (gsize)mtf_layout_problem_node(problem, edge.to)->strategies;
        if (g_hash_table_contains(free_ones, edge.costs))
            continue;
        g_autofree int64_t *costs = g_new(int64_t, count);
        if (!forget_costs(edge.costs, count, costs)) {
            g_hash_table_add(free_ones, (gpointer)edge.costs);
            continue;
        }
        edge.costs = costs;
        mtf_layout_problem_add_edge(copy, edge);
    }
}

MtfLayoutProblem *mtf_layout_problem_without_costs(const MtfLayoutProblem *problem) {
    MtfLayoutProblem *copy = mtf_layout_problem_new(problem->name);
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++) {
        MtfLayoutNode node = *mtf_layout_problem_node(problem, v);
        g_autofree int64_t *costs = g_new(int64_t, node.strategies);
        forget_costs(node.costs, (gsize)node.strategies, costs);
        node.costs = costs;
        mtf_layout_problem_add_node(copy, node);
    }
    add_forbidding_edges(copy, problem);
    return copy;
}

const char *mtf_layout_problem_name(const MtfLayoutProblem *problem) {
    return problem->name;
}

int64_t mtf_layout_problem_limit(const MtfLayoutProblem *problem) {
    return problem->limit;
}

int mtf_layout_problem_node_count(const MtfLayoutProblem *problem) {
    return (int)problem->nodes->len;
}

int mtf_layout_problem_edge_count(const MtfLayoutProblem *problem) {
    return (int)problem->edges->len;
}

const MtfLayoutNode *mtf_layout_problem_node(const MtfLayoutProblem *problem, int index) {
    g_assert(index >= 0 && (guint)index < problem->nodes->len);
    return &g_array_index(problem->nodes, MtfLayoutNode, index);
}

const MtfLayoutEdge *mtf_layout_problem_edge(const MtfLayoutProblem *problem, int index) {
    g_assert(index >= 0 && (guint)index < problem->edges->len);
    return &g_array_index(problem->edges, MtfLayoutEdge, index);
}

static void add_term(MtfLayoutValue *value, int64_t term) {
    if (term >= MTF_IMPOSSIBLE)
        value->impossible++;
    else
        value->cost += term;
}

/* Memory rises by `change` (or falls) at a time. */
typedef struct Event {
    int64_t time;
    int64_t change;
} Event;

/* By time; at one time falls come first, so that sums between are memory really in use. */
static int compare_events(const void *left, const void *right) {
    const Event *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->change > b->change) - (a->change < b->change);
}

/* The changes of the memory in use, in order; returns how many. */
static gsize list_events(const MtfLayoutProblem *problem, const int *choice, Event *events) {
    gsize count = 0;
    for (guint v = 0; v < problem->nodes->len; v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, (int)v);
        int64_t usage = node->usages[choice[v]];
        if (node->start == node->end || usage == 0)
            continue;
        events[count++] = (Event){ node->start, usage };
        events[count++] = (Event){ node->end, -usage };
    }
    qsort(events, count, sizeof *events, compare_events);
    return count;
}

static void find_peak(const MtfLayoutProblem *problem, const int *choice, MtfLayoutValue *value) {
    g_autofree Event *events = g_new(Event, 2 * problem->nodes->len + 1);
    gsize count = list_events(problem, choice, events);
    MtfInt128 in_use = 0;
    for (gsize i = 0; i < count; i++) {
        in_use += events[i].change;
        if (in_use <= value->peak)
            continue;
        value->peak = in_use;
        value->peak_time = events[i].time;
    }
}

MtfLayoutValue mtf_layout_problem_evaluate(const MtfLayoutProblem *problem, const int *choice) {
    MtfLayoutValue value = { 0 };
    for (guint v = 0; v < problem->nodes->len; v++)
        add_term(&value, mtf_layout_problem_node(problem, (int)v)->costs[choice[v]]);
    for (guint e = 0; e < problem->edges->len; e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, (int)e);
        int columns = mtf_layout_problem_node(problem, edge->to)->strategies;
        add_term(&value,
                 edge->costs[(gsize)choice[edge->from] * (gsize)columns + (gsize)choice[edge->to]]);
    }
    find_peak(problem, choice, &value);
    return value;
}

bool mtf_layout_problem_allows(const MtfLayoutProblem *problem, const MtfLayoutValue *value) {
    return value->impossible == 0 &&
           (problem->limit == MTF_NO_LIMIT || value->peak <= problem->limit);
}

char *mtf_int128_format(MtfInt128 value) {
    char digits[48];
    gsize at = sizeof digits - 1;
    digits[at] = '\0';
    bool negative = value < 0;
    do {
        int digit = (int)(value % 10);
        digits[--at] = (char)('0' + (digit < 0 ? -digit : digit));
        value /= 10;
    } while (value != 0);
    if (negative)
        digits[--at] = '-';
    return g_strdup(digits + at);
}
