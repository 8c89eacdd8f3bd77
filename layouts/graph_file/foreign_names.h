// SPDX-License-Identifier: GPL-3.0-or-later
/* What operations of other languages are here: PyTorch's, TensorFlow's, JAX's and ONNX's names. */
#ifndef MTF_FOREIGN_NAMES_H
#define MTF_FOREIGN_NAMES_H

/* What would do in the place of an operation that is not one here, a piece of a sentence: `; use silu`,
 * ` (did you mean "softmax"?)` where one of ours is near, or what else there is. Free with g_free. */
char *mtf_operation_hint(const char *name);

#endif
