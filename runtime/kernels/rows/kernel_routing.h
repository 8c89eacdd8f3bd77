// SPDX-License-Identifier: GPL-3.0-or-later
/* Kernels that send tokens to experts by index: who gets which place, and what is moved there and
 * back (operation_table.h, "Routing"). A slot is the row-major number of a place among the
 * dimensions that are places, whole; a rank moves what it holds of them. */
#ifndef MTF_KERNEL_ROUTING_H
#define MTF_KERNEL_ROUTING_H

#include "runtime/kernels/base/kernel.h"

/* Their rows (kernel.h). */
extern const MtfKernelRow mtf_routing_kernels[];

#endif
