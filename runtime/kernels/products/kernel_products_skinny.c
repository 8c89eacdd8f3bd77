// SPDX-License-Identifier: GPL-3.0-or-later
/* Products of a few rows with a large matrix, as where text is generated: the matrix is read once, as
 * it lies, and never copied; its bfloat16 are widened in registers. What is multiplied so is bound by
 * memory, so the time goes with the bytes of the matrix.
 *
 *     result row by row     eight lines of the matrix at a time     y[m][] += x[m][k] w[k][]
 *     column by column      four of its lines at a time             y[m][n] = x[m] . w[n]
 *
 * Sums run in an order that the shape alone decides. */
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/products/kernel_products.h"

#include <string.h>

#define LEAST_ELEMENTS (1 << 15) /* of the matrix: smaller ones lie in caches and are others' */
#define WIDTH 16
#define LINES 8      /* of a matrix whose lines are added */
#define DOT_LINES 4  /* … are multiplied with the rows */
#define DOT_ROWS 4   /* at a time */
#define COLUMNS 4096 /* of the result that stay near */

typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t Narrow __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint32_t Bits __attribute__((vector_size(64)));

typedef struct {
    int rows, matrix;           /* the terms' places among the data */
    MtfContractionLoop m, n, k; /* with few rows: `rows` has m and k, the matrix k and n */
    bool narrow, narrow_result, dots;
} Skinny;

/* ---- Loops over the matrix --------------------------------------------------------------------- */

/* x is m rows of k, y m rows of n, all contiguous; lines of the matrix are `apart` elements apart. */
typedef struct {
    const float *x;
    const void *w;
    float *y;
    int64_t m, n, k, apart;
} Piece;

#define LOAD_F32(p) (*(const Vector *)(p))
#define ONE_F32(p) (*(p))
#define LOAD_BF16(p) ((Vector)(__builtin_convertvector(*(const Narrow *)(p), Bits) << 16))
#define ONE_BF16(p) mtf_bf16_wide(*(p))

/* y[][from …] += x w of `lines` lines of the matrix from line `k` on. */
#define DEFINE_ADD(NAME, T, LOAD, ONE)                                                         \
    MTF_EACH_VECTOR_UNIT static void add_lines_##NAME(const Piece *p, int64_t k, int64_t from, \
                                                      int64_t to) {                            \
        const T *w = (const T *)p->w + k * p->apart;                                           \
        int64_t j = from;                                                                      \
        for (; j + WIDTH <= to; j += WIDTH) {                                                  \
            Vector line[LINES];                                                                \
            for (int i = 0; i < LINES; i++)                                                    \
                line[i] = LOAD(w + i * p->apart + j);                                          \
            for (int64_t r = 0; r < p->m; r++) {                                               \
                const float *x = p->x + r * p->k + k;                                          \
                Vector sum = *(Vector *)(p->y + r * p->n + j);                                 \
                for (int i = 0; i < LINES; i++)                                                \
                    sum += x[i] * line[i];                                                     \
                *(Vector *)(p->y + r * p->n + j) = sum;                                        \
            }                                                                                  \
        }                                                                                      \
        for (; j < to; j++)                                                                    \
            for (int64_t r = 0; r < p->m; r++)                                                 \
                for (int i = 0; i < LINES; i++)                                                \
                    p->y[r * p->n + j] += p->x[r * p->k + k + i] * ONE(w + i * p->apart + j);  \
    }                                                                                          \
    MTF_EACH_VECTOR_UNIT static void add_line_##NAME(const Piece *p, int64_t k, int64_t from,  \
                                                     int64_t to) {                             \
        const T *w = (const T *)p->w + k * p->apart;                                           \
        for (int64_t r = 0; r < p->m; r++)                                                     \
            for (int64_t j = from; j < to; j++)                                                \
                p->y[r * p->n + j] += p->x[r * p->k + k] * ONE(w + j);                         \
    }                                                                                          \
    static void add_all_##NAME(const Piece *p, const MtfProgressHook *progress) {              \
        memset(p->y, 0, (size_t)(p->m * p->n) * sizeof *p->y);                                 \
        for (int64_t from = 0; from < p->n; from += COLUMNS) {                                 \
            int64_t k = 0, to = MIN(p->n, from + COLUMNS);                                     \
            for (; k + LINES <= p->k; k += LINES)                                              \
                add_lines_##NAME(p, k, from, to);                                              \
            for (; k < p->k; k++)                                                              \
                add_line_##NAME(p, k, from, to);                                               \
            mtf_progress_hook_run(progress);                                                   \
        }                                                                                      \
    }

DEFINE_ADD(f32, float, LOAD_F32, ONE_F32)
DEFINE_ADD(bf16, uint16_t, LOAD_BF16, ONE_BF16)

MTF_INLINE float lanes_sum(const Vector *v) {
    float lane[WIDTH];
    memcpy(lane, v, sizeof lane);
    for (int width = WIDTH / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

/* y[r …][n …] of ROWS rows and four lines. */
#define DEFINE_DOTS(NAME, T, LOAD, ONE, ROWS)                                                     \
    MTF_EACH_VECTOR_UNIT static void dots_##NAME##_##ROWS(const Piece *p, int64_t r, int64_t n) { \
        const T *w = (const T *)p->w + n * p->apart;                                              \
        const float *x = p->x + r * p->k;                                                         \
        Vector sum[ROWS][DOT_LINES] = { 0 };                                                      \
        float rest[ROWS][DOT_LINES] = { 0 };                                                      \
        int64_t k = 0;                                                                            \
        for (; k + WIDTH <= p->k; k += WIDTH)                                                     \
            for (int i = 0; i < DOT_LINES; i++) {                                                 \
                Vector line = LOAD(w + i * p->apart + k);                                         \
                for (int q = 0; q < ROWS; q++)                                                    \
                    sum[q][i] += line * *(const Vector *)(x + q * p->k + k);                      \
            }                                                                                     \
        for (; k < p->k; k++)                                                                     \
            for (int i = 0; i < DOT_LINES; i++)                                                   \
                for (int q = 0; q < ROWS; q++)                                                    \
                    rest[q][i] += ONE(w + i * p->apart + k) * x[q * p->k + k];                    \
        for (int q = 0; q < ROWS; q++)                                                            \
            for (int i = 0; i < DOT_LINES; i++)                                                   \
                p->y[(r + q) * p->n + n + i] = lanes_sum(&sum[q][i]) + rest[q][i];                \
    }

DEFINE_DOTS(f32, float, LOAD_F32, ONE_F32, 1)
DEFINE_DOTS(f32, float, LOAD_F32, ONE_F32, 4)
DEFINE_DOTS(bf16, uint16_t, LOAD_BF16, ONE_BF16, 1)
DEFINE_DOTS(bf16, uint16_t, LOAD_BF16, ONE_BF16, 4)

/* The last lines, one by one. */
#define DEFINE_DOT(NAME, T, ONE)                                                  \
    static void dot_##NAME(const Piece *p, int64_t n) {                           \
        const T *w = (const T *)p->w + n * p->apart;                              \
        for (int64_t r = 0; r < p->m; r++) {                                      \
            float sum = 0;                                                        \
            for (int64_t k = 0; k < p->k; k++)                                    \
                sum += ONE(w + k) * p->x[r * p->k + k];                           \
            p->y[r * p->n + n] = sum;                                             \
        }                                                                         \
    }                                                                             \
    static void dot_all_##NAME(const Piece *p, const MtfProgressHook *progress) { \
        int64_t n = 0;                                                            \
        for (; n + DOT_LINES <= p->n; n += DOT_LINES) {                           \
            int64_t r = 0;                                                        \
            for (; r + DOT_ROWS <= p->m; r += DOT_ROWS)                           \
                dots_##NAME##_4(p, r, n);                                         \
            for (; r < p->m; r++)                                                 \
                dots_##NAME##_1(p, r, n);                                         \
            if (n % COLUMNS == 0)                                                 \
                mtf_progress_hook_run(progress);                                  \
        }                                                                         \
        for (; n < p->n; n++)                                                     \
            dot_##NAME(p, n);                                                     \
    }

DEFINE_DOT(f32, float, ONE_F32)
DEFINE_DOT(bf16, uint16_t, ONE_BF16)

/* ---- A plan's product --------------------------------------------------------------------------- */

static void turn_loop(MtfContractionLoop *loop) {
    int64_t left = loop->stride[MTF_LEFT];
    loop->stride[MTF_LEFT] = loop->stride[MTF_RIGHT];
    loop->stride[MTF_RIGHT] = left;
}

static void *skinny_prepare(const MtfContraction *plan, const MtfDtype types[MTF_TERMS],
                            int64_t *workspace_bytes) {
    Skinny s = { .rows = MTF_LEFT, .matrix = MTF_RIGHT, .m = plan->m, .n = plan->n, .k = plan->k };
    if (s.m.size > s.n.size) {
        s = (Skinny){
            .rows = MTF_RIGHT, .matrix = MTF_LEFT, .m = plan->n, .n = plan->m, .k = plan->k
        };
        turn_loop(&s.m);
        turn_loop(&s.n);
        turn_loop(&s.k);
    }
    s.narrow = types[MTF_LEFT] == MTF_BF16;
    s.narrow_result = types[MTF_RESULT] == MTF_BF16;
    s.dots = s.k.stride[MTF_RIGHT] == 1;
    bool lies_well = s.dots || s.n.stride[MTF_RIGHT] == 1;
    bool applies = types[MTF_LEFT] == MTF_F32 || s.narrow;
    if (!applies || plan->n_outer > 0 || s.m.size > MTF_SKINNY_ROWS || !lies_well ||
        s.n.size < WIDTH || s.k.size < WIDTH || s.n.size * s.k.size < LEAST_ELEMENTS)
        return NULL;
    *workspace_bytes = (s.m.size * (s.k.size + s.n.size)) * (int64_t)sizeof(float);
    return g_memdup2(&s, sizeof s);
}

static void load_rows(const Skinny *s, const void *data, float *x) {
    for (int64_t r = 0; r < s->m.size; r++)
        for (int64_t k = 0; k < s->k.size; k++) {
            int64_t at = r * s->m.stride[MTF_LEFT] + k * s->k.stride[MTF_LEFT];
            x[r * s->k.size + k] =
                s->narrow ? mtf_bf16_wide(((const uint16_t *)data)[at]) : ((const float *)data)[at];
        }
}

static void store_result(const Skinny *s, const float *y, void *data) {
    for (int64_t r = 0; r < s->m.size; r++)
        for (int64_t n = 0; n < s->n.size; n++) {
            int64_t at = r * s->m.stride[MTF_RESULT] + n * s->n.stride[MTF_RESULT];
            float value = y[r * s->n.size + n];
            if (s->narrow_result)
                ((uint16_t *)data)[at] = mtf_bf16_rounded(value);
            else
                ((float *)data)[at] = value;
        }
}

static void skinny_run(const void *prepared, void *const data[MTF_TERMS], void *workspace,
                       const MtfProgressHook *progress) {
    const Skinny *s = prepared;
    float *x = workspace, *y = x + s->m.size * s->k.size;
    Piece piece = { .x = x,
                    .w = data[s->matrix],
                    .y = y,
                    .m = s->m.size,
                    .n = s->n.size,
                    .k = s->k.size,
                    .apart = s->dots ? s->n.stride[MTF_RIGHT] : s->k.stride[MTF_RIGHT] };
    load_rows(s, data[s->rows], x);
    if (s->dots)
        (s->narrow ? dot_all_bf16 : dot_all_f32)(&piece, progress);
    else
        (s->narrow ? add_all_bf16 : add_all_f32)(&piece, progress);
    store_result(s, y, data[MTF_RESULT]);
}

const MtfProductsWay mtf_products_skinny = { "skinny", skinny_prepare, skinny_run, g_free };
