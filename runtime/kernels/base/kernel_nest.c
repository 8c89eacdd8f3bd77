// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_nest.h"

#include "layouts/graph/microbatches.h"

#include <string.h>

int64_t mtf_operand_elements(const MtfOperand *operand) {
    int64_t elements = 1;
    for (int i = 0; i < operand->rank; i++)
        elements *= operand->size[i];
    return elements;
}

void mtf_operand_clear(const MtfOperand *operand, int64_t first, int64_t n) {
    if (n > 0)
        memset(mtf_operand_at(operand, first), 0, (size_t)(n * mtf_dtype_bytes(operand->dtype)));
}

int mtf_operand_find(const MtfOperand *operand, int dim) {
    for (int i = 0; i < operand->rank; i++)
        if (operand->dims[i] == dim)
            return i;
    return -1;
}

int64_t mtf_operand_size_along(const MtfOperand *operand, int dim) {
    return operand->size[mtf_operand_find(operand, dim)];
}

int64_t mtf_operand_stride(const MtfOperand *operand, int position) {
    int64_t stride = 1;
    for (int i = operand->rank - 1; i > position; i--)
        stride *= operand->size[i];
    return stride;
}

int mtf_operand_find_lacking(const MtfOperand *whole, const MtfOperand *part) {
    for (int i = 0; i < whole->rank; i++)
        if (mtf_operand_find(part, whole->dims[i]) < 0)
            return i;
    return -1;
}

void mtf_operand_append(MtfOperand *to, const MtfOperand *from, int position) {
    int i = to->rank++;
    to->dims[i] = from->dims[position];
    to->size[i] = from->size[position];
    to->begin[i] = from->begin[position];
    to->global[i] = from->global[position];
}

MtfOperand mtf_operand_without(const MtfOperand *operand, int dim) {
    MtfOperand rest = *operand;
    rest.rank = 0;
    for (int i = 0; i < operand->rank; i++)
        if (operand->dims[i] != dim)
            mtf_operand_append(&rest, operand, i);
    return rest;
}

void *mtf_operand_at(const MtfOperand *operand, int64_t offset) {
    return (char *)operand->data + offset * mtf_dtype_bytes(operand->dtype);
}

double mtf_operand_mean_count(const MtfOperand *whole, const MtfOperand *part) {
    double count = 1;
    for (int i = 0; i < whole->rank; i++)
        if (mtf_operand_find(part, whole->dims[i]) < 0)
            count *= (double)whole->global[i];
    return count;
}

double mtf_kernel_mean_count(const MtfKernelCall *call, const MtfOperand *whole,
                             const MtfOperand *part) {
    double count = mtf_operand_mean_count(whole, part);
    if (call->operation->attributes.per_microbatch == 0)
        return count;
    int batch = mtf_graph_batch(call->graph);
    bool parts = mtf_operand_find(whole, batch) >= 0 && mtf_operand_find(part, batch) < 0;
    return parts ? count / mtf_graph_microbatches(call->graph) : count;
}

void mtf_nest_init(MtfNest *nest) {
    nest->n_loops = 0;
    nest->n_operands = 0;
}

static int find_loop(const MtfNest *nest, int dim) {
    for (int i = 0; i < nest->n_loops; i++)
        if (nest->dim[i] == dim)
            return i;
    return -1;
}

static void add_loop(MtfNest *nest, int dim, int64_t size) {
    if (find_loop(nest, dim) >= 0)
        return;
    nest->dim[nest->n_loops] = dim;
    nest->size[nest->n_loops++] = size;
}

void mtf_nest_add_loops(MtfNest *nest, const MtfOperand *operand) {
    for (int i = 0; i < operand->rank; i++)
        add_loop(nest, operand->dims[i], operand->size[i]);
}

void mtf_nest_add_loops_lacking(MtfNest *nest, const MtfOperand *operand, const MtfOperand *lead) {
    for (int i = 0; i < operand->rank; i++)
        if (mtf_operand_find(lead, operand->dims[i]) < 0)
            add_loop(nest, operand->dims[i], operand->size[i]);
}

static int add_empty(MtfNest *nest) {
    g_assert(nest->n_operands < MTF_NEST_OPERANDS);
    int k = nest->n_operands++;
    memset(nest->stride[k], 0, sizeof nest->stride[k]);
    nest->offset[k] = 0;
    return k;
}

int mtf_nest_add(MtfNest *nest, const MtfOperand *operand) {
    int k = add_empty(nest);
    int64_t stride = 1;
    for (int i = operand->rank - 1; i >= 0; i--) {
        int loop = find_loop(nest, operand->dims[i]);
        if (loop >= 0)
            nest->stride[k][loop] = stride;
        stride *= operand->size[i];
    }
    return k;
}

void mtf_nest_over(MtfNest *nest, const MtfOperand *walked, int n, const MtfOperand *operands[]) {
    mtf_nest_init(nest);
    mtf_nest_add_loops(nest, walked);
    for (int k = 0; k < n; k++)
        mtf_nest_add(nest, operands[k]);
}

int mtf_nest_add_position(MtfNest *nest, const MtfOperand *operand, int dim) {
    int k = add_empty(nest);
    nest->stride[k][find_loop(nest, dim)] = 1;
    nest->offset[k] = operand->begin[mtf_operand_find(operand, dim)];
    return k;
}

int mtf_nest_add_element_number(MtfNest *nest, const MtfOperand *operand) {
    int k = add_empty(nest);
    int64_t stride = 1;
    for (int i = operand->rank - 1; i >= 0; i--) {
        nest->stride[k][find_loop(nest, operand->dims[i])] = stride;
        nest->offset[k] += stride * operand->begin[i];
        stride *= operand->global[i];
    }
    return k;
}

/* Loop `to` becomes what loop `from` is. */
static void move_loop(MtfNest *nest, int from, int to) {
    nest->size[to] = nest->size[from];
    for (int k = 0; k < nest->n_operands; k++)
        nest->stride[k][to] = nest->stride[k][from];
}

/* Whether a step of loop `outer` is as far as all turns of loop `inner`, for every operand. */
static bool adjacent(const MtfNest *nest, int outer, int inner) {
    for (int k = 0; k < nest->n_operands; k++)
        if (nest->stride[k][outer] != nest->stride[k][inner] * nest->size[inner])
            return false;
    return true;
}

static void merge_loops(MtfNest *nest) {
    int n = 0;
    for (int i = 0; i < nest->n_loops; i++) {
        if (nest->size[i] == 1)
            continue;
        int64_t turns = nest->size[i];
        if (n > 0 && adjacent(nest, n - 1, i)) {
            turns *= nest->size[n - 1];
            n--;
        }
        move_loop(nest, i, n);
        nest->size[n++] = turns;
    }
    nest->n_loops = n;
}

bool mtf_nest_first(MtfNest *nest) {
    for (int i = 0; i < nest->n_loops; i++)
        if (nest->size[i] == 0)
            return false;
    merge_loops(nest);
    nest->count = 1;
    for (int k = 0; k < nest->n_operands; k++)
        nest->step[k] = 1; /* a single turn steps nowhere; 1 is what loops like best */
    if (nest->n_loops == 0)
        return true;
    int inner = --nest->n_loops;
    nest->count = nest->size[inner];
    for (int k = 0; k < nest->n_operands; k++)
        nest->step[k] = nest->stride[k][inner];
    memset(nest->index, 0, sizeof nest->index);
    return true;
}

bool mtf_nest_next(MtfNest *nest) {
    for (int i = nest->n_loops - 1; i >= 0; i--) {
        bool wraps = ++nest->index[i] == nest->size[i];
        int64_t turns = wraps ? 1 - nest->size[i] : 1;
        for (int k = 0; k < nest->n_operands; k++)
            nest->offset[k] += turns * nest->stride[k][i];
        if (!wraps)
            return true;
        nest->index[i] = 0;
    }
    return false;
}

int64_t mtf_nest_still(const MtfNest *nest, int first, int last) {
    for (int k = first; k <= last; k++)
        if (nest->step[k] != 0)
            return 1;
    return nest->count;
}
