#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Plans as ONNX files: read again by ourselves and by ONNX's own library, with weights and annotations.
. tests/support/tap.sh


meshtf-plan model mlp -o "$work/g.json" >"$work/out"
meshtf-plan search "$work/g.json" --mesh 'r:2;c:2' --machine cpu-host -o "$work/p.json" >"$work/out"
run meshtf-plan export "$work/p.json" --to onnx -o "$work/p.onnx"
claim "a plan is written as an ONNX file" exits 0
run meshtf-plan import "$work/p.onnx" --json
claim "which is read again with all parameters" says '"parameters": 21768'
run mpirun -n 4 meshtf-run "$work/p.json" --steps 2 --checkpoint "$work/ck"
run meshtf-plan export "$work/p.json" --to onnx --weights "$work/ck/step-00000002.safetensors" -o "$work/ck/m.onnx"
claim "the weights of a checkpoint beside it are named" exits 0

linear=/usr/share/libonnx-testdata/data/pytorch-converted/test_Linear/model.onnx
if [ -e "$linear" ]; then
    meshtf-plan search "$linear" --batch 8 --loss cross-entropy:labels --mesh b:2 --machine cpu-host -o "$work/l.json" >"$work/out"
    mpirun -n 2 meshtf-run "$work/l.json" --init "$linear" --steps 2 --checkpoint "$work/lk" >"$work/out"
    run meshtf-plan export "$work/l.json" --to onnx --weights "$work/lk/step-00000002.safetensors" -o "$work/lk/m.onnx"
    run meshtf-plan search "$work/lk/m.onnx" --loss cross-entropy:labels --mesh b:2 --machine cpu-host -o "$work/again.json"
    claim "a trained network that was written is planned again" exits 0
    run mpirun -n 2 meshtf-run "$work/again.json" --init "$work/lk/m.onnx" --steps 1
    claim "and its weights are read from where it names them" exits 0
else
    skip "libonnx-testdata is not installed"
fi
for family in llama resnet unet bert lstm-lm mixtral switch; do
    meshtf-plan model $family --preset tiny -o "$work/$family.json" >"$work/out"
    meshtf-plan search "$work/$family.json" --mesh 'r:2;c:2' --machine cpu-host --even -o "$work/f.json" >"$work/out"
    run meshtf-plan export "$work/f.json" --to onnx -o "$work/$family.onnx"
    claim "$family is written" exits 0
    run meshtf-plan check "$work/$family.onnx"
    claim "and read again" exits 0
done
run meshtf-plan search "$work/llama.onnx" --loss cross-entropy:labels --mesh 'r:2;c:2' --machine cpu-host -o "$work/f.json"
claim "and its layers are laid out alike, as they were" says "all 2 repeated layers"
run meshtf-plan explain "$work/f.json" layer/1/attention/q
claim "under the names that they had" exits 0
run meshtf-plan export "$work/p.json" --to onnx --weights "$work/g.json" -o "$work/bad.onnx"
claim "what is no safetensors file is bad input" exits 2

if /usr/bin/python3 -c 'from onnx import checker' 2>/dev/null; then
    run /usr/bin/python3 -c "
import onnx
m = onnx.load('$work/p.onnx')
m.ir_version = 8  # that of Debian's library, which passes annotations over
onnx.checker.check_model(m)
onnx.shape_inference.infer_shapes(m, strict_mode=True)"
    claim "ONNX's own checker finds it sound" exits 0
else
    skip "python3-onnx is not installed"
fi
done_testing
