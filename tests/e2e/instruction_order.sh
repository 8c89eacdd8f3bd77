# SPDX-License-Identifier: GPL-3.0-or-later
# A step whose instructions are put in a better order than they are written in, from the search to the ranks.
. tests/support/tap.sh

# Twelve branches that add up, written level by level: all first halves, then all second halves.
branches() {
    printf '{"meshtf_graph": 1, "name": "branches", "dimensions": {"batch": 64, "f": 64, "h": 512},'
    printf '"inputs": [{"name": "x", "dims": ["batch", "f"], "feed": "features"},'
    printf '{"name": "t", "dims": ["batch", "f"], "feed": "targets"}], "variables": ['
    for i in $numbers; do
        [ "$i" = 1 ] || printf ','
        printf '{"name": "w%s", "dims": ["f", "h"], "init": {"normal": 0.1}},' "$i"
        printf '{"name": "v%s", "dims": ["h", "f"], "init": {"normal": 0.1}}' "$i"
    done
    printf '], "operations": ['
    for i in $numbers; do
        printf '{"name": "a%s", "op": "einsum", "inputs": ["x", "w%s"], "dims": ["batch", "h"]},' "$i" "$i"
    done
    for i in $numbers; do
        printf '{"name": "b%s", "op": "relu", "inputs": ["a%s"]},' "$i" "$i"
    done
    for i in $numbers; do
        printf '{"name": "c%s", "op": "einsum", "inputs": ["b%s", "v%s"], "dims": ["batch", "f"]},' "$i" "$i" "$i"
    done
    printf '{"name": "y", "op": "add", "inputs": ["c1"'
    for i in $numbers; do
        [ "$i" = 1 ] || printf ', "c%s"' "$i"
    done
    printf ']}, {"name": "d", "op": "subtract", "inputs": ["y", "t"]}, {"name": "s", "op": "multiply", "inputs": ["d", "d"]},'
    printf '{"name": "l", "op": "reduce_mean", "inputs": ["s"], "dims": []}], "loss": "l", "optimizer": {"kind": "sgd", "rate": 0.01}}'
}
numbers='1 2 3 4 5 6 7 8 9 10 11 12'
branches >"$work/graph.json"
memory() { sed -n 's/.*"peak_memory_bytes": *\([0-9]*\).*/\1/p' "$1"; }
losses() { sed 's/.*"loss": *\([0-9.e-]*\).*/\1/' "$1"; }

run meshtf-plan estimate "$work/graph.json" --mesh rows:2 --layout batch:rows -o "$work/plan.json"
claim "an estimate finds a better order" says 'order          another than written, for a peak of '
claim "the plan holds it" grep -q '"order": \[' "$work/plan.json"
run meshtf-plan check "$work/plan.json"
claim "a plan with an order checks" exits 0
run mpirun -n 2 meshtf-run "$work/plan.json" --steps 4 --metrics "$work/metrics" --verify
claim "it runs as one rank does in the written order" exits 0
claim "calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"
claim "memory is that of its plan" says "equal to the byte"

# On one processor there is one layout: what fits is a matter of the order alone.
run meshtf-plan estimate "$work/graph.json" --mesh one:1 --layout '' --json -o "$work/one.json"
least=$(memory "$work/one.json")
run meshtf-plan search "$work/graph.json" --mesh one:1 --microbatches 1 --recompute none --memory "$least" -o "$work/fits.json"
claim "a search finds that a step fits in a better order" exits 0
claim "it needs what it may" test "$(memory "$work/fits.json")" = "$least"
run mpirun -n 1 meshtf-run "$work/fits.json" --steps 4 --metrics "$work/metrics.1"
claim "it runs" exits 0
losses "$work/metrics" >"$work/losses"
losses "$work/metrics.1" >"$work/losses.1"
claim "losses are the same" sh -c "paste '$work/losses' '$work/losses.1' |
    awk '{ d = (\$1 - \$2) / \$1; if (d > 1e-4 || d < -1e-4) exit 1 } END { exit NR != 4 }'"
run meshtf-plan search "$work/graph.json" --mesh one:1 --microbatches 1 --recompute none --memory "$((least - 64))"
claim "with less nothing fits" exits 3
claim "what would do is what the better order needs" says_error "memory $least"

# The first run is given twice, so that the order is longer than the program.
sed 's/"order": \[/"order": [[0,1],/' "$work/plan.json" >"$work/wrong.json"
run meshtf-plan check "$work/wrong.json"
claim "an order of the wrong length is bad input" bad_input
claim "the sentence says where" says_error "execution/order"

# The program after each pass.
run meshtf-plan estimate "$work/graph.json" --mesh rows:2 --layout batch:rows --microbatches 2 --dump-after execute
claim "a plan's graph is shown as it is executed" says '"batch": 32'
run meshtf-plan check "$work/plan.json" --dump-after lower
claim "a plan's program is shown as it is emitted" says "   0  "
cp "$work/out" "$work/lowered"
run meshtf-plan check "$work/plan.json" --dump-after fuse
claim "the last pass leaves another program" sh -c "! cmp -s '$work/out' '$work/lowered'"
run meshtf-plan estimate "$work/graph.json" --mesh rows:2 --layout batch:rows --dump-after nothing
claim "an unknown pass is bad input" bad_input
claim "the sentence lists the passes" says_error "combine-collectives, alias-buffers"
done_testing
