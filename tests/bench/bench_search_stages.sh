# SPDX-License-Identifier: GPL-3.0-or-later
# What a search for pipeline stages takes: large models on the clusters they were trained on. `ok` means:
# a plan was found, in no more than the given seconds. Processor time is that of all threads.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# row NAME SECONDS OPTION...: searches $dir/graph.json for stages, in float32 unless told, and prints one line.
row() {
    name=$1 most=$2
    shift 2
    /usr/bin/env bash -c 'TIMEFORMAT="%R %U"; time "$@"' row meshtf-plan search "$dir/graph.json" --stages auto --precision f32 --json \
        -o "$dir/plan.json" "$@" >"$dir/out" 2>"$dir/err"
    # shellcheck disable=SC2046  # two numbers, apart on purpose
    set -- $(tail -n 1 "$dir/err")
    step=$(sed -n 's/^ *"step_seconds": *\([0-9.e+-]*\),*$/\1/p' "$dir/out" | head -n 1)
    awk -v name="$name" -v step="$step" -v wall="$1" -v cpu="$2" -v most="$most" 'BEGIN {
        good = step != "" && wall <= most + 0
        printf "%-48s %9s %8.1f %8.1f  %s\n", name, (step == "" ? "none" : sprintf("%.2f s", step)), wall, cpu, good ? "ok" : "SHORT"
        exit !good }' || failed=1
}

printf '%-48s %9s %8s %8s\n' '' step seconds cpu
meshtf-plan model gpt --preset gpt3-175b --batch 1536 -o "$dir/graph.json" >/dev/null
row 'GPT-3 175B, batch 1536, 1024 A100' 60 --devices 1024 --machine a100 --precision bf16
meshtf-plan model gpt --preset gpt3-175b --layers 48 --d-model 8192 --d-ff 32768 --heads 64 --d-kv 128 --length 1024 --vocab 51200 \
    --batch 1024 -o "$dir/graph.json" >/dev/null
row 'GPT of 39 billion, 64 V100' 20 --devices 64 --machine p3.16xlarge
row 'GPT of 39 billion, bf16, 64 V100' 20 --devices 64 --machine p3.16xlarge --precision bf16
meshtf-plan model resnet --preset alpa-4b -o "$dir/graph.json" >/dev/null
row 'Wide-ResNet of 4 billion, 16 V100' 30 --devices 16 --machine p3.16xlarge
meshtf-plan model resnet --preset alpa-4b --batch 1536 -o "$dir/graph.json" >/dev/null
row 'Wide-ResNet of 4 billion, batch 1536, 16 V100' 30 --devices 16 --machine p3.16xlarge
row 'the same in bf16, any schedule, 16 V100' 30 --devices 16 --machine p3.16xlarge --precision bf16 --schedule auto
meshtf-plan model resnet --preset alpa-6.8b --batch 1536 -o "$dir/graph.json" >/dev/null
row 'Wide-ResNet of 6.8 billion, batch 1536, 32 V100' 30 --devices 32 --machine p3.16xlarge
meshtf-plan model resnet --preset alpa-13b --batch 1536 -o "$dir/graph.json" >/dev/null
row 'Wide-ResNet of 13 billion, batch 1536, 64 V100' 30 --devices 64 --machine p3.16xlarge
exit "$failed"
