// SPDX-License-Identifier: GPL-3.0-or-later
/* The kernels of a GPT's training step (d_model 768, 12 heads of 64, d_ff 3072, length 256, batch
 * 4) one by one, in float32 and in bfloat16. An argument restricts the rows to those whose name
 * contains it. */
#include "layouts/kernel_work/kernel_scratch.h"
#include "runtime/kernels/base/kernel_bfloat16.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TURNS 9

/* Shapes are strings of one-letter dimensions. */
static const struct {
    char letter;
    int64_t size;
} dimensions[] = { { 'b', 4 },  { 'l', 256 },  { 't', 256 },  { 'm', 768 }, { 'h', 12 },
                   { 'd', 64 }, { 'f', 3072 }, { 'v', 8192 }, { 'u', 768 } };

typedef struct {
    const char *name;
    int kind;
    const char *inputs[8];
    const char *output;
    int m, n, k, count; /* einsum: the bare product of as many operations */
} Row;

static const Row rows[] = {
    { "query", MTF_OP_EINSUM, { "blm", "mhd" }, "blhd", 1024, 768, 768, 1 },
    { "query dx", MTF_OP_EINSUM, { "blhd", "mhd" }, "blm", 1024, 768, 768, 1 },
    { "query dw", MTF_OP_EINSUM, { "blm", "blhd" }, "mhd", 768, 768, 1024, 1 },
    { "scores", MTF_OP_EINSUM, { "blhd", "bthd" }, "bhlt", 256, 256, 64, 48 },
    { "context", MTF_OP_EINSUM, { "bhlt", "bthd" }, "blhd", 256, 64, 256, 48 },
    { "scores dk", MTF_OP_EINSUM, { "bhlt", "blhd" }, "bthd", 256, 64, 256, 48 },
    { "scores dv", MTF_OP_EINSUM, { "bhlt", "blhd" }, "bthd", 256, 64, 256, 48 },
    { "context ds", MTF_OP_EINSUM, { "blhd", "bthd" }, "bhlt", 256, 256, 64, 48 },
    { "attention out", MTF_OP_EINSUM, { "blhd", "hdm" }, "blm", 1024, 768, 768, 1 },
    { "heads outside", MTF_OP_EINSUM, { "blm", "mhd" }, "bhld", 1024, 768, 768, 1 },
    { "heads last", MTF_OP_EINSUM, { "blm", "mdh" }, "blhd", 1024, 768, 768, 1 },
    { "d_ff", MTF_OP_EINSUM, { "blm", "mf" }, "blf", 1024, 3072, 768, 1 },
    { "d_ff dx", MTF_OP_EINSUM, { "blf", "mf" }, "blm", 1024, 768, 3072, 1 },
    { "d_ff dw", MTF_OP_EINSUM, { "blm", "blf" }, "mf", 768, 3072, 1024, 1 },
    { "logits", MTF_OP_EINSUM, { "blm", "mv" }, "blv", 1024, 8192, 768, 1 },
    { "logits tied", MTF_OP_EINSUM, { "blm", "vm" }, "blv", 1024, 8192, 768, 1 },
    { "logits dw", MTF_OP_EINSUM, { "blm", "blv" }, "mv", 768, 8192, 1024, 1 },
    { "square norm", MTF_OP_EINSUM, { "mf", "mf" }, "", 0, 0, 0, 0 },
    { "softmax dot", MTF_OP_EINSUM, { "bhlt", "bhlt" }, "bhl", 0, 0, 0, 0 },
    { "add", MTF_OP_ADD, { "blm", "blm" }, "blm", 0, 0, 0, 0 },
    { "add 3", MTF_OP_ADD, { "blm", "blm", "blm" }, "blm", 0, 0, 0, 0 },
    { "bias", MTF_OP_ADD, { "blf", "f" }, "blf", 0, 0, 0, 0 },
    { "row scale", MTF_OP_MULTIPLY, { "blf", "bl" }, "blf", 0, 0, 0, 0 },
    { "relu", MTF_OP_RELU, { "blf" }, NULL, 0, 0, 0, 0 },
    { "gelu", MTF_OP_GELU, { "blf" }, NULL, 0, 0, 0, 0 },
    { "gelu_grad", MTF_OP_GELU_GRAD, { "blf", "blf" }, NULL, 0, 0, 0, 0 },
    { "tanh", MTF_OP_TANH, { "blf" }, NULL, 0, 0, 0, 0 },
    { "bias grad", MTF_OP_REDUCE_SUM, { "blf" }, "f", 0, 0, 0, 0 },
    { "row sum", MTF_OP_REDUCE_SUM, { "blf" }, "bl", 0, 0, 0, 0 },
    { "middle sum", MTF_OP_REDUCE_SUM, { "blhd" }, "bld", 0, 0, 0, 0 },
    { "softmax max", MTF_OP_REDUCE_MAX, { "bhlt" }, "bhl", 0, 0, 0, 0 },
    { "softmax sum", MTF_OP_SUM_EXP, { "bhlt", "bhl" }, "bhl", 0, 0, 0, 0 },
    { "softmax apply", MTF_OP_SOFTMAX_APPLY, { "bhlt", "bhl", "bhl" }, NULL, 0, 0, 0, 0 },
    { "softmax grad", MTF_OP_SOFTMAX_GRAD, { "bhlt", "bhlt", "bhl" }, NULL, 0, 0, 0, 0 },
    { "causal mask", MTF_OP_CAUSAL_MASK, { "bhlt" }, NULL, 0, 0, 0, 0 },
    { "dropout", MTF_OP_DROPOUT, { "blm" }, NULL, 0, 0, 0, 0 },
    { "mean", MTF_OP_REDUCE_MEAN, { "blm" }, "bl", 0, 0, 0, 0 },
    { "variance", MTF_OP_VARIANCE, { "blm", "bl" }, "bl", 0, 0, 0, 0 },
    { "normalize", MTF_OP_NORMALIZE, { "blm", "bl", "bl", "m", "m" }, NULL, 0, 0, 0, 0 },
    { "normalize dot", MTF_OP_NORMALIZE_DOT, { "blm", "blm", "bl", "bl", "m" }, "bl", 0, 0, 0, 0 },
    { "scale grad", MTF_OP_NORMALIZE_SCALE_GRAD, { "blm", "blm", "bl", "bl" }, "m", 0, 0, 0, 0 },
    { "normalize grad",
      MTF_OP_NORMALIZE_GRAD,
      { "blm", "blm", "bl", "bl", "m", "bl", "bl" },
      NULL,
      0,
      0,
      0,
      0 },
    { "loss max", MTF_OP_REDUCE_MAX, { "blv" }, "bl", 0, 0, 0, 0 },
    { "loss sum", MTF_OP_SUM_EXP, { "blv", "bl" }, "bl", 0, 0, 0, 0 },
    { "loss grad",
      MTF_OP_CROSS_ENTROPY_GRAD,
      { "blv", "#bl", "bl", "bl", "bl" },
      NULL,
      0,
      0,
      0,
      0 },
    { "embedding", MTF_OP_EMBEDDING, { "vm", "#bl" }, "blm", 0, 0, 0, 0 },
    { "embedding grad", MTF_OP_EMBEDDING_GRAD, { "#bl", "blm" }, "vm", 0, 0, 0, 0 },
    { "transpose 2d", MTF_OP_TRANSPOSE, { "mf" }, "fm", 0, 0, 0, 0 },
    { "transpose heads", MTF_OP_TRANSPOSE, { "blhd" }, "bhld", 0, 0, 0, 0 },
    { "adam", MTF_OP_ADAM, { "mf", "mf", "mf", "mf", "" }, NULL, 0, 0, 0, 0 },
    { "sgd", MTF_OP_SGD, { "mf", "mf", "" }, NULL, 0, 0, 0, 0 },
};

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static MtfShape shape_of(const MtfGraph *graph, const char *letters) {
    MtfShape shape = { 0 };
    for (; *letters != 0; letters++) {
        char name[2] = { *letters, 0 };
        mtf_shape_append(&shape, mtf_graph_find_dimension(graph, name));
    }
    return shape;
}

static MtfOperand whole_operand(const MtfGraph *graph, int tensor) {
    const MtfTensor *t = mtf_graph_tensor(graph, tensor);
    MtfOperand operand = { .dtype = t->dtype, .rank = t->shape.rank };
    for (int i = 0; i < operand.rank; i++) {
        operand.dims[i] = t->shape.dims[i];
        operand.size[i] = operand.global[i] = mtf_graph_size(graph, t->shape.dims[i]);
    }
    int64_t n = mtf_graph_elements(graph, &t->shape);
    operand.data = g_aligned_alloc(1, (gsize)(n * 4 + 64), 64);
    for (int64_t i = 0; i < n; i++) {
        float value = 0.25F + (float)(i * 7919 % 1000) * 1e-3F;
        if (t->dtype == MTF_I32)
            ((int32_t *)operand.data)[i] = (int32_t)(i * 7919 % 8192);
        else if (t->dtype == MTF_BF16)
            ((uint16_t *)operand.data)[i] = mtf_bf16_rounded(value);
        else
            ((float *)operand.data)[i] = value;
    }
    return operand;
}

/* The operation alone in a graph, stored in that type. */
static MtfGraph *make_graph(const Row *row, MtfDtype storage) {
    MtfGraph *graph = mtf_graph_new("bench");
    int inputs[8], n = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(dimensions); i++) {
        char name[2] = { dimensions[i].letter, 0 };
        mtf_graph_add_dimension(graph, name, dimensions[i].size, NULL);
    }
    for (; n < 8 && row->inputs[n] != NULL; n++) {
        bool integer = row->inputs[n][0] == '#';
        MtfShape shape = shape_of(graph, row->inputs[n] + integer);
        char name[] = { 'i', (char)('0' + n), 0 };
        bool wide = mtf_operation_mask_has(mtf_operation_row(row->kind)->wide_inputs, n);
        MtfDtype type = wide ? mtf_dtype_wide(storage) : storage;
        inputs[n] = mtf_graph_add_input(graph, name, &shape, integer ? MTF_I32 : type,
                                        integer ? MTF_FEED_TOKENS : MTF_FEED_FEATURES, NULL);
    }
    MtfShape output = shape_of(graph, row->output != NULL ? row->output : "");
    MtfNewOperation operation = { .name = "op",
                                  .kind = row->kind,
                                  .n_inputs = n,
                                  .inputs = inputs,
                                  .shape = row->output != NULL ? &output : NULL,
                                  .attributes = MTF_NO_ATTRIBUTES };
    operation.attributes.query = mtf_graph_find_dimension(graph, "l");
    operation.attributes.memory = mtf_graph_find_dimension(graph, "t");
    operation.attributes.rate = 0.1;
    operation.attributes.beta1 = operation.attributes.beta2 = 0.9;
    operation.attributes.epsilon = 1e-6;
    g_autoptr(GError) error = NULL;
    if (mtf_graph_add_operation(graph, &operation, &error) < 0)
        g_error("%s: %s", row->name, error->message);
    return graph;
}

typedef struct {
    MtfKernelCall call;
    MtfOperand inputs[8], outputs[MTF_MAX_OUTPUTS];
    void *workspace;
    double bytes;
} Bench;

static void bench_init(Bench *bench, const MtfGraph *graph) {
    const MtfOperation *operation = mtf_graph_operation(graph, 0);
    *bench = (Bench){ .call = { .graph = graph, .operation = operation, .seed = 1, .step = 1 } };
    for (int k = 0; k < operation->n_inputs; k++) {
        bench->inputs[k] = whole_operand(graph, operation->inputs[k]);
        bench->bytes += (double)mtf_graph_tensor_bytes(graph, operation->inputs[k]);
    }
    for (int j = 0; j < operation->n_outputs; j++) {
        bench->outputs[j] = whole_operand(graph, operation->outputs[j]);
        bench->bytes += (double)mtf_graph_tensor_bytes(graph, operation->outputs[j]);
    }
    MtfIteration iteration;
    int64_t sizes[MTF_MAX_INDEXES];
    mtf_operation_iteration(graph, 0, &iteration);
    for (int i = 0; i < iteration.n; i++)
        sizes[i] = iteration.index[i].size;
    bench->call.inputs = bench->inputs;
    bench->call.outputs = bench->outputs;
    bench->call.scratch_bytes = mtf_operation_scratch_bytes(graph, 0, &iteration, sizes);
    bench->call.scratch = g_aligned_alloc(1, (gsize)bench->call.scratch_bytes + 64, 64);
    int64_t workspace = mtf_kernel_prepare(&bench->call);
    bench->workspace = g_aligned_alloc(1, (gsize)workspace + 4096, 4096);
    bench->call.workspace = bench->workspace;
}

static void bench_clear(Bench *bench) {
    mtf_kernel_release(&bench->call);
    g_aligned_free(bench->workspace);
    for (int k = 0; k < 8; k++)
        g_aligned_free(bench->inputs[k].data);
    for (int j = 0; j < MTF_MAX_OUTPUTS; j++)
        g_aligned_free(bench->outputs[j].data);
    g_aligned_free(bench->call.scratch);
}

static double kernel_seconds(const Bench *bench) {
    double start = cpu_seconds();
    mtf_kernel(bench->call.operation->kind)(&bench->call);
    return cpu_seconds() - start;
}

/* The bare product of the row's sizes, on operands of its own. */
static double product_seconds(const Row *row, float *const *matrix) {
    double start = cpu_seconds();
    for (int i = 0; i < row->count; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, row->m, row->n, row->k, 1,
                    matrix[0] + (int64_t)i * row->m * row->k, row->k,
                    matrix[1] + (int64_t)i * row->k * row->n, row->n, 0,
                    matrix[2] + (int64_t)i * row->m * row->n, row->n);
    return cpu_seconds() - start;
}

/* Half the bytes copied: as many bytes read and written as the kernel touches. */
static double copy_seconds(float *const *matrix, double bytes) {
    double start = cpu_seconds();
    memcpy(matrix[0], matrix[1], (size_t)(bytes / 2));
    return cpu_seconds() - start;
}

/* Both types in turns. */
static void run_row(const Row *row, float *const *matrix) {
    g_autoptr(MtfGraph) graph = make_graph(row, MTF_F32);
    g_autoptr(MtfGraph) narrow_graph = make_graph(row, MTF_BF16);
    Bench bench, narrow_bench;
    bench_init(&bench, graph);
    bench_init(&narrow_bench, narrow_graph);
    double kernel = INFINITY, narrow = INFINITY, bare = INFINITY;
    for (int i = 0; i < TURNS; i++) {
        kernel = MIN(kernel, kernel_seconds(&bench));
        narrow = MIN(narrow, kernel_seconds(&narrow_bench));
        bare = MIN(bare, row->count > 0 ? product_seconds(row, matrix)
                                        : copy_seconds(matrix, bench.bytes));
    }
    double work =
        row->count > 0 ? 2e-9 * row->m * row->n * row->k * row->count : 1e-9 * bench.bytes;
    printf("%-18s %8.3f ms %8.1f %-8s %8.1f %-7s %5.2f %9.3f ms %5.2f\n", row->name, 1e3 * kernel,
           work / kernel, row->count > 0 ? "GFLOP/s" : "GB/s", work / bare,
           row->count > 0 ? "sgemm" : "memcpy", bare / kernel, 1e3 * narrow, kernel / narrow);
    bench_clear(&bench);
    bench_clear(&narrow_bench);
}

int main(int argc, char **argv) {
    float *matrix[3];
    for (int i = 0; i < 3; i++) {
        matrix[i] = g_malloc(64 << 20);
        for (int64_t j = 0; j < 16 << 20; j++)
            matrix[i][j] = (float)(j % 1000) * 1e-3F;
    }
    printf("OpenBLAS kernels: %s\n", openblas_get_corename());
    printf("%-18s %11s %17s %16s %5s %12s %5s\n", "kernel", "float32", "rate", "bare rate", "ratio",
           "bfloat16", "ratio");
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        if (argc < 2 || strstr(rows[i].name, argv[1]) != NULL)
            run_row(&rows[i], matrix);
    for (int i = 0; i < 3; i++)
        g_free(matrix[i]);
    return 0;
}
