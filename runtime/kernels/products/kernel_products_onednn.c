// SPDX-License-Identifier: GPL-3.0-or-later
/* Products by oneDNN: outer loops are dimensions of its batched product, so one call runs them all.
 * Primitives, which are code made for the shapes, are created when a plan is loaded, and take their
 * scratch from the workspace. Most single products in float32 go to its sgemm, which takes buffers
 * of its own as OpenBLAS does. */
#include "runtime/kernels/onednn/onednn_engine.h"
#include "runtime/kernels/products/kernel_products.h"

#include <string.h>

/* Left terms that lie column by column, and few rows, go a stretch of the sums at a time: as a
 * whole the lines of their operands, when far apart, push each other out of the cache. Every
 * stretch reads the result again, so a wide one wants fewer. Of many rows and columns so much at a
 * time is as fast as all of it, and what is packed stays small. */
#define STRETCH 128
#define WIDE_STRETCH 256
#define LONG_STRETCH 384
#define WIDE_RESULT 512
#define FEW_ROWS 640
#define COLUMNS_AT_A_TIME 4096

typedef struct {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[MTF_TERMS]; /* left, right, result as oneDNN sees them */
    dnnl_memory_t scratch;
    bool turned; /* c = a b runs as c' = b' a' */
    dnnl_stream_t stream;
} OneDnn;

/* The richest first: a set of instructions holds those of the sets below it. */
const char *mtf_onednn_isa(void) {
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } sets[] = { { dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx" },
                 { dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16" },
                 { dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni" },
                 { dnnl_cpu_isa_avx512_core, "avx512_core" },
                 { dnnl_cpu_isa_avx2, "avx2" },
                 { dnnl_cpu_isa_avx, "avx" } };
    for (gsize i = 0; i < G_N_ELEMENTS(sets); i++)
        if (mtf_onednn_has(sets[i].isa))
            return sets[i].name;
    return "sse41";
}

char *mtf_onednn_version(void) {
    const dnnl_version_t *version = dnnl_version();
    return g_strdup_printf("%d.%d.%d", version->major, version->minor, version->patch);
}

static int64_t count_products(const MtfContraction *plan) {
    int64_t products = 1;
    for (int i = 0; i < plan->n_outer; i++)
        products *= plan->outer[i].size;
    return products;
}

static double work_of_one(const MtfContraction *plan) {
    return (double)plan->m.size * (double)plan->n.size * (double)plan->k.size;
}

/* Float32 of single rows or columns is read once: nothing for a matrix product. */
static bool suits(const MtfContraction *plan, MtfDtype type) {
    for (int i = 0; i < plan->n_outer; i++)
        if (plan->outer[i].sums)
            return false;
    if (plan->n_outer + 2 > DNNL_MAX_NDIMS ||
        work_of_one(plan) * (double)count_products(plan) < MTF_LEAST_ONEDNN_WORK)
        return false;
    if (type == MTF_BF16)
        return mtf_onednn_multiplies_bfloat16();
    return type == MTF_F32 && plan->m.size > 1 && plan->n.size > 1;
}

/* The shape of a term: outer loops, rows, columns. A loop that the term lacks has one turn. */
static bool describe(const MtfContraction *plan, int term, const MtfContractionLoop *rows,
                     const MtfContractionLoop *columns, MtfDtype type,
                     dnnl_memory_desc_t *description) {
    dnnl_dims_t sizes, strides;
    int n = plan->n_outer;
    for (int i = 0; i < n; i++) {
        bool has = plan->outer[i].stride[term] > 0;
        sizes[i] = has ? plan->outer[i].size : 1;
        strides[i] = has ? plan->outer[i].stride[term] : 1;
    }
    bool row_major = columns->size == 1 || columns->stride[term] == 1;
    sizes[n] = rows->size;
    sizes[n + 1] = columns->size;
    strides[n] = row_major ? MAX(rows->stride[term], columns->size) : 1;
    strides[n + 1] = row_major ? 1 : MAX(columns->stride[term], rows->size);
    return dnnl_memory_desc_init_by_strides(description, n + 2, sizes,
                                            type == MTF_BF16 ? dnnl_bf16 : dnnl_f32,
                                            strides) == dnnl_success;
}

/* oneDNN wants the result row by row: a result that lies column by column is turned. */
static bool describe_all(OneDnn *p, const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                         dnnl_memory_desc_t description[MTF_TERMS]) {
    const MtfContractionLoop *m = &plan->m, *n = &plan->n, *k = &plan->k;
    p->turned = n->size > 1 && n->stride[MTF_RESULT] != 1;
    const MtfContractionLoop *rows = p->turned ? n : m, *columns = p->turned ? m : n;
    int left = p->turned ? MTF_RIGHT : MTF_LEFT, right = p->turned ? MTF_LEFT : MTF_RIGHT;
    return describe(plan, left, rows, k, types[left], &description[MTF_LEFT]) &&
           describe(plan, right, k, columns, types[right], &description[MTF_RIGHT]) &&
           describe(plan, MTF_RESULT, rows, columns, types[MTF_RESULT], &description[MTF_RESULT]);
}

/* A description of the primitive, unless oneDNN has only its plain loops for it. */
static dnnl_primitive_desc_t find_primitive(const dnnl_memory_desc_t description[MTF_TERMS]) {
    dnnl_matmul_desc_t matmul;
    if (dnnl_matmul_desc_init(&matmul, &description[MTF_LEFT], &description[MTF_RIGHT], NULL,
                              &description[MTF_RESULT]) != dnnl_success)
        return NULL;
    dnnl_primitive_desc_t found = mtf_onednn_describe(&matmul, NULL);
    if (found != NULL && g_str_has_prefix(mtf_onednn_implementation(found), "ref")) {
        dnnl_primitive_desc_destroy(found);
        return NULL;
    }
    return found;
}

static void matmul_release(void *prepared) {
    OneDnn *p = prepared;
    for (int t = 0; t < MTF_TERMS; t++)
        if (p->memory[t] != NULL)
            dnnl_memory_destroy(p->memory[t]);
    if (p->scratch != NULL)
        dnnl_memory_destroy(p->scratch);
    if (p->primitive != NULL)
        dnnl_primitive_destroy(p->primitive);
    g_free(p);
}

static bool create(OneDnn *p, dnnl_engine_t engine, dnnl_primitive_desc_t found,
                   const dnnl_memory_desc_t description[MTF_TERMS], int64_t *workspace_bytes) {
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(found, dnnl_query_scratchpad_md, 0);
    *workspace_bytes = (int64_t)dnnl_memory_desc_get_size(scratch);
    for (int t = 0; t < MTF_TERMS; t++)
        if (dnnl_memory_create(&p->memory[t], &description[t], engine, DNNL_MEMORY_NONE) !=
            dnnl_success)
            return false;
    return dnnl_memory_create(&p->scratch, scratch, engine, DNNL_MEMORY_NONE) == dnnl_success &&
           dnnl_primitive_create(&p->primitive, found) == dnnl_success;
}

static void *matmul_prepare(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                            int64_t *workspace_bytes) {
    dnnl_memory_desc_t description[MTF_TERMS];
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    if (!suits(plan, types[MTF_LEFT]) || !mtf_onednn_open(&engine, &stream))
        return NULL;
    OneDnn *p = g_new0(OneDnn, 1);
    p->stream = stream;
    dnnl_primitive_desc_t found =
        describe_all(p, plan, types, description) ? find_primitive(description) : NULL;
    bool made = found != NULL && create(p, engine, found, description, workspace_bytes);
    if (found != NULL)
        dnnl_primitive_desc_destroy(found);
    if (made)
        return p;
    matmul_release(p);
    return NULL;
}

/* One call runs it all, without a pause. */
static void matmul_run(const void *prepared, void *const data[MTF_TERMS], void *workspace,
                       const MtfProgressHook *progress) {
    (void)progress;
    const OneDnn *p = prepared;
    dnnl_memory_set_data_handle(p->memory[MTF_LEFT], data[p->turned ? MTF_RIGHT : MTF_LEFT]);
    dnnl_memory_set_data_handle(p->memory[MTF_RIGHT], data[p->turned ? MTF_LEFT : MTF_RIGHT]);
    dnnl_memory_set_data_handle(p->memory[MTF_RESULT], data[MTF_RESULT]);
    dnnl_memory_set_data_handle(p->scratch, workspace);
    const dnnl_exec_arg_t arguments[] = { { DNNL_ARG_SRC, p->memory[MTF_LEFT] },
                                          { DNNL_ARG_WEIGHTS, p->memory[MTF_RIGHT] },
                                          { DNNL_ARG_DST, p->memory[MTF_RESULT] },
                                          { DNNL_ARG_SCRATCHPAD, p->scratch } };
    dnnl_primitive_execute(p->primitive, p->stream, 4, arguments);
    dnnl_stream_wait(p->stream);
}

const MtfProductsWay mtf_products_matmul = { "matmul", matmul_prepare, matmul_run, matmul_release };

static int stretch_of(const MtfGemm *g) {
    if (g->a_turned)
        return g->n > WIDE_RESULT ? WIDE_STRETCH : STRETCH;
    if (g->m <= FEW_ROWS)
        return g->b_turned ? g->k : STRETCH;
    return LONG_STRETCH;
}

static void multiply_columns(const MtfGemm *g, int64_t column, int64_t columns) {
    int stretch = stretch_of(g);
    int64_t a_step = g->a_turned ? g->lda : 1, b_step = g->b_turned ? 1 : g->ldb;
    const float *b = g->b + column * (g->b_turned ? g->ldb : 1);
    for (int64_t at = 0; at < g->k; at += stretch) {
        dnnl_sgemm(g->a_turned ? 'T' : 'N', g->b_turned ? 'T' : 'N', g->m, columns,
                   MIN(stretch, g->k - at), 1, g->a + at * a_step, g->lda, b + at * b_step, g->ldb,
                   at > 0 || g->adds ? 1 : 0, g->c + column, g->ldc);
        mtf_progress_hook_run(g->progress);
    }
}

void mtf_onednn_gemm(const MtfGemm *g) {
    for (int64_t column = 0; column < g->n; column += COLUMNS_AT_A_TIME)
        multiply_columns(g, column, MIN(COLUMNS_AT_A_TIME, g->n - column));
}
