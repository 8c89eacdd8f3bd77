# SPDX-License-Identifier: GPL-3.0-or-later
# Pricing collectives and listing machines from the shell.
. tests/support/tap.sh

links="--bandwidth 45GB/s --latency 1us"

# shellcheck disable=SC2086
price() {
    run meshtf-plan collective "$@" $links
}

price allreduce --torus 8x4 --bytes 1GiB
claim "a torus is priced" exits 0
claim "the cheapest algorithm is named" says "by hamiltonian_rings"
claim "the bound stands below" says "lower bound"

price allgather --torus 16 --stride 2 --bytes 256MiB --algorithm strided-s2 --json
claim "every second place of a ring of 16 takes 5.2336 ms (7 * 2 us + 2 * 7/8 * 256 MiB / 90 GB/s)" says '"seconds": 0.005233578'
claim "the alternatives hold the named algorithm" says '{"algorithm":"strided_s2"'

price halo --torus 4x4x4 --faces 1MiB,2MiB,4MiB --json
claim "a halo takes its largest face" says '"seconds": 9.42067'

price p2p --torus 4x4 --wrap 00 --from 0,0 --to 3,3 --bytes 16MiB --algorithm two_port
claim "coordinates name ranks" says "192 us"

price p2p --torus 8x4 --from 31 --bytes 45kB --json
claim "a message goes to the farthest rank when none is named (6 us and 45 kB over 4 links)" says '"seconds": 6.25'

price allreduce --switch 8 --bytes 1MB
claim "a switch is priced" says "rabenseifner"

price allreduce --torus 8x4 --axes 1 --bytes 1MB
claim "a group may span one axis of the torus" says "torus 4"

price allreduce --torus 1 --bytes 1MB --json
claim "one rank costs nothing" says '"seconds": 0'

run meshtf-plan collective alltoall --machine h100 --devices 24 --bytes 1MiB
claim "a slice of a machine is a network" says "level_by_level"

for wrong in "gossip --torus 4 --bytes 1" "allreduce --bytes 1" "allreduce --torus 4x0 --bytes 1" \
    "allreduce --torus 4 --wrap 11 --bytes 1" "allreduce --torus 4 --switch 4 --bytes 1" \
    "allreduce --torus 4 --bytes lots" "allreduce --torus 4" "allreduce --torus 4 --bytes 1 --algorithm magic" \
    "allreduce --torus 4 --wrap 0 --bytes 1 --algorithm ring" "p2p --torus 4 --bytes 1 --to 4" \
    "p2p --torus 4 --bytes 1 --from 2 --to 2" "p2p --torus 4 --bytes 1 --to 0" "halo --torus 8x4 --faces 1,2,3" \
    "allgather --torus 4x4 --stride 2 --bytes 1" "allreduce --torus 4 --axes 1 --bytes 1" \
    "p2p --torus 4 --bytes 1 --from=" "halo --torus 8x4 --faces=" "allreduce --torus 4 --bytes 1 --segments -1"; do
    # shellcheck disable=SC2086
    price $wrong
    claim "refused in one sentence: $wrong" bad_input
done

run meshtf-plan collective allreduce --torus 4 --bytes 1 --bandwidth 0
claim "a link of no bandwidth is refused" bad_input

run meshtf-plan machines
claim "machines are listed" says "tpu-v4"
run meshtf-plan machines tpu-v2
claim "a machine shows where its figures come from" says '"sources"'
run meshtf-plan machines tpu-v99
claim "an unknown machine is refused" bad_input

run meshtf-plan simulate --random 20
claim "formulas are simulated link by link" says "all that claim to be exact"
run meshtf-plan simulate
claim "simulate needs to know what" bad_input
meshtf-plan estimate layouts/library/graphs/mlp.json --mesh 'a:32' --layout 'batch:a' --machine tpu-v2 -o "$work/plan.json" >/dev/null
run meshtf-plan simulate "$work/plan.json"
claim "the collectives of a plan are simulated" says "on the wires"
claim "estimates are a few percent off at most" says "ratio 1.0"
run meshtf-plan simulate "$work/plan.json" --random 3
claim "a plan and random ones are two things" bad_input

printf '%s' '{"meshtf_machine": 1, "name": "two", "levels": [{"name": "host", "bandwidth": 5e9, "latency": 1e-6}],
    "device": {"flops": {"f32": 8e10}, "memory_bytes": 4000000000, "memory_bandwidth": 1e10},
    "curves": {"allreduce/2": [[1024, 1e-5], [1000000, 1e-3]]}, "sources": {"device": "made up"}}' >"$work/two.json"
run meshtf-plan estimate layouts/library/graphs/mlp.json --mesh a:4 --layout batch:a --machine "$work/two.json"
claim "what was not measured is said" says "not measured   allreduce over 4 ranks, by formula as those over 2 are to theirs"
run meshtf-plan estimate layouts/library/graphs/mlp.json --mesh a:2 --layout batch:a --machine "$work/two.json"
claim "what was measured is not" sh -c "! grep -q 'not measured' '$work/out'"

done_testing
