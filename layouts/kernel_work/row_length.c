// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/kernel_work/row_length.h"

#include "layouts/kernel_work/kernel_scratch.h"

static bool has_rows(const MtfOperation *op) {
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    return row->products == MTF_PRODUCTS_EINSUM || row->kernel_class == MTF_CLASS_ELEMENTWISE ||
           row->kernel_class == MTF_CLASS_REDUCTION;
}

static int operand(const MtfOperation *op, int k) {
    return k < op->n_inputs ? op->inputs[k] : op->outputs[k - op->n_inputs];
}

static MtfTerm largest_term(const MtfGraph *graph, const MtfOperation *op,
                            const MtfIteration *iteration, const int64_t *sizes) {
    MtfTerm largest = mtf_operation_local_term(graph, operand(op, 0), iteration, sizes);
    for (int k = 1; k < op->n_inputs + op->n_outputs; k++) {
        MtfTerm term = mtf_operation_local_term(graph, operand(op, k), iteration, sizes);
        if (mtf_term_elements(&term) > mtf_term_elements(&largest))
            largest = term;
    }
    return largest;
}

/* Whether the same operands have both dimensions. */
static bool go_together(const MtfGraph *graph, const MtfOperation *op, int a, int b) {
    for (int k = 0; k < op->n_inputs + op->n_outputs; k++) {
        const MtfShape *shape = &mtf_graph_tensor(graph, operand(op, k))->shape;
        if ((mtf_shape_find(shape, a) >= 0) != (mtf_shape_find(shape, b) >= 0))
            return false;
    }
    return true;
}

/* What has one position: its sines and cosines are taken once for all. */
static double elements_of_position(const MtfGraph *graph, const MtfOperation *op,
                                   const MtfIteration *iteration, const int64_t *sizes) {
    MtfTerm term = mtf_operation_local_term(graph, op->outputs[0], iteration, sizes);
    double length = 1;
    for (int i = 0; i < term.rank; i++)
        if (term.dims[i] != op->attributes.position && term.dims[i] != op->attributes.dimension)
            length *= (double)term.size[i];
    return length;
}

double mtf_operation_row_length(const MtfGraph *graph, int operation, const MtfIteration *iteration,
                                const int64_t *sizes) {
    const MtfOperation *op = mtf_graph_operation(graph, operation);
    if (!has_rows(op) || op->n_inputs == 0)
        return 0;
    if (op->attributes.position >= 0)
        return elements_of_position(graph, op, iteration, sizes);
    MtfTerm term = largest_term(graph, op, iteration, sizes);
    double length = 1;
    int last = -1;
    for (int i = term.rank - 1; i >= 0; i--) {
        if (term.size[i] == 1)
            continue;
        if (last >= 0 && !go_together(graph, op, last, term.dims[i]))
            return length;
        last = term.dims[i];
        length *= (double)term.size[i];
    }
    return 0;
}
