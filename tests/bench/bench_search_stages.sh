# SPDX-License-Identifier: GPL-3.0-or-later
# What a search for pipeline stages takes: large models on the clusters they were trained on. `ok` means:
# a plan was found. Processor time is that of all threads.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

# row NAME OPTION...: searches $dir/graph.json for stages and prints one line.
row() {
    name=$1
    shift
    /usr/bin/env bash -c 'TIMEFORMAT="%R %U"; time "$@"' row meshtf-plan search "$dir/graph.json" --stages auto --json \
        -o "$dir/plan.json" "$@" >"$dir/out" 2>"$dir/err"
    # shellcheck disable=SC2046  # two numbers, apart on purpose
    set -- $(tail -n 1 "$dir/err")
    step=$(sed -n 's/^ *"step_seconds": *\([0-9.e+-]*\),*$/\1/p' "$dir/out" | head -n 1)
    awk -v name="$name" -v step="$step" -v wall="$1" -v cpu="$2" 'BEGIN {
        printf "%-44s %9s %8.1f %8.1f  %s\n", name, (step == "" ? "none" : sprintf("%.2f s", step)), wall, cpu, step != "" ? "ok" : "SHORT"
        exit step == "" }' || failed=1
}

printf '%-44s %9s %8s %8s\n' '' step seconds cpu
meshtf-plan model gpt --preset gpt3-175b --batch 1536 -o "$dir/graph.json" >/dev/null
row 'GPT-3 175B, batch 1536, 1024 A100' --devices 1024 --machine a100
meshtf-plan model resnet --preset alpa-4b -o "$dir/graph.json" >/dev/null
row 'Wide-ResNet of 4 billion, 16 p3.16xlarge' --devices 16 --machine p3.16xlarge
exit "$failed"
