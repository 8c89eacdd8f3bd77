// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/gemm_peak.h"

#include "runtime/kernel_trial.h"

#define SIDE 512
#define PATIENCE 0.03

double mtf_gemm_peak(MtfDtype dtype) {
    static const MtfTrialOperation product = { MTF_OP_EINSUM, { "ab", "bc" }, "ac" };
    static const int64_t sizes[26] = { SIDE, SIDE, SIDE };
    MtfKernelTrial trial;
    double seconds;
    if (!mtf_kernel_trial_init(&trial, &product, dtype, sizes, NULL))
        return 0;
    mtf_kernel_trials_measure(&trial, 1, PATIENCE, &seconds);
    mtf_kernel_trial_clear(&trial);
    return 2.0 * SIDE * SIDE * SIDE / seconds;
}
