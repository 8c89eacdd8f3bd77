# SPDX-License-Identifier: GPL-3.0-or-later
# What the search finds, beside what it is measured against: the paper's layouts, plain batch
# splitting, the layouts that the field makes by hand, and the limits of memory. `ok` means: the
# free layout costs at most the best rules, and those at most the paper's (language models); 8x8 is
# cheapest at 3.670e6 elements and the next best has 4.194e6 (two blocks); no step is slower under
# more memory (frontier).
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# value NAME FILE: the first number of that name.
value() {
    sed -n "s/.*\"$1\": *\([-0-9.e+]*\),*.*/\1/p" "$2" | head -n 1
}

# sum NAME FILE: over the rows of the table of collectives, single elements left out.
sum() {
    grep '"kind":' "$2" | awk -v name="\"$1\":" '
        function number(key) { return index($0, key) ? substr($0, index($0, key) + length(key)) + 0 : 0 }
        number("\"elements\":") > number("\"calls\":") { sum += number(name) }
        END { printf "%.6g\n", sum }'
}

# judge GOOD: prints ok or SHORT.
judge() {
    if [ "$1" = 1 ]; then echo ok; else echo SHORT; fi
}

paper='batch:rows;vocab:cols;d_ff:cols;heads:cols'

echo 'language models of the Mesh-TensorFlow paper, TPU v2, additive cost in ms'
printf '%-6s %-16s %9s %9s %9s %8s %8s\n' size mesh free rules paper 'gap %' seconds
language_model() {
    meshtf-plan model transformer-lm --preset "size$1" -o "$folder/graph.json" >/dev/null &&
        meshtf-plan search "$folder/graph.json" --mesh "$2" --machine tpu-v2 --memory 1TiB --json \
            -o "$folder/plan.json" >"$folder/free" &&
        meshtf-plan search "$folder/graph.json" --mesh "$2" --machine tpu-v2 --memory 1TiB \
            --layouts rule --json >"$folder/rules" &&
        meshtf-plan estimate "$folder/graph.json" --mesh "$2" --machine tpu-v2 --layout "$3" --in-order \
            -o "$folder/paper" >/dev/null || failed=1
    awk -v size="$1" -v mesh="$2" -v free="$(value cost "$folder/free")" -v rules="$(value cost "$folder/rules")" \
        -v paper="$(value cost "$folder/paper")" -v gap="$(value gap "$folder/free")" -v seconds="$(value seconds "$folder/free")" '
        BEGIN {
            good = free <= rules && rules <= paper
            printf "%-6s %-16s %9.2f %9.2f %9.2f %8.3f %8.2f  %s\n", size, mesh, free / 1e6, rules / 1e6,
                paper / 1e6, 100 * gap, seconds, good ? "ok" : "SHORT"
            exit !good
        }' || failed=1
}
language_model 0 'rows:32' 'batch:rows'
language_model 1 'rows:8;cols:4' "$paper"
language_model 2 'rows:8;cols:4' "$paper"
language_model 3 'rows:16;cols:8' "$paper"
language_model 4 'rows:16;cols:32' "$paper"
language_model 5 'rows:16;cols:32' "$paper"

# PaSE's strategies as its authors run them (baidu-research/PaSE, benchmarks: alexnet.py, strategy 1; rnnlm_opt.py), priced
# here. They are rules once what they lay out in two ways has two names: AlexNet's convolutions have the batch over both
# axes, its dense layers have it whole and their inputs and outputs by turns over one axis each; the recurrent
# cells read units over the second axis and make them over the first.
alexnet='.dimensions += {batch: 8, batch_rest: (.dimensions.batch / 8), batch_dense: .dimensions.batch, dense5: 256}
    | (.inputs[] | select(.name == "labels") | .dims) = ["batch_dense"]
    | (.inputs[] | select(.name == "image") | .dims) |= ["batch", "batch_rest"] + .[1:]
    | (.variables[] | select(.name == "dense6/w") | .dims) |= map(if . == "channels_256" then "dense5" else . end)
    | (.operations[] | select(.name | test("^(conv|pool)")) | select(.dims) | .dims) |= ["batch", "batch_rest"] + .[1:]
    | (.operations[] | select(.name | test("^(dense|classifier|losses)")) | select(.dims) | .dims) |= ["batch_dense"] + .[1:]
    | (.operations[] | select(.name == "dense6/y") | .inputs[0]) = "dense5"
    | .operations += [
        {name: "merged", op: "reshape", inputs: ["pool5"], dims: ["batch_dense", "rows_6", "columns_6", "channels_256"]},
        {name: "dense5", op: "rename", inputs: ["merged"], from: "channels_256", to: "dense5"}]'
rnnlm='(.variables[] | select(.name == "softmax") | .dims) = ["hidden_before", "vocab"]
    | (.operations[] | select(.name == "logits") | .inputs[0]) = "top"
    | .operations += [{name: "top", op: "rename", inputs: ["layer/1/all"], from: "hidden", to: "hidden_before"}]'
echo
echo "PaSE's strategies on V100s, additive cost in ms"
printf '%-11s %-16s %9s %9s %8s\n' network mesh free PaSE 'gap %'
pase() {
    meshtf-plan model "$2" --preset "$3" -o "$folder/graph.json" >/dev/null &&
        jq "$6" "$folder/graph.json" >"$folder/renamed.json" &&
        meshtf-plan estimate "$folder/renamed.json" --mesh "$4" --machine v100 --precision f32 --layout "$5" -o "$folder/pase" >/dev/null &&
        beside_free "$1" "$4" || failed=1
}
# beside_free NETWORK MESH|DEVICES: searches the graph, and prints a line with what PaSE's strategy costs.
beside_free() {
    case $2 in *:*) over=--mesh ;; *) over=--devices ;; esac
    meshtf-plan search "$folder/graph.json" "$over" "$2" --machine v100 --precision f32 --json -o "$folder/plan.json" >"$folder/free" &&
        awk -v network="$1" -v mesh="$2" -v free="$(value cost "$folder/free")" -v pase="$(value cost "$folder/pase")" \
        -v gap="$(value gap "$folder/free")" '
        BEGIN {
            good = free > 0 && free <= pase
            printf "%-11s %-16s %9.2f %9.2f %8.3f  %s\n", network, mesh, free / 1e6, pase / 1e6, 100 * gap, good ? "ok" : "SHORT"
            exit !good
        }'
}
for mesh in 'rows:8;cols:4' 'rows:8;cols:8'; do
    pase AlexNet alexnet pase "$mesh" 'batch:rows;batch_rest:cols;dense5:rows;dense6:cols;dense7:rows;classes:cols' "$alexnet"
    pase RNNLM lstm-lm rnnlm "$mesh" 'vocab:rows;d_model:cols;hidden_before:cols;hidden:rows' "$rnnlm"
done

# The strategy for the Transformer divides features over both axes here and over none there, which no rules say: it is
# written for every tensor. So are the optima of PaSE's own tables for pictures, which its authors run of AlexNet on 32 and 64
# alone: benchmarks/inception.py names five meshes and divides nothing over any. That for RNNLM runs two layers in a wavefront.
transformer() {
    meshtf-plan model transformer --preset pase-large --heads 8 --d-kv 128 --batch 64 -o "$folder/graph.json" >/dev/null &&
        meshtf-plan estimate "$folder/graph.json" --mesh 'rows:4;cols:2' --machine v100 --precision f32 --layout '' -o "$folder/whole" >/dev/null &&
        python3 "${0%/*}/pase_transformer.py" "$folder/whole" "$folder/layout.json" &&
        meshtf-plan estimate "$folder/graph.json" --machine v100 --precision f32 --layout "$folder/layout.json" -o "$folder/pase" >/dev/null &&
        beside_free Transformer 'rows:4;cols:2' || failed=1
}
transformer

# pictures NETWORK DEVICES MODEL...: PaSE's strategy on its mesh, and the search over all meshes of so many devices.
pictures() {
    network=$1 devices=$2
    shift 2
    mesh=$(python3 "${0%/*}/pase_pictures.py" "$1" "$devices" mesh)
    meshtf-plan model "$@" --batch 128 -o "$folder/graph.json" >/dev/null &&
        meshtf-plan estimate "$folder/graph.json" --mesh "$mesh" --machine v100 --precision f32 --layout '' -o "$folder/whole" >/dev/null &&
        python3 "${0%/*}/pase_pictures.py" "$1" "$devices" "$folder/whole" "$folder/layout.json" &&
        meshtf-plan estimate "$folder/graph.json" --machine v100 --precision f32 --layout "$folder/layout.json" -o "$folder/pase" >/dev/null &&
        beside_free "$network" "$devices" || failed=1
}
for devices in 4 8 16 32 64; do
    pictures AlexNet "$devices" alexnet --preset pase
done
for devices in 4 8; do
    pictures ResNet-101 "$devices" resnet --preset resnet-101 --image 227
    pictures Inception "$devices" inception3 --preset inception3
done

echo
echo 'size 0 on 32 processors: what one processor hands to collectives, and what its links carry'
printf '%-16s %-46s %12s %12s\n' mesh layout elements 'link bytes'
meshtf-plan model transformer-lm --preset size0 -o "$folder/graph.json" >/dev/null
for row in "rows:32 batch:rows" "rows:16;cols:2 $paper"; do
    meshtf-plan estimate "$folder/graph.json" --mesh "${row%% *}" --machine tpu-v2 --layout "${row#* }" --in-order --json >"$folder/estimate"
    printf '%-16s %-46s %12.4g %12.4g\n' "${row%% *}" "${row#* }" "$(sum elements "$folder/estimate")" "$(sum link_bytes "$folder/estimate")"
done

echo
echo 'two blocks relu(x w) v, io 1024, hidden 4096, batch 4096, on 64 processors: elements in collectives'
block() {
    printf '{"name": "h%s", "op": "einsum", "inputs": ["%s", "w%s"], "dims": ["batch", "hidden"]}, {"name": "a%s", "op": "relu", "inputs": ["h%s"]}, {"name": "y%s", "op": "einsum", "inputs": ["a%s", "v%s"], "dims": ["batch", "io"]}' "$1" "$2" "$1" "$1" "$1" "$1" "$1" "$1"
}
weights() {
    printf '{"name": "w%s", "dims": ["io", "hidden"], "init": {"normal": 0.01}}, {"name": "v%s", "dims": ["hidden", "io"], "init": {"normal": 0.01}}' "$1" "$1"
}
cat >"$folder/blocks.json" <<END
{"meshtf_graph": 1, "name": "two-blocks", "dimensions": {"batch": 4096, "io": 1024, "hidden": 4096},
 "inputs": [{"name": "x", "dims": ["batch", "io"], "feed": "features"}, {"name": "t", "dims": ["batch", "io"], "feed": "targets"}],
 "variables": [$(weights 1), $(weights 2)],
 "operations": [$(block 1 x), $(block 2 y1), {"name": "e", "op": "subtract", "inputs": ["y2", "t"]}, {"name": "s", "op": "square", "inputs": ["e"]}, {"name": "loss", "op": "reduce_mean", "inputs": ["s"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
END
for rows in 1 2 4 8 16 32 64; do
    meshtf-plan estimate "$folder/blocks.json" --mesh "rows:$rows;cols:$((64 / rows))" --layout 'batch:rows;hidden:cols' --json >"$folder/estimate" || failed=1
    echo "$(sum elements "$folder/estimate") $rows $((64 / rows))"
done | sort -g >"$folder/elements"
awk '{ printf "%10.4g  %sx%s\n", $1, $2, $3 }' "$folder/elements"
good=$(awk 'NR == 1 { first = sprintf("%.4g", $1) == "3.67e+06" && $2 == 8 } NR == 2 { second = sprintf("%.4g", $1) == "4.194e+06" } END { print (first && second) }' "$folder/elements")
judge "$good"
[ "$good" = 1 ] || failed=1

echo
echo 'size 5 on 16x32: the frontier of time against memory, and the layouts that are made by hand'
meshtf-plan model transformer-lm --preset size5 -o "$folder/graph.json" >/dev/null
meshtf-plan search "$folder/graph.json" --mesh 'rows:16;cols:32' --machine tpu-v2 --microbatches 1 --recompute none --frontier 8 \
    -o "$folder/plan.json" >"$folder/frontier" || failed=1
sed -n '/^memory limit/,$p' "$folder/frontier"
good=$(grep -o '"limit_bytes":[0-9]*,"memory_bytes":[0-9]*,"cost":[0-9]*,"bound":[0-9]*,"step_seconds":[-0-9.e]*' \
    "$folder/plan.json" | tr ',' ':' | awk -F: '
    BEGIN { good = 1 } NR > 1 && ($6 > cost || $10 > step) { good = 0 } { cost = $6; step = $10 } END { print (good && NR >= 8) }')
judge "$good"
[ "$good" = 1 ] || failed=1
exit "$failed"
