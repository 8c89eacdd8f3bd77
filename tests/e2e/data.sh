# SPDX-License-Identifier: GPL-3.0-or-later
# Training on files of every kind, the loss of held out data, and text from what was trained.
. tests/support/tap.sh

own_lines() {
    grep -c '^meshtf-run: ' "$work/err"
}

refuses() {
    exits 2 && [ "$(own_lines)" = 1 ]
}

# bytes NUMBER...: those bytes.
bytes() {
    for byte in "$@"; do
        # shellcheck disable=SC2059
        printf "$(printf '\\%03o' "$byte")"
    done
}

# Images of 4 pixels in 4 classes, which is the place of the one bright pixel; 200 of them.
make_images() {
    bytes 0 0 8 3 0 0 0 200 0 0 0 2 0 0 0 2 >"$work/images"
    bytes 0 0 8 1 0 0 0 200 >"$work/labels"
    for i in $(seq 50); do
        bytes 255 "$i" 0 0 0 250 "$i" 0 "$i" 0 255 0 0 0 "$i" 251 >>"$work/images"
        bytes 0 1 2 3 >>"$work/labels"
    done
    gzip -k "$work/images"
}

cat >"$work/classes.json" <<'GRAPH'
{"meshtf_graph": 1, "name": "classes",
 "dimensions": {"batch": 16, "pixels": 4, "classes": 4},
 "inputs": [{"name": "x", "dims": ["batch", "pixels"], "feed": "features"},
            {"name": "y", "dims": ["batch"], "dtype": "int32", "feed": "labels"}],
 "variables": [{"name": "w", "dims": ["pixels", "classes"], "init": {"normal": 0.1}}],
 "operations": [
  {"name": "scores", "op": "einsum", "inputs": ["x", "w"], "dims": ["batch", "classes"]},
  {"name": "losses", "op": "softmax_cross_entropy", "inputs": ["scores", "y"], "dims": ["batch"]},
  {"name": "loss", "op": "reduce_mean", "inputs": ["losses"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "adam", "rate": 0.05}}
GRAPH

make_images
meshtf-plan search "$work/classes.json" --mesh 'all:2' -o "$work/classes-plan.json" >"$work/out" 2>"$work/err"
run mpirun -n 2 meshtf-run "$work/classes-plan.json" --data "$work/images.gz" --data "$work/labels" --steps 100 \
    --eval-every 50 --metrics "$work/metrics.jsonl"
claim "images in IDX files, packed or not, are trained on" exits 0
claim "there is a loss of held out data every so many steps" test "$(grep -c held_out_loss "$work/metrics.jsonl")" = 2
claim "which falls as the classes are learned" awk -v loss="$(sed -n '$s/.*"held_out_loss":\([^,]*\),.*/\1/p' \
    "$work/metrics.jsonl")" 'BEGIN { exit !(loss > 0 && loss < 0.7) }'
claim "the last line says it" says "held out data loses 0."
run mpirun -n 2 meshtf-run "$work/classes-plan.json" --data "$work/images" --data "$work/labels" --steps 100 \
    --held-out "$work/images" --held-out "$work/labels" --eval-every 100
claim "other files may be held out" exits 0
run mpirun -n 2 meshtf-run "$work/classes-plan.json" --data "$work/images" --steps 2
claim "images without labels are refused" refuses
claim "it says what is missing" says_error "no file holds labels"
head -c 500 "$work/images" >"$work/cut"
run mpirun -n 2 meshtf-run "$work/classes-plan.json" --data "$work/cut" --data "$work/labels" --steps 2
claim "a file cut short is refused" refuses
claim "it says so" says_error "it is cut short"
run mpirun -n 2 meshtf-run "$work/classes-plan.json" --data "$work/images" --data "$work/labels" --steps 2 --generate 5
claim "no text is wanted of a model of images" refuses

# A language model on tokens of two bytes in two shards, named by a pattern.
meshtf-plan model gpt --layers 1 --batch 4 --length 16 --d-model 32 --d-ff 64 --heads 2 --d-kv 16 --vocab 300 \
    --dropout 0.2 -o "$work/gpt.json" >/dev/null
meshtf-plan search "$work/gpt.json" --mesh 'all:2' -o "$work/gpt-plan.json" >"$work/out" 2>"$work/err"
for shard in 1 2; do
    for i in $(seq 300); do
        bytes $((i % 7)) 1
    done >"$work/shard-$shard.bin"
done
run mpirun -n 2 meshtf-run "$work/gpt-plan.json" --data "$work/shard-*.bin" --steps 60 --eval-every 60 --generate 8 --temperature 0.01
claim "token files are trained on" exits 0
claim "knowing nothing costs the logarithm of the vocabulary" says "knowing nothing ln 300 = 5.7038"
claim "ids are written where there are more than bytes" grep -qE '^25[6-9]( 2[56][0-9])+$' "$work/out"
run mpirun -n 2 meshtf-run "$work/gpt-plan.json" --data "$work/shard-*.bin" --steps 2 --generate 8 --prompt text
claim "a prompt of bytes is refused where ids are not bytes" refuses
run mpirun -n 2 meshtf-run "$work/gpt-plan.json" --data "$work/shard-*.bin" --steps 2 --held-out 0 --eval-every 1
claim "held out data is wanted where it is to be evaluated" refuses

# held_out_loss OPTIONS...: of that model before it has learned anything, on two ranks.
held_out_loss() {
    meshtf-plan model gpt --layers 1 --batch 4 --length 16 --d-model 32 --d-ff 64 --heads 2 --d-kv 16 --vocab 300 \
        --rate 1e-30 --dropout "$1" -o "$work/gpt.json" >/dev/null
    meshtf-plan search "$work/gpt.json" --mesh 'all:2' --microbatches "$2" -o "$work/gpt-plan.json" >/dev/null 2>&1
    run mpirun -n 2 meshtf-run "$work/gpt-plan.json" --data "$work/shard-*.bin" --steps 1 --eval-every 1 --metrics "$work/one.jsonl"
    sed 's/.*"held_out_loss":\([^,]*\),.*/\1/' "$work/one.jsonl"
}
plain=$(held_out_loss 0 1)
claim "nothing is dropped when held out data is evaluated" test "$(held_out_loss 0.4 1)" = "$plain"
claim "micro-batches add up to the same loss" awk -v a="$(held_out_loss 0.4 2)" -v b="$plain" \
    'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-10) }'

run mpirun -n 2 meshtf-run "$work/gpt-plan.json" --data "$work/shard-*.bin" --steps 3 --trace 2:3 --trace-file "$work/trace.json"
claim "steps can be traced" exits 0
claim "the run says where the trace is" says "the trace of steps 2:3 is in $work/trace.json"
claim "each rank has a row" test "$(grep -c '"name":"thread_name"' "$work/trace.json")" = 2
run mpirun -n 2 meshtf-run "$work/gpt-plan.json" --data "$work/shard-*.bin" --steps 3 --trace 3:2
claim "a trace that ends before it begins is refused" refuses
run meshtf-run "$work/gpt-plan.json" --steps 3 --trace 4
claim "and one of no step" bad_input
run meshtf-run "$work/gpt-plan.json" --steps 3 --logits "$work/absent/logits.npy"
claim "a file that cannot be written is refused before the training" says_error "absent: No such file"

# Text: the same letters whatever the layout.
meshtf-plan model transformer-lm --preset demo --layers 2 --batch 4 --length 32 --d-model 64 --d-ff 128 --heads 2 \
    --d-kv 32 -o "$work/text.json" >/dev/null
for ranks in 1 2 3; do
    meshtf-plan search "$work/text.json" --mesh "all:$ranks" -o "$work/text-$ranks.json" >/dev/null 2>&1
    run mpirun -n $ranks meshtf-run "$work/text-$ranks.json" --data LICENSE --steps 30 --generate 60 --prompt 'The GNU'
    claim "$ranks rank(s) go on with a text" exits 0
    sed -n '/^The GNU/,$p' "$work/out" >"$work/said-$ranks"
done
claim "of more than the prompt" test "$(wc -c <"$work/said-1")" -ge 67
claim "two ranks say what one says" cmp -s "$work/said-1" "$work/said-2"
claim "and so do three" cmp -s "$work/said-1" "$work/said-3"

done_testing
