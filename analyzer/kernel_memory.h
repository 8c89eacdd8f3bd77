// SPDX-License-Identifier: GPL-3.0-or-later
/* What one operation holds while its kernel runs, beside the tensors that others read later:
 *
 *     kept slices of its inputs ──reshard──► wanted slices ──kernel──► produced slices ──reshard──►
 *                                            [==================================]
 *                                            and the kernel's scratch
 *
 * Copies of inputs that are read again later are left out, since they may be the kept slices, and
 * so is an output that may take an input's place: it is a bound from below for every choice of the
 * other operations. */
#ifndef MTF_KERNEL_MEMORY_H
#define MTF_KERNEL_MEMORY_H

#include "analyzer/operation_profile.h"

/* What it is read from; all borrowed. */
typedef struct {
    const MtfGraph *graph;
    const MtfMesh *mesh;
    const MtfConsumers *consumers;
    const int *updated_variable; /* for each tensor: the variable whose next value it is, or -1 */
} MtfKernelMemory;

/* Whether `operation` is the last to read a tensor, which then needs no memory any more. */
bool mtf_kernel_reads_last(const MtfKernelMemory *memory, int operation, int tensor);

/* Bytes under each of the operation's strategies; free with g_free. */
int64_t *mtf_kernel_memory(const MtfKernelMemory *memory, const MtfOperationProfile *profile,
                           int operation);

#endif
