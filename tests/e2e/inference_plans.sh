# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 300
# search --infer: printed answers of the literature on a machine without losses, what fits on a real one,
# and what is no question to ask.
. tests/support/tap.sh

# llama NAME HIDDEN INNER LAYERS HEADS KEY_HEADS VOCABULARY: a config.json
llama() {
    mkdir -p "$work/$1"
    printf '{"model_type": "llama", "hidden_size": %s, "intermediate_size": %s, "num_hidden_layers": %s,
 "num_attention_heads": %s, "num_key_value_heads": %s, "vocab_size": %s, "max_position_embeddings": 4096,
 "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": false}' \
        "$2" "$3" "$4" "$5" "$6" "$7" >"$work/$1/config.json"
}
llama llama2-13b 5120 13824 40 40 40 32000
llama llama3-70b 8192 28672 80 64 8 128256
llama tiny 64 128 2 4 2 256

# number KEY: a top-level number of the JSON that was printed
number() {
    sed -n "s/^  \"$1\": \([0-9.e+-]*\),*\$/\1/p" "$work/out" | head -n 1
}

# near VALUE EXPECTED SHARE
near() {
    awk -v a="$1" -v b="$2" -v s="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d <= s * b) }'
}

# A device of 8.2e11 B/s and 1.97e14 flop/s whose kernels lose nothing, links that take no time.
cat >"$work/ideal.json" <<'END'
{"meshtf_machine": 1, "name": "ideal-v5e",
 "levels": [{"name": "all", "size": 64, "bandwidth": 1e18, "latency": 0}],
 "device": {"flops": {"bf16": 1.97e14, "f32": 1.97e14}, "memory_bytes": 4e15, "memory_bandwidth": 8.2e11},
 "kernels": {"launch": 0, "units": 1, "products": {"bf16": 1}, "tiles": [[1, 1, 1, 0]],
             "attention": [[128, 1, 1]], "half_length": 0, "half_bytes": 0,
             "sweeps": {"elementwise": 1, "rows": 1, "update": 1, "gather": 1}},
 "sources": {"device": "jax-ml/scaling-book: inference.md"}}
END

# Step times of LLaMA2-13B on 8 of them with 8192 tokens an example: batch seconds (scaling-book, inference.md)
while read -r batch seconds; do
    run meshtf-plan search "$work/llama2-13b" --infer decode --batch "$batch" --context 8192 \
        --machine "$work/ideal.json" --devices 8 --precision bf16 --json
    claim "a step of $batch examples is found" exits 0
    claim "it takes $seconds s within 1 %" near "$(number step_seconds)" "$seconds" 0.01
    claim "a token an example comes out of it" near "$(number tokens_per_second)" \
        "$(awk -v b="$batch" -v s="$(number step_seconds)" 'BEGIN { print b / s }')" 1e-4
done <<'END'
1 0.00498
16 0.02030
240 0.24909
END

# DeepSeek-V2-Lite remembers 512 features and a turned key of 64 for all heads: of 27 layers and 240 examples 8192 tokens, in two
# bytes. A step reads that once, and 15 706 484 224 weights but for the 102400 x 2048 of its table: 92.1 GB; the rest are activations.
mkdir "$work/v2-lite"
echo '{"model_type": "deepseek_v2"}' >"$work/v2-lite/config.json"
for phase in decode prefill; do
    run meshtf-plan search "$work/v2-lite" --infer $phase --batch 240 --context 8192 --machine "$work/ideal.json" --devices 1 \
        --precision bf16 --json
    claim "$phase: 576 numbers a token and layer are remembered" says "\"cache_bytes\": $((27 * 240 * 8192 * 576 * 2)),"
    [ $phase = prefill ] ||
        claim "decode: a step reads them once" near "$(number step_seconds)" 0.1147 0.025
done

# Weights of half the bytes are read in half the time: 6.71 GB of caches and 12.85 GB of weights that a step reads at 6.56e12 B/s.
run meshtf-plan search "$work/llama2-13b" --infer decode --batch 1 --context 8192 --weights int8 \
    --machine "$work/ideal.json" --devices 8 --precision bf16 --json
claim "weights in eight bits: 2.98 ms within 1 %" near "$(number step_seconds)" 0.00298 0.01

# In two stages of four devices each batch is read through by half as many at a time: 9.96 ms, twice 4.98; of its 40 layers 20 lie in
# each stage, so that with a batch in each the next one's tokens come after half of that.
run meshtf-plan search "$work/llama2-13b" --infer decode --batch 1 --context 8192 \
    --machine "$work/ideal.json" --devices 8 --stages 2 --precision bf16 --json
claim "two stages for one batch: 9.96 ms within 1 %" near "$(number step_seconds)" 0.00996 0.01
claim "the slowest stage has half of it, within 5 %" near "$(number slowest_seconds)" 0.00498 0.05
claim "tokens of one batch" near "$(number tokens_per_second)" "$(awk -v s="$(number step_seconds)" 'BEGIN { print 1 / s }')" 1e-4
claim "and of a batch in each stage" near "$(number full_tokens_per_second)" "$(awk -v s="$(number slowest_seconds)" 'BEGIN { print 1 / s }')" 1e-4
claim "stages say how they split, what fits, and how far predictions of inference were off" jq -e '.predicted |
    (.parallelism | startswith("pipeline parallel 2")) and .fits and .items_per_step == 1 and (.doubt.text | test("inference"))' "$work/out"

# Of one device: 256x64 embeddings and 5 norms of 64 in float32; in int8 two layers of 64x64 + 2 64x32 + 64x64 + 3 64x128 and a
# head of 256x64; in float32 the scales of their 512 and 256 output channels. In all 162 048 bytes.
run meshtf-plan search "$work/tiny" --infer decode --context 30 --generate 2 --weights int8 --machine cpu-host --devices 1 --json \
    -o "$work/int8.json"
claim "bytes of weights in int8 are those of weights and scales" test "$(number weight_bytes)" = 162048
run meshtf-run "$work/int8.json" --steps 0 --generate 8 --prompt "int8" --temperature 0.0001
said=$(tail -n 1 "$work/out")
claim "such a plan generates" exits 0
run meshtf-plan search "$work/tiny" --infer decode --context 30 --generate 2 --weights int8 --machine cpu-host --devices 4 -o "$work/int8.json"
claim "people are told first whether it fits, and what bounds it" says "fits           yes"
run mpirun -n 4 meshtf-run "$work/int8.json" --steps 0 --generate 8 --prompt "int8" --temperature 0.0001
claim "on four ranks the same" test "$(tail -n 1 "$work/out")" = "$said"
run meshtf-plan search "$work/tiny" --infer decode --weights int4 --devices 1
claim "--weights has one word" says_error "must be int8"
run meshtf-plan search "$work/tiny" --weights int8 --devices 1
claim "--weights without --infer is bad input" bad_input

# Longest contexts of PaLM 540B's caches in 30 % of 32 GiB (arXiv 2211.05102, table 1): 118 layers, batch 128.
context_of() {
    run meshtf-plan search "$work/$1" --infer decode --batch 128 --context 64 --machine "$work/ideal.json" \
        --mesh all:64 --layouts rule --cache-memory 9.6GiB --precision bf16 --json --pin "$2:all" --forbid memory_length:all
}
printf '{"model_type": "llama", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 118,
 "num_attention_heads": 64, "num_key_value_heads": 64, "head_dim": 128, "vocab_size": 256,
 "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "hidden_act": "silu"}' >"$work/tiny/config.json"
context_of tiny heads
claim "caches of 64 heads of 128, split over heads, hold 1333" near "$(number max_context)" 1333 0.01
sed -i 's/"num_key_value_heads": 64, "head_dim": 128/"num_key_value_heads": 1, "head_dim": 256/' "$work/tiny/config.json"
context_of tiny group
claim "one head of 256 that all keep holds 667" near "$(number max_context)" 666.6 0.01
context_of tiny batch
claim "the same split over examples holds 42 660" near "$(number max_context)" 42660 0.01

# Where weights stay and activations travel, and where weights are gathered (arXiv 2211.05102, 3.2): prefill of 16 texts on 4x4
# devices whose links alone take time, with no memory to spare for copies of weights. Of eight layers, each four matrices
# [E, E] and three [E, F], T tokens travel at 2 bytes an element and 1e9 B/s, 1/16 of them stand on each device:
#     stationary      activations over both axes, twice a block    60 T E / 16
#     gathered by x   weights over one axis, a quarter each        12 (E E + T E) / 16 and 9 E F / 16
#     gathered        weights over both axes                       60 E E / 16 and 45 E F / 16
# The search finds which by itself: each is the least of the three where it is found. Of few tokens it finds layouts with
# fewer exchanges than any of the three: within 17.9 MiB four fifths of those of the first.
mkdir "$work/crossing"
printf '{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8,
 "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 256, "max_position_embeddings": 4096,
 "rms_norm_eps": 1e-5, "hidden_act": "silu"}' >"$work/crossing/config.json"
sed 's/"bandwidth": 1e18/"bandwidth": 1e9/; s/1.97e14/1e12/g; s/8.2e11/1e18/' "$work/ideal.json" >"$work/links.json"
communication() {
    grep -o '"communication_seconds": [0-9.e-]*' "$work/out" | head -n 1 | sed 's/.*: //'
}
while read -r length memory number share name; do
    run meshtf-plan search "$work/crossing" --infer prefill --batch 16 --context "$length" --machine "$work/links.json" \
        --mesh 'x:4;y:4' --memory "$memory" --precision bf16 --gap 0.02 --json
    seconds=$(awk -v T=$((16 * length)) -v n="$number" -v share="$share" 'BEGIN {
        E = 1024; F = 4096; unit = 8 * 2 / 1e9 / 16
        form[1] = 60 * T * E * unit
        form[2] = (12 * (E * E + T * E) + 9 * E * F) * unit
        form[3] = (60 * E * E + 45 * E * F) * unit
        for (i = 1; i <= 3; i++) if (form[i] < form[n]) exit 1
        printf "%.9g\n", share * form[n] }')
    claim "texts of $length: weights $name, $seconds s of exchanges within 2 %" near "$(communication)" "${seconds:-0}" 0.02
done <<'END'
16 17.9MiB 1 0.8 stationary
256 34MiB 2 1 gathered by one axis
4096 236MiB 3 1 gathered
END

# Memory decides: 70B in 16 bits is 141 GB (TensorRT-LLM 0.17 prints 531, 2811 and 5242 tokens/s for 2, 4, 8 A100).
run meshtf-plan search "$work/llama3-70b" --infer decode --batch 8 --context 2176 --machine a100 --devices 1 --precision bf16
claim "70B in 16 bits does not fit one A100" exits 3
claim "the sentence says what would do" says_error "the smallest limit found that would do"
room=0
for devices in 2 4; do
    before=$room
    run meshtf-plan search "$work/llama3-70b" --infer decode --batch 8 --context 2176 --machine a100 \
        --devices $devices --json
    claim "it fits $devices" exits 0
    claim "in the machine's own precision" says '"precision": "bf16"'
    room=$(number max_context)
done
claim "four have more than nine times the room of two" test "$room" -gt $((9 * before))

run meshtf-plan model transformer-lm --preset demo -o "$work/demo.json"
run meshtf-plan search "$work/demo.json" --infer serve --batch 4 --context 64 --generate 32 --machine cpu-host \
    --devices 2 --json -o "$work/serve.json"
claim "a plan of serving has both phases" grep -q '"prefill"' "$work/out"
# different KEY: how many values it has in the phases that were printed.
different() {
    sed -n "s/.*\"$1\": \([0-9]*\),*\$/\1/p" "$work/out" | sort -u | wc -l
}
claim "whose weights are kept once" test "$(different weight_bytes)" = 1
claim "and caches" test "$(different cache_bytes)" = 1
serving=$(number tokens_per_second)
# phase NAME: seconds of a phase's step among both.
phase() {
    sed -n "/^  \"$1\"/,\$s/^    \"step_seconds\": \([0-9.e-]*\),/\1/p" "$work/out" | head -n 1
}
prefill=$(phase prefill)
decode=$(phase decode)
alone() {
    run meshtf-plan search "$work/demo.json" --infer "$1" --batch 4 --context 64 --generate 32 --machine cpu-host --devices 2 --json
    number step_seconds
}
claim "neither is faster than alone, and one is as fast" awk "BEGIN {
    a = $prefill / $(alone prefill); b = $decode / $(alone decode)
    exit !(a > 1 - 1e-9 && b > 1 - 1e-9 && (a < 1 + 1e-9 || b < 1 + 1e-9)) }"
claim "all tokens take a prompt's step and a decode step each" awk "BEGIN { t = 4 * 32 / ($prefill + 32 * $decode); exit !($serving >= t && $serving < 1.2 * t) }"
run meshtf-plan report "$work/serve.json" -o "$work/report"
claim "its decode step can be drawn" exits 0

# Prompts read on devices of their own. Eight layers keep keys and values of 1024 numbers of two bytes: what 16 texts of 256 tokens
# hand over, 134 217 728 bytes, takes 0.134 s from one device to another at 1e9 B/s.
divided() {
    run meshtf-plan search "$work/crossing" --infer serve --batch 16 --context 256 --generate 64 --machine "$work/$1.json" \
        --devices "$2" --prefill-devices "$3" --layouts rule --precision bf16 --json
}
divided links 2 1
claim "prompts may be read elsewhere" exits 0
claim "what is handed over is what caches hold" near "$(number handover_bytes)" 134217728 1e-9
claim "at the link's speed" near "$(number handover_seconds)" 0.134217728 1e-6
sed 's/"bandwidth": 1e9/"bandwidth": 1e6/' "$work/links.json" >"$work/slow.json"
divided slow 2 1
claim "a slow link decides alone: 16 texts of 64 tokens in 134.2 s" near "$(number tokens_per_second)" 7.6294 1e-3
best=0
for count in 1 2 3 4 5 6 7; do
    divided ideal 8 $count
    claim "$count of 8 devices read prompts" test "$(number prefill_devices)" = $count
    best=$(awk -v a="$best" -v b="$(number tokens_per_second)" 'BEGIN { print (a > b ? a : b) }')
done
divided ideal 8 auto
claim "auto finds the best of them" near "$(number tokens_per_second)" "$best" 1e-5
claim "and says what all devices together would do" grep -q '"together_tokens_per_second": [1-9]' "$work/out"
divided ideal 8 8
claim "somebody must generate" says_error 'must be auto or 1 to 7'
divided ideal 8 '1 or 2'
claim "a number or auto" bad_input
run meshtf-plan search "$work/crossing" --infer decode --devices 8 --prefill-devices 2 --machine "$work/ideal.json"
claim "only serving has both" says_error "of --infer serve"
run meshtf-plan search "$work/crossing" --devices 8 --prefill-devices 2
claim "and only inference" says_error "goes with --infer only"
run meshtf-plan search "$work/llama3-70b" --infer serve --batch 8 --devices 2 --prefill-devices auto --machine a100 --precision bf16
claim "where neither side holds the model nothing fits" exits 3

# Stages say what one device says: the same text, and the scores that it was drawn from.
mkdir "$work/small"
echo '{"model_type":"llama","hidden_size":64,"intermediate_size":160,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":256}' \
    >"$work/small/config.json"
said() { # NAME RANKS SEARCH_OPTION…
    name=$1
    ranks=$2
    shift 2
    run meshtf-plan search "$work/small" --infer decode --context 24 --generate 8 --machine cpu-host --precision f64 "$@" -o "$work/$name.json"
    claim "$name is planned" exits 0
    run mpirun -n "$ranks" meshtf-run "$work/$name.json" --steps 0 --generate 8 --prompt stages --temperature 0.0001 --logits "$work/$name.npy"
    claim "$name generates" exits 0
    tail -n 1 "$work/out" >"$work/said.$name"
}
said whole 1 --devices 1
for cut in "2 2" "4 2" "3 3"; do
    said "cut-${cut% *}" "${cut% *}" --devices "${cut% *}" --stages "${cut#* }"
    claim "${cut#* } stages on ${cut% *} ranks say the same" cmp "$work/said.whole" "$work/said.cut-${cut% *}"
    claim "with the same scores" cmp "$work/whole.npy" "$work/cut-${cut% *}.npy"
done
run mpirun -n 2 meshtf-run "$work/cut-2.json" --steps 3
claim "such a plan trains nothing" says_error "has nothing to train"
sed 's/0F0\\n1F0/0F0,0B0\\n1F0,1B0/' "$work/cut-2.json" >"$work/backward.json"
run meshtf-plan check "$work/backward.json"
claim "its order has no backward passes" says_error "the order has backward passes, but"
run meshtf-plan search "$work/small" --infer decode --devices 3 --stages 2
claim "stages divide the devices" says_error "do not divide 3 devices"
run meshtf-plan search "$work/small" --infer serve --devices 4 --stages 2 --prefill-devices 2
claim "and do both phases" says_error "does not go with --stages"
# Links between two hosts take a millisecond: with room for half of the weights of a host, a host each has a stage.
cat >"$work/hosts.json" <<'END'
{"meshtf_machine": 1, "name": "two hosts", "levels": [{"name": "hosts", "size": 2, "bandwidth": 1e9, "latency": 1e-3},
                                                      {"name": "host", "size": 2, "bandwidth": 5e9, "latency": 1e-6}],
 "device": {"flops": {"f32": 8e10}, "memory_bytes": 4294967296, "memory_bandwidth": 1e9}, "derates": {"links": 1, "flops": 1, "memory": 1}}
END
run meshtf-plan search "$work/small" --infer decode --context 24 --machine "$work/hosts.json" --devices 4 --memory 400KiB --stages auto --json -o "$work/any.json"
claim "the number of stages is searched for" exits 0
claim "it is that of most tokens" [ "$(jq '(.tried | max_by(.tokens_per_second)) | .stages == 2' "$work/out")" = true ]
jq -r '.tried[] | "\(.stages) \(.tokens_per_second)"' "$work/out" >"$work/tried"
claim "the plan has them" [ "$(jq '.stages | length' "$work/any.json")" = 2 ]
run meshtf-plan report "$work/any.json" -o "$work/stages"
claim "its page says how often batches come out" grep -q "from batch to batch with one in each stage" "$work/stages/index.html"
while read -r stages tokens; do
    run meshtf-plan search "$work/small" --infer decode --context 24 --machine "$work/hosts.json" --devices 4 --memory 400KiB --stages "$stages" --json
    claim "$stages asked for give as many" [ "$(jq .tokens_per_second "$work/out")" = "$tokens" ]
done <"$work/tried"
run meshtf-plan search "$work/small" --infer decode --context 24 --machine "$work/hosts.json" --devices 4 --stages auto
claim "where each host has room for all, none is cut" says "layout free"
claim "what stages give is said" says "               in 2 stages"
run meshtf-plan search "$work/small" --infer decode --mesh rows:2 --stages auto
claim "a mesh is that of a number of stages" says_error "--stages auto needs --devices"
run meshtf-plan search "$work/small" --infer serve --devices 4 --stages auto --memory 20KiB
claim "what fits in no number of stages is status 3" exits 3
run meshtf-plan search "$work/small" --infer decode --devices 2 --chunks 2
claim "stages that generate have one part" says_error "--chunks does not go with --infer"

run meshtf-plan search "$work/demo.json" --infer decode --batch 4 --context 100000 --devices 2
claim "learned positions end" bad_input
claim "it is said where" says_error "positions"
run meshtf-plan search "$work/demo.json" --infer later --devices 2
claim "--infer has four words" says_error "must be prefill, decode, serve or forward"
run meshtf-plan search "$work/demo.json" --context 5 --devices 2
claim "--context without --infer is bad input" bad_input
run meshtf-plan search "$work/demo.json" --infer decode --microbatches 2 --devices 2
claim "micro-batches do not go with it" bad_input
run meshtf-plan search mlp --infer decode --devices 2
claim "what reads no tokens does not generate" bad_input

done_testing
