# SPDX-License-Identifier: GPL-3.0-or-later
# What meshtf-report writes, looked at with other people's tools.
# seconds: 300
. tests/support/tap.sh

graph=layouts/library/graphs/transformer-small.json
run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --layouts rule -o "$work/plan.json"
claim "there is a plan" exits 0
printf '%s\n' '{"step":1,"loss":4.5,"seconds":0.4,"communication_seconds":0.1}' \
    '{"step":2,"loss":3.5,"seconds":0.2,"communication_seconds":0.1}' >"$work/metrics.jsonl"

run meshtf-report "$work/plan.json" --metrics "$work/metrics.jsonl" -o "$work/a"
claim "a report is written" exits 0
claim "without a word" is_silent
for file in index.html graph.dot graph.svg plan.json timeline.json summary.txt program.txt; do
    claim "$file is there" test -s "$work/a/$file"
done
run meshtf-report "$work/plan.json" --metrics "$work/metrics.jsonl" -o "$work/b"
claim "the same plan gives the same bytes" diff -r "$work/a" "$work/b"
claim "the plan comes back as it was" cmp -s "$work/plan.json" "$work/a/plan.json"
run meshtf-report "$work/a/plan.json" -o "$work/a"
claim "a report can be made of its own plan, in its own folder" exits 0
claim "the summary fits a screen" sh -c "[ \$(wc -l <'$work/a/summary.txt') -le 40 ]"
claim "nothing is fetched from a network" sh -c "! grep -Eo '(src|href|url)[=(]\"?[a-z]*://' '$work/a/index.html' | grep -v w3.org"

if command -v xmllint >/dev/null; then
    run xmllint --nonet --noout "$work/a/index.html"
    claim "the page is well formed" exits 0
    run xmllint --nonet --noout "$work/a/graph.svg"
    claim "the drawing is well formed" exits 0
else
    skip "xmllint is not installed"
fi
if command -v dot >/dev/null; then
    run dot -Tdot "$work/a/graph.dot"
    claim "graph.dot parses" exits 0
    claim "without a warning" is_silent
else
    skip "dot is not installed"
fi

mkdir "$work/empty"
run env PATH="$work/empty" "$build/meshtf-report" "$work/plan.json" -o "$work/c"
claim "without dot there is a report all the same" exits 0
claim "that says so" says_error "no drawing"
claim "its page says so, too" grep -q "There is no drawing" "$work/c/index.html"

run meshtf-report "$work/plan.json"
claim "a missing folder is bad input" bad_input
run meshtf-report "$graph" -o "$work/d"
claim "a graph is no plan" bad_input
echo '{"step":1}' >"$work/wrong.jsonl"
run meshtf-report "$work/plan.json" --metrics "$work/wrong.jsonl" -o "$work/d"
claim "metrics of another kind are bad input" bad_input
claim "the sentence names file and line" says_error "wrong.jsonl line 1"
done_testing
