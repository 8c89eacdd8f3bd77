# SPDX-License-Identifier: GPL-3.0-or-later
# Steps that work through their batch in parts or compute activations again, from the search to the ranks.
# seconds: 300
. tests/support/tap.sh

graph=layouts/library/graphs/transformer-small.json
sizes='--dim batch=16 --dim length=32 --dim memory_length=32 --dim d_ff=64'

run meshtf-plan estimate "$graph" --mesh rows:2 --layout batch:rows --microbatches 3
claim "a batch that does not divide is bad input" bad_input
claim "the sentence names it" says_error '3 micro-batches do not divide the batch: "batch" is'
run meshtf-plan estimate "$graph" --mesh rows:2 --layout batch:rows --microbatches 0
claim "no micro-batches are bad input" bad_input
run meshtf-plan estimate "$graph" --mesh rows:2 --layout batch:rows --microbatches 2 --batch-dim nobody
claim "an unknown batch dimension is bad input" bad_input

for parts in 1 4; do
    # The sizes are split into words on purpose.
    # shellcheck disable=SC2086
    run meshtf-plan search "$graph" $sizes --mesh 'rows:2;cols:2' --microbatches $parts -o "$work/$parts.json"
    claim "search plans a step in $parts" exits 0
    run mpirun -n 4 meshtf-run "$work/$parts.json" --data LICENSE --steps 6 --metrics "$work/$parts.metrics" --verify
    claim "a step in $parts runs" exits 0
    claim "calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"
    claim "memory is that of its plan" says "equal to the byte"
    sed 's/.*"loss": *\([0-9.]*\).*/\1/' "$work/$parts.metrics" >"$work/$parts.losses"
done
claim "the plan says how many parts there are" grep -q '"microbatches": 4' "$work/4.json"
claim "the graph is that of the whole step in both" sh -c "
    jq .graph '$work/1.json' >'$work/graph.json' && jq .graph '$work/4.json' | cmp - '$work/graph.json'"
run meshtf-plan search "$work/graph.json" --mesh 'rows:2;cols:2' --microbatches 4 -o "$work/again.json"
claim "it is planned in parts like what it was made from" \
    test "$(jq .program_sha256 "$work/again.json")" = "$(jq .program_sha256 "$work/4.json")"
claim "the losses are the same" sh -c "paste '$work/1.losses' '$work/4.losses' |
    awk '{ d = (\$1 - \$2) / \$1; if (d > 1e-4 || d < -1e-4) exit 1 } END { exit NR != 6 }'"
memory() { sed -n 's/.*"peak_memory_bytes": *\([0-9]*\).*/\1/p' "$1"; }
claim "four parts take less memory than one" test "$(memory "$work/4.json")" -lt "$(memory "$work/1.json")"

for again in cheap layers layers:1; do
    # shellcheck disable=SC2086
    run meshtf-plan search "$graph" $sizes --mesh 'rows:2;cols:2' --recompute $again -o "$work/$again.json"
    claim "search plans a step that computes $again again" exits 0
    run mpirun -n 4 meshtf-run "$work/$again.json" --data LICENSE --steps 6 --metrics "$work/metrics"
    claim "it runs" exits 0
    claim "calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"
    sed 's/.*"loss": *\([0-9.]*\).*/\1/' "$work/metrics" >"$work/$again.losses"
    claim "the losses are the same" sh -c "paste '$work/1.losses' '$work/$again.losses' |
        awk '{ d = (\$1 - \$2) / \$1; if (d > 1e-4 || d < -1e-4) exit 1 } END { exit NR != 6 }'"
    claim "it takes less memory" test "$(memory "$work/$again.json")" -lt "$(memory "$work/1.json")"
done
# Memory decides: with plenty the step is done in one piece, with less in a variant that fits.
# shellcheck disable=SC2086
run meshtf-plan search "$graph" $sizes --mesh 'rows:2;cols:2' --memory 1GiB
claim "with plenty of memory there is nothing to choose" sh -c "! grep -q '^variant' '$work/out'"
# shellcheck disable=SC2086
run meshtf-plan search "$graph" $sizes --mesh 'rows:2;cols:2' --memory 3MiB --gap 0.02 -o "$work/auto.json"
claim "with little memory a form is found that fits" exits 0
claim "it is told" says "variant        in "
claim "it fits" test "$(memory "$work/auto.json")" -le 3145728
claim "the plan holds what it was chosen from" grep -q '"unlimited_rule_cost"' "$work/auto.json"
run mpirun -n 4 meshtf-run "$work/auto.json" --data LICENSE --steps 6 --metrics "$work/metrics"
claim "it runs" exits 0
sed 's/.*"loss": *\([0-9.]*\).*/\1/' "$work/metrics" >"$work/auto.losses"
claim "its losses are the same" sh -c "paste '$work/1.losses' '$work/auto.losses' |
    awk '{ d = (\$1 - \$2) / \$1; if (d > 1e-4 || d < -1e-4) exit 1 } END { exit NR != 6 }'"
# Of gpt-small's four layers three are recomputed where that is enough.
run meshtf-plan search gpt-small --mesh 'rows:2;cols:2' --machine cpu-host --microbatches 1 --offload none --memory 8000000 -o "$work/some.json"
claim "no more layers are recomputed than memory asks for" says "recompute layers:3"
claim "the plan says how many" grep -q '"recompute": "layers:3"' "$work/some.json"
run mpirun -n 4 meshtf-run "$work/some.json" --data LICENSE --steps 3
claim "memory is that of its plan" says "equal to the byte"
claim "calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"
run meshtf-plan search gpt-small --mesh rows:2 --recompute layers:9
claim "there are not more layers than the graph has" bad_input
claim "the sentence says how many there are" says_error "repeats 4 layers"
run meshtf-plan search "$graph" --mesh rows:2 --microbatches many
claim "a number of parts that is none is bad input" bad_input

run meshtf-plan estimate "$graph" --mesh rows:2 --layout batch:rows --recompute everything
claim "an unknown choice is bad input" bad_input

done_testing
