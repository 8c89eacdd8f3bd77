// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/certificate/certified_problem.h"

#include "analyzer/certificate/certified_reasons.h"
#include "layouts/base/error.h"

#include <stdlib.h>
#include <string.h>

#define NEVER MTF_CERTIFIED_NEVER

/* ---- numbers ---- */

/* Adds to a cost; NEVER stays. False where the sum is too large. */
static bool add_to(int64_t *cost, int64_t more) {
    if (*cost == NEVER || more == NEVER) {
        *cost = NEVER;
        return true;
    }
    return !__builtin_add_overflow(*cost, more, cost) && *cost < NEVER;
}

static bool too_large(GError **error) {
    return mtf_input_error(error, "a sum leaves 64 bits");
}

/* Divides by 2^shift, rounding down. */
static int64_t divided(int64_t number, int shift) {
    int64_t unit = INT64_C(1) << shift;
    return number / unit - (number % unit < 0);
}

/* ---- making and copying ---- */

static void free_piece(gpointer data) {
    MtfCertifiedPiece *piece = data;
    g_free(piece->usage);
    g_free(piece);
}

static MtfCertifiedPiece *new_piece(int64_t start, int64_t end, int64_t *usage) {
    MtfCertifiedPiece *piece = g_new(MtfCertifiedPiece, 1);
    *piece = (MtfCertifiedPiece){ start, end, usage };
    return piece;
}

static MtfCertifiedNode new_node(int values, int64_t *cost) {
    return (MtfCertifiedNode){ .alive = true,
                               .values = values,
                               .cost = cost,
                               .pieces = g_ptr_array_new_with_free_func(free_piece),
                               .edges = g_array_new(FALSE, FALSE, sizeof(int)) };
}

static int64_t *divided_costs(const int64_t *costs, int count, int shift) {
    int64_t *list = g_new(int64_t, count);
    for (int i = 0; i < count; i++)
        list[i] = costs[i] >= MTF_IMPOSSIBLE ? NEVER : divided(costs[i], shift);
    return list;
}

MtfCertifiedEdge *mtf_certified_edge_at(const MtfCertifiedProblem *problem, int edge) {
    return &g_array_index(problem->edges, MtfCertifiedEdge, edge);
}

int mtf_certified_edge(const MtfCertifiedProblem *problem, int a, int b) {
    const GArray *edges = problem->nodes[a].edges;
    if (edges->len > problem->nodes[b].edges->len)
        edges = problem->nodes[b].edges;
    for (guint k = 0; k < edges->len; k++) {
        int e = g_array_index(edges, int, k);
        const MtfCertifiedEdge *edge = mtf_certified_edge_at(problem, e);
        if ((edge->a == a && edge->b == b) || (edge->a == b && edge->b == a))
            return e;
    }
    return -1;
}

int64_t *mtf_certified_entry(const MtfCertifiedProblem *problem, int edge, int node, int p, int q) {
    const MtfCertifiedEdge *found = mtf_certified_edge_at(problem, edge);
    gsize columns = (gsize)problem->nodes[found->b].values;
    return found->a == node ? &found->cost[(gsize)p * columns + (gsize)q]
                            : &found->cost[(gsize)q * columns + (gsize)p];
}

/* Adds a matrix [values of a][values of b], taken over, to the edge of two nodes. */
static bool add_matrix(MtfCertifiedProblem *problem, int a, int b, int64_t *matrix) {
    int known = mtf_certified_edge(problem, a, b);
    if (known < 0) {
        MtfCertifiedEdge edge = { a, b, matrix };
        int e = (int)problem->edges->len;
        g_array_append_val(problem->edges, edge);
        g_array_append_val(problem->nodes[a].edges, e);
        g_array_append_val(problem->nodes[b].edges, e);
        return true;
    }
    bool fits = true;
    int columns = problem->nodes[b].values;
    for (int p = 0; p < problem->nodes[a].values; p++)
        for (int q = 0; q < columns; q++)
            fits &= add_to(mtf_certified_entry(problem, known, a, p, q), matrix[p * columns + q]);
    g_free(matrix);
    return fits;
}

static void forget_edge(MtfCertifiedProblem *problem, int node, int edge) {
    GArray *edges = problem->nodes[node].edges;
    for (guint k = 0; k < edges->len; k++)
        if (g_array_index(edges, int, k) == edge) {
            g_array_remove_index_fast(edges, k);
            return;
        }
}

static void remove_edge(MtfCertifiedProblem *problem, int index) {
    MtfCertifiedEdge *edge = mtf_certified_edge_at(problem, index);
    forget_edge(problem, edge->a, index);
    forget_edge(problem, edge->b, index);
    g_clear_pointer(&edge->cost, g_free);
    edge->a = edge->b = -1;
}

static void remove_node(MtfCertifiedProblem *problem, int index) {
    MtfCertifiedNode *node = &problem->nodes[index];
    while (node->edges->len > 0)
        remove_edge(problem, g_array_index(node->edges, int, 0));
    g_ptr_array_set_size(node->pieces, 0);
    node->alive = false;
}

static void add_node(MtfCertifiedProblem *problem, int index, const MtfLayoutNode *from,
                     int cost_shift, int usage_shift) {
    MtfCertifiedNode *node = &problem->nodes[index];
    *node = new_node(from->strategies, divided_costs(from->costs, from->strategies, cost_shift));
    if (from->start >= from->end)
        return;
    int64_t *usage = g_new(int64_t, from->strategies);
    for (int p = 0; p < from->strategies; p++)
        usage[p] = divided(from->usages[p], usage_shift);
    g_ptr_array_add(node->pieces, new_piece(from->start, from->end, usage));
}

MtfCertifiedProblem *mtf_certified_new(const MtfLayoutProblem *from, int cost_shift,
                                       int usage_shift) {
    MtfCertifiedProblem *problem = g_new0(MtfCertifiedProblem, 1);
    problem->node_count = mtf_layout_problem_node_count(from);
    problem->nodes = g_new0(MtfCertifiedNode, problem->node_count + 1);
    problem->edges = g_array_new(FALSE, FALSE, sizeof(MtfCertifiedEdge));
    problem->has_limit = mtf_layout_problem_limit(from) != MTF_NO_LIMIT;
    problem->limit = divided(mtf_layout_problem_limit(from), usage_shift);
    bool fits = true;
    for (int v = 0; v < problem->node_count; v++)
        add_node(problem, v, mtf_layout_problem_node(from, v), cost_shift, usage_shift);
    for (int e = 0; e < mtf_layout_problem_edge_count(from); e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(from, e);
        int count = problem->nodes[edge->from].values * problem->nodes[edge->to].values;
        int64_t *matrix = divided_costs(edge->costs, count, cost_shift);
        fits &= add_matrix(problem, edge->from, edge->to, matrix);
    }
    if (!fits)
        g_clear_pointer(&problem, mtf_certified_free);
    return problem;
}

static void copy_node(MtfCertifiedNode *to, const MtfCertifiedNode *from) {
    gsize bytes = (gsize)from->values * sizeof(int64_t);
    *to = new_node(from->values, g_memdup2(from->cost, bytes));
    to->alive = from->alive;
    for (guint k = 0; k < from->pieces->len; k++) {
        const MtfCertifiedPiece *piece = g_ptr_array_index(from->pieces, k);
        g_ptr_array_add(to->pieces,
                        new_piece(piece->start, piece->end, g_memdup2(piece->usage, bytes)));
    }
    if (from->edges->len > 0)
        g_array_append_vals(to->edges, from->edges->data, from->edges->len);
}

MtfCertifiedProblem *mtf_certified_copy(const MtfCertifiedProblem *from) {
    MtfCertifiedProblem *problem = g_memdup2(from, sizeof *from);
    gsize rows = ((gsize)from->rows + 1) * sizeof(int64_t);
    problem->nodes = g_new0(MtfCertifiedNode, from->node_count + 1);
    problem->edges = g_array_new(FALSE, FALSE, sizeof(MtfCertifiedEdge));
    problem->times = g_memdup2(from->times, rows);
    problem->capacity = g_memdup2(from->capacity, rows);
    problem->least = NULL;
    for (int v = 0; v < from->node_count; v++)
        copy_node(&problem->nodes[v], &from->nodes[v]);
    for (guint e = 0; e < from->edges->len; e++) {
        MtfCertifiedEdge edge = *mtf_certified_edge_at(from, (int)e);
        if (edge.a >= 0)
            edge.cost =
                g_memdup2(edge.cost, (gsize)from->nodes[edge.a].values *
                                         (gsize)from->nodes[edge.b].values * sizeof *edge.cost);
        g_array_append_val(problem->edges, edge);
    }
    return problem;
}

void mtf_certified_free(MtfCertifiedProblem *problem) {
    if (problem == NULL)
        return;
    for (int v = 0; v < problem->node_count; v++) {
        g_free(problem->nodes[v].cost);
        g_ptr_array_unref(problem->nodes[v].pieces);
        g_array_unref(problem->nodes[v].edges);
    }
    for (guint e = 0; e < problem->edges->len; e++)
        g_free(mtf_certified_edge_at(problem, (int)e)->cost);
    g_array_unref(problem->edges);
    g_free(problem->nodes);
    g_free(problem->times);
    g_free(problem->capacity);
    g_free(problem->least);
    g_free(problem);
}

/* ---- memory ---- */

/* The first row whose time is at least `time`. */
static int row_at(const MtfCertifiedProblem *problem, int64_t time) {
    int low = 0, high = problem->rows;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (problem->times[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int compare_ints(const void *left, const void *right) {
    return *(const int *)left - *(const int *)right;
}

static void free_span(gpointer data) {
    MtfCertifiedSpan *span = data;
    g_free(span->usage);
    g_free(span);
}

/* The span from one border to the next, or NULL where no piece covers it. */
static MtfCertifiedSpan *span_between(const MtfCertifiedProblem *problem,
                                      const MtfCertifiedNode *node, int first, int last,
                                      bool *fits) {
    MtfCertifiedSpan *span = g_new(MtfCertifiedSpan, 1);
    *span = (MtfCertifiedSpan){ first, last, g_new0(int64_t, node->values) };
    bool covered = false;
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCertifiedPiece *piece = g_ptr_array_index(node->pieces, k);
        int64_t time = problem->times[first];
        if (time < piece->start || time >= piece->end)
            continue;
        covered = true;
        for (int p = 0; p < node->values; p++)
            *fits &= !__builtin_add_overflow(span->usage[p], piece->usage[p], &span->usage[p]);
    }
    if (covered)
        return span;
    free_span(span);
    return NULL;
}

GPtrArray *mtf_certified_spans(const MtfCertifiedProblem *problem, int index) {
    const MtfCertifiedNode *node = &problem->nodes[index];
    GPtrArray *spans = g_ptr_array_new_with_free_func(free_span);
    guint count = 2 * node->pieces->len;
    g_autofree int *borders = g_new(int, count + 1);
    for (guint k = 0; k < node->pieces->len; k++) {
        const MtfCertifiedPiece *piece = g_ptr_array_index(node->pieces, k);
        borders[2 * k] = row_at(problem, piece->start);
        borders[2 * k + 1] = row_at(problem, piece->end);
    }
    qsort(borders, count, sizeof *borders, compare_ints);
    bool fits = true;
    for (guint i = 0; i + 1 < count; i++) {
        if (borders[i] == borders[i + 1])
            continue;
        MtfCertifiedSpan *span = span_between(problem, node, borders[i], borders[i + 1], &fits);
        if (span != NULL)
            g_ptr_array_add(spans, span);
    }
    if (fits)
        return spans;
    g_ptr_array_unref(spans);
    return NULL;
}

int64_t mtf_certified_least_usage(const MtfCertifiedNode *node, const int64_t *usage) {
    int64_t least = NEVER;
    for (int p = 0; p < node->values; p++)
        if (node->cost[p] < NEVER)
            least = MIN(least, usage[p]);
    return least == NEVER ? 0 : least;
}

bool mtf_certified_rows(MtfCertifiedProblem *problem, const int64_t *times, int count,
                        GError **error) {
    if (!problem->has_limit && count > 0)
        return mtf_input_error(error, "the problem has no limit, so no time counts");
    int64_t *capacity = g_new(int64_t, count + 1);
    for (int i = 0; i < count; i++) {
        int old = row_at(problem, times[i]);
        bool known = old < problem->rows && problem->times[old] == times[i];
        if ((i > 0 && times[i] <= times[i - 1]) || (problem->has_rows && !known)) {
            g_free(capacity);
            return mtf_input_error(
                error, "time %" G_GINT64_FORMAT " is not one that still counts, in ascending order",
                times[i]);
        }
        capacity[i] = problem->has_rows ? problem->capacity[old] : problem->limit;
    }
    g_free(problem->times);
    g_free(problem->capacity);
    g_clear_pointer(&problem->least, g_free);
    problem->times = g_memdup2(times, ((gsize)count + 1) * sizeof *times);
    problem->capacity = capacity;
    problem->rows = count;
    problem->has_rows = true;
    return true;
}

/* ---- what needs a reason ---- */

static bool is_living(const MtfCertifiedProblem *problem, int64_t node, GError **error) {
    if (node >= 0 && node < problem->node_count && problem->nodes[node].alive)
        return true;
    return mtf_input_error(error, "%" G_GINT64_FORMAT " is not a node that is left", node);
}

int mtf_certified_other_end(const MtfCertifiedProblem *problem, int edge, int node) {
    const MtfCertifiedEdge *found = mtf_certified_edge_at(problem, edge);
    return found->a == node ? found->b : found->a;
}

/* Marks the listed values; false where one is out of range or listed twice. */
static bool mark_listed(const MtfCertifiedNode *node, const int64_t *list, int count, bool *kept,
                        GError **error) {
    for (int i = 0; i < count; i++) {
        if (list[i] < 0 || list[i] >= node->values || kept[list[i]])
            return mtf_input_error(error, "%" G_GINT64_FORMAT " is not a value that is left, once",
                                   list[i]);
        kept[list[i]] = true;
    }
    return true;
}

static int64_t *picked(const int64_t *old, const int64_t *list, int count, int step) {
    int64_t *numbers = g_new(int64_t, (gsize)count + 1);
    for (int i = 0; i < count; i++)
        numbers[i] = old[list[i * step]];
    return numbers;
}

/* The matrix of an edge with the listed values of a node as its rows. */
static int64_t *picked_matrix(const MtfCertifiedProblem *problem, int edge, int node,
                              const int64_t *list, int count, int step) {
    int columns = problem->nodes[mtf_certified_other_end(problem, edge, node)].values;
    int64_t *matrix = g_new(int64_t, (gsize)count * (gsize)columns);
    for (int i = 0; i < count; i++)
        for (int q = 0; q < columns; q++)
            matrix[i * columns + q] =
                *mtf_certified_entry(problem, edge, node, (int)list[i * step], q);
    return matrix;
}

/* The listed values, every `step` numbers one, become the node's; its cost stays to be set. */
static void pick_values(MtfCertifiedProblem *problem, int index, const int64_t *list, int count,
                        int step) {
    MtfCertifiedNode *node = &problem->nodes[index];
    for (guint k = 0; k < node->edges->len; k++) {
        int e = g_array_index(node->edges, int, k);
        int64_t *matrix = picked_matrix(problem, e, index, list, count, step);
        MtfCertifiedEdge *edge = mtf_certified_edge_at(problem, e);
        g_free(edge->cost);
        *edge = (MtfCertifiedEdge){ index, mtf_certified_other_end(problem, e, index), matrix };
    }
    for (guint k = 0; k < node->pieces->len; k++) {
        MtfCertifiedPiece *piece = g_ptr_array_index(node->pieces, k);
        int64_t *usage = picked(piece->usage, list, count, step);
        g_free(piece->usage);
        piece->usage = usage;
    }
    node->values = count;
}

bool mtf_certified_keep(MtfCertifiedProblem *problem, int index, const int64_t *list, int count,
                        GError **error) {
    if (!is_living(problem, index, error))
        return false;
    MtfCertifiedNode *node = &problem->nodes[index];
    g_autofree bool *kept = g_new0(bool, node->values + 1);
    if (!mark_listed(node, list, count, kept, error))
        return false;
    for (int p = 0; p < node->values; p++)
        if (!kept[p] && !mtf_certified_is_impossible(problem, index, p) &&
            !mtf_certified_is_replaced(problem, index, kept, p) &&
            !mtf_certified_is_too_large(problem, index, p))
            return mtf_input_error(error, "no reason to drop value %d of node %d", p, index);
    problem->is_dead |= count == 0;
    int64_t *cost = picked(node->cost, list, count, 1);
    pick_values(problem, index, list, count, 1);
    g_free(node->cost);
    node->cost = cost;
    return true;
}

/* ---- joining ---- */

static bool is_pair_possible(const MtfCertifiedProblem *problem, int a, int b, int edge, int p,
                             int q) {
    return problem->nodes[a].cost[p] < NEVER && problem->nodes[b].cost[q] < NEVER &&
           (edge < 0 || *mtf_certified_entry(problem, edge, a, p, q) < NEVER);
}

static bool mark_pairs(const int64_t *pairs, int count, int rows, int columns, bool *listed,
                       GError **error) {
    for (int i = 0; i < count; i++) {
        int64_t p = pairs[2 * i], q = pairs[2 * i + 1];
        if (p < 0 || p >= rows || q < 0 || q >= columns)
            return mtf_input_error(
                error, "(%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT ") are not values that are left",
                p, q);
        listed[p * columns + q] = true;
    }
    return true;
}

/* Whether the pairs are in range and none that is possible is missing. */
static bool check_pairs(const MtfCertifiedProblem *problem, int a, int b, const int64_t *pairs,
                        int count, GError **error) {
    int rows = problem->nodes[a].values, columns = problem->nodes[b].values;
    int edge = mtf_certified_edge(problem, a, b);
    g_autofree bool *listed = g_new0(bool, (gsize)rows *(gsize)columns + 1);
    if (!mark_pairs(pairs, count, rows, columns, listed, error))
        return false;
    for (int p = 0; p < rows; p++)
        for (int q = 0; q < columns; q++)
            if (!listed[p * columns + q] && is_pair_possible(problem, a, b, edge, p, q))
                return mtf_input_error(error, "the pair (%d, %d) of %d and %d is possible", p, q, a,
                                       b);
    return true;
}

/* What a pair costs, the edge between the two included; NULL where a sum is too large. */
static int64_t *pair_costs(const MtfCertifiedProblem *problem, int a, int b, const int64_t *pairs,
                           int count) {
    int edge = mtf_certified_edge(problem, a, b);
    g_autofree int64_t *cost = g_new(int64_t, count + 1);
    for (int i = 0; i < count; i++) {
        int p = (int)pairs[2 * i], q = (int)pairs[2 * i + 1];
        cost[i] = problem->nodes[a].cost[p];
        if (!add_to(&cost[i], problem->nodes[b].cost[q]) ||
            (edge >= 0 && !add_to(&cost[i], *mtf_certified_entry(problem, edge, a, p, q))))
            return NULL;
    }
    return g_steal_pointer(&cost);
}

static bool add_piece(MtfCertifiedNode *node, MtfCertifiedPiece *more) {
    bool fits = true;
    for (guint k = 0; k < node->pieces->len; k++) {
        MtfCertifiedPiece *piece = g_ptr_array_index(node->pieces, k);
        if (piece->start != more->start || piece->end != more->end)
            continue;
        for (int p = 0; p < node->values; p++)
            fits &= !__builtin_add_overflow(piece->usage[p], more->usage[p], &piece->usage[p]);
        free_piece(more);
        return fits;
    }
    g_ptr_array_add(node->pieces, more);
    return true;
}

/* Moves what node b has to node a, which has the pairs' values by now. */
static bool move_all(MtfCertifiedProblem *problem, int a, int b, const int64_t *pairs, int count) {
    MtfCertifiedNode *from = &problem->nodes[b];
    bool fits = true;
    for (guint k = 0; k < from->edges->len; k++) {
        int e = g_array_index(from->edges, int, k);
        int64_t *matrix = picked_matrix(problem, e, b, pairs + 1, count, 2);
        fits &= add_matrix(problem, a, mtf_certified_other_end(problem, e, b), matrix);
    }
    for (guint k = 0; k < from->pieces->len; k++) {
        const MtfCertifiedPiece *piece = g_ptr_array_index(from->pieces, k);
        int64_t *usage = picked(piece->usage, pairs + 1, count, 2);
        fits &= add_piece(&problem->nodes[a], new_piece(piece->start, piece->end, usage));
    }
    remove_node(problem, b);
    return fits;
}

bool mtf_certified_join(MtfCertifiedProblem *problem, int a, int b, const int64_t *pairs, int count,
                        GError **error) {
    if (!is_living(problem, a, error) || !is_living(problem, b, error))
        return false;
    if (a == b || count == 0)
        return mtf_input_error(error, "two nodes and their possible pairs are wanted");
    if (!check_pairs(problem, a, b, pairs, count, error))
        return false;
    int64_t *cost = pair_costs(problem, a, b, pairs, count);
    if (cost == NULL)
        return too_large(error);
    int edge = mtf_certified_edge(problem, a, b);
    if (edge >= 0)
        remove_edge(problem, edge);
    pick_values(problem, a, pairs, count, 2);
    g_free(problem->nodes[a].cost);
    problem->nodes[a].cost = cost;
    return move_all(problem, a, b, pairs, count) || too_large(error);
}

/* ---- eliminating ---- */

/* Takes what the node uses, whatever its value, from the capacity; false where its values differ. */
static bool take_usage(MtfCertifiedProblem *problem, int index) {
    const MtfCertifiedNode *node = &problem->nodes[index];
    GPtrArray *spans = mtf_certified_spans(problem, index);
    bool constant = spans != NULL;
    for (guint k = 0; constant && k < spans->len; k++) {
        const MtfCertifiedSpan *span = g_ptr_array_index(spans, k);
        int64_t least = mtf_certified_least_usage(node, span->usage);
        for (int p = 0; p < node->values; p++)
            constant &= node->cost[p] == NEVER || span->usage[p] == least;
        for (int r = span->first; constant && r < span->last; r++)
            constant = !__builtin_sub_overflow(problem->capacity[r], least, &problem->capacity[r]);
    }
    if (spans != NULL)
        g_ptr_array_unref(spans);
    g_clear_pointer(&problem->least, g_free);
    return constant;
}

/* The least cost of a node, given the values of its neighbours; it may have none. */
static bool least_beside(const MtfCertifiedProblem *problem, int index, const int *values,
                         int64_t *least) {
    const MtfCertifiedNode *node = &problem->nodes[index];
    *least = NEVER;
    for (int s = 0; s < node->values; s++) {
        int64_t cost = node->cost[s];
        for (guint k = 0; k < node->edges->len; k++)
            if (!add_to(&cost, *mtf_certified_entry(problem, g_array_index(node->edges, int, k),
                                                    index, s, values[k])))
                return false;
        *least = MIN(*least, cost);
    }
    return true;
}

static bool fold_away(MtfCertifiedProblem *problem, int index) {
    int64_t least = NEVER;
    if (!least_beside(problem, index, &(int){ 0 }, &least))
        return false;
    problem->is_dead |= least == NEVER;
    return least == NEVER || add_to(&problem->constant, least);
}

static bool fold_into_node(MtfCertifiedProblem *problem, int index, int other) {
    for (int p = 0; p < problem->nodes[other].values; p++) {
        int64_t least;
        if (!least_beside(problem, index, &p, &least) ||
            !add_to(&problem->nodes[other].cost[p], least))
            return false;
    }
    return true;
}

static bool fold_into_edge(MtfCertifiedProblem *problem, int index, int a, int b) {
    int rows = problem->nodes[a].values, columns = problem->nodes[b].values;
    g_autofree int64_t *matrix = g_new(int64_t, (gsize)rows * (gsize)columns);
    for (int p = 0; p < rows; p++)
        for (int q = 0; q < columns; q++)
            if (!least_beside(problem, index, (int[]){ p, q }, &matrix[p * columns + q]))
                return false;
    return add_matrix(problem, a, b, g_steal_pointer(&matrix));
}

bool mtf_certified_eliminate(MtfCertifiedProblem *problem, int index, GError **error) {
    if (!is_living(problem, index, error))
        return false;
    const GArray *edges = problem->nodes[index].edges;
    if (edges->len > 2)
        return mtf_input_error(error, "node %d has %u neighbours", index, edges->len);
    if (!take_usage(problem, index))
        return mtf_input_error(error, "values of node %d differ in memory", index);
    int ends[2] = { 0 };
    for (guint k = 0; k < edges->len; k++)
        ends[k] = mtf_certified_other_end(problem, g_array_index(edges, int, k), index);
    bool fits = edges->len == 0   ? fold_away(problem, index)
                : edges->len == 1 ? fold_into_node(problem, index, ends[0])
                                  : fold_into_edge(problem, index, ends[0], ends[1]);
    remove_node(problem, index);
    return fits || too_large(error);
}

/* ---- the rest ---- */

bool mtf_certified_move(MtfCertifiedProblem *problem, int index, int other, const int64_t *message,
                        int count, GError **error) {
    if (!is_living(problem, index, error) || !is_living(problem, other, error))
        return false;
    MtfCertifiedNode *node = &problem->nodes[index];
    int edge = mtf_certified_edge(problem, index, other);
    if (edge < 0 || count != node->values)
        return mtf_input_error(error, "no edge (%d, %d) with %d values at %d", index, other, count,
                               index);
    bool fits = true;
    for (int p = 0; p < count; p++) {
        fits &= message[p] > INT64_MIN && message[p] < NEVER && add_to(&node->cost[p], message[p]);
        for (int q = 0; fits && q < problem->nodes[other].values; q++)
            fits &= add_to(mtf_certified_entry(problem, edge, index, p, q), -message[p]);
    }
    return fits || too_large(error);
}

bool mtf_certified_part(MtfCertifiedProblem *problem, int a, int b, GError **error) {
    if (!is_living(problem, a, error) || !is_living(problem, b, error))
        return false;
    int edge = mtf_certified_edge(problem, a, b);
    if (edge < 0)
        return mtf_input_error(error, "no edge (%d, %d)", a, b);
    for (int p = 0; p < problem->nodes[a].values; p++)
        for (int q = 0; q < problem->nodes[b].values; q++)
            if (*mtf_certified_entry(problem, edge, a, p, q) != 0)
                return mtf_input_error(error, "the pair (%d, %d) of %d and %d costs something", p,
                                       q, a, b);
    remove_edge(problem, edge);
    return true;
}

static MtfInt128 most_of(const int64_t *costs, int count) {
    int64_t most = INT64_MIN;
    for (int i = 0; i < count; i++)
        if (costs[i] < NEVER)
            most = MAX(most, costs[i]);
    return most == INT64_MIN ? 0 : most;
}

MtfInt128 mtf_certified_worst(const MtfCertifiedProblem *problem) {
    MtfInt128 worst = problem->constant;
    for (int v = 0; v < problem->node_count; v++)
        if (problem->nodes[v].alive)
            worst += most_of(problem->nodes[v].cost, problem->nodes[v].values);
    for (guint e = 0; e < problem->edges->len; e++) {
        const MtfCertifiedEdge *edge = mtf_certified_edge_at(problem, (int)e);
        if (edge->a >= 0)
            worst += most_of(edge->cost,
                             problem->nodes[edge->a].values * problem->nodes[edge->b].values);
    }
    return worst;
}

/* The only possible value of a node; -1 where that is not one. */
static int only_value(const MtfCertifiedNode *node) {
    int found = -1;
    for (int p = 0; p < node->values; p++) {
        if (node->cost[p] == NEVER)
            continue;
        if (found >= 0)
            return -1;
        found = p;
    }
    return found;
}

bool mtf_certified_single(const MtfCertifiedProblem *problem, bool *legal, MtfInt128 *cost) {
    *legal = true;
    *cost = problem->constant;
    g_autofree int *values = g_new0(int, problem->node_count + 1);
    for (int v = 0; v < problem->node_count; v++) {
        if (!problem->nodes[v].alive)
            continue;
        values[v] = only_value(&problem->nodes[v]);
        if (values[v] < 0)
            return false;
        *cost += problem->nodes[v].cost[values[v]];
    }
    for (guint e = 0; e < problem->edges->len; e++) {
        const MtfCertifiedEdge *edge = mtf_certified_edge_at(problem, (int)e);
        if (edge->a < 0)
            continue;
        int64_t entry =
            *mtf_certified_entry(problem, (int)e, edge->a, values[edge->a], values[edge->b]);
        *legal &= entry < NEVER;
        *cost += entry;
    }
    return true;
}
