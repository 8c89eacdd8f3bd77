#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run_tests.sh BUILD_FOLDER TEST...: runs tests (sources, as make lists them) and sums their verdicts.
# Half as many again run at once as there are cores (TEST_JOBS), MPI tests too: ranks that start wait for
# each other, so that a test keeps half a core busy on average (817 s of processors in 840 s), and give
# way meanwhile; with more at once, exchanges wait for their turn among ranks that look for theirs. The
# longest of the last run begin first; what wants the machine to itself comes last.
# Before the verdict it says which took longest, since the suite is to end within ten minutes on two cores.
set -u
build=$1
shift
results=$build/test-results
times=$build/test-times

# Two runs in one build folder would mix their verdicts. Tests do not inherit the lock (9>&- below): what one
# of them leaves running must not keep the next run out.
mkdir -p "$build"
exec 9>"$build/test-lock"
flock -n 9 || {
    echo "another run of tests in $build goes on: wait for its end, or test in a clone of your own" >&2
    exit 1
}
rm -rf "$results"
mkdir -p "$results"
[ -e "$times" ] || : >"$times"
# nproc would take OMP_NUM_THREADS, which is one for every rank here, for the number of cores.
cores=$(env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2)
jobs=${TEST_JOBS:-$(((3 * cores + 1) / 2))}

# The libraries choose their kernels by the processor. A test whose numbers come from them says
# "kernels: why" and runs under each setting of TEST_KERNELS: "default", or ISA/CORE for
# ONEDNN_MAX_CPU_ISA and OPENBLAS_CORETYPE (which stays what it is where the environment presets it).
# TEST_CORE is what meshtf-run chooses, which tests in C run by default.
TEST_CORE=$(PATH="$PWD/$build:$PATH" sh tests/openblas_core.sh)
export TEST_CORE
other_core() {
    if [ "$TEST_CORE" = Prescott ]; then echo Haswell; else echo Prescott; fi
}

# tells TEST WORD: what the test's first lines say after "WORD: ".
tells() {
    sed -n '1,10s/^\(\/\/\|#\) '"$2"': //p' "$1"
}

# The default is found out only when a test wants it.
settings_of() {
    [ -n "$(tells "$1" kernels)" ] || { echo default; return; }
    TEST_KERNELS=${TEST_KERNELS:-default AVX2/$(other_core)}
    echo "$TEST_KERNELS"
}

for test in "$@"; do
    list=together
    [ -z "$(tells "$test" alone)" ] || list=alone
    ranks=$(tells "$test" ranks)
    for setting in $(settings_of "$test"); do
        for count in ${ranks:-0}; do echo "$test $count $setting"; done
        [ -z "$(tells "$test" kernels)" ] || echo "$setting" >>"$results/numerical"
    done >>"$results/$list"
done 2>/dev/null

# Sorted by the seconds of the last run, the longest first; of unknown ones by a sixth of their limits.
longest_first() {
    while read -r test count setting; do
        limit=$(tells "$test" seconds)
        echo "$test $count $setting ${limit:-120}"
    done <"$1" 2>/dev/null |
        awk -v times="$times" '
            BEGIN { while ((getline <times) > 0) seconds[$1 " " $2 " " $3] = $4 }
            { key = $1 " " $2 " " $3; print (key in seconds ? seconds[key] : $4 / 6), key }' |
        sort -s -k1,1nr | cut -d ' ' -f 2-
}

run_list() {
    [ ! -e "$results/$1" ] || longest_first "$results/$1" | xargs -P "$2" -L 1 sh tests/run_one.sh "$build" 9>&-
}
run_list together "$jobs"
run_list alone 1

# What this run measured takes the place of what the last one did.
cat "$times" "$results"/*.seconds 2>/dev/null |
    awk '{ seconds[$1 " " $2 " " $3] = $4 " " $5 } END { for (key in seconds) print key, seconds[key] }' >"$times.new"
mv "$times.new" "$times"

# The ten that took longest, of those above TEST_SLOW seconds.
cat "$results"/*.seconds 2>/dev/null | sort -k4,4nr | awk -v least="${TEST_SLOW:-10}" '
    $4 >= least && ++n <= 10 { slow = slow sprintf("  %6.1f s, %6.1f s of processors  %s\n", $4, $5, $1) }
    { sum += $5 }
    END { if (n > 0) printf "  took longest (%.0f s of processors in all):\n%s", sum, slow }'

# What the numerical ones ran under.
kernels_of() {
    [ "$1" = default ] || export ONEDNN_MAX_CPU_ISA="${1%/*}" OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-${1#*/}}"
    PATH="$PWD/$build:$PATH" meshtf-run --version 2>/dev/null | sed -n 2p
}
sort "$results/numerical" 2>/dev/null | uniq -c | while read -r count setting; do
    echo "  numerical tests: $count under $setting, $(kernels_of "$setting")"
done

[ $# -gt 0 ] || echo "no test has that in its name"
cat "$results"/*.count 2>/dev/null | awk '
    { passed += $1; failed += $2; skipped += $3 }
    END {
        if (NR == 0) failed = 1
        printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
        exit failed > 0
    }'
