// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/products/kernel_products.h"

#include <cblas.h>
#include <stdlib.h>

/* Rows, columns and summed elements of a panel: three of them fit the second cache. */
#define PANEL 384

/* Where a term's panel lies and how its lines run: `lines` of `length` elements each, `apart`
 * elements from one to the next. */
typedef struct {
    int64_t lines, length, apart;
    bool turned; /* lines are columns */
} Panel;

typedef struct {
    MtfContraction plan;
    bool narrow_result;
    int64_t rows, columns, sums; /* of a panel */
} Widened;

/* Workspace: the left panel, the right one, the result's. */
typedef struct {
    float *left, *right, *result;
} Panels;

static void *widened_prepare(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                             int64_t *workspace_bytes) {
    if (types[MTF_LEFT] != MTF_BF16)
        return NULL;
    Widened *widened = g_new(Widened, 1);
    *widened = (Widened){ .plan = *plan,
                          .narrow_result = types[MTF_RESULT] == MTF_BF16,
                          .rows = MIN(plan->m.size, PANEL),
                          .columns = MIN(plan->n.size, PANEL),
                          .sums = MIN(plan->k.size, PANEL) };
    int64_t floats = widened->rows * widened->sums + widened->sums * widened->columns +
                     widened->rows * widened->columns;
    *workspace_bytes = floats * (int64_t)sizeof(float);
    return widened;
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
static void widen_panel(float *out, const uint16_t *in, const Panel *panel) {
    for (int64_t i = 0; i < panel->lines; i++)
        mtf_bf16_widen(out + i * panel->length, in + i * panel->apart, panel->length, 1);
}

static void store_panel(const Widened *w, void *result, int64_t offset, const Panels *panels,
                        int64_t rows, int64_t columns) {
    const MtfContraction *plan = &w->plan;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            int64_t at = offset + i * plan->m.stride[MTF_RESULT] + j * plan->n.stride[MTF_RESULT];
            float value = panels->result[i * columns + j];
            if (w->narrow_result)
                ((uint16_t *)result)[at] = mtf_bf16_rounded(value);
            else
                ((float *)result)[at] = value;
        }
}

static const uint16_t *element(const void *data, int64_t offset) {
    return (const uint16_t *)data + offset;
}

/* One panel of the result: rows from `row`, columns from `column`, summed over all of k. */
static void multiply_panel(const Widened *w, void *const data[MTF_TERMS],
                           const int64_t offset[MTF_TERMS], const Panels *panels, int64_t row,
                           int64_t column) {
    const MtfContractionLoop *m = &w->plan.m, *n = &w->plan.n, *k = &w->plan.k;
    int64_t rows = MIN(w->rows, m->size - row), columns = MIN(w->columns, n->size - column);
    for (int64_t at = 0; at < k->size; at += w->sums) {
        int64_t sums = MIN(w->sums, k->size - at);
        Panel left = panel_of(MTF_LEFT, m, k, rows, sums);
        Panel right = panel_of(MTF_RIGHT, k, n, sums, columns);
        widen_panel(panels->left,
                    element(data[MTF_LEFT], offset[MTF_LEFT] + row * m->stride[MTF_LEFT] +
                                                at * k->stride[MTF_LEFT]),
                    &left);
        widen_panel(panels->right,
                    element(data[MTF_RIGHT], offset[MTF_RIGHT] + at * k->stride[MTF_RIGHT] +
                                                 column * n->stride[MTF_RIGHT]),
                    &right);
        cblas_sgemm(CblasRowMajor, left.turned ? CblasTrans : CblasNoTrans,
                    right.turned ? CblasTrans : CblasNoTrans, (int)rows, (int)columns, (int)sums, 1,
                    panels->left, (int)left.length, panels->right, (int)right.length,
                    at > 0 ? 1 : 0, panels->result, (int)columns);
    }
    store_panel(w, data[MTF_RESULT],
                offset[MTF_RESULT] + row * m->stride[MTF_RESULT] + column * n->stride[MTF_RESULT],
                panels, rows, columns);
}

static void widened_run(const void *prepared, void *const data[MTF_TERMS], void *workspace,
                        const MtfProgressHook *progress) {
    const Widened *w = prepared;
    Panels panels = { .left = workspace };
    panels.right = panels.left + w->rows * w->sums;
    panels.result = panels.right + w->sums * w->columns;
    int64_t index[MTF_MAX_INDEXES] = { 0 }, offset[MTF_TERMS] = { 0 };
    do
        for (int64_t row = 0; row < w->plan.m.size; row += w->rows)
            for (int64_t column = 0; column < w->plan.n.size; column += w->columns) {
                multiply_panel(w, data, offset, &panels, row, column);
                mtf_progress_hook_run(progress);
            }
    while (mtf_products_next(&w->plan, index, offset));
}

const MtfProductsWay mtf_products_widened = { "widened", widened_prepare, widened_run, g_free };
