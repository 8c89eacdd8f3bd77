// SPDX-License-Identifier: GPL-3.0-or-later
/* What the operators of ONNX are translated into: operations of our table on values, whose axes are
 * counted as numpy counts them. Each returns a new value, or NULL once there is an error; NULL among
 * its inputs gives NULL. */
#ifndef MTF_ONNX_STEPS_H
#define MTF_ONNX_STEPS_H

#include "analyzer/onnx/onnx_value.h"

/* The next operation made for the node, and an input of it whose axis k goes by indexes[k]. */
MtfAxisOperation mtf_onnx_begin(MtfOnnxTranslation *t, int kind);
void mtf_onnx_take(MtfOnnxTranslation *t, MtfAxisOperation *operation, const MtfOnnxValue *value,
                   const int *indexes);

/* Sizes of values that are broadcast together; false with an error where they do not go together. */
bool mtf_onnx_broadcast(MtfOnnxTranslation *t, int n, MtfOnnxValue *const *values, int *rank,
                        int64_t *sizes);

/* An operation element by element with numpy's broadcasting. All inputs are brought to the type of
 * the first; the result has it. `attributes` NULL: none. */
MtfOnnxValue *mtf_onnx_map(MtfOnnxTranslation *t, int kind, const MtfAttributes *attributes, int n,
                           MtfOnnxValue *const *inputs);
MtfOnnxValue *mtf_onnx_unary(MtfOnnxTranslation *t, int kind, MtfOnnxValue *x);
MtfOnnxValue *mtf_onnx_binary(MtfOnnxTranslation *t, int kind, MtfOnnxValue *a, MtfOnnxValue *b);
/* A comparison, whose result is a bool. */
MtfOnnxValue *mtf_onnx_truth(MtfOnnxTranslation *t, int kind, MtfOnnxValue *a, MtfOnnxValue *b);
MtfOnnxValue *mtf_onnx_where(MtfOnnxTranslation *t, MtfOnnxValue *condition, MtfOnnxValue *a,
                             MtfOnnxValue *b);

/* factor x + term. */
MtfOnnxValue *mtf_onnx_affine(MtfOnnxTranslation *t, MtfOnnxValue *x, double factor, double term);

/* The nearest whole number, of two the even one. */
MtfOnnxValue *mtf_onnx_round_even(MtfOnnxTranslation *t, MtfOnnxValue *x);

/* A reduction of x (and of `more`, a statistic) over the axes in the mask, which stay as axes of one
 * element. */
MtfOnnxValue *mtf_onnx_reduce(MtfOnnxTranslation *t, int kind, MtfOnnxValue *x, unsigned axes,
                              MtfOnnxValue *more);

/* x over the axes in the mask as shares that add up to 1, and their logarithms. */
MtfOnnxValue *mtf_onnx_softmax(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned axes);
MtfOnnxValue *mtf_onnx_log_softmax(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned axes);

/* (x - mean) scale / sqrt(variance + epsilon) + bias and x scale / sqrt(mean of x^2 + epsilon) over the axes
 * in the mask; scale 1 and bias 0 where they are NULL. */
MtfOnnxValue *mtf_onnx_layer_norm(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned axes,
                                  MtfOnnxValue *scale, MtfOnnxValue *bias, double epsilon);
MtfOnnxValue *mtf_onnx_rms_norm(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned axes,
                                MtfOnnxValue *scale, double epsilon);

/* The sum of products of inputs whose axes have letters, as einsum has them: "ab,bc->ac". A letter of
 * one element goes with any size. */
MtfOnnxValue *mtf_onnx_product(MtfOnnxTranslation *t, const char *letters, int n,
                               MtfOnnxValue *const *inputs);

/* The same elements in another shape, row by row. */
MtfOnnxValue *mtf_onnx_reshape(MtfOnnxTranslation *t, MtfOnnxValue *x, int rank,
                               const int64_t *sizes);

/* Views. */
MtfOnnxValue *mtf_onnx_transpose(MtfOnnxTranslation *t, MtfOnnxValue *x, const int *order);
MtfOnnxValue *mtf_onnx_squeeze(MtfOnnxTranslation *t, MtfOnnxValue *x, unsigned axes);
MtfOnnxValue *mtf_onnx_unsqueeze(MtfOnnxTranslation *t, MtfOnnxValue *x, int rank, unsigned axes);
MtfOnnxValue *mtf_onnx_expand(MtfOnnxTranslation *t, MtfOnnxValue *x, int rank,
                              const int64_t *sizes);

/* x repeated times[i] times along axis i: whole copies one after another or, with `inner`, element by element. */
MtfOnnxValue *mtf_onnx_repeat(MtfOnnxTranslation *t, MtfOnnxValue *x, const int64_t *times,
                              bool inner);

/* Elements start, start + stride, … of an axis, `count` of them. */
MtfOnnxValue *mtf_onnx_slice(MtfOnnxTranslation *t, MtfOnnxValue *x, int axis, int64_t start,
                             int64_t stride, int64_t count);

/* Values one behind the other along an axis. */
MtfOnnxValue *mtf_onnx_concat(MtfOnnxTranslation *t, int axis, int n, MtfOnnxValue *const *inputs);

/* An operation along one axis that keeps the shape (its attribute `dimension`), or changes the size of
 * that axis (`from`, `to`; size > 0). `output` 1: the further result. */
MtfOnnxValue *mtf_onnx_along(MtfOnnxTranslation *t, int kind, MtfAttributes attributes,
                             MtfOnnxValue *x, int axis, int64_t size);

/* Windows over the last `n` axes of x. */
typedef struct {
    int n;
    struct {
        int64_t out, places; /* sizes of the result and within the window */
        int64_t stride, dilation, before, after;
    } axis[MTF_MAX_WINDOWS];
    int kind;            /* conv, conv_transpose or a pool */
    double counted;      /* of average_pool */
    const char *letters; /* of the axes before, as those of products: "nc,mc->nm" */
} MtfOnnxWindows;

/* The operation over windows of x and a filter (NULL for pools). */
MtfOnnxValue *mtf_onnx_windowed(MtfOnnxTranslation *t, const MtfOnnxWindows *windows,
                                MtfOnnxValue *x, MtfOnnxValue *filter);

/* Where what `y` holds stood (int32), as top_k and max_pool give it beside their result. */
MtfOnnxValue *mtf_onnx_element_places(MtfOnnxTranslation *t, MtfOnnxValue *y);

/* 0, 1, 2, … along axis `axis` of `rank`, equal along the others. */
MtfOnnxValue *mtf_onnx_range(MtfOnnxTranslation *t, int type, int rank, const int64_t *sizes,
                             int axis);

/* Numbers drawn by MTF_OP_RANDOM_NORMAL or _UNIFORM, of the type and shape of `like`. */
MtfOnnxValue *mtf_onnx_random(MtfOnnxTranslation *t, int kind, const MtfAttributes *attributes,
                              const MtfOnnxValue *like);

/* Adds a loop of `count` >= 2 iterations, from the last to the first with `reverse`; returns its number. The
 * body is what needs the states and the slices. */
int mtf_onnx_loop(MtfOnnxTranslation *t, int64_t count, bool reverse);

/* A state of the loop, before its first iteration `x`; and after it, when every iteration hands on `next`, as
 * long as the state `alive`, a bool without axes, is true (NULL: in all). */
MtfOnnxValue *mtf_onnx_loop_begin(MtfOnnxTranslation *t, int loop, MtfOnnxValue *x);
MtfOnnxValue *mtf_onnx_loop_next(MtfOnnxTranslation *t, int loop, MtfOnnxValue *state,
                                 MtfOnnxValue *next, MtfOnnxValue *alive);

/* The iteration's element along an axis of x, without that axis; and those of all iterations along a new
 * first one. */
MtfOnnxValue *mtf_onnx_loop_slice(MtfOnnxTranslation *t, int loop, MtfOnnxValue *x, int axis);
MtfOnnxValue *mtf_onnx_loop_stack(MtfOnnxTranslation *t, int loop, MtfOnnxValue *y);

/* table[…, ids, …]: the ids take the place of axis `axis`. */
MtfOnnxValue *mtf_onnx_lookup(MtfOnnxTranslation *t, MtfOnnxValue *table, MtfOnnxValue *ids,
                              int axis);

/* The same for ids that have the table's other axes, too, each row of ids in a row of its own. */
MtfOnnxValue *mtf_onnx_lookup_along(MtfOnnxTranslation *t, MtfOnnxValue *table, MtfOnnxValue *ids,
                                    int axis);

#endif
