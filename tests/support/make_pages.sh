# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# make_pages.sh FOLDER: the reports that pages are judged by, each in a folder of its own: a
# perceptron, the Transformer of the demo, the paper's size 5 on 512 cores, a decoder like GPT-3, and pipelines.
set -eu
out=$1
mkdir -p "$out"

# page NAME MODEL... -- SEARCH...: writes the graph, searches its layout and reports it.
page() {
    name=$1
    shift
    model=
    while [ "$1" != -- ]; do
        model="$model $1"
        shift
    done
    shift
    # The model's words hold no spaces.
    # shellcheck disable=SC2086
    meshtf-plan model $model -o "$out/$name.graph" >/dev/null 2>&1
    meshtf-plan search "$out/$name.graph" "$@" -o "$out/$name.plan" --report "$out/$name" >/dev/null
}

page mlp mlp -- --mesh 'rows:2;cols:2' --machine cpu-host
page demo transformer-lm --preset demo -- --mesh 'rows:2;cols:2' --machine cpu-host --frontier 5 --microbatches 1 --recompute none
page size5 transformer-lm --preset size5 -- --mesh 'rows:16;cols:32' --machine tpu-v2
page gpt gpt --preset gpt3-175b --batch 64 -- --layouts rule --mesh 'rows:64;cols:16' --machine gb200

# Names that mean something to HTML, to SVG and to Graphviz, and letters of many kinds.
cat >"$out/hostile.graph" <<'END'
{"meshtf_graph": 1, "name": "g<script>alert(1)</script>&lt;\\N]]>-->\u0001", "dimensions": {"b<i>": 8, "h\\G": 12, "io": 4},
"inputs": [{"name": "x<\"'", "dims": ["b<i>", "io"], "feed": "features"}],
"variables": [{"name": "é<b>&lt;\\N漢", "dims": ["io", "h\\G"], "init": "ones"}],
"operations": [{"name": "y", "op": "einsum", "inputs": ["x<\"'", "é<b>&lt;\\N漢"], "dims": ["b<i>", "h\\G"]},
{"name": "</style><img src=x onerror=alert(1)>", "op": "reduce_sum", "inputs": ["y"], "dims": []}],
"loss": "</style><img src=x onerror=alert(1)>", "optimizer": {"kind": "sgd", "rate": 0.1}}
END
meshtf-plan search "$out/hostile.graph" --mesh 'r<b>"&:2;c\N:2' --layouts rule -o "$out/hostile.plan" \
    --report "$out/hostile" >/dev/null

meshtf-plan search "$out/hostile.graph" --mesh 'r<b>"&:2' --stages 2 --microbatches 2 -o "$out/hostile-stages.plan" \
    --report "$out/hostile-stages" >/dev/null
page stages gpt --preset tiny --layers 4 -- --mesh rows:2 --machine cpu-host --stages 2 --microbatches 4

meshtf-plan search "$out/demo.graph" --mesh 'rows:2;cols:2' --machine cpu-host --layouts rule \
    -o "$out/rule.plan" >/dev/null
meshtf-plan estimate "$out/demo.graph" --mesh all:4 --machine cpu-host --layout batch:all \
    -o "$out/parallel.plan" >/dev/null
meshtf-plan compare "$out/demo.plan" "$out/rule.plan" "$out/parallel.plan" -o "$out/compare" >/dev/null

meshtf-plan model gpt --preset tiny -o "$out/decode.graph" >/dev/null 2>&1
meshtf-plan search "$out/decode.graph" --infer decode --batch 4 --context 24 --devices 2 --machine cpu-host \
    -o "$out/decode.plan" >/dev/null 2>&1
meshtf-plan report "$out/decode.plan" -o "$out/decode" >/dev/null
