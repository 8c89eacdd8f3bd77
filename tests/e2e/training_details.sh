# SPDX-License-Identifier: GPL-3.0-or-later
# Details of training where they meet: optimizers, schedules, clipping, decay that skips, frozen variables, means of weights, an
# assigned mean, labels that count nothing, smoothed, a z-loss; split, in micro-batches, in stages, and by weights that lag. Beside
# the formulas in Python (support/training_details.py).
. tests/support/tap.sh
. tests/support/together.sh

reference=$top/tests/support/training_details.py
python3 "$reference" write "$work"

# lay NAME CASE OPTION…: the plan of a case, as its losses and weights are kept.
lay() {
    name=$work/$1 case=$2
    shift 2
    run meshtf-plan "$@" --precision f64 --machine cpu-host -o "$name.plan"
    claim "$(basename "$name") is planned" exits 0
    echo "$case $name" >>"$work/plans"
}

# train RANKS: the plan that was laid last.
train() {
    together "$(basename "$name") trains on $1 ranks" "$1" "$name.plan" --data "$work/x.npy" --data "$work/y.npy" --held-out 0 --steps 8 \
        --init "$work/weights.safetensors" --metrics "$name.metrics" --checkpoint "$name.run" --checkpoint-every 8
}

for case in lamb lion muon adamw momentum sgd adafactor; do
    lay "$case-one" "$case" estimate "$work/$case.json" --mesh a:1 --layout '' --microbatches 3
    train 1
    lay "$case-batch" "$case" estimate "$work/$case.json" --mesh 'a:2;b:2' --layout 'batch:a;wide:b' --microbatches 2
    train 4
    lay "$case-features" "$case" estimate "$work/$case.json" --mesh a:3 --layout 'hidden:a'
    train 3
    lay "$case-stages" "$case" search "$work/$case.json" --mesh a:1 --stages 2 --microbatches 4
    train 2
done
for schedule in 1f1b pipedream pipedream-2bw; do
    lay lags-$schedule lags search "$work/lags.json" --mesh a:1 --stages 2 --microbatches 3 --schedule $schedule
    train 2
done
are_run

# Which variables a plan reads an update late: those of all stages, or of the first.
late() {
    case $1 in
    *-2bw) echo wbucvd ;;
    *-pipedream) echo wbuc ;;
    esac
}
while read -r case name; do
    claim "$(basename "$name") is what the formulas say" python3 "$reference" judge "$case" "$name.metrics" "$name.run/step-00000008.safetensors" \
        "$(late "$name")"
done <"$work/plans"
differs() { ! python3 "$reference" judge lags "$work/lags-pipedream.metrics" "$work/lags-pipedream.run/step-00000008.safetensors"; }
claim "weights that do not lag would be seen" differs
done_testing
