// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/execution/batch_terms.h"

#include "layouts/base/error.h"
#include "layouts/graph/operation_table.h"
#include "layouts/placement/strategy.h"

typedef struct {
    const MtfGraph *graph;
    int batch;              /* its dimension of examples */
    MtfBatchClass *classes; /* one a tensor */
} Parts;

static bool refuse(const MtfOperation *op, const char *why, GError **error) {
    return mtf_input_error(error,
                           "operation \"%s\" (%s) %s, so a step cannot be worked through in "
                           "micro-batches",
                           op->name, mtf_operation_row(op->kind)->name, why);
}

/* ---- Positions ------------------------------------------------------------------------------- */

/* Whether the operation says where its elements lie along the batch, or gives it another name. */
static bool counts_examples(const MtfGraph *graph, const MtfOperation *op, int batch) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    const MtfAttributes *a = &op->attributes;
    if (!row->positional || op->n_inputs == 0)
        return false;
    bool before = mtf_shape_find(mtf_operation_operand_shape(graph, op, 0), batch) >= 0;
    bool behind = mtf_shape_find(mtf_operation_operand_shape(graph, op, MTF_OUTPUT), batch) >= 0;
    return before != behind || a->dimension == batch || a->from == batch || a->to == batch;
}

bool mtf_batch_check_positions(const MtfGraph *graph, int batch, GError **error) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        bool renames = mtf_operation_row(op->kind)->dims == MTF_DIMS_RENAMED;
        if (op->phase == MTF_PHASE_FORWARD && counts_examples(graph, op, batch))
            return refuse(op,
                          renames ? "gives the batch dimension another name"
                                  : "says where elements lie along the batch",
                          error);
    }
    return true;
}

/* ---- Classes --------------------------------------------------------------------------------- */

static bool refuse_input(const Parts *parts, const MtfOperation *op, int k, const char *how,
                         GError **error) {
    g_autofree char *why =
        g_strdup_printf("reads \"%s\", which sums over the batch, %s",
                        mtf_graph_tensor(parts->graph, op->inputs[k])->name, how);
    return refuse(op, why, error);
}

static int count_inputs(const Parts *parts, const MtfOperation *op, MtfBatchClass class) {
    int count = 0;
    for (int k = 0; k < op->n_inputs; k++)
        count += parts->classes[op->inputs[k]] == class;
    return count;
}

static int first_input(const Parts *parts, const MtfOperation *op, MtfBatchClass class) {
    int k = 0;
    while (parts->classes[op->inputs[k]] != class)
        k++;
    return k;
}

/* An operation that reads a term must be linear in it: all inputs of a sum are terms, or one input
 * is and the others are fixed. */
static bool check_term(const Parts *parts, int operation, bool has_batch, GError **error) {
    const MtfOperation *op = mtf_graph_operation(parts->graph, operation);
    int terms = count_inputs(parts, op, MTF_BATCH_TERM), k = first_input(parts, op, MTF_BATCH_TERM);
    bool joint = mtf_operation_row(op->kind)->linearity == MTF_LINEAR_JOINT;
    if (has_batch || count_inputs(parts, op, MTF_BATCH_PART) > 0)
        return refuse_input(parts, op, k, "example by example", error);
    if (!mtf_operation_passes_partial(parts->graph, operation, k) || (!joint && terms > 1))
        return refuse_input(parts, op, k, "and is not linear in it", error);
    if (joint && terms < op->n_inputs)
        return refuse_input(parts, op, k, "beside what does not", error);
    return true;
}

/* What parts become: parts, statistics of the micro-batch where the operation says so, or terms. */
static MtfBatchClass class_of_parts(const MtfOperation *op, bool has_batch) {
    if (has_batch)
        return MTF_BATCH_PART;
    return op->attributes.per_microbatch != 0 ? MTF_BATCH_STATISTIC : MTF_BATCH_TERM;
}

/* What has lost the batch dimension must have been summed over it. */
static bool check_part(const MtfOperation *op, bool has_batch, GError **error) {
    return has_batch || mtf_operation_row(op->kind)->reduction == MTF_REDUCE_SUM ||
           refuse(op, "takes a maximum over the batch", error);
}

static bool classify(const Parts *parts, int operation, GError **error) {
    const MtfOperation *op = mtf_graph_operation(parts->graph, operation);
    const MtfShape *shape = &mtf_graph_tensor(parts->graph, op->outputs[0])->shape;
    bool has_batch = mtf_shape_find(shape, parts->batch) >= 0;
    MtfBatchClass class = has_batch ? MTF_BATCH_PART : MTF_BATCH_FIXED;
    if (count_inputs(parts, op, MTF_BATCH_TERM) > 0) {
        if (!check_term(parts, operation, has_batch, error))
            return false;
        class = MTF_BATCH_TERM;
    } else if (count_inputs(parts, op, MTF_BATCH_PART) > 0) {
        if (!check_part(op, has_batch, error))
            return false;
        class = class_of_parts(op, has_batch);
    } else if (count_inputs(parts, op, MTF_BATCH_STATISTIC) > 0) {
        class = has_batch ? MTF_BATCH_PART : MTF_BATCH_STATISTIC;
    }
    for (int k = 0; k < op->n_outputs; k++)
        parts->classes[op->outputs[k]] = class;
    return true;
}

static void classify_sources(const Parts *parts) {
    const MtfGraph *graph = parts->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_shape_find(&mtf_graph_tensor(graph, t)->shape, parts->batch) >= 0)
            parts->classes[t] = MTF_BATCH_PART;
}

/* ---- The loss -------------------------------------------------------------------------------- */

static bool variable_leads_to(const MtfGraph *graph, int tensor) {
    g_autofree bool *leads = g_new0(bool, graph->tensors->len + 1);
    for (int t = 0; t < (int)graph->tensors->len; t++)
        leads[t] = mtf_graph_tensor(graph, t)->source == MTF_SOURCE_VARIABLE;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        for (int k = 0; k < op->n_inputs; k++)
            for (int j = 0; j < op->n_outputs; j++)
                leads[op->outputs[j]] |= leads[op->inputs[k]];
    }
    return leads[tensor];
}

/* Whether the operation makes the loss a mean with weights that no variable leads to. Its inputs
 * are classified. */
static bool is_weighted_mean(const Parts *parts, int operation) {
    const MtfOperation *op = mtf_graph_operation(parts->graph, operation);
    return mtf_operation_row(op->kind)->ratio && op->outputs[0] == parts->graph->loss &&
           count_inputs(parts, op, MTF_BATCH_TERM) == 2 &&
           !variable_leads_to(parts->graph, op->inputs[1]);
}

static const char *why_no_term(MtfBatchClass loss) {
    return loss == MTF_BATCH_STATISTIC ? "is of one micro-batch (\"per_microbatch\"), no sum over"
                                       : "does not depend on";
}

static bool classify_forward(const Parts *parts, int *division, GError **error) {
    const MtfGraph *graph = parts->graph;
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (mtf_graph_operation(graph, i)->phase != MTF_PHASE_FORWARD)
            continue;
        else if (is_weighted_mean(parts, i))
            *division = i;
        else if (!classify(parts, i, error))
            return false;
    MtfBatchClass loss = parts->classes[graph->loss];
    return *division >= 0 || loss == MTF_BATCH_TERM ||
           mtf_input_error(error,
                           "the loss \"%s\" %s the batch \"%s\", so a step cannot be worked "
                           "through in micro-batches",
                           mtf_graph_tensor(graph, graph->loss)->name, why_no_term(loss),
                           mtf_graph_dimension(graph, parts->batch)->name);
}

MtfBatchClass *mtf_batch_classes(const MtfGraph *graph, int batch, int *division, GError **error) {
    g_autofree MtfBatchClass *classes = g_new0(MtfBatchClass, graph->tensors->len + 1);
    Parts parts = { graph, batch, classes };
    *division = -1;
    classify_sources(&parts);
    return classify_forward(&parts, division, error) ? g_steal_pointer(&classes) : NULL;
}
