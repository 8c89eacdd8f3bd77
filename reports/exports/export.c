// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/export.h"

#include "layouts/base/error.h"
#include "layouts/base/nearest_name.h"
#include "reports/exports/export_forms.h"
#include "reports/exports/rank_places.h"
#include "reports/facts/closest_rules.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    char *(*write)(const MtfStepFacts *, GError **);
} forms[] = {
    { "mtf", mtf_export_mtf },
    { "jax", mtf_export_jax },
    { "dtensor", mtf_export_dtensor },
    { "megatron", mtf_export_megatron },
    { "shardy", mtf_export_shardy },
    { "onnx-text", mtf_export_onnx_text },
    { "deepspeed", mtf_export_deepspeed },
    { "maxtext", mtf_export_maxtext },
    { "torchtitan", mtf_export_torchtitan },
};

/* Written from the plan's file, from where its ranks lie, and of pipelines alone. */
static const char *const other_forms[] = { "onnx", "slurm", "rankfile", NULL };
static const char *const pipeline_forms[] = { "torch-pipelining", "alpa", NULL };

static char *fail_form(const char *to, GError **error) {
    if (g_strv_contains(pipeline_forms, to)) {
        mtf_input_error(error,
                        "%s is for plans with stages, which this one has none of: search with "
                        "--stages S, of 2 or more",
                        to);
        return NULL;
    }
    g_autoptr(GPtrArray) known = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++)
        g_ptr_array_add(known, (void *)(guintptr)forms[i].name);
    for (int i = 0; other_forms[i] != NULL; i++)
        g_ptr_array_add(known, (void *)(guintptr)other_forms[i]);
    g_autofree char *names = mtf_there_are(to, known);
    mtf_input_error(
        error,
        "a plan cannot be exported to \"%s\"%s; pipelines: "
        "torch-pipelining, megatron, deepspeed, torchtitan, alpa, onnx, slurm, rankfile",
        to, names);
    return NULL;
}

char *mtf_export(const MtfStepFacts *facts, const MtfExportRequest *request, GError **error) {
    bool slurm = strcmp(request->to, "slurm") == 0;
    if (slurm || strcmp(request->to, "rankfile") == 0) {
        g_auto(MtfRankPlaces) places = { 0 };
        mtf_rank_places_init(&places, facts->plan->graph->name, &facts->pricer.map.slice);
        mtf_rank_places_add(&places, &facts->pricer.map.mapping, 0);
        return slurm ? mtf_rank_places_slurm(&places)
                     : mtf_rank_places_rankfile(&places, request->hosts, error);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(forms); i++)
        if (strcmp(forms[i].name, request->to) == 0)
            return forms[i].write(facts, error);
    return fail_form(request->to, error);
}

/* ---- What the forms share ------------------------------------------------------------------ */

char *mtf_export_quote(const char *text) {
    cJSON *string = cJSON_CreateString(text);
    char *printed = cJSON_PrintUnformatted(string);
    char *quoted = g_strdup(printed);
    cJSON_free(printed);
    cJSON_Delete(string);
    return quoted;
}

bool mtf_export_lists(const MtfStepFacts *facts, int tensor, bool results) {
    const MtfTensor *t = mtf_graph_tensor(facts->plan->graph, tensor);
    if (t->source != MTF_SOURCE_OPERATION)
        return true;
    return results &&
           mtf_graph_operation(facts->plan->graph, t->producer)->phase == MTF_PHASE_FORWARD;
}

/* Python writes a tuple of one as "(4,)". */
static char *close_tuple(GString *text, int n) {
    g_string_append(text, n == 1 ? ",)" : ")");
    return g_string_free(text, FALSE);
}

char *mtf_export_mesh_sizes(const MtfMesh *mesh) {
    GString *text = g_string_new("(");
    for (int a = 0; a < mesh->n_axes; a++)
        g_string_append_printf(text, "%s%d", a > 0 ? ", " : "", mesh->axes[a].size);
    if (mesh->n_axes == 0)
        g_string_append_c(text, '1');
    return close_tuple(text, MAX(mesh->n_axes, 1));
}

char *mtf_export_mesh_names(const MtfMesh *mesh) {
    GString *text = g_string_new("(");
    for (int a = 0; a < mesh->n_axes; a++) {
        g_autofree char *name = mtf_export_quote(mesh->axes[a].name);
        g_string_append_printf(text, "%s%s", a > 0 ? ", " : "", name);
    }
    if (mesh->n_axes == 0)
        g_string_append(text, "\"all\"");
    return close_tuple(text, MAX(mesh->n_axes, 1));
}

char *mtf_export_devices(const MtfStepFacts *facts) {
    GString *text = g_string_new(NULL);
    bool moved = false;
    for (int rank = 0; rank < mtf_mesh_size(&facts->plan->layout->mesh); rank++) {
        int64_t place = mtf_mapping_place(&facts->pricer.map.mapping, rank);
        moved = moved || place != rank;
        g_string_append_printf(text, "%s%" PRId64, rank > 0 ? ", " : "", place);
    }
    return g_string_free(text, !moved);
}

/* The first argument or forward result that is split unevenly, or -1. */
static int find_uneven(const MtfStepFacts *facts, int *dim) {
    const MtfGraph *graph = facts->plan->graph;
    const MtfLayout *layout = facts->plan->layout;
    for (int t = 0; t < layout->n_tensors; t++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, t)->shape;
        for (int i = 0; i < shape->rank && mtf_export_lists(facts, t, true); i++) {
            unsigned axes = mtf_placement_split_axes(&layout->tensors[t], shape->dims[i]);
            *dim = shape->dims[i];
            if (mtf_graph_size(graph, *dim) % mtf_mesh_group_size(&layout->mesh, axes) != 0)
                return t;
        }
    }
    return -1;
}

bool mtf_export_check_even(const MtfStepFacts *facts, const char *system, GError **error) {
    int dim, tensor = find_uneven(facts, &dim);
    if (tensor < 0)
        return true;
    const MtfLayout *layout = facts->plan->layout;
    unsigned axes = mtf_placement_split_axes(&layout->tensors[tensor], dim);
    return mtf_input_error(error,
                           "%s splits tensors evenly only, and dimension \"%s\" of %" PRId64
                           " in \"%s\" does not divide by %d: search again with --even",
                           system, mtf_graph_dimension(facts->plan->graph, dim)->name,
                           mtf_graph_size(facts->plan->graph, dim),
                           mtf_graph_tensor(facts->plan->graph, tensor)->name,
                           mtf_mesh_group_size(&layout->mesh, axes));
}

/* ---- Rules --------------------------------------------------------------------------------- */

/* "split over rows", "replicated". */
static char *axes_text(const MtfMesh *mesh, unsigned axes) {
    g_autofree char *names = mtf_mesh_mask_format(mesh, axes);
    return axes == 0 ? g_strdup("replicated") : g_strdup_printf("split over %s", names);
}

/* Which systems take any layout, and on what condition. */
static const char *others_text(const MtfStepFacts *facts) {
    int dim;
    return find_uneven(facts, &dim) < 0
               ? "jax, dtensor and shardy can hold it"
               : "dtensor and shardy can hold it, jax one that is searched with --even";
}

/* Names two tensors that split a dimension differently. */
static bool fail_dimension(const MtfStepFacts *facts, int dim, GError **error) {
    const MtfGraph *graph = facts->plan->graph;
    const MtfLayout *layout = facts->plan->layout;
    int first = -1;
    for (int t = 0; t < layout->n_tensors; t++) {
        if (mtf_shape_find(&mtf_graph_tensor(graph, t)->shape, dim) < 0)
            continue;
        unsigned axes = mtf_placement_split_axes(&layout->tensors[t], dim);
        if (first < 0)
            first = t;
        unsigned before = mtf_placement_split_axes(&layout->tensors[first], dim);
        if (axes == before)
            continue;
        g_autofree char *one = axes_text(&layout->mesh, before);
        g_autofree char *other = axes_text(&layout->mesh, axes);
        mtf_input_error(error,
                        "the layout is no rule layout: dimension \"%s\" is %s in \"%s\" but %s in "
                        "\"%s\"; %s",
                        mtf_graph_dimension(graph, dim)->name, one,
                        mtf_graph_tensor(graph, first)->name, other,
                        mtf_graph_tensor(graph, t)->name, others_text(facts));
        return true;
    }
    return false;
}

MtfRules *mtf_export_rules(const MtfStepFacts *facts, GError **error) {
    const MtfPlan *plan = facts->plan;
    bool exact;
    g_autofree char *text = mtf_closest_rules(plan->graph, plan->layout, &exact);
    if (exact)
        return mtf_rules_parse(plan->graph, &plan->layout->mesh, text, NULL, error);
    for (int dim = 0; dim < (int)plan->graph->dimensions->len; dim++)
        if (fail_dimension(facts, dim, error))
            return NULL;
    mtf_input_error(error,
                    "the layout is no rule layout: its tensors are split as \"%s\" has it, "
                    "but some are kept as partial sums, or operations run otherwise, where "
                    "rules would have it different; %s",
                    text, others_text(facts));
    return NULL;
}
