// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/windows/unrolled_conv.h"

#include "runtime/kernels/products/kernel_products.h"

#include <glib.h>
#include <string.h>

enum { LARGE = MTF_CONV_LARGE, SMALL = MTF_CONV_SMALL, FILTER = MTF_CONV_FILTER };

#define LONGEST_ROW 2

/* Columns of a tile stay in the second cache; but fewer positions are not worth that a product fetches the
 * whole filter again. */
#define TILE_ELEMENTS (1 << 18)
#define LEAST_TILE 256

typedef struct {
    MtfConvolution c;
    int64_t read, written, places, positions; /* positions of all examples */
    int64_t deep;                             /* read x places */
    int64_t tile;                             /* positions */
    bool written_first;            /* the filter lies as [written, deep], else [deep, written] */
    int64_t read_step, place_step; /* in a row of columns */
    bool as_it_lies;               /* the large side is the columns */
} Prepared;

static int64_t along(const MtfConvolution *c, int side, int w) {
    const MtfConvOperand *operand = &c->side[side];
    return operand->size[operand->rank - c->windows + w];
}

static int64_t stride_along(const MtfConvolution *c, int side, int w) {
    const MtfConvOperand *operand = &c->side[side];
    return operand->stride[operand->rank - c->windows + w];
}

static int64_t product_along(const MtfConvolution *c, int side) {
    int64_t product = 1;
    for (int w = 0; w < c->windows; w++)
        product *= along(c, side, w);
    return product;
}

/* ---- Whether it applies -------------------------------------------------------------------- */

static bool all_are_float32(const MtfConvolution *c) {
    for (int s = 0; s < MTF_CONV_SIDES; s++)
        if (c->side[s].dtype != MTF_F32)
            return false;
    return true;
}

/* Whether dimension i of an operand has elements `stride` apart, or one alone. */
static bool has_stride(const MtfConvOperand *operand, int i, int64_t stride) {
    return operand->size[i] == 1 || operand->stride[i] == stride;
}

/* Whether the windows' dimensions lie row by row, elements of the last one `stride` apart; what all of them
 * are apart from the next such. */
static bool windows_are_dense(const MtfConvolution *c, int side, int64_t *stride) {
    const MtfConvOperand *operand = &c->side[side];
    bool dense = true;
    for (int w = c->windows - 1; w >= 0; w--) {
        int i = operand->rank - c->windows + w;
        dense = dense && has_stride(operand, i, *stride);
        *stride *= operand->size[i];
    }
    return dense;
}

/* Whether a side is a matrix with its channels in rows, a position each. */
static bool is_matrix(const MtfConvolution *c, int side) {
    const MtfConvOperand *operand = &c->side[side];
    int64_t stride = operand->size[1];
    return has_stride(operand, 1, 1) && windows_are_dense(c, side, &stride) &&
           has_stride(operand, 0, stride);
}

/* The filter as a matrix: in what order its elements make the rows of columns. */
static bool find_order(Prepared *p) {
    const MtfConvOperand *filter = &p->c.side[FILTER];
    for (int i = 0; i < 4; i++) {
        p->written_first = (i & 1) != 0;
        bool places_last = (i & 2) != 0;
        int64_t unit = p->written_first ? 1 : p->written,
                stride = unit * (places_last ? 1 : p->read);
        p->read_step = places_last ? p->places : 1;
        p->place_step = places_last ? 1 : p->read;
        if (windows_are_dense(&p->c, FILTER, &stride) &&
            has_stride(filter, 1, unit * p->read_step) &&
            has_stride(filter, 0, p->written_first ? p->deep : 1))
            return true;
    }
    return false;
}

/* Whether each window is the one element beside that of the window before. */
static bool meets_each_once(const MtfConvolution *c) {
    bool once = is_matrix(c, LARGE);
    for (int w = 0; w < c->windows; w++)
        once = once && along(c, FILTER, w) == 1 && c->stride[w] == 1 && c->before[w] == 0 &&
               along(c, LARGE, w) == along(c, SMALL, w);
    return once;
}

static bool applies(const MtfConvolution *c) {
    return c->windows > 0 && c->side[FILTER].rank == c->windows + 2 && all_are_float32(c) &&
           along(c, SMALL, c->windows - 1) <= LONGEST_ROW && is_matrix(c, SMALL) &&
           has_stride(&c->side[LARGE], 1, 1);
}

void *mtf_unrolled_conv_prepare(const MtfConvolution *c, int64_t *workspace_bytes) {
    if (!applies(c))
        return NULL;
    Prepared p = { .c = *c,
                   .read = c->side[FILTER].size[1],
                   .written = c->side[FILTER].size[0],
                   .places = product_along(c, FILTER),
                   .positions = c->side[SMALL].size[0] * product_along(c, SMALL) };
    p.deep = p.read * p.places;
    p.as_it_lies = meets_each_once(c);
    p.tile = p.as_it_lies ? p.positions : MIN(p.positions, MAX(LEAST_TILE, TILE_ELEMENTS / p.deep));
    if (!find_order(&p))
        return NULL;
    *workspace_bytes = p.as_it_lies ? 0 : p.tile * p.deep * (int64_t)sizeof(float);
    return g_memdup2(&p, sizeof p);
}

/* ---- Columns ------------------------------------------------------------------------------- */

/* Where in the large side a place of a position's window lies, in elements; -1 where that is padding. */
static int64_t met(const Prepared *p, int64_t position, int64_t place) {
    const MtfConvolution *c = &p->c;
    int64_t at = 0;
    for (int w = c->windows - 1; w >= 0; w--) {
        int64_t i = position % along(c, SMALL, w) * c->stride[w] - c->before[w] +
                    place % along(c, FILTER, w) * c->dilation[w];
        if (i < 0 || i >= along(c, LARGE, w))
            return -1;
        at += i * stride_along(c, LARGE, w);
        position /= along(c, SMALL, w);
        place /= along(c, FILTER, w);
    }
    return at + position * c->side[LARGE].stride[0];
}

static void read_place(const Prepared *p, const float *from, float *row) {
    for (int64_t r = 0; r < p->read; r++)
        row[r * p->read_step] = from != NULL ? from[r] : 0;
}

static void add_place(const Prepared *p, float *to, const float *row) {
    for (int64_t r = 0; to != NULL && r < p->read; r++)
        to[r] += row[r * p->read_step];
}

/* Between the large side and the columns of `n` positions from `first` on. */
static void move_columns(const Prepared *p, int64_t first, int64_t n, float *large, float *columns,
                         bool back) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t place = 0; place < p->places; place++) {
            int64_t at = met(p, first + i, place);
            float *element = at >= 0 ? large + at : NULL;
            float *row = columns + i * p->deep + place * p->place_step;
            if (back)
                add_place(p, element, row);
            else
                read_place(p, element, row);
        }
}

/* The large side's part may lie within more that is not its. */
static void clear_large(const Prepared *p, float *large) {
    const MtfConvolution *c = &p->c;
    int64_t each = product_along(c, LARGE), all = c->side[LARGE].size[0] * each;
    for (int64_t i = 0; i < all; i++) {
        int64_t at = i / each * c->side[LARGE].stride[0], rest = i % each;
        for (int w = c->windows - 1; w >= 0; w--) {
            at += rest % along(c, LARGE, w) * stride_along(c, LARGE, w);
            rest /= along(c, LARGE, w);
        }
        memset(large + at, 0, (size_t)p->read * sizeof *large);
    }
}

/* ---- Products ------------------------------------------------------------------------------ */

/* The product of `n` positions, whose columns and part of the small side are at hand; a filter's later tiles
 * are added. */
static MtfGemm gemm_of(const Prepared *p, int64_t n, float *columns, float *small, float *filter,
                       bool adds) {
    int rows = (int)n, deep = (int)p->deep, written = (int)p->written;
    int filter_line = p->written_first ? deep : written;
    if (p->c.made == MTF_CONV_SMALL)
        return (MtfGemm){ .b_turned = p->written_first,
                          .m = rows,
                          .n = written,
                          .k = deep,
                          .a = columns,
                          .b = filter,
                          .c = small,
                          .lda = deep,
                          .ldb = filter_line,
                          .ldc = written };
    if (p->c.made == MTF_CONV_LARGE)
        return (MtfGemm){ .b_turned = !p->written_first,
                          .m = rows,
                          .n = deep,
                          .k = written,
                          .a = small,
                          .b = filter,
                          .c = columns,
                          .lda = written,
                          .ldb = filter_line,
                          .ldc = deep };
    if (p->written_first)
        return (MtfGemm){ .a_turned = true,
                          .adds = adds,
                          .m = written,
                          .n = deep,
                          .k = rows,
                          .a = small,
                          .b = columns,
                          .c = filter,
                          .lda = written,
                          .ldb = deep,
                          .ldc = deep };
    return (MtfGemm){ .a_turned = true,
                      .adds = adds,
                      .m = deep,
                      .n = written,
                      .k = rows,
                      .a = columns,
                      .b = small,
                      .c = filter,
                      .lda = deep,
                      .ldb = written,
                      .ldc = written };
}

void mtf_unrolled_conv_run(const void *prepared, void *const data[MTF_CONV_SIDES], void *workspace,
                           const MtfProgressHook *progress) {
    const Prepared *p = prepared;
    bool lays_out = !p->as_it_lies, back = p->c.made == MTF_CONV_LARGE;
    if (lays_out && back)
        clear_large(p, data[LARGE]);
    for (int64_t at = 0; at < p->positions; at += p->tile) {
        int64_t n = MIN(p->tile, p->positions - at);
        float *columns = lays_out ? workspace : data[LARGE];
        float *small = (float *)data[SMALL] + at * p->written;
        if (lays_out && !back)
            move_columns(p, at, n, data[LARGE], columns, false);
        MtfGemm gemm = gemm_of(p, n, columns, small, data[FILTER], at > 0);
        gemm.progress = progress;
        mtf_onednn_gemm(&gemm);
        if (lays_out && back)
            move_columns(p, at, n, data[LARGE], columns, true);
    }
}
