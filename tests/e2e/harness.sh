# SPDX-License-Identifier: GPL-3.0-or-later
# The test runner counts what fails, crashes, hangs or says nothing.
. tests/support/tap.sh
unset TEST_SLOW

# A small tree of its own, so that the runner's results here are not overwritten.
mkdir -p "$work/tree/tests/x" "$work/tree/build"
cp tests/run_tests.sh tests/run_one.sh tests/openblas_core.sh "$work/tree/tests/"
ln -s "$top/tests/support" "$work/tree/tests/support"
cd "$work/tree" || exit 1

# given NAME TEXT: a test script; verdict: the runner's last line for the scripts so far.
given() {
    printf '%s\n' "$2" >"tests/x/$1.sh"
}

run_tests() {
    run sh tests/run_tests.sh build "$@"
    verdict=$(tail -n 1 "$work/out")
}

verdict_is() {
    [ "$verdict" = "$1" ] || { echo "# verdict: $verdict"; return 1; }
}

given green 'echo "ok 1 - a"; echo "ok 2 - b"'
given red 'echo "ok 1 - a"; echo "not ok 2 - b"; exit 1'
given crash 'echo "ok 1 - a"; echo last words; kill -SEGV $$'
given hang '# seconds: 1
echo "ok 1 - a"; sleep 100'
given mute ':'
given skipping 'echo "not ok 1 # SKIP a"; echo "ok 2 # SKIP b"; echo "ok 3 - c"'

run_tests tests/x/green.sh
claim "all passed is success" exits 0
claim "passed tests are counted" verdict_is "2 passed, 0 failed"
claim "a green program takes one line" [ "$(wc -l <"$work/out")" = 2 ]

# shellcheck disable=SC2016
given busy 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; echo "ok 1 - a"'
run env TEST_SLOW=0 sh tests/run_tests.sh build tests/x/green.sh tests/x/busy.sh
claim "the longest tests are named, the longest first" \
    [ "$(sed -n 's/.* s of processors  //p' "$work/out" | tr '\n' ' ')" = "tests/x/busy.sh tests/x/green.sh " ]
# shellcheck disable=SC2016
claim "with the seconds of processors that their children took" \
    awk '$NF ~ /busy/ { said = $4 == "s" && $3 > 0 && $3 <= $1 + 0.1 } END { exit !said }' "$work/out"

run_tests tests/x/green.sh tests/x/red.sh
claim "a failed test fails the run" exits 1
claim "failed tests are counted" verdict_is "3 passed, 1 failed"

run_tests
claim "a run of no test fails" exits 1
claim "and says why" grep -qx "no test has that in its name" "$work/out"

run_tests tests/x/crash.sh
claim "a crash is a failed test" verdict_is "1 passed, 1 failed"
claim "a crashed program's output is shown" says "last words"

run_tests tests/x/hang.sh
claim "a hanging program is stopped and is a failed test" verdict_is "1 passed, 1 failed"
claim "the time limit is named" says "stopped after 1 s"

given orphan 'sleep 100 >/dev/null 2>&1 & echo $! >orphan; echo "ok 1 - a"'
given twice "run() { sh $top/tests/run_tests.sh build tests/x/green.sh; }"'
! run 2>said && grep "another run of tests in build goes on" said && echo "ok 1 - a"'
run_tests tests/x/twice.sh tests/x/orphan.sh
claim "a second run in the same folder is refused, and the first one's verdict stays" verdict_is "2 passed, 0 failed"
run_tests tests/x/green.sh
claim "what a test leaves running does not keep the next run out" verdict_is "2 passed, 0 failed"
kill "$(cat orphan)"

run_tests tests/x/mute.sh
claim "a program without a verdict is a failed test" verdict_is "0 passed, 1 failed"

run_tests tests/x/skipping.sh
claim "skipped tests are counted apart" verdict_is "1 passed, 0 failed, 2 skipped"

run_tests tests/x/absent.sh
claim "a missing test is a failed test" verdict_is "0 passed, 1 failed"

# The scripts expand their own variables.
# shellcheck disable=SC2016
given ranks '# ranks: 1 2 3
echo "ok 1 - rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"'
run_tests tests/x/ranks.sh
claim "a test with ranks runs under mpirun once for each count, and rank 0 is counted" \
    verdict_is "3 passed, 0 failed"

# shellcheck disable=SC2016
given one_rank_fails '# ranks: 2
echo "ok 1 - a"
[ "$OMPI_COMM_WORLD_RANK" = 0 ] || { echo lost words; exit 1; }'
run_tests tests/x/one_rank_fails.sh
claim "a failure on another rank fails the test" verdict_is "1 passed, 1 failed"
claim "that rank's output is shown" says "rank 1 | lost words"

given ranks_hang '# ranks: 2
# seconds: 2
echo "ok 1 - a"; exec sleep 100'
run_tests tests/x/ranks_hang.sh
claim "hanging ranks are stopped" verdict_is "1 passed, 1 failed"

# shellcheck disable=SC2016
given numbers '# kernels: they are a library'"'"'s
echo "ok 1 - a"; echo "$ONEDNN_MAX_CPU_ISA/$OPENBLAS_CORETYPE" >>seen'
export TEST_KERNELS="default SSE41/Nehalem AVX2/Haswell"
env -u OPENBLAS_CORETYPE -u ONEDNN_MAX_CPU_ISA sh tests/run_tests.sh build tests/x/numbers.sh >out
verdict=$(tail -n 1 out)
claim "a test of library numbers runs once a setting" verdict_is "3 passed, 0 failed"
claim "under that setting" [ "$(sort seen | tr '\n' ' ')" = "/ AVX2/Haswell SSE41/Nehalem " ]
claim "the settings are said at the end" [ "$(grep -cE '^  numerical tests: 1 under (default|SSE41/Nehalem|AVX2/Haswell), ' out)" = 3 ]
rm seen
run env OPENBLAS_CORETYPE=Zen sh tests/run_tests.sh build tests/x/numbers.sh
claim "a preset choice of OpenBLAS's kernels is kept" [ "$(grep -c /Zen seen)" = 3 ]
unset TEST_KERNELS

cd "$top" || exit 1
done_testing
