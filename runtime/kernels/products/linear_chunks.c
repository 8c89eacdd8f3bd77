// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/linear_chunks.h"

#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/products/kernel_product.h"

#include <string.h>

/* Rows of a triangular system that are solved one by one; what lies before them goes by products. */
#define BLOCK 16

#define T float
#define GEMM MtfGemm
#define ROUTINE mtf_openblas_gemm
#define EXP mtf_exp_f32
#define NAME(name) name##_f32
#include "runtime/kernels/products/linear_chunks.inc"
#undef T
#undef GEMM
#undef ROUTINE
#undef EXP
#undef NAME

#define T double
#define GEMM MtfWideGemm
#define ROUTINE mtf_openblas_wide_gemm
#define EXP mtf_exp_f64
#define NAME(name) name##_f64
#include "runtime/kernels/products/linear_chunks.inc"
#undef T
#undef GEMM
#undef ROUTINE
#undef EXP
#undef NAME
