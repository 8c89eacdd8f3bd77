# SPDX-License-Identifier: GPL-3.0-or-later
# README's way from a config.json to a page of its plan and to text, as it is written there, with a tiny model.
. tests/support/tap.sh
tokenizer=$PWD/tests/golden/tokenizers/gpt2.json
awk '/^From a .config.json. to a page/ { on = 1 } on && /^```$/ { exit } on && /^(meshtf-|mpirun)/' README.md >"$work/commands"
claim "README has three commands and two more" [ "$(grep -c . "$work/commands")" = 5 ]

cd "$work" || exit 1
mkdir llama
echo '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "vocab_size": 437, "max_position_embeddings": 512}' >llama/config.json
cp "$tokenizer" llama/tokenizer.json
meshtf-plan search llama/ --batch 2 --length 16 --devices 1 --machine cpu-host -o first.json >/dev/null
meshtf-run first.json --steps 0 --export-hf llama >/dev/null
claim "a model is there to try them with" test -s llama/model.safetensors
while read -r command; do
    run sh -c "$command"
    claim "$command" exits 0
done <commands
claim "there is a page" test -s page/index.html
claim "there is a text" grep -q 'The quick' "$work/out"
done_testing
