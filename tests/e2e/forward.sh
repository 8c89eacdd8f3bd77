#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# search --infer forward: any graph, run for what it makes of a batch, on one rank and on several.
. tests/support/tap.sh

# A decoder that goes on with the three likeliest texts until they are full, as a `while` of a graph. The witness is
# a plain search through lists.
cat >"$work/witness.py" <<'END'
import json, math, random, struct, sys
def read(path):
    data = open(path, "rb").read()
    n, = struct.unpack("<Q", data[:8])
    header, tensors = json.loads(data[8:8 + n]), {}
    for name, t in header.items():
        if name != "__metadata__":
            begin, end = (8 + n + at for at in t["data_offsets"])
            letter = {"F32": "f", "I32": "i", "BOOL": "?"}[t["dtype"]]
            tensors[name] = struct.unpack("<%d%s" % ((end - begin) // struct.calcsize(letter), letter), data[begin:end])
    return tensors
random.seed(5)
values = [random.gauss(0, 1.5) for _ in range(65536)]
raw = struct.pack("<65536f", *values)
if sys.argv[1] == "write":
    text = json.dumps({"table": {"dtype": "F32", "shape": [256, 256], "data_offsets": [0, len(raw)]}}).encode()
    text += b" " * (-len(text) % 8)
    open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + raw)
    sys.exit()
table, found = struct.unpack("<65536f", raw), read(sys.argv[2])
for example, start in enumerate(found["asked/result"]):
    beams = [(0.0, [start])]
    for _ in range(6):
        longer = []
        for score, text in beams:
            row = table[256 * text[-1]:256 * text[-1] + 256]
            all_scores = math.log(sum(math.exp(x) for x in row))
            longer += [(score + x - all_scores, text + [token]) for token, x in enumerate(row)]
        beams = sorted(longer, reverse=True)[:3]
    for k, (score, text) in enumerate(beams):
        at = 3 * example + k
        assert list(found["search/text/result"][6 * at:6 * at + 6]) == text[1:], (text, found)
        assert abs(found["search/score/result"][at] - score) < 1e-3
assert found["search/step/result"] == (6,) and found["search/going/result"] == (False,)
END
python3 "$work/witness.py" write "$work/weights"
while read -r ranks mesh; do
    run meshtf-plan search tests/golden/beam_search.json --infer forward --mesh "$mesh" --machine cpu-host -o "$work/p.json"
    claim "a beam search is planned on $mesh" exits 0
    run mpirun -n "$ranks" meshtf-run "$work/p.json" --init "$work/weights" --data LICENSE --steps 2 --results "$work/r" --verify
    claim "and runs" exits 0
    claim "as on one processor" says "the same results as on one processor"
    claim "calls and bytes are the plan's" sh -c "grep -q 'equal the program.s\|no communication' '$work/out'"
    claim "it ends where its texts are full" says '"while" blocks ran 6.0 iterations a step'
    claim "it finds what a plain search finds" python3 "$work/witness.py" check "$work/r"
done <<'END'
1 all:1
2 a:2
4 a:2;b:2
END
claim "what it is run for is said" says "the results are in"

# A classifier: scores come out, nobody needs labels, nothing is dropped or learned.
run meshtf-plan model vgg --preset tiny -o "$work/vgg.json"
run meshtf-plan search "$work/vgg.json" --infer forward --devices 2 --machine cpu-host --precision f64 --json -o "$work/p.json"
claim "examples a second are said" [ "$(jq '.examples_per_second > 0 and .infer == "forward"' "$work/out")" = true ]
run meshtf-plan search mlp --infer forward --devices 2 --machine cpu-host --layouts rule -o "$work/rules.json"
claim "rules split what comes out" [ "$(jq -c '.layout.tensors["prediction/result"]' "$work/rules.json")" = '{"all":"batch"}' ]
run meshtf-plan explain "$work/rules.json" prediction
claim "and so may any search" says "prediction runs as all=batch"
claim "no labels are read" [ "$(jq '[.graph.inputs[].feed] == ["features"]' "$work/p.json")" = true ]
claim "nothing is dropped" [ "$(jq '[.graph.operations[].op] | index("dropout")' "$work/p.json")" = null ]
run meshtf-plan check "$work/p.json"
claim "its plan can be read" exits 0
run mpirun -n 2 meshtf-run "$work/p.json" --steps 3 --metrics "$work/m.jsonl" --verify
claim "it runs" says "the same results as on one processor"
claim "there is no loss to tell" [ "$(jq -s 'map(has("loss")) | any' "$work/m.jsonl")" = false ]
run meshtf-plan search resnet50 --batch 8 --infer forward --devices 2 --machine h100 -o "$work/p50.json"
claim "a known model by name" says "results        classifier/biased/result"
run meshtf-plan check "$work/p50.json"
claim "has a plan that can be read" exits 0

for option in "--generate 4" "--serve 8000" "--checkpoint $work/c" "--eval-every 1"; do
    # shellcheck disable=SC2086
    run mpirun -n 2 meshtf-run "$work/p.json" --steps 1 $option
    claim "${option%% *} is not for it" says_error "${option%% *} is not for a plan of --infer forward"
done
run meshtf-plan search "$work/vgg.json" --devices 2 --machine cpu-host -o "$work/train.json"
run mpirun -n 2 meshtf-run "$work/train.json" --steps 1 --results "$work/r"
claim "training has no results" says_error "--results goes with plans of --infer forward only"
for option in "--context 8" "--generate 8" "--cache-memory 1GiB"; do
    # shellcheck disable=SC2086
    run meshtf-plan search "$work/vgg.json" --infer forward --devices 2 $option
    claim "${option%% *} does not go with it" says_error "does not go with --infer forward"
done
run meshtf-plan search "$work/vgg.json" --infer decode --devices 2
claim "what does not generate may run forward" says_error "; --infer forward runs any graph"
run meshtf-plan search "$work/vgg.json" --infer forward --devices 2 --memory 8KiB
claim "what fits nowhere is status 3" exits 3
# A report of what is run, whether the plan has a file of its own or not.
run meshtf-plan search "$work/vgg.json" --infer forward --devices 2 --machine cpu-host --report "$work/report"
claim "a plan of inference is drawn" grep -q '<h1>' "$work/report/index.html"
claim "from a plan beside the page" test -f "$work/report/plan.json"
run meshtf-plan search "$work/vgg.json" --infer forward --devices 2 --machine cpu-host --report "$work/other" -o "$work/drawn.json"
claim "or from the user's file" sh -c "test -f '$work/other/index.html' && test -f '$work/drawn.json'"
# Stages, each with a part of the layers: what several read of one variable travels before all.
run meshtf-plan model gpt --preset tiny --layers 4 -o "$work/gpt.json"
run meshtf-plan search "$work/gpt.json" --infer forward --devices 4 --stages 2 --machine cpu-host --precision f64 -o "$work/p.json"
claim "a graph is run forward in stages" says "forward        2 stages; a step"
claim "with examples under way in all of them" says "all stages     "
claim "for the same results" says "results        logits/result"
run mpirun -n 4 meshtf-run "$work/p.json" --data LICENSE --steps 2 --verify --results "$work/r"
claim "which are those of one processor" says "the same results as on one processor"
claim "memory and transfers are those of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
run meshtf-plan search "$work/gpt.json" --infer forward --devices 2 --stages auto --machine cpu-host --json
claim "their number may be searched for" [ "$(jq '[.tried[].stages] == [1, 2]' "$work/out")" = true ]
run meshtf-plan search "$work/gpt.json" --infer forward --devices 3 --stages 2 --machine cpu-host
claim "stages divide the devices" says_error "do not divide 3 devices"

# A published model of pictures, whose weights PyTorch wrote, beside what PyTorch makes of three of them.
. tests/support/published/published_models.sh
# shellcheck disable=SC2154 # of the file above
$python $models write "$work" vit >"$work/log"

# forward TYPE RANKS DATA [OPTION...]: what a model says of three examples, in batches of two
forward() {
    folder=$work/$1
    run meshtf-plan search "$folder" --infer forward --batch 2 --devices "$2" --machine cpu-host -o "$work/p.json" --json ${4:+"$4"}
    claim "$1: a plan for $2" exits 0
    run mpirun -n "$2" meshtf-run "$work/p.json" --data "$work/$3" --init "$folder" --steps 0 --logits "$work/got.npy"
    claim "$1: $2 ranks run it" exits 0
    claim "  and say of how many examples" says "of 3 examples"
}
alike() {
    $python -c "import sys, numpy
got, wanted = numpy.load(sys.argv[1]), numpy.load(sys.argv[2]).reshape(-1)
sys.exit(not (got.shape == (3, wanted.size) and abs(got - wanted).max() < 1e-4 * abs(wanted).max()))" "$@"
}
$python -c "import sys, numpy
numpy.save(sys.argv[2], numpy.repeat(numpy.load(sys.argv[1]), 3, 0))" "$work/vit/in-image.npy" "$work/three.npy"
for stages in 1 2; do
    forward vit $((4 - stages)) three.npy --stages=$stages
    claim "  with PyTorch's scores, batch after batch" alike "$work/got.npy" "$work/vit/logits.npy"
done
# Examples stand in the order of their file: pictures that differ, one after the other, and in two batches that follow
# one another through two stages.
$python -c "import sys, numpy
numpy.save(sys.argv[1], numpy.random.default_rng(1).normal(size=(3,) + numpy.load(sys.argv[2]).shape[1:]).astype('float32'))" \
    "$work/drawn.npy" "$work/three.npy"
forward vit 2 drawn.npy --stages=2
mv "$work/got.npy" "$work/two.npy"
meshtf-plan search "$work/vit" --infer forward --batch 1 --devices 1 --machine cpu-host -o "$work/p.json" >"$work/log"
for i in 0 1 2; do
    $python -c "import sys, numpy
numpy.save(sys.argv[2], numpy.load(sys.argv[1])[$i:$i + 1])" "$work/drawn.npy" "$work/one.npy"
    run meshtf-run "$work/p.json" --data "$work/one.npy" --init "$work/vit" --steps 0 --logits "$work/one-$i.npy"
done
claim "examples are told in the order of their file" $python -c "import sys, numpy
one = numpy.concatenate([numpy.load(f'{sys.argv[1]}/one-{i}.npy') for i in range(3)])
sys.exit(not (abs(one - numpy.load(sys.argv[1] + '/two.npy')).max() < 1e-5 and abs(one[0] - one[1]).max() > 1e-3))" "$work"

# A network without a loss, as ONNX files are, with what its authors say comes out.
case=/usr/share/libonnx-testdata/data/pytorch-converted/test_Linear
if [ -d $case ]; then
    $python -c "import sys, numpy
for name, columns in ('input_0', 10), ('output_0', 8): # TensorProto ends with its numbers
    data = open(f'{sys.argv[1]}/test_data_set_0/{name}.pb', 'rb').read()
    numpy.save(f'{sys.argv[2]}/{name}.npy', numpy.frombuffer(data[-16 * columns:], 'float32').reshape(4, columns))" $case "$work"
    run meshtf-plan search $case/model.onnx --infer forward --mesh a:2 --machine cpu-host -o "$work/p.json"
    claim "an ONNX file without a loss is planned" says "examples  "
    run mpirun -n 2 meshtf-run "$work/p.json" --data "$work/input_0.npy" --init $case/model.onnx --steps 0 --logits "$work/got.npy"
    claim "and says what it should" $python -c "import sys, numpy
sys.exit(not numpy.allclose(numpy.load(sys.argv[1]), numpy.load(sys.argv[2]), 1e-4, 1e-5))" "$work/got.npy" "$work/output_0.npy"
else
    skip "libonnx-testdata is not installed"
fi

done_testing
