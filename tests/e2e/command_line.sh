# SPDX-License-Identifier: GPL-3.0-or-later
# What a user types before knowing the program.
. tests/support/tap.sh

run meshtf-plan --help
claim "--help explains the program" exits 0
claim "--help shows the usage" says "Usage: meshtf-plan COMMAND"
claim "--help says nothing on standard error" is_silent

for program in meshtf-plan meshtf-report meshtf-run; do
    run "$program" --version
    claim "$program --version succeeds" exits 0
    claim "$program --version names itself" says "$program "
done

run meshtf-plan
claim "no command is bad input in one sentence" bad_input

run meshtf-plan frobnicate
claim "an unknown command is bad input in one sentence" bad_input
claim "the sentence names the unknown command" says_error '"frobnicate"'

run meshtf-plan --frobnicate
claim "an unknown option is bad input in one sentence" bad_input

run meshtf-plan serach g.json
claim "a misspelt command is bad input" bad_input
claim "what was meant is asked" says_error 'did you mean "search"?'
run meshtf-plan help search
claim "help NAME is what NAME --help says" says "GRAPH --devices N"
run meshtf-plan help --help
claim "help has help" says "Usage: meshtf-plan COMMAND"
run sh -c 'meshtf-plan machines >/dev/full'
claim "what standard output does not take is a failure" exits 1
claim "which is said" says_error "meshtf-plan machines: standard output: cannot be written: No space left on device"
run meshtf-plan search gpt-small --devices 512 --machine tpu-v2 -o "$work/absent/plan.json"
claim "a plan that cannot be written is refused before the search" bad_input
run meshtf-plan graphs
claim "the library's graphs are listed" says "gpt-small"
run meshtf-plan estimate gpt-small --mesh rows:2 --layout '' --dim batch=65536 --machine v100
claim "search and estimate take their names" exits 0
claim "a layout that needs more than the device has is said not to fit" says_error "this layout does not fit: it needs"
run meshtf-plan check lama2-7b
claim "check knows which model is meant, too" says_error 'did you mean "llama2-7b"?'
run meshtf-plan search llama2-7b --devices 8 --batch 0
claim "a batch of 0 is not taken for none given" bad_input
run meshtf-plan search mlp --devices 2 --infer forward --pad units_0:128
claim "what a plan of inference has no use for is refused" says_error "--pad does not go with --infer"
run meshtf-plan estimate mlp --mesh rows:2 --layout batch:rows --batch-dim batsh
claim "the dimension of the batch is looked for where nothing is divided, too" says_error 'no dimension "batsh" (did you mean "batch"?)'
run sh -c "meshtf-plan estimate mlp --mesh rows:2 --layout '' -o - | meshtf-plan export - --to jax"
claim "a plan may come from standard input" says "PartitionSpec"
run meshtf-plan estimate mlp --mesh 'rows:2;cols:2' --layout batch:rows --machine v100 -o "$work/plan.json"
run meshtf-plan estimate mlp --layout "$work/plan.json" --machine v100 -o "$work/again.json"
claim "a layout of every tensor and operation comes from a file" exits 0
digest() { grep '"program_sha256"' "$1"; }
claim "and a plan's is the program that the plan is" test "$(digest "$work/plan.json")" = "$(digest "$work/again.json")"
jq -c '{mesh, layout} | .layout.operations |= with_entries(.value |= map_values("duplicated"))' "$work/plan.json" >"$work/whole.json"
run meshtf-plan estimate mlp --layout "$work/whole.json" --machine v100 -o "$work/again.json"
claim "mesh and layout alone are enough, and what is changed is priced anew" \
    test "$(digest "$work/plan.json")" != "$(digest "$work/again.json")"
run meshtf-plan estimate mlp --layout "$work/plan.json" --machine v100 --mesh rows:4
claim "whose mesh is no other than the one that is named" says_error "is of \"rows:2;cols:2\""
run meshtf-plan estimate gpt-small --layout "$work/plan.json"
claim "a layout of another graph is refused" bad_input
sed '/"optimizer"/d; s/"loss": "loss",/"loss": "loss"/' layouts/library/graphs/mlp.json >"$work/untrained.json"
run meshtf-plan estimate "$work/untrained.json" --mesh rows:2 --layout ''
claim "a graph without an optimizer is warned about" says_error "has no optimizer"
done_testing
