#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Published runs with pipelines beside what `meshtf-plan judge` prices them at (constants from benchmarks and data sheets): vTrain's
# on several nodes, PTD-P's tables, zero-bubble's (there ratios between schedules of the same run count), and all other sources.
# Writes tests/bench/published_pipelines.txt. Skips where the runs are not there.
. tests/bench/bench.sh
runs=../shared/data/measured/published_runs.tsv
[ -e "$runs" ] || skip "$runs is not there"

awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i } NR == 1 || $column["pp"] > 1' "$runs" >"$work/staged.tsv"
# Identifiers hold no spaces: "ID predicted measured error %".
meshtf-plan judge --grades ABCD "$work/staged.tsv" | awk '$5 == "%" { print $1, $2, $3, $4 }' >"$work/judged"

# group TITLE PATTERN: errors of the runs whose identifiers match, and their median, mean and worst.
group() {
    echo
    echo "# $1"
    grep -E "$2" "$work/judged" | awk '{ e = $4 < 0 ? -$4 : $4 + 0; printf "%-40s %8.4g s %8.4g s %+7.1f %%\n", $1, $2, $3, $4; print e >"/dev/stderr" }' 2>"$work/errors"
    sort -g "$work/errors" | awk '{ a[NR] = $1; s += $1 } END { printf "runs %d, median error %.1f %%, mean error %.1f %%, worst %.1f %%\n", NR, NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2, s / NR, a[NR] }'
}

# Time of a schedule over that of 1F1B in the same run, predicted and measured.
ratios() {
    echo
    echo "# zero-bubble: time of a schedule over that of 1F1B, same model and micro-batches"
    awk '/^zb-/ { id = $1; sub(/^zb-/, "", id); m = id; sub(/.*-m/, "", m); model = id; sub(/-.*/, "", model)
                  schedule = id; sub(/^[^-]*-/, "", schedule); sub(/-m[0-9]*$/, "", schedule)
                  p[model "-m" m, schedule] = $2; t[model "-m" m, schedule] = $3; order[++n] = model "-m" m SUBSEP schedule }
         END { for (i = 1; i <= n; i++) { split(order[i], key, SUBSEP); base = key[1] SUBSEP "1F1B"
                   if (key[2] == "1F1B" || !(base in p)) continue
                   predicted = p[order[i]] / p[base]; measured = t[order[i]] / t[base]; e = 100 * (predicted / measured - 1)
                   a = e < 0 ? -e : e; s += a; k++; if (a > worst) worst = a
                   printf "%-40s %8.3f   %8.3f   %+7.1f %%\n", key[1] " " key[2], predicted, measured, e }
               printf "ratios %d, mean error %.1f %%, worst %.1f %%\n", k, s / k, worst }' "$work/judged"
}

{
    echo "# $(date -u +%Y-%m-%d), any machine (a prediction is exact arithmetic): predicted, measured, error of runs with pipelines"
    echo "# of published_runs.tsv. Reported elsewhere: Calculon 3.65 % mean on the eight runs it is fitted to, vTrain 14.73 % on several nodes;"
    echo "# the target here is 15 % for each."
    group "vTrain, 64 and 512 A100 (vTrain itself: 14.73 % mean over its 108)" '^vtrain'
    group "PTD-P, tables 1 and 2" '^ptdp'
    group "Korthikanti and others of Megatron-LM (Calculon's eight among them)" '^(korth|mtnlg)'
    group "zero-bubble, seconds" '^zb-'
    ratios
    group "all runs with pipelines" '.'
} >"$rows.new"
keep
