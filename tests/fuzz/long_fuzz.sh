# SPDX-License-Identifier: GPL-3.0-or-later
# alone: uses both cores
# seconds: 20000
# A million inputs for each file format under the address and undefined-behaviour sanitizers.
# FUZZ_INPUTS changes the number.
. tests/support/tap.sh

# The exact unwinder is for Open MPI's leaks alone and would make every allocation here slow.
export ASAN_OPTIONS=detect_leaks=1
run env MAKEFLAGS= make -s -j2 BUILD=asan fuzzers
claim "the fuzz targets build with sanitizers" exits 0

for target in tests/fuzz/fuzz_*.c; do basename "$target" .c; done | sed 's/^fuzz_//' >"$work/formats"
xargs -P 2 -I FORMAT sh -c "build/asan/tests/fuzz/fuzz_FORMAT ${FUZZ_INPUTS:-1000000} >$work/FORMAT.log 2>&1" <"$work/formats"
while read -r format; do
    run cat "$work/$format.log"
    claim "$format survives ${FUZZ_INPUTS:-a million} inputs" grep -q '^ok 1 - fuzz_' "$work/out"
    sed -n 's/^# /# '"$format"': /p' "$work/$format.log"
done <"$work/formats"
done_testing
