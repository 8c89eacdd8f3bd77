// SPDX-License-Identifier: GPL-3.0-or-later
/* What operators other than those of shapes ask of shapes: values that a file holds for the batch it was
 * written with, where another is asked for. */
#ifndef MTF_ONNX_SHAPES_H
#define MTF_ONNX_SHAPES_H

#include "analyzer/onnx/onnx_value.h"

/* What the file holds for its one example, or alike for each of several (a class's token, say), for all examples that
 * stand beside it, where another batch is asked for; else x. The value belongs to the
 * translation; NULL where it has failed. */
MtfOnnxValue *mtf_onnx_for_all_examples(MtfOnnxTranslation *t, MtfOnnxValue *x,
                                        MtfOnnxValue *const *others, int n);

#endif
