// SPDX-License-Identifier: GPL-3.0-or-later
/* Small questions about a slice (MtfOperand of kernel.h) that initial values, data and verification
 * ask: how many elements it has, where one of them lies in the whole tensor, what its value is. */
#ifndef MTF_SLICE_H
#define MTF_SLICE_H

#include "runtime/kernels/base/kernel.h"

/* Elements held. */
int64_t mtf_slice_elements(const MtfOperand *slice);

/* The row-major index in the whole tensor of the element at `position` of the slice. */
int64_t mtf_slice_global_index(const MtfOperand *slice, int64_t position);

/* What int8 holds: from -127 to 127, so that the scale of the largest is the same both ways. */
#define MTF_INT8_MOST 127.0

/* One element as a double, whatever its type. */
double mtf_slice_get(const MtfOperand *slice, int64_t position);
void mtf_slice_set(const MtfOperand *slice, int64_t position, double value);

/* The same of the n elements from `position` on. */
void mtf_slice_set_run(const MtfOperand *slice, int64_t position, int64_t n, const double *values);

#endif
