// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/kernel_quantized.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/products/kernel_products.h"
#include "runtime/kernels/products/skinny_rows.h"

#include <string.h>

#define ROWS 512         /* of x at a time */
#define PANEL (1 << 18)  /* elements of the matrix at a time, or */
#define LEAST_COLUMNS 16 /* … this many columns */

typedef struct {
    int64_t begin, end;
} Span;

/* Where the elements of one side lie in a tensor, in the order of that side. */
typedef struct {
    int64_t n;
    int64_t *at;
} Places;

typedef struct {
    Places x_rows, x_sums;       /* in x: m rows, k summed, as the matrix has them */
    Places y_rows, y_columns;    /* in the result */
    int64_t rows, columns;       /* at a time */
    bool lines_are_columns, few; /* of the matrix; few rows */
} Quantized;

/* ---- Places ------------------------------------------------------------------------------------ */

static int find_dim(const MtfOperand *operand, int dim) {
    for (int i = 0; i < operand->rank; i++)
        if (operand->dims[i] == dim)
            return i;
    return -1;
}

static int64_t stride_of(const MtfOperand *operand, int dim) {
    int64_t stride = 1;
    for (int i = operand->rank - 1; i > find_dim(operand, dim); i--)
        stride *= operand->size[i];
    return stride;
}

/* The dimensions of `order` that `other` has or lacks, in that order: each multiplies the places that
 * are there, the last running fastest. */
static Places places_in(const MtfOperand *operand, const MtfOperand *order, const MtfOperand *other,
                        bool has) {
    Places places = { 1, g_new0(int64_t, 1) };
    for (int i = 0; i < order->rank; i++) {
        if ((find_dim(other, order->dims[i]) >= 0) != has)
            continue;
        int64_t size = order->size[i], stride = stride_of(operand, order->dims[i]);
        int64_t *at = g_new(int64_t, (gsize)MAX(1, places.n * size));
        for (int64_t p = 0; p < places.n * size; p++)
            at[p] = places.at[p / size] + p % size * stride;
        g_free(places.at);
        places = (Places){ places.n * size, at };
    }
    return places;
}

static void *quantized_prepare(const MtfKernelCall *call, int64_t *workspace_bytes) {
    const MtfOperand *x = &call->inputs[0], *w = &call->inputs[1], *y = &call->outputs[0];
    Quantized *q = g_new0(Quantized, 1);
    q->x_rows = places_in(x, x, w, false);
    q->y_rows = places_in(y, x, w, false);
    q->x_sums = places_in(x, w, x, true);
    q->y_columns = places_in(y, w, x, false);
    int64_t m = q->x_rows.n, n = q->y_columns.n, k = q->x_sums.n;
    q->lines_are_columns = find_dim(x, w->dims[w->rank - 1]) >= 0;
    q->few = m <= MTF_SKINNY_ROWS || n < LEAST_COLUMNS;
    q->rows = MIN(m, ROWS);
    q->columns = q->few ? n : MIN(n, MAX(LEAST_COLUMNS, PANEL / MAX(1, k) / 16 * 16));
    int64_t panel = q->few ? 0 : q->columns * k;
    *workspace_bytes = (q->rows * (k + q->columns) + panel) * (int64_t)sizeof(float);
    return q;
}

static void quantized_release(void *prepared) {
    Quantized *q = prepared;
    g_free(q->x_rows.at);
    g_free(q->x_sums.at);
    g_free(q->y_rows.at);
    g_free(q->y_columns.at);
    g_free(q);
}

/* ---- In float32 -------------------------------------------------------------------------------- */

static void load_rows(const Quantized *q, const MtfOperand *operand, Span rows, float *x) {
    const uint16_t *narrow = operand->data;
    const float *wide = operand->data;
    bool is_narrow = mtf_operand_is_narrow(operand);
    for (int64_t r = rows.begin; r < rows.end; r++)
        for (int64_t k = 0; k < q->x_sums.n; k++) {
            int64_t at = q->x_rows.at[r] + q->x_sums.at[k];
            *x++ = is_narrow ? mtf_bf16_wide(narrow[at]) : wide[at];
        }
}

/* Rows of `columns` sums in units of a scale, to their places. */
static void store_scaled(const Quantized *q, const MtfKernelCall *call, Span rows, Span columns,
                         const float *sums) {
    const MtfOperand *y = &call->outputs[0];
    const float *scale = call->inputs[2].data;
    bool is_narrow = mtf_operand_is_narrow(y);
    for (int64_t r = rows.begin; r < rows.end; r++)
        for (int64_t n = columns.begin; n < columns.end; n++) {
            int64_t at = q->y_rows.at[r] + q->y_columns.at[n];
            float value = scale[n] * *sums++;
            if (is_narrow)
                ((uint16_t *)y->data)[at] = mtf_bf16_rounded(value);
            else
                ((float *)y->data)[at] = value;
        }
}

/* Columns of the matrix in float32, as it has them line by line. */
static void widen_panel(const Quantized *q, const int8_t *w, Span columns, float *panel) {
    int64_t k = q->x_sums.n, n = q->y_columns.n, width = columns.end - columns.begin;
    int64_t lines = q->lines_are_columns ? width : k, length = q->lines_are_columns ? k : width;
    const int8_t *from = w + columns.begin * (q->lines_are_columns ? k : 1);
    int64_t apart = q->lines_are_columns ? k : n;
    for (int64_t line = 0; line < lines; line++, from += apart)
        for (int64_t i = 0; i < length; i++)
            *panel++ = from[i];
}

static void multiply_panel(const Quantized *q, const float *x, const float *panel, Span rows,
                           Span columns, float *y) {
    int n = (int)(columns.end - columns.begin), k = (int)q->x_sums.n;
    MtfGemm gemm = { .b_turned = q->lines_are_columns,
                     .m = (int)(rows.end - rows.begin),
                     .n = n,
                     .k = k,
                     .a = x,
                     .b = panel,
                     .c = y,
                     .lda = k,
                     .ldb = q->lines_are_columns ? k : n,
                     .ldc = n };
    mtf_onednn_gemm(&gemm);
}

static void run_few(const Quantized *q, const MtfKernelCall *call, Span rows, float *x, float *y) {
    int64_t k = q->x_sums.n, n = q->y_columns.n;
    MtfSkinny piece = { .x = x,
                        .w = call->inputs[1].data,
                        .y = y,
                        .m = rows.end - rows.begin,
                        .n = n,
                        .k = k,
                        .apart = q->lines_are_columns ? k : n,
                        .dots = q->lines_are_columns };
    mtf_skinny_rows(&piece, MTF_I8, call->progress);
    store_scaled(q, call, rows, (Span){ 0, n }, y);
}

static void run_panels(const Quantized *q, const MtfKernelCall *call, Span rows, float *x,
                       float *y) {
    float *panel = y + q->rows * q->columns;
    for (int64_t n = 0; n < q->y_columns.n; n += q->columns) {
        Span columns = { n, MIN(n + q->columns, q->y_columns.n) };
        mtf_progress_hook_run(call->progress);
        widen_panel(q, call->inputs[1].data, columns, panel);
        multiply_panel(q, x, panel, rows, columns, y);
        store_scaled(q, call, rows, columns, y);
    }
}

static void run_single(const Quantized *q, const MtfKernelCall *call) {
    float *x = call->workspace, *y = x + q->rows * q->x_sums.n;
    for (int64_t r = 0; r < q->x_rows.n; r += q->rows) {
        Span rows = { r, MIN(r + q->rows, q->x_rows.n) };
        load_rows(q, &call->inputs[0], rows, x);
        (q->few ? run_few : run_panels)(q, call, rows, x, y);
    }
}

/* ---- In float64 -------------------------------------------------------------------------------- */

static void run_double(const Quantized *q, const MtfKernelCall *call) {
    const double *x = call->inputs[0].data, *scale = call->inputs[2].data;
    const int8_t *w = call->inputs[1].data;
    double *y = call->outputs[0].data;
    int64_t k_apart = q->lines_are_columns ? 1 : q->y_columns.n;
    int64_t n_apart = q->lines_are_columns ? q->x_sums.n : 1;
    for (int64_t r = 0; r < q->x_rows.n; r++)
        for (int64_t n = 0; n < q->y_columns.n; n++) {
            double sum = 0;
            for (int64_t k = 0; k < q->x_sums.n; k++)
                sum += x[q->x_rows.at[r] + q->x_sums.at[k]] * w[k * k_apart + n * n_apart];
            y[q->y_rows.at[r] + q->y_columns.at[n]] = scale[n] * sum;
        }
}

static void quantized_einsum_kernel(const MtfKernelCall *call) {
    const Quantized *q = call->prepared;
    const MtfOperand *y = &call->outputs[0];
    int64_t elements = q->y_rows.n * q->y_columns.n;
    if (elements > 0 && q->x_sums.n == 0)
        memset(y->data, 0, (size_t)(elements * mtf_dtype_bytes(y->dtype)));
    else if (elements > 0 && y->dtype == MTF_F64)
        run_double(q, call);
    else if (elements > 0)
        run_single(q, call);
}

const MtfKernelRow mtf_quantized_kernels[] = {
    { .kind = MTF_OP_QUANTIZED_EINSUM,
      .kernel = quantized_einsum_kernel,
      .prepare = quantized_prepare,
      .release = quantized_release },
    { .kernel = NULL },
};
