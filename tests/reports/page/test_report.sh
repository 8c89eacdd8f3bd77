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

# Names that mean something to HTML, to SVG and to Graphviz ("\\N" is a node's name, "&lt;" a bracket).
cat >"$work/hostile.json" <<'END'
{"meshtf_graph": 1, "name": "g<script>alert(1)</script>&lt;\\N]]>-->\u0001", "dimensions": {"b<i>": 8, "h\\G": 12, "io": 4},
"inputs": [{"name": "x<\"'", "dims": ["b<i>", "io"], "feed": "features"}],
"variables": [{"name": "é<b>&lt;\\N", "dims": ["io", "h\\G"], "init": "ones"}],
"operations": [{"name": "y", "op": "einsum", "inputs": ["x<\"'", "é<b>&lt;\\N"], "dims": ["b<i>", "h\\G"]},
{"name": "l", "op": "reduce_sum", "inputs": ["y"], "dims": []}], "loss": "l", "optimizer": {"kind": "sgd", "rate": 0.1}}
END
run meshtf-plan search "$work/hostile.json" --mesh 'r<b>"&:2;c\N:2' --layouts rule -o "$work/hostile.plan" --report "$work/h"
claim "hostile names make a report" exits 0
if command -v dot >/dev/null; then
    claim "a variable is drawn under its own name" grep -qF '>é&lt;b&gt;&amp;lt;\N<' "$work/h/graph.svg"
    claim "so is a dimension" grep -q '>h\\G 12' "$work/h/graph.svg"
    claim "no element of theirs is in the drawing" sh -c "! grep -qE '<(script|b|i)>' '$work/h/graph.svg'"
fi
if command -v xmllint >/dev/null; then
    run xmllint --nonet --noout "$work/h/index.html" "$work/h/graph.svg"
    claim "page and drawing are well formed" exits 0
fi

mkdir "$work/empty"
run env PATH="$work/empty" "$build/meshtf-report" "$work/plan.json" -o "$work/c"
claim "without dot there is a report all the same" exits 0
claim "that says so" says_error "no drawing"
claim "its page says so, too" grep -q "There is no drawing" "$work/c/index.html"

# A dot that does not manage gradients: the forward pass is drawn.
if command -v dot >/dev/null; then
    mkdir "$work/weak"
    # shellcheck disable=SC2016 # the script's own arguments
    printf '#!/bin/sh\n! grep -q cluster_phase_1 "$2" || exit 1\nexec %s "$@"\n' "$(command -v dot)" \
        >"$work/weak/dot"
    chmod +x "$work/weak/dot"
    run env PATH="$work/weak:$PATH" meshtf-report "$work/plan.json" -o "$work/e"
    claim "where the whole step is too much for dot, the forward pass is drawn" \
        grep -q 'layer 0–3' "$work/e/graph.svg"
    claim "and the page says so" grep -q "the forward pass of the whole step" "$work/e/index.html"
fi

run meshtf-report "$work/plan.json"
claim "a missing folder is bad input" bad_input
run meshtf-report "$graph" -o "$work/d"
claim "a graph is no plan" bad_input
echo '{"step":1}' >"$work/wrong.jsonl"
run meshtf-report "$work/plan.json" --metrics "$work/wrong.jsonl" -o "$work/d"
claim "metrics of another kind are bad input" bad_input
claim "the sentence names file and line" says_error "wrong.jsonl line 1"

# Casts of masks, which layers share, stand among these.
meshtf-plan model transformer --preset tiny -o "$work/pairs.json" >/dev/null
meshtf-plan estimate "$work/pairs.json" --mesh a:2 --layout batch:a --machine cpu-host --precision bf16 -o "$work/pairs-plan.json" >/dev/null 2>&1
run meshtf-report "$work/pairs-plan.json" -o "$work/f"
claim "a plan in bfloat16 is drawn" exits 0
claim "no two parts of its step have one title" \
    test -z "$(grep -o '<summary><b>[^/]*</b>' "$work/f/index.html" | sort | uniq -d)"
done_testing
