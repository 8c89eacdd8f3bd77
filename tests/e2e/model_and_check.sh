#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# meshtf-plan model and meshtf-plan check, as a user types them.
. tests/support/tap.sh

# silent_about TEXT: standard output of the last run does not hold it.
silent_about() {
    ! says "$1"
}

run meshtf-plan model --help
claim "model --help succeeds" exits 0
claim "model --help lists the families" says "transformer-lm: "
claim "model --help lists the presets" says "two-layer"
claim "model --help lists the parameters" says "--d-model"
run meshtf-plan model resnet --help
claim "model FAMILY --help lists the presets of that family" says "resnet-50"
claim "model FAMILY --help lists no other family" silent_about "transformer-lm: "
claim "model FAMILY --help lists what it takes" says "--classes"
claim "model FAMILY --help lists nothing else" silent_about "--d-model"

run meshtf-plan model transformer-lm --preset size5 -o "$work/size5.json"
claim "a model is written" exits 0
claim "its parameters are counted" says "4899222528 parameters"
claim "nothing is said on standard error" is_silent

run meshtf-plan check "$work/size5.json"
claim "a written model is sound" exits 0
claim "check names the graph" says "transformer-lm-size5"
claim "check shows the dimensions" says "d_ff=262144"

run meshtf-plan check "$work/size5.json" --json
claim "check prints JSON" says '"parameters": 4899222528'

run meshtf-plan model mlp --json -o "$work/said.json"
claim "what was written is said as JSON" says '"parameters"'
run meshtf-plan model mlp --layers 3 --optimizer none -o -
claim "a model goes to standard output" says '"name": "mlp-small"'
cp "$work/out" "$work/mlp.json"
claim "without an optimizer there is none" sh -c "! grep -q optimizer '$work/mlp.json'"

run meshtf-plan model transformer-lm --layers 2 --dropout 0.1 --activation gelu --clip-norm 1 -o "$work/a.json"
run meshtf-plan model transformer-lm --layers 2 --dropout 0.1 --activation gelu --clip-norm 1 -o "$work/b.json"
claim "the same command writes the same bytes" cmp -s "$work/a.json" "$work/b.json"

run meshtf-plan check tpu-v2
claim "a machine of the library is sound" exits 0
claim "check says that it is a machine" says "machine"

run meshtf-plan model perceiver -o "$work/x.json"
claim "an unknown family is bad input" bad_input
claim "the sentence lists the families" says_error "mlp, transformer-lm, gpt"

run meshtf-plan model mlp --heads 3 -o "$work/x.json"
claim "a parameter of another family is bad input" bad_input

run meshtf-plan model mlp
claim "a missing output is bad input" bad_input

run meshtf-plan model transformer-lm --length 1000000000 --batch 1000000000 -o "$work/x.json"
claim "sizes that overflow are bad input" bad_input
claim "and leave no file" [ ! -e "$work/x.json" ]

run meshtf-plan model mlp --schedule cosine -o "$work/x.json"
claim "a cosine without an end is bad input" bad_input

echo '{"hello": 1}' >"$work/x.json"
run meshtf-plan check "$work/x.json"
claim "an unknown file is bad input" bad_input
claim "the sentence says what it could have been" says_error meshtf_graph

run meshtf-plan check "$work/missing.json"
claim "a missing file is bad input" bad_input

sed 's/"loss": "loss"/"loss": "square"/' "$work/mlp.json" >"$work/x.json"
run meshtf-plan check "$work/x.json"
claim "a loss that is not a scalar is bad input" bad_input
claim "the sentence shows its dimensions" says_error "outputs:8"

done_testing
