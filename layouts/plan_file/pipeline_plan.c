// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/plan_file/pipeline_plan.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph_file/graph_fields.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/pipeline/pipeline_delay.h"
#include "layouts/pipeline/pipeline_slots.h"
#include "layouts/pipeline/pipeline_text.h"
#include "layouts/plan_file/pipeline_transfers.h"

#include <string.h>

#define VERSION 5

/* The elements of each stage's lists stand on lines of their own. */
#define PRINT_LEVELS 5

/* ---- Checks -------------------------------------------------------------------------------- */

/* The passes that an action runs: bit 0 forward, bit 1 input gradients, bit 2 weight gradients. */
static unsigned passes_of(const MtfPipelineAction *action) {
    return action->work == MTF_WORK_FORWARD           ? 1
           : action->work == MTF_WORK_INPUT_GRADIENT  ? 2
           : action->work == MTF_WORK_WEIGHT_GRADIENT ? 4
                                                      : 6;
}

/* Sums over micro-batches begin with micro-batch 0; `begun` are the passes that have. */
static bool check_action(const MtfPipelineAction *action, unsigned *begun, const MtfGraph *graph,
                         GError **error) {
    static const char *const names[] = { "forward", "input gradient", "weight gradient" };
    if (!mtf_work_computes(action->work))
        return mtf_input_error(
            error,
            "\"%s\": the order holds messages; they follow from its passes F, I, "
            "W and B, which are what it is to have",
            graph->name);
    unsigned passes = passes_of(action);
    if ((passes & ~*begun) != 0 && action->microbatch != 0)
        return mtf_input_error(error,
                               "\"%s\": the %s passes of stage %d begin with micro-batch %d; sums "
                               "over micro-batches begin with 0",
                               graph->name, names[g_bit_nth_lsf(passes & ~*begun, -1)],
                               action->stage, action->microbatch);
    *begun |= passes;
    return true;
}

static bool check_actions(const MtfPipelineOrder *order, const MtfGraph *graph, GError **error) {
    g_autofree unsigned *begun = g_new0(unsigned, order->stages);
    for (int rank = 0; rank < order->ranks; rank++)
        for (int i = 0; i < mtf_pipeline_length(order, rank); i++) {
            const MtfPipelineAction *action = mtf_pipeline_action(order, rank, i);
            if (!check_action(action, &begun[action->stage], graph, error))
                return false;
        }
    return true;
}

static bool check_order(const MtfPipelineOrder *order, const MtfGraph *graph, GError **error) {
    int stages = mtf_graph_stages(graph);
    int microbatches = mtf_graph_microbatches(graph);
    bool trains = graph->loss >= 0;
    if (trains == mtf_pipeline_only_forward(order))
        return mtf_input_error(error, "the order has %s, but \"%s\" %s",
                               trains ? "forward passes only" : "backward passes", graph->name,
                               trains ? "is trained" : "has no loss");
    if (trains && stages > 1 && mtf_graph_batch(graph) < 0)
        return mtf_input_error(error,
                               "a pipeline works through its batch in micro-batches, if only one: "
                               "\"batch_dimension\" must name what counts examples of \"%s\"",
                               graph->name);
    if (order->stages != stages || order->microbatches != microbatches)
        return mtf_input_error(error,
                               "the order is for %d stages and %d micro-batches, but the graph has "
                               "%d and %d",
                               order->stages, order->microbatches, stages, microbatches);
    if (order->stages > MTF_MAX_CHUNKS * order->ranks)
        return mtf_input_error(error, "the order has %d stages on %d domains: at most %d on each",
                               order->stages, order->ranks, MTF_MAX_CHUNKS);
    return check_actions(order, graph, error);
}

/* ---- Parts --------------------------------------------------------------------------------- */

static void free_plan(gpointer plan) {
    mtf_plan_free(plan);
}

static bool is_read_repeatedly(const MtfGraph *graph, int tensor) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            if (op->inputs[k] == tensor && op->phase <= MTF_PHASE_BACKWARD)
                return true;
    }
    return false;
}

/* Variables that stages share are sent once a step, in one version. */
static bool check_shared(const MtfPipelinePlan *pipeline, GError **error) {
    for (guint i = 0; i < pipeline->split->transfers->len; i++) {
        const MtfStageTransfer *t = &g_array_index(pipeline->split->transfers, MtfStageTransfer, i);
        const MtfGraph *from = pipeline->split->graphs->pdata[t->from];
        if (t->once && is_read_repeatedly(pipeline->split->graphs->pdata[t->to], t->received))
            return mtf_input_error(error,
                                   "%s: stages %d and %d share \"%s\", which is sent once a step: "
                                   "only synchronous schedules can do that",
                                   pipeline->schedule, t->from, t->to,
                                   mtf_graph_tensor(from, t->sent)->name);
    }
    return true;
}

/* Where a stage sums over micro-batches in its forward pass, those of the next step come in between. */
static bool check_sums(const MtfPipelinePlan *pipeline, GError **error) {
    for (int s = 0; s + 1 < pipeline->order->stages; s++) {
        const MtfGraph *graph = pipeline->split->graphs->pdata[s];
        for (int i = 0; i < (int)graph->operations->len; i++)
            if (mtf_operation_accumulates(graph, i) &&
                mtf_graph_operation(graph, i)->phase == MTF_PHASE_FORWARD)
                return mtf_input_error(error,
                                       "%s: stage %d sums \"%s\" over micro-batches in its forward "
                                       "pass: only synchronous schedules can do that",
                                       pipeline->schedule, s, mtf_graph_operation(graph, i)->name);
    }
    return true;
}

/* What steps that overlap need. */
static bool check_asynchronous(const MtfPipelinePlan *pipeline, GError **error) {
    const MtfPipelineOrder *order = pipeline->order;
    if (order->stages != order->ranks)
        return mtf_input_error(error, "%s needs a domain for each of the %d stages, not %d",
                               pipeline->schedule, order->stages, order->ranks);
    if (mtf_pipeline_delay(pipeline->schedule, order, 0) * order->microbatches <
        mtf_pipeline_lookahead(order, 0))
        return mtf_input_error(error,
                               "%s keeps two versions of the weights, which is enough with %d "
                               "micro-batches or more for %d stages, not %d",
                               pipeline->schedule, order->stages - 1, order->stages,
                               order->microbatches);
    return check_shared(pipeline, error) && check_sums(pipeline, error);
}

MtfPipelinePlan *mtf_pipeline_plan_new(MtfGraph *graph, const char *schedule,
                                       MtfPipelineOrder *order, GError **error) {
    g_autoptr(MtfPipelinePlan) pipeline = g_new0(MtfPipelinePlan, 1);
    pipeline->graph = graph;
    pipeline->schedule = g_strdup(schedule);
    pipeline->order = order;
    pipeline->stages = g_ptr_array_new_with_free_func(free_plan);
    if (!check_order(order, graph, error))
        return NULL;
    pipeline->split = mtf_stage_split(graph, error);
    if (pipeline->split == NULL ||
        (mtf_pipeline_is_asynchronous(schedule) && !check_asynchronous(pipeline, error)))
        return NULL;
    return g_steal_pointer(&pipeline);
}

/* Every micro-batch forward, and where the model is trained backward with it. */
static MtfPipelineOrder *whole_order(const MtfGraph *graph) {
    int microbatches = mtf_graph_microbatches(graph);
    MtfPipelineOrder *order = mtf_pipeline_order_new(1, 1, microbatches, MTF_STAGES_LOOP);
    for (int k = 0; k < microbatches; k++) {
        mtf_pipeline_order_add(order, MTF_WORK_FORWARD, 0, k);
        if (graph->loss < 0)
            continue;
        mtf_pipeline_action(order, 0, mtf_pipeline_length(order, 0) - 1)->with_next = true;
        mtf_pipeline_order_add(order, MTF_WORK_BACKWARD, 0, k);
    }
    return order;
}

MtfPipelinePlan *mtf_pipeline_plan_whole(MtfPlan *plan) {
    MtfPipelinePlan *pipeline = g_new0(MtfPipelinePlan, 1);
    pipeline->graph = mtf_graph_copy(plan->graph);
    pipeline->split = g_new0(MtfStageSplit, 1);
    pipeline->split->graphs = g_ptr_array_new();
    pipeline->split->transfers = g_array_new(FALSE, FALSE, sizeof(MtfStageTransfer));
    pipeline->order = whole_order(plan->graph);
    pipeline->stages = g_ptr_array_new_with_free_func(free_plan);
    g_ptr_array_add(pipeline->stages, plan);
    return pipeline;
}

bool mtf_pipeline_is_whole(const MtfPipelinePlan *pipeline) {
    return pipeline->schedule == NULL;
}

void mtf_pipeline_plan_free(MtfPipelinePlan *pipeline) {
    if (pipeline == NULL)
        return;
    g_ptr_array_unref(pipeline->stages);
    mtf_graph_free(pipeline->training);
    mtf_graph_free(pipeline->graph);
    mtf_stage_split_free(pipeline->split);
    mtf_pipeline_order_free(pipeline->order);
    cJSON_Delete(pipeline->predicted);
    g_free(pipeline->schedule);
    g_free(pipeline);
}

MtfPlan *mtf_pipeline_stage(const MtfPipelinePlan *pipeline, int stage) {
    return pipeline->stages->pdata[stage];
}

/* Whether weight gradients of the stage are computed apart from its input gradients. */
static bool splits_backward(const MtfPipelineOrder *order, int stage) {
    int rank = order->rank_of_stage[stage];
    for (int i = 0; i < mtf_pipeline_length(order, rank); i++) {
        const MtfPipelineAction *action = mtf_pipeline_action(order, rank, i);
        if (action->stage == stage && action->work == MTF_WORK_WEIGHT_GRADIENT)
            return true;
    }
    return false;
}

const MtfGraph *mtf_pipeline_stage_graph(const MtfPipelinePlan *pipeline, int stage) {
    return pipeline->split->graphs->pdata[stage];
}

/* Only gradients that go past a stage can close a circle. */
static bool goes_past(const GArray *ways) {
    bool past = false;
    for (guint i = 0; i < ways->len; i++) {
        const MtfGradientWay *way = &g_array_index(ways, MtfGradientWay, i);
        past |= way->to < way->from - 1;
    }
    return past;
}

int mtf_pipeline_stage_slots(const MtfPipelinePlan *pipeline, int stage, int *slots) {
    const MtfPipelineOrder *order = pipeline->order;
    g_autoptr(GArray) ways = g_array_new(FALSE, FALSE, sizeof(MtfGradientWay));
    for (guint i = 0; i < pipeline->split->transfers->len; i++) {
        const MtfStageTransfer *t = &g_array_index(pipeline->split->transfers, MtfStageTransfer, i);
        MtfGradientWay way = { t->from, t->to };
        if (!t->once && t->to < t->from)
            g_array_append_val(ways, way);
    }
    if (!goes_past(ways))
        return mtf_pipeline_slots(order, stage, slots);
    g_autofree int *counts = g_new(int, (gsize)order->stages);
    g_autofree int *all = g_new0(int, (gsize)(order->stages * order->microbatches));
    mtf_pipeline_find_slots(order, ways, counts, all);
    memcpy(slots, all + stage * order->microbatches, sizeof *slots * (gsize)order->microbatches);
    return counts[stage];
}

bool mtf_pipeline_steps_overlap(const MtfPipelinePlan *pipeline) {
    return pipeline->schedule != NULL && mtf_pipeline_is_asynchronous(pipeline->schedule);
}

int mtf_pipeline_steps_ahead(const MtfPipelinePlan *pipeline) {
    if (!mtf_pipeline_steps_overlap(pipeline))
        return 0;
    for (guint i = 0; i < pipeline->split->transfers->len; i++)
        if (g_array_index(pipeline->split->transfers, MtfStageTransfer, i).once)
            return 0;
    return mtf_pipeline_delay(pipeline->schedule, pipeline->order, 0);
}

MtfStageExecution mtf_pipeline_stage_execution(const MtfPipelinePlan *pipeline, int stage) {
    const MtfPipelineOrder *order = pipeline->order;
    g_autofree int *slots = g_new(int, order->microbatches);
    bool overlaps = mtf_pipeline_is_asynchronous(pipeline->schedule);
    return (MtfStageExecution){
        .in_flight = overlaps ? 1 + mtf_pipeline_lookahead(order, stage)
                              : mtf_pipeline_stage_slots(pipeline, stage, slots),
        .weight_versions = 1 + mtf_pipeline_delay(pipeline->schedule, order, stage),
        .splits_backward = splits_backward(order, stage),
    };
}

static int domain_size(const MtfPipelinePlan *pipeline, int domain) {
    for (int s = 0; s < (int)pipeline->stages->len; s++)
        if (pipeline->order->rank_of_stage[s] == domain)
            return mtf_mesh_size(&mtf_pipeline_stage(pipeline, s)->layout->mesh);
    return 0;
}

int mtf_pipeline_first_device(const MtfPipelinePlan *pipeline, int domain) {
    int first = 0;
    for (int d = 0; d < domain; d++)
        first += domain_size(pipeline, d);
    return first;
}

char *mtf_pipeline_place_format(int first, int last, const MtfMesh *mesh) {
    int devices = last - first + 1, size = mtf_mesh_size(mesh);
    if (devices == 1)
        return g_strdup_printf("device %d", first);
    if (size == 1)
        return g_strdup_printf("devices %d to %d, one each", first, last);
    g_autofree char *axes = mtf_mesh_format(mesh);
    return g_strdup_printf("devices %d to %d, mesh %s%s", first, last, axes,
                           devices > size ? " each" : "");
}

int mtf_pipeline_devices(const MtfPipelinePlan *pipeline) {
    return mtf_pipeline_first_device(pipeline, pipeline->order->ranks);
}

double mtf_pipeline_peak_bytes(const MtfPipelinePlan *pipeline) {
    double most = 0;
    for (int rank = 0; rank < pipeline->order->ranks; rank++) {
        double bytes = 0;
        for (int s = 0; s < pipeline->order->stages; s++)
            if (pipeline->order->rank_of_stage[s] == rank)
                bytes += mtf_json_number_of(mtf_pipeline_stage(pipeline, s)->predicted,
                                            "peak_memory_bytes", 0);
        most = MAX(most, bytes);
    }
    return most;
}

double mtf_pipeline_sent_bytes(const MtfPipelinePlan *pipeline) {
    double bytes = 0;
    for (guint i = 0; i < pipeline->split->transfers->len; i++) {
        const MtfStageTransfer *t = &g_array_index(pipeline->split->transfers, MtfStageTransfer, i);
        const MtfGraph *graph = g_ptr_array_index(pipeline->split->graphs, t->from);
        bytes += (double)mtf_graph_tensor_bytes(graph, t->sent) *
                 (t->once ? 1 : pipeline->order->microbatches);
    }
    return bytes;
}

bool mtf_pipeline_plan_add(MtfPipelinePlan *pipeline, MtfPlan *plan, GError **error) {
    int stage = (int)pipeline->stages->len;
    int size = domain_size(pipeline, pipeline->order->rank_of_stage[stage]);
    int own = mtf_mesh_size(&plan->layout->mesh);
    g_ptr_array_add(pipeline->stages, plan);
    return size == 0 || size == own ||
           mtf_input_error(error, "stage %d runs on %d devices, another stage of its domain on %d",
                           stage, own, size);
}

char *mtf_pipeline_plan_digest(const MtfPipelinePlan *pipeline) {
    g_autofree char *order = mtf_pipeline_format(pipeline->order);
    g_autoptr(GString) text = g_string_new("meshtf pipeline 1\n");
    g_string_append(text, order);
    for (int s = 0; s < (int)pipeline->stages->len; s++)
        g_string_append_printf(text, "%s\n", mtf_pipeline_stage(pipeline, s)->program_sha256);
    for (int i = 0; i < mtf_pipeline_transfers(pipeline); i++) {
        MtfTransferWay way = (MtfTransferWay)mtf_pipeline_transfer(pipeline, i)->way;
        if (way != MTF_TRANSFER_DIRECT)
            g_string_append_printf(text, "transfer %d %s\n", i, mtf_transfer_way_name(way));
    }
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, (gssize)text->len);
}

/* ---- Reading ------------------------------------------------------------------------------- */

static MtfPipelineOrder *read_pipeline_order(const MtfJson *root, GError **error) {
    MtfJson where;
    const char *text;
    GError *cause = NULL;
    if (!mtf_json_get(root, "order", &where, error) || !mtf_json_string(&where, &text, error))
        return NULL;
    MtfPipelineOrder *order = mtf_pipeline_parse("order", text, &cause);
    if (order == NULL)
        mtf_field_relay(&where, cause, error);
    return order;
}

static bool check_first_device(const MtfPipelinePlan *pipeline, const MtfJson *where, int stage,
                               GError **error) {
    MtfJson child;
    int64_t first;
    if (!mtf_json_get(where, "first_device", &child, error) ||
        !mtf_json_integer(&child, 0, INT32_MAX, &first, error))
        return false;
    int domain = pipeline->order->rank_of_stage[stage];
    int expected = mtf_pipeline_first_device(pipeline, domain);
    return first == expected ||
           mtf_json_fail(&child, error,
                         "domain %d of the order comes after %d devices, so the first of this "
                         "stage is device %d",
                         domain, expected, expected);
}

static bool read_one_stage(MtfPipelinePlan *pipeline, const MtfJson *where, const MtfKept *kept,
                           GError **error) {
    static const char *const keys[] = { "first_device", "mesh",           "machine",   "mapping",
                                        "layout",       "execution",      "predicted", "precision",
                                        "search",       "program_sha256", NULL };
    GError *cause = NULL;
    int stage = (int)pipeline->stages->len;
    if (!mtf_json_keys(where, keys, error) || !check_first_device(pipeline, where, stage, error))
        return false;
    MtfExecution execution = { .division = pipeline->division,
                               .kept = kept[stage],
                               .stage = mtf_pipeline_stage_execution(pipeline, stage) };
    MtfPlan *plan =
        mtf_plan_read_stage(where, mtf_pipeline_stage_graph(pipeline, stage), &execution, error);
    return plan != NULL &&
           (mtf_pipeline_plan_add(pipeline, plan, &cause) || mtf_field_relay(where, cause, error));
}

static bool read_stages(MtfPipelinePlan *pipeline, const MtfJson *root, const MtfKept *kept,
                        GError **error) {
    MtfJson list, child;
    if (!mtf_json_get_array(root, "stages", &list, error))
        return false;
    for (bool more = mtf_json_first(&list, &child); more; more = mtf_json_next(&child))
        if (!read_one_stage(pipeline, &child, kept, error))
            return false;
    return true;
}

/* What each stage keeps of its forward pass, of as many as the graph has; free with g_free. */
static MtfKept *read_kept_of_stages(const MtfJson *root, int stages, GError **error) {
    MtfJson list, child;
    if (!mtf_json_get_array(root, "stages", &list, error))
        return NULL;
    if (mtf_json_length(&list) != stages) {
        mtf_json_fail(&list, error, "the graph has %d stages, but there are %d here", stages,
                      mtf_json_length(&list));
        return NULL;
    }
    g_autofree MtfKept *kept = g_new0(MtfKept, stages + 1);
    int s = 0;
    for (bool more = mtf_json_first(&list, &child); more; more = mtf_json_next(&child))
        if (!mtf_json_object(&child, error) || !mtf_plan_read_kept(&child, &kept[s++], error))
            return NULL;
    return g_steal_pointer(&kept);
}

static MtfGraph *read_training_graph(const MtfJson *root, GError **error) {
    MtfJson where;
    if (!mtf_json_get(root, "graph", &where, error))
        return NULL;
    g_autoptr(MtfGraph) graph = mtf_plan_graph_read(&where, error);
    for (int i = 0; graph != NULL && i < (int)graph->operations->len; i++)
        if (mtf_graph_operation(graph, i)->stage == 0) {
            mtf_json_fail(&where, error, "operation \"%s\" names no stage",
                          mtf_graph_operation(graph, i)->name);
            return NULL;
        }
    return g_steal_pointer(&graph);
}

static MtfGraph *execute(const MtfJson *root, const MtfGraph *training, const MtfDivision *division,
                         const MtfKept *kept, GError **error) {
    GError *cause = NULL;
    g_autoptr(MtfGraph) graph = mtf_graph_copy(training);
    if (mtf_graph_execute(graph, division, kept, mtf_graph_stages(training), &cause))
        return g_steal_pointer(&graph);
    mtf_field_relay(root, cause, error);
    return NULL;
}

/* Reads the graph of all stages, makes it the executed one and splits it. */
static MtfPipelinePlan *read_graphs(const MtfJson *root, MtfKept **kept, GError **error) {
    const char *schedule;
    MtfDivision division = { 0 };
    g_autoptr(MtfPipelineOrder) order = read_pipeline_order(root, error);
    g_autoptr(MtfGraph) training = order == NULL ? NULL : read_training_graph(root, error);
    if (training == NULL || !mtf_json_get_string(root, "schedule", &schedule, error) ||
        !mtf_plan_read_division(root, training, &division, error) ||
        (*kept = read_kept_of_stages(root, mtf_graph_stages(training), error)) == NULL)
        return NULL;
    MtfGraph *graph = execute(root, training, &division, *kept, error);
    if (graph == NULL)
        return NULL;
    g_autoptr(MtfPipelinePlan) pipeline =
        mtf_pipeline_plan_new(graph, schedule, g_steal_pointer(&order), error);
    if (pipeline == NULL)
        return NULL;
    pipeline->training = g_steal_pointer(&training);
    pipeline->division = division;
    return g_steal_pointer(&pipeline);
}

MtfPipelinePlan *mtf_pipeline_plan_from_json(const MtfJson *root, GError **error) {
    static const char *const keys[] = { "meshtf_pipeline_plan",
                                        "graph",
                                        "microbatches",
                                        "batch_dimension",
                                        "ring",
                                        "key_parts",
                                        "schedule",
                                        "order",
                                        "stages",
                                        "transfers",
                                        "predicted",
                                        "software",
                                        NULL };
    MtfJson predicted, transfers;
    g_autofree MtfKept *kept = NULL;
    if (!mtf_json_version(root, "meshtf_pipeline_plan", VERSION, error) ||
        !mtf_json_keys(root, keys, error))
        return NULL;
    g_autoptr(MtfPipelinePlan) pipeline = read_graphs(root, &kept, error);
    if (pipeline == NULL || !read_stages(pipeline, root, kept, error))
        return NULL;
    if (mtf_json_find(root, "transfers", &transfers) &&
        !mtf_pipeline_transfers_read(&transfers, pipeline, error))
        return NULL;
    if (mtf_json_find(root, "predicted", &predicted))
        pipeline->predicted = cJSON_Duplicate(predicted.node, true);
    return g_steal_pointer(&pipeline);
}

static bool is_pipeline(const MtfJson *root) {
    MtfJson found;
    return cJSON_IsObject(root->node) && mtf_json_find(root, "meshtf_pipeline_plan", &found);
}

bool mtf_pipeline_plan_is(const char *path) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, NULL);
    if (document == NULL)
        return false;
    MtfJson root = mtf_json_root(document);
    return is_pipeline(&root);
}

MtfPipelinePlan *mtf_pipeline_plan_load(const char *path, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_pipeline_plan_from_json(&root, error);
}

MtfPipelinePlan *mtf_pipeline_plan_load_any(const char *path, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    if (is_pipeline(&root))
        return mtf_pipeline_plan_from_json(&root, error);
    MtfPlan *plan = mtf_plan_from_json(&root, error);
    return plan != NULL ? mtf_pipeline_plan_whole(plan) : NULL;
}

/* ---- Writing ------------------------------------------------------------------------------- */

static cJSON *stage_to_json(const MtfPipelinePlan *pipeline, int stage) {
    cJSON *object = cJSON_CreateObject();
    int domain = pipeline->order->rank_of_stage[stage];
    mtf_json_add_integer(object, "first_device", mtf_pipeline_first_device(pipeline, domain));
    mtf_plan_add_body(object, mtf_pipeline_stage(pipeline, stage), true);
    return object;
}

static cJSON *stages_to_json(const MtfPipelinePlan *pipeline) {
    cJSON *stages = cJSON_CreateArray();
    for (guint s = 0; s < pipeline->stages->len; s++)
        cJSON_AddItemToArray(stages, stage_to_json(pipeline, (int)s));
    return stages;
}

bool mtf_pipeline_plan_save(const MtfPipelinePlan *pipeline, const char *path, GError **error) {
    cJSON *root = cJSON_CreateObject();
    mtf_json_add_integer(root, "meshtf_pipeline_plan", VERSION);
    const MtfGraph *training = pipeline->training != NULL ? pipeline->training : pipeline->graph;
    cJSON_AddItemToObject(root, "graph", mtf_graph_to_json(training));
    mtf_plan_add_division(root, training, &pipeline->division);
    if (pipeline->stages->len > 0)
        mtf_plan_add_software(root, mtf_pipeline_stage(pipeline, 0));
    g_autofree char *order = mtf_pipeline_format(pipeline->order);
    cJSON_AddStringToObject(root, "schedule", pipeline->schedule);
    cJSON_AddStringToObject(root, "order", order);
    cJSON_AddItemToObject(root, "stages", stages_to_json(pipeline));
    cJSON *transfers = mtf_pipeline_transfers_to_json(pipeline);
    if (transfers != NULL)
        cJSON_AddItemToObject(root, "transfers", transfers);
    if (pipeline->predicted != NULL)
        cJSON_AddItemToObject(root, "predicted", mtf_json_printable(pipeline->predicted));
    g_autofree char *text = mtf_json_print_levels(root, PRINT_LEVELS);
    cJSON_Delete(root);
    return mtf_file_write(path, text, strlen(text), error);
}
