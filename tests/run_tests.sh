#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run_tests.sh BUILD_FOLDER TEST...: runs tests (sources, as make lists them) and sums their verdicts.
# As many run at once as there are cores (TEST_JOBS), MPI tests too: their ranks give way while they
# wait. The longest of the last run begin first; what wants the machine to itself comes last.
set -u
build=$1
shift
results=$build/test-results
times=$build/test-times
rm -rf "$results"
mkdir -p "$results"
[ -e "$times" ] || : >"$times"
# nproc would take OMP_NUM_THREADS, which is one for every rank here, for the number of cores.
jobs=${TEST_JOBS:-$(env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2)}

# The libraries choose their kernels by the processor. A test whose numbers come from them says
# "kernels: why" and runs under each setting of TEST_KERNELS: "default", or ISA/CORE for
# ONEDNN_MAX_CPU_ISA and OPENBLAS_CORETYPE (which stays what it is where the environment presets it).
other_core() {
    case $(PATH="$PWD/$build:$PATH" meshtf-run --version 2>/dev/null) in
    *"Prescott kernels"*) echo Haswell ;;
    *) echo Prescott ;;
    esac
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
    done >>"$results/$list"
done 2>/dev/null

# Sorted by the seconds of the last run, the longest first; unknown ones count as long.
longest_first() {
    awk 'FILENAME == ARGV[1] { seconds[$1 " " $2 " " $3] = $4; next }
        { key = $1 " " $2 " " $3; print (key in seconds ? seconds[key] : 20), key }' "$times" "$1" |
        sort -s -k1,1nr | cut -d ' ' -f 2-
}

run_list() {
    [ ! -e "$results/$1" ] || longest_first "$results/$1" | xargs -P "$2" -L 1 sh tests/run_one.sh "$build"
}
run_list together "$jobs"
run_list alone 1

# What this run measured takes the place of what the last one did.
cat "$times" "$results"/*.seconds 2>/dev/null |
    awk '{ seconds[$1 " " $2 " " $3] = $4 } END { for (key in seconds) print key, seconds[key] }' >"$times.new"
mv "$times.new" "$times"

cat "$results"/*.count 2>/dev/null | awk -v tests=$# '
    { passed += $1; failed += $2; skipped += $3 }
    END {
        if (NR == 0 && tests > 0) failed = 1
        printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
        exit failed > 0
    }'
