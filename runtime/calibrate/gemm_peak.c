// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/calibrate/gemm_peak.h"

#include "runtime/calibrate/kernel_benchmark.h"

#define SIDE 512
#define PATIENCE 0.03

double mtf_gemm_peak(MtfDtype dtype) {
    static const MtfBenchmarkOperation product = { MTF_OP_EINSUM,
                                                   { { "ab", "bc" }, "ac", MTF_NOTHING_FRESH } };
    static const int64_t sizes[26] = { SIDE, SIDE, SIDE };
    MtfKernelBenchmark trial;
    double seconds;
    MtfArenaMemory memory = { 0 };
    mtf_kernel_benchmark_init(&trial, &product, dtype, sizes);
    bool opened = mtf_kernel_benchmarks_open(&trial, 1, &memory, NULL);
    if (opened) {
        mtf_kernel_benchmarks_measure(&trial, 1, PATIENCE, NULL, &seconds);
        mtf_kernel_benchmarks_close(&trial, 1);
    }
    mtf_arena_memory_clear(&memory);
    mtf_kernel_benchmark_clear(&trial);
    return opened ? 2.0 * SIDE * SIDE * SIDE / seconds : 0;
}
