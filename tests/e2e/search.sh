# SPDX-License-Identifier: GPL-3.0-or-later
# Searching and estimating rule layouts, as a user types it.
# seconds: 300
. tests/support/tap.sh

graph=layouts/library/graphs/transformer-small.json
rules='batch:rows;d_ff:cols;heads:cols'

run meshtf-plan estimate "$graph" --mesh 'rows:2;cols:2' --layout "$rules"
claim "estimate prices a layout" exits 0
claim "the first line names the machine" sh -c "head -n 1 '$work/out' | grep -q '^machine  *cpu-cluster'"
claim "the sums over rows are in the table" says "allreduce sum      rows"

run meshtf-plan estimate "$graph" --mesh 'rows:2;cols:2' --layout "$rules" --json
claim "estimate --json succeeds" exits 0
claim "it prints the predicted object" says '"peak_memory_bytes"'

run meshtf-plan estimate "$graph" --mesh 'rows:2' --layout 'batch:rows;d_model:rows'
claim "two dimensions of a tensor on one axis are bad input" bad_input
claim "the sentence names both" says_error '"batch" and "d_model"'

run meshtf-plan estimate "$graph" --mesh 'rows:2' --layout 'batch:rows;ensemble:rows'
claim "a rule for an unknown dimension is bad input" bad_input
run meshtf-plan estimate "$graph" --mesh 'rows:2' --layout 'batch:rows;ensemble:rows' --mtf-compat
claim "with --mtf-compat it has no effect" exits 0
claim "and is listed" says "ensemble:rows"

run meshtf-plan estimate "$graph" --mesh 'rows:2' --layout ''  --dim batch=0
claim "a size of zero is bad input" bad_input
run meshtf-plan estimate "$graph" --layout ''
claim "a missing mesh is bad input" bad_input
run meshtf-plan estimate "$graph" --mesh 'rows:2' --layout '' --precision f16
claim "a precision that is not executed is bad input" bad_input
claim "and told what would do" says_error "priced at their rate of fp16: --precision bf16"
run meshtf-plan estimate "$graph" --mesh "rows:2" --layout "" --precision f8
claim "an unknown one is told those that there are" says_error "must be f32, f64 or bf16"
run meshtf-plan estimate "$graph" --mesh 'rows:2' --layout 'batch:rows' --precision bf16 --json
claim "a step can be planned in bfloat16" exits 0

run meshtf-plan search "$graph" --devices 4 --layouts rule -o "$work/a.json" --report "$work/report"
claim "search writes a plan and a report" exits 0
claim "it says what it proved" says "optimal over all rule layouts of 2 mesh shapes"
claim "the drawing is there" test -s "$work/report/graph.svg"
claim "no progress where standard error is a file" is_silent
run meshtf-plan search "$graph" --devices 4 --layouts rule -o "$work/b.json"
claim "the same search writes the same bytes" cmp -s "$work/a.json" "$work/b.json"
run meshtf-plan search "$graph" --mesh 'all:4' --layouts rule -o "$work/c.json" --json
claim "one mesh can be searched alone" says '"meshes": 1'
claim "the bound is the cost" sh -c "sed -n 's/.*\"cost\": //p; s/.*\"bound\": //p' '$work/out' | uniq | wc -l | grep -qx ' *1'"

run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --layouts rule --pin d_ff:cols --forbid batch:rows
claim "pins and forbids are kept" exits 0
claim "d_ff is on cols" says "d_ff:cols"
run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --pin d_ff:planes
claim "a pin to an unknown axis is bad input" bad_input
run meshtf-plan search "$graph" --mesh 'rows:2' --pin batch:rows --pin d_model:rows
claim "pins that no layout can keep are bad input" bad_input
run meshtf-plan search "$graph" --mesh 'rows:2' --pin batch:rows --forbid batch:rows
claim "what is pinned cannot be forbidden" bad_input

run meshtf-plan search gpt-small --mesh 'c:4' --machine cpu-host --memory 12600000 --uniform never
claim "layers may differ" exits 0
run meshtf-plan search gpt-small --mesh 'c:4' --machine cpu-host --memory 12600000 --uniform always
claim "repeated layers are laid out alike where that is asked for" says "all 4 repeated layers, as asked for"
claim "the proof says of which layouts it is" says "whose repeated layers are alike"
run meshtf-plan search "$graph" --devices 4 --uniform often
claim "what --uniform does not know is bad input" bad_input

run meshtf-plan search "$graph" --devices 4 --memory 1MiB
claim "nothing fits: exit 3" exits 3
claim "the sentence names the limit that would do" says_error "--memory"
limit=$(sed -n 's/.*--memory \([0-9]*\)[:)].*/\1/p' "$work/err")
run meshtf-plan search "$graph" --devices 4 --memory "$limit" --gap 0.02
claim "that limit does" exits 0
run meshtf-plan search gpt-small --mesh a:4 --machine h100 --layouts rule --memory 1MB
claim "where a framework needs more than the layout nothing fits, either" exits 3
claim "what is proven is said of the step that it is proven of" says_error \
    "in 16 micro-batches of 1, 88 operations recomputed, no rule layout takes less than"
limit=$(sed -n 's/.*--memory \([0-9]*\)[:)].*/\1/p' "$work/err")
run meshtf-plan search gpt-small --mesh a:4 --machine h100 --layouts rule --memory "$limit"
claim "the limit that is named does for the framework, too" exits 0

run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' -o "$work/free.json" --report "$work/free" \
    --dump-problem "$work/other.json"
claim "free layouts are searched by default" says "free layouts of this mesh"
claim "and are no worse than the best rules" says "times as much"
claim "they are drawn" test -s "$work/free/graph.svg"
for threads in 1 5; do
    run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --threads $threads -o "$work/by$threads.json"
    claim "on $threads threads the same search writes the same free plan" cmp -s "$work/free.json" "$work/by$threads.json"
done

# PointNet on 64 A100: its many small exchanges travel joined in a plan, and so they do in the layouts that it is set beside.
points="tests/golden/networks/pointnet.json --dim batch=64 --dim points=4096 --dim f1=64 --dim f2=128 --dim f3=1024 --dim fc=256"
# shellcheck disable=SC2086
run meshtf-plan search $points --machine a100 --devices 64 -o "$work/points.json"
claim "no layout made by hand has a shorter step than the plan" \
    test "$(jq '.predicted.step_seconds as $step | .search | .memory_limit as $limit | [.incumbents[] | select(.memory_bytes <= $limit and .step_seconds < $step)] == []' "$work/points.json")" = true
# shellcheck disable=SC2086
run meshtf-plan estimate $points --machine a100 --mesh data:64 --layout batch:data -o "$work/data.json"
claim "not even where joining exchanges is what makes it short" \
    test "$(jq -s '.[0].predicted.step_seconds <= .[1].predicted.step_seconds' "$work/points.json" "$work/data.json")" = true
claim "the plan says why" grep -q '"next_best"' "$work/free.json"
run meshtf-plan explain "$work/free.json" layer/0/ff_sum
claim "a free plan is explained" says "longer  with"
claim "also with everything else chosen anew" says "with everything else chosen anew"
run meshtf-plan explain "$work/free.json" layer/0/ff_sum --json
# The second price in the list is the next best strategy's, the last one is that of choosing anew.
anew_is_no_dearer() {
    awk '/"nanoseconds"/ { gsub(/[^0-9-]/, ""); if (seen++ == 1) next_best = $0; last = $0 }
        /"anew"/ { anew = 1 }
        END { exit !(anew && last <= next_best) }' "$work/out"
}
claim "choosing anew costs no more than changing one choice" anew_is_no_dearer
run meshtf-plan explain "$work/free.json" layer/0/nowhere
claim "what is not in the plan is bad input" bad_input
run meshtf-plan explain "$work/free.json" layer/0/ff_sum --instead 'rows=duplicated'
claim "an unknown strategy is bad input" bad_input
run meshtf-plan solve "$work/other.json" --work 60 --json
claim "the dumped problem is solved as one" says '"lower_bound"'

# The search's bound is checked by a reader that shares nothing with the solver.
run meshtf-plan search "$graph" --devices 4 --dump-problem "$work/problem.json" --certificate "$work/proof.txt" \
    -o "$work/proven.json"
claim "search --certificate says that the bound has one" says "with a certificate"
cost=$(sed -n 's/^ *"search":.*"cost": *\([0-9]*\),.*/\1/p;s/^ *"cost": *\([0-9]*\),*$/\1/p' "$work/proven.json" | head -n 1)
run meshtf-plan verify "$work/problem.json" "$work/proof.txt"
claim "verify accepts it: the plan's cost is the least of all layouts" says "cost $cost is the least of all"
run meshtf-plan verify "$work/other.json" "$work/proof.txt"
claim "of another mesh's problem it proves nothing" bad_input
run meshtf-plan search "$graph" --devices 4 --memory 1MiB --dump-problem "$work/problem.json" --certificate "$work/proof.txt"
claim "with a certificate, too, what does not fit exits 3" exits 3
run meshtf-plan verify "$work/problem.json" "$work/proof.txt"
claim "and that nothing fits is proven" says "no choice is legal"
claim "with what is needed at least, which is more than the limit" says ", and the limit is less"
run meshtf-plan search "$graph" --devices 4 --certificate "$work/proof.txt"
claim "a certificate is about a problem, which must be written" says_error "--dump-problem"
run meshtf-plan search "$graph" --devices 4 --dump-problem "$work/problem.json" --certificate "$work/proof.txt" --seconds 9
claim "a certificate has no limit in seconds" bad_input
run meshtf-plan search "$graph" --devices 4 --dump-problem "$work/problem.json" --layouts rule
claim "rule layouts have no such problem" bad_input
run meshtf-plan search "$graph" --devices 4 --dump-problem "$work/problem.json" --certificate "$work/proof.txt" --uniform always
claim "a certificate is not of alike layers alone" bad_input
run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --layouts nice
claim "another kind of layouts is bad input" bad_input
run meshtf-plan search "$graph" --mesh 'rows:2' --frontier 3 --gap 0.05 -o "$work/frontier.json"
claim "the frontier of time against memory is shown" says "memory limit "
claim "with the layouts made by hand beside it" says "data parallelism, ZeRO-1"
claim "and stands in the plan" grep -q '"limit_bytes"' "$work/frontier.json"
claim "it ranges over variants of the step" says "recompute layers"
claim "a plan without it has none" sh -c "! grep -q limit_bytes '$work/free.json'"
claim "the plan lists the layouts made by hand" grep -q '"name":"Megatron"' "$work/free.json"
run meshtf-plan search "$graph" --mesh 'rows:2' --frontier 1
claim "a frontier of one point is bad input" bad_input
run meshtf-plan search "$graph" --mesh 'few:4;many:128' --dim batch=512 --machine tpu-v2 -o "$work/mapped.json"
claim "a mesh that suits the torus better another way is laid so" says "mapping        few on axis"
claim "and says what keeping the order would cost" says "in order it would cost"
run meshtf-plan explain "$work/mapped.json" layer/0/ff_sum
claim "a mapped plan is explained" says "longer  with"
run meshtf-plan report "$work/mapped.json" -o "$work/mapped"
claim "and reported" exits 0
run meshtf-plan estimate "$graph" --mesh 'few:4;many:128' --dim batch=512 --machine tpu-v2 --layout 'batch:many' -o "$work/estimate.json"
claim "estimate lays a mesh as suits its traffic" says "in order it would cost"
run meshtf-plan estimate "$graph" --mesh 'few:4;many:128' --dim batch=512 --machine tpu-v2 --layout 'batch:many' --in-order -o "$work/order.json"
claim "or in order" sh -c "! grep -q mapping '$work/out'"
cost() { sed -n 's/.*"cost": *\([0-9]*\),.*/\1/p' "$1" | head -n 1; }
claim "which is no cheaper" test "$(cost "$work/estimate.json")" -lt "$(cost "$work/order.json")"
sed 's/"stride":8/"stride":7/' "$work/mapped.json" > "$work/broken.json"
run meshtf-plan explain "$work/broken.json" layer/0/ff_sum
claim "a mapping that is none is bad input" bad_input
claim "the sentence names the place" says_error "mapping: /: the pieces do not cover"
run meshtf-plan search "$graph"
claim "without mesh or devices it is bad input" bad_input
run meshtf-plan search "$graph" --devices 5000 --machine tpu-v2
claim "a machine that is too small is bad input" bad_input
run meshtf-plan search "$graph" --mesh 'rows:2' --devices 3
claim "a mesh of another size than --devices is bad input" bad_input

# Cubes of 4 x 4 x 4 have less to tell their neighbours than slabs of 8 x 8.
cat >"$work/volumes.json" <<'GRAPH'
{"meshtf_graph": 1, "name": "volumes",
 "dimensions": {"b": 1, "x": 192, "y": 192, "z": 192, "x2": 192, "y2": 192, "z2": 192, "c": 8, "d": 8, "u": 3, "v": 3, "w": 3},
 "inputs": [{"name": "volume", "dims": ["b", "x", "y", "z", "c"], "feed": "features"}],
 "variables": [{"name": "kernel", "dims": ["u", "v", "w", "c", "d"], "init": {"normal": 0.1}}],
 "operations": [{"name": "blurred", "op": "conv", "inputs": ["volume", "kernel"], "dims": ["b", "x2", "y2", "z2", "d"],
                 "windows": [{"from": "x", "kernel": "u", "to": "x2", "before": 1, "after": 1},
                             {"from": "y", "kernel": "v", "to": "y2", "before": 1, "after": 1},
                             {"from": "z", "kernel": "w", "to": "z2", "before": 1, "after": 1}]},
                {"name": "bent", "op": "relu", "inputs": ["blurred"]},
                {"name": "loss", "op": "reduce_mean", "inputs": ["bent"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
GRAPH
run meshtf-plan search "$work/volumes.json" --devices 64 --machine v100 --precision f32 -o "$work/cubes.json"
claim "volumes are cut along three axes" says "mesh           planes:4;rows:4;cols:4"
claim "each of one of their dimensions" says "spatially parallel 64"
claim "which is proven" says "optimal over free layouts"
run meshtf-plan report "$work/cubes.json" -o "$work/cubes"
claim "whose page prices it as the plan does" sh -c "grep -q 'proven optimal' '$work/cubes/index.html' && ! grep -q 'this report prices' '$work/cubes/index.html'"
run meshtf-plan search "$work/volumes.json" --devices 64 --machine v100 --precision f32 --max-mesh-dims 2 -o "$work/slabs.json"
claim "where two axes are the most that is asked for, along two" says "mesh           rows:8;cols:8"
claim "which costs more" test "$(cost "$work/cubes.json")" -lt "$(cost "$work/slabs.json")"

sed 's/"b": 1,/"b": 2,/' "$work/volumes.json" >"$work/two-volumes.json"
run meshtf-plan search "$work/two-volumes.json" --devices 64 --machine v100 --precision f32
claim "two volumes lie on one axis beside three of space" says "mesh           data:2;planes:2;rows:4;cols:4"
claim "and are split there" says "data parallel 2 x spatially parallel 32"
claim "which the proof takes for given" says "optimal over free layouts of this mesh that split the batch on its first axis"

run meshtf-plan search "$graph" --mesh 'rows:2' --threads -1
claim "a number of threads below 0 is bad input" bad_input

done_testing
