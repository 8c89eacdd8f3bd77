#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 450
# Families of published models: presets with the parameters they are known for, tiny ones that train.
. tests/support/tap.sh
. tests/support/together.sh

while read -r family preset count; do
    run meshtf-plan model "$family" --preset "$preset" --json -o "$work/g.json"
    claim "$preset has $count parameters" says "\"parameters\": $count,"
done <<'END'
llama llama-13b 13015864320
gpt gpt2-medium 354823168
gpt gpt2-large 774030080
gpt gpt2-xl 1557611200
gpt gpt3-xl 1315723264
llama llama-65b 65285660672
llama llama2-70b 68976648192
llama llama3.2-1b 1235814400
gemma gemma-2b 2506172416
gemma gemma-7b 8537680896
gemma gemma2-9b 9241705984
gemma gemma3-1b 999885952
gemma gemma3-270m 268098176
qwen qwen2-1.5b 1543714304
mistral mistral-7b 7241732096
mistral mistral-nemo-12b 12247782400
mistral small-24b 23572403200
mixtral 8x22b 140620634112
mixtral 8x22b-v0.3 140630071296
opt opt-125m 125239296
opt opt-350m 331196416
gpt2 gpt2-xl 1557611200
opt 6.7b 6658473984
bloom 560m 559214592
bloom bloom-176b 176247271424
falcon falcon-7b 6921720704
falcon falcon-40b 41303293952
qwen qwen1.5-moe-a2.7b 14315784192
deepseek deepseek-moe-16b 16375728128
deepseek deepseek-v2-lite 15706484224
deepseek deepseek-v3 671026404352
qwen qwen3-1.7b 1720574976
qwen qwen3-8b 8190735360
qwen qwen3-14b 14768307200
qwen qwen3-235b-a22b 235093634560
pythia pythia-70m 70426624
pythia pythia-410m 405334016
pythia pythia-1.4b 1414647808
pythia pythia-6.9b 6857302016
pythia pythia-12b 11846072320
phi phi-1.5 1418270720
phi phi-2 2779683840
olmo2 olmo2-7b 7298617344
olmo2 olmo2-13b 13716198400
bert large 335141888
bert roberta-large 355359744
bert distilbert-base 66362880
t5 3b 2851598336
t5 v1_1-xxl 11135332352
vit vit-s16 22050664
vit vit-b32 88224232
vit vit-h14 632045800
vit vit-22b 22209743848
transformer size0 243564544
transformer size4 2885976064
transformer base 63045632
transformer pase-small 120872960
dlrm criteo-kaggle 540677217
dlrm dcn-v2 26151671809
switch base-8 619339008
gshard moe-2048e-36l 619333738496
moe-lstm moe-4096-h 5116667775
autoencoder mnist 2837314
END

# Trained parameters, and running statistics apart.
while read -r family preset count statistics; do
    run meshtf-plan model "$family" --preset "$preset" --json
    claim "$family $preset has $count parameters" says "\"parameters\": $count,"
    claim "and $statistics statistics" says "\"statistics\": $statistics,"
done <<'END'
resnet 18 11689512 9600
resnet 50 25557032 53120
resnet 152 60192808 151424
resnet wide-resnet-50 68883240 68224
resnet resnext-101-64x4d 83455272 202880
alexnet torchvision 61100840 0
densenet 264 33337704 398528
resnet alpa-250m 254000200 151680
resnet alpa-2b 1964666920 424704
vgg 16 138357544 0
vgg 16-bn 138365992 8448
alexnet alexnet 62378344 0
alexnet bvlc 60965224 0
inception3 inception3 23834568 34432
inception3 inception3-aux 27161264 36224
densenet 121 7978856 83648
densenet 201 20013928 229056
unet unet-2d 31030658 0
unet unet-3d 19070560 4672
unet mesh 5600960 2816
cosmoflow cosmoflow-128 9437636 0
END
run meshtf-plan model gpt --preset gpt3-xl --json
claim "what a model has can be asked without writing it" exits 0
claim "running statistics stand apart" says '"statistics": 0'
run meshtf-plan model dlrm --top 8-3 --json
claim "a click of three outputs is bad input" bad_input
run meshtf-plan model dlrm --tables 8,x --json
claim "sizes that are none are bad input" bad_input
claim "the sentence says which" says_error "--tables: \"x\" in \"8,x\" is not a size"

run meshtf-plan model dlrm --tables 8x --json
claim "rows an example that are none are bad input" says_error "--tables: \"8x\" in \"8x\" is not a size"

run meshtf-plan model resnet --preset resnet-50 --image 64 --json
claim "pictures of another size change no parameters" says '"parameters": 25557032,'
run meshtf-plan model resnet --preset resnet-50 --image 64 --stem small --json
claim "a small stem has 3x3 windows: 64 x 3 x (49 - 9) parameters fewer" says '"parameters": 25549352,'
run meshtf-plan model densenet --preset densenet-121 --image 32 --json
claim "nor those of a dense network" says '"parameters": 7978856,'

run meshtf-plan model vit --preset vit-b16 --image 384 --classes 10 --json
claim "a larger picture has a position for each patch: 86567656 + (24^2 - 14^2) 768 - 990 x 769" says '"parameters": 86098186,'
run meshtf-plan model mixtral --preset mixtral-8x7b --experts 16 --json
claim "8 more experts: 46702792704 + 32 x 8 x (3 x 4096 x 14336 + 4096)" says '"parameters": 91800997888,'

# What a family does not have is told in the words of the option, not of the operation that it would break.
while read -r expected options; do
    # shellcheck disable=SC2086 # several options
    run meshtf-plan model $options --json
    claim "$options is bad input" bad_input
    claim "$options: the sentence says why" says_error "$(echo "$expected" | tr _ ' ')"
done <<'END'
1_to_8_levels,_not_9 unet --preset unet-2d --layers 9
give_496 unet --preset unet-2d --image 500
no_inner_convolutions resnet --preset resnet-18 --widening 2
no_inner_convolutions resnet --preset resnet-18 --groups 2
not_3_equal_groups resnet --preset resnet-50 --groups 3
1_to_4_modules_of_a_kind inception3 --layers 5
has_no_parameter_--length vit --length 20
95_is_odd alexnet --preset bvlc --width 95
there_are_8 moe-lstm --choices 9
give_as_many moe-lstm --projection 16
an_eighth_as_wide cosmoflow --hidden 4
give_an_even_number,_not_3 gshard --layers 3
there_is_1 gshard --experts 1
"0"_is_not_a_whole_number_from_1 bert --preset bert-base --layers 0
END

run meshtf-plan model llama --preset llama-7b --layers 2 --length 64 --batch 4 -o "$work/g.json"
claim "single settings change a preset" says "llama-7b: 666914816 parameters"
run meshtf-plan model transformer --preset size1 --json
claim "a name that is a preset's is that one" says '"name": "transformer-size1"'
run meshtf-plan model llama --preset llama38b --json
claim "dashes may be left out" says '"name": "llama3-8b"'
run meshtf-plan model llama --preset nothing -o "$work/g.json"
claim "an unknown preset is bad input" bad_input
claim "the sentence lists the presets" says_error "llama3.1-405b"

# plan FAMILY: of a tiny one for two ranks.
plan() {
    run meshtf-plan model "$1" --preset tiny -o "$work/g.json"
    run meshtf-plan search "$work/g.json" --devices 2 --machine cpu-host -o "$work/$1.json"
    claim "a plan for a tiny $1" exits 0
}

losses() { # FAMILY
    sed 's/.*"loss": *\([0-9.]*\).*/\1/' "$work/$1.jsonl"
}

# A tiny one of each learns the licence's letters: a text of 256 equally likely bytes loses 5.55. Those that need no text
# learn what a fixed network makes of random examples.
texts='gpt llama qwen pythia phi olmo2 opt bloom falcon gemma mistral mixtral deepseek switch gshard moe-lstm bert t5 transformer transformer-lm'
others='mlp autoencoder dlrm resnet vgg alexnet densenet unet'
for family in $texts; do
    plan "$family"
    together "a tiny $family trains" 2 "$work/$family.json" --data LICENSE --steps 25 --metrics "$work/$family.jsonl"
done
for family in $others; do
    plan "$family"
    together "a tiny $family trains" 2 "$work/$family.json" --steps 100 --metrics "$work/$family.jsonl"
done
are_run
for family in $texts; do
    last=$(losses "$family" | tail -n 1)
    claim "a tiny $family learns" awk "BEGIN { exit !(${last:-9} < 4.6) }"
done
for family in $others; do
    # vgg drops half of what its last layers see.
    most=0.9
    [ "$family" != vgg ] || most=0.97
    last=$(losses "$family" | tail -n 1) first=$(losses "$family" | head -n 1)
    claim "the loss of a tiny $family falls" awk "BEGIN { exit !(${last:-1} < $most * ${first:-0}) }"
done
done_testing
