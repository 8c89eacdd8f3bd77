#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 1200
# Every model type that config.json may name, from weights that PyTorch wrote to what it generates on one rank and on two, token
# by token, by the logits behind it; where a type does not generate from a text alone, the logits of all it reads.
. tests/support/tap.sh
. tests/support/published/published_models.sh

echo '{"model_type": "unheard-of"}' >"$work/config.json"
run meshtf-plan import "$work/config.json" -o "$work/x.json"
types=$(sed -n 's/.* is not one that is known; there are //p' "$work/err" | tr -d ,)
claim "the types are told" test -n "$types"
# The types are split into words on purpose.
# shellcheck disable=SC2086
run $python $models write "$work" $types

# made TYPE RANKS: what an encoder-decoder makes of a source that fills its places, and of one that does not, which
# PyTorch reads without what fills up its row.
made() {
    for source in 'Hello world' 'Hello'; do
        run mpirun -n "$2" meshtf-run "$work/$1/p$2.json" --data "$work/$1/in-tokens.npy" --init "$work/$1" \
            --steps 0 --generate 8 --temperature 0.0001 --prompt "$source"
        sed -n 's/^  -> //p' "$work/out" >"$work/said"
        $python $models made "$work/$1" "$source" 8 >"$work/wanted"
        claim "$1: $2 ranks make of \"$source\" what PyTorch makes" cmp "$work/said" "$work/wanted"
    done
}

# hears TYPE RANKS: a text that goes on, beside what is heard; the same on any number of ranks.
hears() {
    run mpirun -n "$2" meshtf-run "$work/$1/p$2.json" --data "$work/$1/in-tokens.npy" --data "$work/$1/in-sound.npy" \
        --init "$work/$1" --steps 0 --generate 5 --temperature 0.0001 --prompt '*+,'
    claim "$1: $2 ranks generate" exits 0
    sed '1,/^$/d' "$work/out" >"$work/said$2"
    claim "$1: $2 ranks say what one says" cmp "$work/said$2" "$work/said1"
}

said="" prompt='*+,-./01'
for type in $types; do
    claim "$type has a model in $models" test -f "$work/$type/logits.npy"
    for ranks in 1 2; do
        case $type in
        bert | roberta | xlm-roberta | camembert | electra | distilbert | vit)
            logits "$type" "$ranks"
            run meshtf-plan search "$work/$type" --infer decode --devices "$ranks" --machine cpu-host -o "$work/x.json"
            claim "$type: it does not generate, and says so" bad_input
            ;;
        t5 | switch_transformers) logits "$type" "$ranks" && made "$type" "$ranks" ;;
        whisper) logits "$type" "$ranks" && hears "$type" "$ranks" ;;
        *)
            generates "$type" "$ranks" 16 6 "$prompt" "$work/$type/said-$ranks.npy"
            claim "$type: $ranks ranks generate" exits 0
            said="$said $type/said-$ranks.npy"
            ;;
        esac
    done
done
run $python $models all-behind "$work" "$prompt"
claim "all is compared with PyTorch" exits 0
for logits in $said; do
    claim "${logits%/*}: logits of what it says, $logits, are PyTorch's" test -f "$work/$logits"
done
done_testing
