// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/solver/problem/layout_problem_json.h"

#include "layouts/base/json_reader.h"
#include "layouts/base/json_writer.h"

#include <inttypes.h>
#include <string.h>

/* The lists of a file that run in step, and one place in each. */
typedef struct NodeLists {
    MtfJson intervals, costs, usages;
} NodeLists;

/* Reads one cost or usage: an integer of at most 2^53, or 10^18 and more. */
static bool read_value(const MtfJson *where, int64_t low, int64_t *value, GError **error) {
    double number;
    if (!mtf_json_number(where, &number, error))
        return false;
    if (number >= (double)MTF_IMPOSSIBLE) {
        *value = MTF_IMPOSSIBLE;
        return true;
    }
    return mtf_json_integer(where, low, MTF_LAYOUT_MAX_COST, value, error);
}

/* Reads a list of `count` values (any number of them when `count` is negative) into `values`. */
static bool read_values(const MtfJson *list, int count, int64_t low, GArray *values,
                        GError **error) {
    if (!mtf_json_array(list, error))
        return false;
    g_array_set_size(values, 0);
    MtfJson item;
    for (bool more = mtf_json_first(list, &item); more; more = mtf_json_next(&item)) {
        int64_t value;
        if (!read_value(&item, low, &value, error))
            return false;
        g_array_append_val(values, value);
    }
    if (count >= 0 && values->len != (guint)count)
        return mtf_json_fail(list, error, "%u numbers stand where %d are expected", values->len,
                             count);
    return true;
}

/* Reads a pair of integers, as intervals and the ends of edges are. */
static bool read_pair(const MtfJson *list, int64_t low, int64_t high, int64_t pair[2],
                      GError **error) {
    if (!mtf_json_array(list, error))
        return false;
    if (mtf_json_length(list) != 2)
        return mtf_json_fail(list, error, "two integers are expected here");
    MtfJson item;
    mtf_json_first(list, &item);
    if (!mtf_json_integer(&item, low, high, &pair[0], error))
        return false;
    mtf_json_next(&item);
    return mtf_json_integer(&item, low, high, &pair[1], error);
}

static bool read_node(MtfLayoutProblem *problem, const NodeLists *at, GArray *costs, GArray *usages,
                      GError **error) {
    int64_t interval[2];
    if (!read_pair(&at->intervals, -MTF_JSON_MAX_INTEGER, MTF_JSON_MAX_INTEGER, interval, error) ||
        !read_values(&at->costs, -1, -MTF_LAYOUT_MAX_COST, costs, error))
        return false;
    if (interval[0] > interval[1])
        return mtf_json_fail(&at->intervals, error, "the interval ends before it starts");
    if (costs->len < 1 || costs->len > MTF_LAYOUT_MAX_STRATEGIES)
        return mtf_json_fail(&at->costs, error, "%u strategies are not between 1 and %d",
                             costs->len, MTF_LAYOUT_MAX_STRATEGIES);
    if (!read_values(&at->usages, (int)costs->len, 0, usages, error))
        return false;
    for (guint s = 0; s < usages->len; s++) {
        int64_t *usage = &g_array_index(usages, int64_t, s);
        if (*usage < MTF_IMPOSSIBLE)
            continue;
        *usage = 0;
        g_array_index(costs, int64_t, s) = MTF_IMPOSSIBLE;
    }
    MtfLayoutNode node = { interval[0], interval[1], (int)costs->len,
                           (const int64_t *)(void *)costs->data,
                           (const int64_t *)(void *)usages->data };
    mtf_layout_problem_add_node(problem, node);
    return true;
}

/* Fails unless the list of that key is as long as `count`. */
static bool get_list(const MtfJson *object, const char *key, int count, MtfJson *list,
                     GError **error) {
    if (!mtf_json_get(object, key, list, error) || !mtf_json_array(list, error))
        return false;
    int length = mtf_json_length(list);
    return count < 0 || length == count ||
           mtf_json_fail(list, error, "the list has %d elements where %d are expected", length,
                         count);
}

static bool read_nodes(MtfLayoutProblem *problem, const MtfJson *nodes, GError **error) {
    static const char *const keys[] = { "intervals", "costs", "usages", NULL };
    NodeLists lists, at;
    if (!mtf_json_keys(nodes, keys, error) || !get_list(nodes, "costs", -1, &lists.costs, error))
        return false;
    int count = mtf_json_length(&lists.costs);
    if (!get_list(nodes, "intervals", count, &lists.intervals, error) ||
        !get_list(nodes, "usages", count, &lists.usages, error))
        return false;
    g_autoptr(GArray) costs = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_autoptr(GArray) usages = g_array_new(FALSE, FALSE, sizeof(int64_t));
    bool more = mtf_json_first(&lists.costs, &at.costs) &&
                mtf_json_first(&lists.intervals, &at.intervals) &&
                mtf_json_first(&lists.usages, &at.usages);
    while (more) {
        if (!read_node(problem, &at, costs, usages, error))
            return false;
        more =
            mtf_json_next(&at.costs) && mtf_json_next(&at.intervals) && mtf_json_next(&at.usages);
    }
    return true;
}

static bool read_edge(MtfLayoutProblem *problem, const MtfJson *ends, const MtfJson *matrix,
                      GArray *costs, GError **error) {
    int64_t pair[2];
    if (!read_pair(ends, 0, mtf_layout_problem_node_count(problem) - 1, pair, error))
        return false;
    if (pair[0] == pair[1])
        return mtf_json_fail(ends, error, "the edge joins node %" PRId64 " with itself", pair[0]);
    int rows = mtf_layout_problem_node(problem, (int)pair[0])->strategies;
    int columns = mtf_layout_problem_node(problem, (int)pair[1])->strategies;
    if (!read_values(matrix, rows * columns, -MTF_LAYOUT_MAX_COST, costs, error))
        return false;
    MtfLayoutEdge edge = { (int)pair[0], (int)pair[1], (const int64_t *)(void *)costs->data };
    mtf_layout_problem_add_edge(problem, edge);
    return true;
}

static bool read_edges(MtfLayoutProblem *problem, const MtfJson *edges, GError **error) {
    static const char *const keys[] = { "nodes", "costs", NULL };
    MtfJson ends, matrices, end, matrix;
    if (!mtf_json_keys(edges, keys, error) || !get_list(edges, "nodes", -1, &ends, error) ||
        !get_list(edges, "costs", mtf_json_length(&ends), &matrices, error))
        return false;
    g_autoptr(GArray) costs = g_array_new(FALSE, FALSE, sizeof(int64_t));
    bool more = mtf_json_first(&ends, &end) && mtf_json_first(&matrices, &matrix);
    while (more) {
        if (!read_edge(problem, &end, &matrix, costs, error))
            return false;
        more = mtf_json_next(&end) && mtf_json_next(&matrix);
    }
    return true;
}

static bool read_limit(MtfLayoutProblem *problem, const MtfJson *object, GError **error) {
    MtfJson limit;
    int64_t value;
    if (!mtf_json_find(object, "usage_limit", &limit))
        return true;
    if (!read_value(&limit, 0, &value, error))
        return false;
    mtf_layout_problem_set_limit(problem, value < MTF_IMPOSSIBLE ? value : MTF_NO_LIMIT);
    return true;
}

static MtfLayoutProblem *read_document(const MtfJsonDocument *document, GError **error) {
    static const char *const root_keys[] = { "problem", NULL };
    static const char *const keys[] = { "name", "nodes", "edges", "usage_limit", NULL };
    MtfJson root = mtf_json_root(document), object, name, nodes, edges;
    const char *text = "";
    if (!mtf_json_keys(&root, root_keys, error) ||
        !mtf_json_get(&root, "problem", &object, error) || !mtf_json_keys(&object, keys, error) ||
        (mtf_json_find(&object, "name", &name) && !mtf_json_string(&name, &text, error)) ||
        !mtf_json_get(&object, "nodes", &nodes, error) ||
        !mtf_json_get(&object, "edges", &edges, error))
        return NULL;
    g_autoptr(MtfLayoutProblem) problem = mtf_layout_problem_new(text);
    if (!read_nodes(problem, &nodes, error) || !read_edges(problem, &edges, error) ||
        !read_limit(problem, &object, error))
        return NULL;
    return g_steal_pointer(&problem);
}

MtfLayoutProblem *mtf_layout_problem_load(const char *path, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    return document == NULL ? NULL : read_document(document, error);
}

MtfLayoutProblem *mtf_layout_problem_parse(const char *name, const char *text, gsize length,
                                           GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse(name, text, length, error);
    return document == NULL ? NULL : read_document(document, error);
}

static void print_list(GString *out, const int64_t *values, gsize count) {
    g_string_append_c(out, '[');
    for (gsize i = 0; i < count; i++)
        g_string_append_printf(out, i > 0 ? ",%" PRId64 : "%" PRId64, values[i]);
    g_string_append_c(out, ']');
}

/* Prints `"key": [` and one line for each node, by `print`. */
static void print_nodes(GString *out, const MtfLayoutProblem *problem, const char *key,
                        void (*print)(GString *, const MtfLayoutNode *)) {
    g_string_append_printf(out, "\"%s\": [", key);
    for (int v = 0; v < mtf_layout_problem_node_count(problem); v++) {
        g_string_append(out, v > 0 ? ",\n" : "\n");
        print(out, mtf_layout_problem_node(problem, v));
    }
    g_string_append(out, "]");
}

static void print_interval(GString *out, const MtfLayoutNode *node) {
    print_list(out, (const int64_t[]){ node->start, node->end }, 2);
}

static void print_costs(GString *out, const MtfLayoutNode *node) {
    print_list(out, node->costs, (gsize)node->strategies);
}

static void print_usages(GString *out, const MtfLayoutNode *node) {
    print_list(out, node->usages, (gsize)node->strategies);
}

static void print_edges(GString *out, const MtfLayoutProblem *problem) {
    int count = mtf_layout_problem_edge_count(problem);
    g_string_append(out, "\"nodes\": [");
    for (int e = 0; e < count; e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        g_string_append(out, e > 0 ? ",\n" : "\n");
        print_list(out, (const int64_t[]){ edge->from, edge->to }, 2);
    }
    g_string_append(out, "],\n\"costs\": [");
    for (int e = 0; e < count; e++) {
        const MtfLayoutEdge *edge = mtf_layout_problem_edge(problem, e);
        g_string_append(out, e > 0 ? ",\n" : "\n");
        print_list(out, edge->costs,
                   (gsize)mtf_layout_problem_node(problem, edge->from)->strategies *
                       (gsize)mtf_layout_problem_node(problem, edge->to)->strategies);
    }
    g_string_append(out, "]");
}

char *mtf_layout_problem_print(const MtfLayoutProblem *problem) {
    cJSON *name = cJSON_CreateString(mtf_layout_problem_name(problem));
    char *quoted = cJSON_PrintUnformatted(name);
    GString *out = g_string_new("{\"problem\": {\"name\": ");
    g_string_append_printf(out, "%s,\n\"nodes\": {", quoted);
    cJSON_free(quoted);
    cJSON_Delete(name);
    print_nodes(out, problem, "intervals", print_interval);
    g_string_append(out, ",\n");
    print_nodes(out, problem, "costs", print_costs);
    g_string_append(out, ",\n");
    print_nodes(out, problem, "usages", print_usages);
    g_string_append(out, "},\n\"edges\": {");
    print_edges(out, problem);
    g_string_append(out, "}");
    if (mtf_layout_problem_limit(problem) != MTF_NO_LIMIT)
        g_string_append_printf(out, ",\n\"usage_limit\": %" PRId64,
                               mtf_layout_problem_limit(problem));
    g_string_append(out, "}}\n");
    return g_string_free(out, FALSE);
}

bool mtf_layout_problem_save(const MtfLayoutProblem *problem, const char *path, GError **error) {
    g_autofree char *text = mtf_layout_problem_print(problem);
    return mtf_file_write(path, text, strlen(text), error);
}
