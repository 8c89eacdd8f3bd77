# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 300
# Drawn networks of windows, experts, loops and whatever else users write, under drawn layouts on 1 to 8 ranks: they train
# as on one processor, make of a batch what one does, send what their plans say and need the memory that these say.
. tests/support/tap.sh
. tests/support/together.sh

count=8 several=0
[ -z "${MTF_LONG:-}" ] || count=150
first=$((${MTF_SEED:-0} * 10000))
for ranks in 1 2 3 4 5 6 7 8; do
    mkdir "$work/$ranks"
    run "$build/tests/e2e/drawn_plans" "$work/$ranks" $ranks $((first + 200 * ranks)) $((first + 200 * ranks + count))
    claim "networks are drawn for $ranks ranks" exits 0
    for plan in "$work/$ranks"/*.json; do
        [ $ranks = 1 ] || several=$((several + 1))
        together "network $(basename "$plan" .json) runs on $ranks ranks as on one processor" $ranks "$plan" --steps 2 --only-mpi --verify
    done
done
are_run
# One that sends nothing, as on one rank, says nothing of it.
says_equal=$(grep -l "every rank's calls and bytes equal the program's" "$work"/run-*.out | wc -l)
says_other=$(grep -l "are NOT the program's" "$work"/run-*.out | wc -l)
differ=$(grep -l "NOT the same" "$work"/run-*.out | wc -l)
claim "all do as on one processor" [ "$differ" = 0 ]
claim "all send what they say" [ "$says_other" = 0 ]
claim "nine of ten of those on several ranks send something" [ $((10 * says_equal)) -ge $((9 * several)) ]
claim "all in the memory that they say" [ "$(grep -L 'equal to the byte' "$work"/run-*.out | wc -l)" = 0 ]

done_testing
