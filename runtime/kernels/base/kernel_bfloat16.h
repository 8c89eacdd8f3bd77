// SPDX-License-Identifier: GPL-3.0-or-later
/* bfloat16, the upper half of a float32: 8 bits of exponent, 8 of precision. Kernels compute in
 * float32; what is stored narrow is widened block by block as it is read, and rounded block by
 * block, to the nearest and ties to even, as it is written:
 *
 *     float32   s eeeeeeee mmmmmmm|mmmmmmmmmmmmmmmm      the lower half rounds into the upper
 *     bfloat16  s eeeeeeee mmmmmmm
 *
 * Results that are added up piece by piece live in float32 in the call's scratch until they are
 * complete, so that each is rounded once; and so do float32 sums of many rows, in float64. */
#ifndef MTF_KERNEL_BFLOAT16_H
#define MTF_KERNEL_BFLOAT16_H

#include "runtime/kernels/base/kernel.h"
#include "runtime/kernels/base/kernel_math.h"

MTF_INLINE float mtf_bf16_wide(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* A NaN stays one (its upper half might be an infinity's). */
MTF_INLINE uint16_t mtf_bf16_rounded(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
    return (uint16_t)((x != x ? bits | 0x400000U : rounded) >> 16);
}

/* out[i] = in[i step]; and the other way round, out[i] = in[i]. */
void mtf_bf16_widen(float *out, const uint16_t *in, int64_t n, int64_t step);
void mtf_bf16_round(uint16_t *out, const float *in, int64_t n);

/* Whether sums of the operand's type are kept in another. */
bool mtf_operand_is_narrow(const MtfOperand *operand);

/* Copies elements between operands of the same local shape, either of which may be bfloat16 while
 * the other is float32, or `in` float64 while `out` is float32. */
void mtf_operand_convert(const MtfOperand *out, const MtfOperand *in);

/* Where a kernel adds up its first output: the output itself, or the same slice in the call's scratch,
 * in float32 where that is bfloat16, in float64 where it is float32 and there is scratch for it
 * (MTF_WIDE_SUMS); and afterwards the way back. */
MtfOperand mtf_kernel_sums(const MtfKernelCall *call);
void mtf_kernel_store_sums(const MtfKernelCall *call, const MtfOperand *sums);

#endif
