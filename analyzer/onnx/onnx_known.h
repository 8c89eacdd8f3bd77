// SPDX-License-Identifier: GPL-3.0-or-later
/* Shape arithmetic: steps whose inputs are known are worked out while translating, in double
 * precision (whole numbers of int64 up to 2^53; numbers of type float are rounded to it). Weights stay
 * where they are. */
#ifndef MTF_ONNX_KNOWN_H
#define MTF_ONNX_KNOWN_H

#include "analyzer/onnx/onnx_value.h"

/* Whether steps of the value are worked out: its elements are known, or the file's and no weights. */
bool mtf_onnx_folds(MtfOnnxTranslation *t, MtfOnnxValue *value);
bool mtf_onnx_all_fold(MtfOnnxTranslation *t, int n, MtfOnnxValue *const *values);

/* Element (i0, i1, …) is x's element offset + i0 strides[0] + i1 strides[1] + … */
MtfOnnxValue *mtf_onnx_known_strided(MtfOnnxTranslation *t, const MtfOnnxValue *x, int rank,
                                     const int64_t *sizes, int64_t offset, const int64_t *strides);

/* The strides of a value's own elements. */
void mtf_onnx_strides(int rank, const int64_t *sizes, int64_t *strides);

/* The same elements in another shape. */
MtfOnnxValue *mtf_onnx_known_reshape(MtfOnnxTranslation *t, const MtfOnnxValue *x, int rank,
                                     const int64_t *sizes);

/* An operation element by element on inputs that are broadcast to `like`, whose type the result has.
 * NULL, without an error, for one that is not worked out. */
MtfOnnxValue *mtf_onnx_known_map(MtfOnnxTranslation *t, int kind, const MtfAttributes *attributes,
                                 int n, MtfOnnxValue *const *inputs, const MtfOnnxValue *like);

/* A sum, product, maximum or minimum over axes, which stay; NULL likewise. */
MtfOnnxValue *mtf_onnx_known_reduce(MtfOnnxTranslation *t, int kind, const MtfOnnxValue *x,
                                    unsigned axes);

/* Updates [M, R] in place of elements of x [N, R], each at the place [M, R] or [M, 1] that is known for it; `sizes`
 * are M, N, R, and the result has x's shape. */
MtfOnnxValue *mtf_onnx_known_write(MtfOnnxTranslation *t, const MtfOnnxValue *x,
                                   MtfOnnxValue *places, const MtfOnnxValue *updates,
                                   const int64_t sizes[3]);

/* Known values joined along an axis, looked up by known ids, and turned into another type; the
 * translation owns the results. NULL likewise, for too many of them. */
MtfOnnxValue *mtf_onnx_known_concat(MtfOnnxTranslation *t, int axis, int n,
                                    MtfOnnxValue *const *inputs);
MtfOnnxValue *mtf_onnx_known_lookup(MtfOnnxTranslation *t, const MtfOnnxValue *table,
                                    const MtfOnnxValue *ids, int axis);
MtfOnnxValue *mtf_onnx_known_cast(MtfOnnxTranslation *t, MtfOnnxValue *value, int type);

#endif
