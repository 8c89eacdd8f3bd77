# SPDX-License-Identifier: GPL-3.0-or-later
# What a user types before knowing the program.
. tests/support/tap.sh

run meshtf-plan --help
claim "--help explains the program" exits 0
claim "--help shows the usage" says "Usage: meshtf-plan COMMAND"
claim "--help says nothing on standard error" is_silent

for program in meshtf-plan meshtf-report meshtf-run; do
    run "$program" --version
    claim "$program --version succeeds" exits 0
    claim "$program --version names itself" says "$program "
done

run meshtf-plan
claim "no command is bad input in one sentence" bad_input

run meshtf-plan frobnicate
claim "an unknown command is bad input in one sentence" bad_input
claim "the sentence names the unknown command" says_error '"frobnicate"'

run meshtf-plan --frobnicate
claim "an unknown option is bad input in one sentence" bad_input

done_testing
