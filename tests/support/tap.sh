# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# For command-line tests: a test reads it first, types commands as a user would, and states claims.
#
#     . tests/support/tap.sh
#     run meshtf-plan frobnicate
#     claim "an unknown command is bad input" exits 2
#     claim "the sentence names the command" says_error frobnicate
#     done_testing
#
# `run` keeps the exit status in $status and the two streams in $work/out and $work/err. Commands run
# at the top of the source tree with the build folder first in PATH; $work is a scratch folder that is
# removed at the end.
set -u
top=$PWD
build=$top/${MTF_BUILD:-build/release}
PATH=$build:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
status=0
claims=0
failures=0

run() {
    "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
}

# claim SENTENCE COMMAND...: one test, passed when COMMAND succeeds.
claim() {
    claims=$((claims + 1))
    sentence=$1
    shift
    if "$@"; then
        echo "ok $claims - $sentence"
        return
    fi
    failures=$((failures + 1))
    echo "not ok $claims - $sentence"
    echo "# failed: $* (last exit status $status)"
    sed 's/^/# out: /' "$work/out" 2>/dev/null | head -n 20
    sed 's/^/# err: /' "$work/err" 2>/dev/null | head -n 20
}

# skip SENTENCE: a test that cannot be judged here, with the reason.
skip() {
    claims=$((claims + 1))
    echo "ok $claims # SKIP $1"
}

done_testing() {
    echo "1..$claims"
    [ "$failures" = 0 ]
    exit
}

exits() {
    [ "$status" = "$1" ]
}

# says TEXT, says_error TEXT: standard output, standard error of the last run holds TEXT.
says() {
    grep -qF -- "$1" "$work/out"
}

says_error() {
    grep -qF -- "$1" "$work/err"
}

is_silent() {
    [ ! -s "$work/err" ]
}

# one_sentence: the last run printed exactly one line on standard error and nothing on standard output.
one_sentence() {
    [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" = 1 ]
}

# bad_input: the last run refused its input the way design.md's sixth law says.
bad_input() {
    exits 2 && one_sentence
}
