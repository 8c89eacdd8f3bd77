// SPDX-License-Identifier: GPL-3.0-or-later
// kernels: blocks are multiplied by a library
/* Attention over several blocks of queries and memory, against all scores at once. (Small shapes of
 * every kind are in test_kernel_rows.c.) */
#include "tests/support/cmocka.h"

#include "layouts/kernel_work/kernel_scratch.h"
#include "tests/support/cases/kernel_slices.h"
#include "tests/support/reference/reference.h"

#include <math.h>

typedef struct {
    int64_t heads, queries, keys, features;
    int causal, parts; /* parts of queries and, going backward, of memory */
    bool heads_share;  /* one memory for all heads */
    double factor, softcap;
    int window;
    int bias; /* dimensions of what is added to scores: 1 memory, 2 of queries too, 3 of heads too */
    bool in_parts; /* heads are parts of a longer memory */
    double dropout;
} Case;

static const Case cases[] = {
    { 2, 3, 1100, 4, 0, 1, false, 0.5, 0, 0, 0, false, 0 },
    { 1, 150, 150, 8, 1, 1, false, 0.3, 0, 0, 0, false, 0 },
    { 2, 70, 600, 3, 1, 3, true, 0.5, 0, 0, 0, false, 0 },
    { 1, 130, 1030, 5, 1, 2, false, 1, 0, 0, 0, false, 0 },
    { 1, 600, 40, 4, 1, 4, false, 0.5, 0, 0, 0, false, 0 },
    { 3, 65, 513, 2, 0, 2, true, -0.7, 0, 0, 0, false, 0 },
    { 1, 64, 512, 16, 0, 1, false, 5, 0, 0, 0, false, 0 },
    { 2, 70, 600, 3, 0, 2, true, 0.5, 0.4, 0, 0, false, 0 },
    { 1, 700, 700, 4, 1, 1, false, 0.5, 0, 40, 0, false, 0 },
    { 2, 700, 700, 3, 1, 3, true, 0.5, 0.7, 100, 0, false, 0 },
    { 1, 150, 150, 8, 1, 1, false, 0.3, 0, 1, 0, false, 0 },
    { 1, 1200, 1200, 2, 1, 2, false, 1, 0, 600, 0, false, 0 },
    { 2, 70, 600, 3, 0, 1, true, 0.5, 0, 0, 1, false, 0 },
    { 2, 150, 150, 8, 1, 1, false, 0.3, 0, 0, 2, false, 0 },
    { 3, 65, 530, 2, 1, 2, false, -0.7, 0, 0, 3, false, 0 },
    { 2, 70, 1100, 4, 0, 3, false, 2, 0, 0, 2, false, 0 },
    { 3, 300, 100, 4, 1, 1, false, 0.5, 0, 0, 0, true, 0 },
    { 5, 150, 40, 3, 1, 3, false, 0.5, 0.7, 60, 0, true, 0 },
    { 4, 100, 600, 2, 1, 2, false, 1, 0, 30, 0, true, 0 },
    { 3, 70, 600, 3, 0, 2, false, 0.5, 0, 0, 2, true, 0 },
    { 2, 70, 600, 3, 1, 3, true, 0.5, 0, 0, 0, false, 0.1 },
    { 3, 65, 1100, 4, 0, 2, false, 0.5, 0.4, 0, 0, false, 0.5 },
    { 2, 700, 700, 3, 1, 3, true, 0.5, 0, 100, 0, false, 0.9 },
    { 2, 150, 150, 8, 0, 2, false, 0.3, 0, 0, 2, false, 0.2 },
    { 3, 300, 100, 4, 1, 1, false, 0.5, 0, 0, 0, true, 0.3 },
    { 3, 70, 600, 3, 0, 2, false, 0.5, 0, 0, 0, true, 0.3 },
    { 3, 70, 600, 3, 0, 2, false, 0.5, 0, 0, 3, true, 0.3 },
    { 2, 700, 700, 3, 1, 3, false, 0.5, 0, 100, 2, false, 0 },
    { 3, 65, 530, 2, 1, 2, false, -0.7, 0, 40, 3, false, 0 },
};

static MtfGraph *make_graph(const Case *c, MtfDtype dtype) {
    MtfGraph *graph = mtf_graph_new("attention");
    int heads = mtf_graph_add_dimension(graph, "heads", c->heads, NULL);
    int query = mtf_graph_add_dimension(graph, "query", c->queries, NULL);
    int memory = mtf_graph_add_dimension(graph, "memory", c->keys, NULL);
    int features = mtf_graph_add_dimension(graph, "features", c->features, NULL);
    MtfShape q = { 3, { query, heads, features } }, rest = { 2, { query, heads } };
    MtfShape k = c->heads_share ? (MtfShape){ 2, { memory, features } }
                                : (MtfShape){ 3, { memory, heads, features } };
    MtfShape bias = { .rank = c->bias };
    const int places[] = { heads, query, memory };
    for (int i = 0; i < c->bias; i++)
        bias.dims[i] = places[3 - c->bias + i];
    const MtfShape *const shapes[] = { &q, &k, &k, &q, &rest, &q, &bias };
    int in[7] = { 0 };
    for (int i = 0; i < (c->bias > 0 ? 7 : 6); i++) {
        g_autofree char *name = g_strdup_printf("in%d", i);
        in[i] = mtf_graph_add_input(graph, name, shapes[i], dtype, MTF_FEED_FEATURES, NULL);
    }
    MtfNewOperation operation = { .name = "y",
                                  .kind = MTF_OP_ATTENTION,
                                  .n_inputs = c->bias > 0 ? 4 : 3,
                                  .inputs = (int[]){ in[0], in[1], in[2], in[6] },
                                  .attributes = MTF_NO_ATTRIBUTES };
    operation.attributes.query = query;
    operation.attributes.memory = memory;
    operation.attributes.dimension = features;
    operation.attributes.factor = c->factor;
    operation.attributes.causal = c->causal;
    operation.attributes.softcap = c->softcap;
    operation.attributes.window = c->window;
    operation.attributes.parts = c->in_parts ? heads : -1;
    operation.attributes.rate = c->dropout;
    operation.attributes.stream = (char *)"stream";
    int y = mtf_graph_add_operation(graph, &operation, NULL);
    operation.name = "back";
    operation.kind = MTF_OP_ATTENTION_GRAD;
    operation.n_inputs += 3;
    operation.inputs = (int[]){ in[0], in[1], in[2], y, y + 1, in[5], in[6] };
    assert_true(y >= 0 && mtf_graph_add_operation(graph, &operation, NULL) >= 0);
    operation.name = "learning";
    operation.kind = MTF_OP_ATTENTION_BIAS_GRAD;
    assert_true(c->bias == 0 || mtf_graph_add_operation(graph, &operation, NULL) >= 0);
    return graph;
}

/* The largest difference of an operation's outputs, relative to the largest value, which counts as
 * `least` at least. */
static double difference(const MtfReference *reference, int operation, double *const *results,
                         double least) {
    const MtfOperation *op = mtf_graph_operation(reference->graph, operation);
    double worst = 0;
    for (int k = 0; k < op->n_outputs; k++) {
        const MtfTensor *tensor = mtf_graph_tensor(reference->graph, op->outputs[k]);
        const double *expected = reference->values[op->outputs[k]];
        double scale = least, apart = 0;
        for (int64_t i = 0; i < mtf_graph_elements(reference->graph, &tensor->shape); i++) {
            if (isinf(expected[i]) && expected[i] == results[k][i])
                continue; /* of a query that looks at nothing */
            scale = fmax(scale, fabs(expected[i]));
            double d = fabs(expected[i] - results[k][i]);
            apart = isnan(apart) || d <= apart ? apart : d;
        }
        worst = isnan(worst) || apart / scale <= worst ? worst : apart / scale;
    }
    return worst;
}

/* All operations; float32 inputs are rounded first, and so is what goes from one to the other. */
static void check(const Case *c, MtfDtype dtype) {
    g_autoptr(MtfGraph) graph = make_graph(c, dtype);
    g_autoptr(MtfReference) reference = mtf_reference_new(graph, 1);
    mtf_reference_fill_inputs(reference, 3);
    if (c->bias == 2) /* the first query looks at nothing, others not at what is masked */
        for (int64_t i = 0; i < 3 * c->keys / 2; i++)
            reference->values[6][i] = -1e30;
    for (int t = 0; dtype == MTF_F32 && t < (c->bias > 0 ? 7 : 6); t++)
        for (int64_t i = 0; i < mtf_graph_elements(graph, &mtf_graph_tensor(graph, t)->shape); i++)
            reference->values[t][i] = (double)(float)reference->values[t][i];
    mtf_reference_run(reference, 0);
    MtfSlicing slicing = { .scratch_limit = -1, .seed = 1, .step = 1 };
    for (int i = 0; i < MTF_MAX_INDEXES; i++)
        slicing.parts[i] = c->parts;
    for (int operation = 0; operation < (int)graph->operations->len; operation++) {
        double *results[MTF_MAX_OUTPUTS];
        mtf_kernel_run_sliced(graph, operation, reference->values, &slicing, results);
        /* With one position in sight the gradients of q and k are differences of equal terms, which
         * are about 1: exactly 0, and in float32 what the rounding of those terms leaves. */
        double worst = difference(reference, operation, results, c->window == 1 ? 1 : 1e-3);
        if (!(worst <= (dtype == MTF_F64 ? 1e-12 : 2e-5)))
            fail_msg("%d queries, %d keys, %s: %g apart", (int)c->queries, (int)c->keys,
                     mtf_dtype_name(dtype), worst);
        for (int k = 0; k < mtf_graph_operation(graph, operation)->n_outputs; k++)
            g_free(results[k]);
    }
}

TEST(many_blocks_give_what_all_scores_at_once_give) {
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        check(&cases[i], MTF_F64);
        check(&cases[i], MTF_F32);
    }
}

/* 2 forms of a head's memory and 2 of a block of 64 queries, with 4 features filled up to 32, and a
 * block of 64 by 512 scores. Ten times as many queries, positions and heads: only memory grows. */
TEST(scratch_does_not_grow_with_the_scores) {
    Case small = { 1, 64, 512, 4, 1, 1, false, 1, 0, 0, 0, false, 0 },
         large = { 8, 640, 5120, 4, 1, 1, false, 1, 0, 0, 0, false, 0 };
    int64_t bytes[2];
    for (int i = 0; i < 2; i++) {
        g_autoptr(MtfGraph) graph = make_graph(i == 0 ? &small : &large, MTF_F32);
        MtfIteration iteration;
        int64_t sizes[MTF_MAX_INDEXES];
        mtf_operation_iteration(graph, 0, &iteration);
        for (int j = 0; j < iteration.n; j++)
            sizes[j] = iteration.index[j].size;
        bytes[i] = mtf_operation_scratch_bytes(graph, 0, &iteration, sizes);
    }
    assert_int_equal(bytes[0], (2 * 512 * 32 + 2 * 64 * 32 + 64 * 512) * 4);
    assert_int_equal(bytes[1] - bytes[0], 2 * (5120 - 512) * 32 * 4);
}

/* A causal half costs less: with L queries and memory positions of which all are here, the points
 * that count are close to a half; with the last quarter of the queries, seven eighths. */
TEST(what_causal_attention_leaves_out_costs_nothing) {
    Case c = { 1, 64, 64, 4, 1, 1, false, 1, 0, 0, 0, false, 0 };
    g_autoptr(MtfGraph) graph = make_graph(&c, MTF_F32);
    MtfIteration iteration;
    mtf_operation_iteration(graph, 0, &iteration);
    int64_t sizes[MTF_MAX_INDEXES] = { 64, 1, 4, 64 };
    assert_true(fabs(mtf_operation_share(graph, 0, &iteration, sizes) - 0.5) < 1e-12);
    sizes[0] = 16;
    assert_true(fabs(mtf_operation_share(graph, 0, &iteration, sizes) - 0.875) < 1e-12);
    sizes[3] = 16; /* the last queries and the first of memory: all of it */
    assert_true(mtf_operation_share(graph, 0, &iteration, sizes) == 1);
    /* A window of 16: 64^2 / 2 pairs behind the queries, less 48^2 / 2 behind the window. */
    sizes[0] = sizes[3] = 64;
    mtf_graph_operation(graph, 0)->attributes.window = 16;
    assert_true(fabs(mtf_operation_share(graph, 0, &iteration, sizes) - 896.0 / 4096) < 1e-12);
    mtf_graph_operation(graph, 0)->attributes.causal = 0;
    mtf_graph_operation(graph, 0)->attributes.window = 0;
    sizes[0] = 16;
    sizes[3] = 64;
    assert_true(mtf_operation_share(graph, 0, &iteration, sizes) == 1);
}
