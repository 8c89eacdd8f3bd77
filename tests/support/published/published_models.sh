# shellcheck shell=sh disable=SC2154 # $work is of tap.sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Tiny published models written by PyTorch (published_models.py) beside what meshtf-run computes of them; read behind tap.sh.
. tests/support/together.sh
python=/usr/bin/python3
models=tests/support/published/published_models.py
if ! $python -c 'import importlib.util as i, sys; sys.exit(not (i.find_spec("numpy") and i.find_spec("torch")))'; then
    skip "Debian's PyTorch is not installed (python3-torch)"
    done_testing
fi

# reads TYPE RANKS LOGITS: logits of every position of a text (the class of a picture), weights written back. Rules, which split
# heads and widths, are found soonest; that free layouts compute the same is shown elsewhere.
reads() {
    folder=$work/$1 logits=$3
    run meshtf-plan search "$folder" --devices "$2" --layouts rule --machine cpu-host --batch 2 --length 12 -o "$folder/p$2.json"
    claim "$1: a plan for $2" exits 0
    # The names of files hold no spaces and are split into words on purpose.
    # shellcheck disable=SC2046
    set -- "$1" "$2" $(for file in "$folder"/in-*.*; do
        case $file in *.npy) echo --data "$file" --held-out "$file" ;; *) echo --data "$file" ;; esac
    done)
    type=$1 ranks=$2
    shift 2
    together "$type: $ranks ranks read it" "$ranks" "$folder/p$ranks.json" "$@" --init "$folder" --steps 0 --logits "$logits" \
        --export-hf "$folder/out$ranks"
}

# logits TYPE RANKS: the same, and they are PyTorch's; are_alike compares all at once, since PyTorch starts slowly.
logits() {
    reads "$1" "$2" "$work/$1-on-$2.npy"
    printf '%s\t%s\n' "$work/$1-on-$2.npy" "$work/$1" >>"$work/read"
}

are_alike() {
    are_run
    run $python $models compare "$work/read"
    claim "logits are compared with PyTorch" exits 0
    while IFS='	' read -r got _; do
        claim "${got##*/}: its logits are PyTorch's" test -f "$got"
    done <"$work/read"
    rm "$work/read"
}

# generates TYPE RANKS CONTEXT TOKENS PROMPT RUN: logits of that many tokens behind a prompt, the highest each time, in RUN.
generates() {
    run meshtf-plan search "$work/$1" --infer decode --batch 2 --context "$3" --machine cpu-host --devices "$2" \
        -o "$6.json"
    together "${1##*/}: $2 ranks generate" "$2" "$6.json" --init "$work/$1" --steps 0 --generate "$4" --temperature 0.0001 \
        --prompt "$5" --logits "$6"
    expect "$6" "$5" float "$work/$1"
}

# expect RUN PROMPT float|int8 MODEL [WEIGHTS]: logits that are_expected compares with PyTorch's, likewise.
expect() {
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4${5:+	$5}" >>"$work/expected"
}

are_expected() {
    are_run
    run $python $models behind "$work/expected"
    claim "what was generated is compared with PyTorch" exits 0
    while IFS='	' read -r got prompt weights _; do
        claim "${got##*/}: logits of what it says behind ${#prompt} tokens are PyTorch's, weights in $weights" test -f "$got"
    done <"$work/expected"
    rm "$work/expected"
}
