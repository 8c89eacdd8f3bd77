// SPDX-License-Identifier: GPL-3.0-or-later
// kernels: every way of multiplying
/* Every way to run a plan's products against plain loops in double, on products of all storage
 * orders, larger than a panel and smaller than a vector. */
#include "tests/support/cmocka.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/products/kernel_products.h"
#include "runtime/kernels/products/skinny_rows.h"

#include <math.h>
#include <stdlib.h>

/* Terms are written as letters, one a dimension. */
typedef struct {
    const char *left, *right, *result;
    int64_t sizes[6]; /* of a, b, … */
    int outer;        /* loops outside the products that the plan is to have */
} Shape;

static const Shape shapes[] = {
    { "ab", "bc", "ac", { 5, 7, 3 }, 0 },
    { "ba", "bc", "ac", { 130, 67, 70 }, 0 },
    { "ab", "cb", "ca", { 400, 33, 390 }, 0 },
    { "ba", "cb", "ca", { 33, 800, 41 }, 0 },
    { "ab", "b", "a", { 300, 500 }, 0 },
    { "b", "bc", "c", { 1, 450, 300 }, 0 },
    { "ab", "ac", "bc", { 900, 40, 50 }, 0 },
    { "abcd", "aecd", "acbe", { 2, 40, 3, 16, 24 }, 2 },
    { "acbe", "aecd", "abcd", { 2, 40, 3, 16, 24 }, 2 },
    { "acbe", "abcd", "aecd", { 2, 40, 3, 16, 24 }, 2 },
    { "abc", "ca", "ab", { 6, 20, 30 }, 1 },
    { "ba", "bc", "ac", { 70, 300, 530 }, 0 },
    { "ba", "cb", "ac", { 110, 300, 130 }, 0 },
    { "ab", "bc", "ac", { 300, 200, 70 }, 0 },
    { "ab", "bc", "ac", { 50, 300, 90 }, 0 },
    { "ab", "cb", "ac", { 12, 30, 4200 }, 0 },
    { "ba", "bc", "ac", { 12, 30, 4200 }, 0 },
    { "ab", "cb", "ac", { 20, 1024, 70 }, 0 },
    { "ab", "cb", "ca", { 70, 1024, 20 }, 0 },
};

/* A few rows with a large matrix, of every way that it may lie. */
static const Shape few[] = {
    { "ab", "bc", "ac", { 1, 300, 203 }, 0 }, { "ab", "bc", "ac", { 7, 301, 4203 }, 0 },
    { "ab", "cb", "ac", { 5, 301, 203 }, 0 }, { "ab", "cb", "ca", { 8, 300, 150 }, 0 },
    { "ab", "bc", "ac", { 203, 300, 3 }, 0 }, { "ba", "bc", "ac", { 203, 300, 2 }, 0 },
    { "ab", "cb", "ac", { 6, 1041, 83 }, 0 }, { "ab", "cb", "ac", { 2, 1056, 45 }, 0 },
    { "ab", "bc", "ac", { 4, 1090, 39 }, 0 }, { "ab", "cb", "ac", { 4, 1024, 35 }, 0 },
};

static MtfTerm term_of(const Shape *shape, const char *letters) {
    MtfTerm term = { .rank = (int)strlen(letters) };
    for (int i = 0; i < term.rank; i++) {
        term.dims[i] = letters[i];
        term.size[i] = shape->sizes[letters[i] - 'a'];
    }
    return term;
}

static int64_t offset_of(const MtfTerm *term, const int64_t *index) {
    int64_t offset = 0;
    for (int i = 0; i < term->rank; i++)
        offset = offset * term->size[i] + index[term->dims[i] - 'a'];
    return offset;
}

static bool next_index(int64_t *index, const int64_t *sizes) {
    for (int i = 5; i >= 0; i--) {
        if (sizes[i] == 0)
            continue;
        if (++index[i] < sizes[i])
            return true;
        index[i] = 0;
    }
    return false;
}

static void store(void *data, MtfDtype dtype, int64_t i, double value) {
    if (dtype == MTF_BF16)
        ((uint16_t *)data)[i] = mtf_bf16_rounded((float)value);
    else if (dtype == MTF_F64)
        ((double *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

static double load(const void *data, MtfDtype dtype, int64_t i) {
    return dtype == MTF_BF16  ? (double)mtf_bf16_wide(((const uint16_t *)data)[i])
           : dtype == MTF_F64 ? ((const double *)data)[i]
                              : (double)((const float *)data)[i];
}

/* One shape in some types: terms, their plan, and what the result must be. */
typedef struct {
    MtfTerm terms[MTF_TERMS];
    MtfDtype types[MTF_TERMS];
    MtfContraction plan;
    void *data[MTF_TERMS];
    int64_t n; /* elements of the result */
    double *expected, *magnitude;
} Case;

static void fill(Case *c, const Shape *shape) {
    int64_t index[6] = { 0 };
    c->n = mtf_term_elements(&c->terms[MTF_RESULT]);
    c->expected = calloc((size_t)c->n, sizeof(double));
    c->magnitude = calloc((size_t)c->n, sizeof(double));
    for (int t = 0; t < MTF_TERMS; t++) {
        int64_t elements = mtf_term_elements(&c->terms[t]);
        c->data[t] = aligned_alloc(64, (size_t)(elements * 8 + 63) / 64 * 64);
        for (int64_t i = 0; i < elements; i++)
            store(c->data[t], c->types[t], i, t == MTF_RESULT ? NAN : sin((double)(7 * i + t)));
    }
    do {
        double left =
            load(c->data[MTF_LEFT], c->types[MTF_LEFT], offset_of(&c->terms[MTF_LEFT], index));
        double right =
            load(c->data[MTF_RIGHT], c->types[MTF_RIGHT], offset_of(&c->terms[MTF_RIGHT], index));
        int64_t at = offset_of(&c->terms[MTF_RESULT], index);
        c->expected[at] += left * right;
        c->magnitude[at] += fabs(left * right);
    } while (next_index(index, shape->sizes));
}

static void case_init(Case *c, const Shape *shape, MtfDtype type, MtfDtype result) {
    const char *const letters[] = { shape->left, shape->right, shape->result };
    MtfContractionMeans means = { .scratch_bytes = 0, .whole_sums = type == MTF_BF16 };
    for (int t = 0; t < MTF_TERMS; t++) {
        c->terms[t] = term_of(shape, letters[t]);
        c->types[t] = t == MTF_RESULT ? result : type;
        means.element_bytes[t] = mtf_dtype_bytes(c->types[t]);
    }
    mtf_contraction_plan(c->terms, &means, &c->plan);
    assert_int_equal(c->plan.n_outer, shape->outer);
    fill(c, shape);
}

static void case_clear(Case *c) {
    for (int t = 0; t < MTF_TERMS; t++)
        free(c->data[t]);
    free(c->expected);
    free(c->magnitude);
}

/* The result may be rounded once, and its sum by its type's precision. */
static bool is_right(const Case *c) {
    MtfDtype type = c->types[MTF_RESULT];
    double sum = type == MTF_F64 ? 1e-14 : 1e-6, rounding = type == MTF_BF16 ? ldexp(1, -8) : 0;
    for (int64_t i = 0; i < c->n; i++) {
        double found = load(c->data[MTF_RESULT], type, i);
        if (!(fabs(found - c->expected[i]) <=
              sum * c->magnitude[i] + rounding * fabs(c->expected[i])))
            return false;
    }
    return true;
}

/* How often products have paused. */
static int progress_calls;

static void count_pause(void *user) {
    (void)user;
    progress_calls++;
}

/* Returns whether the way applies. */
static bool run_way(const MtfProductsWay *way, const Shape *shape, MtfDtype type, MtfDtype result) {
    Case c;
    int64_t bytes = 0;
    case_init(&c, shape, type, result);
    void *prepared = way->prepare(&c.plan, c.types, &bytes);
    if (prepared != NULL) {
        void *workspace = aligned_alloc(4096, (size_t)(bytes + 4096) / 4096 * 4096);
        memset(workspace, 0xFF, (size_t)bytes);
        way->run(prepared, c.data, workspace, &(MtfProgressHook){ count_pause, NULL });
        way->release(prepared);
        free(workspace);
        if (!is_right(&c))
            fail_msg("%s: %s, %s -> %s in %s is wrong", way->name, shape->left, shape->right,
                     shape->result, mtf_dtype_name(type));
        store(c.data[MTF_RESULT], result, c.n - 1, c.expected[c.n - 1] + 1 + c.magnitude[c.n - 1]);
        assert_false(is_right(&c)); /* a wrong answer would be noticed */
    }
    case_clear(&c);
    return prepared != NULL;
}

TEST(single_products_of_float32_and_float64_are_right) {
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        assert_true(run_way(&mtf_products_openblas, &shapes[i], MTF_F32, MTF_F32));
        assert_true(run_way(&mtf_products_sgemm, &shapes[i], MTF_F32, MTF_F32));
        assert_false(run_way(&mtf_products_sgemm, &shapes[i], MTF_F64, MTF_F64));
        assert_true(run_way(&mtf_products_openblas, &shapes[i], MTF_F64, MTF_F64));
    }
}

TEST(widened_panels_multiply_bfloat16) {
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        assert_true(run_way(&mtf_products_widened, &shapes[i], MTF_BF16, MTF_BF16));
        assert_true(run_way(&mtf_products_widened, &shapes[i], MTF_BF16, MTF_F32));
        assert_true(run_way(&mtf_products_widened_sgemm, &shapes[i], MTF_BF16, MTF_BF16));
        assert_false(run_way(&mtf_products_widened, &shapes[i], MTF_F32, MTF_F32));
    }
}

TEST(a_few_rows_read_a_large_matrix_as_it_lies) {
    for (size_t i = 0; i < G_N_ELEMENTS(few); i++) {
        assert_true(run_way(&mtf_products_skinny, &few[i], MTF_F32, MTF_F32));
        assert_true(run_way(&mtf_products_skinny, &few[i], MTF_BF16, MTF_BF16));
        assert_true(run_way(&mtf_products_skinny, &few[i], MTF_BF16, MTF_F32));
        assert_false(run_way(&mtf_products_skinny, &few[i], MTF_F64, MTF_F64));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++)
        run_way(&mtf_products_skinny, &shapes[i], MTF_F32, MTF_F32);
}

/* Where the processor adds pairs of bfloat16, and where it does not: sums of the same, in another order. */
TEST(pairs_and_widened_rows_agree) {
    enum { M = 7, N = 77, K = 1131 };
    static float x[M * K], y[2][M * N];
    static uint16_t w[N * K];
    for (int i = 0; i < M * K; i++)
        x[i] = mtf_bf16_wide(mtf_bf16_rounded((float)sin(3.0 * i)));
    for (int i = 0; i < N * K; i++)
        w[i] = mtf_bf16_rounded((float)cos(5.0 * i));
    for (int dots = 0; dots < 2; dots++) {
        MtfSkinny piece = { x, w, y[0], M, N, K, dots ? K : N, dots };
        mtf_skinny_rows(&piece, MTF_BF16, NULL);
        piece.y = y[1];
        mtf_skinny_widened(&piece, MTF_BF16, NULL);
        for (int i = 0; i < M * N; i++)
            assert_true(fabsf(y[0][i] - y[1][i]) <= 1e-6F * K);
    }
}

/* Each of six products, and each panel of a large one. */
TEST(long_products_pause) {
    const Shape batch = { "abcd", "aecd", "acbe", { 2, 40, 3, 16, 24 }, 2 };
    const Shape large = { "ab", "bc", "ac", { 1100, 20, 900 }, 0 };
    progress_calls = 0;
    assert_true(run_way(&mtf_products_openblas, &batch, MTF_F32, MTF_F32));
    assert_in_range(progress_calls, 6, 30);
    progress_calls = 0;
    assert_true(run_way(&mtf_products_widened, &large, MTF_BF16, MTF_BF16));
    assert_in_range(progress_calls, 2, 100);
}

/* Those without loops that sum outside, of more than one row and column and enough work. */
TEST(onednn_takes_batches_in_one_call) {
    int taken[2] = { 0 };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++)
        taken[shapes[i].outer > 0] += run_way(&mtf_products_matmul, &shapes[i], MTF_F32, MTF_F32);
    assert_int_equal(taken[true], 3);
    assert_int_equal(taken[false], 12);
}

TEST(onednn_multiplies_bfloat16_where_the_processor_does) {
    int applied = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        applied += run_way(&mtf_products_matmul, &shapes[i], MTF_BF16, MTF_BF16);
        applied += run_way(&mtf_products_matmul, &shapes[i], MTF_BF16, MTF_F32);
    }
    if (applied == 0) {
        print_message("this processor has no products of bfloat16\n");
        skip();
    }
    assert_true(applied >= (int)G_N_ELEMENTS(shapes));
}
