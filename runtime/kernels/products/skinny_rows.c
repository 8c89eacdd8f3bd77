// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/skinny_rows.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/products/skinny_pairs.h"

#include <string.h>

#define WIDTH 16
#define LINES 8      /* of a matrix whose lines are added */
#define DOT_LINES 4  /* … are multiplied with the rows */
#define DOT_ROWS 4   /* at a time */
#define COLUMNS 4096 /* of the result that stay near */

/* Lines behind are asked for early, but where one row takes wide ones: nothing is computed there that
 * the processor's own prefetching would wait for. */
#define ASKS_EARLY(T, rows) ((rows) > 1 || sizeof(T) < sizeof(float))

typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t Narrow __attribute__((vector_size(32), aligned(2), may_alias));
typedef int8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t Bits __attribute__((vector_size(64)));
typedef MtfSkinny Piece;

#define LOAD_F32(p) (*(const Vector *)(p))
#define ONE_F32(p) (*(p))
#define LOAD_BF16(p) ((Vector)(__builtin_convertvector(*(const Narrow *)(p), Bits) << 16))
#define ONE_BF16(p) mtf_bf16_wide(*(p))
#define LOAD_I8(p) __builtin_convertvector(*(const Bytes *)(p), Vector)
#define ONE_I8(p) ((float)*(p))

/* y[][from …] += x w of `lines` lines of the matrix from line `k` on. */
#define DEFINE_ADD(NAME, T, LOAD, ONE)                                                         \
    MTF_EACH_VECTOR_UNIT static void add_lines_##NAME(const Piece *p, int64_t k, int64_t from, \
                                                      int64_t to) {                            \
        const T *w = (const T *)p->w + k * p->apart;                                           \
        int64_t j = from;                                                                      \
        for (; j + WIDTH <= to; j += WIDTH) {                                                  \
            Vector line[LINES];                                                                \
            for (int i = 0; i < LINES; i++) {                                                  \
                if (ASKS_EARLY(T, p->m))                                                       \
                    __builtin_prefetch(w + (LINES + i) * p->apart + j);                        \
                line[i] = LOAD(w + i * p->apart + j);                                          \
            }                                                                                  \
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
DEFINE_ADD(i8, int8_t, LOAD_I8, ONE_I8)

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
                if (ASKS_EARLY(T, ROWS))                                                          \
                    __builtin_prefetch(w + (DOT_LINES + i) * p->apart + k);                       \
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
DEFINE_DOTS(f32, float, LOAD_F32, ONE_F32, 2)
DEFINE_DOTS(f32, float, LOAD_F32, ONE_F32, 4)
DEFINE_DOTS(bf16, uint16_t, LOAD_BF16, ONE_BF16, 1)
DEFINE_DOTS(bf16, uint16_t, LOAD_BF16, ONE_BF16, 2)
DEFINE_DOTS(bf16, uint16_t, LOAD_BF16, ONE_BF16, 4)
DEFINE_DOTS(i8, int8_t, LOAD_I8, ONE_I8, 1)
DEFINE_DOTS(i8, int8_t, LOAD_I8, ONE_I8, 2)
DEFINE_DOTS(i8, int8_t, LOAD_I8, ONE_I8, 4)

/* The last lines, one by one, added up in as many lanes as the others. */
#define DEFINE_DOT(NAME, T, LOAD, ONE)                                            \
    MTF_EACH_VECTOR_UNIT static void dot_##NAME(const Piece *p, int64_t n) {      \
        const T *w = (const T *)p->w + n * p->apart;                              \
        for (int64_t r = 0; r < p->m; r++) {                                      \
            const float *x = p->x + r * p->k;                                     \
            Vector sum = { 0 };                                                   \
            float rest = 0;                                                       \
            int64_t k = 0;                                                        \
            for (; k + WIDTH <= p->k; k += WIDTH)                                 \
                sum += LOAD(w + k) * *(const Vector *)(x + k);                    \
            for (; k < p->k; k++)                                                 \
                rest += ONE(w + k) * x[k];                                        \
            p->y[r * p->n + n] = lanes_sum(&sum) + rest;                          \
        }                                                                         \
    }                                                                             \
    static void dot_all_##NAME(const Piece *p, const MtfProgressHook *progress) { \
        int64_t n = 0;                                                            \
        for (; n + DOT_LINES <= p->n; n += DOT_LINES) {                           \
            int64_t r = 0;                                                        \
            for (; r + DOT_ROWS <= p->m; r += DOT_ROWS)                           \
                dots_##NAME##_4(p, r, n);                                         \
            for (; r + 2 <= p->m; r += 2)                                         \
                dots_##NAME##_2(p, r, n);                                         \
            for (; r < p->m; r++)                                                 \
                dots_##NAME##_1(p, r, n);                                         \
            if (n % COLUMNS == 0)                                                 \
                mtf_progress_hook_run(progress);                                  \
        }                                                                         \
        for (; n < p->n; n++)                                                     \
            dot_##NAME(p, n);                                                     \
    }

DEFINE_DOT(f32, float, LOAD_F32, ONE_F32)
DEFINE_DOT(bf16, uint16_t, LOAD_BF16, ONE_BF16)
DEFINE_DOT(i8, int8_t, LOAD_I8, ONE_I8)

void mtf_skinny_widened(const MtfSkinny *piece, MtfDtype dtype, const MtfProgressHook *progress) {
    bool dots = piece->dots;
    if (dtype == MTF_I8)
        (dots ? dot_all_i8 : add_all_i8)(piece, progress);
    else if (dtype == MTF_BF16)
        (dots ? dot_all_bf16 : add_all_bf16)(piece, progress);
    else
        (dots ? dot_all_f32 : add_all_f32)(piece, progress);
}

/* One row waits for memory either way. */
void mtf_skinny_rows(const MtfSkinny *piece, MtfDtype dtype, const MtfProgressHook *progress) {
    if (dtype == MTF_BF16 && piece->m > 1 && mtf_skinny_pairs_pay())
        mtf_skinny_pairs(piece, progress);
    else
        mtf_skinny_widened(piece, dtype, progress);
}
