# SPDX-License-Identifier: GPL-3.0-or-later
# --pad: longer dimensions that meshes divide, the same training, and files without the padding.
. tests/support/tap.sh

graph=$work/gpt.json
LC_ALL=C tr -d '\200-\377' <README.md | head -c 3000 >"$work/text"
run meshtf-plan model gpt --preset tiny -o "$graph"

# planned NAME OPTION...: a GPT of 251 letters on two processors, as $work/NAME.json.
planned() {
    name=$1
    shift
    run meshtf-plan search "$graph" --dim vocab=251 --precision f64 --mesh a:2 "$@" -o "$work/$name.json"
    claim "$name: a plan is found" exits 0
}

# trained PLAN FOLDER OPTION...: six steps; losses as $work/losses.
trained() {
    plan=$1 folder=$2
    shift 2
    run mpirun -n 2 meshtf-run "$work/$plan.json" --data "$work/text" --steps 6 --checkpoint "$work/$folder" \
        --checkpoint-every 3 --metrics "$work/metrics" "$@"
    sed 's/.*"loss": *\([-+.e0-9]*\).*/\1/' "$work/metrics" >"$work/losses"
    rm -f "$work/metrics"
}

# The last N losses of the run are those of the plan without padding.
same_losses() {
    tail -n "$1" "$work/plain.losses" | paste - "$work/losses" |
        awk -v n="$1" '{ d = ($1 - $2) / $1; if (d > 1e-10 || d < -1e-10) exit 1 } END { exit NR != n }'
}

planned plain
trained plain plain-run
cp "$work/losses" "$work/plain.losses"
claim "plain: six losses" same_losses 6

planned vocab --pad vocab:128 --even
claim "vocab: what was padded is said" says "vocab padded from 251 to 256"
trained vocab vocab-run
claim "vocab: the training is that without padding" same_losses 6

planned more --pad d_ff:48,heads:3 --pad vocab:100
trained more more-run --verify
claim "more: the training is that without padding" same_losses 6
claim "more: and that of one processor" says "the same training as on one processor"

for pair in plain:vocab vocab:more more:plain; do
    from=${pair%:*} to=${pair#*:}
    rm -f "$work/$from-run/"*06.safetensors
    trained "$to" "$from-run" --resume
    claim "a run of \"$from\" goes on as \"$to\"" same_losses 3
done

run meshtf-plan estimate "$graph" --dim vocab=251 --pad vocab:128 --mesh a:2 --layout vocab:a --even -o "$work/even.json"
claim "estimate pads too, and the shards are even" exits 0
run meshtf-plan export "$work/even.json" --to jax
claim "such a plan can be exported" exits 0

# Norms and products of whole matrices: zeros add nothing to them, and Muon's rate goes by what counts.
for optimizer in lamb muon; do
    graph=$work/$optimizer.json
    run meshtf-plan model gpt --preset tiny --optimizer $optimizer --rate 0.01 -o "$graph"
    planned plain
    trained plain $optimizer-plain
    cp "$work/losses" "$work/plain.losses"
    planned more --pad d_ff:96,heads:3 --pad vocab:100
    claim "$optimizer: what was padded is said" says "d_ff padded"
    trained more $optimizer-more
    claim "$optimizer: the training is that without padding" same_losses 6
done
run meshtf-plan model gpt --preset tiny --optimizer adafactor -o "$graph"
run meshtf-plan search "$graph" --mesh a:2 --pad vocab:100
claim "Adafactor takes means over padding" says_error "adafactor takes means over whole variables"
graph=$work/gpt.json

for wrong in batch:48 d_model:48 vocab:0 vocab nothing:8 d_kv:12; do
    run meshtf-plan search "$graph" --mesh a:2 --pad $wrong
    claim "--pad $wrong is bad input" bad_input
done
claim "the sentence names the operation" says_error "would change its result"
done_testing
