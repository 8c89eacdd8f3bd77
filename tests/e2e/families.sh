#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Families of published models: presets with the parameters they are known for, tiny ones that train.
. tests/support/tap.sh

while read -r family preset count; do
    run meshtf-plan model "$family" --preset "$preset" --json -o "$work/g.json"
    claim "$preset has $count parameters" says "\"parameters\": $count,"
done <<'END'
llama llama-13b 13015864320
gpt gpt2-medium 354823168
gpt gpt2-large 774030080
gpt gpt2-xl 1557611200
llama llama-65b 65285660672
llama llama2-70b 68976648192
llama llama3.2-1b 1235814400
gemma gemma-2b 2506172416
gemma gemma-7b 8537680896
gemma gemma2-9b 9241705984
mixtral 8x22b 140630071296
qwen qwen3-8b 8190735360
bert large 335141888
bert roberta-large 355359744
t5 3b 2851598336
vit vit-b32 88224232
vit vit-h14 632045800
END

run meshtf-plan model llama --preset llama-7b --layers 2 --length 64 --batch 4 -o "$work/g.json"
claim "single settings change a preset" says "llama-7b: 666914816 parameters"
run meshtf-plan model llama --preset nothing -o "$work/g.json"
claim "an unknown preset is bad input" bad_input
claim "the sentence lists the presets" says_error "llama3.1-405b"

# A tiny one of each learns the licence's letters: a text of 256 equally likely bytes loses 5.55.
for family in gpt llama qwen gemma mixtral bert t5; do
    rm -f "$work/m.jsonl"
    run meshtf-plan model $family --preset tiny -o "$work/g.json"
    run meshtf-plan search "$work/g.json" --devices 2 --machine cpu-host -o "$work/p.json"
    claim "a plan for a tiny $family" exits 0
    run mpirun -n 2 meshtf-run "$work/p.json" --data LICENSE --steps 25 --metrics "$work/m.jsonl"
    claim "a tiny $family trains" exits 0
    claim "and learns" sh -c "tail -n 1 '$work/m.jsonl' | sed 's/.*\"loss\": *\([0-9.]*\).*/\1/' |
        awk '{ exit !(\$1 < 4.6) }'"
done
done_testing
