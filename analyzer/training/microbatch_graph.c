// SPDX-License-Identifier: GPL-3.0-or-later
#include "analyzer/training/microbatch_graph.h"

#include "analyzer/training/differentiate.h"
#include "layouts/base/error.h"
#include "layouts/building/builder.h"
#include "layouts/graph/microbatches.h"
#include "layouts/placement/strategy.h"

typedef enum { FIXED, PART, STATISTIC, TERM } Class;

typedef struct {
    MtfGraph *graph;
    int batch;      /* its dimension of the examples of a micro-batch */
    Class *classes; /* one a tensor */
} Parts;

/* ---- The batch dimension --------------------------------------------------------------------- */

static const char *dim_name(const MtfGraph *graph, int dim) {
    return mtf_graph_dimension(graph, dim)->name;
}

static int common_first_dimension(const MtfGraph *graph, GError **error) {
    const MtfTensor *first = NULL;
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (tensor->source != MTF_SOURCE_INPUT || tensor->shape.rank == 0)
            continue;
        first = first == NULL ? tensor : first;
        if (tensor->shape.dims[0] == first->shape.dims[0])
            continue;
        mtf_input_error(error,
                        "inputs \"%s\" and \"%s\" begin with different dimensions, \"%s\" and "
                        "\"%s\": say with --batch-dim which one is the batch",
                        first->name, tensor->name, dim_name(graph, first->shape.dims[0]),
                        dim_name(graph, tensor->shape.dims[0]));
        return -1;
    }
    if (first != NULL)
        return first->shape.dims[0];
    mtf_input_error(error, "no input has a dimension, so there is no batch to divide");
    return -1;
}

int mtf_batch_dimension(const MtfGraph *graph, const char *name, GError **error) {
    if (name == NULL)
        return common_first_dimension(graph, error);
    int dim = mtf_graph_find_dimension(graph, name);
    if (dim < 0)
        mtf_input_error(error, "--batch-dim: the graph has no dimension \"%s\"", name);
    return dim;
}

static bool refuse(const MtfOperation *op, const char *why, GError **error) {
    return mtf_input_error(error,
                           "operation \"%s\" (%s) %s, so a step cannot be worked through in "
                           "micro-batches",
                           op->name, mtf_operation_row(op->kind)->name, why);
}

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

static bool check_positions(const MtfGraph *graph, int batch, GError **error) {
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfOperation *op = mtf_graph_operation(graph, i);
        bool renames = mtf_operation_row(op->kind)->dims == MTF_DIMS_RENAMED;
        if (counts_examples(graph, op, batch))
            return refuse(op,
                          renames ? "gives the batch dimension another name"
                                  : "says where elements lie along the batch",
                          error);
    }
    return true;
}

bool mtf_graph_set_microbatches(MtfGraph *graph, int batch, int microbatches, GError **error) {
    return microbatches == 1 || (check_positions(graph, batch, error) &&
                                 mtf_graph_divide_batch(graph, batch, microbatches, error));
}

/* ---- Classes --------------------------------------------------------------------------------- */

static bool refuse_input(const Parts *parts, const MtfOperation *op, int k, const char *how,
                         GError **error) {
    g_autofree char *why =
        g_strdup_printf("reads \"%s\", which sums over the batch, %s",
                        mtf_graph_tensor(parts->graph, op->inputs[k])->name, how);
    return refuse(op, why, error);
}

static int count_inputs(const Parts *parts, const MtfOperation *op, Class class) {
    int count = 0;
    for (int k = 0; k < op->n_inputs; k++)
        count += parts->classes[op->inputs[k]] == class;
    return count;
}

static int first_input(const Parts *parts, const MtfOperation *op, Class class) {
    int k = 0;
    while (parts->classes[op->inputs[k]] != class)
        k++;
    return k;
}

/* An operation that reads a term must be linear in it: all inputs of a sum are terms, or one input
 * is and the others are fixed. */
static bool check_term(const Parts *parts, int operation, bool has_batch, GError **error) {
    const MtfOperation *op = mtf_graph_operation(parts->graph, operation);
    int terms = count_inputs(parts, op, TERM), k = first_input(parts, op, TERM);
    bool joint = mtf_operation_row(op->kind)->linearity == MTF_LINEAR_JOINT;
    if (has_batch || count_inputs(parts, op, PART) > 0)
        return refuse_input(parts, op, k, "example by example", error);
    if (!mtf_operation_passes_partial(parts->graph, operation, k) || (!joint && terms > 1))
        return refuse_input(parts, op, k, "and is not linear in it", error);
    if (joint && terms < op->n_inputs)
        return refuse_input(parts, op, k, "beside what does not", error);
    return true;
}

/* What parts become: parts, statistics of the micro-batch where the operation says so, or terms. */
static Class class_of_parts(const MtfOperation *op, bool has_batch) {
    if (has_batch)
        return PART;
    return op->attributes.per_microbatch != 0 ? STATISTIC : TERM;
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
    Class class = has_batch ? PART : FIXED;
    if (count_inputs(parts, op, TERM) > 0) {
        if (!check_term(parts, operation, has_batch, error))
            return false;
        class = TERM;
    } else if (count_inputs(parts, op, PART) > 0) {
        if (!check_part(op, has_batch, error))
            return false;
        class = class_of_parts(op, has_batch);
    } else if (count_inputs(parts, op, STATISTIC) > 0) {
        class = has_batch ? PART : STATISTIC;
    }
    for (int k = 0; k < op->n_outputs; k++)
        parts->classes[op->outputs[k]] = class;
    return true;
}

static void classify_sources(const Parts *parts) {
    const MtfGraph *graph = parts->graph;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (mtf_shape_find(&mtf_graph_tensor(graph, t)->shape, parts->batch) >= 0)
            parts->classes[t] = PART;
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
           count_inputs(parts, op, TERM) == 2 && !variable_leads_to(parts->graph, op->inputs[1]);
}

/* Classifies all operations; `*division` is the one that makes the loss a weighted mean, else -1.
 */
static bool classify_all(const Parts *parts, int *division, GError **error) {
    *division = -1;
    classify_sources(parts);
    for (int i = 0; i < (int)parts->graph->operations->len; i++)
        if (is_weighted_mean(parts, i))
            *division = i;
        else if (!classify(parts, i, error))
            return false;
    Class loss = parts->classes[parts->graph->loss];
    return *division >= 0 || loss == TERM ||
           mtf_input_error(error,
                           "the loss \"%s\" %s the batch \"%s\", so a step cannot be worked "
                           "through in micro-batches",
                           mtf_graph_tensor(parts->graph, parts->graph->loss)->name,
                           loss == STATISTIC
                               ? "is of one micro-batch (\"per_microbatch\"), no sum over"
                               : "does not depend on",
                           dim_name(parts->graph, parts->batch));
}

static char *step_name(const MtfGraph *graph, int tensor) {
    return g_strdup_printf("step/%s", mtf_graph_tensor(graph, tensor)->name);
}

/* The sum that a tensor was accumulated to, which more than one may want; -1: none. */
static int accumulated(const MtfGraph *graph, int tensor) {
    g_autofree char *name = step_name(graph, tensor);
    int sum = mtf_graph_find_tensor(graph, name);
    int producer = sum >= 0 ? mtf_graph_tensor(graph, sum)->producer : -1;
    bool is_sum =
        producer >= 0 && mtf_graph_operation(graph, producer)->origin == MTF_ORIGIN_ACCUMULATION;
    return is_sum ? sum : -1;
}

static int accumulate(MtfBuilder *b, int tensor) {
    int known = accumulated(b->graph, tensor);
    if (known >= 0)
        return known;
    g_autofree char *name = step_name(b->graph, tensor);
    g_autofree char *of = g_strdup(mtf_graph_tensor(b->graph, tensor)->name);
    b->layer = mtf_graph_tensor(b->graph, tensor)->layer;
    int sum = MTF_BUILD(b, MTF_OP_ACCUMULATE, name, NULL, tensor);
    if (sum >= 0)
        mtf_graph_set_origin(b->graph, sum, MTF_ORIGIN_ACCUMULATION, of);
    b->layer = (MtfLayer){ 0 };
    return sum;
}

static void drop(MtfGraph *graph, int operation) {
    int n = 0, all = (int)graph->operations->len;
    g_autofree int *order = g_new(int, all);
    for (int i = 0; i < all; i++)
        if (i != operation)
            order[n++] = i;
    mtf_graph_arrange(graph, order, n);
}

/* Accumulates both sides of the division and drops it: one micro-batch's quotient is nobody's. */
static void accumulate_weighted(MtfBuilder *b, int division, int *divisor, char **name) {
    MtfGraph *graph = b->graph;
    const MtfOperation *op = mtf_graph_operation(graph, division);
    int top = op->inputs[0], bottom = op->inputs[1];
    g_autofree char *sum = step_name(graph, top);
    g_autofree char *weights = step_name(graph, bottom);
    *name = g_strdup(op->name);
    accumulate(b, top);
    accumulate(b, bottom);
    if (b->error != NULL)
        return;
    graph->loss = mtf_graph_find_tensor(graph, sum);
    drop(graph, division);
    *divisor = mtf_graph_find_tensor(graph, weights);
}

/* The mean over micro-batches of what each of them gives. */
static int average(MtfBuilder *b, int tensor) {
    g_autofree char *name = g_strdup_printf("share/%s", mtf_graph_tensor(b->graph, tensor)->name);
    int known = mtf_graph_find_tensor(b->graph, name);
    int sum = known >= 0 ? accumulated(b->graph, known) : -1;
    if (sum >= 0)
        return sum;
    b->layer = mtf_graph_tensor(b->graph, tensor)->layer;
    b->attributes.factor = 1.0 / mtf_graph_microbatches(b->graph);
    int share = MTF_BUILD(b, MTF_OP_SCALE, name, NULL, tensor);
    return share < 0 ? -1 : accumulate(b, share);
}

/* What variables are assigned once a step: of statistics the mean over micro-batches, of terms their
 * sum. */
static void accumulate_assignments(const Parts *parts, MtfBuilder *b, GArray *assignments) {
    for (guint i = 0; i < assignments->len && b->error == NULL; i++) {
        MtfUpdate *update = &g_array_index(assignments, MtfUpdate, i);
        Class class = parts->classes[update->value];
        if (class == STATISTIC)
            update->value = average(b, update->value);
        else if (class == TERM)
            update->value = accumulate(b, update->value);
    }
}

bool mtf_accumulate_loss(MtfGraph *graph, GArray *assignments, int *divisor, char **name,
                         GError **error) {
    *divisor = -1;
    *name = NULL;
    int batch = mtf_graph_batch(graph);
    if (batch < 0 || graph->loss < 0 || mtf_graph_tensor(graph, graph->loss)->shape.rank > 0)
        return true;
    g_autofree Class *classes = g_new0(Class, graph->tensors->len + 1);
    Parts parts = { graph, batch, classes };
    int division;
    if (!mtf_graph_check_microbatches(graph, error) || !classify_all(&parts, &division, error))
        return false;
    MtfBuilder b = mtf_builder(graph, MTF_PHASE_FORWARD);
    accumulate_assignments(&parts, &b, assignments);
    if (division >= 0)
        accumulate_weighted(&b, division, divisor, name);
    else
        graph->loss = accumulate(&b, graph->loss);
    return mtf_builder_end(&b, error);
}

/* sum/W, what was accumulated, becomes grad/W = sum/W times the share of one weight. */
static void divide_gradient(MtfBuilder *b, int share, MtfVariableGradient *pair) {
    const char *of = mtf_graph_tensor(b->graph, pair->variable)->name;
    g_autofree char *sum = g_strdup_printf("sum/%s", of);
    g_autofree char *name = g_strdup_printf("grad/%s", of);
    MtfShape shape = mtf_graph_tensor(b->graph, pair->gradient)->shape;
    mtf_build_rename(b, pair->gradient, sum);
    mtf_graph_set_origin(b->graph, pair->gradient, MTF_ORIGIN_WRITTEN, NULL);
    b->layer = mtf_graph_tensor(b->graph, pair->variable)->layer;
    pair->gradient = MTF_BUILD(b, MTF_OP_MULTIPLY, name, &shape, pair->gradient, share);
    b->layer = (MtfLayer){ 0 };
    if (pair->gradient < 0)
        return;
    mtf_graph_tensor(b->graph, pair->gradient)->memory = MTF_MEMORY_GRADIENT;
    mtf_graph_set_origin(b->graph, pair->gradient, MTF_ORIGIN_GRADIENT,
                         mtf_graph_tensor(b->graph, pair->variable)->name);
}

bool mtf_divide_by_weights(MtfGraph *graph, int divisor, const char *name, GArray *gradients,
                           GError **error) {
    MtfBuilder b = mtf_builder(graph, MTF_PHASE_CLIP);
    MtfDtype dtype = mtf_graph_tensor(graph, graph->loss)->dtype;
    int loss = MTF_BUILD(&b, MTF_OP_DIVIDE, name, NULL, graph->loss, divisor);
    int one = mtf_build_constant(&b, "step/one", dtype, 1);
    int share = MTF_BUILD(&b, MTF_OP_DIVIDE, "step/share", NULL, one, divisor);
    for (guint i = 0; i < gradients->len; i++)
        divide_gradient(&b, share, &g_array_index(gradients, MtfVariableGradient, i));
    graph->loss = loss;
    return mtf_builder_end(&b, error);
}
