// SPDX-License-Identifier: GPL-3.0-or-later
#include "reports/exports/frameworks/framework_plan.h"

#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"

#include <inttypes.h>
#include <string.h>

/* Of a quantity that is sharded nowhere, or all but everywhere: small tensors need not be. */
#define NOWHERE 0.05

/* The first mesh axis that does something else in some of the work, or -1. */
static int odd_axis(const MtfMesh *mesh, const MtfParallelism *p) {
    for (int a = 0; a < mesh->n_axes; a++) {
        bool plain = p->axis[a] == MTF_PARALLEL_DATA || p->axis[a] == MTF_PARALLEL_TENSOR;
        if (mesh->axes[a].size > 1 && (!plain || p->second_share[a] > 0))
            return a;
    }
    return -1;
}

static bool is_sharded_in_part(const MtfParallelism *p) {
    return (p->zero < 3 && p->variables > NOWHERE) || (p->zero == 0 && p->optimizer > NOWHERE);
}

/* The first variable that is kept in pieces over an axis of data parallelism, where none should be. */
static const char *sharded_variable(const MtfPlan *plan, const MtfParallelism *p) {
    const MtfLayout *layout = plan->layout;
    for (int t = 0; t < layout->n_tensors; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(plan->graph, t);
        for (int a = 0; a < layout->mesh.n_axes; a++)
            if (tensor->source == MTF_SOURCE_VARIABLE && p->axis[a] == MTF_PARALLEL_DATA &&
                tensor->memory == MTF_MEMORY_VARIABLE && layout->tensors[t].axis[a] >= 0)
                return tensor->name;
    }
    return NULL;
}

static bool check_kind(const MtfPlan *plan, const char *framework, const MtfParallelism *p,
                       GError **error) {
    int odd = odd_axis(&plan->layout->mesh, p);
    if (odd < 0 && !is_sharded_in_part(p))
        return true;
    g_autofree char *words = mtf_parallelism_format(plan->graph, plan->layout);
    const char *variable = odd < 0 ? sharded_variable(plan, p) : NULL;
    const char *where = odd >= 0           ? plan->layout->mesh.axes[odd].name
                        : variable != NULL ? variable
                                           : "the optimizer's state";
    return mtf_input_error(
        error,
        "%s runs one kind of parallelism an axis, data or tensor, with replicated "
        "weights or ZeRO; %s %s stands in the way, and the plan is \"%s\"; search "
        "--exportable megatron finds one, or without stages torchtitan",
        framework, odd >= 0 ? "mesh axis" : "how it keeps", where, words);
}

bool mtf_framework_recomputation(const MtfPlan *plan, MtfFrameworkPlan *p, GError **error) {
    const MtfKept *kept = &plan->layout->execution.kept;
    bool layers = kept->offload == MTF_OFFLOAD_LAYERS && kept->offloaded_layers == 0 &&
                  kept->recompute == MTF_RECOMPUTE_LAYERS && kept->recomputed_layers == 0;
    p->recomputes = kept->recompute;
    p->recomputed_layers = kept->recomputed_layers;
    p->offloads = kept->offload != MTF_OFFLOAD_NONE;
    return !p->offloads || layers ||
           mtf_input_error(error, "what waits with the host stands in the way: frameworks leave "
                                  "there what layers hand on, beside layers that are all computed "
                                  "again (search --recompute layers --offload layers, or --offload "
                                  "none)");
}

/* The first weight whose parts over the axes of tensor parallelism are uneven, or -1. Vocabularies are padded. */
static int uneven_weight(const MtfPlan *plan, const MtfParallelism *p, int *dim, int *parts) {
    const MtfLayout *layout = plan->layout;
    for (int t = 0; t < layout->n_tensors; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(plan->graph, t);
        for (int a = 0; a < layout->mesh.n_axes && tensor->source == MTF_SOURCE_VARIABLE; a++) {
            *dim = layout->tensors[t].axis[a];
            *parts = layout->mesh.axes[a].size;
            if (p->axis[a] == MTF_PARALLEL_TENSOR && *dim >= 0 &&
                *dim != mtf_graph_find_dimension(plan->graph, "vocab") &&
                mtf_graph_size(plan->graph, *dim) % *parts != 0)
                return t;
        }
    }
    return -1;
}

bool mtf_framework_check_even(const MtfPlan *plan, const char *framework, const MtfParallelism *p,
                              GError **error) {
    int dim, parts, tensor = uneven_weight(plan, p, &dim, &parts);
    return tensor < 0 ||
           mtf_input_error(error,
                           "%s splits tensors evenly only, and dimension \"%s\" of %" PRId64
                           " in \"%s\" does not divide by %d: search again with --even",
                           framework, mtf_graph_dimension(plan->graph, dim)->name,
                           mtf_graph_size(plan->graph, dim),
                           mtf_graph_tensor(plan->graph, tensor)->name, parts);
}

bool mtf_framework_check_text(const MtfPlan *plan, const char *framework, GError **error) {
    for (int t = 0; t < (int)plan->graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(plan->graph, t);
        bool label = tensor->feed == MTF_FEED_LABELS || tensor->feed == MTF_FEED_NEXT_TOKENS;
        if (tensor->source == MTF_SOURCE_INPUT && !label && !mtf_dtype_is_float(tensor->dtype))
            return true;
    }
    return mtf_input_error(error,
                           "%s trains language models, and \"%s\" reads no tokens; jax, dtensor, "
                           "shardy and deepspeed are for any network",
                           framework, plan->graph->name);
}

static bool split_batch(const MtfPlan *plan, int batch, MtfFrameworkPlan *found, GError **error) {
    int64_t parts = (int64_t)found->parallelism.degree[MTF_PARALLEL_DATA] *
                    plan->layout->execution.division.microbatches;
    found->batch = mtf_graph_step_size(plan->graph, batch);
    found->micro_batch = found->batch / parts;
    if (found->batch % parts != 0)
        return mtf_input_error(error, "a batch of %" PRId64 " does not divide by %" PRId64,
                               found->batch, parts);
    return true;
}

bool mtf_framework_plan(const MtfPlan *plan, const char *framework, MtfFrameworkPlan *found,
                        GError **error) {
    const MtfGraph *graph = plan->graph;
    *found = (MtfFrameworkPlan){ .parallelism = mtf_parallelism(graph, plan->layout) };
    int batch = mtf_graph_find_dimension(graph, "batch");
    if (batch < 0)
        return mtf_input_error(error, "the graph has no dimension \"batch\" that %s could split",
                               framework);
    if (strcmp(plan->precision, "f64") == 0)
        return mtf_input_error(error, "%s does not train in f64", framework);
    if (!check_kind(plan, framework, &found->parallelism, error) ||
        !mtf_framework_check_even(plan, framework, &found->parallelism, error))
        return false;
    return split_batch(plan, batch, found, error) &&
           mtf_framework_recomputation(plan, found, error);
}
