#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# search --infer on TPU v4 beside what Pope et al. measured of PaLM (Efficiently Scaling Transformer Inference,
# arXiv 2211.05102, tables 2 and 3): free layouts, found by the search. PaLM's blocks add attention and feed-forward to
# the same input; here they follow one another. Writes tests/bench/palm.txt.
. tests/bench/bench.sh

# model NAME HIDDEN INNER LAYERS HEADS: gated, one head of keys and values of width 256; the large one's 48 heads filled up
# to 64, as there
model() {
    mkdir -p "$work/$1"
    printf '{"model_type": "llama", "hidden_size": %s, "intermediate_size": %s, "num_hidden_layers": %s,
 "num_attention_heads": %s, "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 256000,
 "max_position_embeddings": 8192, "tie_word_embeddings": true}' "$2" "$3" "$4" "$5" >"$work/$1/config.json"
}
model palm-540b 18432 73728 118 64
model palm-62b 8192 32768 64 32

# Seconds of a prompt of 2048 tokens, and of one of 64 tokens behind it.
{
    echo "# $(date -u +%Y-%m-%d), any machine: tests/bench/bench_palm.sh (milliseconds of a prompt of 2048 tokens or of a token; measured: Pope et al., TPU v4)"
    printf 'model\tchips\tbatch\tphase\tweights\tpredicted\tmeasured\tratio\n'
    while read -r name chips batch phase weights measured; do
        set -- --infer "$phase" --batch "$batch" --context 2048 --machine tpu-v4 --devices "$chips" --precision bf16 --gap 0.02
        [ "$phase" = prefill ] || set -- "$@" --generate 64
        [ "$weights" = bf16 ] || set -- "$@" --weights "$weights"
        seconds=$(meshtf-plan search "$work/$name" "$@" --json 2>/dev/null |
            sed -n 's/^  "step_seconds": \([0-9.e+-]*\),*$/\1/p' | head -n 1)
        awk -v OFS='\t' -v n="$name" -v c="$chips" -v b="$batch" -v p="$phase" -v w="$weights" -v s="$seconds" -v m="$measured" \
            'BEGIN { print n, c, b, p, w, sprintf("%.1f", 1e3 * s), m, sprintf("%.2f", 1e3 * s / m) }'
    done <<'END'
palm-540b 64 1 prefill int8 290
palm-540b 64 64 decode int8 28.5
palm-540b 64 64 decode bf16 36.9
palm-540b 64 512 prefill bf16 85200
palm-540b 64 512 decode bf16 93.8
palm-62b 16 1 prefill int8 160
palm-62b 16 32 decode int8 11.4
palm-62b 32 512 prefill bf16 20200
palm-62b 8 512 decode bf16 79.7
END
} >"$rows.new"
keep
