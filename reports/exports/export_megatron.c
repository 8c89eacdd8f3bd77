// SPDX-License-Identifier: GPL-3.0-or-later
/* Megatron-LM's flags, for a layout of its kind: one mesh axis splits the batch, and one splits
 * heads, d_ff and vocab, all of them that the graph has. Data parallelism is implied by the number
 * of processors. */
#include "layouts/base/error.h"
#include "reports/exports/export_forms.h"

#include <inttypes.h>
#include <string.h>

static const char *const tensor_dims[] = { "heads", "d_ff", "vocab" };

static bool is_tensor_dim(const char *name) {
    for (gsize i = 0; i < G_N_ELEMENTS(tensor_dims); i++)
        if (strcmp(tensor_dims[i], name) == 0)
            return true;
    return false;
}

/* Nothing but the batch and the three may be split. */
static bool check_dims(const MtfGraph *graph, const MtfMesh *mesh, const MtfRules *rules,
                       GError **error) {
    for (int dim = 0; dim < rules->n_dims; dim++) {
        const char *name = mtf_graph_dimension(graph, dim)->name;
        if (rules->axis[dim] >= 0 && strcmp(name, "batch") != 0 && !is_tensor_dim(name))
            return mtf_input_error(error,
                                   "the layout is not Megatron-LM's: it splits \"%s\" over %s, and "
                                   "Megatron-LM splits batch, heads, d_ff and vocab alone",
                                   name, mesh->axes[rules->axis[dim]].name);
    }
    return true;
}

/* The axis that splits heads, d_ff and vocab alike; -1 when none does. */
static bool find_tensor_axis(const MtfGraph *graph, const MtfRules *rules, int *axis,
                             GError **error) {
    int first = -1;
    for (gsize i = 0; i < G_N_ELEMENTS(tensor_dims); i++) {
        int dim = mtf_graph_find_dimension(graph, tensor_dims[i]);
        if (dim < 0)
            continue;
        if (first >= 0 && rules->axis[dim] != rules->axis[first])
            return mtf_input_error(error,
                                   "the layout is not Megatron-LM's: it splits \"%s\" and \"%s\" "
                                   "differently, and Megatron-LM splits both over one axis",
                                   mtf_graph_dimension(graph, first)->name, tensor_dims[i]);
        first = dim;
    }
    *axis = first >= 0 ? rules->axis[first] : -1;
    return true;
}

static bool check_mesh(const MtfMesh *mesh, int data_axis, int tensor_axis, GError **error) {
    if (data_axis >= 0 && data_axis == tensor_axis)
        return mtf_input_error(error,
                               "the layout is not Megatron-LM's: axis %s splits the batch and the "
                               "model both",
                               mesh->axes[data_axis].name);
    for (int a = 0; a < mesh->n_axes; a++)
        if (mesh->axes[a].size > 1 && a != data_axis && a != tensor_axis)
            return mtf_input_error(error,
                                   "the layout is not Megatron-LM's: mesh axis %s splits neither "
                                   "the batch nor heads, d_ff and vocab",
                                   mesh->axes[a].name);
    return true;
}

static int axis_size(const MtfMesh *mesh, int axis) {
    return axis >= 0 ? mesh->axes[axis].size : 1;
}

char *mtf_export_megatron(const MtfStepFacts *facts, GError **error) {
    const MtfPlan *plan = facts->plan;
    const MtfMesh *mesh = &plan->layout->mesh;
    int batch = mtf_graph_find_dimension(plan->graph, "batch"), tensor_axis = -1;
    g_autoptr(MtfRules) rules = mtf_export_rules(facts, error);
    if (rules == NULL)
        return NULL;
    if (batch < 0) {
        mtf_input_error(error, "the graph has no dimension \"batch\" that Megatron-LM could split");
        return NULL;
    }
    if (!check_dims(plan->graph, mesh, rules, error) ||
        !find_tensor_axis(plan->graph, rules, &tensor_axis, error) ||
        !check_mesh(mesh, rules->axis[batch], tensor_axis, error))
        return NULL;
    int64_t size = mtf_graph_size(plan->graph, batch);
    int64_t parts = (int64_t)axis_size(mesh, rules->axis[batch]) * plan->graph->microbatches;
    if (size % parts != 0) {
        mtf_input_error(error, "a batch of %" PRId64 " does not divide by %" PRId64, size, parts);
        return NULL;
    }
    return g_strdup_printf("--tensor-model-parallel-size %d --pipeline-model-parallel-size 1 "
                           "--micro-batch-size %" PRId64 " --global-batch-size %" PRId64 "\n",
                           axis_size(mesh, tensor_axis), size / parts, size);
}
