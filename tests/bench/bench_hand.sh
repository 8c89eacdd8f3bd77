# SPDX-License-Identifier: GPL-3.0-or-later
# Layouts that the field writes by hand beside what the search finds by itself: data and tensor parallelism, space cut into slabs,
# bars and cubes, batch beside space (Dryden and others, LBANN), tables by rows. `ok` means: the step of the search's plan, with
# the mesh, micro-batches and recomputation that it chose, is no longer than that of the layout, or this does not fit.
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# value NAME FILE: the first number of that name.
value() {
    tr ',{}' '[\n*]' <"$2" | sed -n "s/^ *\"$1\": *\([-0-9.e+]*\).*/\1/p" | head -n 1
}

# space NAME AXIS: rules that lay all sizes of rows, columns or layers on an axis that have so many.
space() {
    size=$(echo "$mesh" | tr ';' '\n' | sed -n "s/^$2://p")
    jq -r --arg name "$1" --arg axis "$2" --argjson size "$size" '[.dimensions | to_entries[]
        | select((.key | test("^(other_)*" + $name + "_[0-9]+$")) and .value >= $size) | ";" + .key + ":" + $axis] | add' "$folder/graph.json"
}

# search NETWORK OVER MODEL...: builds the graph and searches; OVER are options.
search() {
    name=$1 over=$2
    shift 2
    meshtf-plan model "$@" -o "$folder/graph.json" >/dev/null || failed=1
    # shellcheck disable=SC2086  # options
    meshtf-plan search "$folder/graph.json" $over -o "$folder/plan.json" >/dev/null 2>&1 || failed=1
    sed -n '/^ *"predicted"/,$p' "$folder/plan.json" >"$folder/found"
}

# hand MESH RULES [OPTION...]: one layout, and a line. Axes a, b and c of the mesh are for rows, columns and layers.
hand() {
    mesh=$1 rules=$2
    shift 2
    layout=$rules
    case $mesh in *a:*) layout="$layout$(space rows a)" ;; esac
    case $mesh in *b:*) layout="$layout$(space columns b)" ;; esac
    case $mesh in *c:*) layout="$layout$(space layers c)" ;; esac
    machine=$(echo " $over" | sed 's/ --\(devices\|mesh\) [^ ]*//')
    # shellcheck disable=SC2086  # options
    meshtf-plan estimate "$folder/graph.json" --mesh "$mesh" --layout "${layout#;}" $machine "$@" --json >"$folder/hand" || failed=1
    awk -v name="$name" -v mesh="$mesh" -v rules="$(echo "$rules" | cut -c1-40)" -v fits="$(grep -c '"fits": true' "$folder/hand")" \
        -v hand="$(value step_seconds "$folder/hand")" -v found="$(value step_seconds "$folder/found")" 'BEGIN {
        good = found > 0 && hand > 0 && (!fits || found <= hand)
        printf "%-34s %-18s %-40s %10.2f %10.2f  %s\n", name, mesh, rules, 1e3 * hand, 1e3 * found,
            !fits ? "does not fit" : good ? "ok" : "SHORT"
        exit !good }' || failed=1
}

v100='--devices 64 --machine v100 --precision f32'
printf '%-34s %-18s %-40s %10s %10s\n' 'step in ms' mesh 'rules, beside those of space' hand search
search 'ResNet-50, batch 256, 64 V100' "$v100" resnet --preset resnet-50 --batch 256
hand 'd:64' batch:d
hand 'd:32;a:2' batch:d
search 'VGG-16, batch 256' "$v100" vgg --preset vgg-16
hand 'd:32;a:2' batch:d
search 'U-Net 3-D of 256, batch 1' "$v100" unet --preset unet-3d-256 --batch 1
hand 'a:8;b:8' ''
hand 'a:4;b:4;c:4' ''
search 'U-Net 3-D of 256, batch 2' "$v100" unet --preset unet-3d-256 --batch 2
hand 'd:2;a:4;b:4;c:2' batch:d
search 'CosmoFlow of 512, batch 1' "$v100" cosmoflow --preset cosmoflow-512 --batch 1
hand 'a:4;b:4;c:4' ''
search 'CosmoFlow of 512, batch 2' "$v100" cosmoflow --preset cosmoflow-512 --batch 2
hand 'd:2;a:4;b:4;c:2' batch:d
search 'CosmoFlow of 512, batch 16' "$v100" cosmoflow --preset cosmoflow-512 --batch 16
hand 'd:16;a:4' batch:d
hand 'd:16;a:2;b:2' batch:d
search 'U-Net 2-D of 1024, batch 4' "$v100" unet --preset unet-2d --image 1024 --batch 4
hand 'd:4;a:4;b:4' batch:d
search 'BERT-large, batch 512 of 512' "$v100" bert --preset bert-large --batch 512 --length 512
hand 'd:64' batch:d
hand 'd:32;m:2' 'batch:d;heads:m;d_ff:m;vocab:m'
search 'big LSTM' "$v100" lstm-lm --preset 2x8192-1024
hand 'd:8;m:8' 'batch:d;vocab:m;hidden:m'
hand 'm:64' 'vocab:m;hidden:m'
search 'MoE-LSTM of 256 experts' "$v100" moe-lstm --preset moe-256
hand 'd:8;m:8' 'batch:d;vocab:m;experts:m'
search 'DLRM, Criteo Kaggle, 16 V100' '--devices 16 --machine v100 --precision f32' dlrm --preset criteo-kaggle
hand 'd:16' batch:d
tables=$(jq -r '[.dimensions | to_entries[] | select((.key | test("^rows[0-9]+$")) and .value >= 16) | ";" + .key + ":m"] | add' "$folder/graph.json")
hand 'm:16' "${tables#;}"
search 'encoder-decoder, size 4, TPU v2' '--mesh rows:16;cols:32 --machine tpu-v2' transformer --preset size4
hand 'rows:16;cols:32' 'batch:rows;vocab:cols;d_ff:cols;heads:cols'
search 'T5 11B, batch 512, 512 TPU v3' '--devices 512 --machine tpu-v3' t5 --preset t5-11b --batch 512 --length 512
hand 'd:32;m:16' 'batch:d;heads:m;d_ff:m;vocab:m' --recompute layers
search 'Wide-ResNet 1b, 4 of p3.16xlarge' '--devices 4 --machine p3.16xlarge --precision f32' resnet --preset alpa-1b --batch 1536
hand 'd:4' batch:d --microbatches 64 --recompute layers
exit "$failed"
