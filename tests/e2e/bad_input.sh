# SPDX-License-Identifier: GPL-3.0-or-later
# Every command refuses what is wrong in one sentence with exit status 2, and explains itself.
. tests/support/tap.sh

commands=$(meshtf-plan --help | sed -n '/^Commands/,$s/^  \([a-z]*\) .*/\1/p' | grep -v '^help$')
for command in $commands; do
    run meshtf-plan "$command" --help
    claim "$command --help succeeds" exits 0
    claim "$command --help shows its usage" says "Usage:"
    run meshtf-plan "$command" --no-such-option
    claim "$command refuses an unknown option" bad_input
    run meshtf-plan "$command" a b c d e f g h i j
    claim "$command refuses arguments it has no use for" bad_input
done

run meshtf-plan solve "$work/absent.json"
claim "solve names a file that is not there" says_error "$work/absent.json"
claim "a missing file is bad input" bad_input
run meshtf-plan solve "$work"
claim "a folder in place of a file is bad input" bad_input

printf '{"problem": {"nodes": ' >"$work/cut.json"
run meshtf-plan solve "$work/cut.json"
claim "a file that is cut off is bad input" bad_input
claim "the place is named" says_error "cut.json:1:"
gzip -c "$work/cut.json" | head -c 30 >"$work/cut.json.gz"
run meshtf-plan solve "$work/cut.json.gz"
claim "a cut off gzip file is bad input" bad_input

done_testing
