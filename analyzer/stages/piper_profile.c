// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/stages/piper_profile.h"

#include <inttypes.h>

typedef struct {
    MtfStageGraph *graph;
    GHashTable *numbers; /* id in the file to number + 1 */
} Reading;

static bool read_amount(const MtfJson *object, const char *key, double *amount, GError **error) {
    MtfJson value;
    if (!mtf_json_get(object, key, &value, error) || !mtf_json_number(&value, amount, error))
        return false;
    return *amount >= 0 || mtf_json_fail(&value, error, "%g is below 0", *amount);
}

static bool read_id(const MtfJson *object, const char *key, int64_t *id, GError **error) {
    return mtf_json_get_integer(object, key, -MTF_JSON_MAX_INTEGER, MTF_JSON_MAX_INTEGER, id,
                                error);
}

static char *id_text(int64_t id) {
    return g_strdup_printf("%" PRId64, id);
}

static bool read_node_id(Reading *reading, const MtfJson *object, GError **error) {
    int64_t id;
    if (!mtf_json_object(object, error) || !read_id(object, "id", &id, error))
        return false;
    g_autofree char *name = id_text(id);
    if (g_hash_table_contains(reading->numbers, name))
        return mtf_json_fail(object, error, "there are two nodes with the id %s", name);
    int node = mtf_stage_graph_add_node(reading->graph, name);
    mtf_stage_graph_node(reading->graph, node)->is_number = true;
    g_hash_table_insert(reading->numbers, g_steal_pointer(&name), GINT_TO_POINTER(node + 1));
    return true;
}

static bool read_end(const Reading *reading, const MtfJson *object, const char *key, int *node,
                     GError **error) {
    int64_t id;
    if (!read_id(object, key, &id, error))
        return false;
    g_autofree char *name = id_text(id);
    *node = GPOINTER_TO_INT(g_hash_table_lookup(reading->numbers, name)) - 1;
    return *node >= 0 ||
           mtf_json_fail(object, error, "%s: there is no node with the id %s", key, name);
}

static bool read_edge(const Reading *reading, const MtfJson *object, GError **error) {
    int from, to;
    double bytes;
    if (!mtf_json_object(object, error) || !read_end(reading, object, "sourceId", &from, error) ||
        !read_end(reading, object, "destId", &to, error) ||
        !read_amount(object, "communicationCost", &bytes, error))
        return false;
    if (from == to)
        return mtf_json_fail(object, error, "the edge joins a node with itself");
    mtf_stage_graph_add_edge(reading->graph, from, to, bytes);
    return true;
}

/* {"3": 8192, …}: bytes by the id of a neighbour, which must be at the far end of one of `edges`;
 * every one of them must be there. */
static bool read_syncs(const Reading *reading, const MtfJson *way, const char *key,
                       const GArray *edges, double *bytes, GError **error) {
    MtfJson object, value;
    bool incoming = g_str_equal(key, "syncTimeFw");
    if (!mtf_json_get_object(way, key, &object, error))
        return false;
    for (guint i = 0; i < edges->len; i++) {
        const MtfStageEdge *edge =
            mtf_stage_graph_edge(reading->graph, g_array_index(edges, int, i));
        int far = incoming ? edge->from : edge->to;
        if (!read_amount(&object, mtf_stage_graph_node(reading->graph, far)->name, &bytes[i],
                         error))
            return false;
    }
    for (bool more = mtf_json_first(&object, &value); more; more = mtf_json_next(&value)) {
        bool known = false;
        for (guint i = 0; i < edges->len && !known; i++) {
            const MtfStageEdge *edge =
                mtf_stage_graph_edge(reading->graph, g_array_index(edges, int, i));
            int far = incoming ? edge->from : edge->to;
            known =
                g_str_equal(mtf_stage_graph_node(reading->graph, far)->name, mtf_json_key(&value));
        }
        if (!known)
            return mtf_json_fail(&value, error, "no edge joins the node with this one");
    }
    return true;
}

static bool read_way(const Reading *reading, int number, const MtfJson *object, MtfStageWay *way,
                     GError **error) {
    const MtfStageNode *node = mtf_stage_graph_node(reading->graph, number);
    const char *name;
    if (!mtf_json_get_string(object, "id", &name, error) ||
        !read_amount(object, "timePerSample", &way->seconds, error) ||
        !read_amount(object, "parameterSize", &way->parameter_bytes, error) ||
        !read_amount(object, "memoryUsageA", &way->flight_bytes, error) ||
        !read_amount(object, "memoryUsageB", &way->fixed_bytes, error))
        return false;
    way->name = g_strdup(name);
    way->edge_bytes = g_new0(double, node->entries->len + node->exits->len + 1);
    return read_syncs(reading, object, "syncTimeFw", node->entries, way->edge_bytes, error) &&
           read_syncs(reading, object, "syncTimeBw", node->exits,
                      way->edge_bytes + node->entries->len, error);
}

static bool read_ways_of_degree(const Reading *reading, int node, const MtfJson *list,
                                GError **error) {
    guint64 degree;
    MtfJson object;
    if (!g_ascii_string_to_unsigned(mtf_json_key(list), 10, 1, MTF_STAGE_DEVICES_MAX, &degree,
                                    NULL))
        return mtf_json_fail(list, error, "\"%s\" is not a number of devices", mtf_json_key(list));
    if (!mtf_json_array(list, error))
        return false;
    for (bool more = mtf_json_first(list, &object); more; more = mtf_json_next(&object)) {
        MtfStageWay way = { .degree = (int)degree };
        bool good = read_way(reading, node, &object, &way, error);
        if (!good) {
            g_free(way.name);
            g_free(way.edge_bytes);
            return false;
        }
        mtf_stage_graph_add_way(reading->graph, node, &way);
    }
    return true;
}

static bool read_ways(const Reading *reading, int node, const MtfJson *object, GError **error) {
    MtfJson degrees, list;
    if (!mtf_json_get_object(object, "TMPCs", &degrees, error))
        return false;
    for (bool more = mtf_json_first(&degrees, &list); more; more = mtf_json_next(&list))
        if (!read_ways_of_degree(reading, node, &list, error))
            return false;
    return mtf_stage_graph_node(reading->graph, node)->ways->len > 0 ||
           mtf_json_fail(&degrees, error, "there is no way to run the node");
}

static bool read_nodes_and_edges(Reading *reading, const MtfJson *root, GError **error) {
    MtfJson nodes, edges, item;
    int number = 0;
    if (!mtf_json_get_array(root, "nodes", &nodes, error) ||
        !mtf_json_get_array(root, "edges", &edges, error))
        return false;
    if (mtf_json_length(&nodes) < 1 || mtf_json_length(&nodes) > MTF_STAGE_NODES_MAX)
        return mtf_json_fail(&nodes, error, "there are not between 1 and %d nodes",
                             MTF_STAGE_NODES_MAX);
    for (bool more = mtf_json_first(&nodes, &item); more; more = mtf_json_next(&item))
        if (!read_node_id(reading, &item, error))
            return false;
    for (bool more = mtf_json_first(&edges, &item); more; more = mtf_json_next(&item))
        if (!read_edge(reading, &item, error))
            return false;
    for (bool more = mtf_json_first(&nodes, &item); more; more = mtf_json_next(&item))
        if (!read_ways(reading, number++, &item, error))
            return false;
    return true;
}

/* A whole number that may be written as 8.0; absent it stays 0. */
static bool read_count(const MtfJson *root, const char *key, int64_t most, int64_t *count,
                       GError **error) {
    return mtf_json_optional_integer(root, key, 1, most, count, error);
}

static bool read_limit(const MtfJson *root, const char *key, double *limit, GError **error) {
    MtfJson value;
    if (!mtf_json_find(root, key, &value))
        return true;
    if (!mtf_json_number(&value, limit, error))
        return false;
    return *limit > 0 || mtf_json_fail(&value, error, "%g is not above 0", *limit);
}

static bool read_machine(const MtfJson *root, MtfStageGraph *graph, GError **error) {
    return read_count(root, "maxDevices", MTF_STAGE_DEVICES_MAX, &graph->devices, error) &&
           read_count(root, "maxBatchSize", MTF_JSON_MAX_INTEGER, &graph->batch, error) &&
           read_count(root, "mbsInBatch", MTF_JSON_MAX_INTEGER, &graph->batch, error) &&
           read_limit(root, "maxMemoryPerDevice", &graph->memory, error) &&
           read_limit(root, "bandwidth", &graph->bandwidth, error);
}

MtfStageGraph *mtf_piper_profile_read(const MtfJson *root, GError **error) {
    g_autoptr(MtfStageGraph) graph = mtf_stage_graph_new(MTF_STAGE_PIPER);
    g_autoptr(GHashTable) numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Reading reading = { graph, numbers };
    int on_circle;
    if (!mtf_json_object(root, error) || !read_machine(root, graph, error) ||
        !read_nodes_and_edges(&reading, root, error))
        return NULL;
    g_autofree int *order = mtf_stage_graph_order(graph, &on_circle);
    if (order == NULL) {
        mtf_json_fail(root, error, "the edges lead in a circle through node %s or before it",
                      mtf_stage_graph_node(graph, on_circle)->name);
        return NULL;
    }
    return g_steal_pointer(&graph);
}
