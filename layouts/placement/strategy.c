// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/placement/strategy.h"

#include "layouts/base/error.h"
#include "layouts/graph/reshape.h"

#include <string.h>

MtfStrategy mtf_strategy_duplicated(void) {
    MtfStrategy strategy;
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++)
        strategy.axis[a] = MTF_DUPLICATED;
    return strategy;
}

bool mtf_strategy_equal(const MtfStrategy *a, const MtfStrategy *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

/* The dimension of input `k` that is split with an index; that of a window may be its other one, and
 * along a joined one each input has its own, which are read with margins (margins.h). MTF_REPLICATED
 * where the input has none of them. */
static int input_side(const MtfGraph *graph, const MtfOperation *op, int k, const MtfIndex *index) {
    const MtfShape *shape = mtf_operation_operand_shape(graph, op, k);
    int joined = index->joined ? mtf_joined_side(graph, op, k) : -1;
    if (joined >= 0)
        return joined;
    if (mtf_shape_find(shape, index->input_dim) >= 0)
        return index->input_dim;
    return index->other_dim >= 0 && mtf_shape_find(shape, index->other_dim) >= 0 ? index->other_dim
                                                                                 : MTF_REPLICATED;
}

MtfPlacement mtf_strategy_input(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                                const MtfStrategy *strategy, int k) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    bool joint = mtf_operation_row(op->kind)->linearity == MTF_LINEAR_JOINT;
    MtfPlacement placement = mtf_placement_replicated();
    if (mtf_operation_adds_input(op, k))
        return mtf_strategy_output(graph, operation, iteration, strategy, 0);
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++) {
        int choice = strategy->axis[a];
        if (choice >= 0)
            placement.axis[a] = (int16_t)input_side(graph, op, k, &iteration->index[choice]);
        if (choice <= MTF_PARTIAL_INPUT && (joint || MTF_PARTIAL_INPUT - choice == k))
            placement.axis[a] = MTF_PARTIAL_SUM;
    }
    return placement;
}

MtfPlacement mtf_strategy_output(const MtfGraph *graph, int operation,
                                 const MtfIteration *iteration, const MtfStrategy *strategy,
                                 int k) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfShape *shape = &mtf_graph_tensor(graph, op->outputs[k])->shape;
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    bool maximum = row->reduction == MTF_REDUCE_MAX;
    MtfPlacement placement = mtf_placement_replicated();
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++) {
        int choice = strategy->axis[a];
        if (choice <= MTF_PARTIAL_INPUT)
            placement.axis[a] = MTF_PARTIAL_SUM;
        else if (choice >= 0 && mtf_shape_find(shape, iteration->index[choice].dim) >= 0)
            placement.axis[a] = (int16_t)iteration->index[choice].dim;
        else if (choice >= 0 && row->along != MTF_ALONG_CHOOSES)
            placement.axis[a] = maximum ? MTF_PARTIAL_MAX : MTF_PARTIAL_SUM;
    }
    return placement;
}

bool mtf_operation_passes_partial(const MtfGraph *graph, int operation, int k) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    if (row->linearity == MTF_LINEAR_JOINT)
        return true;
    for (int j = 0; j < op->n_inputs; j++)
        if (j != k && op->inputs[j] == op->inputs[k])
            return false;
    bool truncates = row->converts &&
                     !mtf_dtype_is_float(mtf_graph_tensor(graph, op->outputs[0])->dtype) &&
                     mtf_dtype_is_float(mtf_graph_tensor(graph, op->inputs[k])->dtype);
    if (truncates)
        return false;
    return row->linearity == MTF_LINEAR_EACH ||
           (row->linearity == MTF_LINEAR_ONE && row->linear_input == k);
}

static bool check_partial_input(const MtfGraph *graph, int operation, int k, const char *axis,
                                GError **error) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    bool joint = mtf_operation_row(op->kind)->linearity == MTF_LINEAR_JOINT;
    if (joint && k > 0)
        return mtf_input_error(error,
                               "operation \"%s\" is a sum: on axis \"%s\" all its inputs are "
                               "partial, or none",
                               op->name, axis);
    return (k < op->n_inputs && mtf_operation_passes_partial(graph, operation, k)) ||
           mtf_input_error(error,
                           "operation \"%s\" is not linear in its input %d, so that input cannot "
                           "stay partial on axis \"%s\"",
                           op->name, k, axis);
}

static bool check_split(const MtfGraph *graph, int operation, const MtfIteration *iteration, int i,
                        const char *axis, GError **error) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    if (i >= iteration->n)
        return mtf_input_error(error, "operation \"%s\" has no index %d to split on axis \"%s\"",
                               op->name, i, axis);
    bool lacks = iteration->index[i].reduced && row->reduction == MTF_REDUCE_NONE;
    return !iteration->index[i].whole ||
           mtf_input_error(
               error, "operation \"%s\" (%s) cannot be split along \"%s\" on axis \"%s\": %s",
               op->name, row->name, mtf_graph_dimension(graph, iteration->index[i].dim)->name, axis,
               lacks ? "its result lacks that dimension and its parts do not add up"
                     : "it needs all of that dimension at once");
}

/* Whether index `i` is cut into a number of parts that it cannot have. */
static bool is_cut_unevenly(const MtfMesh *mesh, const MtfStrategy *strategy,
                            const MtfIteration *iteration, int i) {
    int64_t parts = 1, even = iteration->index[i].even;
    for (int a = 0; a < mesh->n_axes; a++)
        parts *= strategy->axis[a] == i ? mesh->axes[a].size : 1;
    return even > 0 && even % parts != 0;
}

bool mtf_strategy_check(const MtfGraph *graph, const MtfMesh *mesh, int operation,
                        const MtfStrategy *strategy, GError **error) {
    MtfIteration iteration;
    mtf_operation_iteration(graph, operation, &iteration);
    for (int a = 0; a < MTF_MAX_MESH_AXES; a++) {
        int choice = strategy->axis[a];
        if (choice == MTF_DUPLICATED)
            continue;
        if (a >= mesh->n_axes)
            return mtf_input_error(error, "operation \"%s\" uses an axis the mesh lacks",
                                   mtf_graph_operation(graph, operation)->name);
        const char *axis = mesh->axes[a].name;
        if (choice <= MTF_PARTIAL_INPUT
                ? !check_partial_input(graph, operation, MTF_PARTIAL_INPUT - choice, axis, error)
                : !check_split(graph, operation, &iteration, choice, axis, error))
            return false;
    }
    for (int i = 0; i < iteration.n; i++)
        if (is_cut_unevenly(mesh, strategy, &iteration, i))
            return mtf_input_error(error,
                                   "operation \"%s\" must be split into equal parts along \"%s\"",
                                   mtf_graph_operation(graph, operation)->name,
                                   mtf_graph_dimension(graph, iteration.index[i].dim)->name);
    return true;
}

char *mtf_strategy_axis_format(const MtfGraph *graph, int operation, int choice) {
    if (choice < 0)
        return choice == MTF_DUPLICATED ? g_strdup("duplicated")
               : choice == MTF_PARTIAL_INPUT
                   ? g_strdup("partial")
                   : g_strdup_printf("partial:%d", MTF_PARTIAL_INPUT - choice);
    MtfIteration iteration;
    mtf_operation_iteration(graph, operation, &iteration);
    return g_strdup(mtf_graph_dimension(graph, iteration.index[choice].dim)->name);
}

bool mtf_strategy_axis_parse(const MtfGraph *graph, int operation, const char *text, int *choice,
                             GError **error) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    MtfIteration iteration;
    mtf_operation_iteration(graph, operation, &iteration);
    for (int i = 0; i < iteration.n; i++) {
        if (strcmp(mtf_graph_dimension(graph, iteration.index[i].dim)->name, text) == 0) {
            *choice = i;
            return true;
        }
    }
    guint64 k = 0;
    bool through = strcmp(text, "partial") == 0 ||
                   (g_str_has_prefix(text, "partial:") &&
                    g_ascii_string_to_unsigned(text + 8, 10, 0, 100, &k, NULL));
    if (!through && strcmp(text, "duplicated") != 0)
        return mtf_input_error(error,
                               "operation \"%s\": \"%s\" is not a dimension it runs over, nor "
                               "\"duplicated\" or \"partial\"",
                               op->name, text);
    *choice = through ? MTF_PARTIAL_INPUT - (int)k : MTF_DUPLICATED;
    return true;
}
