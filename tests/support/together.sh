# shellcheck shell=sh disable=SC2154,SC2034 # $work, $build and $status are of tap.sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs of meshtf-run on as many ranks, in one launch (e2e/runs_together.c); read behind tap.sh.

# together SENTENCE RANKS ARGUMENT...: a run of meshtf-run that are_run starts in one launch with the others on as many
# ranks; it leaves $run.out.
together() {
    sentence=$1 on=$2
    shift 2
    runs=$((${runs:-0} + 1))
    run=$work/run-$runs
    printf '%s\t%s\n' "$run" "$sentence" >>"$work/sentences-$on"
    { printf '%s' "$run" && printf '\t%s' "$@" && echo; } >>"$work/runs-$on"
}

are_run() {
    for file in "$work"/runs-*; do
        [ -e "$file" ] || continue
        on=${file##*-}
        mpirun -n "$on" "$build/tests/e2e/runs_together" "$file" >"$work/launch" 2>&1 </dev/null
        while IFS='	' read -r name sentence; do
            cat "$name.out" >"$work/out"
            cat "$name.err" "$work/launch" >"$work/err"
            status=$(cat "$name.status")
            claim "$sentence" exits 0
        done <"$work/sentences-$on"
        rm "$file" "$work/sentences-$on"
    done
}
