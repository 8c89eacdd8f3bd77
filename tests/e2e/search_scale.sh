# SPDX-License-Identifier: GPL-3.0-or-later
# Searching for many devices, axes and layers, as a user types it.
# seconds: 300
. tests/support/tap.sh

run meshtf-plan model transformer-lm --preset demo -o "$work/demo.json"
run meshtf-plan search "$work/demo.json" --mesh 'a:2;b:2;c:2;d:2' --seconds 3 --gap 0.05 --json -o "$work/p.json"
claim "a mesh of four axes is searched with axes merged" exits 0
claim "whose method says so" says "axes merged to three"
run meshtf-plan check "$work/p.json"
claim "its plan is sound" exits 0

run meshtf-plan search "$work/demo.json" --mesh 'a:2;b:2;c:2;d:2;e:2;f:2' --max-mesh-dims 6 --seconds 3
claim "so are six axes" exits 0
claim "the merged mesh is named with its gap" says "the mesh whose plan it is, gap"
run meshtf-plan search "$work/demo.json" --mesh 'a:2;b:2;c:2;d:2;e:2;f:2' --max-mesh-dims 6 --seconds 0.1
claim "in a tenth of a second there are rules for them" exits 0
run meshtf-plan search transformer-small --mesh 'a:2;b:2;c:2;d:2' --seconds 5 --json
claim "what a merge found is priced on the mesh itself" says '"merged": '
price() { sed -n "s/^ *$1\"cost\": *\([0-9]*\),.*/\1/p" "$work/out" | head -n 1; }
merged=$(price '"merged": {.*')
claim "it costs no more there" test "$(price "")" -le "$merged"
claim "and no layout made by hand is faster there" sh -c "! grep -q '\"longer\":-' '$work/out'"

begun=$(date +%s)
run meshtf-plan search "$work/demo.json" --mesh 'rows:2;cols:2' --frontier 3 --seconds 1
claim "a frontier is found in the time of all its searches" test $(($(date +%s) - begun)) -le 3
claim "with points" says "memory limit "

run meshtf-plan model gpt --preset gpt3-175b --batch 1536 -o "$work/g.json"
run meshtf-plan search "$work/g.json" --devices 8192 --machine tpu-v5p --precision bf16
claim "a slice that does not exist is bad input" bad_input
claim "the sentence names the largest" says_error "6144 devices a slice"
run meshtf-plan search "$work/g.json" --devices 100000000 --machine tpu-v4
claim "so are as many devices as no machine has" bad_input
run meshtf-plan search transformer-small --devices 100000000 --machine h100
claim "and more than a mesh holds, where the machine has no end" bad_input
claim "which are told how many may be" says_error "16777216"

run meshtf-plan search "$work/g.json" --mesh 'a:256' --machine tpu-v4 --precision bf16 --microbatches 6 --recompute layers --gap 0.02 --json
claim "the 96 layers of GPT-3 are planned" exits 0
gap=$(sed -n 's/^ *"gap": *\([0-9.e-]*\),*$/\1/p' "$work/out" | head -n 1)
claim "at the wanted gap" sh -c "awk 'BEGIN { exit !($gap <= 0.02) }'"

run meshtf-plan model densenet --preset densenet-121 -o "$work/d.json"
run meshtf-plan search "$work/d.json" --mesh 'a:8;b:8' --machine v100 --layouts rule
claim "rules for 62 dimensions are found" exits 0
claim "and proven" says "optimal over all rule layouts"
run meshtf-plan search "$work/d.json" --mesh 'a:4;b:4' --machine v100 --seconds 0.2
claim "a fifth of a second is enough for a plan" exits 0
claim "that fits" says "fits           yes"

run meshtf-plan model gpt --preset gpt3-175b --layers 8 --batch 1536 -o "$work/g.json"
run meshtf-plan search "$work/g.json" --devices 64 --machine tpu-v4 --memory 8GiB --seconds 0.1
claim "where no rules fit, time that is up at once leaves a layout made by hand" exits 0
claim "that fits" says "fits           yes"
claim "and is no rule layout" grep -qE '^ *no rule layout (fits|that fits was found in time)$' "$work/out"
run meshtf-plan search "$work/g.json" --devices 64 --machine tpu-v4 --memory 100MiB --seconds 0.1
claim "where nothing can fit, a search without time ends" exits 1
claim "and says no more than it knows" says_error "before it proved that none does"

run meshtf-plan model transformer-lm --preset tiny --layers 800 -o "$work/deep.json"
run meshtf-plan search "$work/deep.json" --mesh rows:2 --seconds 0.1
claim "a plan that takes longer than its time is made" exits 0
claim "and what took so long is said" grep -qE "more than --seconds 0.1: [0-9.]+ s to read the graph's 14406 operations, [0-9.]+ s for their layout, [0-9.]+ s to make the plan and write it" "$work/err"
run meshtf-plan search transformer-small --mesh rows:2 --seconds 0.1
claim "of a small graph nothing of the kind is" is_silent

done_testing
