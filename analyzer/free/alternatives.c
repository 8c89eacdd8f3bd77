// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/free/alternatives.h"

#include "layouts/base/json_writer.h"

int64_t mtf_edge_cost(const MtfLayoutProblem *problem, const MtfLayoutEdge *edge, const int *choice,
                      int node, int strategy) {
    int p = edge->from == node ? strategy : choice[edge->from];
    int q = edge->to == node ? strategy : choice[edge->to];
    return edge->costs[(int64_t)p * mtf_layout_problem_node(problem, edge->to)->strategies + q];
}

/* Cost of `node` at `strategy` with all its edges. */
static int64_t local_cost(const MtfLayoutProblem *problem, const GArray *edges, const int *choice,
                          int node, int strategy) {
    int64_t cost = mtf_layout_problem_node(problem, node)->costs[strategy];
    for (guint i = 0; i < edges->len; i++)
        cost +=
            mtf_edge_cost(problem, mtf_layout_problem_edge(problem, g_array_index(edges, int, i)),
                          choice, node, strategy);
    return cost;
}

static int compare(gconstpointer a, gconstpointer b) {
    const MtfAlternative *x = a, *y = b;
    if (x->delta != y->delta)
        return x->delta < y->delta ? -1 : 1;
    return x->strategy - y->strategy;
}

static GArray *list_alternatives(const MtfLayoutProblem *problem, const GArray *edges,
                                 const int *choice, int node) {
    GArray *alternatives = g_array_new(FALSE, FALSE, sizeof(MtfAlternative));
    int64_t chosen = local_cost(problem, edges, choice, node, choice[node]);
    for (int s = 0; s < mtf_layout_problem_node(problem, node)->strategies; s++) {
        MtfAlternative alternative = { s, local_cost(problem, edges, choice, node, s) - chosen };
        g_array_append_val(alternatives, alternative);
    }
    g_array_sort(alternatives, compare);
    return alternatives;
}

GPtrArray *mtf_edges_by_node(const MtfLayoutProblem *problem) {
    GPtrArray *edges = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++)
        g_ptr_array_add(edges, g_array_new(FALSE, FALSE, sizeof(int)));
    for (int e = 0; e < mtf_layout_problem_edge_count(problem); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        GArray *from = g_ptr_array_index(edges, edge->from);
        GArray *to = g_ptr_array_index(edges, edge->to);
        g_array_append_val(from, e);
        g_array_append_val(to, e);
    }
    return edges;
}

GArray *mtf_alternatives(const MtfLayoutProblem *problem, const int *choice, int node) {
    g_autoptr(GPtrArray) edges = mtf_edges_by_node(problem);
    return list_alternatives(problem, g_ptr_array_index(edges, node), choice, node);
}

typedef struct {
    int node, next_best;
    int64_t delta;
} Decision;

static int compare_decisions(gconstpointer a, gconstpointer b) {
    const Decision *x = a, *y = b;
    if (x->delta != y->delta)
        return x->delta > y->delta ? -1 : 1;
    return x->node - y->node;
}

static cJSON *decision_to_json(const MtfFreeProblem *problem, const int *choice,
                               const Decision *decision) {
    int node = decision->node;
    g_autofree char *chosen = mtf_free_problem_strategy_format(problem, node, choice[node]);
    g_autofree char *next = mtf_free_problem_strategy_format(problem, node, decision->next_best);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "operation", mtf_free_problem_node_name(problem, node));
    cJSON_AddStringToObject(object, "strategy", chosen);
    cJSON_AddStringToObject(object, "next_best", next);
    mtf_json_add_integer(object, "nanoseconds", decision->delta);
    return object;
}

cJSON *mtf_alternatives_that_matter(const MtfFreeProblem *problem, const int *choice, int most) {
    const MtfLayoutProblem *layout_problem = mtf_free_problem_get(problem);
    g_autoptr(GPtrArray) edges = mtf_edges_by_node(layout_problem);
    g_autoptr(GArray) decisions = g_array_new(FALSE, FALSE, sizeof(Decision));
    for (int v = 0; mtf_free_problem_node_operation(problem, v) >= 0; v++) {
        g_autoptr(GArray) alternatives =
            list_alternatives(layout_problem, g_ptr_array_index(edges, v), choice, v);
        for (guint i = 0; i < alternatives->len; i++) {
            const MtfAlternative *a = &g_array_index(alternatives, MtfAlternative, i);
            if (a->strategy == choice[v])
                continue;
            Decision decision = { v, a->strategy, a->delta };
            g_array_append_val(decisions, decision);
            break;
        }
    }
    g_array_sort(decisions, compare_decisions);
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < most && i < (int)decisions->len; i++)
        cJSON_AddItemToArray(
            list, decision_to_json(problem, choice, &g_array_index(decisions, Decision, i)));
    return list;
}
