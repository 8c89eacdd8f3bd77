# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 240
# Collectives by named algorithms: planned, priced, kept in the plan, executed, and the same losses.
. tests/support/tap.sh

graph=layouts/library/graphs/mlp.json
plan=$work/plan.json

# planned NAME: a plan for four ranks on two axes whose collectives go so.
planned() {
    run meshtf-plan estimate "$graph" --mesh 'rows:2;cols:2' --layout 'batch:rows;hidden:cols' --precision f64 \
        --collectives "$1" -o "$plan"
}

# losses FILE: of its steps, to nine digits.
losses() {
    jq -r '.loss | . * 1e9 | round' "$1"
}

planned direct
claim "direct is what plans say nothing of" test "$(jq '.execution | has("algorithms")' "$plan")" = false
jq -r .program_sha256 "$plan" >"$work/digests"
run mpirun -n 4 meshtf-run "$plan" --steps 5 --metrics "$work/direct.jsonl"
claim "it runs" exits 0

for name in ring bidirectional-ring recursive mpi random:7; do
    planned "$name"
    claim "--collectives $name is planned" exits 0
    claim "the plan names it" test "$(jq '[.execution.algorithms[][]] | length' "$plan")" -gt 0
    jq -r .program_sha256 "$plan" >>"$work/digests"
    run mpirun -n 4 meshtf-run "$plan" --steps 5 --metrics "$work/$name.jsonl"
    claim "it runs" exits 0
    claim "to the same losses" test "$(losses "$work/$name.jsonl")" = "$(losses "$work/direct.jsonl")"
done
claim "every algorithm makes another program" test "$(sort -u "$work/digests" | wc -l)" = 6

# A free layout gathers over both axes at once.
run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --dim batch=256 --precision f64 --microbatches 1 \
    --recompute none --collectives bucket -o "$plan"
claim "collectives over two axes go along one after the other" test "$(jq '.execution.algorithms.bucket | length' "$plan")" -gt 0
run mpirun -n 4 meshtf-run "$plan" --steps 3 --verify
claim "and are right" exits 0

planned ring
run meshtf-run "$plan" --dry-run
claim "such a plan is read again" exits 0
jq '.execution.algorithms = {"ring": [0]}' "$plan" >"$work/bad.json"
run meshtf-run "$work/bad.json" --dry-run
claim "an instruction that is no collective is refused" bad_input
claim "by its number" says_error "instruction 0"
jq '.execution.algorithms = {"pigeon": [0]}' "$plan" >"$work/bad.json"
run meshtf-run "$work/bad.json" --dry-run
claim "so is an unknown algorithm" bad_input
planned pigeon
claim "the option refuses it too" bad_input
claim "and lists what there is" says_error "bidirectional-ring"

# On a torus what goes directly is priced as the best there is: whatever is chosen takes no longer.
for how in direct auto; do
    run meshtf-plan estimate gpt-small --mesh 'a:4;b:4' --machine tests/support/machines/torus.json --layout 'batch:a;d_ff:b;heads:b' --collectives $how --json
    sed -n 's/.*"communication_seconds": *\([0-9.e-]*\).*/\1/p' "$work/out" | head -n 1
done >"$work/seconds"
# shellcheck disable=SC2016
claim "auto is never dearer than direct" awk '{ s[NR] = $1 } END { exit !(NR == 2 && s[1] > 0 && s[2] <= s[1]) }' "$work/seconds"

run meshtf-plan search "$graph" --devices 4 --machine tpu-v2 --collectives auto -o "$plan"
claim "the cheapest are chosen on a torus" exits 0
run meshtf-plan estimate "$graph" --mesh a:4 --layout batch:a --machine tpu-v2 --collectives auto -o "$plan"
claim "which are named where they are as good as the best there is" test "$(jq '.execution.algorithms | keys | map(select(. != "mpi")) | length' "$plan")" -gt 0
# Measured tables: every allreduce over two ranks takes 100 us directly and 20 us by rings, 95 us by halving.
meshtf-plan estimate "$graph" --mesh 'rows:2;cols:2' --layout 'batch:rows;hidden:cols' --precision f64 -o "$plan" >"$work/out" 2>&1
jq '.machine + {curves: {"allreduce/2": [[1, 1e-4], [1e9, 1e-4]], "allreduce/2/recursive": [[1, 9.5e-5], [1e9, 9.5e-5]],
    "allreduce/2/ring": [[1, 2e-5], [1e9, 2e-5]]}}' "$plan" >"$work/rings.json"
jq 'del(.curves["allreduce/2/ring"])' "$work/rings.json" >"$work/halving.json"

# measured MACHINE NAME: a plan for the measured machine.
measured() {
    run meshtf-plan estimate "$graph" --mesh 'rows:2;cols:2' --layout 'batch:rows;hidden:cols' --precision f64 \
        --machine "$work/$1.json" --collectives "$2" -o "$plan"
}

# microseconds: of all the plan's collectives, with the packing of joined messages, which is the same for each.
microseconds() {
    jq '.predicted.communication_seconds * 1e6 | round' "$plan"
}

measured rings direct
calls=$(jq '[.predicted.collectives[].calls] | add' "$plan")
directly=$(microseconds)
claim "going directly is priced as measured" test "$directly" -ge $((100 * calls)) -a "$directly" -lt $((200 * calls))
measured rings auto
claim "the algorithm that was measured to be the fastest is chosen" test "$(jq -c '.execution.algorithms | keys' "$plan")" = '["ring"]'
claim "for every one" test "$(jq '.execution.algorithms.ring | length' "$plan")" = "$calls"
claim "and priced as measured" test "$(microseconds)" = $((directly - 80 * calls))
run mpirun -n 4 meshtf-run "$plan" --steps 2 --verify
claim "and runs" exits 0
measured halving auto
claim "what wins by less than two measurements differ does not displace the direct way" \
    test "$(jq '.execution | has("algorithms")' "$plan")" = false
measured halving recursive
claim "and is priced as measured where it is asked for" test "$(microseconds)" = $((directly - 5 * calls))
done_testing
