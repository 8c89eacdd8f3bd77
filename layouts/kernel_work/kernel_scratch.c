// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_work/kernel_scratch.h"

#include "layouts/graph/window.h"
#include "layouts/kernel_work/linear_work.h"

#include <string.h>

MtfTerm mtf_operation_local_term(const MtfGraph *graph, int tensor, const MtfIteration *iteration,
                                 const int64_t *sizes) {
    const MtfShape *shape = &mtf_graph_tensor(graph, tensor)->shape;
    MtfTerm term = { .rank = shape->rank };
    for (int i = 0; i < shape->rank; i++) {
        term.dims[i] = shape->dims[i];
        term.size[i] = mtf_graph_size(graph, shape->dims[i]);
        for (int j = 0; j < iteration->n; j++)
            if (iteration->index[j].dim == shape->dims[i])
                term.size[i] = sizes[j];
            else if (iteration->index[j].other_dim == shape->dims[i])
                term.size[i] = mtf_window_most(graph, &iteration->index[j], sizes[j]);
    }
    return term;
}

static int64_t whole_lanes(int64_t n) {
    return (n + MTF_ATTENTION_LANES - 1) / MTF_ATTENTION_LANES * MTF_ATTENTION_LANES;
}

/* A head's memory in the orders that its products want, going backward its gradients, and where it
 * is narrow once more to turn it; some rows of queries; one block of scores, and going backward
 * another of their gradients. */
static int64_t attention_scratch(const MtfGraph *graph, const MtfOperation *op,
                                 const MtfIteration *iteration, const int64_t *sizes) {
    bool back = mtf_operation_row(op->kind)->scratch == MTF_SCRATCH_ATTENTION_GRAD;
    int64_t keys = 0, features = 0;
    for (int i = 0; i < iteration->n; i++) {
        if (iteration->index[i].dim == op->attributes.memory)
            keys = whole_lanes(sizes[i]);
        if (iteration->index[i].dim == op->attributes.dimension)
            features = whole_lanes(sizes[i]);
    }
    MtfDtype dtype = mtf_graph_tensor(graph, op->outputs[0])->dtype;
    bool narrow = dtype != mtf_dtype_wide(dtype);
    int64_t rows = ((back ? 6 : 2) + narrow) * keys + (back ? 3 : 2) * MTF_ATTENTION_QUERIES;
    int64_t block = MTF_ATTENTION_QUERIES * MIN(keys, MTF_ATTENTION_KEYS);
    int64_t elements = rows * features + (back ? 2 : 1) * block;
    return elements * mtf_dtype_bytes(mtf_dtype_wide(dtype));
}

static int64_t einsum_scratch_bytes(const MtfGraph *graph, const MtfOperation *op,
                                    const MtfIteration *iteration, const int64_t *sizes) {
    MtfDtype storage = mtf_operation_storage_dtype(graph, op);
    MtfDtype dtype = mtf_graph_tensor(graph, op->outputs[0])->dtype;
    g_autofree MtfTerm *terms = g_new(MtfTerm, (gsize)op->n_inputs);
    for (int k = 0; k < op->n_inputs; k++)
        terms[k] = mtf_operation_local_term(graph, op->inputs[k], iteration, sizes);
    MtfTerm result = mtf_operation_local_term(graph, op->outputs[0], iteration, sizes);
    if (storage != mtf_dtype_wide(storage))
        return mtf_narrow_einsum_scratch_bytes(terms, op->n_inputs, &result, dtype == storage);
    return op->n_inputs < 2
               ? 0
               : mtf_einsum_scratch_bytes(terms, op->n_inputs, &result, mtf_dtype_bytes(dtype));
}

/* Whether the kernel of an operation (not einsum or attention) folds its first output in scratch,
 * in the type of its sums, and rounds it at the end. */
static bool sums_in_scratch(const MtfGraph *graph, const MtfOperation *op) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    MtfDtype dtype = mtf_graph_tensor(graph, op->outputs[0])->dtype;
    return row->reduction != MTF_REDUCE_NONE && !row->gathers && !row->separate &&
           dtype != mtf_dtype_wide(dtype);
}

/* cross_entropy_grad of bfloat16 keeps the value at each label, since softmax may lie so close to 1
 * that nothing would be left of the difference once it is rounded. Frameworks hold more: logits, softmax and gradients
 * in float32, of which those that the program has stand beside the scratch. */
static int64_t label_scratch_bytes(const MtfGraph *graph, const MtfOperation *op,
                                   const MtfIteration *iteration, const int64_t *sizes) {
    MtfDtype dtype = mtf_graph_tensor(graph, op->outputs[0])->dtype;
    MtfTerm labels = mtf_operation_local_term(graph, op->inputs[1], iteration, sizes);
    MtfTerm logits = mtf_operation_local_term(graph, op->outputs[0], iteration, sizes);
    int64_t own = dtype == mtf_dtype_wide(dtype)
                      ? 0
                      : mtf_term_bytes(&labels, mtf_dtype_bytes(mtf_dtype_wide(dtype)));
    double beside = graph->logit_bytes - (double)mtf_dtype_bytes(dtype);
    return MAX(own, (int64_t)(beside * (double)mtf_term_bytes(&logits, 1)));
}

bool mtf_table_has_strips(const MtfTerm *ids, const MtfTerm *dy, const MtfTerm *table) {
    if (table->rank != 2 || dy->rank != ids->rank + 1 || table->dims[1] != dy->dims[ids->rank])
        return false;
    for (int i = 0; i < ids->rank; i++)
        if (ids->dims[i] != dy->dims[i])
            return false;
    return true;
}

/* Of a narrow result that is summed in scratch: `result` in the type of sums. */
static int64_t wide_bytes(const MtfGraph *graph, const MtfOperation *op, const MtfTerm *result) {
    MtfDtype dtype = mtf_graph_tensor(graph, op->outputs[0])->dtype;
    return sums_in_scratch(graph, op)
               ? mtf_term_bytes(result, mtf_dtype_bytes(mtf_dtype_wide(dtype)))
               : 0;
}

static int64_t sums_scratch_bytes(const MtfGraph *graph, const MtfOperation *op,
                                  const MtfIteration *iteration, const int64_t *sizes) {
    MtfTerm result = mtf_operation_local_term(graph, op->outputs[0], iteration, sizes);
    return wide_bytes(graph, op, &result);
}

/* Whether each element of the result is a sum of elements that lie in a row: what is summed leads with
 * the dimensions of the result. Such a row is rounded once as it is. */
static bool sums_single_rows(const MtfTerm *result, const MtfTerm *summed) {
    return memcmp(result->dims, summed->dims, sizeof *result->dims * (gsize)result->rank) == 0;
}

/* Rows that are added one after the other to the same float32 sums would round them at each. */
static int64_t wide_sums_scratch_bytes(const MtfGraph *graph, const MtfOperation *op,
                                       const MtfIteration *iteration, const int64_t *sizes) {
    MtfTerm result = mtf_operation_local_term(graph, op->outputs[0], iteration, sizes);
    MtfTerm summed = mtf_operation_local_term(graph, op->inputs[0], iteration, sizes);
    int64_t bytes = mtf_term_bytes(&result, mtf_dtype_bytes(MTF_F64));
    bool many = bytes > MTF_WIDE_SUMS * mtf_dtype_bytes(MTF_F64);
    if (mtf_graph_tensor(graph, op->outputs[0])->dtype != MTF_F32)
        return wide_bytes(graph, op, &result);
    return many || result.rank == summed.rank || sums_single_rows(&result, &summed) ? 0 : bytes;
}

/* Of a table's gradient one strip, where that will do. */
static int64_t table_scratch_bytes(const MtfGraph *graph, const MtfOperation *op,
                                   const MtfIteration *iteration, const int64_t *sizes) {
    MtfTerm result = mtf_operation_local_term(graph, op->outputs[0], iteration, sizes);
    MtfTerm ids = mtf_operation_local_term(graph, op->inputs[0], iteration, sizes);
    MtfTerm dy = mtf_operation_local_term(graph, op->inputs[1], iteration, sizes);
    if (mtf_table_has_strips(&ids, &dy, &result))
        result.size[1] = MIN(result.size[1], MTF_GRADIENT_STRIP);
    return wide_bytes(graph, op, &result);
}

static int64_t local_size(const MtfIteration *iteration, const int64_t *sizes, int dim) {
    for (int i = 0; i < iteration->n; i++)
        if (iteration->index[i].dim == dim)
            return sizes[i];
    return 1;
}

int64_t mtf_sort_scratch_bytes(int64_t n) {
    return 2 * 16 * n;
}

/* Of all elements along what is sorted: a part that does not go by columns sees them all. */
static int64_t sort_scratch_bytes(const MtfGraph *graph, const MtfOperation *op,
                                  const MtfIteration *iteration, const int64_t *sizes) {
    (void)iteration;
    (void)sizes;
    return mtf_sort_scratch_bytes(mtf_graph_size(graph, op->attributes.dimension));
}

/* Two counts an expert and a group's choices in order, as int32. */
static int64_t slots_scratch_bytes(const MtfGraph *graph, const MtfOperation *op,
                                   const MtfIteration *iteration, const int64_t *sizes) {
    const MtfAttributes *a = &op->attributes;
    int64_t choices =
        local_size(iteration, sizes, a->dimension) * local_size(iteration, sizes, a->choices);
    return 4 * (2 * mtf_graph_size(graph, a->experts) + choices);
}

bool mtf_experts_join_groups(int64_t groups, int64_t rows, int64_t experts) {
    return groups > 1 && rows < MTF_JOINED_ROWS * experts;
}

/* Whether the operation multiplies rows by matrices and joins groups. */
static bool joins_groups(const MtfGraph *graph, const MtfOperation *op,
                         const MtfIteration *iteration, const int64_t *sizes) {
    int experts = op->attributes.experts;
    MtfTerm ids = mtf_operation_local_term(graph, op->inputs[2], iteration, sizes);
    int64_t groups = 1;
    for (int i = 0; i < ids.rank - 1; i++)
        groups *= ids.size[i];
    return mtf_graph_tensor(graph, op->outputs[0])->shape.dims[0] != experts &&
           mtf_experts_join_groups(groups, ids.size[ids.rank - 1], mtf_graph_size(graph, experts));
}

/* Of narrow operands one expert's matrix, and some rows before and behind it; the rows of wide ones
 * where groups are joined. */
static int64_t experts_scratch_bytes(const MtfGraph *graph, const MtfOperation *op,
                                     const MtfIteration *iteration, const int64_t *sizes) {
    MtfDtype dtype = mtf_graph_tensor(graph, op->outputs[0])->dtype;
    bool narrow = dtype != mtf_dtype_wide(dtype);
    if (!narrow && !joins_groups(graph, op, iteration, sizes))
        return 0;
    int64_t sides[3], n = 0;
    for (int k = 0; k < 3; k++) {
        int tensor = k < 2 ? op->inputs[k] : op->outputs[0];
        MtfTerm term = mtf_operation_local_term(graph, tensor, iteration, sizes);
        if (term.dims[0] == op->attributes.experts)
            sides[2] = term.size[1] * term.size[2];
        else
            sides[n++] = term.size[term.rank - 1];
    }
    int64_t rows = MTF_EXPERT_ROWS * (sides[0] + sides[1]);
    return narrow ? 4 * (sides[2] + rows) : mtf_dtype_bytes(dtype) * rows;
}

/* What the kernel keeps of the head at hand. */
static int64_t linear_attention_scratch(const MtfGraph *graph, const MtfOperation *op,
                                        const MtfIteration *iteration, const int64_t *sizes) {
    MtfDtype dtype = mtf_graph_tensor(graph, op->outputs[0])->dtype;
    int64_t begins[MTF_LINEAR_PIECES];
    MtfLinearHead head = mtf_linear_head(graph, op, iteration, sizes);
    return mtf_linear_pieces(&head, begins) * mtf_dtype_bytes(mtf_dtype_wide(dtype));
}

typedef int64_t (*ScratchBytes)(const MtfGraph *graph, const MtfOperation *op,
                                const MtfIteration *iteration, const int64_t *sizes);

static const ScratchBytes scratch_bytes[MTF_SCRATCHES] = {
    [MTF_SCRATCH_SUMS] = sums_scratch_bytes,
    [MTF_SCRATCH_WIDE_SUMS] = wide_sums_scratch_bytes,
    [MTF_SCRATCH_TABLE] = table_scratch_bytes,
    [MTF_SCRATCH_LABELS] = label_scratch_bytes,
    [MTF_SCRATCH_EINSUM] = einsum_scratch_bytes,
    [MTF_SCRATCH_ATTENTION] = attention_scratch,
    [MTF_SCRATCH_ATTENTION_GRAD] = attention_scratch,
    [MTF_SCRATCH_LINEAR_ATTENTION] = linear_attention_scratch,
    [MTF_SCRATCH_SORT] = sort_scratch_bytes,
    [MTF_SCRATCH_SLOTS] = slots_scratch_bytes,
    [MTF_SCRATCH_EXPERTS] = experts_scratch_bytes,
};

int64_t mtf_operation_scratch_bytes(const MtfGraph *graph, int operation,
                                    const MtfIteration *iteration, const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    return scratch_bytes[mtf_operation_row(op->kind)->scratch](graph, op, iteration, sizes);
}
