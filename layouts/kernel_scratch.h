// SPDX-License-Identifier: GPL-3.0-or-later
/* How much memory a kernel wants beside its operands. It stands here and not beside the kernels
 * because the arena is laid out, priced and checked against the limit long before any kernel runs.
 * Only einsum wants any: for operands whose storage order no product routine accepts, for indexes
 * that are summed in one operand alone, and for what lies between the products of three or more. */
#ifndef MTF_KERNEL_SCRATCH_H
#define MTF_KERNEL_SCRATCH_H

#include "layouts/operation_table.h"

/* Bytes of scratch the kernel of `operation` needs on a processor that holds sizes[i] points of
 * index i of its iteration space (mtf_operation_iteration). Given the largest sizes over all
 * processors, the result serves each of them. 0 for nearly all operations. */
int64_t mtf_operation_scratch_bytes(const MtfGraph *graph, int operation,
                                    const MtfIteration *iteration, const int64_t *sizes);

#endif
