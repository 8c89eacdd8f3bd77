// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/kernel_product.h"

#include "runtime/kernels/base/kernel_nest.h"

#include <cblas.h>

/* A matrix where one stride is 1, or with a single row or column. */
typedef struct {
    void *data;
    int rows, columns;
    int row_stride, column_stride;
} Matrix;

typedef struct {
    int m, n, k;
    Matrix a, b, c; /* c[m, n] = a[m, k] b[k, n] */
    bool adds;
} Product;

static Matrix matrix_of(const MtfOperand *operand, int64_t offset, const MtfContractionLoop *rows,
                        const MtfContractionLoop *columns, int term) {
    return (Matrix){ mtf_operand_at(operand, offset), (int)rows->size, (int)columns->size,
                     (int)rows->stride[term], (int)columns->stride[term] };
}

static Matrix transposed(const Matrix *matrix) {
    return (Matrix){ matrix->data, matrix->columns, matrix->rows, matrix->column_stride,
                     matrix->row_stride };
}

static bool is_row_major(const Matrix *matrix) {
    return matrix->columns == 1 || matrix->column_stride == 1;
}

static CBLAS_TRANSPOSE flag(const Matrix *matrix) {
    return is_row_major(matrix) ? CblasNoTrans : CblasTrans;
}

/* The stride between lines, which BLAS wants to be at least a line's length even of a single one.
 */
static int leading(const Matrix *matrix) {
    return is_row_major(matrix) ? MAX(matrix->row_stride, matrix->columns)
                                : MAX(matrix->column_stride, matrix->rows);
}

/* c = a b is c' = b' a'. */
static Product turned(const Product *p) {
    return (Product){ p->n,   p->m, p->k, transposed(&p->b), transposed(&p->a), transposed(&p->c),
                      p->adds };
}

static void gemm_f64(const Product *p) {
    cblas_dgemm(CblasRowMajor, flag(&p->a), flag(&p->b), p->m, p->n, p->k, 1, p->a.data,
                leading(&p->a), p->b.data, leading(&p->b), p->adds ? 1 : 0, p->c.data,
                leading(&p->c));
}

void mtf_openblas_wide_gemm(const MtfWideGemm *g) {
    cblas_dgemm(CblasRowMajor, g->a_turned ? CblasTrans : CblasNoTrans,
                g->b_turned ? CblasTrans : CblasNoTrans, g->m, g->n, g->k, 1, g->a, g->lda, g->b,
                g->ldb, g->adds ? 1 : 0, g->c, g->ldc);
}

#define DEFINE_PRODUCT(T, name, gemv, dot)                                                     \
    /* One column: c = a b. */                                                                 \
    static void gemv_##name(const Product *p) {                                                \
        bool rows = is_row_major(&p->a);                                                       \
        gemv(CblasRowMajor, flag(&p->a), rows ? p->m : p->k, rows ? p->k : p->m, 1, p->a.data, \
             leading(&p->a), p->b.data, MAX(p->b.row_stride, 1), p->adds ? 1 : 0, p->c.data,   \
             p->c.row_stride);                                                                 \
    }                                                                                          \
    static void dot_##name(const Product *p) {                                                 \
        T value = dot(p->k, p->a.data, p->a.column_stride, p->b.data, p->b.row_stride);        \
        *(T *)p->c.data = p->adds ? *(T *)p->c.data + value : value;                           \
    }

DEFINE_PRODUCT(float, f32, cblas_sgemv, cblas_sdot)
DEFINE_PRODUCT(double, f64, cblas_dgemv, cblas_ddot)

static MtfGemm gemm_of(const Product *p, const MtfProgressHook *progress) {
    return (MtfGemm){ .a_turned = !is_row_major(&p->a),
                      .b_turned = !is_row_major(&p->b),
                      .adds = p->adds,
                      .m = p->m,
                      .n = p->n,
                      .k = p->k,
                      .a = p->a.data,
                      .b = p->b.data,
                      .c = p->c.data,
                      .lda = leading(&p->a),
                      .ldb = leading(&p->b),
                      .ldc = leading(&p->c),
                      .progress = progress };
}

/* A single row: c' = b' a'. */
static void multiply_row(const MtfGemm *g) {
    cblas_sgemv(CblasRowMajor, g->b_turned ? CblasNoTrans : CblasTrans, g->b_turned ? g->n : g->k,
                g->b_turned ? g->k : g->n, 1, g->b, g->ldb, g->a, g->a_turned ? g->lda : 1,
                g->adds ? 1 : 0, g->c, 1);
}

void mtf_openblas_gemm(const MtfGemm *g) {
    if (g->m == 1) {
        multiply_row(g);
        return;
    }
    cblas_sgemm(CblasRowMajor, g->a_turned ? CblasTrans : CblasNoTrans,
                g->b_turned ? CblasTrans : CblasNoTrans, g->m, g->n, g->k, 1, g->a, g->lda, g->b,
                g->ldb, g->adds ? 1 : 0, g->c, g->ldc);
}

static void run(const Product *p, bool is_double, MtfGemmRoutine gemm,
                const MtfProgressHook *progress) {
    MtfGemm given = gemm_of(p, progress);
    if (p->m == 1 && p->n == 1)
        (is_double ? dot_f64 : dot_f32)(p);
    else if (p->n == 1)
        (is_double ? gemv_f64 : gemv_f32)(p);
    else if (is_double)
        gemm_f64(p);
    else
        gemm(&given);
}

void mtf_product(const MtfContraction *plan, const MtfOperand operands[MTF_TERMS],
                 const int64_t offset[MTF_TERMS], bool adds, MtfGemmRoutine gemm,
                 const MtfProgressHook *progress) {
    Product p = {
        .m = (int)plan->m.size,
        .n = (int)plan->n.size,
        .k = (int)plan->k.size,
        .a = matrix_of(&operands[MTF_LEFT], offset[MTF_LEFT], &plan->m, &plan->k, MTF_LEFT),
        .b = matrix_of(&operands[MTF_RIGHT], offset[MTF_RIGHT], &plan->k, &plan->n, MTF_RIGHT),
        .c = matrix_of(&operands[MTF_RESULT], offset[MTF_RESULT], &plan->m, &plan->n, MTF_RESULT),
        .adds = adds
    };
    Product other = turned(&p);
    bool turns = (p.m == 1 && p.n > 1) || (p.n > 1 && !is_row_major(&p.c));
    run(turns ? &other : &p, operands[MTF_RESULT].dtype == MTF_F64, gemm, progress);
}
