// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/layout.h"

#include "layouts/base/error.h"
#include "layouts/graph/microbatches.h"
#include "layouts/placement/compared_tensors.h"

MtfLayout *mtf_layout_new(const MtfGraph *graph, const MtfMesh *mesh) {
    MtfLayout *layout = g_new0(MtfLayout, 1);
    layout->mesh = *mesh;
    layout->n_tensors = (int)graph->tensors->len;
    layout->n_operations = (int)graph->operations->len;
    int microbatches = mtf_graph_microbatches(graph), batch = mtf_graph_batch(graph);
    layout->execution.division = (MtfDivision){ .microbatches = microbatches,
                                                .batch = batch,
                                                .own_pass = batch >= 0 && microbatches == 1 };
    layout->tensors = g_new(MtfPlacement, layout->n_tensors);
    layout->operations = g_new(MtfStrategy, layout->n_operations);
    for (int t = 0; t < layout->n_tensors; t++)
        layout->tensors[t] = mtf_placement_replicated();
    for (int i = 0; i < layout->n_operations; i++)
        layout->operations[i] = mtf_strategy_duplicated();
    return layout;
}

MtfLayout *mtf_layout_copy(const MtfLayout *layout) {
    MtfLayout *copy = g_new0(MtfLayout, 1);
    *copy = *layout;
    copy->rules = g_strdup(layout->rules);
    copy->tensors = g_memdup2(layout->tensors, sizeof(MtfPlacement) * (gsize)layout->n_tensors);
    copy->operations =
        g_memdup2(layout->operations, sizeof(MtfStrategy) * (gsize)layout->n_operations);
    if (layout->gathered_copies != NULL)
        copy->gathered_copies =
            g_memdup2(layout->gathered_copies,
                      sizeof(MtfGatheredCopy) * MTF_PHASES * (gsize)layout->n_tensors);
    copy->execution.order =
        g_memdup2(layout->execution.order, sizeof(int) * (gsize)layout->execution.order_length);
    copy->execution.algorithms =
        g_memdup2(layout->execution.algorithms, (gsize)layout->execution.n_algorithms);
    return copy;
}

void mtf_layout_free(MtfLayout *layout) {
    if (layout == NULL)
        return;
    g_free(layout->rules);
    g_free(layout->tensors);
    g_free(layout->operations);
    g_free(layout->gathered_copies);
    g_free(layout->execution.order);
    g_free(layout->execution.algorithms);
    g_free(layout);
}

const MtfPlacement *mtf_layout_phase_placement(const MtfLayout *layout, int tensor,
                                               MtfPhase phase) {
    if (layout->gathered_copies != NULL) {
        const MtfGatheredCopy *gathered_copy =
            &layout->gathered_copies[tensor * MTF_PHASES + (int)phase];
        if (gathered_copy->given)
            return &gathered_copy->placement;
    }
    return &layout->tensors[tensor];
}

void mtf_layout_set_gathered_copy(MtfLayout *layout, int tensor, MtfPhase phase,
                                  const MtfPlacement *placement) {
    if (layout->gathered_copies == NULL)
        layout->gathered_copies = g_new0(MtfGatheredCopy, MTF_PHASES * layout->n_tensors);
    layout->gathered_copies[tensor * MTF_PHASES + (int)phase] =
        (MtfGatheredCopy){ true, *placement };
}

void mtf_layout_set_order(MtfLayout *layout, int *order, int length) {
    g_free(layout->execution.order);
    layout->execution.order = order;
    layout->execution.order_length = order != NULL ? length : 0;
}

void mtf_layout_set_algorithms(MtfLayout *layout, unsigned char *algorithms, int length) {
    g_free(layout->execution.algorithms);
    layout->execution.algorithms = algorithms;
    layout->execution.n_algorithms = algorithms != NULL ? length : 0;
}

bool mtf_layout_has_gathered_copy(const MtfLayout *layout, int tensor, MtfPhase phase) {
    return !mtf_placement_equal(mtf_layout_phase_placement(layout, tensor, phase),
                                &layout->tensors[tensor]);
}

/* Checks the placement that a tensor is kept in or read from. */
static bool check_placement(const MtfGraph *graph, const MtfLayout *layout, int tensor,
                            const MtfPlacement *placement, GError **error) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    if (!mtf_placement_check(graph, &layout->mesh, tensor, placement, error))
        return false;
    return t->producer >= 0 || mtf_placement_partial_axes(placement) == 0 ||
           mtf_input_error(error, "tensor \"%s\" is no result and cannot be partial", t->name);
}

static bool check_gathered_copies(const MtfGraph *graph, const MtfLayout *layout, GError **error) {
    for (int i = 0; layout->gathered_copies != NULL && i < layout->n_tensors * MTF_PHASES; i++)
        if (layout->gathered_copies[i].given &&
            !check_placement(graph, layout, i / MTF_PHASES, &layout->gathered_copies[i].placement,
                             error))
            return false;
    return true;
}

/* Transfers make no sums. */
static bool check_sent(const MtfGraph *graph, const MtfLayout *layout, GError **error) {
    for (int t = 0; t < layout->n_tensors; t++)
        if (mtf_graph_tensor(graph, t)->is_sent &&
            mtf_placement_partial_axes(&layout->tensors[t]) != 0)
            return mtf_input_error(
                error,
                "tensor \"%s\", which another pipeline stage reads, is a partial "
                "sum",
                mtf_graph_tensor(graph, t)->name);
    return true;
}

static bool check_compared(const MtfGraph *graph, const MtfLayout *layout, GError **error) {
    g_autofree bool *compared = mtf_compared_tensors(graph);
    for (int t = 0; t < layout->n_tensors; t++)
        for (int a = 0; compared[t] && a < layout->mesh.n_axes; a++)
            if (layout->tensors[t].axis[a] == MTF_PARTIAL_SUM)
                return mtf_input_error(
                    error,
                    "tensor \"%s\", which is read and compared, is "
                    "kept as a partial sum, which every reading rounds in its own "
                    "way: search for a layout anew",
                    mtf_graph_tensor(graph, t)->name);
    return true;
}

/* What lies with the host cannot be resharded there. */
static bool check_host_copy(const MtfGraph *graph, const MtfLayout *layout, int operation,
                            GError **error) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    MtfHostCopy copy = mtf_operation_row(op->kind)->host;
    if (copy == MTF_HOST_NOTHING)
        return true;
    int tensor = copy == MTF_HOST_TO ? op->outputs[0] : op->inputs[0];
    MtfIteration iteration;
    mtf_operation_iteration(graph, operation, &iteration);
    const MtfStrategy *strategy = &layout->operations[operation];
    MtfPlacement placement = mtf_strategy_output(graph, operation, &iteration, strategy, 0);
    return (mtf_placement_equal(&placement, &layout->tensors[tensor]) &&
            mtf_placement_equal(mtf_layout_phase_placement(layout, tensor, op->phase),
                                &layout->tensors[tensor])) ||
           mtf_input_error(error,
                           "tensor \"%s\" lies in the host's memory, where \"%s\" must find it in "
                           "the placement that it is kept in",
                           mtf_graph_tensor(graph, tensor)->name, op->name);
}

bool mtf_layout_check(const MtfGraph *graph, const MtfLayout *layout, GError **error) {
    for (int t = 0; t < layout->n_tensors; t++)
        if (!check_placement(graph, layout, t, &layout->tensors[t], error))
            return false;
    if (!check_gathered_copies(graph, layout, error))
        return false;
    for (int i = 0; i < layout->n_operations; i++)
        if (!mtf_strategy_check(graph, &layout->mesh, i, &layout->operations[i], error) ||
            !check_host_copy(graph, layout, i, error))
            return false;
    return check_sent(graph, layout, error) && check_compared(graph, layout, error);
}

const char *mtf_layout_title(const MtfLayout *layout) {
    if (layout->rules == NULL)
        return "free, one choice a tensor";
    return *layout->rules != 0 ? layout->rules : "no rule: every device holds and does all";
}

int mtf_layout_find_uneven(const MtfGraph *graph, const MtfLayout *layout, int *dim) {
    for (int t = 0; t < layout->n_tensors; t++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, t)->shape;
        int64_t parts[MTF_MAX_RANK];
        mtf_placement_parts(&layout->mesh, shape, &layout->tensors[t], parts);
        for (int i = 0; i < shape->rank; i++) {
            if (mtf_graph_size(graph, shape->dims[i]) % parts[i] == 0)
                continue;
            *dim = shape->dims[i];
            return t;
        }
    }
    return -1;
}
