# SPDX-License-Identifier: GPL-3.0-or-later
# meshtf-run --perplexity scores every token of a text but the first, on any number of ranks alike.
. tests/support/tap.sh

# The demo's Transformer without a step's effect: windows of 32 bytes, 4 in a batch.
meshtf-plan model transformer-lm --preset demo --layers 2 --batch 4 --length 32 --rate 1e-30 -o "$work/g.json" >/dev/null
head -c 1281 LICENSE >"$work/whole.txt" # 40 windows and the byte behind them: ten whole batches
head -c 1300 LICENSE >"$work/rest.txt"

plan() {
    meshtf-plan estimate "$work/g.json" --mesh "$1" --layout "$2" --machine cpu-host -o "$work/p.json" >/dev/null
}

# nats FILE: what the last run says of it, nats a token
nats() {
    sed -n "s|.*perplexity of $work/$1: .*(\([0-9.e+-]*\) nats a token.*|\1|p" "$work/out"
}

# near A B: equal to one in 10^5
near() {
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a - b < 1e-5 * a && b - a < 1e-5 * a) }'
}

plan 'rows:1' ''
run meshtf-run "$work/p.json" --data LICENSE --held-out "$work/whole.txt" --steps 1 --eval-every 1 --eval-batches 10 \
    --metrics "$work/metrics"
claim "the loss of the text's batches is computed" exits 0
loss=$(jq .held_out_loss "$work/metrics")
run meshtf-run "$work/p.json" --perplexity "$work/whole.txt"
claim "perplexity needs no data but the text" exits 0
claim "nats a token are that loss" near "$(nats whole.txt)" "$loss"
claim "every token but the first is scored" says "1280 tokens"
said=$(sed -n 's|.*whole.txt: \([0-9.]*\) (.*|\1|p' "$work/out")
claim "perplexity is e to that power" near "$said" "$(awk -v n="$(nats whole.txt)" 'BEGIN { printf "%.9g", exp(n) }')"
run meshtf-run "$work/p.json" --perplexity "$work/rest.txt"
claim "what is left of the text is scored, too" says "1299 tokens"
rest=$(nats rest.txt)

while read -r ranks mesh layout; do
    plan "$mesh" "$layout"
    run mpirun -n "$ranks" meshtf-run "$work/p.json" --perplexity "$work/rest.txt"
    claim "$ranks ranks, $layout: the same" near "$(nats rest.txt)" "$rest"
done <<TABLE
2 rows:2 batch:rows
2 rows:2 vocab:rows;heads:rows
4 rows:2;cols:2 batch:rows;vocab:cols
TABLE

# A model that says nothing foretells each of 256 bytes alike: its perplexity is 256.
jq '.variables |= map(.init = "zeros")' "$work/g.json" >"$work/zeros.json"
meshtf-plan estimate "$work/zeros.json" --mesh rows:1 --layout '' --machine cpu-host -o "$work/p.json" >/dev/null
run meshtf-run "$work/p.json" --perplexity "$work/rest.txt"
claim "zeros foretell 256 bytes alike" says ": 256 ("

run meshtf-run "$work/p.json" --perplexity "$work/missing.txt"
claim "a text that is not there is bad input" exits 2
claim "  and named" says_error missing.txt
printf a >"$work/one.txt"
run meshtf-run "$work/p.json" --perplexity "$work/one.txt"
claim "one token foretells none" exits 2
meshtf-plan model mlp -o "$work/g.json" >/dev/null
plan 'rows:1' ''
run meshtf-run "$work/p.json" --perplexity LICENSE
claim "a model of no text is refused" exits 2
done_testing
