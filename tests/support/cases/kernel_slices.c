// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/kernel_slices.h"

#include "layouts/kernel_work/kernel_scratch.h"
#include "layouts/placement/margins.h"
#include "runtime/kernels/base/kernel_bfloat16.h"

#include <math.h>
#include <string.h>

#define GUARD 64 /* bytes on each side that nobody may touch */
#define GUARD_BYTE 0x5a
#define PAGE 4096 /* of a workspace */

typedef struct {
    const MtfGraph *graph;
    int id;
    const MtfOperation *operation;
    const MtfSlicing *slicing;
    MtfIteration iteration;
    int parts[MTF_MAX_INDEXES];    /* of each index: as asked for, or 1 where it is held whole */
    int64_t part[MTF_MAX_INDEXES]; /* the part that runs now */
} Run;

static void *guarded_new(int64_t bytes) {
    char *memory = g_aligned_alloc(1, (gsize)(bytes + 2 * GUARD), 64);
    memset(memory, GUARD_BYTE, (size_t)(bytes + 2 * GUARD));
    return memory + GUARD;
}

static void guarded_free(void *data, int64_t bytes) {
    char *memory = (char *)data - GUARD;
    for (int i = 0; i < GUARD; i++)
        g_assert_true(memory[i] == GUARD_BYTE && memory[GUARD + bytes + i] == GUARD_BYTE);
    g_aligned_free(memory);
}

static int64_t elements(const MtfOperand *operand) {
    int64_t n = 1;
    for (int i = 0; i < operand->rank; i++)
        n *= operand->size[i];
    return n;
}

static int64_t bytes_of(const MtfOperand *operand) {
    return elements(operand) * mtf_dtype_bytes(operand->dtype);
}

/* The index of the iteration space that a dimension of an operand follows, or -1. */
static int find_index(const Run *run, int dim, bool is_input) {
    for (int i = 0; i < run->iteration.n; i++) {
        const MtfIndex *index = &run->iteration.index[i];
        if ((is_input ? index->input_dim : index->dim) == dim)
            return i;
    }
    return -1;
}

/* Of a window's other side what the part that runs now reaches, and nothing else. */
static MtfRange range_within_reach(const Run *run, int input, int dim) {
    MtfReach reach;
    bool windowed = mtf_reach_init(&reach, run->graph, (MtfReader){ run->id, input }, dim);
    g_assert_true(windowed);
    int index = find_index(run, reach.parted, false);
    return mtf_reach_range(&reach,
                           mtf_part(reach.parted_size, run->part[index], run->parts[index]));
}

/* Whether an input is read along `dim` as a reshape says: of one side of several dimensions that become one. */
static bool reaches(const Run *run, int input, int dim) {
    MtfReach reach;
    return input >= 0 && mtf_operation_row(run->operation->kind)->dims == MTF_DIMS_RESHAPED &&
           mtf_reach_init(&reach, run->graph, (MtfReader){ run->id, input }, dim);
}

/* What is held of an input, or of an output where `input` is -1. */
static MtfOperand slice_of(const Run *run, int tensor, int input) {
    const MtfTensor *t = mtf_graph_tensor(run->graph, tensor);
    MtfOperand operand = { .dtype = t->dtype, .rank = t->shape.rank };
    for (int i = 0; i < operand.rank; i++) {
        int dim = t->shape.dims[i];
        int index = reaches(run, input, dim) ? -1 : find_index(run, dim, input >= 0);
        operand.dims[i] = dim;
        operand.global[i] = mtf_graph_size(run->graph, dim);
        MtfRange range = index >= 0
                             ? mtf_part(operand.global[i], run->part[index], run->parts[index])
                             : range_within_reach(run, input, dim);
        operand.begin[i] = range.begin;
        operand.size[i] = range.end - range.begin;
    }
    return operand;
}

/* The number in the whole tensor of the slice's element `at`. */
static int64_t whole_number(const MtfOperand *operand, int64_t at) {
    int64_t number = 0, stride = 1;
    for (int i = operand->rank - 1; i >= 0; i--) {
        int64_t place = operand->begin[i] + at % operand->size[i];
        number += place % operand->global[i] * stride; /* what turns goes on behind its end */
        stride *= operand->global[i];
        at /= operand->size[i];
    }
    return number;
}

static void store(const MtfOperand *operand, int64_t i, double value) {
    if (operand->dtype == MTF_F32)
        ((float *)operand->data)[i] = (float)value;
    else if (operand->dtype == MTF_F64)
        ((double *)operand->data)[i] = value;
    else if (operand->dtype == MTF_BF16)
        ((uint16_t *)operand->data)[i] = mtf_bf16_rounded((float)value);
    else if (operand->dtype == MTF_I8)
        ((int8_t *)operand->data)[i] = (int8_t)(isnan(value) ? -1 : value);
    else if (operand->dtype == MTF_I64)
        ((int64_t *)operand->data)[i] = isnan(value) ? -1 : (int64_t)value;
    else if (operand->dtype == MTF_BOOL) /* neither 0 nor 1 where nothing was written */
        ((uint8_t *)operand->data)[i] = (uint8_t)(isnan(value) ? 77 : value);
    else
        ((int32_t *)operand->data)[i] = isnan(value) ? -1 : (int32_t)value;
}

static double load(const MtfOperand *operand, int64_t i) {
    if (operand->dtype == MTF_F32)
        return (double)((float *)operand->data)[i];
    if (operand->dtype == MTF_F64)
        return ((double *)operand->data)[i];
    if (operand->dtype == MTF_BF16)
        return (double)mtf_bf16_wide(((uint16_t *)operand->data)[i]);
    if (operand->dtype == MTF_I8)
        return (double)((int8_t *)operand->data)[i];
    if (operand->dtype == MTF_I64)
        return (double)((int64_t *)operand->data)[i];
    if (operand->dtype == MTF_BOOL)
        return (double)((uint8_t *)operand->data)[i];
    return (double)((int32_t *)operand->data)[i];
}

static bool same_slice(const MtfOperand *a, const MtfOperand *b) {
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, sizeof a->dims) == 0 &&
           memcmp(a->size, b->size, sizeof a->size) == 0;
}

/* The input whose memory output 0 takes, or -1. */
static int input_below(const Run *run, const MtfOperand *inputs, const MtfOperand *output) {
    const MtfOperationRow *row = mtf_operation_row(run->operation->kind);
    for (int k = 0; k < run->operation->n_inputs; k++) {
        bool renames = run->operation->kind == MTF_OP_RENAME && k == 0;
        if ((row->in_place >> MIN(k, 31) & 1) && (renames || same_slice(&inputs[k], output)))
            return k;
    }
    return -1;
}

static void combine(const MtfOperand *output, bool largest, double *result) {
    for (int64_t i = 0; i < elements(output); i++) {
        double *whole = &result[whole_number(output, i)], value = load(output, i);
        *whole = !largest ? *whole + value : isnan(value) ? NAN : fmax(*whole, value);
    }
}

static int64_t scratch_bytes(const Run *run) {
    int64_t largest[MTF_MAX_INDEXES];
    for (int i = 0; i < run->iteration.n; i++) {
        int64_t parts = run->parts[i];
        largest[i] = (run->iteration.index[i].size + parts - 1) / parts;
    }
    int64_t bytes = mtf_operation_scratch_bytes(run->graph, run->id, &run->iteration, largest);
    return run->slicing->scratch_limit < 0 ? bytes : MIN(bytes, run->slicing->scratch_limit);
}

/* Whether the part that runs now is not the first along what the outputs lack: its share of a
 * partial addend is nothing. */
static bool adds_nothing(const Run *run, int k) {
    bool later = false;
    for (int i = 0; i < run->iteration.n; i++)
        later = later || (run->iteration.index[i].reduced && run->part[i] > 0);
    return later && mtf_operation_adds_input(run->operation, k);
}

static void make_operands(const Run *run, double *const *values, MtfOperand *inputs,
                          MtfOperand *outputs, bool *owned) {
    for (int k = 0; k < run->operation->n_inputs; k++) {
        inputs[k] = slice_of(run, run->operation->inputs[k], k);
        inputs[k].data = guarded_new(bytes_of(&inputs[k]));
        for (int64_t i = 0; i < elements(&inputs[k]); i++)
            store(&inputs[k], i,
                  adds_nothing(run, k)
                      ? 0
                      : values[run->operation->inputs[k]][whole_number(&inputs[k], i)]);
    }
    for (int j = 0; j < run->operation->n_outputs; j++) {
        outputs[j] = slice_of(run, run->operation->outputs[j], -1);
        bool separate = mtf_operation_row(run->operation->kind)->separate;
        int below = !run->slicing->in_place || separate ? -1
                    : j == 0                            ? input_below(run, inputs, &outputs[0])
                             : mtf_operation_row(run->operation->kind)->outputs_like[j];
        owned[j] = below < 0;
        outputs[j].data = owned[j] ? guarded_new(bytes_of(&outputs[j])) : inputs[below].data;
        for (int64_t i = 0; owned[j] && i < elements(&outputs[j]); i++)
            store(&outputs[j], i, NAN);
    }
}

static void run_part(const Run *run, double *const *values, double **results) {
    const MtfOperation *operation = run->operation;
    g_autofree MtfOperand *inputs = g_new0(MtfOperand, (gsize)operation->n_inputs);
    MtfOperand outputs[MTF_MAX_OUTPUTS];
    bool owned[MTF_MAX_OUTPUTS];
    make_operands(run, values, inputs, outputs, owned);
    int64_t scratch = scratch_bytes(run);
    MtfKernelCall call = { .graph = run->graph,
                           .operation = operation,
                           .inputs = inputs,
                           .outputs = outputs,
                           .scratch = guarded_new(scratch),
                           .scratch_bytes = scratch,
                           .seed = run->slicing->seed,
                           .step = run->slicing->step };
    int64_t workspace = mtf_kernel_prepare(&call);
    call.workspace = g_aligned_alloc(1, (gsize)workspace + PAGE, PAGE);
    mtf_kernel(operation->kind)(&call);
    mtf_kernel_release(&call);
    g_aligned_free(call.workspace);
    bool largest = mtf_operation_row(operation->kind)->reduction == MTF_REDUCE_MAX;
    for (int j = 0; j < operation->n_outputs; j++) {
        combine(&outputs[j], largest, results[j]);
        if (owned[j])
            guarded_free(outputs[j].data, bytes_of(&outputs[j]));
    }
    for (int k = 0; k < operation->n_inputs; k++)
        guarded_free(inputs[k].data, bytes_of(&inputs[k]));
    guarded_free(call.scratch, scratch);
}

static bool next_part(Run *run) {
    for (int i = 0; i < run->iteration.n; i++) {
        if (++run->part[i] < run->parts[i])
            return true;
        run->part[i] = 0;
    }
    return false;
}

/* What parts of a dimension tell each other while an operation runs is looked at in session/test_sorted_columns.c
 * and by test_layouts_agree. */
static int parts_of(const Run *run, const MtfIndex *index, int asked) {
    bool uneven = index->even > 0 && index->even % asked != 0;
    bool along = index->dim == mtf_operation_along(run->operation);
    return index->whole || uneven || along ? 1 : asked;
}

void mtf_kernel_run_sliced(const MtfGraph *graph, int operation, double *const *values,
                           const MtfSlicing *slicing, double *results[MTF_MAX_OUTPUTS]) {
    Run run = { .graph = graph,
                .id = operation,
                .operation = mtf_graph_operation(graph, operation),
                .slicing = slicing };
    mtf_operation_iteration(graph, operation, &run.iteration);
    for (int i = 0; i < MTF_MAX_INDEXES; i++)
        run.parts[i] =
            i < run.iteration.n ? parts_of(&run, &run.iteration.index[i], slicing->parts[i]) : 1;
    bool largest = mtf_operation_row(run.operation->kind)->reduction == MTF_REDUCE_MAX;
    for (int j = 0; j < run.operation->n_outputs; j++) {
        const MtfTensor *tensor = mtf_graph_tensor(graph, run.operation->outputs[j]);
        int64_t n = mtf_graph_elements(graph, &tensor->shape);
        results[j] = g_new0(double, (gsize)n);
        for (int64_t i = 0; largest && i < n; i++)
            results[j][i] = -INFINITY;
    }
    do
        run_part(&run, values, results);
    while (next_part(&run));
}
