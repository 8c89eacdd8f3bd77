# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 480
# Measuring this machine, and planning for it.
. tests/support/tap.sh

graphs=layouts/library/graphs
machine=$work/here.json

run mpirun -n 2 meshtf-run --calibrate
claim "a machine file is wanted" exits 2
claim "the sentence says so" says_error "-o MACHINE"
run meshtf-run plan.json -o "$machine"
claim "training writes no machine" exits 2
run meshtf-run plan.json --calibrate -o "$machine"
claim "a plan is not calibrated" exits 2
run meshtf-run --calibrate --rounds 0 -o "$machine"
claim "no round is too few" bad_input
run meshtf-run
claim "a missing plan is bad input" exits 2

run mpirun -n 2 meshtf-run --calibrate --rounds 1 -o "$machine"
claim "two ranks measure themselves" exits 0
claim "it says how ranks and cores go together" says_error "2 ranks of this host"
run meshtf-plan check "$machine"
claim "the file is a machine" exits 0
claim "which says how often it was measured" grep -q "first quarter of 1 rounds" "$machine"
claim "all kinds of tables are there" test "$(grep -c -e '"allreduce/2"' -e '"alltoall/2"' \
    -e '"reduce_scatter/2"' -e '"allgather/2"' -e '"gelu/f32"' -e '"adam/f64"' -e '"gelu/bf16"' -e '"move/f32"' \
    -e '"product/f32"' -e '"product/f32/64x1024"' "$machine")" = 10

# Of two ranks every algorithm goes but those that go over several axes.
claim "and of all algorithms" test "$(grep -c -e '"allreduce/2/ring"' -e '"allreduce/2/bidirectional-ring"' \
    -e '"reduce_scatter/2/recursive"' -e '"allgather/2/mpi"' -e '"alltoall/2/mpi"' "$machine")" = 5

claim "and tensors between stages both ways" test "$(grep -c -e '"p2p/2"' -e '"p2p/2/mpi"' "$machine")" = 2
claim "and how fast copies to the host are" grep -q '"host_bandwidth"' "$machine"

# Every table rises: no y below the one before.
# shellcheck disable=SC2016
claim "no table falls" awk '
    /\[\[/ {
        gsub(/[^0-9.e+,-]+/, " ", $0); n = split($0, pair, " "); last = -1
        for (i = 1; i <= n; i++)
            if (split(pair[i], xy, ",") == 2 && xy[1] != "" && xy[2] != "") {
                if (xy[2] + 0 < last) exit 1
                last = xy[2] + 0
            }
    }' "$machine"

run meshtf-plan search "$graphs/mlp.json" --mesh 'rows:2' --machine "$machine" -o "$work/plan.json"
claim "the search plans for it" exits 0
run mpirun -n 2 meshtf-run "$work/plan.json" --steps 5
claim "and the plan runs" exits 0

done_testing
