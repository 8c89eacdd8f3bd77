// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/base/error.h"
#include "layouts/base/json_writer.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/plan_file/plan_parts.h"
#include "layouts/program/algorithm_list.h"
#include "layouts/program/program_order.h"

#include <string.h>

/* The elements of the graph's and the layout's lists stand on lines of their own. */
#define PRINT_LEVELS 3

/* Stands for a member that was printed ahead, which is long and copied once. */
#define PRINTED_AHEAD "@"

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
    int original = producer < 0 ? -1 : mtf_plan_original_of(plan, producer);
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
        int original = mtf_plan_original_of(plan, i);
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
    if (division->microbatches > 1 || division->own_pass)
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
    mtf_json_add_integer(root, "meshtf_plan", MTF_PLAN_VERSION);
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
