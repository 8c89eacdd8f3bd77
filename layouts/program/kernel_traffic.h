// SPDX-License-Identifier: GPL-3.0-or-later
/* What a kernel reads and writes of memory, for prices. An input that is read sparsely counts as much as the output, an
 * element of a stack as much as the input, and a sum that is added to is read as well. */
#ifndef MTF_KERNEL_TRAFFIC_H
#define MTF_KERNEL_TRAFFIC_H

#include "layouts/program/program.h"

/* Bytes of one run of a kernel whose operands and products are set. */
double mtf_kernel_traffic(const MtfProgram *program, const MtfInstruction *instruction);

#endif
