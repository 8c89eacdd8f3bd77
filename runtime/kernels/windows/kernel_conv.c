// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/windows/kernel_conv.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_move.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/windows/conv_roles.h"
#include "runtime/kernels/windows/product_conv.h"
#include "runtime/kernels/windows/unrolled_conv.h"
#include "runtime/kernels/windows/window_nest.h"

#include <string.h>

enum {
    LARGE = MTF_CONV_LARGE,
    SMALL = MTF_CONV_SMALL,
    FILTER = MTF_CONV_FILTER,
    SIDES = MTF_CONV_SIDES
};

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

/* Adds the dimensions of `operand` that the ones before it lack. */
static void add_plain(Convolution *c, const MtfKernelCall *call, const MtfOperand *operand,
                      int before) {
    for (int i = 0; i < operand->rank; i++) {
        int dim = operand->dims[i];
        bool known = mtf_conv_is_windowed(&call->operation->attributes, dim);
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
    c.made = (int)mtf_conv_sides(call, c.side);
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

/* By plain loops: what neither oneDNN nor products do. */
static void convolve_plainly(const MtfKernelCall *call) {
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
    mtf_operand_clear(&sums, 0, elements);
    if (c.n == 0)
        c.plain[c.n++] = (Plain){ .size = 1 };
    walk_windows(&walk, 0, (const int64_t[SIDES]){ 0, 0, 0 });
    mtf_kernel_store_sums(call, &sums);
}

/* ---- By oneDNN, or by products ------------------------------------------------------------- */

#define PAGE 4096

typedef struct {
    MtfConvRoles roles;
    void *onednn, *product, *unrolled; /* all NULL: by plain loops */
    int64_t copy[SIDES];               /* where copies are, in the workspace */
    int64_t rest;                      /* and what oneDNN or products take */
} Prepared;

static bool is_empty(const MtfKernelCall *call) {
    return mtf_operand_elements(&call->inputs[0]) == 0 ||
           mtf_operand_elements(&call->inputs[1]) == 0 ||
           mtf_operand_elements(&call->outputs[0]) == 0;
}

static int64_t bytes_of(const MtfOperand *operand) {
    return mtf_operand_elements(operand) * mtf_dtype_bytes(operand->dtype);
}

static bool has_way(const Prepared *p) {
    return p->onednn != NULL || p->product != NULL || p->unrolled != NULL;
}

static void prepare_way(Prepared *p, int64_t *bytes) {
    if (p->roles.nothing)
        return;
    p->unrolled = mtf_unrolled_conv_prepare(&p->roles.convolution, bytes);
    if (p->unrolled == NULL)
        p->onednn = mtf_onednn_conv_prepare(&p->roles.convolution, bytes);
    if (!has_way(p))
        p->product = mtf_product_conv_prepare(&p->roles.convolution, bytes);
}

static void *conv_prepare(const MtfKernelCall *call, int64_t *workspace_bytes) {
    Prepared *p = g_new0(Prepared, 1);
    int64_t bytes = 0;
    *workspace_bytes = 0;
    if (is_empty(call))
        return p;
    mtf_conv_roles(&p->roles, call);
    prepare_way(p, &bytes);
    if (!has_way(p))
        return p;
    for (int s = 0; s < SIDES; s++) {
        p->copy[s] = *workspace_bytes;
        if (p->roles.copied[s])
            *workspace_bytes += (bytes_of(&p->roles.operand[s]) + PAGE - 1) / PAGE * PAGE;
    }
    p->rest = *workspace_bytes;
    *workspace_bytes += bytes;
    return p;
}

static void conv_release(void *prepared) {
    Prepared *p = prepared;
    if (p->onednn != NULL)
        mtf_onednn_conv_release(p->onednn);
    g_free(p->product);
    g_free(p->unrolled);
    g_free(p);
}

static void convolve(const MtfKernelCall *call, const Prepared *p) {
    const MtfConvRoles *roles = &p->roles;
    const MtfOperand *side[SIDES];
    MtfConvSide made = mtf_conv_sides(call, side);
    MtfOperand operand[SIDES];
    void *data[SIDES];
    for (int s = 0; s < SIDES; s++) {
        operand[s] = roles->operand[s];
        operand[s].data = roles->copied[s] ? (char *)call->workspace + p->copy[s] : side[s]->data;
        data[s] = mtf_operand_at(&operand[s], roles->begin[s]);
        if (roles->copied[s] && s != (int)made)
            mtf_operand_copy(&operand[s], side[s]);
    }
    if (roles->uncovered)
        memset(operand[made].data, 0, (size_t)bytes_of(&operand[made]));
    if (p->unrolled != NULL)
        mtf_unrolled_conv_run(p->unrolled, data, (char *)call->workspace + p->rest, call->progress);
    else if (p->onednn != NULL)
        mtf_onednn_conv_run(p->onednn, data, (char *)call->workspace + p->rest);
    else
        mtf_product_conv_run(p->product, data, (char *)call->workspace + p->rest, call->progress);
    if (roles->copied[made])
        mtf_operand_copy(side[made], &operand[made]);
}

static void conv_kernel(const MtfKernelCall *call) {
    const Prepared *p = call->prepared;
    if (has_way(p))
        convolve(call, p);
    else
        convolve_plainly(call);
}

const MtfKernelRow mtf_conv_kernels[] = {
    { .kind = MTF_OP_CONV,
      .kernel = conv_kernel,
      .prepare = conv_prepare,
      .release = conv_release,
      .trial = { { "yxs", "uvsd" }, "jid", MTF_SLOW } },
    { .kind = MTF_OP_CONV_TRANSPOSE,
      .kernel = conv_kernel,
      .prepare = conv_prepare,
      .release = conv_release,
      .trial = { { "jid", "uvsd" }, "yxs", MTF_SLOW } },
    { .kind = MTF_OP_CONV_FILTER_GRAD,
      .kernel = conv_kernel,
      .prepare = conv_prepare,
      .release = conv_release,
      .trial = { { "yxs", "jid" }, "uvsd", MTF_SLOW } },
    { .kernel = NULL },
};
