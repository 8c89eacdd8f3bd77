// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/windows/product_conv.h"

#include "runtime/kernels/products/kernel_product.h"

#include <glib.h>
#include <string.h>

enum { LARGE = MTF_CONV_LARGE, SMALL = MTF_CONV_SMALL, FILTER = MTF_CONV_FILTER };

/* Columns of a tile stay in the second cache, 2^17 elements; but fewer positions are not worth that a
 * product lays out the whole filter again. */
#define TILE_ELEMENTS (1 << 17)
#define LEAST_TILE 32

typedef struct {
    MtfConvolution c;
    int64_t examples, groups, read, written, places, positions;
    int64_t tile;                  /* positions */
    int64_t columns, part, packed; /* where they begin in the workspace, in elements */
} Prepared;

/* Along window w: sizes and strides of a side, of the filter behind its channels. */
static int64_t along(const Prepared *p, int side, int w) {
    const MtfConvOperand *operand = &p->c.side[side];
    return operand->size[operand->rank - p->c.windows + w];
}

static int64_t stride_along(const Prepared *p, int side, int w) {
    const MtfConvOperand *operand = &p->c.side[side];
    return operand->stride[operand->rank - p->c.windows + w];
}

static int64_t product_along(const Prepared *p, int side) {
    int64_t product = 1;
    for (int w = 0; w < p->c.windows; w++)
        product *= along(p, side, w);
    return product;
}

static void set_channels(Prepared *p, const MtfConvOperand *filter) {
    int grouped = filter->rank - p->c.windows - 2;
    p->groups = grouped > 0 ? filter->size[0] : 1;
    p->written = filter->size[grouped];
    p->read = filter->size[grouped + 1];
}

void *mtf_product_conv_prepare(const MtfConvolution *c, int64_t *workspace_bytes) {
    if (c->side[c->made].dtype != MTF_F64 || c->windows == 0)
        return NULL;
    Prepared *p = g_new0(Prepared, 1);
    p->c = *c;
    p->examples = c->side[LARGE].size[0];
    set_channels(p, &c->side[FILTER]);
    p->places = product_along(p, FILTER);
    p->positions = product_along(p, SMALL);
    p->tile = MIN(p->positions, MAX(LEAST_TILE, TILE_ELEMENTS / (p->read * p->places)));
    p->part = p->read * p->places * p->tile;
    p->packed = p->part + p->written * p->tile;
    int64_t elements = p->packed + p->groups * p->written * p->read * p->places;
    *workspace_bytes = elements * (int64_t)sizeof(double);
    return p;
}

/* ---- Filters ------------------------------------------------------------------------------- */

/* Of place number `place`, the last window's fastest, the coordinate along window w. */
static int64_t coordinate(const Prepared *p, int side, int64_t place, int w) {
    for (int later = p->c.windows - 1; later > w; later--)
        place /= along(p, side, later);
    return place % along(p, side, w);
}

static int64_t offset_along(const Prepared *p, int side, int64_t place) {
    int64_t offset = 0;
    for (int w = 0; w < p->c.windows; w++)
        offset += coordinate(p, side, place, w) * stride_along(p, side, w);
    return offset;
}

/* Lays the filter in order, groups x written x read x places; or back. */
static void pack_filter(const Prepared *p, double *filter, double *packed, bool back) {
    const MtfConvOperand *side = &p->c.side[FILTER];
    int grouped = side->rank - p->c.windows - 2;
    for (int64_t place = 0; place < p->places; place++) {
        int64_t at = offset_along(p, FILTER, place);
        for (int64_t i = 0; i < p->groups * p->written * p->read; i++) {
            int64_t row = i / p->read, group = row / p->written;
            double *from = filter + at + (grouped > 0 ? group * side->stride[0] : 0) +
                           row % p->written * side->stride[grouped] +
                           i % p->read * side->stride[grouped + 1];
            double *to = packed + i * p->places + place;
            *(back ? from : to) = *(back ? to : from);
        }
    }
}

/* ---- Columns ------------------------------------------------------------------------------- */

/* Positions `first` to before `end` of the small side: the last window's coordinate is the fastest. */
typedef struct {
    int64_t first, end;
} Tile;

/* `n` neighbouring positions along the last window, and what one place of their windows meets: positions
 * `low` to `high` - 1 an element each, the first at `at`, each next one `step` further. */
typedef struct {
    int64_t n, low, high, at, step;
} Run;

/* How many of the positions from `position` lie beside each other within the tile. */
static int64_t run_length(const Prepared *p, int64_t position, Tile tile) {
    int64_t row = along(p, SMALL, p->c.windows - 1);
    return MIN(tile.end - position, row - position % row);
}

static int64_t ceil_divided(int64_t a, int64_t b) {
    return a > 0 ? (a + b - 1) / b : 0;
}

static Run run_of(const Prepared *p, int64_t position, int64_t n, int64_t place) {
    const MtfConvolution *c = &p->c;
    int last = c->windows - 1;
    Run run = { .n = n, .step = c->stride[last] * stride_along(p, LARGE, last) };
    bool outside = false;
    for (int w = 0; w < c->windows; w++) {
        int64_t size = along(p, LARGE, w);
        int64_t i = coordinate(p, SMALL, position, w) * c->stride[w] - c->before[w] +
                    coordinate(p, FILTER, place, w) * c->dilation[w];
        if (w == last) {
            run.low = MIN(n, ceil_divided(-i, c->stride[w]));
            run.high = CLAMP(ceil_divided(size - i, c->stride[w]), run.low, n);
            i += run.low * c->stride[w];
        }
        outside = outside || i < 0 || i >= size;
        run.at += i * stride_along(p, LARGE, w);
    }
    if (outside)
        run.low = run.high = n;
    return run;
}

/* Reads what is met into the columns, 0 where nothing is; or adds the columns to it. */
static void move_run(const Run *run, double *large, double *columns, bool back) {
    if (back) {
        for (int64_t i = run->low; i < run->high; i++)
            large[(i - run->low) * run->step] += columns[i];
        return;
    }
    memset(columns, 0, (size_t)run->low * sizeof(double));
    for (int64_t i = run->low; i < run->high; i++)
        columns[i] = large[(i - run->low) * run->step];
    memset(columns + run->high, 0, (size_t)(run->n - run->high) * sizeof(double));
}

/* Between the large side, from its example's and group's first channel on, and the tile's columns. */
static void move_columns(const Prepared *p, Tile tile, double *large, double *columns, bool back) {
    int64_t channel = p->c.side[LARGE].stride[1], width = tile.end - tile.first;
    for (int64_t at = tile.first, n; at < tile.end; at += n) {
        n = run_length(p, at, tile);
        for (int64_t place = 0; place < p->places; place++) {
            Run run = run_of(p, at, n, place);
            double *from = run.low < run.high ? large + run.at : large;
            for (int64_t r = 0; r < p->read; r++)
                move_run(&run, from + r * channel,
                         columns + (r * p->places + place) * width + at - tile.first, back);
        }
    }
}

/* The tile of the small side as rows, a channel each; or back. */
static void move_part(const Prepared *p, Tile tile, double *small, double *part, bool back) {
    const MtfConvOperand *side = &p->c.side[SMALL];
    int64_t step = stride_along(p, SMALL, p->c.windows - 1), width = tile.end - tile.first;
    for (int64_t at = tile.first, n; at < tile.end; at += n) {
        n = run_length(p, at, tile);
        for (int64_t channel = 0; channel < p->written; channel++) {
            double *from = small + channel * side->stride[1] + offset_along(p, SMALL, at);
            double *to = part + channel * width + at - tile.first;
            for (int64_t i = 0; i < n; i++)
                *(back ? from + i * step : to + i) = *(back ? to + i : from + i * step);
        }
    }
}

/* ---- Products ------------------------------------------------------------------------------ */

/* One example's group: where its channels begin. */
typedef struct {
    double *large, *small, *packed;
} Group;

static void run_tile(const Prepared *p, Tile tile, const Group *group, double *workspace) {
    double *columns = workspace + p->columns, *part = workspace + p->part;
    int width = (int)(tile.end - tile.first), deep = (int)(p->read * p->places);
    int written = (int)p->written;
    MtfWideGemm gemm = { .m = written,
                         .n = width,
                         .k = deep,
                         .a = group->packed,
                         .b = columns,
                         .c = part,
                         .lda = deep,
                         .ldb = width,
                         .ldc = width };
    if (p->c.made != MTF_CONV_SMALL)
        move_part(p, tile, group->small, part, false);
    if (p->c.made != MTF_CONV_LARGE)
        move_columns(p, tile, group->large, columns, false);
    if (p->c.made == MTF_CONV_FILTER)
        gemm = (MtfWideGemm){ .b_turned = true,
                              .adds = true,
                              .m = written,
                              .n = deep,
                              .k = width,
                              .a = part,
                              .b = columns,
                              .c = group->packed,
                              .lda = width,
                              .ldb = width,
                              .ldc = deep };
    if (p->c.made == MTF_CONV_LARGE)
        gemm = (MtfWideGemm){ .a_turned = true,
                              .m = deep,
                              .n = width,
                              .k = written,
                              .a = group->packed,
                              .b = part,
                              .c = columns,
                              .lda = deep,
                              .ldb = width,
                              .ldc = width };
    mtf_openblas_wide_gemm(&gemm);
    if (p->c.made == MTF_CONV_SMALL)
        move_part(p, tile, group->small, part, true);
    if (p->c.made == MTF_CONV_LARGE)
        move_columns(p, tile, group->large, columns, true);
}

/* The large side's part may lie within more that is not its. */
static void clear_large(const Prepared *p, double *large) {
    const MtfConvOperand *side = &p->c.side[LARGE];
    int64_t elements = product_along(p, LARGE), channels = side->size[1];
    for (int64_t i = 0; i < p->examples * channels; i++) {
        double *from = large + i / channels * side->stride[0] + i % channels * side->stride[1];
        for (int64_t at = 0; at < elements; at++)
            from[offset_along(p, LARGE, at)] = 0;
    }
}

static void run_groups(const Prepared *p, double *large, double *small, double *workspace,
                       const MtfProgressHook *progress) {
    const MtfConvOperand *l = &p->c.side[LARGE], *s = &p->c.side[SMALL];
    int64_t filter = p->written * p->read * p->places;
    for (int64_t i = 0; i < p->examples * p->groups; i++) {
        int64_t example = i / p->groups, g = i % p->groups;
        Group group = { large + example * l->stride[0] + g * p->read * l->stride[1],
                        small + example * s->stride[0] + g * p->written * s->stride[1],
                        workspace + p->packed + g * filter };
        for (int64_t at = 0; at < p->positions; at += p->tile) {
            run_tile(p, (Tile){ at, MIN(at + p->tile, p->positions) }, &group, workspace);
            mtf_progress_hook_run(progress);
        }
    }
}

void mtf_product_conv_run(const void *prepared, void *const data[MTF_CONV_SIDES], void *workspace,
                          const MtfProgressHook *progress) {
    const Prepared *p = prepared;
    double *room = workspace, *packed = room + p->packed;
    if (p->c.made == MTF_CONV_FILTER)
        memset(packed, 0, (size_t)(p->groups * p->written * p->read * p->places) * sizeof(double));
    else
        pack_filter(p, data[FILTER], packed, false);
    if (p->c.made == MTF_CONV_LARGE)
        clear_large(p, data[LARGE]);
    run_groups(p, data[LARGE], data[SMALL], room, progress);
    if (p->c.made == MTF_CONV_FILTER)
        pack_filter(p, data[FILTER], packed, true);
}
