#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What a rank has in memory beside its arena, over the largest message of its program: two ranks that
# allreduce a gradient of 1 to 64 MiB, through shared memory and by Open MPI. The last two lines fit
# a constant and a multiple of the largest message. Writes tests/bench/resident.txt.
. tests/bench/bench.sh
for hidden in 512 2048 8192 32768; do
    meshtf-plan model mlp --preset two-layer --batch 32 --features 512 --hidden "$hidden" -o "$work/graph.json" >/dev/null
    meshtf-plan estimate "$work/graph.json" --mesh all:2 --layout batch:all --machine cpu-host -o "$work/plan.json" >/dev/null
    for option in --seed=0 --only-mpi; do
        mpirun -n 2 meshtf-run "$work/plan.json" --steps 4 $option >"$work/out"
        # MiB beside the arena: the last figure of its line.
        awk -v option="$option" -v message="$((hidden / 512))" '/beside the arena/ {
            unit = $(NF - 3); size = $(NF - 4)
            print option, message, unit == "GiB" ? size * 1024 : unit == "KiB" ? size / 1024 : size }' "$work/out"
    done
done >"$work/rows"
{
    today "$(mpirun --version | head -n 1), $(getconf _NPROCESSORS_ONLN) cores"
    awk '
        function name(option) { return option == "--only-mpi" ? "Open MPI" : "shared memory" }
        BEGIN { printf "%-14s %16s %26s\n", "exchange", "largest message", "resident beside the arena" }
        {
            printf "%-14s %12d MiB %22.1f MiB\n", name($1), $2, $3
            n[$1]++; x[$1] += $2; y[$1] += $3; xx[$1] += $2 * $2; xy[$1] += $2 * $3
        }
        END {
            for (o in n) {
                slope = (n[o] * xy[o] - x[o] * y[o]) / (n[o] * xx[o] - x[o] * x[o])
                printf "%-14s %.1f MiB + %.2f times the largest message\n", name(o), (y[o] - slope * x[o]) / n[o], slope
            }
        }' "$work/rows"
} >"$rows.new"
keep
