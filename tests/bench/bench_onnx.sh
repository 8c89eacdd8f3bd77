#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Trained models written as ONNX and run by onnxruntime (npm's onnxruntime-node): its scores beside those
# of meshtf-run --logits. Writes tests/bench/onnx.txt; fails where they differ by more than 1e-4.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$root/${MTF_BUILD:-build/release}:$PATH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
if ! command -v npm >npm.log || ! npm install --ignore-scripts onnxruntime-node >npm.log 2>&1; then
    echo "bench_onnx: skipped, npm cannot install onnxruntime-node"
    exit 0
fi
rows=$root/tests/bench/onnx.txt
{
    echo "# $(date -u +%Y-%m-%d), onnxruntime-node $(node -p 'require("onnxruntime-node/package.json").version'): ONLY=bench_onnx make bench"
    echo "# scores of tiny presets after two steps, written by export --to onnx --weights: the largest difference"
    printf '%-16s %-16s %12s %12s\n' family scores largest differs
} >"$rows.new"
for family in transformer-lm gpt llama qwen gemma vit resnet vgg alexnet inception3 densenet; do
    rm -rf run ./*.npy
    meshtf-plan model "$family" --preset tiny -o g.json >/dev/null
    NODE_PATH=node_modules node "$root/tests/bench/onnx_peer.js" inputs g.json "$root/LICENSE" >data
    meshtf-plan search g.json --mesh a:1 -o p.json >/dev/null
    # The words are split on purpose.
    # shellcheck disable=SC2046
    meshtf-run p.json $(cat data) --steps 2 --checkpoint run --logits scores.npy >log
    meshtf-plan export p.json --to onnx --weights run/step-00000002.safetensors -o run/model.onnx
    NODE_PATH=node_modules node "$root/tests/bench/onnx_peer.js" compare run/model.onnx "$family" >>"$rows.new"
done
mv "$rows.new" "$rows"
cat "$rows"
