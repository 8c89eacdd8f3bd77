// SPDX-License-Identifier: GPL-3.0-or-later
/* What an operation's row asks of its inputs and attributes, and what follows for its outputs. */
#ifndef MTF_LAYOUTS_OPERATION_CHECK_H
#define MTF_LAYOUTS_OPERATION_CHECK_H

#include "layouts/graph/operation_table.h"

/* Checks `operation` against its row and infers the outputs. Used by mtf_graph_add_operation. */
bool mtf_operation_infer(const MtfGraph *graph, const MtfNewOperation *operation, MtfShape *shape,
                         MtfDtype *dtype, GError **error);

/* What one operation is checked with. */
struct MtfOperationCheck {
    const MtfGraph *graph;
    const MtfNewOperation *operation;
    const MtfOperationRow *row;
};

/* Fails with a sentence about the operation; returns false. For the checks of rows. */
bool mtf_check_fail(const MtfOperationCheck *check, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Whether attribute `name` is 0 or 1. */
bool mtf_check_flag(const MtfOperationCheck *check, const char *name, double value, GError **error);

/* Whether "blocks" divide `dim` into equal parts; 0 does. */
bool mtf_check_blocks(const MtfOperationCheck *check, int dim, GError **error);

/* Whether each dimension of `part` is in `whole`; `what` completes "dimension … is ". */
bool mtf_check_within(const MtfOperationCheck *check, const MtfShape *part, const MtfShape *whole,
                      const char *what, GError **error);

/* The operation's input `k`, and a dimension's name. */
static inline const MtfTensor *mtf_check_input(const MtfOperationCheck *check, int k) {
    return mtf_graph_tensor(check->graph, check->operation->inputs[k]);
}
static inline const char *mtf_check_dimension_name(const MtfOperationCheck *check, int dim) {
    return mtf_graph_dimension(check->graph, dim)->name;
}

/* The dimensions of a quantized_einsum's matrix that its scale has: those that x lacks; and whether
 * the matrix of x, w -> result can be one of int8: what x has and the result lacks stands together at
 * its beginning or its end, all else of it in the result alone. */
MtfShape mtf_quantized_channels(const MtfShape *x, const MtfShape *w);
bool mtf_quantized_shapes_fit(const MtfShape *x, const MtfShape *w, const MtfShape *result);

#endif
