# SPDX-License-Identifier: GPL-3.0-or-later
# meshtf-run --generate says the same with caches as without, on any number of ranks and in any layout.
. tests/support/tap.sh

# said RANKS OPTION…: the text that a run of the plan ends with, kept in $work/said
said() {
    ranks=$1
    shift
    run mpirun -n "$ranks" meshtf-run "$work/p.json" --data LICENSE --steps 0 --seed 5 --generate 40 "$@"
    sed '1,/nothing is left to train/d' "$work/out" >"$work/said"
}

# plan MESH LAYOUT
plan() {
    meshtf-plan estimate "$work/g.json" --mesh "$1" --layout "$2" --machine cpu-host -o "$work/p.json" >/dev/null
}

meshtf-plan model transformer-lm --preset demo --layers 2 --batch 6 --length 48 -o "$work/g.json" >/dev/null

plan 'rows:1' ''
said 1 --no-cache
claim "a text is generated without caches" exits 0
cp "$work/said" "$work/expected"
claim "it is not empty" test -s "$work/expected"
said 1
claim "with caches it is the same" cmp -s "$work/said" "$work/expected"
plan 'rows:2' 'batch:rows'
said 2
claim "and on two ranks that split the batch" cmp -s "$work/said" "$work/expected"
plan 'rows:2' 'heads:rows;d_ff:rows;vocab:rows'
said 2
claim "and on two that split heads, layers and vocabulary" cmp -s "$work/said" "$work/expected"
plan 'rows:3' 'd_model:rows'
said 3
claim "and on three that split the model's width" cmp -s "$work/said" "$work/expected"

# A plan of inference, found by the search, says it as well.
plan 'rows:1' ''
said 1 --prompt 'The GNU' --generate 30
cp "$work/said" "$work/expected"
meshtf-plan search "$work/g.json" --infer decode --batch 3 --context 48 --mesh rows:2 --machine cpu-host --layouts rule \
    -o "$work/p.json" >/dev/null
said 2 --prompt 'The GNU' --generate 30
claim "a plan of inference says what one of training says" cmp -s "$work/said" "$work/expected"
run mpirun -n 2 meshtf-run "$work/p.json" --steps 3 --generate 5
claim "a plan of inference does not train" exits 2
claim "what it does is said" says_error "give --steps 0 and --generate N"
run mpirun -n 2 meshtf-run "$work/p.json" --steps 0 --generate 5
claim "without data it wants a prompt" says_error "--prompt TEXT is missing"


# What is to be done with the trained model is checked before it is trained.
untrained() {
    exits 2 && [ "$(wc -l <"$work/err")" = 1 ] && ! grep -q "^step" "$work/out"
}
run meshtf-plan estimate "$work/g.json" --dim vocab=128 --mesh rows:1 --layout '' -o "$work/small.json"
for wish in '--generate 4 --prompt é€' '--export-adapter DIR' '--export-hf DIR' '--perplexity nothing.txt' '--prompt hello'; do
    # The words are split on purpose.
    # shellcheck disable=SC2086
    run meshtf-run "$work/small.json" --data LICENSE --steps 3 $wish
    claim "$wish: refused before the first step" untrained
done
# Attention with something added to its scores, a slope of distances, from a plan of training.
mkdir "$work/bloom"
echo '{"model_type":"bloom","hidden_size":24,"n_layer":2,"n_head":3,"vocab_size":256}' >"$work/bloom/config.json"
run meshtf-plan search "$work/bloom" --mesh rows:2 --layouts rule --machine cpu-host --batch 2 --length 12 -o "$work/p.json"
said 2 --no-cache
cp "$work/said" "$work/expected"
said 2
claim "slopes of distances say the same from caches" sh -c \
    "test -s '$work/said' && cmp -s '$work/said' '$work/expected' && ! grep -q 'without caches' '$work/out'"

# A recurrent model keeps the states of its loops, whatever the length.
meshtf-plan model lstm-lm --preset tiny -o "$work/g.json" >/dev/null
plan 'rows:1' ''
said 1 --no-cache
cp "$work/said" "$work/expected"
claim "a recurrent model says something" test -s "$work/expected"
plan 'rows:2' 'hidden:rows'
said 2
claim "from states that two ranks share it is the same" sh -c \
    "cmp -s '$work/said' '$work/expected' && ! grep -q 'without caches' '$work/out'"
plan 'rows:1' ''
said 1 --prompt 'The GNU' --no-cache --generate 20
cp "$work/said" "$work/expected"
run meshtf-plan search "$work/g.json" --infer decode --batch 2 --devices 2 --machine cpu-host -o "$work/p.json"
claim "a plan of its tokens is for texts of any length" grep -q '^context  *any' "$work/out"
said 2 --prompt 'The GNU' --generate 20
claim "whose states say the same" cmp -s "$work/said" "$work/expected"
done_testing
