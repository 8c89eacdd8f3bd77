// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/rows/kernel_rotary.h"

#include "layouts/kernel_work/rotary_angles.h"
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_nest.h"

#include <math.h>

/* Pairs whose sines and cosines are kept at once. */
#define PAIRS 128

/* Pairs `first` … `first` + `n` of one position. */
typedef struct {
    int64_t position; /* that the sines and cosines belong to; INT64_MIN: none yet */
    int64_t length;   /* of the text that the frequencies are for */
    int64_t first, n, rotated;
    double frequency[PAIRS], sine[PAIRS], cosine[PAIRS];
} Angles;

/* Where the elements of a pair lie: number i at i step, its partner `apart` further. */
typedef struct {
    int64_t step, apart;
    int64_t rotated, features;
    int64_t along; /* stride of the features in elements */
} Pairs;

/* Frequencies in a text of this length. */
static void angles_within(Angles *angles, const MtfAttributes *a, int64_t length) {
    angles->position = INT64_MIN;
    angles->length = length;
    mtf_rotary_frequencies(a, angles->rotated, length, angles->first, angles->n, angles->frequency);
}

static void angles_begin(Angles *angles, const MtfAttributes *a, int64_t first, int64_t rotated) {
    angles->first = first;
    angles->n = MIN(PAIRS, rotated / 2 - first);
    angles->rotated = rotated;
    angles_within(angles, a, 0);
}

static void angles_at(Angles *angles, const MtfAttributes *a, int64_t position, int64_t length) {
    if (angles->length != length)
        angles_within(angles, a, length);
    if (angles->position == position)
        return;
    angles->position = position;
    for (int64_t i = 0; i < angles->n; i++) {
        double u = a->angle * (double)position * angles->frequency[i];
        angles->sine[i] = a->gain * sin(u);
        angles->cosine[i] = a->gain * cos(u);
    }
}

#define DEFINE_TURN(T, W, NAME, WIDE, STORED)                                                      \
    static void turn_##NAME(void *out, const void *in, const Pairs *pairs, const Angles *angles) { \
        T *y = out;                                                                                \
        const T *x = in;                                                                           \
        for (int64_t i = 0; i < angles->n; i++) {                                                  \
            int64_t left = (angles->first + i) * pairs->step, right = left + pairs->apart;         \
            W a = WIDE(x[left]), b = WIDE(x[right]);                                               \
            W s = (W)angles->sine[i], c = (W)angles->cosine[i];                                    \
            y[left] = STORED(a * c - b * s);                                                       \
            y[right] = STORED(b * c + a * s);                                                      \
        }                                                                                          \
    }

#define SAME(x) (x)
DEFINE_TURN(float, float, f32, SAME, SAME)
DEFINE_TURN(double, double, f64, SAME, SAME)
DEFINE_TURN(uint16_t, float, bf16, mtf_bf16_wide, mtf_bf16_rounded)

typedef void (*Turn)(void *, const void *, const Pairs *, const Angles *);

static Turn turn_of(MtfDtype dtype) {
    return dtype == MTF_F64 ? turn_f64 : dtype == MTF_BF16 ? turn_bf16 : turn_f32;
}

static Pairs pairs_of(const MtfOperand *out, const MtfAttributes *a) {
    int at = mtf_operand_find(out, a->dimension);
    int64_t stride = mtf_operand_stride(out, at), features = out->size[at];
    int64_t rotated = a->rotated > 0 ? (int64_t)a->rotated : features;
    bool adjacent = a->adjacent != 0;
    return (Pairs){ .step = adjacent ? 2 * stride : stride,
                    .apart = adjacent ? stride : rotated / 2 * stride,
                    .rotated = rotated,
                    .features = features,
                    .along = stride };
}

/* The features' dimension makes no loop; positions make the outermost. */
static void nest_begin(MtfNest *nest, const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0];
    const MtfAttributes *a = &call->operation->attributes;
    MtfOperand rest = mtf_operand_without(out, a->dimension);
    MtfOperand others = mtf_operand_without(&rest, a->position);
    mtf_nest_init(nest);
    mtf_nest_add_loops_lacking(nest, &rest, &others);
    mtf_nest_add_loops(nest, &others);
    mtf_nest_add(nest, out);
    mtf_nest_add(nest, &call->inputs[0]);
    mtf_nest_add_position(nest, out, a->position);
    for (int k = 1; k < call->operation->n_inputs; k++)
        mtf_nest_add(nest, &call->inputs[k]);
}

/* Input `k`, 1 or 2, at turn `i` of the nest. */
static int64_t place_at(const MtfKernelCall *call, const MtfNest *nest, int k, int64_t i) {
    return ((const int32_t *)call->inputs[k].data)[mtf_nest_at(nest, k + 2, i)];
}

/* Where the text at hand begins: turn `i` of the nest. */
static int64_t first_position(const MtfKernelCall *call, const MtfNest *nest, int64_t i) {
    return call->operation->n_inputs < 2 ? 0 : place_at(call, nest, 1, i);
}

/* How long it is with the last place at hand, which an input says, or is the dimension's; lengths for
 * which frequencies are the same may be one. */
static int64_t text_length(const MtfKernelCall *call, const MtfNest *nest, int64_t i) {
    const MtfAttributes *a = &call->operation->attributes;
    if (!mtf_rotary_follows_length(a))
        return 0;
    int64_t last = call->operation->n_inputs > 2 ? place_at(call, nest, 2, i)
                                                 : mtf_graph_size(call->graph, a->position) - 1;
    int64_t length = first_position(call, nest, i) + last + 1;
    return (double)length <= a->context ? 0 : a->growth != 0 ? length : (int64_t)a->context + 1;
}

/* Pairs `first` and on at all positions. */
static void turn_pairs(const MtfKernelCall *call, const Pairs *pairs, int64_t first) {
    const MtfOperand *out = &call->outputs[0], *in = &call->inputs[0];
    const MtfAttributes *a = &call->operation->attributes;
    Turn turn = turn_of(out->dtype);
    Angles angles;
    MtfNest nest;
    angles_begin(&angles, a, first, pairs->rotated);
    nest_begin(&nest, call);
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest))
        for (int64_t i = 0; i < nest.count; i++) {
            int64_t begin = first_position(call, &nest, i);
            int64_t length = text_length(call, &nest, i);
            angles_at(&angles, a, begin + mtf_nest_at(&nest, 2, i), length);
            turn(mtf_operand_at(out, mtf_nest_at(&nest, 0, i)),
                 mtf_operand_at(in, mtf_nest_at(&nest, 1, i)), pairs, &angles);
        }
}

/* Features that are not rotated stay as they are. */
static void copy_rest(const MtfKernelCall *call, const Pairs *pairs) {
    const MtfOperand *out = &call->outputs[0], *in = &call->inputs[0];
    int64_t bytes = mtf_dtype_bytes(out->dtype);
    MtfNest nest;
    nest_begin(&nest, call);
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest))
        for (int64_t i = 0; i < nest.count; i++)
            for (int64_t f = pairs->rotated; f < pairs->features; f++)
                memmove(mtf_operand_at(out, mtf_nest_at(&nest, 0, i) + f * pairs->along),
                        mtf_operand_at(in, mtf_nest_at(&nest, 1, i) + f * pairs->along),
                        (size_t)bytes);
}

static void rotary_kernel(const MtfKernelCall *call) {
    Pairs pairs = pairs_of(&call->outputs[0], &call->operation->attributes);
    for (int64_t first = 0; first < pairs.rotated / 2; first += PAIRS)
        turn_pairs(call, &pairs, first);
    if (pairs.rotated < pairs.features && call->outputs[0].data != call->inputs[0].data)
        copy_rest(call, &pairs);
}

const MtfKernelRow mtf_rotary_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_ROTARY, rotary_kernel, { "cpf" }, NULL, MTF_FIRST_FRESH),
    { .kernel = NULL },
};
