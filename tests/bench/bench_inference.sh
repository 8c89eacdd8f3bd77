#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# search --infer serve beside TensorRT-LLM 0.17's throughput of Llama 3.1 8B and 70B on A100 (float16):
# tensor parallelism as there, as many examples as memory holds. Writes tests/bench/inference.txt.
. tests/bench/bench.sh
table=../shared/data/measured/trtllm_throughput.tsv
[ -e "$table" ] || skip "$table is not there"

# model NAME HIDDEN INNER LAYERS HEADS
model() {
    mkdir -p "$work/$1"
    printf '{"model_type": "llama", "hidden_size": %s, "intermediate_size": %s, "num_hidden_layers": %s,
 "num_attention_heads": %s, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
 "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": false}' "$2" "$3" "$4" "$5" >"$work/$1/config.json"
}
model llama3.1-8b 4096 14336 32 32
model llama3.1-70b 8192 28672 80 64

# number KEY: of the JSON on standard input
number() {
    sed -n "s/^  \"$1\": \([0-9.e+-]*\),*\$/\1/p" | head -n 1
}

# plan KIND MODEL BATCH PROMPT TOKENS RANKS
plan() {
    meshtf-plan search "$work/$2" --infer "$1" --batch "$3" --context "$4" --generate "$5" --machine a100 --mesh "all:$6" \
        --layouts rule --pin heads:all --pin d_ff:all --pin vocab:all --precision bf16 --json 2>/dev/null
}

{
    echo "# $(date -u +%Y-%m-%d), any machine: tests/bench/bench_inference.sh (tokens/s; measured: TensorRT-LLM 0.17, A100 float16)"
    printf 'model\ttp\tprompt\ttokens\texamples\tpredicted\tmeasured\n'
    grep -v '^#' "$table" | tail -n +2 | while IFS="$(printf '\t')" read -r name tp isl osl h200 h100 a100; do
        : "$h200" "$h100"
        [ -n "$a100" ] || continue
        room=$(plan decode "$name" 1 "$isl" "$osl" "$tp" | number max_context)
        batch=$(((${room:-0} * 9 / 10) / (isl + osl)))
        [ "$batch" -le 2048 ] || batch=2048
        found=
        while [ -z "$found" ] && [ "$batch" -gt 0 ]; do
            found=$(plan serve "$name" "$batch" "$isl" "$osl" "$tp" | number tokens_per_second)
            [ -n "$found" ] || batch=$((batch * 3 / 4))
        done
        printf '%s\t%s\t%s\t%s\t%s\t%.0f\t%s\n' "$name" "$tp" "$isl" "$osl" "$batch" "${found:-0}" "$a100"
    done
} >"$rows.new"
keep
