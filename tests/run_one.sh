#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run_one.sh BUILD_FOLDER TEST RANKS KERNELS: runs one test under a time limit, counts its TAP lines into
# BUILD_FOLDER/test-results/NAME.count (passed, failed, skipped), its seconds beside them (of the clock, and
# of processors with all its children), and prints one line when all is well, the whole output otherwise. RANKS 0 is a run without mpirun; KERNELS is "default"
# or ISA/CORE (run_tests.sh). A program that crashes, runs out of time, leaks or says nothing is one
# failed test more than it told.
set -u
build=$1
test=$2
ranks=$3
kernels=${4:-default}

name=${test#tests/}
name=${name%.*}
[ "$ranks" = 0 ] || name="$name ($ranks ranks)"
if [ "$kernels" != default ]; then
    name="$name $kernels"
    export ONEDNN_MAX_CPU_ISA="${kernels%/*}" OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-${kernels#*/}}"
elif [ "${test%.c}" != "$test" ] && [ -n "${TEST_CORE:-}" ]; then
    export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-$TEST_CORE}"
fi
stem=$build/test-results/$(echo "$name" | tr '/ ' '_-' | tr -d '()')
limit=$(sed -n '1,10s/^\(\/\/\|#\) seconds: //p' "$test")
case $test in
*/long_*) limit=${limit:-7200} ;;
*) limit=${limit:-240} ;;
esac
case $build in
*asan) limit=$((limit * 5)) ;;
esac

export CMOCKA_MESSAGE_OUTPUT=TAP MTF_BUILD="$build" PATH="$PWD/$build:$PATH"
# Only Open MPI's leaks need the exact unwinder (see the Makefile), which makes allocation slow; only ranks wait.
if [ "$ranks" = 0 ] && ! { [ "${test%.sh}" != "$test" ] && grep -q 'mpirun\|together.sh' "$test"; }; then
    export ASAN_OPTIONS=detect_leaks=1
elif [ -e "$build/tests/waits.so" ]; then
    export LD_PRELOAD="$PWD/$build/tests/waits.so"
fi
case $test in
*.sh) set -- sh "$test" ;;
*) set -- "$build/${test%.c}" ;;
esac
[ "$ranks" = 0 ] || set -- mpirun -n "$ranks" sh tests/support/rank_output.sh "$stem.rank" "$@"
start=$(date +%s.%N)
timeout -k 10 "$limit" "$@" </dev/null >"$stem.log" 2>&1
status=$?
end=$(date +%s.%N)
# The second line is what this shell's children took, user and system: 1m2.30s 0m0.50s.
times >"$stem.times"
awk -F '[ ms]+' -v run="$test $ranks $kernels" -v begin="$start" -v end="$end" \
    'NR == 2 { printf "%s %.2f %.2f\n", run, end - begin, 60 * ($1 + $3) + $2 + $4 }' \
    "$stem.times" >"$stem.seconds"

counts=$(awk -v status=$status '
    /^ok [0-9]+ # SKIP/ || /^not ok [0-9]+ # SKIP/ || /^ok .*# SKIP/ { skipped++; next }
    /^ok / { passed++ }
    /^not ok / { failed++ }
    END {
        if (failed == 0 && (status != 0 || passed + skipped == 0)) failed = 1
        print passed + 0, failed + 0, skipped + 0
    }' "$stem.log")
echo "$counts" >"$stem.count"
# The three counts are split into words on purpose.
# shellcheck disable=SC2086
set -- $counts
summary="$1 passed"
[ "$2" = 0 ] || summary="$summary, $2 failed"
[ "$3" = 0 ] || summary="$summary, $3 skipped"
if [ "$2" = 0 ]; then
    printf '  ok      %-44s %s\n' "$name" "$summary"
    exit 0
fi
case $status in
124 | 137) summary="$summary, stopped after $limit s" ;;
*) summary="$summary, exit status $status" ;;
esac
{
    printf '  FAILED  %-44s %s\n' "$name" "$summary"
    sed 's/^/    | /' "$stem.log"
    for log in "$stem".rank.*; do
        [ ! -s "$log" ] || sed "s/^/    rank ${log##*.} | /" "$log"
    done
} >"$stem.report"
cat "$stem.report"
