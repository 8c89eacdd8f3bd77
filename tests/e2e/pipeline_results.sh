# SPDX-License-Identifier: GPL-3.0-or-later
# What is made of a model that was trained in pipeline stages: perplexity, logits, text and published weights,
# the same as without stages.
. tests/support/tap.sh

meshtf-plan model transformer-lm --preset demo --layers 4 --batch 8 --length 16 -o "$work/g.json" >/dev/null
head -c 700 LICENSE >"$work/text.txt" # ten windows and a half: more than one micro-batch, and a rest
wishes="--data LICENSE --steps 3 --perplexity $work/text.txt --generate 24 --prompt The --logits"

search() { # NAME GRAPH OPTION...
    name=$1
    graph=$2
    shift 2
    run meshtf-plan search "$graph" --machine cpu-host --microbatches 4 --precision f64 "$@" -o "$work/$name.json"
    claim "$name is planned" exits 0
}

nats() { sed -n 's/.*perplexity of .*: .*(\([0-9.e+-]*\) nats a token.*/\1/p' "$work/out"; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a - b < 1e-7 * a && b - a < 1e-7 * a) }'; }

search whole "$work/g.json" --mesh rows:1
# Options are split into words on purpose.
# shellcheck disable=SC2086
run meshtf-run "$work/whole.json" $wishes "$work/whole.npy"
claim "without stages" exits 0
nats=$(nats)
tail -n 2 "$work/out" >"$work/said"

same_as_whole() { # NAME RANKS
    # shellcheck disable=SC2086
    run mpirun -n "$2" meshtf-run "$work/$1.json" $wishes "$work/$1.npy"
    claim "$1: perplexity, text and logits on $2 ranks" exits 0
    claim "$1: nats a token are the same" near "$nats" "$(nats)"
    tail -n 2 "$work/out" >"$work/said.$1"
    claim "$1: and the text, token by token" cmp "$work/said" "$work/said.$1"
    claim "$1: and every logit" cmp "$work/whole.npy" "$work/$1.npy"
    claim "$1: none of it is counted as training" [ "$(grep -c 'equal to the byte on every rank' "$work/out")" = 2 ]
}

search two "$work/g.json" --mesh rows:1 --stages 2
same_as_whole two 2
search three "$work/g.json" --mesh rows:1 --stages 3 --schedule zb-h1
same_as_whole three 3
search there-and-back "$work/g.json" --mesh rows:2 --stages 2 --schedule zb-v
same_as_whole there-and-back 4
search interleaved "$work/g.json" --mesh rows:2 --stages 2 --schedule interleaved
same_as_whole interleaved 4

run mpirun -n 2 meshtf-run "$work/two.json" --perplexity "$work/text.txt"
claim "a text alone needs no data" exits 0
run mpirun -n 2 meshtf-run "$work/two.json" --data LICENSE --steps 3 --generate 24 --prompt The --no-cache
tail -n 2 "$work/out" >"$work/said.again"
claim "reading the text again for every token says the same as caches" cmp "$work/said" "$work/said.again"
claim "none of which was said to be missing before" sh -c "! grep -q 'without caches' '$work/said.two'"
run mpirun -n 2 meshtf-run "$work/two.json" --perplexity "$work/missing.txt"
claim "a text that is not there is bad input" exits 2
run mpirun -n 2 meshtf-run "$work/two.json" --data LICENSE --steps 1 --export-hf "$work/out-of-it"
claim "a model of no published kind has no such export" says_error "does not say where published files keep"
run meshtf-plan search layouts/library/graphs/mlp.json --machine cpu-host --mesh rows:1 --stages 2 --microbatches 4 -o "$work/mlp.json"
run mpirun -n 2 meshtf-run "$work/mlp.json" --steps 1 --generate 4
claim "a model of no text generates none" says_error "no operation of this model compares scores with next tokens"
claim "which is bad input" exits 2

# A rank that is killed in the middle of a step, or while it serves, takes the others with it.
# killed RANK RUN_OPTION…: of four, when the run has begun
killed() {
    rank=$1
    shift
    : >"$work/out"
    timeout 60 mpirun -n 4 meshtf-run "$work/interleaved.json" "$@" >"$work/out" 2>"$work/err" </dev/null &
    for _ in $(seq 300); do
        grep -qs "$begun" "$work/out" && break
        sleep 0.1
    done
    mpirun=$(pgrep -P $! -x mpirun)
    process=$(pgrep -P "$mpirun" -x meshtf-run | sed -n "$((rank + 1))p")
    kill -KILL "$process"
    wait $!
    status=$?
    claim "the run ends by itself when rank $rank is killed" exits 137
    claim "  every rank is gone" [ -z "$(pgrep -P "$mpirun" -x meshtf-run)" ]
    claim "  which is one sentence" [ "$(grep -c "^meshtf-run: rank $rank is gone (process $process)" "$work/err")" = 1 ]
}
for rank in 0 2; do
    begun='^step '
    killed "$rank" --data LICENSE --steps 100000
    begun=127.0.0.1
    killed "$rank" --serve 0
done

# An encoder and a decoder translate.
meshtf-plan model transformer --preset tiny -o "$work/pairs.json" >/dev/null
for i in 1 2 3 4 5 6 7 8 9; do printf 'the house %d is here\tla maison %d est ici\n' "$i" "$i"; done >"$work/pairs.tsv"
search translator "$work/pairs.json" --mesh rows:1
run meshtf-run "$work/translator.json" --data "$work/pairs.tsv" --steps 2 --generate 8
sed -n '/ -> /p' "$work/out" >"$work/said"
search translator-cut "$work/pairs.json" --mesh rows:1 --stages 3
run mpirun -n 3 meshtf-run "$work/translator-cut.json" --data "$work/pairs.tsv" --steps 2 --generate 8
sed -n '/ -> /p' "$work/out" >"$work/said.cut"
claim "sources are translated" [ -s "$work/said" ]
claim "and by stages likewise" cmp "$work/said" "$work/said.cut"

# A mean over words that count divides gradients once a step, in the type of sums: also where weights are
# in bfloat16, and what two stages share is added up behind what other gradients are read by.
meshtf-plan model t5 --preset tiny --layers 1 -o "$work/t5.json" >/dev/null
run meshtf-plan search "$work/t5.json" --machine cpu-host --microbatches 2 --precision bf16 --mesh rows:1 --stages 2 -o "$work/t5-cut.json"
claim "an encoder and a decoder are cut in bfloat16" exits 0
meshtf-plan estimate "$work/t5.json" --machine cpu-host --precision bf16 --mesh rows:1 --layout '' -o "$work/t5-whole.json" >/dev/null
meshtf-run "$work/t5-whole.json" --data LICENSE --steps 4 --metrics "$work/t5-whole.jsonl" >/dev/null
run mpirun -n 2 meshtf-run "$work/t5-cut.json" --data LICENSE --steps 4 --metrics "$work/t5-cut.jsonl"
last_loss() { sed -n 's/.*"step":4,.*"loss":\([0-9.]*\).*/\1/p' "$1"; }
claim "with the losses of the whole batch on one processor" awk -v a="$(last_loss "$work/t5-whole.jsonl")" \
    -v b="$(last_loss "$work/t5-cut.jsonl")" 'BEGIN { exit !(a > 1 && a - b < 2e-3 * a && b - a < 2e-3 * a) }'

# Rows go to experts by slots that a stage made before, which do not say how many experts there are.
meshtf-plan model gshard --preset tiny --batch 4 --length 8 -o "$work/gshard.json" >/dev/null
run meshtf-plan search "$work/gshard.json" --machine h100 --devices 2 --stages 2 --microbatches 2 --seconds 1
claim "experts are cut from their slots" exits 0

# A published model: weights out of a pipeline, and into one.
mkdir "$work/llama"
cat >"$work/llama/config.json" <<'CONFIG'
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4,
 "num_key_value_heads": 2, "num_hidden_layers": 4, "vocab_size": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
 "max_position_embeddings": 64, "tie_word_embeddings": true, "hidden_act": "silu"}
CONFIG
meshtf-plan import "$work/llama" --batch 8 --length 16 -o "$work/llama.json" >/dev/null
search llama-whole "$work/llama.json" --mesh rows:1
search llama-two "$work/llama.json" --mesh rows:2 --stages 2 --schedule zb-v
search llama-three "$work/llama.json" --mesh rows:1 --stages 3
run meshtf-plan search "$work/llama.json" --machine cpu-host --microbatches 4 --precision bf16 --mesh rows:2 --stages 2 -o "$work/narrow.json"
claim "llama-two in bfloat16 is planned" exits 0
run mpirun -n 1 meshtf-run "$work/llama-whole.json" --data LICENSE --steps 2 --export-hf "$work/whole" --perplexity "$work/text.txt"
claim "weights of a model without stages" exits 0
nats=$(nats)
run mpirun -n 4 meshtf-run "$work/llama-two.json" --data LICENSE --steps 2 --export-hf "$work/cut" --perplexity "$work/text.txt"
claim "weights come out of a pipeline" exits 0
claim "of the same perplexity" near "$nats" "$(nats)"
run meshtf-run "$work/llama-whole.json" --init "$work/cut" --perplexity "$work/text.txt"
claim "they begin a model without stages" near "$nats" "$(nats)"
run mpirun -n 3 meshtf-run "$work/llama-three.json" --init "$work/cut" --steps 0 --perplexity "$work/text.txt" --export-hf "$work/again"
claim "and another pipeline" near "$nats" "$(nats)"
claim "that writes them as they were, to the byte" cmp "$work/cut/model.safetensors" "$work/again/model.safetensors"

# Its table embeds in the first stage and scores in the last, which keeps it, narrow where the plan is.
run meshtf-run "$work/llama-whole.json" --init "$work/cut" --steps 0 --generate 16 --prompt The --temperature 0.0001
tail -n 2 "$work/out" >"$work/said"
for cut in "3 llama-three" "4 llama-two" "4 narrow"; do
    ranks=${cut% *}
    name=${cut#* }
    run mpirun -n "$ranks" meshtf-run "$work/$name.json" --init "$work/cut" --steps 0 --generate 16 --prompt The --temperature 0.0001
    tail -n 2 "$work/out" >"$work/said.$name"
    claim "$name generates with the weights that were read" cmp "$work/said" "$work/said.$name"
    claim "$name: from caches" sh -c "! grep -q 'without caches' '$work/out'"
done

# Adapters are trained by the stages that have the weights.
meshtf-plan import "$work/llama" --batch 8 --length 16 --lora 4:8 --lora-targets q_proj,v_proj -o "$work/lora.json" >/dev/null
search lora "$work/lora.json" --mesh rows:1 --stages 2 --schedule interleaved
run mpirun -n 2 meshtf-run "$work/lora.json" --data LICENSE --init "$work/cut" --steps 2 --export-hf "$work/merged" --export-adapter "$work/adapter" \
    --perplexity "$work/text.txt"
claim "adapters of a pipeline are tuned and written" exits 0
nats=$(nats)
claim "with their config" [ "$(jq .r "$work/adapter/adapter_config.json")" = 4 ]
run meshtf-run "$work/llama-whole.json" --init "$work/merged" --perplexity "$work/text.txt"
claim "merged, they say the same" near "$nats" "$(nats)"
claim "which other weights do" sh -c "! cmp -s '$work/merged/model.safetensors' '$work/cut/model.safetensors'"
done_testing
