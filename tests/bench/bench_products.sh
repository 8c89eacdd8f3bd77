#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Measures every way to multiply under every set of instructions that this processor has, and writes
# runtime/kernels/products/product_rates.inc, by which runs choose among them. Needs a processor with
# AVX512-BF16; tests/bench/products.txt says where the committed table comes from.
set -eu
program=${MTF_BUILD:-build/release}/tests/bench/bench_products
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
rates=runtime/kernels/products/product_rates.inc

if ! grep -q avx512_bf16 /proc/cpuinfo; then
    echo "bench_products: this processor has no AVX512-BF16, so the table stays as it is"
    exit 0
fi
{
    echo '// SPDX-License-Identifier: GPL-3.0-or-later'
    echo '/* GFLOP/s of every way to multiply at sides of 1, 16, 128 and 1024, by tests/bench/bench_products.sh; which'
    echo ' * processor and libraries: tests/bench/products.txt. */'
    for core in Prescott Haswell Cooperlake; do
        OPENBLAS_CORETYPE=$core $program openblas
    done
    for isa in SSE41 AVX2 AVX512_CORE AVX512_CORE_BF16; do
        ONEDNN_MAX_CPU_ISA=$isa $program onednn
    done
} >"$rates.new"
mv "$rates.new" "$rates"
{
    echo "product_rates.inc: $(date +%F), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), make bench ONLY=bench_products"
    "${MTF_BUILD:-build/release}"/meshtf-run --version | tail -n 1
} >tests/bench/products.txt
cat tests/bench/products.txt
