#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Predicted against measured steps of pipelines on this machine, calibrated for two ranks: two stages of one
# rank each, several networks, schedules, numbers of micro-batches and of chunks. Writes
# tests/bench/stages.txt and .csv, and fails where the prediction is not as good as prediction.awk asks. A
# row counts where samples were kept of it, which needs both cores to itself. BENCH_SECONDS is the time of
# measuring (120), BENCH_MACHINE a machine that --calibrate has written for two ranks.
. tests/bench/bench.sh
rows=$root/tests/bench/stages
text=$root/LICENSE
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
[ "$(getconf _NPROCESSORS_ONLN)" -ge 2 ] || skip "two cores are needed"

if [ -n "${BENCH_MACHINE:-}" ]; then
    cp "$BENCH_MACHINE" "$work/here.json"
else
    mpirun -n 2 meshtf-run --calibrate -o "$work/here.json"
fi

# model NAME FAMILY SETTINGS...
model() {
    name=$1
    shift
    meshtf-plan model "$@" -o "$work/$name.json" >/dev/null
}

# plan MICRO-BATCHES SCHEDULE OPTION...: two stages of the last model.
plan() {
    microbatches=$1
    schedule=$2
    shift 2
    file=$work/$name.$schedule-$microbatches.plan
    [ ! -e "$file" ] || file=$work/$name.$schedule-$microbatches-recomputed.plan
    meshtf-plan search "$work/$name.json" --devices 2 --machine "$work/here.json" --stages 2 \
        --microbatches "$microbatches" --schedule "$schedule" "$@" -o "$file" >/dev/null
    echo "$file" >>"$work/plans"
}

model lm transformer-lm --layers 4 --d-model 256 --d-ff 1024 --heads 4 --length 128 --batch 16
plan 2 1f1b
plan 8 1f1b
plan 8 gpipe
plan 4 zb-h1
plan 4 interleaved
model gpt gpt --layers 4 --d-model 256 --d-ff 1024 --heads 4 --d-kv 64 --length 128 --batch 8 --vocab 1024
plan 4 1f1b
plan 4 zb-v
plan 4 dualpipe-v
plan 4 1f1b --recompute layers
model mlp mlp --batch 1024 --features 512 --hidden 512 --layers 8
plan 4 1f1b
plan 4 zb-2p
name=translator
cp "$root/layouts/library/graphs/transformer-small.json" "$work/translator.json"
plan 4 1f1b --dim batch=16 --dim length=64 --dim memory_length=64
model experts mixtral --preset tiny --batch 32 --length 128
plan 4 1f1b
model unet unet --preset tiny --batch 8 --image 16 --width 16
plan 4 1f1b
plan 4 eager-1f1b
model recurrent lstm-lm --preset tiny --batch 64
plan 4 1f1b

# shellcheck disable=SC2046
mpirun -n 2 "$programs/tests/bench/bench_prediction" "${BENCH_SECONDS:-120}" "$text" $(cat "$work/plans") >"$work/rows"

echo "model,ranks,layout,predicted_seconds,measured_seconds,error,samples_kept,samples_taken" >"$rows.csv"
sed "s|$work/||; s|\\.plan||" "$work/rows" |
    awk '{ split($1, part, "."); printf "%s,%d,%s,%.6g,%.6g,%.4f,%d,%d\n", part[1], $2, part[2], $3, $4, $3 / $4 - 1, $5, $6 }' \
        >>"$rows.csv"
failed=0
{
    today "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores, load $(cut -d ' ' -f 1 /proc/loadavg)"
    awk -f "$root/tests/bench/prediction.awk" "$rows.csv" || failed=1
} >"$rows.txt"
cat "$rows.txt"
exit "$failed"
