#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Texts through a tokenizer: trained on, gone on with, written out as text.
. tests/support/tap.sh
tokenizers=tests/golden/tokenizers

cat >"$work/config.json" <<END
{"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 64, "vocab_size": 437}
END
run meshtf-plan search "$work" --batch 4 --length 32 --mesh b:2 --machine cpu-host -o "$work/plan.json"
claim "a small model of the tokenizer's vocabulary is planned" exits 0
run mpirun -n 2 meshtf-run "$work/plan.json" --data LICENSE --tokenizer "$tokenizers/gpt2.json" --steps 30 \
    --generate 12 --prompt "The free software"
claim "it is trained on text" exits 0
claim "  and the text it goes on with is text" says "The free software"
run meshtf-run "$work/plan.json" --tokenizer "$work/missing" --data LICENSE --dry-run
run mpirun -n 2 meshtf-run "$work/plan.json" --data LICENSE --tokenizer "$work/config.json" --steps 1
claim "a file that is no tokenizer is bad input" exits 2
claim "  in one sentence that names it" says_error "config.json"
sed 's/"vocab_size": 437/"vocab_size": 300/' "$work/config.json" >"$work/small.json"
run meshtf-plan search "$work/small.json" --batch 4 --length 32 --mesh b:1 --machine cpu-host -o "$work/small"
run meshtf-run "$work/small" --data LICENSE --tokenizer "$tokenizers/gpt2.json" --steps 1
claim "tokens beyond the model's vocabulary are bad input" exits 2
done_testing
