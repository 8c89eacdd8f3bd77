# SPDX-License-Identifier: GPL-3.0-or-later
# measured_networks MACHINE TABLE FOLDER: "what preset batch length how predicted measured", seconds, a line for each
# network of a table as tests/golden/h200/networks.tsv, priced on MACHINE as PyTorch runs it, with its compiler or without;
# FOLDER is for graphs.
measured_networks() {
    machine=$1 folder=$3
    tail -n +2 "$2" | while read -r what family preset batch length how seconds _; do
        set -- --batch "$batch"
        [ "$length" = - ] || [ "$what" != train ] || set -- "$@" --length "$length"
        [ "$family" != lstm-lm ] || set -- "$@" --d-model 1024 --hidden 1024 --vocab 32000
        meshtf-plan model "$family" --preset "$preset" "$@" --optimizer adamw -o "$folder/network.json" >"$folder/log" || return 1
        set -- "$folder/network.json" --machine "$machine" --precision bf16 --json
        software=pytorch
        [ "$how" = compiled ] || software=pytorch-eager
        case $what in
        train) meshtf-plan estimate "$@" --software "$software" --mesh all:1 --layout '' >"$folder/priced" ;;
        *) meshtf-plan search "$@" --infer "$what" --batch "$batch" --context "$length" --mesh all:1 -o "$folder/plan.json" >"$folder/priced" ;;
        esac
        echo "$what $preset $batch $length $how $(jq -r .step_seconds "$folder/priced") $seconds"
    done
}
