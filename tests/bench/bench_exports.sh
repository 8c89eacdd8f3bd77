#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Networks that PyTorch (Debian's python3-torch and python3-torchvision) exports to ONNX, planned by search --infer
# forward for two ranks and run from their weights: how far from what PyTorch makes. BENCH_MODELS="swin_t lstm" takes
# some of them. Writes tests/bench/exports.txt; fails where they differ by more than 1e-4.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$root/${MTF_BUILD:-build/release}:$PATH
if ! /usr/bin/python3 -c 'import torch, torchvision' 2>/dev/null; then
    echo "bench_exports: skipped, python3-torch or python3-torchvision is not installed"
    exit 0
fi
peer() {
    /usr/bin/python3 "$root/tests/bench/torch_exports.py" "$@"
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
rows=$root/tests/bench/exports.txt
{
    echo "# $(date -u +%Y-%m-%d), $(/usr/bin/python3 -c 'import torch, torchvision; print("torch", torch.__version__ + ", torchvision", torchvision.__version__)'), opset 16: ONLY=bench_exports make bench"
    printf '%-42s %-14s %9s %9s\n' network results largest differs
} >"$rows.new"
for name in ${BENCH_MODELS:-$(peer list)}; do
    peer export "$name" >log
    meshtf-plan search "$name.onnx" --infer forward --devices 2 --machine cpu-host --gap 0.05 -o p.json >log
    mpirun -n 2 meshtf-run p.json --init "$name.onnx" --data in.npy --steps 0 --logits scores.npy >log
    peer compare "$name" >>"$rows.new"
    rm -f "$name.onnx"
done
mv "$rows.new" "$rows"
cat "$rows"
