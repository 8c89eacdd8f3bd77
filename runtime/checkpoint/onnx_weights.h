// SPDX-License-Identifier: GPL-3.0-or-later
/* The initial values of an ONNX file as a folder of stored tensors: where each lies, in the file itself
 * or in those beside it that it names. */
#ifndef MTF_ONNX_WEIGHTS_H
#define MTF_ONNX_WEIGHTS_H

#include "runtime/checkpoint/published_folder.h"

/* Collective. Tensors whose elements do not lie one behind the other (integers in variable-length
 * form, which no model of floats has) are left out. Fails (bad input) where the file is none, or names
 * one that is too short, is missing, or lies elsewhere. */
MtfPublishedFolder *mtf_onnx_weights_open(MPI_Comm control, const char *path, GError **error);

#endif
