# SPDX-License-Identifier: GPL-3.0-or-later
# What waits for the backward pass in the host's memory: estimated, run, counted, exported, refused.
# seconds: 300
. tests/support/tap.sh

meshtf-plan model transformer-lm --preset tiny --layers 6 -o "$work/g.json" >/dev/null
number() { sed -n "s/.*\"$1\": *\([0-9.e-]*\).*/\1/p" "$2" | head -n 1; }

# plan NAME MESH LAYOUT OPTIONS...: writes $work/NAME.json.
plan() {
    name=$1 mesh=$2 layout=$3
    shift 3
    run meshtf-plan estimate "$work/g.json" --machine cpu-host --mesh "$mesh" --layout "$layout" -o "$work/$name.json" "$@"
}

# losses RANKS NAME: what a run of the plan says of each step.
losses() {
    run mpirun -n "$1" meshtf-run "$work/$2.json" --data LICENSE --steps 2 --metrics "$work/$2.jsonl"
    sed 's/.*"loss": *\([0-9.]*\),"gradient_norm": *\([0-9.]*\).*/\1 \2/' "$work/$2.jsonl" >"$work/$2.losses"
}

for ranks in 1 2 4; do
    case $ranks in
    1) mesh='' layout='' more='--precision bf16' ;;
    2) mesh='rows:2' layout='batch:rows' more='--microbatches 4' ;;
    *) mesh='rows:2;cols:2' layout='batch:rows;heads:cols;d_ff:cols' more='--recompute layers' ;;
    esac
    # The options are split into words on purpose.
    # shellcheck disable=SC2086
    plan here "$mesh" "$layout" $more
    losses $ranks here
    for what in layers activations activations:2; do
        # shellcheck disable=SC2086
        plan there "$mesh" "$layout" $more --offload $what
        claim "$what on $ranks ranks: the estimate says what the host holds" says 'host memory    '
        losses $ranks there
        claim "it runs" exits 0
        claim "losses and gradients are the same to the last digit" cmp -s "$work/here.losses" "$work/there.losses"
        claim "the host's memory, and the device's, are as predicted" \
            test "$(grep -cE 'memory a rank .* equal to the byte|with the host .* equal to the byte' "$work/out")" = 2
        claim "so is what went there and back" grep -q 'there and back .* equal to the byte on every rank' "$work/out"
        claim "the device needs less" test "$(number peak_memory_bytes "$work/there.json")" \
            -lt "$(number peak_memory_bytes "$work/here.json")"
    done
done

# All but what one layer needs leaves the device: of six layers' activations at least half.
plan here '' ''
plan there '' '' --offload activations
claim "six layers' activations lie with the host" test \
    "$(($(number peak_memory_bytes "$work/there.json") + $(number host_memory_bytes "$work/there.json") / 2))" \
    -lt "$(number peak_memory_bytes "$work/here.json")"

run meshtf-plan check "$work/there.json"
claim "check says what waits there" says 'waiting with the host'
run meshtf-plan report "$work/there.json" -o "$work/report"
claim "the page says so, too" grep -q 'waiting with the host' "$work/report/index.html"

for wrong in all layers:0 none:3; do
    plan wrong '' '' --offload $wrong
    claim "--offload $wrong is bad input" bad_input
    claim "the sentence lists what there is" says_error 'must be none, layers, activations'
done
plan wrong '' '' --offload layers:9
claim "more layers than there are" bad_input
claim "the sentence says how many" says_error 'repeats 6 layers, not 9'
run meshtf-plan estimate layouts/library/graphs/mlp.json --mesh '' --layout '' --machine cpu-host --offload layers
claim "a graph without layers" bad_input
run meshtf-plan estimate "$work/g.json" --mesh '' --layout '' --machine tpu-v2 --offload layers
claim "a machine whose link to the host is not known" bad_input
claim "the sentence says what is missing" says_error 'host_bandwidth'
run meshtf-plan search "$work/g.json" --mesh 'rows:2' --machine tpu-v2 --offload layers
claim "nor does the search" bad_input
run meshtf-plan search "$work/g.json" --devices 4 --stages 2 --machine cpu-host --offload layers
claim "pipelines keep what waits" bad_input

run meshtf-plan search "$work/g.json" --mesh 'rows:2' --machine h100 --recompute layers --offload layers --gap 0.02 -o "$work/p.json"
claim "the search takes what is asked for" exits 0
claim "its plan says so" grep -q '"offload": *"layers"' "$work/p.json"
claim "and what is the matter with it" says 'recompute layers, offload layers'
run meshtf-plan export "$work/p.json" --to megatron
claim "Megatron-LM has no flag for it" bad_input
# All layers recomputed do not fit; what they are recomputed from may wait with the host.
search_small() {
    run meshtf-plan search gpt-small --mesh rows:2 --machine cpu-host --microbatches 1 --memory 10800000 "$@"
}
search_small --offload none
claim "without the host nothing fits" exits 3
search_small -o "$work/auto.json"
claim "the search leaves something with the host by itself" says 'recompute layers, offload layers'
claim "it fits" test "$(number peak_memory_bytes "$work/auto.json")" -le 10800000
run mpirun -n 2 meshtf-run "$work/auto.json" --data LICENSE --steps 3
claim "it runs" exits 0
claim "the host's memory, and the device's, are as predicted" \
    test "$(grep -cE 'memory a rank .* equal to the byte|with the host .* equal to the byte' "$work/out")" = 2
claim "so is what went there and back" grep -q 'there and back .* equal to the byte on every rank' "$work/out"
claim "so are calls and bytes" says "every rank's calls and bytes equal the program's"

# The host's memory has an end: a machine whose hosts hold a hundredth of what that plan leaves there.
waits=$(number host_memory_bytes "$work/auto.json")
jq --argjson bytes $((waits / 100)) '.machine | .device.host_memory_bytes = $bytes' "$work/auto.json" >"$work/small_host.json"
run meshtf-plan check "$work/small_host.json"
claim "the machine is read" exits 0
search_on() {
    run meshtf-plan search gpt-small --mesh rows:2 --machine "$1" --microbatches 1 --memory 10800000 "$2" "$3" -o "$work/p.json"
}
search_on "$work/small_host.json" --offload auto
claim "the search leaves nothing there by itself" exits 3
search_on "$work/small_host.json" --offload activations
claim "what is asked for cannot be had" test "$status" -ne 0
claim "the sentence says what is short" says_error "share of the host's memory is"
jq --argjson bytes "$waits" '.machine | .device.host_memory_bytes = $bytes' "$work/auto.json" >"$work/just_host.json"
search_on "$work/just_host.json" --offload auto
claim "just as much as the plan needs is enough" says 'recompute layers, offload layers'
claim "and said" grep -q "fits .* yes: .* of its host's" "$work/out"
run meshtf-plan estimate gpt-small --mesh '' --layout '' --machine "$work/small_host.json" --offload activations -o "$work/p.json"
claim "an estimate says that the host is too small" grep -q 'fits .* NO: .* of its host' "$work/out"
claim "and the plan does" grep -q '"fits": *false' "$work/p.json"

# Of a model whose step is not all launches.
meshtf-plan model transformer-lm --preset demo --layers 6 -o "$work/g.json" >/dev/null
run meshtf-plan search "$work/g.json" --mesh 'rows:2' --machine a100 --frontier 3 --gap 0.02 -o "$work/frontier.json"
claim "time against memory goes as far down as the host helps" says 'recompute none, offload activations'
claim "and the plan's points say what waits there" grep -q '"offload": *"activations"' "$work/frontier.json"
run meshtf-plan search "$work/g.json" --mesh 'rows:2' --machine a100 --frontier 3 --gap 0.02 --offload none
claim "not where the user wants none of it" sh -c "! grep -q 'offload' '$work/out'"
done_testing
