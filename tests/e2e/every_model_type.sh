#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 1200
# Every model type that config.json may name, from weights that PyTorch wrote to what it generates on two ranks, token by token,
# by the logits behind it; where a type does not generate from a text alone, the logits of all it reads. RANKS says on how many
# others (long_every_model_type.sh); published_models.sh generates on one.
. tests/support/tap.sh
. tests/support/published/published_models.sh

RANKS=${RANKS:-2}

echo '{"model_type": "unheard-of"}' >"$work/config.json"
run meshtf-plan import "$work/config.json" -o "$work/x.json"
types=$(sed -n 's/.* is not one that is known; there are //p' "$work/err" | tr -d ,)
claim "the types are told" test -n "$types"
# The types are split into words on purpose.
# shellcheck disable=SC2086
run $python $models write "$work" $types

# made TYPE RANKS: what an encoder-decoder makes of a source that fills its places, and of one that does not, which
# PyTorch reads without what fills up its row; are_made compares all at once.
made() {
    for source in 'Hello world' 'Hello'; do
        together "$1: $2 ranks go on behind $source" "$2" "$work/$1/p$2.json" --data "$work/$1/in-tokens.npy" --init "$work/$1" \
            --steps 0 --generate 8 --temperature 0.0001 --prompt "$source"
        echo "$run.out" >>"$work/made-$1-$2"
    done
    together "$1: $2 ranks go on behind words" "$2" "$work/$1/p$2.json" --init "$work/$1" --tokenizer "$work/$1" --steps 0 \
        --generate 8 --temperature 0.0001 --prompt 'w72 w101 w222'
    echo "$run.out" >>"$work/made-$1-$2"
    printf '%s\t%s\t%s\t%s\t%s\n' "$work/said-$1-$2" "$work/$1" 'Hello world' 'Hello' 'w72 w101 w222' >>"$work/makers"
}

are_made() {
    are_run
    while IFS='	' read -r said _; do
        xargs sed -n 's/^  -> //p' <"$work/made-${said##*/said-}" >"$said"
    done <"$work/makers"
    run $python $models made "$work/makers" 8
    claim "what encoder-decoders make is compared with PyTorch" exits 0
    while IFS='	' read -r said _; do
        claim "${said##*/said-} ranks: of two texts, and of words without data, what PyTorch makes" test -f "$said"
    done <"$work/makers"
}

# hears TYPE RANKS: a text that goes on, beside what is heard; the same on any number of ranks.
hears() {
    run mpirun -n "$2" meshtf-run "$work/$1/p$2.json" --data "$work/$1/in-tokens.npy" --data "$work/$1/in-sound.npy" \
        --init "$work/$1" --steps 0 --generate 5 --temperature 0.0001 --prompt '*+,'
    claim "$1: $2 ranks generate" exits 0
    sed '1,/^$/d' "$work/out" >"$work/said$2"
    claim "$1: $2 ranks say what one says" cmp "$work/said$2" "$work/said1"
}

for type in $types; do
    claim "$type has a model in $models" test -f "$work/$type/logits.npy"
    # What goes on behind a sound is compared with what one rank says.
    [ "$type" = whisper ] && on="1 ${RANKS#1}" || on=$RANKS
    for ranks in $on; do
        case $type in
        bert | roberta | xlm-roberta | camembert | electra | distilbert | ernie | megatron-bert | roberta-prelayernorm | data2vec-text | \
            xlm-roberta-xl | mpnet | albert | deberta | deberta-v2 | modernbert | eurobert | nomic_bert | esm | vit | vit_22b | vit_msn | deit | ijepa | beit | data2vec-vision | dinov2 | dinov2_with_registers | dinov3_vit | resnet | convnext | convnextv2 | \
            clip_vision_model | clip_text_model | siglip_vision_model | siglip_text_model | siglip2_vision_model | siglip2_text_model | \
            swin | donut-swin | swinv2 | audio-spectrogram-transformer | wav2vec2 | wavlm | hubert | data2vec-audio | unispeech | unispeech-sat)
            logits "$type" "$ranks"
            run meshtf-plan search "$work/$type" --infer decode --devices "$ranks" --machine cpu-host -o "$work/x.json"
            claim "$type: it does not generate, and says so" bad_input
            ;;
        t5 | mt5 | umt5 | switch_transformers | bart | plbart | mbart | blenderbot | blenderbot-small | pegasus | marian | m2m_100) logits "$type" "$ranks" && made "$type" "$ranks" ;;
        whisper) logits "$type" "$ranks" && hears "$type" "$ranks" ;;
        *)
            generates "$type" "$ranks" 16 6 '*+,-./01' "$work/$type-$ranks.npy"
            ;;
        esac
    done
done
are_alike
are_expected
are_made
done_testing
