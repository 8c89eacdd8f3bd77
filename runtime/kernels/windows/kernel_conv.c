// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/windows/kernel_conv.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/windows/window_nest.h"

#include <string.h>

enum { LARGE, SMALL, FILTER, SIDES };

/* A dimension beside the windows: examples, channels, groups. */
typedef struct {
    int64_t size, stride[SIDES];
} Plain;

typedef struct {
    const MtfOperand *side[SIDES];
    int made; /* the side that is the result */
    MtfWindowNest nest;
    int n;
    Plain plain[3 * MTF_MAX_RANK]; /* the innermost last */
} Convolution;

static bool is_windowed(const MtfAttributes *a, int dim) {
    for (int w = 0; w < a->n_windows; w++)
        if (a->windows[w].from == dim || a->windows[w].to == dim || a->windows[w].kernel == dim)
            return true;
    return false;
}

/* Adds the dimensions of `operand` that the ones before it lack. */
static void add_plain(Convolution *c, const MtfKernelCall *call, const MtfOperand *operand,
                      int before) {
    for (int i = 0; i < operand->rank; i++) {
        int dim = operand->dims[i];
        bool known = is_windowed(&call->operation->attributes, dim);
        for (int s = 0; s < before; s++)
            known = known || mtf_operand_find(c->side[s], dim) >= 0;
        if (known)
            continue;
        Plain *plain = &c->plain[c->n++];
        plain->size = operand->size[i];
        for (int s = 0; s < SIDES; s++)
            plain->stride[s] = mtf_side_of(c->side[s], dim).stride;
    }
}

static Convolution convolution_of(const MtfKernelCall *call) {
    Convolution c = { .n = 0 };
    const MtfOperand *a = &call->inputs[0], *b = &call->inputs[1], *made = &call->outputs[0];
    switch (mtf_operation_row(call->operation->kind)->windows) {
    case MTF_WINDOWS_SPREAD:
        c = (Convolution){ .side = { made, a, b }, .made = LARGE };
        break;
    case MTF_WINDOWS_FILTER:
        c = (Convolution){ .side = { a, b, made }, .made = FILTER };
        break;
    default:
        c = (Convolution){ .side = { a, made, b }, .made = SMALL };
        break;
    }
    c.nest = mtf_window_nest(call, c.side[LARGE], c.side[SMALL], c.side[FILTER]);
    for (int s = 0; s < SIDES; s++)
        add_plain(&c, call, c.side[s], s);
    return c;
}

typedef void (*AddRow)(const Plain *plain, void *made, const void *a, const void *b,
                       const int64_t step[SIDES]);

/* made += a b along one plain dimension; `step` are the strides of made, a and b. */
#define ADD_ROW(name, sum_type, type, read)                                        \
    static void name(const Plain *plain, void *made, const void *a, const void *b, \
                     const int64_t step[SIDES]) {                                  \
        sum_type *to = made;                                                       \
        const type *x = a, *y = b;                                                 \
        if (step[0] == 0) {                                                        \
            sum_type sum = 0;                                                      \
            for (int64_t i = 0; i < plain->size; i++)                              \
                sum += read(x[i * step[1]]) * read(y[i * step[2]]);                \
            *to += sum;                                                            \
            return;                                                                \
        }                                                                          \
        for (int64_t i = 0; i < plain->size; i++)                                  \
            to[i * step[0]] += read(x[i * step[1]]) * read(y[i * step[2]]);        \
    }

#define AS_IT_IS(x) (x)
ADD_ROW(add_f32, float, float, AS_IT_IS)
ADD_ROW(add_f64, double, double, AS_IT_IS)
ADD_ROW(add_bf16, float, uint16_t, mtf_bf16_wide)

/* Where the three sides are, in elements. */
typedef struct {
    const Convolution *c;
    char *data[SIDES];
    int64_t bytes[SIDES];
    AddRow add;
} Walk;

static void walk_plain(const Walk *walk, int level, const int64_t at[SIDES]) {
    const Convolution *c = walk->c;
    const Plain *plain = &c->plain[level];
    if (level == c->n - 1) {
        const int order[SIDES] = { c->made, (c->made + 1) % SIDES, (c->made + 2) % SIDES };
        int64_t step[SIDES];
        char *p[SIDES];
        for (int s = 0; s < SIDES; s++) {
            step[s] = plain->stride[order[s]];
            p[s] = walk->data[order[s]] + at[order[s]] * walk->bytes[order[s]];
        }
        walk->add(plain, p[0], p[1], p[2], step);
        return;
    }
    for (int64_t i = 0; i < plain->size; i++) {
        int64_t next[SIDES];
        for (int s = 0; s < SIDES; s++)
            next[s] = at[s] + i * plain->stride[s];
        walk_plain(walk, level + 1, next);
    }
}

/* All pairs of a window and a place in it that meet an element. */
static void walk_windows(const Walk *walk, int level, const int64_t at[SIDES]) {
    if (level == walk->c->nest.n || level == MTF_MAX_WINDOWS) {
        walk_plain(walk, 0, at);
        return;
    }
    const MtfWindowLoop *loop = &walk->c->nest.loop[level];
    for (int64_t o = 0; o < loop->small.size; o++)
        for (int64_t p = 0; p < loop->places; p++) {
            int64_t i = mtf_window_large(loop, o, p);
            const int64_t next[SIDES] = { at[LARGE] + i * loop->large.stride,
                                          at[SMALL] + o * loop->small.stride,
                                          at[FILTER] + p * loop->place_stride };
            if (i >= 0)
                walk_windows(walk, level + 1, next);
        }
}

void mtf_kernel_conv(const MtfKernelCall *call) {
    Convolution c = convolution_of(call);
    MtfOperand sums = mtf_kernel_sums(call);
    int64_t elements = mtf_operand_elements(&sums);
    bool narrow = call->outputs[0].dtype == MTF_BF16;
    Walk walk = { .c = &c, .add = narrow ? add_bf16 : sums.dtype == MTF_F64 ? add_f64 : add_f32 };
    if (elements == 0)
        return;
    c.side[c.made] = &sums;
    for (int s = 0; s < SIDES; s++) {
        walk.data[s] = c.side[s]->data;
        walk.bytes[s] = mtf_dtype_bytes(c.side[s]->dtype);
    }
    memset(sums.data, 0, (size_t)(elements * mtf_dtype_bytes(sums.dtype)));
    if (c.n == 0)
        c.plain[c.n++] = (Plain){ .size = 1 };
    walk_windows(&walk, 0, (const int64_t[SIDES]){ 0, 0, 0 });
    mtf_kernel_store_sums(call, &sums);
}
