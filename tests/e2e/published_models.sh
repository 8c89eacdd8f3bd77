#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 600
# Tiny random models of every type and its variants, written by PyTorch in the published layout: logits, read and computed by
# meshtf-run on four ranks, weights written back, and what is wrong with a folder. every_model_type.sh generates.
. tests/support/tap.sh
. tests/support/published/published_models.sh
types=$($python $models write "$work")

for type in $types; do
    reads "$type" 4 "$work/$type/got.npy"
done
are_run
run $python $models all-read "$work" out4
claim "all is compared with PyTorch" exits 0
for type in $types; do
    claim "$type: logits on 4 ranks are PyTorch's" test -f "$work/$type/logits-alike"
    claim "$type: weights come back to the byte" test -f "$work/$type/weights-alike"
    claim "$type: and its config" cmp "$work/$type/config.json" "$work/$type/out4/config.json"
done
logits gpt2 3

# What a text that is heard loses, and its gradient, are those of PyTorch's CTC: the sum, and the mean by tokens.
for type in wav2vec2 unispeech; do
    for ranks in 1 3; do
        run meshtf-plan search "$work/$type" --devices $ranks --layouts rule --machine cpu-host --batch 2 --length 12 -o "$work/two.json"
        run mpirun -n $ranks meshtf-run "$work/two.json" --data "$work/$type/two-sound.npy" --held-out "$work/$type/two-sound.npy" \
            --data "$work/$type/two-labels.npy" --held-out "$work/$type/two-labels.npy" --init "$work/$type" --steps 1 \
            --metrics "$work/$type/two-$ranks.json"
        claim "$type learns on $ranks ranks" exits 0
    done
    run $python $models aligned "$work/$type" "$work/$type/two-1.json" "$work/$type/two-3.json"
    claim "$type loses what PyTorch's loses, and its gradient is as long" exits 0
done

# A text's class, read through a tokenizer that begins texts as those of bytes begin.
for type in bert-classes electra-classes bert-words; do
    run mpirun -n 4 meshtf-run "$work/$type/p4.json" --data "$work/$type/words.tsv" --tokenizer "$work/$type" \
        --init "$work/$type" --steps 0 --logits "$work/words.npy"
    claim "$type: words tell what their bytes tell" cmp "$work/words.npy" "$work/$type/got.npy"
done
run mpirun -n 4 meshtf-run "$work/bert-classes/p4.json" --data "$work/bert/in-tokens.npy" --steps 1
claim "a class needs a table of labels" exits 2
claim "and is told so" says_error "a table (.tsv) with a label, a tab and a text a line"

# A head that a folder lacks begins as it is drawn where that is asked for, and is written back with the rest.
words() { # OPTION…: what the model of words tells
    run mpirun -n 4 meshtf-run "$work/bert-words/p4.json" --data "$work/bert-words/in-text.tsv" --steps 0 --logits "$work/drawn.npy" "$@"
}
words --init "$work/bert-tokens"
claim "a folder without the head is bad input" exits 2
claim "and the weight is named" says_error "has no tensor \"classifier.weight\""
words --init "$work/bert-tokens" --new-head --export-hf "$work/headed"
claim "a new head is drawn" says "not in $work/bert-tokens, and begins as it is drawn: classifier.weight, classifier.bias"
claim "and what the folder holds beside the model is named" says "no part of this model, and not read of $work/bert-tokens: cls."
claim "its model's config is written" cmp "$work/headed/config.json" "$work/bert-words/config.json"
words --init "$work/headed" --logits "$work/again.npy"
claim "it is read back, and tells the same" cmp "$work/drawn.npy" "$work/again.npy"
words --init "$work/llama" --new-head
claim "another model's weights are no model without a head" exits 2
claim "and are told" says_error "it is another model's"
words --new-head
claim "a new head goes with weights" exits 2

# Matrices in eight bits and a scale for each of their blocks, or of their rows, and in four bits: read as numbers, and
# written as such.
run $python $models write "$work" deepseek_v3-fp8 llama-fp8 llama-gptq qwen2-gptq qwen2-gptq8 qwen3_moe-gptq llama-awq llama-int8 gpt_oss-mxfp4
for type in deepseek_v3-fp8 llama-fp8 llama-gptq qwen2-gptq qwen2-gptq8 qwen3_moe-gptq llama-awq llama-int8 gpt_oss-mxfp4; do
    logits "$type" 3
done
are_run
for type in deepseek_v3-fp8 llama-fp8 llama-gptq qwen2-gptq qwen2-gptq8 qwen3_moe-gptq llama-awq llama-int8 gpt_oss-mxfp4; do
    run grep quantization_config "$work/$type/out3/config.json"
    claim "$type: what is written back says nothing of few bits" exits 1
    mv "$work/$type/out3" "$work/$type-numbers"
    together "$type: numbers are read" 3 "$work/$type/p3.json" --data "$work/$type/in-tokens.npy" --init "$work/$type-numbers" \
        --steps 0 --logits "$work/$type-again.npy"
done
are_run
for type in deepseek_v3-fp8 llama-fp8 llama-gptq qwen2-gptq qwen2-gptq8 qwen3_moe-gptq llama-awq llama-int8 gpt_oss-mxfp4; do
    claim "$type: it computes the same to the bit" cmp "$work/$type-again.npy" "$work/$type-on-3.npy"
done

for type in deepseek_v3-fp8 llama-gptq; do
    logits $type 1
done
logits gpt2 1
are_alike

# Plans of inference: logits of every token that is generated, with weights as they are and in eight bits.
for n in 1 3; do
    generates llama $n 16 6 '*+,-./01' "$work/llama-$n.npy"
    folder=$work/llama got=$work/llama-int8-$n.npy
    run meshtf-plan search "$folder" --infer decode --batch 2 --context 16 --machine cpu-host --devices $n --weights int8 \
        -o "$folder/run.json"
    run mpirun -n $n meshtf-run "$folder/run.json" --init "$folder" --steps 0 --generate 6 --temperature 0.0001 \
        --prompt '*+,-./01' --logits "$got"
    claim "weights in eight bits: $n ranks generate" exits 0
    expect "$got" '*+,-./01' int8 "$folder"
done
# A base that grows with the text, whose caches keep keys as they were turned; prompts below and above the
# context that the model was made for, 8, and one that is read in pieces.
for prompt in '*+,-.' '*+,-./01*+' "$(printf '*+,-./01%.0s' $(seq 130))"; do
    generates mistral 2 1050 7 "$prompt" "$work/mistral-${#prompt}.npy"
done
# Divisors of its own for every pair, others behind texts longer than 8; a text that grows beyond that, too.
for prompt in '*+' '*+,-./' '*+,-./01*+'; do
    generates phi3 2 20 6 "$prompt" "$work/phi3-${#prompt}.npy"
done
are_expected

# What is wrong with a folder is said, by one rank as by three.
folder=$work/gpt2
refuse() { # CLAIM SENTENCE
    run meshtf-run "$folder/p1.json" --data "$folder/in-tokens.npy" --init "$work/bad" --steps 1
    claim "$1 is bad input" exits 2
    claim "$1: the sentence says what" says_error "$2"
    rm -f "$work/bad"/*
}
mkdir "$work/bad"
refuse "an empty folder" "holds neither model.safetensors nor"
cp "$work/llama/model.safetensors" "$work/bad"
refuse "another model's weights" "has no tensor \"wte.weight\""
head -c 2000 "$folder/model.safetensors" >"$work/bad/model.safetensors"
refuse "a file that was cut" "model.safetensors"
echo '{"weight_map": {"a": "../secret.safetensors"}}' >"$work/bad/model.safetensors.index.json"
refuse "an index that leads elsewhere" "a file of this folder is expected"
echo '{"weight_map": {"a": "gone.safetensors"}}' >"$work/bad/model.safetensors.index.json"
refuse "an index of a file that is not there" "gone.safetensors"
printf '\377\377\377\377\377\377\377\017' >"$work/bad/model.safetensors"
refuse "a header of 2^60 bytes" "model.safetensors"
eighths() { # CLAIM SENTENCE: of the model in eight bits, whose files are in $work/bad
    run mpirun -n 3 meshtf-run "$work/deepseek_v3-fp8/p3.json" --data "$folder/in-tokens.npy" --init "$work/bad" --steps 1
    claim "$1 is bad input" exits 2
    claim "$1: the sentence says what" says_error "$2"
}
rm -f "$work/bad"/*
cp "$work"/deepseek_v3-fp8/*.json "$work"/deepseek_v3-fp8/*.safetensors "$work/bad"
sed -i 's/\[16, 10\]/[16, 8]/' "$work/bad/config.json"
eighths "blocks of another size" "is not one scale for each block"
sed -i 's/\[16, 8\]/[16]/' "$work/bad/config.json"
eighths "a block of one side" "/quantization_config/weight_block_size: rows and columns"
cp "$work/deepseek_v3-fp8/config.json" "$work/bad"
sed -i 's/_scale_inv/_scale_inw/g' "$work/bad"/*.safetensors
eighths "units without scales" "_scale\", the units of"
rm -f "$work/bad"/*
for wrong in group_size qzeros scales; do
    cp "$work"/llama-awq/*.safetensors "$work/llama-awq/config.json" "$work/bad"
    sed -i 's/"group_size": 8/"group_size": 4/' "$work/bad/config.json"
    [ $wrong = group_size ] || cp "$work/llama-awq/config.json" "$work/bad"
    sed -i "s/[.]$wrong/.others/g" "$work/bad"/*.safetensors # names are as long
    run mpirun -n 3 meshtf-run "$work/llama-awq/p3.json" --data "$folder/in-tokens.npy" --init "$work/bad" --steps 1
    claim "a matrix of four bits with other $wrong is bad input" exits 2
done
claim "the sentence names the matrix" says_error "qweight\" is not packed in few bits beside scales"
cp "$work"/llama-gptq/*.safetensors "$work/llama-gptq/config.json" "$work/bad"
run $python -c "import sys
data = bytearray(open(sys.argv[1], 'rb').read())
import json
size = int.from_bytes(data[:8], 'little')
at = json.loads(data[8:8 + size])['model.layers.0.self_attn.q_proj.g_idx']['data_offsets'][0]
data[8 + size + at] = 200
open(sys.argv[1], 'wb').write(data)" "$work/bad/model.safetensors"
run mpirun -n 3 meshtf-run "$work/llama-gptq/p3.json" --data "$folder/in-tokens.npy" --init "$work/bad" --steps 1
claim "a group that is none is bad input" exits 2
claim "the sentence says which" says_error "input 0 is of group 200, but there are 3"
cp "$work"/gpt_oss-mxfp4/*.safetensors "$work/gpt_oss-mxfp4/config.json" "$work/bad"
sed -i s/down_proj_scales/down_proj_scalez/ "$work/bad/model.safetensors"
run mpirun -n 3 meshtf-run "$work/gpt_oss-mxfp4/p3.json" --data "$folder/in-tokens.npy" --init "$work/bad" --steps 1
claim "experts in four bits without scales are bad input" exits 2
claim "the sentence names them" says_error "down_proj_blocks\" is not packed in few bits beside scales"
# What a family's model learned is written with its config.json, and read as what it was.
trained() { # FAMILY OPTION…
    run meshtf-plan model "$@" --batch 2 --length 16 -o "$work/g.json"
    run meshtf-plan search "$work/g.json" --devices 2 --machine cpu-host -o "$work/p.json"
    run mpirun -n 2 meshtf-run "$work/p.json" --data README.md --steps 1 --export-hf "$work/written" --perplexity README.md
}
trained gpt2 --layers 1 --vocab 300
claim "a family's model is written" exits 0
said=$(sed -n 's/^ *perplexity of README.md: \([0-9.]*\) .*/\1/p' "$work/out")
run meshtf-plan search "$work/written" --batch 2 --length 16 --devices 1 --machine cpu-host -o "$work/q.json"
claim "its folder has a config.json" exits 0
run meshtf-run "$work/q.json" --init "$work/written" --steps 0 --perplexity README.md
# One processor sums in another order than two.
says_what_it_said() {
    sed -n 's/^ *perplexity of README.md: \([0-9.]*\) .*/\1/p' "$work/out" |
        awk -v said="$said" '{ apart = $1 / said - 1 } END { exit !(NR == 1 && apart < 1e-6 && apart > -1e-6) }'
}
claim "with which it says what it said" says_what_it_said
trained bloom --d-ff 96
claim "one of sizes that no type has is written without" says "without a config.json: no model type of transformers has these sizes"
run meshtf-plan model mlp -o "$work/g.json"
run meshtf-plan search "$work/g.json" --devices 1 --machine cpu-host -o "$work/p.json"
run mpirun -n 1 meshtf-run "$work/p.json" --steps 1 --export-hf "$work/out"
claim "a model that nobody published has no such names" exits 2
done_testing
