// SPDX-License-Identifier: GPL-3.0-or-later
/* Functions the compiler can put in a vector loop: no branches, no tables, no calls. The C
 * library's are as exact but take one number at a time. The bits may differ between processors with
 * and without fused multiply-add, never between two runs on one.
 *
 *     exp   x = n ln 2 + r with |r| <= ln 2 / 2, exp x = 2^n p(r); ln 2 is taken in two parts.
 *           Overflow gives infinity. Underflow gives 0; in float64, where 2^n comes as two factors,
 *           denormals first. Within 1 unit in the last place in float32, 2 in float64
 *     tanh  an odd polynomial or rational near 0 (Cephes), 1 - 2 / (exp 2|x| + 1) elsewhere */
#ifndef MTF_KERNEL_MATH_H
#define MTF_KERNEL_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Compiles a function once for each vector unit and picks one when the program starts. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__clang__)
#define MTF_EACH_VECTOR_UNIT \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MTF_EACH_VECTOR_UNIT
#endif

/* An inlined helper of such functions. */
#define MTF_INLINE static inline __attribute__((always_inline))

/* For loops over vectors that are written as such: what a function's registers hold must be known where it is
 * compiled, since compilers keep larger vectors in memory and put them together element by element. A file of
 * such loops (.inc) is included for lines of 64 bytes, for halves and for quarters of them; what mtf_vector_bytes
 * says is called. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__) && \
    !defined(__AVX2__)
#define MTF_UNIT_OF_LINES __attribute__((target("arch=x86-64-v4")))
#define MTF_UNIT_OF_HALVES __attribute__((target("arch=x86-64-v3")))
#define MTF_HAS_LINES                                                            \
    (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && \
     __builtin_cpu_supports("avx512dq"))
#define MTF_HAS_HALVES                                                  \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && \
     __builtin_cpu_supports("bmi2"))
#else /* as all is compiled */
#define MTF_UNIT_OF_LINES
#define MTF_UNIT_OF_HALVES
#if defined(__AVX512VL__)
#define MTF_HAS_LINES 1
#else
#define MTF_HAS_LINES 0
#endif
#if defined(__AVX2__)
#define MTF_HAS_HALVES 1
#else
#define MTF_HAS_HALVES 0
#endif
#endif

MTF_INLINE int mtf_vector_bytes(void) {
    return MTF_HAS_LINES ? 64 : MTF_HAS_HALVES ? 32 : 16;
}

/* Says that the turns of the following loop do not depend on each other: an output is either an
 * input's very memory, read and written at the same element, or elsewhere. */
#if defined(__clang__)
#define MTF_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MTF_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Adding this and subtracting it again rounds to an integer, which then also stands in the low
 * bits of the sum. */
#define MTF_ROUNDER_F32 12582912.0F        /* 1.5 * 2^23 */
#define MTF_ROUNDER_F64 6755399441055744.0 /* 1.5 * 2^52 */

/* 2^n, given n + MTF_ROUNDER. */
MTF_INLINE double mtf_power_of_two_f64(double rounded) {
    uint64_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    bits = (bits << 52) + (UINT64_C(1023) << 52);
    memcpy(&rounded, &bits, sizeof bits);
    return rounded;
}

/* 2^n goes straight into the exponent of p, which is between 0.7 and 1.5: the sum overflows into
 * neither sign nor zero while the result is a normal number. */
MTF_INLINE float mtf_exp_f32(float x) {
    float rounded = x * 1.44269504F + MTF_ROUNDER_F32, n = rounded - MTF_ROUNDER_F32;
    float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
    float p = 1.9875691500e-4F; /* Cephes expf */
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = (p * (r * r) + r) + 1.0F;
    uint32_t exponent, bits;
    memcpy(&exponent, &rounded, sizeof exponent);
    memcpy(&bits, &p, sizeof bits);
    bits += exponent << 23;
    memcpy(&p, &bits, sizeof p);
    p = x < 88.7228394F ? p : x + INFINITY; /* NaN stays one */
    return x < -87.3365402F ? 0.0F : p;
}

MTF_INLINE double mtf_exp_f64(double x) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    double n = (x * 1.44269504088896340736 + MTF_ROUNDER_F64) - MTF_ROUNDER_F64;
    double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0; /* the series; r^14 / 14! is below 5e-18 */
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = (p * (r * r) + r) + 1.0;
    double half = n * 0.5 + MTF_ROUNDER_F64;
    double rest = (n - (half - MTF_ROUNDER_F64)) + MTF_ROUNDER_F64;
    return p * mtf_power_of_two_f64(half) * mtf_power_of_two_f64(rest);
}

MTF_INLINE float mtf_tanh_f32(float x) {
    float z = x * x;
    float p = -5.70498872745e-3F;
    p = p * z + 2.06390887954e-2F;
    p = p * z - 5.37397155531e-2F;
    p = p * z + 1.33314422036e-1F;
    p = p * z - 3.33332819422e-1F;
    float small = p * z * x + x;
    float large = 1.0F - 2.0F / (mtf_exp_f32(2.0F * fabsf(x)) + 1.0F);
    return fabsf(x) < 0.625F ? small : copysignf(large, x);
}

MTF_INLINE double mtf_tanh_f64(double x) {
    double z = x * x;
    double p =
        (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
    double q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z +
               4.84406305325125486048e3;
    double small = x * z * (p / q) + x;
    double large = 1.0 - 2.0 / (mtf_exp_f64(2.0 * fabs(x)) + 1.0);
    return fabs(x) < 0.625 ? small : copysign(large, x);
}

#endif
