// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/graph/microbatches.h"

#include "layouts/base/error.h"
#include "layouts/graph/loops.h"
#include "layouts/graph/operation_table.h"

#include <inttypes.h>
#include <limits.h>

int mtf_graph_batch(const MtfGraph *graph) {
    for (int d = 0; d < (int)graph->dimensions->len; d++)
        if (mtf_graph_dimension(graph, d)->step_size > 0)
            return d;
    return -1;
}

int64_t mtf_graph_step_size(const MtfGraph *graph, int dim) {
    return MAX(mtf_graph_dimension(graph, dim)->step_size, mtf_graph_size(graph, dim));
}

int mtf_graph_microbatches(const MtfGraph *graph) {
    int batch = mtf_graph_batch(graph);
    return batch < 0 ? 1 : (int)(mtf_graph_step_size(graph, batch) / mtf_graph_size(graph, batch));
}

bool mtf_graph_divide_batch(MtfGraph *graph, int batch, int microbatches, GError **error) {
    MtfDimension *dimension = mtf_graph_dimension(graph, batch);
    if (dimension->size % microbatches != 0)
        return mtf_input_error(error,
                               "%d micro-batches do not divide the batch: \"%s\" is %" PRId64,
                               microbatches, dimension->name, dimension->size);
    dimension->step_size = dimension->size;
    dimension->size /= microbatches;
    return true;
}

bool mtf_phase_repeats(const MtfGraph *graph, MtfPhase phase) {
    return phase <= MTF_PHASE_BACKWARD && mtf_graph_batch(graph) >= 0;
}

int mtf_phase_times(const MtfGraph *graph, MtfPhase phase) {
    return mtf_phase_repeats(graph, phase) ? mtf_graph_microbatches(graph) : 1;
}

int mtf_operation_times(const MtfGraph *graph, int operation) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    return mtf_phase_times(graph, op->phase) * (int)mtf_loop_count(graph, op->loop);
}

int mtf_input_times(const MtfGraph *graph, int operation, int k) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    return mtf_operation_reads_anew(graph, op, op->inputs[k])
               ? mtf_operation_times(graph, operation)
               : mtf_phase_times(graph, op->phase);
}

int mtf_output_times(const MtfGraph *graph, int operation) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    if (mtf_operation_accumulates(graph, operation))
        return 1;
    return mtf_operation_row(op->kind)->loop == MTF_LOOP_STACKS
               ? mtf_phase_times(graph, op->phase)
               : mtf_operation_times(graph, operation);
}

static bool is_repeated(const MtfGraph *graph, int operation) {
    return mtf_phase_repeats(graph, mtf_graph_operation(graph, operation)->phase);
}

int mtf_graph_repeated(const MtfGraph *graph) {
    int n = 0;
    while (n < (int)graph->operations->len && is_repeated(graph, n))
        n++;
    return n;
}

bool mtf_operation_accumulates(const MtfGraph *graph, int operation) {
    return mtf_operation_row(mtf_graph_operation(graph, operation)->kind)->accumulates &&
           is_repeated(graph, operation);
}

/* What an input says about the batch: sums that another pipeline stage sends once a step nothing. */
static bool has_examples(const MtfTensor *tensor) {
    return tensor->source == MTF_SOURCE_INPUT && tensor->feed != MTF_FEED_TRANSFER_ONCE;
}

/* Whether everything that has examples has `dim`. */
static bool is_shared(const MtfGraph *graph, int dim) {
    for (int t = 0; t < (int)graph->tensors->len; t++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, t);
        if (has_examples(tensor) && mtf_shape_find(&tensor->shape, dim) < 0)
            return false;
    }
    return true;
}

int mtf_graph_find_batch(const MtfGraph *graph) {
    const MtfTensor *first = NULL;
    int batch = mtf_graph_batch(graph);
    if (batch >= 0)
        return batch;
    for (int t = 0; first == NULL && t < (int)graph->tensors->len; t++)
        if (has_examples(mtf_graph_tensor(graph, t)))
            first = mtf_graph_tensor(graph, t);
    for (int i = 0; first != NULL && i < first->shape.rank; i++)
        if (is_shared(graph, first->shape.dims[i]))
            return first->shape.dims[i];
    return -1;
}

static bool check_order(const MtfGraph *graph, GError **error) {
    int n = mtf_graph_repeated(graph);
    for (int i = n; i < (int)graph->operations->len; i++)
        if (is_repeated(graph, i))
            return mtf_input_error(error,
                                   "operation \"%s\" (%s) runs once a micro-batch and must stand "
                                   "before \"%s\" (%s), which runs once a step",
                                   mtf_graph_operation(graph, i)->name,
                                   mtf_phase_name(mtf_graph_operation(graph, i)->phase),
                                   mtf_graph_operation(graph, n)->name,
                                   mtf_phase_name(mtf_graph_operation(graph, n)->phase));
    return true;
}

static bool check_inputs(const MtfGraph *graph, int operation, GError **error) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    for (int k = 0; k < op->n_inputs; k++) {
        const MtfTensor *x = mtf_graph_tensor(graph, op->inputs[k]);
        if (x->producer >= 0 && mtf_operation_accumulates(graph, x->producer))
            return mtf_input_error(
                error,
                "operation \"%s\" (%s) runs once a micro-batch but reads \"%s\", "
                "a sum over all of them",
                op->name, mtf_phase_name(op->phase), x->name);
    }
    return true;
}

static bool check_variable(const MtfGraph *graph, const MtfTensor *tensor, GError **error) {
    int batch = mtf_graph_batch(graph);
    return tensor->source != MTF_SOURCE_VARIABLE || mtf_shape_find(&tensor->shape, batch) < 0 ||
           mtf_input_error(error,
                           "variable \"%s\" has the batch dimension \"%s\", so a step cannot be "
                           "worked through in micro-batches",
                           tensor->name, mtf_graph_dimension(graph, batch)->name);
}

bool mtf_graph_check_microbatches(const MtfGraph *graph, GError **error) {
    for (int t = 0; t < (int)graph->tensors->len; t++)
        if (!check_variable(graph, mtf_graph_tensor(graph, t), error))
            return false;
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (is_repeated(graph, i) && !check_inputs(graph, i, error))
            return false;
    for (int l = 1; l <= (int)graph->loops->len; l++)
        if (mtf_loop_count(graph, l) * mtf_graph_microbatches(graph) > INT_MAX)
            return mtf_input_error(error, "loop \"%s\" would run more than 2^31 times a step",
                                   mtf_graph_loop(graph, l)->name);
    return check_order(graph, error);
}

bool mtf_graph_has_batch_statistics(const MtfGraph *graph) {
    for (int i = 0; i < (int)graph->operations->len; i++)
        if (mtf_graph_operation(graph, i)->attributes.per_microbatch != 0)
            return true;
    return false;
}

static int count_recomputed(const MtfGraph *graph) {
    int count = 0;
    for (int i = 0; i < (int)graph->operations->len; i++)
        count += mtf_graph_operation(graph, i)->origin == MTF_ORIGIN_CLONE;
    return count;
}

static int count_waiting(const MtfGraph *graph) {
    int count = 0;
    for (int t = 0; t < (int)graph->tensors->len; t++)
        count += mtf_tensor_is_on_host(graph, t);
    return count;
}

/* Attention whose keys are in parts, which go round where some parts of queries wait for their turn. */
static void say_parts(const MtfGraph *graph, GString *text) {
    int64_t parts = 0;
    bool turns = false;
    for (int i = 0; i < (int)graph->operations->len; i++) {
        const MtfAttributes *a = &mtf_graph_operation(graph, i)->attributes;
        parts = MAX(parts, a->parts >= 0 ? mtf_graph_size(graph, a->parts) : 0);
        turns = turns || a->turn > 0;
    }
    if (parts > 0)
        g_string_append_printf(text, ", %s %" PRId64 " parts",
                               turns ? "attention in rings of" : "keys of attention in", parts);
}

char *mtf_graph_step_format(const MtfGraph *graph) {
    GString *text = g_string_new("in one piece");
    int recomputed = count_recomputed(graph), microbatches = mtf_graph_microbatches(graph);
    if (microbatches > 1)
        g_string_printf(text, "in %d micro-batches of %" PRId64, microbatches,
                        mtf_graph_size(graph, mtf_graph_batch(graph)));
    if (microbatches > 1 && mtf_graph_has_batch_statistics(graph))
        g_string_append(text, ", batch statistics of each");
    if (recomputed > 0)
        g_string_append_printf(text, ", %d operation%s recomputed", recomputed,
                               recomputed == 1 ? "" : "s");
    say_parts(graph, text);
    int waiting = count_waiting(graph);
    if (waiting > 0)
        g_string_append_printf(text, ", %d result%s waiting with the host", waiting,
                               waiting == 1 ? "" : "s");
    return g_string_free(text, FALSE);
}
