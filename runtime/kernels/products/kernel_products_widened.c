// SPDX-License-Identifier: GPL-3.0-or-later
/* Products of bfloat16 by float32's: panels of both terms are widened and multiplied by OpenBLAS or
 * by oneDNN's sgemm, and the panel of the result is rounded once:
 *
 *     for columns of the result       the right term's panel is widened once,
 *       for rows of the result        the left one once a panel of columns
 *
 * so that an element is widened once for hundreds of rows or columns that it is multiplied with. */
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/products/kernel_product.h"
#include "runtime/kernels/products/kernel_products.h"

/* Rows of a panel, summed elements, and elements of the right panel: long sums save the library's
 * packing and unpacking, many columns the widening of the left term, and what is widened may leave
 * the second cache. Of few rows each widened element is multiplied a few times only: there panels
 * stay in that cache. */
#define ROWS 1024
#define LONGEST_SUM 4096
#define RIGHT_PANEL (3 << 20)
#define FEW_ROWS 64
#define NEAR_PANEL 256

typedef struct {
    MtfContraction plan; /* whose result lies row by row */
    int left, right;     /* the terms' places among the data */
    bool narrow_result;
    MtfGemmRoutine gemm;
    int64_t rows, columns, sums; /* of a panel */
} Widened;

/* Workspace: the left panel, the right one, the result's. */
typedef struct {
    float *left, *right, *result;
} Panels;

/* A term's panel as rows by columns: which of the two are its lines in memory, how long and how far
 * apart they are. */
typedef struct {
    int64_t lines, length, apart;
    bool turned; /* lines are columns */
} Panel;

/* c = a b whose c lies column by column is c' = b' a'. */
static void turn(Widened *w) {
    MtfContraction *plan = &w->plan;
    MtfContractionLoop *loops[] = { &plan->m, &plan->n, &plan->k };
    MtfContractionLoop rows = plan->m;
    w->left = MTF_RIGHT;
    w->right = MTF_LEFT;
    plan->m = plan->n;
    plan->n = rows;
    for (int i = 0; i < 3 + plan->n_outer; i++) {
        MtfContractionLoop *loop = i < 3 ? loops[i] : &plan->outer[i - 3];
        int64_t left = loop->stride[MTF_LEFT];
        loop->stride[MTF_LEFT] = loop->stride[MTF_RIGHT];
        loop->stride[MTF_RIGHT] = left;
    }
}

/* The size of parts of `size` that are as even as vectors allow, of at most `most` each. */
static int64_t even_part(int64_t size, int64_t most) {
    int64_t parts = (size + most - 1) / most;
    return MIN(((size + parts - 1) / parts + 15) & ~INT64_C(15), size);
}

static Widened *widen_by(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                         MtfGemmRoutine gemm, int64_t *workspace_bytes) {
    if (types[MTF_LEFT] != MTF_BF16)
        return NULL;
    Widened *w = g_new(Widened, 1);
    *w = (Widened){ .plan = *plan,
                    .left = MTF_LEFT,
                    .right = MTF_RIGHT,
                    .narrow_result = types[MTF_RESULT] == MTF_BF16,
                    .gemm = gemm };
    if (plan->n.size > 1 ? plan->n.stride[MTF_RESULT] != 1 : plan->m.stride[MTF_RESULT] == 1)
        turn(w);
    bool few = w->plan.m.size <= FEW_ROWS;
    w->rows = even_part(w->plan.m.size, ROWS);
    w->sums = even_part(w->plan.k.size, few ? NEAR_PANEL : LONGEST_SUM);
    w->columns =
        even_part(w->plan.n.size, few ? NEAR_PANEL : RIGHT_PANEL / MAX(w->sums, NEAR_PANEL));
    int64_t floats = w->rows * w->sums + w->sums * w->columns + w->rows * w->columns;
    *workspace_bytes = floats * (int64_t)sizeof(float);
    return w;
}

static void *prepare_for_openblas(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                                  int64_t *workspace_bytes) {
    return widen_by(plan, types, mtf_openblas_gemm, workspace_bytes);
}

static void *prepare_for_sgemm(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                               int64_t *workspace_bytes) {
    return widen_by(plan, types, mtf_onednn_gemm, workspace_bytes);
}

/* Rows by columns of a term, whose lines are what is contiguous. */
static Panel panel_of(int term, const MtfContractionLoop *row_loop,
                      const MtfContractionLoop *column_loop, int64_t rows, int64_t columns) {
    bool turned =
        column_loop->size > 1 ? column_loop->stride[term] != 1 : row_loop->stride[term] == 1;
    return turned ? (Panel){ columns, rows, column_loop->stride[term], true }
                  : (Panel){ rows, columns, row_loop->stride[term], false };
}

/* A single column's elements may stand apart: then rows are lines of one element. */
static void widen_panel(float *out, const void *data, int64_t offset, const Panel *panel) {
    const uint16_t *in = (const uint16_t *)data + offset;
    for (int64_t i = 0; i < panel->lines; i++)
        mtf_bf16_widen(out + i * panel->length, in + i * panel->apart, panel->length, 1);
}

/* Rows of the result are contiguous unless it has a single column. */
static void store_panel(const Widened *w, void *result, int64_t offset, const float *panel,
                        int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = offset + i * w->plan.m.stride[MTF_RESULT];
        if (w->narrow_result)
            mtf_bf16_round((uint16_t *)result + at, panel + i * columns, columns);
        else
            memcpy((float *)result + at, panel + i * columns, (size_t)columns * sizeof(float));
    }
}

/* One panel of rows, times the right panel that is widened already. */
static void multiply_panel(const Widened *w, const Panels *panels, const Panel *left,
                           const Panel *right, bool adds, const MtfProgressHook *progress) {
    int64_t rows = left->turned ? left->length : left->lines;
    int64_t sums = left->turned ? left->lines : left->length;
    int64_t columns = right->turned ? right->lines : right->length;
    w->gemm(&(MtfGemm){ .a_turned = left->turned,
                        .b_turned = right->turned,
                        .adds = adds,
                        .m = (int)rows,
                        .n = (int)columns,
                        .k = (int)sums,
                        .a = panels->left,
                        .b = panels->right,
                        .c = panels->result,
                        .lda = (int)left->length,
                        .ldb = (int)right->length,
                        .ldc = (int)columns,
                        .progress = progress });
}

/* All rows of the columns from `column` on. The right panel of sums that fit at once serves all. */
static void multiply_columns(const Widened *w, void *const data[MTF_TERMS],
                             const int64_t offset[MTF_TERMS], const Panels *panels, int64_t column,
                             const MtfProgressHook *progress) {
    const MtfContractionLoop *m = &w->plan.m, *n = &w->plan.n, *k = &w->plan.k;
    int64_t columns = MIN(w->columns, n->size - column);
    int64_t right_at = offset[MTF_RIGHT] + column * n->stride[MTF_RIGHT];
    for (int64_t row = 0; row < m->size; row += w->rows) {
        int64_t rows = MIN(w->rows, m->size - row);
        int64_t left_at = offset[MTF_LEFT] + row * m->stride[MTF_LEFT];
        for (int64_t at = 0; at < k->size; at += w->sums) {
            int64_t sums = MIN(w->sums, k->size - at);
            Panel left = panel_of(MTF_LEFT, m, k, rows, sums);
            Panel right = panel_of(MTF_RIGHT, k, n, sums, columns);
            if (row == 0 || w->sums < k->size)
                widen_panel(panels->right, data[w->right], right_at + at * k->stride[MTF_RIGHT],
                            &right);
            widen_panel(panels->left, data[w->left], left_at + at * k->stride[MTF_LEFT], &left);
            multiply_panel(w, panels, &left, &right, at > 0, progress);
            mtf_progress_hook_run(progress);
        }
        store_panel(w, data[MTF_RESULT],
                    offset[MTF_RESULT] + row * m->stride[MTF_RESULT] +
                        column * n->stride[MTF_RESULT],
                    panels->result, rows, columns);
    }
}

static void widened_run(const void *prepared, void *const data[MTF_TERMS], void *workspace,
                        const MtfProgressHook *progress) {
    const Widened *w = prepared;
    Panels panels = { .left = workspace };
    panels.right = panels.left + w->rows * w->sums;
    panels.result = panels.right + w->sums * w->columns;
    int64_t index[MTF_MAX_INDEXES] = { 0 }, offset[MTF_TERMS] = { 0 };
    do
        for (int64_t column = 0; column < w->plan.n.size; column += w->columns)
            multiply_columns(w, data, offset, &panels, column, progress);
    while (mtf_products_next(&w->plan, index, offset));
}

const MtfProductsWay mtf_products_widened = { "widened", prepare_for_openblas, widened_run,
                                              g_free };
const MtfProductsWay mtf_products_widened_sgemm = { "widened-sgemm", prepare_for_sgemm, widened_run,
                                                    g_free };
