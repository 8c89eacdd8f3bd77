#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Predictions for the accelerators that people have, beside published runs: with constants from
# benchmarks and data sheets, and fitted with the source of each run left out. Writes
# tests/bench/judge.txt and the scatter plot tests/bench/judge.svg. Skips where the runs are not there.
set -eu
runs=../shared/data/measured/published_runs.tsv
out=tests/bench/judge.txt
[ -e "$runs" ] || { echo "bench_judge: $runs is not there"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# section TITLE OPTION...: what judge says of sources, machines, profiles and of all.
section() {
    echo
    echo "# $1"
    shift
    echo "# meshtf-plan judge $* published_runs.tsv"
    meshtf-plan judge "$@" "$runs" | sed -n '/: rows /p; /^rows /p'
}

{
    echo "# $(date -u +%Y-%m-%d), any machine (a prediction is exact arithmetic)"
    section "dense, grades A and B, constants from benchmarks and data sheets" --grades AB --models dense
    section "dense, grades A and B, machines fitted to the other sources" --grades AB --models dense --fit-on "$runs" --leave-out source
    section "experts, grades A to C, constants from benchmarks and data sheets" --grades ABC --models moe
    section "experts, grades A to C, machines fitted to the other sources" --grades ABC --models moe --fit-on "$runs" --leave-out source
    grep '^id\|^vtrain' "$runs" | awk 'NR == 1 || NR % 5 == 2' >"$work/eight.tsv"
    grep '^id\|^vtrain' "$runs" | awk 'NR == 1 || NR % 5 != 2' >"$work/others.tsv"
    echo
    echo "# $(($(wc -l <"$work/others.tsv") - 1)) runs of vTrain after fitting on $(($(wc -l <"$work/eight.tsv") - 1))"
    meshtf-plan judge --fit-on "$work/eight.tsv" "$work/others.tsv" | tail -n 1
} >"$out.new"
mv "$out.new" "$out"
{
    echo "run,ranks,machine,predicted,measured"
    meshtf-plan judge --grades AB "$runs" | awk '$5 == "%" { print $1 ",1,," $2 "," $3 }'
} >"$work/runs.csv"
awk -f tests/bench/scatter.awk "$work/runs.csv" >tests/bench/judge.svg
cat "$out"
