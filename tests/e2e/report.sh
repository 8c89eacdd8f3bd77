# SPDX-License-Identifier: GPL-3.0-or-later
# Reporting, comparing and exporting plans, as a user types it.
# seconds: 300
. tests/support/tap.sh

graph=layouts/library/graphs/transformer-small.json
meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --layouts rule -o "$work/rule.json" >/dev/null
meshtf-plan search "$graph" --mesh 'all:2' --layouts rule -o "$work/two.json" >/dev/null

run meshtf-plan report "$work/rule.json" -o "$work/report"
claim "report writes a page" exits 0
claim "the page is there" test -s "$work/report/index.html"
claim "nothing is said" is_silent
run meshtf-plan report "$work/rule.json" --json -o "$work/report"
claim "report --json is read by machines" sh -c "jq -e '.predicted.step_seconds > 0' '$work/out' >/dev/null"
run meshtf-plan report "$work/rule.json"
claim "a missing folder is bad input" bad_input
run meshtf-plan report "$graph" -o "$work/report"
claim "a graph is no plan: the child's status is passed on" bad_input
run meshtf-plan report "$work/rule.json" --metrics "$work/none.jsonl" -o "$work/report"
claim "metrics that are not there are bad input" bad_input

printf '%s\n' '{"traceEvents":[{"name":"h","ph":"X","pid":0,"tid":0,"ts":0,"dur":5}]}' >"$work/trace.json"
run meshtf-plan report "$work/rule.json" --trace "$work/trace.json" -o "$work/traced"
claim "a trace of a run is reported" grep -q 'What the ranks did' "$work/traced/index.html"
run meshtf-plan report "$work/rule.json" --trace "$work/rule.json" -o "$work/traced"
claim "what is no trace is bad input" bad_input
meshtf-plan estimate "$graph" --mesh 'rows:2' --layout batch:rows -o "$work/given.json" >/dev/null
run meshtf-plan report "$work/given.json" -o "$work/given"
claim "a plan that was not searched has a report" exits 0
claim "which claims no proof" grep -q '^proof  *none, not searched' "$work/given/summary.txt"

run meshtf-plan compare "$work/rule.json" "$work/two.json"
claim "compare sets two plans side by side" exits 0
claim "the first is the measure" sh -c "grep -q '^against A  *1.000 ' '$work/out'"
claim "columns align" sh -c "sed -n '/^step/,\$p' '$work/out' | awk '{print length}' | sort -u | wc -l | grep -qx ' *1'"
run meshtf-plan compare "$work/rule.json" "$work/two.json" --json
claim "compare --json is two objects" sh -c "[ \$(grep -c '\"step_ratio\"' '$work/out') = 2 ]"
run meshtf-plan compare "$work/rule.json" "$work/two.json" "$work/given.json" -o "$work/compared"
claim "compare writes a page, too" grep -q '<h1>3 plans side by side</h1>' "$work/compared/index.html"
claim "and its table" says "against A"
claim "a plan that was not searched has no gap" sh -c "grep '^gap' '$work/out' | grep -q -- '-\$'"
run meshtf-plan compare "$work/rule.json" "$graph"
claim "what is no plan is bad input" bad_input
run meshtf-plan compare
claim "no plan is bad input" bad_input

for form in mtf jax dtensor shardy rankfile; do
    run meshtf-plan export "$work/rule.json" --to "$form"
    claim "the plan can be said in $form" exits 0
done
run meshtf-plan export "$work/rule.json" --to mtf -o "$work/layout.gin"
claim "an export goes to a file" grep -q layout_rules "$work/layout.gin"
run meshtf-plan export "$work/rule.json" --to mtf --json
claim "an export is JSON where that is asked for" says '"form": "mtf"'
run meshtf-plan export "$work/rule.json" --to mft
claim "an unknown form is bad input" bad_input
claim "the forms are named" says_error "mtf, jax"
run meshtf-plan export "$work/rule.json"
claim "a missing form is bad input" bad_input

# A real run beside its plan.
if command -v mpirun >/dev/null; then
    meshtf-plan model mlp -o "$work/mlp.graph" >/dev/null 2>&1
    meshtf-plan search "$work/mlp.graph" --mesh rows:2 --machine cpu-host -o "$work/mlp.json" >/dev/null
    mpirun -n 2 meshtf-run "$work/mlp.json" --steps 20 --metrics "$work/mlp.metrics" \
        --trace 10:12 --trace-file "$work/mlp.trace" >/dev/null
    run meshtf-plan report "$work/mlp.json" --metrics "$work/mlp.metrics" --trace "$work/mlp.trace" --json -o "$work/mlp"
    claim "a run is reported" sh -c "jq -e '.measured.steps == 20' '$work/out' >/dev/null"
    claim "its page sets prediction beside measurement" grep -q 'measured, ' "$work/mlp/index.html"
    claim "memory is what was planned" grep -q 'equal to the byte' "$work/mlp/index.html"
    claim "and shows what each rank did in the traced steps" grep -q 'in a step (3 traced)' "$work/mlp/index.html"
else
    skip "there is no mpirun"
fi

# Dot draws the same every time, whatever its threads do meanwhile: of this step it drew loops in one order or the other.
meshtf-plan model lstm-lm --preset tiny -o "$work/loops.graph" >/dev/null 2>&1
meshtf-plan search "$work/loops.graph" --mesh rows:2 --machine cpu-host --microbatches 2 --precision f64 -o "$work/loops.json" >/dev/null
for _ in 1 2 3 4 5 6 7 8; do
    meshtf-plan report "$work/loops.json" -o "$work/loops" >/dev/null
    cksum <"$work/loops/index.html"
done >"$work/sums"
claim "eight pages of one plan are the same" [ "$(sort -u "$work/sums" | wc -l)" = 1 ]

# What is exported parses as what it is.
if command -v python3 >/dev/null; then
    for form in jax dtensor; do
        meshtf-plan export "$work/rule.json" --to "$form" -o "$work/specs.py"
        run python3 -c "import ast, sys; ast.parse(open(sys.argv[1]).read())" "$work/specs.py"
        claim "$form is Python" exits 0
    done
else
    skip "python3 is not installed"
fi
rules=$(sed -n 's/^utils.run.layout_rules = "\(.*\)"$/\1/p' "$work/layout.gin")
run meshtf-plan estimate "$graph" --mesh 'rows:2;cols:2' --layout "$rules"
claim "exported rules parse again" exits 0
run meshtf-plan export "$work/two.json" --to rankfile --hosts localhost -o "$work/ranks"
claim "a rankfile takes the names of hosts" exits 0
if command -v mpirun >/dev/null && [ "$(nproc)" -ge 2 ]; then
    printf 'localhost slots=2\n' >"$work/hosts"
    run mpirun --hostfile "$work/hosts" -rf "$work/ranks" -n 2 true
    claim "mpirun reads the rankfile" exits 0
else
    skip "there is no mpirun, or fewer than two processors"
fi
done_testing
