// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/plan_file/plan_parts.h"

#include "layouts/base/error.h"
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
#define OLDEST_VERSION 3
#define WHOLE_STEP_VERSION 6

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

int mtf_plan_original_of(const MtfPlan *plan, int operation) {
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

/* With one micro-batch a dimension is named as the batch where that is a pass of its own. */
static bool read_microbatches(const MtfJson *object, const MtfGraph *graph, MtfDivision *division,
                              GError **error) {
    MtfJson where;
    int64_t microbatches = 0;
    if (!mtf_json_get_integer(object, "microbatches", 1, MTF_MAX_MICROBATCHES, &microbatches,
                              error))
        return false;
    division->microbatches = (int)microbatches;
    division->own_pass = microbatches == 1 && mtf_json_find(object, "batch_dimension", &where);
    return (microbatches == 1 && !division->own_pass) ||
           (mtf_json_get(object, "batch_dimension", &where, error) &&
            mtf_field_dimension(graph, &where, &division->batch, error));
}

/* Only passes of several stages overlap. */
static bool check_own_pass(const MtfJson *object, const MtfDivision *division, GError **error) {
    MtfJson where;
    return !division->own_pass || !mtf_json_find(object, "batch_dimension", &where) ||
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
        !mtf_plan_read_division(&object, plan->training, &execution->division, error) ||
        !check_own_pass(&object, &execution->division, error))
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
        int original = mtf_plan_original_of(plan, i);
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
    if (!mtf_json_versions(root, "meshtf_plan", OLDEST_VERSION, MTF_PLAN_VERSION, &version,
                           error) ||
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
