// SPDX-License-Identifier: GPL-3.0-or-later
/* The rate of one large matrix product alone, as a measure for the products of a step. */
#ifndef MTF_GEMM_PEAK_H
#define MTF_GEMM_PEAK_H

#include "layouts/graph/dtype.h"

/* Flop a second of processor time in a product of 512 by 512 by 512, measured in some hundredths of
 * a second with the threads that are set; 0 when memory is short. */
double mtf_gemm_peak(MtfDtype dtype);

#endif
