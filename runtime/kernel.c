// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernel.h"

static const MtfKernel kernels[MTF_OPERATIONS] = { NULL };

MtfKernel mtf_kernel(int operation_kind) {
    return kernels[operation_kind];
}
