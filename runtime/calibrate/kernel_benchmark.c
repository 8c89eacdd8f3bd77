// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/calibrate/kernel_benchmark.h"

#include "layouts/base/quantile.h"
#include "runtime/data/data.h"
#include "runtime/kernels/base/slice.h"
#include "runtime/support/processor_clock.h"

#include <math.h>
#include <string.h>

/* ---- Making -------------------------------------------------------------------------------- */

static MtfShape shape_of(const MtfGraph *graph, const char *letters) {
    MtfShape shape = { 0 };
    for (; *letters != 0; letters++) {
        char name[2] = { *letters, 0 };
        mtf_shape_append(&shape, mtf_graph_find_dimension(graph, name));
    }
    return shape;
}

/* What r is called in the result, where the row renames or replaces it: t, or o, few elements, where
 * they are chosen; for those who get places, c, what they choose from; or 0. */
static char renamed_letter(int kind) {
    const MtfOperationRow *row = mtf_operation_row(kind);
    if (row->scratch == MTF_SCRATCH_SLOTS)
        return 'c';
    bool adds = row->addend > 0 && !row->choice.chooses;
    bool renames = adds || row->dims == MTF_DIMS_RENAMED || row->dims == MTF_DIMS_REPLACED;
    return !renames ? 0 : row->integer_outputs != 0 ? 'o' : 't';
}

/* Windows that relate places y x of the larger side to as many, j i, of the smaller. */
static void add_windows(const MtfGraph *graph, const MtfOperationRow *row, MtfAttributes *a) {
    static const char *const letters[][3] = { { "y", "j", "u" }, { "x", "i", "v" } };
    bool spreads = row->windows == MTF_WINDOWS_SPREAD;
    for (; row->products == MTF_PRODUCTS_CONV && a->n_windows < 2; a->n_windows++) {
        const char *const *of = letters[a->n_windows];
        int larger = mtf_graph_find_dimension(graph, of[0]);
        int smaller = mtf_graph_find_dimension(graph, of[1]);
        a->windows[a->n_windows] = (MtfWindow){ .from = spreads ? smaller : larger,
                                                .to = spreads ? larger : smaller,
                                                .kernel = mtf_graph_find_dimension(graph, of[2]),
                                                .stride = 1,
                                                .dilation = 1,
                                                .before = 1,
                                                .after = 1 };
    }
}

/* Attributes that suit every operation: those it lacks are not looked at. */
static MtfAttributes attributes_of(const MtfGraph *graph, int kind) {
    static char constant_schedule[] = "constant";
    MtfAttributes a = MTF_NO_ATTRIBUTES;
    bool attends = mtf_operation_row(kind)->share != NULL;
    a.query = mtf_graph_find_dimension(graph, attends ? "m" : "q");
    a.memory = mtf_graph_find_dimension(graph, attends ? "n" : "k");
    bool places = mtf_operation_row(kind)->scratch == MTF_SCRATCH_SLOTS;
    bool turns = mtf_graph_find_dimension(graph, "p") >= 0;
    a.dimension = mtf_graph_find_dimension(graph, places ? "r" : turns ? "f" : "k");
    a.choices = mtf_graph_find_dimension(graph, "o");
    a.experts = mtf_graph_find_dimension(graph, "c");
    a.from = mtf_graph_find_dimension(graph, "r");
    a.to = mtf_graph_find_dimension(graph, (char[]){ renamed_letter(kind), 0 });
    a.stride = a.dilation = a.deviation = a.high = 1;
    a.position = mtf_graph_find_dimension(graph, "p");
    add_windows(graph, mtf_operation_row(kind), &a);
    a.exponent = 1.5;
    a.slope = 0.1;
    a.low = 0.5;
    a.high = 4;
    a.base = 10000;
    a.angle = a.stretch = a.gain = 1;
    a.value = a.factor = 0.5;
    a.epsilon = 1e-6;
    a.rate = 0.1;
    a.limit = 1;
    a.beta1 = 0.9;
    a.beta2 = 0.999;
    a.decay = 0.8;
    a.threshold = 1;
    a.schedule = constant_schedule;
    return a;
}

/* Results that replace a variable at the end of a step: output j of an optimizer. */
static void add_updates(MtfGraph *graph) {
    const MtfOperation *op = mtf_graph_operation(graph, 0);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    for (int j = 0; j < op->n_outputs; j++)
        mtf_graph_add_update(graph, op->inputs[j == 0 ? 0 : row->outputs_like[j]], op->outputs[j]);
}

bool mtf_kernel_is_update(int kind) {
    return mtf_operation_row(kind)->updates;
}

/* Somebody's result, which may be written over. */
static int add_result(MtfGraph *graph, const char *name, int input) {
    MtfNewOperation operation = { .name = name,
                                  .kind = MTF_OP_NEGATE,
                                  .n_inputs = 1,
                                  .inputs = &input,
                                  .attributes = MTF_NO_ATTRIBUTES };
    return mtf_graph_add_operation(graph, &operation, NULL);
}

static int add_operand(MtfGraph *graph, const char *name, const char *letters, MtfDtype dtype,
                       bool variable) {
    bool integer = letters[0] == '#';
    MtfShape shape = shape_of(graph, letters + integer);
    MtfInit init = { MTF_INIT_CONSTANT, 0 };
    if (variable && !integer)
        return mtf_graph_add_variable(graph, name, &shape, dtype, init, MTF_MEMORY_VARIABLE, NULL);
    return mtf_graph_add_input(graph, name, &shape, integer ? MTF_I32 : dtype,
                               integer ? MTF_FEED_LABELS : MTF_FEED_FEATURES, NULL);
}

/* Whether an operand has the dimension; t is what a new name is given to. */
static bool needs_dimension(const MtfBenchmarkOperation *operation, char letter) {
    for (int k = 0; k < MTF_TRIAL_INPUTS && operation->operands.inputs[k] != NULL; k++)
        if (strchr(operation->operands.inputs[k], letter) != NULL)
            return true;
    return (operation->operands.output != NULL &&
            strchr(operation->operands.output, letter) != NULL) ||
           letter == renamed_letter(operation->kind);
}

static int add_input(MtfGraph *graph, const MtfBenchmarkOperation *operation, int k,
                     MtfDtype dtype) {
    const MtfOperationRow *row = mtf_operation_row(operation->kind);
    char name[] = { 'i', (char)('0' + k), 0 }, result[] = { 'r', (char)('0' + k), 0 };
    bool wide = mtf_operation_mask_has(row->wide_inputs, k);
    int input =
        add_operand(graph, name, operation->operands.inputs[k],
                    wide ? mtf_dtype_wide(dtype) : dtype, mtf_kernel_is_update(operation->kind));
    bool dies = operation->operands.fresh >> k & 1 && !operation->operands.kept;
    return dies ? add_result(graph, result, input) : input;
}

static MtfGraph *new_graph(const MtfBenchmarkOperation *operation, MtfDtype dtype,
                           const int64_t *size_of) {
    MtfGraph *graph = mtf_graph_new("trial");
    int inputs[MTF_TRIAL_INPUTS], n = 0;
    for (char letter = 'a'; letter <= 'z'; letter++)
        if (size_of[letter - 'a'] > 0 && needs_dimension(operation, letter))
            mtf_graph_add_dimension(graph, (char[]){ letter, 0 }, size_of[letter - 'a'], NULL);
    for (; n < MTF_TRIAL_INPUTS && operation->operands.inputs[n] != NULL; n++)
        inputs[n] = add_input(graph, operation, n, dtype);
    MtfShape output =
        shape_of(graph, operation->operands.output != NULL ? operation->operands.output : "");
    MtfNewOperation new_operation = { .name = "op",
                                      .kind = operation->kind,
                                      .n_inputs = n,
                                      .inputs = inputs,
                                      .shape = operation->operands.output != NULL ? &output : NULL,
                                      .has_dtype = mtf_operation_row_chooses_dtype(
                                          mtf_operation_row(operation->kind)),
                                      .dtype = dtype,
                                      .attributes = attributes_of(graph, operation->kind) };
    GError *refused = NULL;
    if (mtf_graph_add_operation(graph, &new_operation, &refused) < 0)
        g_error("kernel trial: %s", refused->message);
    if (mtf_kernel_is_update(operation->kind))
        add_updates(graph);
    return graph;
}

/* The first elements one by one, the others as copies of them. */
static void fill_operand(const MtfOperand *operand, int64_t id_bound) {
    int64_t elements = mtf_slice_elements(operand), pattern = MIN(elements, 1000);
    gsize bytes = (gsize)mtf_dtype_bytes(operand->dtype);
    for (int64_t i = 0; i < pattern; i++) {
        int64_t draw = i * 7919 % 1000;
        mtf_slice_set(operand, i,
                      operand->dtype == MTF_I32 ? (double)(draw % id_bound)
                                                : 0.25 + (double)draw * 1e-3);
    }
    for (int64_t i = pattern; i < elements; i += pattern)
        memcpy((char *)operand->data + (gsize)i * bytes, operand->data,
               bytes * (gsize)MIN(pattern, elements - i));
}

static void fill_operands(const MtfKernelBenchmark *trial) {
    for (int t = 0; t < (int)trial->graph->tensors->len; t++)
        if (mtf_graph_tensor(trial->graph, t)->source != MTF_SOURCE_OPERATION)
            fill_operand(mtf_worker_tensor(trial->worker, t), mtf_data_id_bound(trial->graph, t));
}

void mtf_kernel_benchmark_init(MtfKernelBenchmark *trial, const MtfBenchmarkOperation *operation,
                               MtfDtype dtype, const int64_t *size_of) {
    MtfMesh mesh;
    mtf_mesh_parse("one:1", 0, &mesh, NULL);
    *trial = (MtfKernelBenchmark){ .graph = new_graph(operation, dtype, size_of),
                                   .fresh = operation->operands.fresh };
    trial->layout = mtf_layout_new(trial->graph, &mesh);
    trial->program = mtf_lower(trial->graph, trial->layout);
    trial->arena = mtf_arena_pack(trial->program);
    while (mtf_program_instruction(trial->program, trial->kernel)->operation !=
           (int)trial->graph->operations->len - 1)
        trial->kernel++;
}

static bool open_trial(MtfKernelBenchmark *trial, char *base, GError **error) {
    trial->worker = mtf_worker_new_at(trial->program, trial->arena, 0, 0, base, error);
    if (trial->worker == NULL)
        return false;
    trial->worker->poison = false;
    fill_operands(trial);
    return true;
}

bool mtf_kernel_benchmarks_open(MtfKernelBenchmark *trials, int n, MtfArenaMemory *memory,
                                GError **error) {
    int64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += trials[i].arena->bytes;
    if (memory->bytes < bytes) {
        mtf_arena_memory_clear(memory);
        if (!mtf_arena_memory_init(memory, bytes, false, error))
            return false;
    }
    char *base = memory->base;
    bool opened = true;
    for (int i = 0; opened && i < n; i++) {
        opened = open_trial(&trials[i], base, error);
        base += trials[i].arena->bytes;
    }
    if (!opened)
        mtf_kernel_benchmarks_close(trials, n);
    return opened;
}

void mtf_kernel_benchmarks_close(MtfKernelBenchmark *trials, int n) {
    for (int i = 0; i < n; i++)
        g_clear_pointer(&trials[i].worker, mtf_worker_free);
}

void mtf_kernel_benchmark_clear(MtfKernelBenchmark *trial) {
    mtf_arena_free(trial->arena);
    mtf_program_free(trial->program);
    mtf_layout_free(trial->layout);
    mtf_graph_free(trial->graph);
    *trial = (MtfKernelBenchmark){ 0 };
}

const MtfInstruction *mtf_kernel_benchmark_instruction(const MtfKernelBenchmark *trial) {
    return mtf_program_instruction(trial->program, trial->kernel);
}

/* ---- Timing -------------------------------------------------------------------------------- */

#define ROUNDS_LEAST 3
#define ROUNDS_MOST 50
#define LINE 64 /* of a cache, or less */

double mtf_kernel_benchmark_clock(void) {
    double least = INFINITY;
    for (int i = 0; i < ROUNDS_MOST; i++) {
        double start = mtf_processor_seconds();
        least = fmin(least, mtf_processor_seconds() - start);
    }
    return least;
}

static void freshen(const MtfKernelBenchmark *trial) {
    const MtfKernelCall *call = &trial->worker->calls[trial->kernel];
    for (int k = 0; k < call->operation->n_inputs; k++)
        if (trial->fresh >> k & 1)
            fill_operand(&call->inputs[k], 1);
}

/* Runs trial i once what the next one finds fresh is written: so what a trial finds fresh was
 * computed just before the kernel that ran before it. */
static double run_after_next(const MtfKernelBenchmark *trials, int n, int i) {
    const MtfKernelBenchmark *trial = &trials[i];
    freshen(&trials[(i + 1) % n]);
    double start = mtf_processor_seconds();
    mtf_worker_run_kernel(trial->worker, trial->kernel, 1);
    return mtf_processor_seconds() - start;
}

/* Reads a byte of every line. */
static void sweep(const MtfArenaMemory *memory) {
    volatile const char *bytes = memory->base;
    for (int64_t i = 0; i < memory->bytes; i += LINE)
        (void)bytes[i];
}

void mtf_kernel_benchmarks_measure(const MtfKernelBenchmark *trials, int n, double patience,
                                   const MtfArenaMemory *swept, double *seconds) {
    g_autofree double *samples = g_new(double, (gsize)n *ROUNDS_MOST);
    double clock = mtf_kernel_benchmark_clock();
    int rounds = 0;
    freshen(&trials[0]);
    for (int i = 0; i < n; i++)
        run_after_next(trials, n, i);
    double start = mtf_processor_seconds();
    while (rounds < ROUNDS_LEAST ||
           (rounds < ROUNDS_MOST && mtf_processor_seconds() - start < patience)) {
        if (swept != NULL)
            sweep(swept);
        for (int i = 0; i < n; i++)
            samples[i * ROUNDS_MOST + rounds] = fmax(run_after_next(trials, n, i) - clock, 1e-9);
        rounds++;
    }
    for (int i = 0; i < n; i++)
        seconds[i] = mtf_median(&samples[i * ROUNDS_MOST], rounds);
}
