// SPDX-License-Identifier: GPL-3.0-or-later
/* ONNX files for tests, written piece by piece:
 *
 *     GByteArray *graph = g_byte_array_new();
 *     mtf_make_tensor(graph, "w", MTF_ONNX_FLOAT, "8,4", values);
 *     mtf_make(graph, "x: batch,8; h = MatMul(x,w); y = Softmax(h) axis=1; -> y: batch,4");
 *     GByteArray *model = mtf_make_model(graph, 17); */
#ifndef MTF_TESTS_ONNX_MAKER_H
#define MTF_TESTS_ONNX_MAKER_H

#include "analyzer/onnx/onnx_import.h"

/* Inputs "NAME: SIZES", outputs "-> NAME: SIZES" and nodes "OUTPUTS = OP(INPUTS) ATTRIBUTES" with "; " between them,
 * each as below; of floats, or "NAME: int64 SIZES" or "NAME: bool SIZES". */
void mtf_make(GByteArray *graph, const char *text);

/* An input (field 11) or output (12); sizes are numbers or names. */
void mtf_make_input(GByteArray *graph, uint32_t field, const char *name, int type,
                    const char *sizes);

/* An initial value of type float, int64 or bool, with elements values[0], values[1], … */
void mtf_make_tensor(GByteArray *graph, const char *name, int type, const char *sizes,
                     const double *values);

/* An initial value of float with elements 0, 1, … 6, 0, 1, … */
void mtf_make_weight(GByteArray *graph, const char *name, int64_t rows, int64_t columns);

/* A node; names are separated by commas, attributes written "axis=1 perm=0,2,1 alpha=0.5". */
void mtf_make_node(GByteArray *graph, const char *op, const char *inputs, const char *outputs,
                   const char *attributes);

/* A node around graphs, which it takes over: "then_branch,else_branch" of `inner`. */
void mtf_make_node_around(GByteArray *graph, const char *op, const char *inputs,
                          const char *outputs, const char *names, GByteArray *const *inner);

/* The whole file; takes `graph` over. */
GByteArray *mtf_make_model(GByteArray *graph, int opset);

/* Imports a made graph (takes it) as the file "m.onnx" of opset 17. */
MtfGraph *mtf_make_import(GByteArray *graph, const MtfOnnxImport *request, GError **error);

/* "f32[batch:2, features:4]" of an imported tensor, until the next call. */
const char *mtf_make_format(const MtfGraph *graph, const char *tensor);

#endif
