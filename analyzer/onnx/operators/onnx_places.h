// SPDX-License-Identifier: GPL-3.0-or-later
/* Places that are given as numbers, as several operators of ONNX read at them. Values belong to the
 * translation; NULL where it has failed. */
#ifndef MTF_ONNX_PLACES_H
#define MTF_ONNX_PLACES_H

#include "analyzer/onnx/onnx_value.h"

/* Indices into `rows` rows; those below 0 count from the end; those of a text never are. */
MtfOnnxValue *mtf_onnx_from_either_end(MtfOnnxTranslation *t, MtfOnnxValue *ids, int64_t rows);

/* x [B, N, R], or what reshapes to these sizes, at places [B, M]: [B, M, R], or where B is 1 [M, R]. */
MtfOnnxValue *mtf_onnx_read_rows(MtfOnnxTranslation *t, MtfOnnxValue *x, MtfOnnxValue *places,
                                 const int64_t sizes[3], int64_t m);

#endif
