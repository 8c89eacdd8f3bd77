// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/pipedream_profile.h"

#include "layouts/base/error.h"

#include <math.h>
#include <string.h>

#define SEPARATOR " -- "
#define MILLISECOND 1e-3

typedef struct {
    const char *name; /* of the file */
    int line;
    MtfStageGraph *graph;
    GHashTable *nodes;  /* name to number + 1 */
    GPtrArray *sources; /* of numbers: nodes described as inputs */
} Reading;

static bool fail(const Reading *reading, GError **error, const char *what, const char *quoted) {
    return mtf_input_error(error, "%s: line %d: %s \"%.60s\"", reading->name, reading->line, what,
                           quoted);
}

/* One number of at least 0, or a list of them in brackets, which is summed. */
static bool read_sizes(const char *text, double *sum) {
    bool listed = *text == '[';
    *sum = 0;
    for (text += listed;;) {
        char *end;
        double number = g_ascii_strtod(text, &end);
        if (end == text || !isfinite(number) || number < 0)
            return false;
        *sum += number;
        end += strspn(end, " ");
        if (!listed || *end == ']')
            return true;
        if (*end != ';' && *end != ',')
            return false;
        text = end + 1;
    }
}

static bool read_field(const Reading *reading, const char *fields, const char *key, double *value,
                       GError **error) {
    g_autofree char *pattern = g_strconcat(key, "=", NULL);
    const char *at = strstr(fields, pattern);
    if (at == NULL)
        return mtf_input_error(error, "%s: line %d: the node has no %s (as in \"%s1.5\")",
                               reading->name, reading->line, key, pattern);
    at += strlen(pattern);
    return read_sizes(at, value) ||
           mtf_input_error(error, "%s: line %d: %s \"%.30s\" is not a number of at least 0",
                           reading->name, reading->line, key, at);
}

static bool read_fields(const Reading *reading, const char *fields, MtfStageWay *way,
                        double *output, GError **error) {
    double forward, backward, activation, parameters;
    if (!read_field(reading, fields, "forward_compute_time", &forward, error) ||
        !read_field(reading, fields, "backward_compute_time", &backward, error) ||
        !read_field(reading, fields, "activation_size", &activation, error) ||
        !read_field(reading, fields, "parameter_size", &parameters, error))
        return false;
    *way = (MtfStageWay){ .degree = 1, .seconds = (forward + backward) * MILLISECOND };
    way->parameter_bytes = parameters;
    way->flight_bytes = activation + parameters;
    *output = activation;
    return true;
}

static bool read_node(Reading *reading, const char *line, const char *separator, GError **error) {
    const char *description = separator + strlen(SEPARATOR);
    const char *fields = g_strrstr(description, SEPARATOR "forward_compute_time=");
    g_autofree char *name = g_strstrip(g_strndup(line, (gsize)(separator - line)));
    MtfStageWay way;
    double output;
    if (*name == '\0' || fields == NULL)
        return fail(reading, error,
                    "this is neither \"NODE -- DESCRIPTION -- forward_compute_time=…\" nor "
                    "\"NODE -- NODE\":",
                    line);
    if (g_hash_table_contains(reading->nodes, name))
        return fail(reading, error, "there are two nodes", name);
    if (!read_fields(reading, fields, &way, &output, error))
        return false;
    int node = mtf_stage_graph_add_node(reading->graph, name);
    mtf_stage_graph_add_way(reading->graph, node, &way);
    mtf_stage_graph_node(reading->graph, node)->output_bytes = output;
    g_hash_table_insert(reading->nodes, g_steal_pointer(&name), GINT_TO_POINTER(node + 1));
    if (g_str_has_prefix(description, "Input"))
        g_ptr_array_add(reading->sources, GINT_TO_POINTER(node));
    return true;
}

static int find_node(const Reading *reading, const char *name) {
    return GPOINTER_TO_INT(g_hash_table_lookup(reading->nodes, name)) - 1;
}

static bool read_edge(Reading *reading, char **ends, GError **error) {
    int place[2];
    for (int i = 0; i < 2; i++) {
        place[i] = find_node(reading, g_strstrip(ends[i]));
        if (place[i] < 0)
            return fail(reading, error, "the edge joins no node named", ends[i]);
    }
    if (place[0] == place[1])
        return fail(reading, error, "the edge joins a node with itself:", ends[0]);
    mtf_stage_graph_add_edge(reading->graph, place[0], place[1], 0);
    return true;
}

/* An edge has two parts, a node at least three. */
static bool read_line(Reading *reading, const char *line, bool edges, GError **error) {
    const char *separator = strstr(line, SEPARATOR);
    if (separator == NULL)
        return *line == '\0' || fail(reading, error, "there is no \" -- \" in", line);
    bool is_edge = strstr(separator + strlen(SEPARATOR), SEPARATOR) == NULL &&
                   strstr(separator, "compute_time=") == NULL;
    if (is_edge != edges)
        return true;
    if (!edges)
        return read_node(reading, line, separator, error);
    g_auto(GStrv) ends = g_strsplit(line, SEPARATOR, 2);
    return read_edge(reading, ends, error);
}

static bool read_lines(Reading *reading, char **lines, bool edges, GError **error) {
    for (reading->line = 1; lines[reading->line - 1] != NULL; reading->line++) {
        g_autofree char *line = g_strdup(lines[reading->line - 1]);
        if (!read_line(reading, g_strstrip(line), edges, error))
            return false;
        if (mtf_stage_graph_size(reading->graph) > MTF_STAGE_NODES_MAX)
            return mtf_input_error(error, "%s: more than %d nodes", reading->name,
                                   MTF_STAGE_NODES_MAX);
    }
    return true;
}

static void free_inputs(const Reading *reading) {
    for (guint i = 0; i < reading->sources->len; i++) {
        int number = GPOINTER_TO_INT(g_ptr_array_index(reading->sources, i));
        MtfStageNode *node = mtf_stage_graph_node(reading->graph, number);
        if (node->entries->len > 0)
            continue;
        g_array_index(node->ways, MtfStageWay, 0) = (MtfStageWay){ .degree = 1 };
        node->output_bytes = 0;
    }
}

/* Profilers write all nodes before the first edge: a file that was cut off has nodes that nothing
 * joins. */
static bool check_edges(const Reading *reading, GError **error) {
    int n = mtf_stage_graph_size(reading->graph);
    for (int i = 0; n > 1 && i < n; i++) {
        const MtfStageNode *node = mtf_stage_graph_node(reading->graph, i);
        if (node->entries->len + node->exits->len == 0)
            return mtf_input_error(error,
                                   "%s: no edge joins the node \"%.60s\" with another"
                                   " (is this all of the file?)",
                                   reading->name, node->name);
    }
    return true;
}

static bool check_graph(const Reading *reading, GError **error) {
    int on_circle;
    if (mtf_stage_graph_size(reading->graph) == 0)
        return mtf_input_error(error, "%s: there is no node in it", reading->name);
    g_autofree int *order = mtf_stage_graph_order(reading->graph, &on_circle);
    if (order == NULL)
        return mtf_input_error(
            error, "%s: the edges lead in a circle through \"%.60s\" or before it", reading->name,
            mtf_stage_graph_node(reading->graph, on_circle)->name);
    return check_edges(reading, error);
}

MtfStageGraph *mtf_pipedream_profile_parse(const char *name, const char *text, GError **error) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(MtfStageGraph) graph = mtf_stage_graph_new(MTF_STAGE_PIPEDREAM);
    g_autoptr(GHashTable) nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) sources = g_ptr_array_new();
    Reading reading = { name, 0, graph, nodes, sources };
    if (!read_lines(&reading, lines, false, error) || !read_lines(&reading, lines, true, error) ||
        !check_graph(&reading, error))
        return NULL;
    free_inputs(&reading);
    return g_steal_pointer(&graph);
}
