#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Training beside PyTorch (Debian's python3-torch): items a second, resident memory, losses, on the
# models of training.py. BENCH_MODELS="gpt-256 mnist" takes some of them. Writes
# tests/bench/training.txt.
. tests/bench/bench.sh
needs torch
unset OMPI_MCA_mpi_yield_when_idle OMPI_MCA_hwloc_base_binding_policy
{
    today_here
    /usr/bin/python3 "$root/tests/bench/training.py" "$root/LICENSE"
} >"$rows.new"
keep
