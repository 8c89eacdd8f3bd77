// SPDX-License-Identifier: GPL-3.0-or-later
/* What exporters write out in small operators since their version of ONNX has no operator for it, taken as the
 * one operation that it is. Frameworks run it as one kernel, and its gradient as another:
 *
 *     x ──► Div √2 ──► Erf ──► Add 1 ──► Mul ──► Mul ½            gelu; with tanh likewise
 *      ╰──────────────────────────────────╯
 *     x ──► ReduceMean ──► Sub ──► Pow 2 ──► ReduceMean ──► Add ε ──► Sqrt ──► Div ──► Mul w ──► Add b
 *      ╰────────────────────╯╰──────────────────────────────────────────────────╯      a norm over rows
 *
 * The factors of a product, and what is added, may stand in any order. The small operators are translated, too,
 * for whoever else reads them; what nobody reads is no part of the graph. */
#ifndef MTF_ONNX_IDIOMS_H
#define MTF_ONNX_IDIOMS_H

#include "analyzer/onnx/onnx_value.h"

/* The nodes of a model by the names of what they make (MtfOnnxNode, the model's). Free with g_hash_table_unref. */
GHashTable *mtf_onnx_producers(const MtfOnnxModel *model);

/* What a node that ends such a thing gives, whose inputs have been translated; NULL where it ends none, or with
 * an error in `t`. */
MtfOnnxValue *mtf_onnx_idiom(MtfOnnxTranslation *t, GHashTable *producers, const MtfOnnxNode *node);

#endif
