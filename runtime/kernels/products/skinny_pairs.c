// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/skinny_pairs.h"

#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/products/kernel_products.h"

#include <string.h>

#if defined(__x86_64__)

#include <immintrin.h>

#define PAIRED __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define PAIRED_INLINE PAIRED MTF_INLINE

#define WIDTH 32     /* elements of bfloat16 in a register */
#define LINES 16     /* of a matrix whose lines are added, at a time */
#define COLUMNS 512  /* of the result that stay near meanwhile */
#define SUMS 16      /* rows x lines of a matrix whose lines are columns, at a time */
#define STRETCH 1024 /* of their lengths */

typedef MtfSkinny Piece;

bool mtf_skinny_pairs_pay(void) {
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_is("amd");
}

/* The first `n` of WIDTH or fewer. */
PAIRED_INLINE __mmask32 mask_of(int64_t n) {
    return n < WIDTH ? (1U << n) - 1 : UINT32_MAX;
}

/* Columns [k, k + size) of x in bfloat16, `apart` elements a row, which are filled up with zeros to a
 * multiple of 16. */
PAIRED static void narrow_rows(const Piece *p, int64_t k, int64_t size, int64_t apart,
                               uint16_t *rows) {
    for (int64_t r = 0; r < p->m; r++)
        for (int64_t i = 0; i < size; i += WIDTH / 2) {
            __mmask16 mask = (__mmask16)mask_of(size - i);
            __m512 wide = _mm512_maskz_loadu_ps(mask, p->x + r * p->k + k + i);
            __m256bh narrow = _mm512_cvtneps_pbh(wide);
            memcpy(rows + r * apart + i, &narrow, sizeof narrow);
        }
}

/* ---- Lines are rows: y[][j …] += x[][k …] w[k …][j …] ------------------------------------------- */

PAIRED_INLINE __m512i load_columns(const Piece *p, int64_t line, int64_t j, __mmask32 mask) {
    const uint16_t *w = (const uint16_t *)p->w + line * p->apart + j;
    return line < p->k ? _mm512_maskz_loadu_epi16(mask, w) : _mm512_setzero_si512();
}

/* Columns [j, j + 32) of the lines from k on, as pairs of two lines: 16 columns, and the other 16. */
PAIRED_INLINE void load_pairs(const Piece *p, int64_t k, int64_t j, __mmask32 mask,
                              __m512i pair[LINES]) {
    const __m512i first =
        _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                         37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(WIDTH / 2));
    for (int i = 0; i < LINES; i += 2) {
        __m512i even = load_columns(p, k + i, j, mask), odd = load_columns(p, k + i + 1, j, mask);
        pair[i] = _mm512_permutex2var_epi16(even, first, odd);
        pair[i + 1] = _mm512_permutex2var_epi16(even, second, odd);
    }
}

PAIRED_INLINE __m512 add_pair(__m512 sum, const uint16_t *x, __m512i pair) {
    int both;
    memcpy(&both, x, sizeof both);
    return _mm512_dpbf16_ps(sum, (__m512bh)pair, (__m512bh)_mm512_set1_epi32(both));
}

/* `x`: a row's LINES elements, LINES apart. */
PAIRED_INLINE void add_columns(const Piece *p, const uint16_t *x, int64_t j, __mmask32 mask,
                               const __m512i pair[LINES]) {
    __mmask16 low = (__mmask16)mask, high = (__mmask16)(mask >> WIDTH / 2);
    for (int64_t r = 0; r < p->m; r++, x += LINES) {
        float *y = p->y + r * p->n + j;
        __m512 first = _mm512_maskz_loadu_ps(low, y);
        __m512 second = _mm512_maskz_loadu_ps(high, y + WIDTH / 2);
        for (int i = 0; i < LINES; i += 2) {
            first = add_pair(first, x + i, pair[i]);
            second = add_pair(second, x + i, pair[i + 1]);
        }
        _mm512_mask_storeu_ps(y, low, first);
        _mm512_mask_storeu_ps(y + WIDTH / 2, high, second);
    }
}

PAIRED static void add_lines(const Piece *p, int64_t k, int64_t from, int64_t to) {
    uint16_t x[MTF_SKINNY_ROWS * LINES];
    __m512i pair[LINES];
    narrow_rows(p, k, MIN(LINES, p->k - k), LINES, x);
    for (int64_t j = from; j < to; j += WIDTH) {
        __mmask32 mask = mask_of(to - j);
        for (int i = 0; i < LINES; i++)
            _mm_prefetch((const char *)((const uint16_t *)p->w + (k + LINES + i) * p->apart + j),
                         _MM_HINT_T0);
        load_pairs(p, k, j, mask, pair);
        add_columns(p, x, j, mask, pair);
    }
}

static void add_all(const Piece *p, const MtfProgressHook *progress) {
    memset(p->y, 0, (size_t)(p->m * p->n) * sizeof *p->y);
    for (int64_t from = 0; from < p->n; from += COLUMNS) {
        for (int64_t k = 0; k < p->k; k += LINES)
            add_lines(p, k, from, MIN(p->n, from + COLUMNS));
        mtf_progress_hook_run(progress);
    }
}

/* ---- Lines are columns: y[r][n] += x[r][k …] . w[n][k …] ----------------------------------------- */

/* The sums of the lanes of 16 registers: register 4 e + l's is at place 4 l + e. */
PAIRED_INLINE __m512 sums_of_lanes(__m512 v[SUMS]) {
    for (int i = 0; i < 8; i++)
        v[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44),
                             _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xEE));
    for (int i = 0; i < 4; i++)
        v[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x88),
                             _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xDD));
    for (int i = 0; i < 2; i++)
        v[i] = _mm512_add_ps(_mm512_shuffle_ps(v[2 * i], v[2 * i + 1], 0x44),
                             _mm512_shuffle_ps(v[2 * i], v[2 * i + 1], 0xEE));
    return _mm512_add_ps(_mm512_shuffle_ps(v[0], v[1], 0x88), _mm512_shuffle_ps(v[0], v[1], 0xDD));
}

/* Adds to y[0 … rows)[n … n + lines) the products over [k, k + size); rows and lines beyond the last
 * are the last again, and are not stored. */
PAIRED_INLINE void dot_lines(const Piece *p, const uint16_t *x, int64_t k, int64_t size, int64_t n,
                             const int rows) {
    const int lines = SUMS / rows;
    const uint16_t *w[SUMS];
    __m512 sum[SUMS];
    float total[SUMS];
    for (int i = 0; i < lines; i++)
        w[i] = (const uint16_t *)p->w + MIN(n + i, p->n - 1) * p->apart + k;
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm512_setzero_ps();
    for (int64_t at = 0; at < size; at += WIDTH) {
        __mmask32 mask = mask_of(size - at);
        __m512i line[SUMS];
        for (int i = 0; i < lines; i++) {
            _mm_prefetch((const char *)(w[i] + lines * p->apart + at), _MM_HINT_T0);
            line[i] = _mm512_maskz_loadu_epi16(mask, w[i] + at);
        }
        for (int r = 0; r < rows; r++) {
            __m512i row = _mm512_loadu_si512(x + r * STRETCH + at);
            for (int i = 0; i < lines; i++)
                sum[r * lines + i] =
                    _mm512_dpbf16_ps(sum[r * lines + i], (__m512bh)line[i], (__m512bh)row);
        }
    }
    _mm512_storeu_ps(total, sums_of_lanes(sum));
    for (int r = 0; r < MIN(rows, p->m); r++)
        for (int i = 0; i < MIN(lines, p->n - n); i++) {
            int v = r * lines + i;
            p->y[r * p->n + n + i] += total[v % 4 * 4 + v / 4];
        }
}

#define DEFINE_DOTS(ROWS)                                                                      \
    PAIRED static void dots_##ROWS(const Piece *p, const uint16_t *x, int64_t k, int64_t size, \
                                   int64_t from, int64_t to) {                                 \
        for (int64_t n = from; n < to; n += SUMS / ROWS)                                       \
            dot_lines(p, x, k, size, n, ROWS);                                                 \
    }

DEFINE_DOTS(2)
DEFINE_DOTS(4)
DEFINE_DOTS(8)

static void dot_all(const Piece *p, const MtfProgressHook *progress) {
    uint16_t x[MTF_SKINNY_ROWS * STRETCH] = { 0 };
    memset(p->y, 0, (size_t)(p->m * p->n) * sizeof *p->y);
    for (int64_t k = 0; k < p->k; k += STRETCH) {
        int64_t size = MIN(STRETCH, p->k - k);
        narrow_rows(p, k, size, STRETCH, x);
        for (int64_t n = 0; n < p->n; n += COLUMNS) {
            int64_t to = MIN(p->n, n + COLUMNS);
            (p->m == 2 ? dots_2 : p->m <= 4 ? dots_4 : dots_8)(p, x, k, size, n, to);
            mtf_progress_hook_run(progress);
        }
    }
}

void mtf_skinny_pairs(const MtfSkinny *piece, const MtfProgressHook *progress) {
    (piece->dots ? dot_all : add_all)(piece, progress);
}

#else

bool mtf_skinny_pairs_pay(void) {
    return false;
}

void mtf_skinny_pairs(const MtfSkinny *piece, const MtfProgressHook *progress) {
    (void)piece;
    (void)progress;
    g_assert_not_reached();
}

#endif
