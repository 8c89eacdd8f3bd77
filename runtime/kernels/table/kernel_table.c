// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel.h"

#include "runtime/kernels/base/kernel_map.h"
#include "runtime/kernels/base/kernel_move.h"
#include "runtime/kernels/products/kernel_einsum.h"
#include "runtime/kernels/products/kernel_experts.h"
#include "runtime/kernels/products/kernel_linear.h"
#include "runtime/kernels/products/kernel_quantized.h"
#include "runtime/kernels/rows/kernel_attention.h"
#include "runtime/kernels/rows/kernel_cache.h"
#include "runtime/kernels/rows/kernel_lookup.h"
#include "runtime/kernels/rows/kernel_rotary.h"
#include "runtime/kernels/rows/kernel_routing.h"
#include "runtime/kernels/rows/kernel_shape.h"
#include "runtime/kernels/rows/kernel_sort.h"
#include "runtime/kernels/rows/kernel_top_k.h"
#include "runtime/kernels/windows/kernel_conv.h"
#include "runtime/kernels/windows/kernel_pool.h"

/* All lists of rows; each ends with a row without a kernel. */
static const MtfKernelRow *const lists[] = {
    mtf_map_kernels,       mtf_move_kernels,   mtf_shape_kernels,     mtf_lookup_kernels,
    mtf_attention_kernels, mtf_cache_kernels,  mtf_rotary_kernels,    mtf_routing_kernels,
    mtf_einsum_kernels,    mtf_expert_kernels, mtf_quantized_kernels, mtf_conv_kernels,
    mtf_pool_kernels,      mtf_linear_kernels, mtf_sort_kernels,      mtf_top_k_kernels,
};

static const MtfKernelRow *rows[MTF_OPERATIONS];

static const MtfKernelRow *row_of(int kind) {
    static gsize filled;
    if (g_once_init_enter(&filled)) {
        for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
            for (const MtfKernelRow *row = lists[i]; row->kernel != NULL; row++)
                rows[row->kind] = row;
        g_once_init_leave(&filled, 1);
    }
    return rows[kind];
}

MtfKernel mtf_kernel(int operation_kind) {
    const MtfKernelRow *row = row_of(operation_kind);
    return row != NULL ? row->kernel : NULL;
}

const MtfKernelTrial *mtf_kernel_trial(int operation_kind) {
    const MtfKernelRow *row = row_of(operation_kind);
    if (row == NULL || (row->trial.inputs[0] == NULL && row->trial.output == NULL))
        return NULL;
    return &row->trial;
}

int64_t mtf_kernel_prepare(MtfKernelCall *call) {
    int64_t workspace_bytes = 0;
    const MtfKernelRow *row = row_of((int)call->operation->kind);
    if (row->prepare != NULL)
        call->prepared = row->prepare(call, &workspace_bytes);
    return workspace_bytes;
}

void mtf_kernel_release(MtfKernelCall *call) {
    if (call->prepared != NULL)
        row_of((int)call->operation->kind)->release(call->prepared);
    call->prepared = NULL;
}
