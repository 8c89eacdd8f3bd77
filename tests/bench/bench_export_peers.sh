#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Plans of ten families on 2x4 devices as JAX, DTensor, Shardy and ONNX, given to those libraries where BENCH_PYTHON (python3) has
# them; BENCH_FOLDER keeps what was written, for export_peers.py on another machine. Prints a line for each; what a machine that
# has all said is in tests/bench/export_peers.txt.
. tests/bench/bench.sh
folder=${BENCH_FOLDER:-$work}
for family in bert llama lstm-lm mixtral resnet switch t5 transformer-lm unet vit; do
    meshtf-plan model "$family" --preset tiny -o "$work/graph" >/dev/null
    meshtf-plan search "$work/graph" --mesh 'rows:2;cols:4' --machine cpu-host --even --gap 0.05 -o "$folder/$family.json" >/dev/null
    for form in jax dtensor shardy onnx; do
        meshtf-plan export "$folder/$family.json" --to $form -o "$folder/$family.$form"
    done
done
${BENCH_PYTHON:-python3} "$root/tests/bench/export_peers.py" "$folder"
