#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Predicted against measured steps on this machine, calibrated once for one rank and once for two:
# perceptrons and Transformers of several sizes, by themselves and under several layouts of two
# ranks. Writes tests/bench/prediction.txt, .csv and .svg, and fails where the prediction is not as
# good as it is said to be: rank correlation 0.9, median error 10 %, worst 30 %, and of each model's
# layouts the one predicted fastest is the fastest or within 5 % of it. BENCH_SECONDS is the time of
# measuring for each number of ranks (60).
. tests/bench/bench.sh
rows=$root/tests/bench/prediction
text=$root/LICENSE
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
[ "$(getconf _NPROCESSORS_ONLN)" -ge 2 ] || skip "two cores are needed"

for ranks in 1 2; do
    mpirun -n "$ranks" meshtf-run --calibrate -o "$work/here$ranks.json"
    : >"$work/plans$ranks"
done

# plan MODEL RANKS NAME LAYOUT: the plan of a layout given as rules.
plan() {
    meshtf-plan estimate "$work/$1.json" --mesh "all:$2" --layout "$4" --machine "$work/here$2.json" \
        -o "$work/$1.$2.$3.plan" >/dev/null
    echo "$work/$1.$2.$3.plan" >>"$work/plans$2"
}

# model NAME "FAMILY AND SETTINGS" "SPLIT": alone, split by examples, by SPLIT, and as the search says.
model() {
    # shellcheck disable=SC2086
    meshtf-plan model $2 -o "$work/$1.json" >/dev/null
    plan "$1" 1 alone ''
    plan "$1" 2 batch 'batch:all'
    [ -z "$3" ] || plan "$1" 2 model "$3"
    meshtf-plan search "$work/$1.json" --mesh all:2 --machine "$work/here2.json" --seconds 10 \
        -o "$work/$1.2.search.plan" >/dev/null
    echo "$work/$1.2.search.plan" >>"$work/plans2"
}

heads='d_ff:all;heads:all;vocab:all'
model mlp-256 "mlp --batch 256 --features 256 --hidden 256 --outputs 64" ""
model mlp-512 "mlp --batch 512 --features 512 --hidden 512 --layers 4" ""
model mlp-1024 "mlp --batch 1024 --features 512 --hidden 1024 --layers 3" ""
model two-layer "mlp --preset two-layer --batch 512 --features 512 --hidden 2048" "hidden:all"
model lm-128 "transformer-lm --layers 2 --d-model 128 --d-ff 512 --heads 4 --d-kv 32 --length 64 --batch 16" "$heads"
model lm-256 "transformer-lm --layers 2 --d-model 256 --d-ff 1024 --heads 4 --length 128 --batch 8" "$heads"
model lm-demo "transformer-lm --preset demo --layers 3" "$heads"
model gpt-256 "gpt --layers 2 --d-model 256 --d-ff 1024 --heads 4 --d-kv 64 --length 128 --batch 4 --vocab 1024" "$heads"

for ranks in 1 2; do
    # shellcheck disable=SC2046
    mpirun -n "$ranks" "$programs/tests/bench/bench_prediction" "${BENCH_SECONDS:-60}" "$text" $(cat "$work/plans$ranks") >"$work/rows$ranks"
done
sed "s|$work/||; s|\\.plan||" "$work/rows1" "$work/rows2" >"$work/rows"

echo "model,ranks,layout,predicted_seconds,measured_seconds,error,samples_kept,samples_taken" >"$rows.csv"
awk '{ split($1, part, "."); printf "%s,%d,%s,%.6g,%.6g,%.4f,%d,%d\n", part[1], $2, part[3], $3, $4, $3 / $4 - 1, $5, $6 }' \
    "$work/rows" >>"$rows.csv"
awk -f "$root/tests/bench/scatter.awk" "$rows.csv" >"$rows.svg"
failed=0
{
    today "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
    awk -f "$root/tests/bench/prediction.awk" "$rows.csv" || failed=1
    echo
} >"$rows.txt"
cat "$rows.txt"
exit "$failed"
