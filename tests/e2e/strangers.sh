# SPDX-License-Identifier: GPL-3.0-or-later
# Command lines as people type them who have not read the manual: each ends in a plan or in one sentence
# that says what would be right.
. tests/support/tap.sh

# plans ARGUMENT...: the search ends in a plan.
plans() {
    run meshtf-plan search "$@"
    claim "search $* ends in a plan" exits 0
}

# refused WORDS ARGUMENT...: bad input, in one sentence that says so.
refused() {
    words=$1
    shift
    run meshtf-plan "$@"
    claim "$* is bad input" bad_input
    claim "the one sentence says $words" says_error "$words"
    claim "and is all there is" sh -c "[ \$(wc -l <'$work/err') -le 1 ]"
}

plans gpt-small --devices 4 --memory 80GB --machine cpu-host
plans gpt-small --devices 2 --dim length=32 --recompute selective --microbatches 4
plans gpt-small --mesh 'dp:2;tp:2' --pin batch:dp --recompute full --machine cpu-host
plans mlp --devices 3
plans gpt-small --devices 4 --frontier 3 --machine cpu-host --gap 0.05
refused 'did you mean "h100"' search gpt-small --devices 8 --machine H100
plans vit-tiny --devices 4 --batch 16 --machine cpu-host
claim "no size is assumed that was given" [ "$(grep -c "no --batch given" "$work/out")" = 0 ]
plans vit-tiny --devices 2 --machine cpu-host --layouts rule
claim "what was assumed is said" says "(no --batch given)"
claim "what trains it is said" says "optimizer adamw (the family's own; another: meshtf-plan model vit --preset tiny --optimizer NAME)"
plans MLP-mnist --devices 2 --dim batch=48
refused "meshtf-plan model" search gpt-1t --devices 8
refused 'did you mean "llama2-7b"' search llama2-7 --devices 8
refused "has no parameter --length" search resnet50 --devices 8 --length 128
run meshtf-plan check llama2-7b --length 512
claim "check takes names of known models" says "parameters                     6738415616"
claim "and their sizes" says " length=512 "
refused "6144 devices a slice" search gpt-small --devices 8192 --machine tpu-v5p
refused "name:value" search gpt-small --mesh dp=4,tp=2
refused "must be rule or free" search gpt-small --devices 8 --layouts megatron
refused "do not divide the batch" search gpt-small --devices 4 --dim batch=7 --microbatches 3
refused '--memory "lots" is not a size in bytes (like 16GiB' search gpt-small --devices 8 --memory lots
refused "--even takes no value: say it alone, or leave it out" search gpt-small --devices 8 --even=no
refused 'no dimension "vocabs" (did you mean "vocab"?)' search gpt-small --devices 4 --pin vocabs:all
refused 'no dimension "d_f" (did you mean "d_ff"?)' estimate gpt-small --mesh a:2 --layout d_f:a
refused "of a search, auto" search gpt-small --devices 4 --recompute some
refused "--devices N" search gpt-small
refused "the commands are" plan gpt-small --devices 8
plans gpt2 --devices 1 --infer prefill --layouts rule --machine cpu-host
claim "a model that learned fewer positions than the usual context is given all of them" says "a context of 1024,"
refused "more than the 1024 positions it has learned" search gpt2 --devices 1 --infer prefill --context 1200
run meshtf-plan estimate mlp --mesh a:5 --layout hidden:a -o "$work/perceptron.json"
refused "reads no tokens" export "$work/perceptron.json" --to megatron
refused "reads no tokens" export "$work/perceptron.json" --to maxtext
refused 'meshtf-plan export: a plan cannot be exported to "jaxx" (did you mean "jax"?); there are mtf, jax, dtensor' export "$work/perceptron.json" --to jaxx
refused "alpa is for plans with stages, which this one has none of" export "$work/perceptron.json" --to alpa
refused '"lay1" is no operation' explain "$work/perceptron.json" lay1
refused 'is no operation, and no tensor that is kept apart from its operation (did you mean "w1"?)' explain "$work/perceptron.json" w11
refused '"hidden" of 512' export "$work/perceptron.json" --to deepspeed
run meshtf-plan estimate gpt-small --mesh a:3 --layout 'heads:a;d_ff:a;vocab:a' -o "$work/thirds.json"
refused 'is no pipeline schedule (did you mean "1f1b"?); there are gpipe, 1f1b,' schedule 1f2b --stages 4 --micro-batches 8
refused 'is not a family of models (did you mean "resnet"?); there are' model resnte
refused '"resnet50" is a preset of the family resnet: give resnet --preset resnet-50' model resnet50
refused '"heads" of 4 in "layer/0/wq" does not divide by 3: search again with --even' export "$work/thirds.json" --to megatron
printf '{"meshtf_graph": 1, "name": "g", "dimensons": {"b": 4}, "operations": []}' >"$work/keys.json"
jq '.device.flops.bf61 = .device.flops.bf16' layouts/library/machines/a100.json >"$work/types.json"
refused 'unknown key "dimensons" (did you mean "dimensions"? known here:' check "$work/keys.json"
refused "there are f64, f32, bf16" check "$work/types.json"
refused "--dump-after goes with a plan" check mlp --dump-after lower
refused "--devices N is missing" collective allreduce --machine h100 --bytes 1MiB
refused "--machine has links of its own" collective allreduce --machine h100 --devices 8 --bytes 1MiB --bandwidth 1e9
refused '--torus "8x" is not sizes' collective allreduce --torus 8x --bytes 1MiB --bandwidth 1e9
refused '"ringg" is not an algorithm for allreduce here (did you mean "ring"?)' collective allreduce --torus 8 --bytes 1MiB --bandwidth 1e9 --algorithm ringg
refused 'no algorithm is called "ringg" (did you mean "ring"?)' search mlp --devices 4 --collectives ringg
refused '(did you mean "cosine"?)' model mlp --schedule cosin -o "$work/g.json"
refused '"-1" is not a number of at least 0' model mlp --rate -1 -o "$work/g.json"
refused "it has --layers, --batch" model mlp --heads 4 -o "$work/g.json"
refused "nosuch.onnx: cannot be opened: No such file" import nosuch.onnx -o "$work/g.json"
refused "with a size of at least 1" search mlp --devices 4 --dim batch=0
refused '--forbid "btch:all": the graph has no dimension' search mlp --devices 4 --forbid btch:all
refused "Cannot parse number" search mlp --devices 4 --gap 5%
refused "auto, always or never" search gpt-small --devices 4 --uniform yes
done_testing
