// SPDX-License-Identifier: GPL-3.0-or-later
/* The inputs of an ONNX model: which sizes they have, how data reach them, and what stands for those
 * that no data feed. */
#ifndef MTF_ONNX_INPUTS_H
#define MTF_ONNX_INPUTS_H

#include "analyzer/onnx/onnx_import.h"
#include "analyzer/onnx/onnx_value.h"

/* Makes values of all inputs that are no initial values. False with t->error. */
bool mtf_onnx_make_inputs(MtfOnnxTranslation *t, const MtfOnnxImport *import);

#endif
