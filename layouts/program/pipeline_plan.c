// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/pipeline_plan.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph/graph_fields.h"
#include "layouts/graph/graph_json.h"

#include <string.h>

/* The elements of each stage's lists stand on lines of their own. */
#define PRINT_LEVELS 5

MtfPipelinePlan *mtf_pipeline_plan_new(MtfGraph *graph, const char *schedule, GError **error) {
    g_autoptr(MtfPipelinePlan) pipeline = g_new0(MtfPipelinePlan, 1);
    pipeline->graph = graph;
    pipeline->schedule = g_strdup(schedule);
    pipeline->stages = g_array_new(FALSE, TRUE, sizeof(MtfPlannedStage));
    if (graph->microbatches < 2) {
        mtf_input_error(error,
                        "a pipeline needs two micro-batches or more: the batch of \"%s\" is "
                        "worked through in one piece",
                        graph->name);
        return NULL;
    }
    pipeline->split = mtf_stage_split(graph, error);
    return pipeline->split == NULL ? NULL : g_steal_pointer(&pipeline);
}

void mtf_pipeline_plan_free(MtfPipelinePlan *pipeline) {
    if (pipeline == NULL)
        return;
    for (guint s = 0; s < pipeline->stages->len; s++) {
        mtf_plan_free(mtf_pipeline_stage(pipeline, (int)s)->plan);
        mtf_stage_order_free(mtf_pipeline_stage(pipeline, (int)s)->order);
    }
    g_array_unref(pipeline->stages);
    mtf_graph_free(pipeline->graph);
    mtf_stage_split_free(pipeline->split);
    cJSON_Delete(pipeline->predicted);
    g_free(pipeline->schedule);
    g_free(pipeline);
}

MtfPlannedStage *mtf_pipeline_stage(const MtfPipelinePlan *pipeline, int stage) {
    return &g_array_index(pipeline->stages, MtfPlannedStage, stage);
}

MtfGraph *mtf_pipeline_stage_graph(const MtfPipelinePlan *pipeline, int stage,
                                   const MtfStageOrder *order) {
    MtfGraph *graph = mtf_graph_copy(pipeline->split->graphs->pdata[stage]);
    graph->in_flight = order->slots;
    return graph;
}

int mtf_pipeline_devices(const MtfPipelinePlan *pipeline) {
    int devices = 0;
    for (guint s = 0; s < pipeline->stages->len; s++)
        devices += mtf_mesh_size(&mtf_pipeline_stage(pipeline, (int)s)->plan->layout->mesh);
    return devices;
}

void mtf_pipeline_plan_add(MtfPipelinePlan *pipeline, MtfPlan *plan, MtfStageOrder *order) {
    MtfPlannedStage stage = { plan, order, mtf_pipeline_devices(pipeline) };
    g_array_append_val(pipeline->stages, stage);
}

char *mtf_pipeline_plan_digest(const MtfPipelinePlan *pipeline) {
    g_autoptr(GString) text = g_string_new("meshtf pipeline 1\n");
    for (guint s = 0; s < pipeline->stages->len; s++) {
        const MtfPlannedStage *stage = mtf_pipeline_stage(pipeline, (int)s);
        g_autofree char *order = mtf_stage_order_format(stage->order, (int)s);
        g_string_append_printf(text, "%d %s %s\n", stage->first_device, stage->plan->program_sha256,
                               order);
    }
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, (gssize)text->len);
}

/* ---- Reading ------------------------------------------------------------------------------- */

static bool read_stage_order(const MtfJson *where, int stage, int microbatches,
                             MtfStageOrder **order, GError **error) {
    MtfJson child;
    const char *text;
    GError *cause = NULL;
    if (!mtf_json_get(where, "order", &child, error) || !mtf_json_string(&child, &text, error))
        return false;
    *order = mtf_stage_order_parse(text, stage, microbatches, &cause);
    return *order != NULL || mtf_field_relay(&child, cause, error);
}

static bool check_first_device(const MtfJson *where, int expected, GError **error) {
    MtfJson child;
    int64_t first;
    if (!mtf_json_get(where, "first_device", &child, error) ||
        !mtf_json_integer(&child, 0, INT32_MAX, &first, error))
        return false;
    return first == expected ||
           mtf_json_fail(&child, error,
                         "the stages before this one have %d devices, so its first is device %d",
                         expected, expected);
}

static bool read_one_stage(MtfPipelinePlan *pipeline, const MtfJson *where, GError **error) {
    static const char *const keys[] = { "first_device", "order",          "mesh",      "machine",
                                        "mapping",      "layout",         "predicted", "precision",
                                        "search",       "program_sha256", NULL };
    int stage = (int)pipeline->stages->len;
    g_autoptr(MtfStageOrder) order = NULL;
    if (!mtf_json_keys(where, keys, error) ||
        !check_first_device(where, mtf_pipeline_devices(pipeline), error) ||
        !read_stage_order(where, stage, pipeline->graph->microbatches, &order, error))
        return false;
    g_autoptr(MtfGraph) graph = mtf_pipeline_stage_graph(pipeline, stage, order);
    MtfPlan *plan = mtf_plan_read_stage(where, graph, error);
    if (plan == NULL)
        return false;
    mtf_pipeline_plan_add(pipeline, plan, g_steal_pointer(&order));
    return true;
}

static bool read_stages(MtfPipelinePlan *pipeline, const MtfJson *root, GError **error) {
    MtfJson list, child;
    int expected = (int)pipeline->split->graphs->len;
    if (!mtf_json_get(root, "stages", &list, error) || !mtf_json_array(&list, error))
        return false;
    if (mtf_json_length(&list) != expected)
        return mtf_json_fail(&list, error, "the graph has %d stages, but there are %d here",
                             expected, mtf_json_length(&list));
    for (bool more = mtf_json_first(&list, &child); more; more = mtf_json_next(&child))
        if (!read_one_stage(pipeline, &child, error))
            return false;
    return true;
}

static MtfGraph *read_whole_graph(const MtfJson *root, GError **error) {
    MtfJson where;
    if (!mtf_json_get(root, "graph", &where, error))
        return NULL;
    g_autoptr(MtfGraph) graph = mtf_graph_from_json(&where, NULL, error);
    if (graph == NULL || !mtf_plan_read_microbatches(root, graph, error))
        return NULL;
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (mtf_graph_operation(graph, i)->stage == 0) {
            mtf_json_fail(&where, error, "operation \"%s\" names no stage",
                          mtf_graph_operation(graph, i)->name);
            return NULL;
        }
    return g_steal_pointer(&graph);
}

static MtfPipelinePlan *read_pipeline(const MtfJson *root, GError **error) {
    static const char *const keys[] = { "meshtf_pipeline_plan",
                                        "graph",
                                        "microbatches",
                                        "batch_dimension",
                                        "schedule",
                                        "stages",
                                        "predicted",
                                        NULL };
    const char *schedule;
    MtfJson predicted;
    if (!mtf_json_version(root, "meshtf_pipeline_plan", 1, error) ||
        !mtf_json_keys(root, keys, error) || !mtf_field_string(root, "schedule", &schedule, error))
        return NULL;
    MtfGraph *graph = read_whole_graph(root, error);
    g_autoptr(MtfPipelinePlan) pipeline =
        graph == NULL ? NULL : mtf_pipeline_plan_new(graph, schedule, error);
    if (pipeline == NULL || !read_stages(pipeline, root, error))
        return NULL;
    if (mtf_json_find(root, "predicted", &predicted))
        pipeline->predicted = cJSON_Duplicate(predicted.node, true);
    return g_steal_pointer(&pipeline);
}

bool mtf_pipeline_plan_is(const char *path) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, NULL);
    MtfJson found;
    if (document == NULL)
        return false;
    MtfJson root = mtf_json_root(document);
    return cJSON_IsObject(root.node) && mtf_json_find(&root, "meshtf_pipeline_plan", &found);
}

MtfPipelinePlan *mtf_pipeline_plan_load(const char *path, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return read_pipeline(&root, error);
}

/* ---- Writing ------------------------------------------------------------------------------- */

static cJSON *stage_to_json(const MtfPipelinePlan *pipeline, int stage) {
    const MtfPlannedStage *planned = mtf_pipeline_stage(pipeline, stage);
    g_autofree char *order = mtf_stage_order_format(planned->order, stage);
    cJSON *object = cJSON_CreateObject();
    mtf_json_add_integer(object, "first_device", planned->first_device);
    cJSON_AddStringToObject(object, "order", order);
    mtf_plan_add_body(object, planned->plan, false);
    return object;
}

bool mtf_pipeline_plan_save(const MtfPipelinePlan *pipeline, const char *path, GError **error) {
    cJSON *root = cJSON_CreateObject();
    mtf_json_add_integer(root, "meshtf_pipeline_plan", 1);
    cJSON_AddItemToObject(root, "graph", mtf_graph_to_json(pipeline->graph));
    mtf_plan_add_microbatches(root, pipeline->graph);
    cJSON_AddStringToObject(root, "schedule", pipeline->schedule);
    cJSON *stages = cJSON_AddArrayToObject(root, "stages");
    for (guint s = 0; s < pipeline->stages->len; s++)
        cJSON_AddItemToArray(stages, stage_to_json(pipeline, (int)s));
    if (pipeline->predicted != NULL)
        cJSON_AddItemToObject(root, "predicted", mtf_json_printable(pipeline->predicted));
    g_autofree char *text = mtf_json_print_levels(root, PRINT_LEVELS);
    cJSON_Delete(root);
    return mtf_file_write(path, text, strlen(text), error);
}
