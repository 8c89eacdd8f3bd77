# SPDX-License-Identifier: GPL-3.0-or-later
# Operations of newer networks from a user's file to the ranks: a Llama-like block (rms_norm, rotary, heads by reshape, grouped queries),
# and what moves, ranks and compares, planned and run on four ranks against one.
. tests/support/tap.sh

cat >"$work/llama.json" <<'EOF'
{
  "meshtf_graph": 1,
  "name": "small llama",
  "dimensions": {"batch": 8, "length": 16, "memory": 16, "vocab": 256, "model": 32, "queries": 32, "keys": 16,
    "heads": 2, "group": 2, "head": 8, "inner": 48, "half": 8, "rest": 8, "best": 3},
  "inputs": [
    {"name": "tokens", "dims": ["batch", "length"], "dtype": "int32", "feed": "tokens"},
    {"name": "next", "dims": ["batch", "length"], "dtype": "int32", "feed": "next_tokens"}
  ],
  "variables": [
    {"name": "table", "dims": ["vocab", "model"], "init": {"normal": 0.1}},
    {"name": "n1", "dims": ["model"], "init": "ones"},
    {"name": "n2", "dims": ["model"], "init": "ones"},
    {"name": "wq", "dims": ["model", "queries"], "init": {"normal": 0.18}},
    {"name": "wk", "dims": ["model", "keys"], "init": {"normal": 0.18}},
    {"name": "wv", "dims": ["model", "keys"], "init": {"normal": 0.18}},
    {"name": "wo", "dims": ["queries", "model"], "init": {"normal": 0.18}},
    {"name": "gate", "dims": ["model", "inner"], "init": {"normal": 0.18}},
    {"name": "up", "dims": ["model", "inner"], "init": {"normal": 0.18}},
    {"name": "down", "dims": ["inner", "model"], "init": {"normal": 0.14}}
  ],
  "operations": [
    {"name": "x", "op": "embedding", "inputs": ["table", "tokens"], "dims": ["batch", "length", "model"]},
    {"name": "x1", "op": "rms_norm", "inputs": ["x", "n1"], "dimension": "model"},
    {"name": "q", "op": "einsum", "inputs": ["x1", "wq"], "dims": ["batch", "length", "queries"]},
    {"name": "k", "op": "einsum", "inputs": ["x1", "wk"], "dims": ["batch", "length", "keys"]},
    {"name": "v", "op": "einsum", "inputs": ["x1", "wv"], "dims": ["batch", "length", "keys"]},
    {"name": "qh", "op": "reshape", "inputs": ["q"], "dims": ["batch", "length", "heads", "group", "head"]},
    {"name": "kh", "op": "reshape", "inputs": ["k"], "dims": ["batch", "length", "heads", "head"]},
    {"name": "vh", "op": "reshape", "inputs": ["v"], "dims": ["batch", "length", "heads", "head"]},
    {"name": "qr", "op": "rotary", "inputs": ["qh"], "position": "length", "dimension": "head"},
    {"name": "kr", "op": "rotary", "inputs": ["kh"], "position": "length", "dimension": "head"},
    {"name": "km", "op": "rename", "inputs": ["kr"], "from": "length", "to": "memory"},
    {"name": "vm", "op": "rename", "inputs": ["vh"], "from": "length", "to": "memory"},
    {"name": "qt", "op": "transpose", "inputs": ["qr"], "dims": ["batch", "heads", "group", "length", "head"]},
    {"name": "kt", "op": "transpose", "inputs": ["km"], "dims": ["batch", "heads", "memory", "head"]},
    {"name": "vt", "op": "transpose", "inputs": ["vm"], "dims": ["batch", "heads", "memory", "head"]},
    {"name": "a", "op": "attention", "inputs": ["qt", "kt", "vt"], "query": "length", "memory": "memory", "dimension": "head",
      "factor": 0.35, "causal": 1},
    {"name": "at", "op": "transpose", "inputs": ["a"], "dims": ["batch", "length", "heads", "group", "head"]},
    {"name": "am", "op": "reshape", "inputs": ["at"], "dims": ["batch", "length", "queries"]},
    {"name": "o", "op": "einsum", "inputs": ["am", "wo"], "dims": ["batch", "length", "model"]},
    {"name": "r1", "op": "add", "inputs": ["x", "o"]},
    {"name": "x2", "op": "rms_norm", "inputs": ["r1", "n2"], "dimension": "model"},
    {"name": "g", "op": "einsum", "inputs": ["x2", "gate"], "dims": ["batch", "length", "inner"]},
    {"name": "u", "op": "einsum", "inputs": ["x2", "up"], "dims": ["batch", "length", "inner"]},
    {"name": "s", "op": "silu", "inputs": ["g"]},
    {"name": "h", "op": "multiply", "inputs": ["s", "u"]},
    {"name": "d", "op": "einsum", "inputs": ["h", "down"], "dims": ["batch", "length", "model"]},
    {"name": "r2", "op": "add", "inputs": ["r1", "d"]},
    {"name": "early", "op": "slice", "inputs": ["r2"], "from": "length", "to": "half"},
    {"name": "late", "op": "slice", "inputs": ["r2"], "from": "length", "to": "rest", "start": 8},
    {"name": "soft", "op": "softplus", "inputs": ["late"]},
    {"name": "both", "op": "concat", "inputs": ["early", "soft"], "dims": ["batch", "length", "model"]},
    {"name": "rolled", "op": "roll", "inputs": ["both"], "dimension": "model", "shift": 3},
    {"name": "zero", "op": "constant", "dims": [], "value": 0},
    {"name": "positive", "op": "greater", "inputs": ["rolled", "zero"]},
    {"name": "chosen", "op": "where", "inputs": ["positive", "rolled", "both"]},
    {"name": "logits", "op": "einsum", "inputs": ["chosen", "table"], "dims": ["batch", "length", "vocab"]},
    {"name": "top", "op": "top_k", "inputs": ["logits"], "from": "vocab", "to": "best"},
    {"name": "spread", "op": "reduce_mean", "inputs": ["top"], "dims": []},
    {"name": "small", "op": "scale", "inputs": ["spread"], "factor": 0.001},
    {"name": "losses", "op": "softmax_cross_entropy", "inputs": ["logits", "next"], "dims": ["batch", "length"]},
    {"name": "mean", "op": "reduce_mean", "inputs": ["losses"], "dims": []},
    {"name": "loss", "op": "add", "inputs": ["mean", "small"]}
  ],
  "loss": "loss",
  "optimizer": {"kind": "adam", "rate": 0.001}
}
EOF

run meshtf-plan check "$work/llama.json"
claim "the graph is sound" exits 0
run meshtf-plan search "$work/llama.json" --mesh 'rows:2;cols:2' --microbatches 1 -o "$work/plan.json"
claim "search plans it" exits 0
run mpirun -n 4 meshtf-run "$work/plan.json" --data LICENSE --steps 10 --verify
claim "four ranks train as one does" exits 0
claim "calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"
claim "memory is that of its plan" says "equal to the byte"

# Layouts that split what is moved, too: heads and what they are made of, positions, classes.
for layout in "batch:rows heads:cols queries:cols keys:cols inner:cols" "length:rows half:rows model:cols" \
    "vocab:rows batch:cols" "batch:rows length:cols memory:cols"; do
    rules=$(echo "$layout" | sed 's/ /;/g')
    run meshtf-plan estimate "$work/llama.json" --mesh 'rows:2;cols:2' --layout "$rules" -o "$work/plan.json"
    claim "$layout can be planned" exits 0
    run mpirun -n 4 meshtf-run "$work/plan.json" --data LICENSE --steps 5 --verify
    claim "$layout trains as one processor does" exits 0
    claim "$layout: calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"
done

# Along a dimension that is split, turns and scans exchange what parts lack, and no more.
cat >"$work/scans.json" <<'EOF'
{
  "meshtf_graph": 1, "name": "scans",
  "dimensions": {"batch": 2, "time": 32, "features": 4},
  "inputs": [{"name": "x", "dims": ["batch", "time", "features"], "feed": "features"},
    {"name": "goal", "dims": ["batch", "time", "features"], "feed": "targets"}],
  "variables": [{"name": "w", "dims": ["features"], "init": {"normal": 1}}],
  "operations": [
    {"name": "y", "op": "multiply", "inputs": ["x", "w"]},
    OPERATION,
    {"name": "apart", "op": "subtract", "inputs": ["z", "goal"]},
    {"name": "loss", "op": "reduce_mean", "inputs": ["squares"], "dims": []},
    {"name": "squares", "op": "square", "inputs": ["apart"]}
  ],
  "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}
}
EOF
between() { [ "$1" -gt 0 ] && [ "$1" -le "$2" ]; }
while read -r name most dimensions operation; do
    dimensions=${dimensions#-}
    sed "s|OPERATION|{\"name\": \"z\", \"op\": $operation, \"inputs\": [\"y\"]}|" "$work/scans.json" >"$work/scan.json"
    run meshtf-plan estimate "$work/scan.json" --mesh rows:4 --precision f64 --layout "time:rows$dimensions" -o "$work/plan.json"
    run meshtf-plan estimate "$work/scan.json" --mesh rows:4 --precision f64 --layout "time:rows$dimensions" --json
    # Elements in a step, as payload counts them: a part has 64, the whole 256, and gathering takes 512. So few that are
    # sorted are gathered, and their gradients added up.
    sent=$(jq '[.collectives[] | select(.kind != "allreduce") | .elements] | add // 0' "$work/out")
    claim "$name exchanges at most $most elements forward and backward: $sent" between "$sent" "$most"
    run mpirun -n 4 meshtf-run "$work/plan.json" --steps 4 --verify
    claim "$name trains as on one processor" says "the same training as on one processor"
    claim "$name: calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"
done <<TABLE
roll 96 ;z/turned:rows "roll", "dimension": "time", "shift": 3
cumulative_max 368 ;z/moved:rows "cumulative_max", "dimension": "time"
cumulative_min 368 ;z/moved:rows "cumulative_min", "dimension": "time", "reverse": 1
cumulative_log_sum_exp 400 ;z/moved:rows "cumulative_log_sum_exp", "dimension": "time"
sort 512 - "sort", "dimension": "time"
local_response_norm 48 ;z/window:rows "local_response_norm", "dimension": "time", "size": 3, "alpha": 1
cumulative_sum 128 ;z/blocks:rows "cumulative_sum", "dimension": "time", "blocks": 8
TABLE

# A matrix for each of 2 heads that forgets, [3, 4], over a text of 32 places in 4 parts on 4 ranks: of 2 texts all ranks get the
# 4 states, 192 elements, and add up their gradients, as many; each part's logs and what becomes of them, 16 elements, are
# gathered, added up or told to the others as totals six times; gradients of weights have 80 elements and the loss 1. v alone has 512.
cat >"$work/states.json" <<'EOF'
{
  "meshtf_graph": 1, "name": "states",
  "dimensions": {"batch": 2, "time": 32, "heads": 2, "keys": 3, "values": 4, "d": 5},
  "inputs": [{"name": "x", "dims": ["batch", "time", "d"], "feed": "features"},
    {"name": "goal", "dims": ["batch", "time", "heads", "values"], "feed": "targets"}],
  "variables": [{"name": "wq", "dims": ["d", "keys"], "init": {"normal": 0.4}}, {"name": "wk", "dims": ["d", "keys"], "init": {"normal": 0.4}},
    {"name": "wv", "dims": ["d", "heads", "values"], "init": {"normal": 0.4}}, {"name": "wl", "dims": ["d", "heads"], "init": {"normal": 0.4}}],
  "operations": [
    {"name": "q", "op": "einsum", "inputs": ["x", "wq"], "dims": ["batch", "time", "keys"]},
    {"name": "k", "op": "einsum", "inputs": ["x", "wk"], "dims": ["batch", "time", "keys"]},
    {"name": "v", "op": "einsum", "inputs": ["x", "wv"], "dims": ["batch", "time", "heads", "values"]},
    {"name": "l", "op": "einsum", "inputs": ["x", "wl"], "dims": ["batch", "time", "heads"]},
    {"name": "forgotten", "op": "softplus", "inputs": ["l"]},
    {"name": "log", "op": "negate", "inputs": ["forgotten"]},
    {"name": "o", "op": "linear_attention", "inputs": ["v", "q", "k", "log"], "dimension": "time", "keys": "keys", "blocks": 4},
    {"name": "squares", "op": "expression", "inputs": ["o", "goal"], "arguments": "y goal", "expression": "(y - goal) ^ 2"},
    {"name": "loss", "op": "reduce_mean", "inputs": ["squares"], "dims": []}
  ],
  "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}
}
EOF
run meshtf-plan estimate "$work/states.json" --mesh rows:4 --precision f64 --layout 'time:rows;o/blocks:rows' -o "$work/plan.json"
claim "linear attention in blocks is planned over a split text" exits 0
run meshtf-plan estimate "$work/states.json" --mesh rows:4 --precision f64 --layout 'time:rows;o/blocks:rows' --json
sent=$(jq '[.collectives[] | .elements] | add' "$work/out")
claim "it exchanges 561 elements: $sent" test "$sent" = 561
run mpirun -n 4 meshtf-run "$work/plan.json" --steps 4 --verify
claim "it trains as on one processor" says "the same training as on one processor"
claim "its calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"

# The best three of 600 scores in 12 blocks that are split: of each of 2 examples 36 candidates, and where they
# stand, are gathered, and nothing else but sums.
cat >"$work/best.json" <<'EOF'
{
  "meshtf_graph": 1, "name": "best", "dimensions": {"batch": 2, "scores": 600, "best": 3},
  "inputs": [{"name": "x", "dims": ["batch", "scores"], "feed": "features"}],
  "variables": [{"name": "w", "dims": ["scores"], "init": {"normal": 1}}],
  "operations": [
    {"name": "y", "op": "multiply", "inputs": ["x", "w"]},
    {"name": "z", "op": "top_k", "inputs": ["y"], "from": "scores", "to": "best", "blocks": 12},
    {"name": "place", "op": "cast", "inputs": ["z/index"], "dtype": "float32"},
    {"name": "weighed", "op": "multiply", "inputs": ["z", "place"]},
    {"name": "loss", "op": "reduce_mean", "inputs": ["weighed"], "dims": []}
  ],
  "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.0001}
}
EOF
# Without being asked to, the search takes 16 blocks of 65,536 scores: 48 candidates of an example.
sed 's/"scores": 600/"scores": 65536/; s/, "blocks": 12//; s/0.0001/1e-8/' "$work/best.json" >"$work/many.json"
run meshtf-plan search "$work/many.json" --mesh rows:4 --machine cpu-host -o "$work/plan.json"
sent=$(jq '[.predicted.collectives[]? | select(.kind != "allreduce") | .elements] | add // 0' "$work/plan.json")
claim "the best of many scores are found where these are split, exchanging $sent elements" between "$sent" 192
run mpirun -n 4 meshtf-run "$work/plan.json" --steps 4 --verify
claim "so they are as on one processor" says "the same training as on one processor"
# losses GRAPH RANKS: of three steps, to six digits.
losses() {
    meshtf-plan search "$1" --mesh rows:"$2" --machine cpu-host -o "$work/plan.json" >/dev/null 2>&1
    rm -f "$work/losses.jsonl"
    mpirun -n "$2" meshtf-run "$work/plan.json" --steps 3 --metrics "$work/losses.jsonl" >/dev/null 2>&1
    jq -r '.loss' "$work/losses.jsonl" | awk '{ printf "%.6g ", $1 }'
}
sed 's/"to": "best"/&, "blocks": 1/' "$work/many.json" >"$work/whole.json"
whole=$(losses "$work/whole.json" 1)
claim "they are what all in one block give: $whole" test "$(losses "$work/many.json" 4)" = "$whole"
for ranks in 3 4; do
    run meshtf-plan estimate "$work/best.json" --mesh rows:$ranks --precision f64 --layout 'scores:rows;z/blocks:rows' -o "$work/plan.json"
    run meshtf-plan estimate "$work/best.json" --mesh rows:$ranks --precision f64 --layout 'scores:rows;z/blocks:rows' --json
    sent=$(jq '[.collectives[] | select(.kind != "allreduce") | .elements] | add // 0' "$work/out")
    claim "top_k in blocks on $ranks ranks gathers at most 144 elements: $sent" between "$sent" 144
    run mpirun -n $ranks meshtf-run "$work/plan.json" --steps 4 --verify
    claim "top_k on $ranks ranks trains as on one processor" says "the same training as on one processor"
    claim "top_k on $ranks ranks: calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"
done

# Sums of all scores before each, likewise in 16 blocks where these are split: their totals, of 2 examples forward and
# backward, and nothing else but sums is exchanged.
sed 's/"scores": 600, "best": 3/"scores": 65536/; /"top_k"/d; /"name": "place"/d; s/\["z", "place"\]/["z", "w"]/; s/0.0001/1e-8/' "$work/best.json" |
    sed '/"name": "weighed"/i\    {"name": "z", "op": "cumulative_sum", "inputs": ["y"], "dimension": "scores", "exclusive": 1},' >"$work/sums.json"
run meshtf-plan search "$work/sums.json" --mesh rows:4 --machine cpu-host --precision f64 -o "$work/plan.json"
sent=$(jq '[.predicted.collectives[]? | select(.kind != "allreduce") | .elements] | add // 0' "$work/plan.json")
claim "many scores are added up one by one where these are split, exchanging $sent elements" between "$sent" 64
run mpirun -n 4 meshtf-run "$work/plan.json" --steps 4 --verify
claim "cumulative_sum in blocks of its own choice trains as on one processor" says "the same training as on one processor"
claim "and with the calls and bytes of its plan" says "every rank's calls and bytes equal the program's"

# A function of elements that no row has: under split layouts, in a block, in stages.
cat >"$work/formula.json" <<'EOF'
{
  "meshtf_graph": 1, "name": "formulas",
  "dimensions": {"batch": 8, "features": 12, "hidden": 16},
  "inputs": [{"name": "x", "dims": ["batch", "features"], "feed": "features"},
    {"name": "goal", "dims": ["batch", "hidden"], "feed": "targets"}],
  "variables": [{"name": "w", "dims": ["features", "hidden"], "init": {"normal": 0.3}}, {"name": "cut", "dims": [], "init": "ones"}],
  "operations": [
    {"name": "first", "op": "einsum", "inputs": ["x", "w"], "dims": ["batch", "hidden"]},
    {"repeat": {"name": "layer", "count": 2, "carry": [{"name": "h", "init": "first", "next": "out"}],
      "variables": [{"name": "v", "dims": ["hidden"], "init": {"normal": 1}}],
      "operations": [{"name": "out", "op": "expression", "inputs": ["h", "v", "cut"],
        "expression": "h * sigmoid(v) + 0.5 * max(h, 0) - where(h > cut, h ^ 2, 2 * cut * h - cut ^ 2) / 8"}]}},
    {"name": "loss", "op": "reduce_mean", "inputs": ["squares"], "dims": []},
    {"name": "squares", "op": "expression", "inputs": ["layer/h", "goal"], "arguments": "y goal", "expression": "(y - goal) ^ 2"}
  ],
  "loss": "loss", "optimizer": {"kind": "adam", "rate": 0.01}
}
EOF
for layout in "hidden:rows;features:cols" "batch:rows;hidden:cols"; do
    run meshtf-plan estimate "$work/formula.json" --mesh 'rows:2;cols:2' --precision f64 --layout "$layout" -o "$work/plan.json"
    claim "formulas are planned under $layout" exits 0
    run mpirun -n 4 meshtf-run "$work/plan.json" --steps 3 --verify
    claim "formulas train as on one processor under $layout" says "the same training as on one processor"
    claim "formulas under $layout: calls and bytes are those of their plan" says "every rank's calls and bytes equal the program's"
done
run meshtf-plan search "$work/formula.json" --mesh rows:1 --stages 2 --microbatches 2 -o "$work/plan.json"
claim "formulas are planned in stages" exits 0
run mpirun -n 2 meshtf-run "$work/plan.json" --steps 3 --verify
claim "formulas train in stages" exits 0
sed 's/sigmoid(v)/sigmod(v)/' "$work/formula.json" >"$work/wrong.json"
run meshtf-plan check "$work/wrong.json"
claim "a formula with an unknown function is bad input" bad_input
claim "it is said where" says_error 'column 5: "sigmod" is no function of elements (did you mean "sigmoid"?)'

# Statistics of batches are sums over many rows of channels, which part layouts where they are rounded at each:
# 12 steps of densenet by 3e-3. Seeds differ: resnet's seed 1 still parts by 8e-4. Such runs part where
# rounding decides the sign before one relu otherwise (test_rounded_choices).
for family in densenet resnet; do
    meshtf-plan model $family --preset tiny -o "$work/$family.json" >/dev/null
    for ranks in 1 3; do
        meshtf-plan estimate "$work/$family.json" --mesh rows:$ranks --layout batch:rows -o "$work/plan.json" >/dev/null
        run mpirun -n $ranks meshtf-run "$work/plan.json" --steps 12 --seed 2 --metrics "$work/losses.$ranks"
        claim "$family in float32 on $ranks ranks" exits 0
        # shellcheck disable=SC2016
        claim "has the losses of one processor" jq -se --slurpfile other "$work/losses.$ranks" \
            '[., $other] | transpose | length == 12 and all((.[0].loss - .[1].loss | fabs) < 1e-5 * .[0].loss)' "$work/losses.1"
    done
done

# A router of zeros sends all 32 tokens to the first expert, which has 10 places.
meshtf-plan model switch --preset tiny -o "$work/switch.json" >/dev/null
jq '(.variables[] | select(.name | test("router")) | .init) = "zeros"' "$work/switch.json" >"$work/zeros.json"
for options in '1 --mesh rows:1' '2 --mesh rows:2' '2 --mesh rows:1 --stages 2 --microbatches 4'; do
    # shellcheck disable=SC2086
    run meshtf-plan search "$work/zeros.json" --machine cpu-host ${options#* } -o "$work/plan.json"
    run mpirun -n "${options%% *}" meshtf-run "$work/plan.json" --data LICENSE --steps 1 --metrics "$work/metrics"
    claim "${options#* }: 22 of 32 tokens are dropped" [ "$(jq .dropped_share "$work/metrics")" = 0.6875 ]
    claim "  and it is said" says "dropped 68.8%"
done
run meshtf-plan search "$work/llama.json" --mesh rows:1 -o "$work/plan.json"
run meshtf-run "$work/plan.json" --data LICENSE --steps 1
claim "without routers nothing is said of it" [ "$(grep -c "dropped" "$work/out")" = 0 ]

# Optimizers that need more of a variable than an element: norms, products with itself.
for optimizer in lamb muon; do
    run meshtf-plan model transformer-lm --preset tiny --optimizer "$optimizer" --ema 0.9 -o "$work/model.json"
    run meshtf-plan estimate "$work/model.json" --mesh 'rows:2;cols:2' --precision f64 \
        --layout 'batch:rows;d_ff:cols;heads:cols;vocab:cols' -o "$work/plan.json"
    claim "$optimizer is planned for split variables" exits 0
    run mpirun -n 4 meshtf-run "$work/plan.json" --data LICENSE --steps 5 --verify
    claim "$optimizer trains as on one processor" says "the same training as on one processor"
    claim "$optimizer: calls and bytes are those of its plan" says "every rank's calls and bytes equal the program's"
done

# Bools choose, ids of int64 look up, and a count of steps is kept: as with floats and int32, to the bit.
cat >"$work/truths.json" <<'EOF'
{
  "meshtf_graph": 1, "name": "truths",
  "dimensions": {"batch": 8, "length": 6, "vocab": 256, "d": 16},
  "inputs": [{"name": "tokens", "dims": ["batch", "length"], "dtype": "int64", "feed": "tokens"},
    {"name": "next", "dims": ["batch", "length"], "dtype": "int64", "feed": "next_tokens"},
    {"name": "mask", "dims": ["batch", "length"], "dtype": "bool", "feed": "mask"}],
  "variables": [{"name": "table", "dims": ["vocab", "d"], "init": {"normal": 0.5}},
    {"name": "w", "dims": ["d", "vocab"], "init": {"normal": 0.3}},
    {"name": "steps", "dims": [], "dtype": "int64", "init": "zeros", "frozen": true}],
  "operations": [
    {"op": "embedding", "name": "x", "inputs": ["table", "tokens"], "dims": ["batch", "length", "d"]},
    {"op": "constant", "name": "zero", "dims": [], "value": 0},
    {"op": "less", "name": "above", "inputs": ["zero", "x"], "dtype": "bool"},
    {"op": "where", "name": "r", "inputs": ["above", "x", "zero"]},
    {"op": "reduce_any", "name": "some", "inputs": ["above"], "dims": ["batch", "d"]},
    {"op": "reduce_all", "name": "every", "inputs": ["above"], "dims": ["length", "d"]},
    {"op": "logical_xor", "name": "either", "inputs": ["some", "every"]},
    {"op": "roll", "name": "rolled", "inputs": ["either"], "dimension": "d", "shift": 3},
    {"op": "where", "name": "s", "inputs": ["rolled", "r", "x"]},
    {"op": "einsum", "name": "logits", "inputs": ["s", "w"], "dims": ["batch", "length", "vocab"]},
    {"op": "cast", "name": "counts", "inputs": ["mask"], "dtype": "float32"},
    {"op": "softmax_cross_entropy", "name": "losses", "inputs": ["logits", "next", "counts"], "dims": ["batch", "length"]},
    {"op": "reduce_mean", "name": "mean", "inputs": ["losses"], "dims": []},
    {"op": "cast", "name": "done", "inputs": ["steps"], "dtype": "float32"},
    {"op": "add", "name": "loss", "inputs": ["mean", "done"]},
    {"op": "constant", "name": "one", "dims": [], "value": 1, "dtype": "int64"},
    {"op": "add", "name": "more", "inputs": ["steps", "one"]}
  ],
  "updates": [{"variable": "steps", "value": "more"}],
  "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.5}
}
EOF
run meshtf-plan check "$work/truths.json" --json
claim "ids of int64 have eight bytes and a bool has one" [ "$(jq .inputs_bytes "$work/out")" = $((48 * (8 + 8 + 1))) ]
sed 's/"dtype": "bool", //; s/, "dtype": "bool"//; s/int64/int32/' "$work/truths.json" >"$work/numbers.json"
while read -r ranks mesh layout; do
    for graph in truths numbers; do
        run meshtf-plan estimate "$work/$graph.json" --mesh "$mesh" --layout "$layout" -o "$work/plan.json"
        run mpirun -n "$ranks" meshtf-run "$work/plan.json" --data LICENSE --steps 4 --verify --metrics "$work/$graph.jsonl"
        claim "$graph train as on one processor under $layout" says "the same training as on one processor"
        claim "$graph under $layout: calls and bytes are those of their plan" says "every rank's calls and bytes equal the program's"
    done
    claim "bools and int64 have the losses of numbers under $layout" [ "$(jq .loss "$work/truths.jsonl")" = "$(jq .loss "$work/numbers.jsonl")" ]
done <<TABLE
4 rows:2;cols:2 batch:rows;d:cols;rolled/turned:cols
4 rows:2;cols:2 length:rows;vocab:cols
3 rows:3 d:rows;rolled/turned:rows
TABLE
# The loss grows by one a step, as the count does, through a checkpoint and under another layout, too.
run mpirun -n 3 meshtf-run "$work/plan.json" --data LICENSE --steps 2 --checkpoint "$work/kept"
run meshtf-plan estimate "$work/truths.json" --mesh rows:2 --layout batch:rows -o "$work/plan.json"
run mpirun -n 2 meshtf-run "$work/plan.json" --data LICENSE --steps 4 --checkpoint "$work/kept" --resume --metrics "$work/resumed.jsonl"
claim "a count in int64 goes on from a checkpoint" [ "$(jq -s 'map(.loss | floor) | . == [7, 8]' "$work/resumed.jsonl")" = true ]

# The largest singular vector by iteration, as often as it still moves: a while block ends alike on all ranks, with
# what a loop of 40 iterations would leave that keeps its values from there on. The loop is the witness.
cp tests/golden/while.json "$work/while.json"
sed 's/"while": {"name": "power", "condition": "go", "max_count": 40/"loop": {"name": "power", "count": 40/
    s/"next": "unit"/"next": "v_kept"/; s/"next": "moves"/"next": "go_kept"/
    s/.*"name": "moves".*/&, {"op": "where", "name": "v_kept", "inputs": ["go", "unit", "v"]},{"op": "where", "name": "go_kept", "inputs": ["go", "moves", "go"]}/' \
    "$work/while.json" >"$work/counted.json"
run meshtf-plan estimate "$work/while.json" --mesh rows:1 --layout ''
claim "how often a while block is counted is said" says "power          40 iterations at most, all of which are counted"
while read -r ranks mesh layout; do
    for graph in while counted; do
        run meshtf-plan estimate "$work/$graph.json" --mesh "$mesh" --layout "$layout" --precision f64 -o "$work/plan.json"
        run mpirun -n "$ranks" meshtf-run "$work/plan.json" --steps 3 --verify --metrics "$work/$graph.jsonl"
        claim "a $graph loop trains as on one processor under $layout" says "the same training as on one processor"
        [ "$graph" = counted ] || claim "it ran seven iterations of 40" says '"while" blocks ran 7.0 iterations a step; the plan counts the 40.0'
        [ "$ranks" = 1 ] || claim "  with the calls and bytes of those" says "every rank's calls and bytes equal the program's"
    done
    claim "both have the same losses" [ "$(jq .loss "$work/while.jsonl")" = "$(jq .loss "$work/counted.jsonl")" ]
done <<TABLE
1 rows:1 batch:rows
3 rows:3 e:rows
4 rows:2;cols:2 d:rows;e:cols
TABLE
run meshtf-plan search "$work/while.json" --mesh rows:2 --stages 2 --microbatches 2 --machine cpu-host -o "$work/plan.json"
run mpirun -n 4 meshtf-run "$work/plan.json" --steps 3 --verify
claim "a stage with a while block trains as on one processor" says "the same training as on one processor"
claim "it ran seven iterations for each of two micro-batches" says '"while" blocks ran 14.0 iterations a step; the plan counts the 80.0'
sed 's/"value": 1, "dtype": "bool"/"value": 0, "dtype": "bool"/' "$work/while.json" >"$work/never.json"
run meshtf-plan estimate "$work/never.json" --mesh rows:2 --layout d:rows -o "$work/plan.json"
run mpirun -n 2 meshtf-run "$work/plan.json" --steps 2 --verify
claim "a condition that is false at first ends the block with what it began with" says "ran 1.0 iterations a step"
sed 's/"inputs": \["still", "v"\]/"inputs": ["w", "v"]/' "$work/while.json" >"$work/wrong.json"
run meshtf-plan estimate "$work/wrong.json" --mesh rows:2 --layout d:rows
claim "a gradient through a while block is bad input" bad_input
claim "it is said where, and what would do" says_error 'no gradient passes through the "while" block "power", which would come to "power/v": stop it there'

# Bad input: what is wrong, and what would be right.
wrong() {
    sed "s/$1/$2/" "$work/llama.json" >"$work/wrong.json"
    run meshtf-plan check "$work/wrong.json"
    claim "$3" bad_input
    claim "$3: it is said" says_error "$4"
}
wrong '"op": "softplus"' '"op": "soft_plus"' "an unknown operation is bad input" 'is not an operation; use softplus'
sed 's/"name": "r", "inputs": \["above"/"name": "r", "inputs": ["tokens"/' "$work/truths.json" >"$work/wrong.json"
run meshtf-plan check "$work/wrong.json"
claim "an integer as a condition of floats is bad input" bad_input
claim "it is said of what types" says_error 'input "x" is float32 but "tokens" is int64'
sed 's/"op": "less", "name": "above", "inputs": \["zero", "x"\], "dtype": "bool"/"op": "exp", "name": "above", "inputs": ["mask"]/' "$work/truths.json" >"$work/wrong.json"
run meshtf-plan check "$work/wrong.json"
claim "what bools have not is told" says_error 'input "mask" is bool; cast it to a float type first'
wrong '"start": 8' '"start": 9' "a slice beyond the end is bad input" 'takes elements 9 to 16 along "length"'
wrong '"shift": 3' '"shift": 0.5' "half a shift is bad input" '"shift" is 0.5 and must be a whole number'
wrong '"dims": \["batch", "length", "queries"\]},' '"dims": ["batch", "queries", "length"]},' "a reshape that would transpose is bad input" 'transpose'
done_testing
