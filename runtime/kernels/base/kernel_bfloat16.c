// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_bfloat16.h"

#include "runtime/kernels/base/kernel_nest.h"

MTF_EACH_VECTOR_UNIT void mtf_bf16_widen(float *out, const uint16_t *in, int64_t n, int64_t step) {
    if (step == 1) {
        MTF_INDEPENDENT
        for (int64_t i = 0; i < n; i++)
            out[i] = mtf_bf16_wide(in[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = mtf_bf16_wide(in[i * step]);
}

MTF_EACH_VECTOR_UNIT void mtf_bf16_round(uint16_t *out, const float *in, int64_t n) {
    MTF_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = mtf_bf16_rounded(in[i]);
}

bool mtf_operand_is_narrow(const MtfOperand *operand) {
    return operand->dtype != mtf_dtype_wide(operand->dtype);
}

MTF_EACH_VECTOR_UNIT static void round_to_f32(float *out, const double *in, int64_t n) {
    MTF_INDEPENDENT
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)in[i];
}

void mtf_operand_convert(const MtfOperand *out, const MtfOperand *in) {
    int64_t n = mtf_operand_elements(out);
    if (out->dtype == in->dtype && n > 0)
        memmove(out->data, in->data, (size_t)(n * mtf_dtype_bytes(out->dtype)));
    else if (in->dtype == MTF_F64)
        round_to_f32(out->data, in->data, n);
    else if (out->dtype == MTF_BF16)
        mtf_bf16_round(out->data, in->data, n);
    else
        mtf_bf16_widen(out->data, in->data, n, 1);
}

MtfOperand mtf_kernel_sums(const MtfKernelCall *call) {
    MtfOperand sums = call->outputs[0];
    bool wide = sums.dtype == MTF_F32 && call->scratch_bytes > 0; /* MTF_SCRATCH_WIDE_SUMS */
    if (mtf_operand_is_narrow(&sums) || wide) {
        sums.dtype = wide ? MTF_F64 : mtf_dtype_wide(sums.dtype);
        sums.data = call->scratch;
    }
    return sums;
}

void mtf_kernel_store_sums(const MtfKernelCall *call, const MtfOperand *sums) {
    if (sums->dtype != call->outputs[0].dtype)
        mtf_operand_convert(&call->outputs[0], sums);
}
