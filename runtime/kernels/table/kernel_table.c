// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel.h"

#include "runtime/kernels/base/kernel_map.h"
#include "runtime/kernels/base/kernel_move.h"
#include "runtime/kernels/products/kernel_einsum.h"
#include "runtime/kernels/products/kernel_experts.h"
#include "runtime/kernels/products/kernel_quantized.h"
#include "runtime/kernels/rows/kernel_attention.h"
#include "runtime/kernels/rows/kernel_cache.h"
#include "runtime/kernels/rows/kernel_lookup.h"
#include "runtime/kernels/rows/kernel_rotary.h"
#include "runtime/kernels/rows/kernel_routing.h"
#include "runtime/kernels/rows/kernel_shape.h"
#include "runtime/kernels/windows/kernel_conv.h"
#include "runtime/kernels/windows/kernel_pool.h"

static const MtfKernel kernels[MTF_OPERATIONS] = {
    [MTF_OP_EINSUM] = mtf_kernel_einsum,
    [MTF_OP_ADD] = mtf_kernel_add,
    [MTF_OP_SUBTRACT] = mtf_kernel_map,
    [MTF_OP_MULTIPLY] = mtf_kernel_map,
    [MTF_OP_DIVIDE] = mtf_kernel_map,
    [MTF_OP_MAXIMUM] = mtf_kernel_map,
    [MTF_OP_MINIMUM] = mtf_kernel_map,
    [MTF_OP_EQUAL] = mtf_kernel_map,
    [MTF_OP_LESS] = mtf_kernel_map,
    [MTF_OP_LESS_EQUAL] = mtf_kernel_map,
    [MTF_OP_WHERE] = mtf_kernel_map,
    [MTF_OP_MODULO] = mtf_kernel_map,
    [MTF_OP_POWER] = mtf_kernel_map,
    [MTF_OP_LOGICAL_NOT] = mtf_kernel_map,
    [MTF_OP_RAISE] = mtf_kernel_map,
    [MTF_OP_CLIP] = mtf_kernel_map,
    [MTF_OP_LEAKY_RELU] = mtf_kernel_map,
    [MTF_OP_ELU] = mtf_kernel_map,
    [MTF_OP_GELU_EXACT] = mtf_kernel_map,
    [MTF_OP_SOFTPLUS] = mtf_kernel_map,
    [MTF_OP_SIN] = mtf_kernel_map,
    [MTF_OP_COS] = mtf_kernel_map,
    [MTF_OP_ERF] = mtf_kernel_map,
    [MTF_OP_FLOOR] = mtf_kernel_map,
    [MTF_OP_GELU_EXACT_GRAD] = mtf_kernel_map,
    [MTF_OP_SCALE] = mtf_kernel_map,
    [MTF_OP_RELU] = mtf_kernel_map,
    [MTF_OP_GELU] = mtf_kernel_map,
    [MTF_OP_SILU] = mtf_kernel_map,
    [MTF_OP_TANH] = mtf_kernel_map,
    [MTF_OP_SIGMOID] = mtf_kernel_map,
    [MTF_OP_EXP] = mtf_kernel_map,
    [MTF_OP_LOG] = mtf_kernel_map,
    [MTF_OP_SQRT] = mtf_kernel_map,
    [MTF_OP_RSQRT] = mtf_kernel_map,
    [MTF_OP_SQUARE] = mtf_kernel_map,
    [MTF_OP_NEGATE] = mtf_kernel_map,
    [MTF_OP_ABS] = mtf_kernel_map,
    [MTF_OP_SIGN] = mtf_kernel_map,
    [MTF_OP_REDUCE_SUM] = mtf_kernel_reduce,
    [MTF_OP_REDUCE_MEAN] = mtf_kernel_mean,
    [MTF_OP_REDUCE_MAX] = mtf_kernel_reduce,
    [MTF_OP_RENAME] = mtf_kernel_rename,
    [MTF_OP_TRANSPOSE] = mtf_kernel_copy,
    [MTF_OP_RESHAPE] = mtf_kernel_rename,
    [MTF_OP_RESAMPLE] = mtf_kernel_resample,
    [MTF_OP_CONCAT] = mtf_kernel_concat,
    [MTF_OP_LOOP_BEGIN] = mtf_kernel_loop_begin,
    [MTF_OP_LOOP_NEXT] = mtf_kernel_loop_next,
    [MTF_OP_LOOP_SLICE] = mtf_kernel_loop_slice,
    [MTF_OP_LOOP_STACK] = mtf_kernel_loop_stack,
    [MTF_OP_RANDOM_UNIFORM] = mtf_kernel_random_uniform,
    [MTF_OP_RANDOM_NORMAL] = mtf_kernel_random_normal,
    [MTF_OP_CONV] = mtf_kernel_conv,
    [MTF_OP_CONV_TRANSPOSE] = mtf_kernel_conv,
    [MTF_OP_CONV_FILTER_GRAD] = mtf_kernel_conv,
    [MTF_OP_MAX_POOL] = mtf_kernel_max_pool,
    [MTF_OP_AVERAGE_POOL] = mtf_kernel_average_pool,
    [MTF_OP_MAX_POOL_GRAD] = mtf_kernel_max_pool_grad,
    [MTF_OP_AVERAGE_POOL_GRAD] = mtf_kernel_average_pool_grad,
    [MTF_OP_CUMULATIVE_SUM] = mtf_kernel_cumulative_sum,
    [MTF_OP_TOP_K] = mtf_kernel_top_k,
    [MTF_OP_BROADCAST] = mtf_kernel_copy,
    [MTF_OP_CAST] = mtf_kernel_cast,
    [MTF_OP_STOP_GRADIENT] = mtf_kernel_copy,
    [MTF_OP_TO_HOST] = mtf_kernel_copy,
    [MTF_OP_FROM_HOST] = mtf_kernel_copy,
    [MTF_OP_IN_TRAIN_PHASE] = mtf_kernel_in_train_phase,
    [MTF_OP_CONSTANT] = mtf_kernel_constant,
    [MTF_OP_RANGE] = mtf_kernel_range,
    [MTF_OP_DROPOUT] = mtf_kernel_dropout,
    [MTF_OP_CAUSAL_MASK] = mtf_kernel_causal_mask,
    [MTF_OP_ATTENTION] = mtf_kernel_attention,
    [MTF_OP_ATTENTION_FURTHER] = mtf_kernel_attention_further,
    [MTF_OP_ROTARY] = mtf_kernel_rotary,
    [MTF_OP_EMBEDDING] = mtf_kernel_embedding,
    [MTF_OP_SLOTS] = mtf_kernel_slots,
    [MTF_OP_SLOT_IDS] = mtf_kernel_slot_ids,
    [MTF_OP_DISPATCH] = mtf_kernel_dispatch,
    [MTF_OP_COMBINE] = mtf_kernel_combine,
    [MTF_OP_EXPERT_EINSUM] = mtf_kernel_expert_einsum,
    [MTF_OP_SUM_EXP] = mtf_kernel_reduce,
    [MTF_OP_SOFTMAX_APPLY] = mtf_kernel_map,
    [MTF_OP_VARIANCE] = mtf_kernel_mean,
    [MTF_OP_NORMALIZE] = mtf_kernel_map,
    [MTF_OP_LABEL_LOGIT] = mtf_kernel_label_logit,
    [MTF_OP_CROSS_ENTROPY] = mtf_kernel_map,
    [MTF_OP_RELU_GRAD] = mtf_kernel_map,
    [MTF_OP_GELU_GRAD] = mtf_kernel_map,
    [MTF_OP_SILU_GRAD] = mtf_kernel_map,
    [MTF_OP_TANH_GRAD] = mtf_kernel_map,
    [MTF_OP_SIGMOID_GRAD] = mtf_kernel_map,
    [MTF_OP_CAUSAL_ZERO] = mtf_kernel_causal_zero,
    [MTF_OP_ATTENTION_GRAD] = mtf_kernel_attention_grad,
    [MTF_OP_EMBEDDING_GRAD] = mtf_kernel_embedding_grad,
    [MTF_OP_COMBINE_GATE_GRAD] = mtf_kernel_combine_gate_grad,
    [MTF_OP_EXPERT_EINSUM_GRAD] = mtf_kernel_expert_einsum_grad,
    [MTF_OP_SOFTMAX_GRAD] = mtf_kernel_map,
    [MTF_OP_NORMALIZE_DOT] = mtf_kernel_reduce,
    [MTF_OP_NORMALIZE_SCALE_GRAD] = mtf_kernel_reduce,
    [MTF_OP_NORMALIZE_GRAD] = mtf_kernel_map,
    [MTF_OP_CROSS_ENTROPY_GRAD] = mtf_kernel_cross_entropy_grad,
    [MTF_OP_ACCUMULATE] = mtf_kernel_accumulate,
    [MTF_OP_CLIP_FACTOR] = mtf_kernel_map,
    [MTF_OP_LEARNING_RATE] = mtf_kernel_learning_rate,
    [MTF_OP_SGD] = mtf_kernel_map,
    [MTF_OP_MOMENTUM] = mtf_kernel_map,
    [MTF_OP_LION] = mtf_kernel_map,
    [MTF_OP_ADAM] = mtf_kernel_map,
    [MTF_OP_LAMB_DIRECTION] = mtf_kernel_map,
    [MTF_OP_LAMB_APPLY] = mtf_kernel_map,
    [MTF_OP_ADAFACTOR_MOMENT] = mtf_kernel_map,
    [MTF_OP_ADAFACTOR_DIRECTION] = mtf_kernel_map,
    [MTF_OP_ADAFACTOR_APPLY] = mtf_kernel_map,
    [MTF_OP_CACHE_UPDATE] = mtf_kernel_cache_update,
    [MTF_OP_QUANTIZED_EINSUM] = mtf_kernel_quantized_einsum,
    [MTF_OP_CACHED_ATTENTION] = mtf_kernel_cached_attention,
};

MtfKernel mtf_kernel(int operation_kind) {
    return kernels[operation_kind];
}

/* Kernels that prepare their calls. */
typedef struct {
    void *(*prepare)(const MtfKernelCall *call, int64_t *workspace_bytes);
    void (*release)(void *prepared);
} Preparation;

static const Preparation preparations[MTF_OPERATIONS] = {
    [MTF_OP_EINSUM] = { mtf_einsum_prepare, mtf_einsum_release },
    [MTF_OP_QUANTIZED_EINSUM] = { mtf_quantized_prepare, mtf_quantized_release },
    [MTF_OP_CONV] = { mtf_conv_prepare, mtf_conv_release },
    [MTF_OP_CONV_TRANSPOSE] = { mtf_conv_prepare, mtf_conv_release },
    [MTF_OP_CONV_FILTER_GRAD] = { mtf_conv_prepare, mtf_conv_release },
};

int64_t mtf_kernel_prepare(MtfKernelCall *call) {
    int64_t workspace_bytes = 0;
    const Preparation *preparation = &preparations[call->operation->kind];
    if (preparation->prepare != NULL)
        call->prepared = preparation->prepare(call, &workspace_bytes);
    return workspace_bytes;
}

void mtf_kernel_release(MtfKernelCall *call) {
    if (call->prepared != NULL)
        preparations[call->operation->kind].release(call->prepared);
    call->prepared = NULL;
}
