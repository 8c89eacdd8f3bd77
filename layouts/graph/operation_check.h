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

/* What single rows ask beyond the rules that all share; rows name them as their `check`. */
bool mtf_check_attention(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_cache_update(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_quantized_einsum(const MtfOperationCheck *check, const MtfShape *shape,
                                GError **error);
bool mtf_check_attention_further(const MtfOperationCheck *check, const MtfShape *shape,
                                 GError **error);
bool mtf_check_cached_attention(const MtfOperationCheck *check, const MtfShape *shape,
                                GError **error);
bool mtf_check_attention_grad(const MtfOperationCheck *check, const MtfShape *shape,
                              GError **error);
bool mtf_check_cast(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_causal(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_constant(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_direction(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_dropout(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_embedding(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_embedding_grad(const MtfOperationCheck *check, const MtfShape *shape,
                              GError **error);
bool mtf_check_expression(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_labels(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_learning_rate(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_range(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_rotary(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_mean(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_variance(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_statistic(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_clip(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_argmax(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_one_hot(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_reshape(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_cumulative_sum(const MtfOperationCheck *check, const MtfShape *shape,
                              GError **error);
bool mtf_check_local_response(const MtfOperationCheck *check, const MtfShape *shape,
                              GError **error);
bool mtf_check_resample(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_concat(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_random(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_top_k(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_slice(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_pad(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_roll(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_select(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_stack(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_slots(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_slot_ids(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_dispatch(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_combine(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_combine_gate_grad(const MtfOperationCheck *check, const MtfShape *shape,
                                 GError **error);
bool mtf_check_expert_einsum(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_expert_einsum_grad(const MtfOperationCheck *check, const MtfShape *shape,
                                  GError **error);
bool mtf_check_conv(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_pool(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_loop_next(const MtfOperationCheck *check, const MtfShape *shape, GError **error);
bool mtf_check_within_first(const MtfOperationCheck *check, const MtfShape *shape, GError **error);

#endif
