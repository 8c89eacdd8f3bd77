// SPDX-License-Identifier: GPL-3.0-or-later
/* Megatron-LM's flags, for a layout of its kind: one mesh axis splits the batch, and one splits
 * heads, d_ff and vocab, all of them that the graph has; or a free layout of that kind, with sequence
 * parallelism and a distributed optimizer where it has them. Data parallelism is implied by the number
 * of processors. */
#include "cost/summary/parallelism.h"
#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"
#include "reports/exports/export_forms.h"
#include "reports/exports/frameworks/megatron_flags.h"

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

/* Sizes of the groups that Megatron-LM forms. */
typedef struct {
    int tensor, data;
} Groups;

/* From rules, which name the dimension in the way where there is one. */
static bool groups_of_rules(const MtfStepFacts *facts, Groups *groups, GError **error) {
    const MtfPlan *plan = facts->plan;
    const MtfMesh *mesh = &plan->layout->mesh;
    int batch = mtf_graph_find_dimension(plan->graph, "batch"), tensor_axis = -1;
    g_autoptr(MtfRules) rules = mtf_export_rules(facts, error);
    if (rules == NULL)
        return false;
    if (batch < 0)
        return mtf_input_error(error,
                               "the graph has no dimension \"batch\" that Megatron-LM could split");
    if (!check_dims(plan->graph, mesh, rules, error) ||
        !find_tensor_axis(plan->graph, rules, &tensor_axis, error) ||
        !check_mesh(mesh, rules->axis[batch], tensor_axis, error))
        return false;
    *groups = (Groups){ axis_size(mesh, tensor_axis), axis_size(mesh, rules->axis[batch]) };
    return true;
}

/* Names what a free layout does that Megatron-LM does not. */
static bool fail_free(const MtfStepFacts *facts, GError **error) {
    g_autofree char *words = mtf_parallelism_format(facts->plan->graph, facts->plan->layout);
    GError *cause = NULL;
    Groups groups;
    groups_of_rules(facts, &groups, &cause);
    mtf_input_error(
        error,
        "%s; Megatron-LM runs one kind of parallelism an axis, data or tensor, with a "
        "replicated or a distributed optimizer, and the plan is \"%s\"; search --exportable "
        "megatron finds one",
        cause != NULL ? cause->message : "the layout is not Megatron-LM's", words);
    g_clear_error(&cause);
    return false;
}

static void append_recomputation(GString *text, const MtfFrameworkPlan *framework) {
    if (framework->recomputes == MTF_RECOMPUTE_LAYERS && framework->recomputed_layers > 0)
        g_string_append_printf(text,
                               " --recompute-granularity full --recompute-method block "
                               "--recompute-num-layers %d",
                               framework->recomputed_layers);
    else if (framework->recomputes == MTF_RECOMPUTE_LAYERS)
        g_string_append(text, " --recompute-granularity full --recompute-method uniform "
                              "--recompute-num-layers 1");
    if (framework->recomputes == MTF_RECOMPUTE_CHEAP)
        g_string_append(text, " --recompute-granularity selective");
}

void mtf_megatron_append_execution(GString *text, const MtfPlan *plan,
                                   const MtfFrameworkPlan *framework) {
    const MtfParallelism *p = &framework->parallelism;
    if (strcmp(plan->precision, "bf16") == 0)
        g_string_append(text, " --bf16");
    if (p->sequence_parallel && p->degree[MTF_PARALLEL_TENSOR] > 1)
        g_string_append(text, " --sequence-parallel");
    if (p->zero == 1)
        g_string_append(text, " --use-distributed-optimizer");
    append_recomputation(text, framework);
}

char *mtf_export_megatron(const MtfStepFacts *facts, GError **error) {
    const MtfPlan *plan = facts->plan;
    MtfParallelism p = mtf_parallelism(plan->graph, plan->layout);
    MtfFrameworkPlan how = { .parallelism = p };
    Groups groups = { p.degree[MTF_PARALLEL_TENSOR], p.degree[MTF_PARALLEL_DATA] };
    int batch = mtf_graph_find_dimension(plan->graph, "batch");
    if (!mtf_framework_check_text(plan, "Megatron-LM", error))
        return NULL;
    if (plan->layout->rules == NULL && batch >= 0
            ? !mtf_parallelism_is_megatron(&p) && !fail_free(facts, error)
            : !groups_of_rules(facts, &groups, error))
        return NULL;
    if (!mtf_framework_check_even(plan, "Megatron-LM", &p, error) ||
        !mtf_framework_recomputation(plan, &how, error))
        return NULL;
    if (how.offloads) {
        mtf_input_error(error, "Megatron-LM has no flag for layers' inputs that wait with the host "
                               "beside recomputation (search --offload none)");
        return NULL;
    }
    int64_t size = mtf_graph_step_size(plan->graph, batch);
    int64_t parts = (int64_t)groups.data * plan->layout->execution.division.microbatches;
    if (size % parts != 0) {
        mtf_input_error(error, "a batch of %" PRId64 " does not divide by %" PRId64, size, parts);
        return NULL;
    }
    GString *text = g_string_new(NULL);
    g_string_append_printf(text,
                           "--tensor-model-parallel-size %d --pipeline-model-parallel-size 1 "
                           "--micro-batch-size %" PRId64 " --global-batch-size %" PRId64,
                           groups.tensor, size / parts, size);
    mtf_megatron_append_execution(text, plan, &how);
    g_string_append_c(text, '\n');
    return g_string_free(text, FALSE);
}
