# SPDX-License-Identifier: GPL-3.0-or-later
# Convolutional networks cut into pipeline stages, their batch norms' statistics of one micro-batch each: the
# losses are those of the whole in as many micro-batches, memory and what is sent are those of the plan.
# seconds: 300
. tests/support/tap.sh

losses() { sed 's/.*"loss": *\([-+.e0-9]*\).*/\1/' "$1"; }

# same A B: two runs of five steps whose losses differ by no more than 1e-10, relatively.
same() {
    losses "$1" >"$work/a"
    losses "$2" >"$work/b"
    paste "$work/a" "$work/b" | awk '{ d = ($1 - $2) / $1; if (d > 1e-10 || d < -1e-10) exit 1 } END { exit NR != 5 }'
}

apart() { ! same "$@"; }

# plan NAME MICROBATCHES OPTION...: of the network at hand; train NAME RANKS: five steps.
plan() {
    name=$1
    parts=$2
    shift 2
    run meshtf-plan search "$work/g.json" --machine cpu-host --precision f64 --microbatches "$parts" "$@" -o "$work/$name.json"
    claim "$network: $name is planned" exits 0
}

train() {
    run mpirun -n "$2" meshtf-run "$work/$1.json" --steps 5 --seed 3 --metrics "$work/$1.metrics"
    claim "$network: $1 runs on $2 ranks" exits 0
}

equal_to_the_byte() { [ "$(grep -c 'equal to the byte on every rank' "$work/out")" = 2 ]; }

# staged NAME RANKS OPTION...: a pipeline, against `whole`.
staged() {
    name=$1
    ranks=$2
    shift 2
    plan "$name" 4 "$@"
    claim "$network: it says whose statistics they are" says "batch statistics of each micro-batch"
    train "$name" "$ranks"
    claim "$network: $name gives the losses of the whole" same "$work/whole.metrics" "$work/$name.metrics"
    claim "$network: memory and transfers are those of the plan" equal_to_the_byte
}

# Statistics of few examples blow up what is rounded: of two numbers they leave little but a sign. So there are
# eight examples in each micro-batch.
for network in resnet unet; do
    meshtf-plan model $network --preset tiny --batch 32 -o "$work/g.json" >"$work/out"
    plan whole 4 --mesh rows:1
    train whole 1
    plan halves 2 --mesh rows:1
    train halves 1
    claim "$network: another number of micro-batches is another result" apart "$work/whole.metrics" "$work/halves.metrics"
    staged two 2 --devices 2 --stages 2
    staged two-by-two 4 --devices 4 --stages 2
done
staged zb-h1 2 --devices 2 --stages 2 --schedule zb-h1
# Cut within a batch norm, what stages send goes past others, is taken late, and none of the sender's passes reads it again.
meshtf-plan model unet --preset tiny --batch 16 -o "$work/g.json" >"$work/out"
plan whole 8 --mesh rows:1
train whole 1
plan interleaved 8 --devices 2 --stages 2 --schedule interleaved
train interleaved 2
claim "unet: stages in turn give the losses of the whole" same "$work/whole.metrics" "$work/interleaved.metrics"
plan four 8 --devices 4 --stages 4
train four 4
claim "unet: and so do four stages" same "$work/whole.metrics" "$work/four.metrics"
network=resnet
meshtf-plan model resnet --preset tiny --batch 8 --norm-over step -o "$work/g.json" >"$work/out"
run meshtf-plan search "$work/g.json" --machine cpu-host --devices 1 --microbatches 4 -o "$work/p.json"
claim "statistics of the step refuse micro-batches" bad_input
claim "and say what stands in the way" says_error "sums over the batch"
run meshtf-plan model gpt --preset tiny --norm-over step -o "$work/g.json"
claim "families without batch norms have no such choice" says_error "family gpt has no parameter --norm-over"

# What is looked for: cuts at the blocks of the network, where the narrowest places are all at its end.
meshtf-plan model resnet --preset alpa-500m --batch 256 -o "$work/g.json" >"$work/out"
run meshtf-plan search "$work/g.json" --machine p3.16xlarge --devices 8 --stages 2 --microbatches 16 --json -o "$work/p.json"
claim "a Wide-ResNet of Alpa's is cut" exits 0
claim "into stages that take about as long" sh -c "sed -n 's/.*\"forward_seconds\":\([^,]*\),\"backward_seconds\":\([^,]*\),.*/\1 \2/p' '$work/out' |
    awk '{ t[NR] = \$1 + \$2 } END { r = t[1] / t[2]; exit !(r > 0.5 && r < 2) }'"

done_testing
