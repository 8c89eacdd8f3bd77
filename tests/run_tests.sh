#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run_tests.sh BUILD_FOLDER TEST...: runs tests (sources, as make lists them) and sums their verdicts.
# Plain programs run two at a time; what starts MPI ranks has the machine to itself, afterwards.
set -u
build=$1
shift
results=$build/test-results
rm -rf "$results"
mkdir -p "$results"

# Among a test's first lines: "ranks: 1 2 4" runs it under mpirun, once for each count; "alone: why"
# keeps other tests from running beside it, as does any mention of mpirun in a script.
ranks_of() {
    sed -n '1,10s/^\(\/\/\|#\) ranks: //p' "$1"
}

is_alone() {
    sed -n '1,10p' "$1" | grep -q '^\(//\|#\) alone:' || { [ "${1%.sh}" != "$1" ] && grep -q mpirun "$1"; }
}

for test in "$@"; do
    ranks=$(ranks_of "$test")
    if [ -n "$ranks" ]; then
        for count in $ranks; do echo "$test $count"; done >>"$results/serial"
    elif is_alone "$test"; then
        echo "$test 0" >>"$results/serial"
    else
        echo "$test 0" >>"$results/parallel"
    fi
done

for list in parallel serial; do
    [ -e "$results/$list" ] || continue
    jobs=1
    [ "$list" = serial ] || jobs=${TEST_JOBS:-2}
    xargs -P "$jobs" -L 1 sh tests/run_one.sh "$build" <"$results/$list"
done

cat "$results"/*.count 2>/dev/null | awk -v tests=$# '
    { passed += $1; failed += $2; skipped += $3 }
    END {
        if (NR == 0 && tests > 0) failed = 1
        printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
        exit failed > 0
    }'
