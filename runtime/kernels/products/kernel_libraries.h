// SPDX-License-Identifier: GPL-3.0-or-later
/* The libraries that multiply, and the kernels that they chose for this processor when they were
 * loaded: OpenBLAS by the processor's model, which knows none newer than itself, oneDNN by its
 * instructions. */
#ifndef MTF_KERNEL_LIBRARIES_H
#define MTF_KERNEL_LIBRARIES_H

#include <stdbool.h>

/* "Cooperlake", "Prescott": the processor whose kernels OpenBLAS runs (OPENBLAS_CORETYPE). */
const char *mtf_openblas_core(void);

/* Whether OpenBLAS's kernels use no more than SSE, those of before 2011, and those of a later
 * family use AVX2 or AVX-512: what a product can reach follows from that. */
typedef enum { MTF_OPENBLAS_SSE, MTF_OPENBLAS_AVX2, MTF_OPENBLAS_AVX512 } MtfOpenBlasFamily;
MtfOpenBlasFamily mtf_openblas_family(const char *core);

/* "OpenBLAS 0.3.21 with its Cooperlake kernels, oneDNN 2.6.3 for avx512_core_bf16"; free with
 * g_free. */
char *mtf_kernel_libraries_format(void);

/* OpenBLAS chooses once, while it is loaded, and takes a processor that it does not know for one
 * without AVX (0.3.21 runs Prescott's on an Emerald Rapids, a fifth as fast as SkylakeX's). Starts this
 * program again with its arguments and OPENBLAS_CORETYPE set where that happened; returns where it did not,
 * or where the environment names kernels. To be called before MPI and threads of ours start. */
void mtf_kernel_libraries_restart(char **argv);

/* One sentence when OpenBLAS runs SSE kernels on a processor with AVX2, and what to set; NULL when
 * it does not. Free with g_free. */
char *mtf_kernel_libraries_warning(void);

#endif
