# SPDX-License-Identifier: GPL-3.0-or-later
# bench.sh: what benches share, sourced by each in the root of the tree, $root. $programs is where its programs lie, $work a
# folder that goes at the end, $rows the table of bench_NAME.sh, tests/bench/NAME.txt.
# shellcheck shell=sh disable=SC2034
set -eu
bench=$(basename "$0" .sh)
root=$PWD
programs=$root/${MTF_BUILD:-build/${BUILD:-release}}
PATH=$programs:$PATH
rows=$root/tests/bench/${bench#bench_}.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# skip REASON: ends without a verdict.
skip() {
    echo "$bench: skipped, $1"
    exit 0
}

# needs MODULE...: skips where Debian's Python lacks one.
needs() {
    for module in "$@"; do
        /usr/bin/python3 -c "import $module" 2>/dev/null || skip "python3-$module is not installed"
    done
}

# today WHERE: the first line of a table.
today() {
    echo "# $(date -u +%Y-%m-%d), $1: ONLY=$bench make bench"
}

# today_here: the same of what depends on the processor.
today_here() {
    today "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores"
}

# keep: the table that stands in $rows.new takes the place of the old one, whole or not at all.
keep() {
    mv "$rows.new" "$rows"
    cat "$rows"
}
