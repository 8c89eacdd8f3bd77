// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef MTF_VECTOR_UNITS_H
#define MTF_VECTOR_UNITS_H

/* Compiles a function once for each vector unit and picks one when the program starts. Only for
 * loops of minima, comparisons and sums term by term, whose results are the same on all of them. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__clang__)
#define MTF_FOR_EACH_UNIT \
    __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#else
#define MTF_FOR_EACH_UNIT
#endif

#endif
