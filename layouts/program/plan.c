// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/plan.h"

#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/execution/executed_graph.h"
#include "layouts/execution/key_parts.h"
#include "layouts/execution/key_ring.h"
#include "layouts/graph/microbatches.h"
#include "layouts/graph_file/graph_fields.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/kernel_work/fusable.h"
#include "layouts/placement/rules.h"
#include "layouts/program/algorithm_list.h"
#include "layouts/program/program_order.h"

#include <inttypes.h>
#include <string.h>

#define DIGEST_LENGTH 64

/* Of version 3 the graph of a plan that recomputes or offloads has clones and copies itself, which is
 * refused; so are plans of micro-batches whose graph sums over them. */
#define VERSION 6
#define OLDEST_VERSION 3
#define WHOLE_STEP_VERSION 6

/* The elements of the graph's and the layout's lists stand on lines of their own. */
#define PRINT_LEVELS 3

/* Stands for a member that was printed ahead, which is long and copied once. */
#define PRINTED_AHEAD "@"

char *mtf_plan_recomputation(const MtfPlan *plan) {
    const MtfKept *kept = &plan->layout->execution.kept;
    return mtf_recompute_format(kept->recompute, kept->recomputed_layers);
}

char *mtf_plan_step_format(const MtfPlan *plan) {
    const MtfKept *kept = &plan->layout->execution.kept;
    g_autofree char *recompute = mtf_plan_recomputation(plan);
    g_autofree char *offload = mtf_offload_format(kept->offload, kept->offloaded_layers);
    bool recomputes = kept->recompute != MTF_RECOMPUTE_NONE;
    bool offloads = kept->offload != MTF_OFFLOAD_NONE;
    g_autofree char *step = mtf_graph_step_format(plan->graph);
    if (!recomputes && !offloads)
        return g_steal_pointer(&step);
    return g_strdup_printf("%s (%s%s%s%s%s)", step, recomputes ? "recompute " : "",
                           recomputes ? recompute : "", recomputes && offloads ? ", " : "",
                           offloads ? "offload " : "", offloads ? offload : "");
}

void mtf_plan_free(MtfPlan *plan) {
    if (plan == NULL)
        return;
    mtf_graph_free(plan->training);
    mtf_graph_free(plan->graph);
    mtf_layout_free(plan->layout);
    cJSON_Delete(plan->machine);
    cJSON_Delete(plan->mapping);
    cJSON_Delete(plan->predicted);
    cJSON_Delete(plan->search);
    g_free(plan->precision);
    g_free(plan->program_sha256);
    g_free(plan->graph_text);
    g_free(plan->layout_text);
    g_free(plan);
}

/* What an operation that the execution added does over again, where it is laid out as a rule: the file
 * says what differs. -1: it is in the training graph. */
static int original_of(const MtfPlan *plan, int operation) {
    const MtfKept *kept = &plan->layout->execution.kept;
    bool clone = mtf_graph_operation(plan->graph, operation)->origin == MTF_ORIGIN_CLONE;
    bool added = clone ? kept->recompute != MTF_RECOMPUTE_NONE : kept->offload != MTF_OFFLOAD_NONE;
    return added ? mtf_graph_original_operation(plan->graph, operation) : -1;
}

/* ---- reading ---- */

/* What planning leaves of an operation: no composite, and ids of the type that kernels read. */
static bool check_primitive(const MtfGraph *graph, const MtfOperation *operation,
                            const MtfJson *where, GError **error) {
    const MtfOperationRow *row = mtf_operation_row(operation->kind);
    if (row->composite)
        return mtf_json_fail(where, error,
                             "operation \"%s\" (%s) is of the user's graph; the training graph "
                             "of a plan has only what it is rewritten into",
                             operation->name, row->name);
    for (int k = 0; k < operation->n_inputs; k++) {
        const MtfTensor *input = mtf_graph_tensor(graph, operation->inputs[k]);
        if (mtf_operation_mask_has(row->integer_inputs, k) && input->dtype == MTF_I64)
            return mtf_json_fail(where, error,
                                 "operation \"%s\" (%s): \"%s\" is int64; in the graph of a plan "
                                 "ids are cast to int32",
                                 operation->name, row->name, input->name);
    }
    return true;
}

MtfGraph *mtf_plan_graph_read(const MtfJson *where, GError **error) {
    g_autoptr(MtfGraph) graph = mtf_graph_from_json(where, NULL, error);
    for (int i = 0; graph != NULL && i < (int)graph->operations->len; i++)
        if (!check_primitive(graph, mtf_graph_operation(graph, i), where, error))
            return NULL;
    return g_steal_pointer(&graph);
}

/* With one micro-batch no dimension is named as the batch. */
static bool read_microbatches(const MtfJson *object, const MtfGraph *graph, MtfDivision *division,
                              GError **error) {
    MtfJson where;
    int64_t microbatches = 0;
    if (!mtf_json_get_integer(object, "microbatches", 1, MTF_MAX_MICROBATCHES, &microbatches,
                              error))
        return false;
    division->microbatches = (int)microbatches;
    if (microbatches > 1)
        return mtf_json_get(object, "batch_dimension", &where, error) &&
               mtf_field_dimension(graph, &where, &division->batch, error);
    return !mtf_json_find(object, "batch_dimension", &where) ||
           mtf_json_fail(&where, error, "a plan without micro-batches names no batch dimension");
}

/* Nothing is said of what is whole. */
static bool read_parts(const MtfJson *object, const char *key, int64_t most, int *parts,
                       GError **error) {
    int64_t number = 0;
    bool read = mtf_json_optional_integer(object, key, 2, most, &number, error);
    *parts = (int)number;
    return read;
}

bool mtf_plan_read_division(const MtfJson *object, const MtfGraph *graph, MtfDivision *division,
                            GError **error) {
    return read_microbatches(object, graph, division, error) &&
           read_parts(object, "ring", MTF_MAX_RING, &division->ring, error) &&
           read_parts(object, "key_parts", MTF_MAX_KEY_PARTS, &division->key_parts, error);
}

/* The text of a key, or NULL where it is missing. */
static bool read_choice(const MtfJson *object, const char *key, MtfJson *where, const char **text,
                        GError **error) {
    *text = NULL;
    return !mtf_json_find(object, key, where) || mtf_json_string(where, text, error);
}

/* Nothing is said where all is kept. */
bool mtf_plan_read_kept(const MtfJson *root, MtfKept *kept, GError **error) {
    MtfJson execution, where;
    const char *text;
    *kept = (MtfKept){ 0 };
    if (!mtf_json_get_object(root, "execution", &execution, error) ||
        !read_choice(&execution, "recompute", &where, &text, error))
        return false;
    if (!mtf_recompute_parse(text, &kept->recompute, &kept->recomputed_layers, NULL))
        return mtf_json_fail(&where, error, "\"%s\" is neither cheap, layers nor layers:K", text);
    if (!read_choice(&execution, "offload", &where, &text, error))
        return false;
    return mtf_offload_parse(text, &kept->offload, &kept->offloaded_layers, NULL) ||
           mtf_json_fail(&where, error,
                         "\"%s\" is neither layers, activations, layers:K nor activations:K", text);
}

/* Reads the training graph, and makes it the executed one. */
static bool read_graph(const MtfJson *root, int64_t version, MtfPlan *plan, MtfExecution *execution,
                       GError **error) {
    MtfJson where, object;
    GError *cause = NULL;
    if (!mtf_json_get(root, "graph", &where, error) ||
        (plan->training = mtf_plan_graph_read(&where, error)) == NULL ||
        !mtf_plan_read_kept(root, &execution->kept, error) ||
        !mtf_json_get_object(root, "execution", &object, error) ||
        !mtf_plan_read_division(&object, plan->training, &execution->division, error))
        return false;
    if (version < WHOLE_STEP_VERSION && execution->division.microbatches > 1)
        return mtf_json_fail(&object, error,
                             "the graph of a plan of version %" PRId64
                             " is that of one of several micro-batches, that of version %d of the "
                             "whole step: search again",
                             version, WHOLE_STEP_VERSION);
    plan->graph = mtf_graph_copy(plan->training);
    return mtf_graph_execute(plan->graph, &execution->division, &execution->kept, 1, &cause) ||
           mtf_field_relay(&object, cause, error);
}

/* The layout comes with the mesh. */
static bool read_mesh(const MtfJson *root, MtfPlan *plan, GError **error) {
    MtfJson where;
    const char *text;
    MtfMesh mesh;
    GError *cause = NULL;
    if (!mtf_json_get(root, "mesh", &where, error) || !mtf_json_string(&where, &text, error))
        return false;
    if (!mtf_mesh_parse(text, 0, &mesh, &cause))
        return mtf_field_relay(&where, cause, error);
    plan->layout = mtf_layout_new(plan->graph, &mesh);
    return true;
}

/* The same, and begins with what is known of how its graph is run. */
static bool begin_layout(const MtfJson *root, MtfPlan *plan, const MtfExecution *execution,
                         GError **error) {
    if (!read_mesh(root, plan, error))
        return false;
    plan->layout->execution.division = execution->division;
    plan->layout->execution.kept = execution->kept;
    plan->layout->execution.stage = execution->stage;
    return true;
}

/* Reads {"rows": word, "cols": word}, one word for each axis of the mesh, into `words`. */
static bool read_axes(const MtfJson *where, const MtfMesh *mesh, MtfJson *words, GError **error) {
    const char *keys[MTF_MAX_MESH_AXES + 1] = { NULL };
    for (int a = 0; a < mesh->n_axes; a++)
        keys[a] = mesh->axes[a].name;
    if (!mtf_json_keys(where, keys, error))
        return false;
    for (int a = 0; a < mesh->n_axes; a++)
        if (!mtf_json_get(where, keys[a], &words[a], error))
            return false;
    return true;
}

static bool read_axis_placement(const MtfGraph *graph, const MtfJson *where, int16_t *value,
                                GError **error) {
    static const int words[] = { MTF_REPLICATED, MTF_PARTIAL_SUM, MTF_PARTIAL_MAX };
    const char *text;
    int dim = -1;
    if (!mtf_json_string(where, &text, error))
        return false;
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strcmp(text, mtf_axis_placement_name(graph, words[i])) == 0) {
            *value = (int16_t)words[i];
            return true;
        }
    }
    if (!mtf_field_dimension(graph, where, &dim, error))
        return false;
    *value = (int16_t)dim;
    return true;
}

static bool read_placement(const MtfPlan *plan, const MtfJson *where, MtfPlacement *placement,
                           GError **error) {
    MtfJson words[MTF_MAX_MESH_AXES];
    const MtfMesh *mesh = &plan->layout->mesh;
    if (!read_axes(where, mesh, words, error))
        return false;
    *placement = mtf_placement_replicated();
    for (int a = 0; a < mesh->n_axes; a++)
        if (!read_axis_placement(plan->graph, &words[a], &placement->axis[a], error))
            return false;
    return true;
}

static bool find_tensor(const MtfPlan *plan, const MtfJson *where, int *tensor, GError **error) {
    *tensor = mtf_graph_find_tensor(plan->graph, mtf_json_key(where));
    return *tensor >= 0 ||
           mtf_json_fail(where, error, "\"%s\" is not a tensor of the graph", mtf_json_key(where));
}

static bool read_kept(const MtfPlan *plan, const MtfJson *where, GError **error) {
    int tensor;
    return find_tensor(plan, where, &tensor, error) &&
           read_placement(plan, where, &plan->layout->tensors[tensor], error);
}

/* Reads a tensor's gathered copies: {"forward": placement, "backward": placement}. */
static bool read_gathered_copies(const MtfPlan *plan, const MtfJson *where, GError **error) {
    const char *phases[MTF_PHASES + 1] = { NULL };
    int tensor;
    for (int phase = 0; phase < MTF_PHASES; phase++)
        phases[phase] = mtf_phase_name((MtfPhase)phase);
    if (!find_tensor(plan, where, &tensor, error) || !mtf_json_keys(where, phases, error))
        return false;
    for (int phase = 0; phase < MTF_PHASES; phase++) {
        MtfJson child;
        MtfPlacement placement;
        if (!mtf_json_find(where, phases[phase], &child))
            continue;
        if (!read_placement(plan, &child, &placement, error))
            return false;
        mtf_layout_set_gathered_copy(plan->layout, tensor, (MtfPhase)phase, &placement);
    }
    return true;
}

static bool read_axis_strategy(const MtfGraph *graph, int operation, const MtfJson *where,
                               int8_t *value, GError **error) {
    const char *text;
    int choice = 0;
    GError *cause = NULL;
    if (!mtf_json_string(where, &text, error))
        return false;
    if (!mtf_strategy_axis_parse(graph, operation, text, &choice, &cause))
        return mtf_field_relay(where, cause, error);
    *value = (int8_t)choice;
    return true;
}

static bool read_strategy(const MtfPlan *plan, const MtfJson *where, GError **error) {
    MtfJson words[MTF_MAX_MESH_AXES];
    const MtfMesh *mesh = &plan->layout->mesh;
    int operation = mtf_graph_find_operation(plan->graph, mtf_json_key(where));
    if (operation < 0)
        return mtf_json_fail(where, error, "\"%s\" is not an operation of the graph",
                             mtf_json_key(where));
    if (!read_axes(where, mesh, words, error))
        return false;
    MtfStrategy *strategy = &plan->layout->operations[operation];
    for (int a = 0; a < mesh->n_axes; a++)
        if (!read_axis_strategy(plan->graph, operation, &words[a], &strategy->axis[a], error))
            return false;
    return true;
}

/* Reads a map of names; what is not in it stays replicated, or duplicated. */
static bool read_map(const MtfPlan *plan, const MtfJson *layout, const char *key,
                     bool (*read)(const MtfPlan *plan, const MtfJson *where, GError **error),
                     GError **error) {
    MtfJson map, child;
    if (!mtf_json_get_object(layout, key, &map, error))
        return false;
    for (bool more = mtf_json_first(&map, &child); more; more = mtf_json_next(&child))
        if (!read(plan, &child, error))
            return false;
    return true;
}

static bool read_rules(const MtfJson *layout, MtfPlan *plan, GError **error) {
    MtfJson where;
    const char *rules;
    if (!mtf_json_get(layout, "rules", &where, error))
        return false;
    if (cJSON_IsNull(where.node))
        return true;
    if (!mtf_json_string(&where, &rules, error))
        return false;
    GError *cause = NULL;
    g_autoptr(MtfRules) parsed =
        mtf_rules_parse(plan->graph, &plan->layout->mesh, rules, NULL, &cause);
    if (parsed == NULL)
        return mtf_field_relay(&where, cause, error);
    plan->layout->rules = g_strdup(rules);
    return true;
}

/* Reads the order of the program's instructions, and checks it. The micro-batches must be known. */
static bool read_order(const MtfJson *execution, MtfPlan *plan, GError **error) {
    MtfJson where;
    GError *cause = NULL;
    if (!mtf_json_find(execution, "order", &where))
        return true;
    g_autoptr(MtfProgram) program = mtf_lower_as_written(plan->graph, plan->layout);
    int length = mtf_program_length(program);
    g_autofree int *order = mtf_order_read(&where, length, error);
    if (order == NULL)
        return false;
    if (!mtf_order_check(program, order, &cause))
        return mtf_field_relay(&where, cause, error);
    mtf_layout_set_order(plan->layout, g_steal_pointer(&order), length);
    return true;
}

/* Reads the algorithms of collectives. Order, buckets and micro-batches must be known. */
static bool read_algorithms(const MtfJson *execution, MtfPlan *plan, GError **error) {
    MtfJson where;
    return !mtf_json_find(execution, "algorithms", &where) ||
           mtf_algorithms_read(&where, plan->graph, plan->layout, error);
}

static bool read_bucket(const MtfJson *execution, MtfPlan *plan, GError **error) {
    return mtf_json_optional_integer(execution, "bucket_bytes", 1, MTF_MAX_MESSAGE,
                                     &plan->layout->execution.bucket_bytes, error);
}

/* Lays out what the execution added like its originals; these come first. Returns whether it added any. */
static bool lay_out_added(MtfPlan *plan) {
    MtfLayout *layout = plan->layout;
    bool any = false;
    for (int i = 0; i < layout->n_operations; i++) {
        int original = original_of(plan, i);
        if (original < 0)
            continue;
        any = true;
        int result = mtf_graph_operation(plan->graph, i)->outputs[0];
        layout->operations[i] = layout->operations[original];
        layout->tensors[result] =
            layout->tensors[mtf_graph_operation(plan->graph, original)->outputs[0]];
    }
    return any;
}

static bool read_maps(const MtfPlan *plan, const MtfJson *layout, GError **error) {
    return read_map(plan, layout, "tensors", read_kept, error) &&
           read_map(plan, layout, "operations", read_strategy, error);
}

/* What was added is as its originals are, which must be known for that, unless it is named itself. */
static bool read_layout(const MtfJson *root, MtfPlan *plan, GError **error) {
    static const char *const keys[] = { "rules", "tensors", "gathered_copies", "operations", NULL };
    MtfJson where, gathered_copies;
    GError *cause = NULL;
    if (!mtf_json_get(root, "layout", &where, error) || !mtf_json_keys(&where, keys, error) ||
        !read_rules(&where, plan, error) || !read_maps(plan, &where, error) ||
        (mtf_json_find(&where, "gathered_copies", &gathered_copies) &&
         !read_map(plan, &where, "gathered_copies", read_gathered_copies, error)))
        return false;
    if (lay_out_added(plan) && !read_maps(plan, &where, error))
        return false;
    return mtf_layout_check(plan->graph, plan->layout, &cause) ||
           mtf_field_relay(&where, cause, error);
}

/* An object of another room: copied as it stands. null and absence give NULL. */
static bool read_tree(const MtfJson *root, const char *key, cJSON **tree, GError **error) {
    MtfJson where;
    if (!mtf_json_find(root, key, &where) || cJSON_IsNull(where.node))
        return true;
    if (!mtf_json_object(&where, error))
        return false;
    *tree = cJSON_Duplicate(where.node, true);
    return *tree != NULL || mtf_json_fail(&where, error, "this cannot be copied");
}

static bool read_precision(const MtfJson *root, MtfPlan *plan, GError **error) {
    static const char *const precisions[] = { "f32", "f64", "bf16", NULL };
    MtfJson where;
    int precision = 0;
    if (!mtf_json_get(root, "precision", &where, error) ||
        !mtf_field_word(&where, "a precision", precisions, &precision, error))
        return false;
    plan->precision = g_strdup(precisions[precision]);
    return true;
}

/* What graph and layout were not read for. What a stage divides is its pipeline's, which names it itself. */
static bool read_execution(const MtfJson *root, MtfPlan *plan, bool of_stage, GError **error) {
    static const char *const keys[] = {
        "order",        "bucket_bytes",    "algorithms", "recompute", "offload",
        "microbatches", "batch_dimension", "ring",       "key_parts", NULL
    };
    MtfJson where;
    const char *const stage_keys[] = { keys[0], keys[1], keys[2], keys[3], NULL };
    if (!mtf_json_get(root, "execution", &where, error) ||
        !mtf_json_keys(&where, of_stage ? stage_keys : keys, error) ||
        !read_bucket(&where, plan, error))
        return false;
    return read_order(&where, plan, error) && read_algorithms(&where, plan, error);
}

static bool read_digest(const MtfJson *root, MtfPlan *plan, GError **error) {
    MtfJson where;
    const char *digest;
    if (!mtf_json_get(root, "program_sha256", &where, error) ||
        !mtf_json_string(&where, &digest, error))
        return false;
    if (strlen(digest) != DIGEST_LENGTH || strspn(digest, "0123456789abcdef") != DIGEST_LENGTH)
        return mtf_json_fail(&where, error, "a digest of %d hexadecimal digits is expected here",
                             DIGEST_LENGTH);
    plan->program_sha256 = g_strdup(digest);
    return true;
}

/* What other rooms wrote. */
static bool read_body(const MtfJson *root, MtfPlan *plan, GError **error) {
    return read_tree(root, "machine", &plan->machine, error) &&
           read_tree(root, "mapping", &plan->mapping, error) &&
           read_tree(root, "predicted", &plan->predicted, error) &&
           read_tree(root, "search", &plan->search, error) && read_digest(root, plan, error);
}

/* What is priced for a framework that fuses, or does not, is priced so again. */
static void mark_near(MtfPlan *plan) {
    const cJSON *software = cJSON_GetObjectItemCaseSensitive(plan->machine, "software");
    if (software != NULL)
        mtf_graph_mark_near(plan->graph, mtf_framework_of_profile(software));
}

/* The name of the profile, which stands whole with the machine. */
static bool read_software(const MtfJson *root, GError **error) {
    MtfJson software;
    const char *name;
    return !mtf_json_find(root, "software", &software) || mtf_json_string(&software, &name, error);
}

static const char *const plan_keys[] = {
    "meshtf_plan", "graph",     "mesh",   "machine",        "mapping",  "precision", "layout",
    "execution",   "predicted", "search", "program_sha256", "software", NULL,
};

MtfPlan *mtf_plan_from_json(const MtfJson *root, GError **error) {
    MtfJson pipeline;
    int64_t version;
    MtfExecution execution = { 0 };
    g_autoptr(MtfPlan) plan = g_new0(MtfPlan, 1);
    if (mtf_json_find(root, "meshtf_pipeline_plan", &pipeline)) {
        mtf_json_fail(root, error,
                      "this is the plan of a pipeline, which meshtf-run executes; here "
                      "the plan of a single mesh is expected");
        return NULL;
    }
    if (!mtf_json_versions(root, "meshtf_plan", OLDEST_VERSION, VERSION, &version, error) ||
        !mtf_json_keys(root, plan_keys, error) ||
        !read_graph(root, version, plan, &execution, error) ||
        !begin_layout(root, plan, &execution, error) || !read_layout(root, plan, error) ||
        !read_precision(root, plan, error) || !read_execution(root, plan, false, error) ||
        !read_body(root, plan, error) || !read_software(root, error))
        return NULL;
    mark_near(plan);
    return g_steal_pointer(&plan);
}

MtfPlan *mtf_plan_read_stage(const MtfJson *stage, const MtfGraph *graph,
                             const MtfExecution *execution, GError **error) {
    g_autoptr(MtfPlan) plan = g_new0(MtfPlan, 1);
    plan->graph = mtf_graph_copy(graph);
    if (!begin_layout(stage, plan, execution, error) || !read_layout(stage, plan, error) ||
        !read_precision(stage, plan, error) || !read_execution(stage, plan, true, error) ||
        !read_body(stage, plan, error))
        return NULL;
    mark_near(plan);
    return g_steal_pointer(&plan);
}

MtfPlan *mtf_plan_load(const char *path, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_plan_from_json(&root, error);
}

MtfLayout *mtf_plan_layout_load(const char *path, const MtfGraph *graph, const MtfKept *kept,
                                GError **error) {
    g_autoptr(MtfPlan) plan = g_new0(MtfPlan, 1);
    g_autoptr(MtfJsonDocument) document = mtf_json_document_load(path, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    plan->graph = mtf_graph_copy(graph);
    if (!mtf_json_keys(&root, plan_keys, error) || !read_mesh(&root, plan, error))
        return NULL;
    plan->layout->execution.kept = *kept;
    if (!read_layout(&root, plan, error))
        return NULL;
    /* Tensors may have been given other places since. */
    g_clear_pointer(&plan->layout->rules, g_free);
    return g_steal_pointer(&plan->layout);
}

MtfPlan *mtf_plan_parse(const char *name, const char *text, gsize length, GError **error) {
    g_autoptr(MtfJsonDocument) document = mtf_json_document_parse(name, text, length, error);
    if (document == NULL)
        return NULL;
    MtfJson root = mtf_json_root(document);
    return mtf_plan_from_json(&root, error);
}

/* ---- writing ---- */

static void add_placement(const MtfPlan *plan, cJSON *map, const char *key,
                          const MtfPlacement *placement) {
    const MtfMesh *mesh = &plan->layout->mesh;
    cJSON *axes = cJSON_AddObjectToObject(map, key);
    for (int a = 0; a < mesh->n_axes; a++)
        cJSON_AddStringToObject(axes, mesh->axes[a].name,
                                mtf_axis_placement_name(plan->graph, placement->axis[a]));
}

/* What the reader assumes of a tensor that is not named. */
static MtfPlacement unnamed_placement(const MtfPlan *plan, int tensor) {
    int producer = mtf_graph_tensor(plan->graph, tensor)->producer;
    int original = producer < 0 ? -1 : original_of(plan, producer);
    if (original < 0)
        return mtf_placement_replicated();
    return plan->layout->tensors[mtf_graph_operation(plan->graph, original)->outputs[0]];
}

static cJSON *placements_to_json(const MtfPlan *plan) {
    const MtfLayout *layout = plan->layout;
    cJSON *map = cJSON_CreateObject();
    for (int t = 0; t < layout->n_tensors; t++) {
        MtfPlacement unnamed = unnamed_placement(plan, t);
        if (!mtf_placement_equal(&layout->tensors[t], &unnamed))
            add_placement(plan, map, mtf_graph_tensor(plan->graph, t)->name, &layout->tensors[t]);
    }
    return map;
}

/* The gathered copies that are copies. */
static cJSON *gathered_copies_to_json(const MtfPlan *plan) {
    const MtfLayout *layout = plan->layout;
    cJSON *map = cJSON_CreateObject();
    for (int t = 0; layout->gathered_copies != NULL && t < layout->n_tensors; t++) {
        cJSON *phases = NULL;
        for (int p = 0; p < MTF_PHASES; p++) {
            MtfPhase phase = (MtfPhase)p;
            if (!mtf_layout_has_gathered_copy(layout, t, phase))
                continue;
            if (phases == NULL)
                phases = cJSON_AddObjectToObject(map, mtf_graph_tensor(plan->graph, t)->name);
            add_placement(plan, phases, mtf_phase_name(phase),
                          mtf_layout_phase_placement(layout, t, phase));
        }
    }
    return map;
}

static cJSON *strategies_to_json(const MtfPlan *plan) {
    const MtfLayout *layout = plan->layout;
    cJSON *map = cJSON_CreateObject();
    for (int i = 0; i < layout->n_operations; i++) {
        int original = original_of(plan, i);
        MtfStrategy unnamed =
            original < 0 ? mtf_strategy_duplicated() : layout->operations[original];
        if (mtf_strategy_equal(&layout->operations[i], &unnamed))
            continue;
        cJSON *axes = cJSON_AddObjectToObject(map, mtf_graph_operation(plan->graph, i)->name);
        for (int a = 0; a < layout->mesh.n_axes; a++) {
            g_autofree char *choice =
                mtf_strategy_axis_format(plan->graph, i, layout->operations[i].axis[a]);
            cJSON_AddStringToObject(axes, layout->mesh.axes[a].name, choice);
        }
    }
    return map;
}

static cJSON *layout_to_json(const MtfPlan *plan) {
    cJSON *object = cJSON_CreateObject();
    if (plan->layout->rules != NULL)
        cJSON_AddStringToObject(object, "rules", plan->layout->rules);
    else
        cJSON_AddNullToObject(object, "rules");
    cJSON_AddItemToObject(object, "tensors", placements_to_json(plan));
    cJSON_AddItemToObject(object, "gathered_copies", gathered_copies_to_json(plan));
    cJSON_AddItemToObject(object, "operations", strategies_to_json(plan));
    return object;
}

/* What a tree is as a member of a plan, at the place where it stands in there; takes the tree over. Free with g_free. */
static char *print_member(cJSON *tree) {
    static const char before[] = "{\n  \"\": ", after[] = "\n}\n";
    cJSON *root = cJSON_CreateObject();
    cJSON_AddItemToObject(root, "", tree);
    char *text = mtf_json_print_levels(root, PRINT_LEVELS);
    gsize length = strlen(text) - strlen(before) - strlen(after);
    memmove(text, text + strlen(before), length);
    text[length] = '\0';
    cJSON_Delete(root);
    return text;
}

static const MtfGraph *written_graph(const MtfPlan *plan) {
    return plan->training != NULL ? plan->training : plan->graph;
}

char *mtf_plan_graph_text(const MtfGraph *training) {
    return print_member(mtf_graph_to_json(training));
}

void mtf_plan_print_graph(MtfPlan *plan) {
    g_free(plan->graph_text);
    plan->graph_text = mtf_plan_graph_text(written_graph(plan));
}

void mtf_plan_print_layout(MtfPlan *plan) {
    g_free(plan->layout_text);
    plan->layout_text = print_member(layout_to_json(plan));
}

static void add_tree(cJSON *root, const char *key, const cJSON *tree) {
    cJSON_AddItemToObject(root, key, tree == NULL ? cJSON_CreateNull() : mtf_json_printable(tree));
}

void mtf_plan_add_division(cJSON *object, const MtfGraph *graph, const MtfDivision *division) {
    mtf_json_add_integer(object, "microbatches", MAX(1, division->microbatches));
    if (division->microbatches > 1)
        cJSON_AddStringToObject(object, "batch_dimension",
                                mtf_graph_dimension(graph, division->batch)->name);
    if (division->ring > 1)
        mtf_json_add_integer(object, "ring", division->ring);
    if (division->key_parts > 1)
        mtf_json_add_integer(object, "key_parts", division->key_parts);
}

static void add_recomputation(cJSON *execution, const MtfKept *kept) {
    g_autofree char *recompute = mtf_recompute_format(kept->recompute, kept->recomputed_layers);
    g_autofree char *offload = mtf_offload_format(kept->offload, kept->offloaded_layers);
    if (kept->recompute != MTF_RECOMPUTE_NONE)
        cJSON_AddStringToObject(execution, "recompute", recompute);
    if (kept->offload != MTF_OFFLOAD_NONE)
        cJSON_AddStringToObject(execution, "offload", offload);
}

static cJSON *execution_to_json(const MtfPlan *plan, bool of_stage) {
    const MtfExecution *execution = &plan->layout->execution;
    cJSON *object = cJSON_CreateObject();
    if (!of_stage)
        mtf_plan_add_division(object, plan->graph, &execution->division);
    add_recomputation(object, &execution->kept);
    if (execution->order != NULL)
        cJSON_AddItemToObject(object, "order",
                              mtf_order_to_json(execution->order, execution->order_length));
    if (execution->bucket_bytes > 0)
        mtf_json_add_integer(object, "bucket_bytes", execution->bucket_bytes);
    cJSON *algorithms = mtf_algorithms_to_json(plan->layout);
    if (algorithms != NULL)
        cJSON_AddItemToObject(object, "algorithms", algorithms);
    return object;
}

void mtf_plan_add_body(cJSON *root, const MtfPlan *plan, bool of_stage) {
    g_autofree char *mesh = mtf_mesh_format(&plan->layout->mesh);
    cJSON_AddStringToObject(root, "mesh", mesh);
    add_tree(root, "machine", plan->machine);
    add_tree(root, "mapping", plan->mapping);
    cJSON_AddStringToObject(root, "precision", plan->precision);
    bool ahead = !of_stage && plan->layout_text != NULL;
    cJSON_AddItemToObject(root, "layout",
                          ahead ? cJSON_CreateRaw(PRINTED_AHEAD) : layout_to_json(plan));
    cJSON_AddItemToObject(root, "execution", execution_to_json(plan, of_stage));
    add_tree(root, "predicted", plan->predicted);
    add_tree(root, "search", plan->search);
    cJSON_AddStringToObject(root, "program_sha256", plan->program_sha256);
}

void mtf_plan_add_software(cJSON *root, const MtfPlan *plan) {
    const cJSON *profile = cJSON_GetObjectItemCaseSensitive(plan->machine, "software");
    const char *name = profile != NULL ? mtf_json_text_of(profile, "name") : "meshtf";
    if (plan->machine != NULL)
        cJSON_AddStringToObject(root, "software", name);
}

/* The text with what was printed ahead in its places. No string in there has the end of a line, so that nothing
 * else looks like one. */
static char *put_texts(const char *text, const MtfPlan *plan) {
    const struct {
        const char *place, *text;
    } parts[] = { { "\n  \"graph\": " PRINTED_AHEAD, plan->graph_text },
                  { "\n  \"layout\": " PRINTED_AHEAD, plan->layout_text } };
    GString *whole = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        const char *place = parts[i].text != NULL ? strstr(text, parts[i].place) : NULL;
        if (place == NULL)
            continue;
        const char *after = place + strlen(parts[i].place);
        g_string_append_len(whole, text, after - strlen(PRINTED_AHEAD) - text);
        g_string_append(whole, parts[i].text);
        text = after;
    }
    g_string_append(whole, text);
    return g_string_free(whole, FALSE);
}

char *mtf_plan_print(const MtfPlan *plan) {
    cJSON *root = cJSON_CreateObject();
    mtf_json_add_integer(root, "meshtf_plan", VERSION);
    cJSON_AddItemToObject(root, "graph",
                          plan->graph_text != NULL ? cJSON_CreateRaw(PRINTED_AHEAD)
                                                   : mtf_graph_to_json(written_graph(plan)));
    mtf_plan_add_software(root, plan);
    mtf_plan_add_body(root, plan, false);
    g_autofree char *text = mtf_json_print_levels(root, PRINT_LEVELS);
    cJSON_Delete(root);
    return put_texts(text, plan);
}

/* Whether the graph's tensors stand as a reader will number them. */
static bool is_canonical(const MtfGraph *graph) {
    int last = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        int place = (int)tensor->source + tensor->producer + 1;
        if (place < last)
            return false;
        last = place;
    }
    return true;
}

bool mtf_plan_save(const MtfPlan *plan, const char *path, GError **error) {
    if (!is_canonical(plan->graph))
        return mtf_failure(error,
                           "%s: the graph of the plan is not in canonical order, so its "
                           "program could not be lowered again",
                           path);
    g_autofree char *text = mtf_plan_print(plan);
    return mtf_file_write(path, text, strlen(text), error);
}

MtfProgram *mtf_plan_lower(const MtfPlan *plan, GError **error) {
    g_autoptr(MtfProgram) program = mtf_lower(plan->graph, plan->layout);
    g_autofree char *digest = mtf_program_digest(program);
    if (strcmp(digest, plan->program_sha256) == 0)
        return g_steal_pointer(&program);
    mtf_input_error(error,
                    "the plan lowers to the program %.12s…, not %.12s…: it was changed, or written "
                    "by another version; search again",
                    digest, plan->program_sha256);
    return NULL;
}
