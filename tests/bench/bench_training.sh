#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Training beside PyTorch (Debian's python3-torch): items a second, resident memory, losses, on the
# models of training.py. BENCH_MODELS="gpt-256 mnist" takes some of them. Writes
# tests/bench/training.txt.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "bench_training: skipped, python3-torch is not installed"
    exit 0
fi
rows=$root/tests/bench/training.txt
unset OMPI_MCA_mpi_yield_when_idle OMPI_MCA_hwloc_base_binding_policy
{
    echo "# $(date -u +%Y-%m-%d), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores: ONLY=bench_training make bench"
    /usr/bin/python3 "$root/tests/bench/training.py" "$root/LICENSE"
} >"$rows.new"
mv "$rows.new" "$rows"
cat "$rows"
