#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Exchanges between two ranks of this host, 4 KiB to 256 MiB: through the window of their arenas, and
# by Open MPI as it comes, without CMA and with malloc kept from giving memory back, and the same in
# chunks of 1 MiB. Medians in microseconds of the slower rank; the last two columns are Open MPI's
# times over the window's, by default and the best of its three. Writes tests/bench/exchange.txt.
. tests/bench/bench.sh
unset OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_mpi_yield_when_idle OMPI_MCA_hwloc_base_binding_policy
keep="-x MALLOC_TRIM_THRESHOLD_=4294967296 -x MALLOC_TOP_PAD_=268435456 -x MALLOC_MMAP_THRESHOLD_=4294967296"

# measure NAME "MPIRUN OPTIONS" ARGUMENTS: lines "kind bytes median"
measure() {
    name=$1 options=$2
    shift 2
    # shellcheck disable=SC2086
    mpirun $options -n 2 "$programs/tests/bench/bench_exchange" "$@" >"$work/out"
    awk '{ print $1 "/" $2, $3 }' "$work/out" | sort >"$work/$name"
}
no_cma="--mca btl_vader_single_copy_mechanism none $keep"
measure window "" window
measure default "" mpi
measure no_cma "$no_cma" mpi
measure chunks "$no_cma" mpi 262144
{
    today_here
    join "$work/window" "$work/default" | join - "$work/no_cma" | join - "$work/chunks" | tr '/' ' ' | sort -k1,1 -k2,2n |
        awk 'BEGIN { printf "%-15s %10s %10s %10s %10s %10s %9s %9s\n", "exchange", "bytes", "window", "default", "no CMA", "chunks", "default/", "best/" }
             { best = $4 < $5 ? $4 : $5; best = best < $6 ? best : $6
               printf "%-15s %10d %10.1f %10.1f %10.1f %10.1f %9.2f %9.2f\n", $1, $2, $3, $4, $5, $6, $4 / $3, best / $3 }'
} >"$rows.new"
keep
