#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What a tensor that goes from a pipeline stage to another on this host costs both ranks beside what they compute:
# through the sender's arena, and by Open MPI as it comes and without CMA, as in containers. Medians in
# microseconds of processor time of both. Writes tests/bench/transfers.txt.
. tests/bench/bench.sh
unset OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_hwloc_base_binding_policy
mpirun -n 2 "$programs/tests/bench/bench_transfers" >"$work/default"
mpirun --mca btl_vader_single_copy_mechanism none -n 2 "$programs/tests/bench/bench_transfers" >"$work/no_cma"
{
    today_here
    awk 'BEGIN { printf "%10s %10s %10s %10s\n", "bytes", "window", "default", "no CMA" }
         FNR == 1 { file++ }
         $1 == "window" && file == 1 { window[$2] = $3 }
         $1 == "mpi" { mpi[file, $2] = $3 }
         END { for (b = 65536; b <= 16777216; b *= 16) printf "%10d %10.1f %10.1f %10.1f\n", b, window[b], mpi[1, b], mpi[2, b] }' "$work/default" "$work/no_cma"
} >"$rows.new"
keep
