// SPDX-License-Identifier: GPL-3.0-or-later
/* ONNX files as graphs of named dimensions.
 *
 *     model.onnx ──read──► nodes ──translate, work shapes out──► graph of axes ──name──► graph
 *
 * Sizes without a number in the file are given by name, or are the batch (the first of an input) and
 * the length (the second of an input of integers). Initial values become variables, which know where
 * the file has them. */
#ifndef MTF_ONNX_IMPORT_H
#define MTF_ONNX_IMPORT_H

#include "layouts/graph/graph.h"
#include "layouts/graph_file/graph_json.h"
#include "layouts/onnx/onnx_model.h"

/* A loss that an output of the file is. Inputs that it compares with, and those with "label" or "target" in
 * their name, then are what is right. */
#define MTF_ONNX_OWN_LOSS "output"

typedef struct {
    int64_t batch, length; /* 0: standard */
    int64_t standard_batch, standard_length;
    const MtfSizeOverrides *sizes; /* of named sizes; or NULL */
    const GPtrArray *known;        /* MtfOnnxTensor: inputs of known elements; or NULL */
    const char *loss; /* "cross-entropy", "cross-entropy:labels", "output", "output:loss"; or
                         NULL */
} MtfOnnxImport;

/* The graph of a model, without an optimizer. `said` (or NULL) receives sentences. NULL with a
 * bad-input error that names the node. */
MtfGraph *mtf_onnx_import(const MtfOnnxModel *model, const MtfOnnxImport *import, GPtrArray *said,
                          GError **error);

/* Where an output of the model is in the graph: tensor, and for each axis the position of the
 * tensor's dimension, or -1 where all along it are equal. */
typedef struct {
    int tensor;
    int type; /* MtfOnnxType */
    int rank;
    int64_t sizes[MTF_ONNX_MAX_RANK];
    int dims[MTF_ONNX_MAX_RANK];
} MtfOnnxOutput;

/* The same, telling where inputs and outputs are (arrays of MtfOnnxOutput, as many as the model has; inputs
 * that are initial values or known have tensor -1). Free with g_free. */
MtfGraph *mtf_onnx_import_parts(const MtfOnnxModel *model, const MtfOnnxImport *import,
                                GPtrArray *said, MtfOnnxOutput **inputs, MtfOnnxOutput **outputs,
                                GError **error);

#endif
