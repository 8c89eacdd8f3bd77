// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/layout_problem.h"

#include "analyzer/shared_blocks.h"

#include <stdlib.h>
#include <string.h>

struct MtfLayoutProblem {
    char *name;
    int64_t limit;
    GArray *nodes;     /* MtfLayoutNode */
    GArray *moments;   /* MtfLayoutMoment, one a node; usages NULL: none */
    GArray *edges;     /* MtfLayoutEdge */
    MtfShared *shared; /* the numbers that nodes and edges point at */
};

/* An empty problem whose arrays are among those of `shared`, which it takes over. */
static MtfLayoutProblem *new_among(const char *name, MtfShared *shared) {
    MtfLayoutProblem *problem = g_new0(MtfLayoutProblem, 1);
    problem->name = g_strdup(name);
    problem->limit = MTF_NO_LIMIT;
    problem->nodes = g_array_new(FALSE, FALSE, sizeof(MtfLayoutNode));
    problem->moments = g_array_new(FALSE, TRUE, sizeof(MtfLayoutMoment));
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
    g_array_unref(problem->moments);
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

static const int64_t *copy_usages(MtfLayoutProblem *problem, const int64_t *usages, gsize count) {
    for (gsize i = 0; i < count; i++)
        g_assert(usages[i] >= 0 && usages[i] <= MTF_LAYOUT_MAX_COST);
    return mtf_shared_copy(problem->shared, usages, count * sizeof *usages);
}

int mtf_layout_problem_add_node(MtfLayoutProblem *problem, MtfLayoutNode node) {
    g_assert(node.strategies >= 1 && node.strategies <= MTF_LAYOUT_MAX_STRATEGIES);
    g_assert(node.start <= node.end);
    gsize count = (gsize)node.strategies;
    node.costs = copy_costs(problem, node.costs, count);
    node.usages = copy_usages(problem, node.usages, count);
    g_array_append_val(problem->nodes, node);
    g_array_set_size(problem->moments, problem->nodes->len);
    return (int)problem->nodes->len - 1;
}

void mtf_layout_problem_add_moment(MtfLayoutProblem *problem, MtfLayoutMoment moment) {
    guint newest = problem->nodes->len - 1;
    gsize count = (gsize)mtf_layout_problem_node(problem, (int)newest)->strategies;
    moment.usages = copy_usages(problem, moment.usages, count);
    g_array_index(problem->moments, MtfLayoutMoment, newest) = moment;
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

MtfLayoutProblem *mtf_layout_problem_forbid(const MtfLayoutProblem *problem, int node,
                                            const bool *forbidden) {
    MtfLayoutProblem *copy = new_among(problem->name, mtf_shared_join(problem->shared));
    copy->limit = problem->limit;
    g_array_append_vals(copy->nodes, problem->nodes->data, problem->nodes->len);
    g_array_append_vals(copy->moments, problem->moments->data, problem->moments->len);
    g_array_append_vals(copy->edges, problem->edges->data, problem->edges->len);
    MtfLayoutNode *changed = &g_array_index(copy->nodes, MtfLayoutNode, node);
    gsize bytes = (gsize)changed->strategies * sizeof *changed->costs;
    int64_t *costs = memcpy(mtf_shared_alloc(bytes), changed->costs, bytes);
    for (int s = 0; s < changed->strategies; s++)
        costs[s] = forbidden[s] ? MTF_IMPOSSIBLE : costs[s];
    changed->costs = mtf_shared_keep(copy->shared, costs);
    return copy;
}

/* ---- Without moments ------------------------------------------------------------------------- */

/* The place of an amount in a list, where it is added if it is new. */
static int find_amount(GArray *amounts, int64_t amount) {
    for (guint i = 0; i < amounts->len; i++)
        if (g_array_index(amounts, int64_t, i) == amount)
            return (int)i;
    g_array_append_val(amounts, amount);
    return (int)amounts->len - 1;
}

/* Adds the node that stands for the moment of node `index`, and the edge that ties it to that. */
static void add_moment_node(MtfLayoutProblem *plain, int index, const MtfLayoutMoment *moment) {
    int strategies = mtf_layout_problem_node(plain, index)->strategies;
    g_autoptr(GArray) amounts = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_autofree int *amount = g_new(int, strategies);
    for (int s = 0; s < strategies; s++)
        amount[s] = find_amount(amounts, moment->usages[s]);
    int columns = (int)amounts->len;
    g_autofree int64_t *zeros = g_new0(int64_t, columns);
    g_autofree int64_t *matrix = g_new(int64_t, (gsize)strategies * (gsize)columns);
    for (int s = 0; s < strategies; s++)
        for (int i = 0; i < columns; i++)
            matrix[s * columns + i] = i == amount[s] ? 0 : MTF_IMPOSSIBLE;
    MtfLayoutNode node = { .start = moment->time,
                           .end = moment->time + 1,
                           .strategies = columns,
                           .costs = zeros,
                           .usages = (const int64_t *)(void *)amounts->data };
    int other = mtf_layout_problem_add_node(plain, node);
    mtf_layout_problem_add_edge(plain, (MtfLayoutEdge){ index, other, matrix });
}

MtfLayoutProblem *mtf_layout_problem_without_moments(const MtfLayoutProblem *problem) {
    MtfLayoutProblem *plain = new_among(problem->name, mtf_shared_join(problem->shared));
    plain->limit = problem->limit;
    g_array_append_vals(plain->nodes, problem->nodes->data, problem->nodes->len);
    g_array_append_vals(plain->edges, problem->edges->data, problem->edges->len);
    g_array_set_size(plain->moments, plain->nodes->len);
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++) {
        const MtfLayoutMoment *moment = mtf_layout_problem_moment(problem, v);
        if (moment != NULL)
            add_moment_node(plain, v, moment);
    }
    return plain;
}

/* ---- Reading --------------------------------------------------------------------------------- */

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

const MtfLayoutMoment *mtf_layout_problem_moment(const MtfLayoutProblem *problem, int index) {
    g_assert(index >= 0 && (guint)index < problem->nodes->len);
    const MtfLayoutMoment *moment = &g_array_index(problem->moments, MtfLayoutMoment, index);
    return moment->usages != NULL ? moment : NULL;
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

/* Adds both ends of an interval in which so much memory is used; returns how many events there are
 * then. */
static gsize add_events(Event *events, gsize count, int64_t start, int64_t end, int64_t usage) {
    if (start == end || usage == 0)
        return count;
    events[count] = (Event){ start, usage };
    events[count + 1] = (Event){ end, -usage };
    return count + 2;
}

static void find_peak(const MtfLayoutProblem *problem, const int *choice, MtfLayoutValue *value) {
    g_autofree Event *events = g_new(Event, 4 * problem->nodes->len + 1);
    gsize count = 0;
    for (guint v = 0; v < problem->nodes->len; v++) {
        const MtfLayoutNode *node = mtf_layout_problem_node(problem, (int)v);
        count = add_events(events, count, node->start, node->end, node->usages[choice[v]]);
        const MtfLayoutMoment *moment = mtf_layout_problem_moment(problem, (int)v);
        if (moment != NULL)
            count = add_events(events, count, moment->time, moment->time + 1,
                               moment->usages[choice[v]]);
    }
    qsort(events, count, sizeof *events, compare_events);
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
