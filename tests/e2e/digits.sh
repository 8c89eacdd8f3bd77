# SPDX-License-Identifier: GPL-3.0-or-later
# README's residual network on scikit-learn's digits (1797 pictures of 8 x 8, from Debian's python3-sklearn),
# split over the batch and over space.
. tests/support/tap.sh

digits=/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz
if [ ! -r "$digits" ]; then
    skip "the digits of python3-sklearn are not installed"
    done_testing
fi

# accuracy NAME: the share of the held out digits that were right after the last step.
accuracy() { sed -n 's/.*"held_out_accuracy":\([0-9.]*\),.*/\1/p' "$work/$1.metrics" | tail -n 1; }
at_least() { awk -v a="$1" -v least="$2" 'BEGIN { exit !(a >= least) }'; }

# train NAME RANKS OPTION...: 100 steps.
train() {
    name=$1
    ranks=$2
    shift 2
    run mpirun -n "$ranks" meshtf-run "$work/$name.json" --data "$digits" --eval-every 50 --eval-batches 2 --metrics "$work/$name.metrics" "$@"
    claim "$name trains on $ranks ranks" exits 0
}

meshtf-plan model resnet --preset tiny --batch 64 --width 16 --rate 0.1 --schedule cosine --warmup 10 --total 100 -o "$work/g.json" >"$work/out"
space='rows_8:space;other_rows_8:space;rows_4:space;other_rows_4:space;rows_2:space;other_rows_2:space'
meshtf-plan estimate "$work/g.json" --mesh 'data:2;space:2' --layout "batch:data;$space" --machine cpu-host -o "$work/split.json" >"$work/out"
claim "the plan exchanges halos" grep -q 'halo  *space' "$work/out"
train split 4 --steps 100
claim "it says how many held out digits are right" says ' of its labels score highest'
claim "nine of ten" at_least "$(accuracy split)" 0.9
claim "every rank's traffic is the plan's" says "every rank's calls and bytes equal the program's"
meshtf-plan search "$work/g.json" --devices 1 --machine cpu-host -o "$work/one.json" >"$work/out"
train one 1 --steps 100
claim "likewise on one processor" at_least "$(accuracy one)" 0.9
meshtf-plan search "$work/g.json" --devices 2 --stages 2 --microbatches 2 --machine cpu-host -o "$work/pipeline.json" >"$work/out"
train pipeline 2 --steps 100
claim "and in a pipeline with statistics of each half" at_least "$(accuracy pipeline)" 0.9

# Tables that are none.
zcat "$digits" | sed '7s/,[0-9]*$//' >"$work/cut.csv"
run mpirun -n 1 meshtf-run "$work/one.json" --data "$work/cut.csv" --steps 1
claim "a line that is too short is bad input" exits 2
claim "it says which" says_error "cut.csv, line 7 has 64 columns, but this model wants 64 features, 1 labels and 0 targets"

done_testing
