# SPDX-License-Identifier: GPL-3.0-or-later
# The fuzz driver finds a planted bug, always by the same input, and says how to repeat it.
. tests/support/tap.sh
rm -f "$build"/tests/fuzz/planted-input-*

run "$build/tests/fuzz/planted"
claim "a planted bug is found" exits 1
claim "a finding is a failed test" says "not ok 1"
first=$(grep '^# repeat with' "$work/out")
claim "the finding can be repeated" [ -n "$first" ]

run "$build/tests/fuzz/planted" "${first##* }"
claim "the saved input shows the bug" [ "$status" -gt 128 ]

run "$build/tests/fuzz/planted"
claim "every run tries the same inputs" [ "$(grep '^# repeat with' "$work/out")" = "$first" ]

run "$build/tests/fuzz/planted" 4
claim "the seeds themselves are clean" exits 0
rm -f "$build"/tests/fuzz/planted-input-*
done_testing
