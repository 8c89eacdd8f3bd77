#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# How fast the kernels are on one core: einsum beside the bare product of OpenBLAS, everything else
# beside memcpy, and bfloat16 beside float32. Ratios matter; times are CPU time, the least of several turns.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
OPENBLAS_NUM_THREADS=1 exec "$root/build/${BUILD:-release}/tests/bench/bench_kernels" "$@"
