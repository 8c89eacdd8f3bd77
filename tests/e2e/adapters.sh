#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Fine-tuning of a part: adapters beside frozen weights (meshtf-plan import --lora) are trained on any number
# of ranks alike, merged into the weights and written as PEFT keeps them; --freeze leaves parts as they are.
. tests/support/tap.sh

meshtf-plan model transformer-lm --preset demo --layers 2 --batch 4 --length 32 -o "$work/base.json" >/dev/null
run meshtf-plan import "$work/base.json" --lora 4:8 -o "$work/g.json"
claim "a graph gets adapters" exits 0
claim "what was done is said" says "4 products adapted with rank 4, alpha 8; the rest is frozen"

plan() { # GRAPH MESH LAYOUT
    meshtf-plan estimate "$1" --mesh "$2" --layout "$3" --machine cpu-host -o "$work/p.json" >/dev/null
}

# loss FILE STEP
loss() {
    jq -r "select(.step == $2) | .loss" "$1"
}

near() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a - b < 1e-4 * a && b - a < 1e-4 * a) }'
}

plan "$work/g.json" rows:1 ''
claim "adapters alone have optimizer state" \
    [ "$(jq '[.graph.variables[] | select(.memory_kind == "optimizer") | .name | test("_lora_")] | all' "$work/p.json")" = true ]
claim "  and gradients of weights are not computed" \
    [ "$(jq '[.graph.operations[].name | select(test("^grad/.*/(wq|wv|w1|embedding)$"))] | length' "$work/p.json")" = 0 ]
run meshtf-run "$work/p.json" --data LICENSE --steps 6 --metrics "$work/one" --checkpoint "$work/run"
claim "it trains" exits 0
checkpoint=$(ls "$work/run"/*.safetensors)
while read -r ranks mesh layout; do
    plan "$work/g.json" "$mesh" "$layout"
    run mpirun -n "$ranks" meshtf-run "$work/p.json" --data LICENSE --steps 6 --metrics "$work/more"
    claim "$ranks ranks, $layout: the same losses" near "$(loss "$work/one" 6)" "$(loss "$work/more" 6)"
done <<TABLE
2 rows:2 batch:rows
2 rows:2 heads:rows;lora_rank:rows
4 rows:2;cols:2 batch:rows;d_model:cols
TABLE
meshtf-plan search "$work/g.json" --devices 2 --machine cpu-host -o "$work/p.json" >/dev/null
run mpirun -n 2 meshtf-run "$work/p.json" --data LICENSE --steps 6 --verify
claim "a plan that was searched is verified" exits 0

# Weights of a model without adapters begin one with them, which begins as that model.
plan "$work/base.json" rows:1 ''
run meshtf-run "$work/p.json" --data LICENSE --steps 3 --checkpoint "$work/before" --perplexity LICENSE
said=$(sed -n 's/.*perplexity of LICENSE: \([0-9.]*\) .*/\1/p' "$work/out")
plan "$work/g.json" rows:1 ''
run meshtf-run "$work/p.json" --init "$(ls "$work/before"/*.safetensors)" --perplexity LICENSE
claim "adapters begin without effect" near "$said" "$(sed -n 's/.*perplexity of LICENSE: \([0-9.]*\) .*/\1/p' "$work/out")"
run meshtf-run "$work/p.json" --init "$checkpoint" --perplexity LICENSE
claim "a checkpoint holds them" exits 0

meshtf-plan model transformer-lm --preset demo --layers 2 --batch 4 --length 32 --freeze 'layer/*' -o "$work/f.json" >/dev/null
plan "$work/f.json" rows:1 ''
claim "frozen parts have no optimizer state" \
    [ "$(jq '[.graph.variables[] | select(.memory_kind == "optimizer") | .name | test("layer")] | any' "$work/p.json")" = false ]
run meshtf-run "$work/p.json" --data LICENSE --steps 2 --checkpoint "$work/frozen"
claim "what is left trains" exits 0

refuse() { # CLAIM SENTENCE OPTION…
    sentence_=$2
    claim_=$1
    shift 2
    run meshtf-plan import "$work/base.json" -o "$work/x.json" "$@"
    claim "$claim_ is bad input" bad_input
    claim "  said so" says_error "$sentence_"
}
refuse "rank 0" "--lora 0" --lora 0
refuse "a rank that is none" "as in 8:16" --lora 4:x
refuse "an unknown weight" "no product of this model has a weight of such a name" --lora 4 --lora-targets wx
refuse "targets without a rank" "--lora RANK" --lora-targets wq
refuse "a pattern of nothing" "no variable has such a name" --freeze 'x*'
refuse "all frozen" "nothing is left to train" --freeze '*'
run meshtf-run "$work/p.json" --export-adapter "$work/adapter"
claim "a model without adapters has none to export" exits 2

# Published models, where PyTorch can write some.
. tests/support/published/published_models.sh
perplexity() { # the last run's
    sed -n 's/.*perplexity of .*: \([0-9.]*\) (.*/\1/p' "$work/out"
}
$python $models write "$work" llama gpt2 >/dev/null
for type in llama gpt2; do
    folder=$work/$type
    targets=q_proj,v_proj
    [ $type != gpt2 ] || targets=c_attn
    vocabulary=$(jq '.vocab_size' "$folder/config.json")
    $python -c "import numpy, sys; numpy.random.seed(1); numpy.save('$folder/text.npy', numpy.random.randint(0, $vocabulary, 400).astype('i4'))"
    run meshtf-plan import "$folder" --batch 2 --length 12 --lora 4:8 --lora-targets $targets -o "$folder/g.json"
    claim "$type: $targets get adapters" exits 0
    meshtf-plan search "$folder/g.json" --devices 2 --machine cpu-host --precision f32 -o "$folder/p2.json" >/dev/null
    run mpirun -n 2 meshtf-run "$folder/p2.json" --data "$folder/text.npy" --init "$folder" --steps 5 --perplexity "$folder/text.npy" \
        --export-hf "$folder/merged" --export-adapter "$folder/adapter"
    claim "$type: it is tuned on two ranks, merged and written" exits 0
    tuned=$(perplexity)
    run $python $models adapted "$folder" "$folder/adapter" "$folder/merged"
    claim "$type: merged weights are the old ones and B A, the others as they were" exits 0
    meshtf-plan search "$folder" --batch 2 --length 12 --devices 1 --machine cpu-host --precision f32 -o "$folder/p.json" >/dev/null
    run meshtf-run "$folder/p.json" --init "$folder/merged" --perplexity "$folder/text.npy"
    claim "$type: merged, it says what it said with adapters" near "$tuned" "$(perplexity)"
    run meshtf-run "$folder/p.json" --init "$folder" --perplexity "$folder/text.npy"
    claim "$type: which is not what it said before" [ "$tuned" != "$(perplexity)" ]
    run mpirun -n 2 meshtf-run "$folder/p2.json" --steps 0 --init "$folder" --init-adapter "$folder/adapter" \
        --perplexity "$folder/text.npy" --export-adapter "$folder/again"
    claim "$type: adapters are read beside the old weights and say the same" near "$tuned" "$(perplexity)"
    run $python $models same "$folder/adapter" "$folder/again"
    claim "$type:  and come back to the byte" exits 0
    claim "$type: the config names rank, alpha and modules" [ "$(jq -c '[.r, .lora_alpha, .target_modules]' "$folder/adapter/adapter_config.json")" = \
        "[4,8,$(jq -cn --arg t $targets '$t | split(",")')]" ]
    [ $type = gpt2 ] && continue
    meshtf-plan search "$folder/g.json" --infer decode --batch 1 --context 16 --devices 1 --machine cpu-host -o "$folder/d.json" >/dev/null
    run meshtf-run "$folder/d.json" --steps 0 --init "$folder" --init-adapter "$folder/adapter" --generate 6 --temperature 0.0001 \
        --prompt '*+,-' --logits "$folder/got.npy"
    claim "$type: a plan of inference takes adapters" exits 0
    expect "$folder/got.npy" '*+,-' float "$folder" "$folder/merged"
done
are_expected

# What is wrong with a folder of adapters is said.
adapter=$work/llama/adapter
not_read() { # CLAIM CHANGE SENTENCE
    mkdir -p "$work/other"
    jq "$2" "$adapter/adapter_config.json" >"$work/other/adapter_config.json"
    cp "$adapter/adapter_model.safetensors" "$work/other"
    run meshtf-run "$work/llama/p1.json" --steps 0 --init "$work/llama" --init-adapter "$work/other" --perplexity "$work/llama/text.npy"
    claim "$1 is bad input" exits 2
    claim "  said so" says_error "$3"
}
meshtf-plan search "$work/llama/g.json" --devices 1 --machine cpu-host -o "$work/llama/p1.json" >/dev/null
not_read "another rank" '.r = 8' "rank 8, but the plan's adapters have 4"
not_read "another alpha" '.lora_alpha = 16' "alpha 16, but the plan's adapters are for 8: import the model with --lora 4:16"
not_read "alpha of the root of the rank" '.use_rslora = true' "alpha 8, but the plan's adapters are for 4: import the model with --lora 4:16"
not_read "scales of groups" '.use_qalora = true' "/use_qalora: not supported"
not_read "tokens that are trained" '.trainable_token_indices = [1]' "/trainable_token_indices: not supported"
not_read "another kind" '.peft_type = "IA3"' "only LORA"
not_read "trained biases" '.bias = "all"' "/bias: not supported"
not_read "a config that is no object" '[]' "an object is expected"
$python $models write "$work/llama" llama >/dev/null
meshtf-plan import "$work/llama" --batch 2 --length 12 --lora 4:8 --lora-targets q_proj -o "$work/llama/g.json" >/dev/null
meshtf-plan search "$work/llama/g.json" --devices 1 --machine cpu-host -o "$work/llama/p1.json" >/dev/null
not_read "adapters of other modules" '.' "has 8 tensors, but the adapters of this plan are 4"
run meshtf-run "$work/llama/p.json" --steps 0 --init "$work/llama" --init-adapter "$adapter" --perplexity "$work/llama/text.npy"
claim "a plan without adapters takes none" says_error "the model has no adapters"
run meshtf-run "$work/llama/p1.json" --steps 0 --init "$adapter" --perplexity "$work/llama/text.npy"
claim "a folder of adapters is no model" says_error "it holds adapters, which --init-adapter reads"
done_testing
