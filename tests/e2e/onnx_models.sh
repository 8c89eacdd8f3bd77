#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# ONNX files as commands see them: imported, checked, searched with a loss, trained from their weights.
. tests/support/tap.sh
cases=/usr/share/libonnx-testdata/data
linear=$cases/pytorch-converted/test_Linear/model.onnx

[ -d "$cases" ] || { skip "libonnx-testdata is not installed"; done_testing; }

run meshtf-plan import "$linear" -o "$work/g.json" --json
claim "import tells the parameters of an ONNX file" says '"parameters": 88'
run meshtf-plan check "$linear"
claim "check knows an ONNX file" says 'ONNX model'
run meshtf-plan check "$cases/node/test_if/model.onnx"
claim "branches are read" exits 0
run meshtf-plan check "$cases/node/test_optional_has_element/model.onnx"
claim "what is no tensor is refused" exits 2
claim "  with the input's name" says_error 'input "optional_input" is no tensor of numbers'
head -c 60 "$linear" >"$work/cut.onnx"
run meshtf-plan import "$work/cut.onnx" -o "$work/x.json"
claim "a file that is cut off is refused" exits 2
run meshtf-plan search "$linear" --batch 8 --loss cross-entropy:labels --mesh b:2 --machine cpu-host -o "$work/plan.json"
claim "an ONNX file with a loss is planned" exits 0
run mpirun -n 2 meshtf-run "$work/plan.json" --init "$linear" --steps 3
claim "and trained from its weights" exits 0
done_testing
