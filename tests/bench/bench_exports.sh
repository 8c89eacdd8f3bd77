#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Networks that PyTorch (Debian's python3-torch and python3-torchvision) exports to ONNX, planned by search --infer
# forward for two ranks and run from their weights: how far from what PyTorch makes. BENCH_MODELS="swin_t lstm" takes
# some of them. Writes tests/bench/exports.txt; fails where they differ by more than 1e-4.
. tests/bench/bench.sh
needs torch torchvision
peer() {
    /usr/bin/python3 "$root/tests/bench/torch_exports.py" "$@"
}
cd "$work"
{
    today "$(/usr/bin/python3 -c 'import torch, torchvision; print("torch", torch.__version__ + ", torchvision", torchvision.__version__)'), opset 16"
    printf '%-42s %-14s %9s %9s\n' network results largest differs
} >"$rows.new"
for name in ${BENCH_MODELS:-$(peer list)}; do
    peer export "$name" >log
    meshtf-plan search "$name.onnx" --infer forward --devices 2 --machine cpu-host --gap 0.05 -o p.json >log
    mpirun -n 2 meshtf-run p.json --init "$name.onnx" --data in.npy --steps 0 --logits scores.npy >log
    peer compare "$name" >>"$rows.new"
    rm -f "$name.onnx"
done
keep
