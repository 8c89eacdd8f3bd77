# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck disable=SC2154 # $work is of tap.sh
# Sourced after tap.sh. Runs a tiny Transformer whose attention is in parts, and claims what must hold of it: memory,
# calls and bytes are as predicted, losses and gradients those of one rank.

number() { sed -n "s/.*\"$1\": *\([0-9.e-]*\).*/\1/p" "$2" | head -n 1; }
meshtf-plan model transformer-lm --preset tiny --attention blockwise -o "$work/g.json" >/dev/null

# losses RANKS OPTION PARTS MESH LAYOUT: what a run of five steps says of each, in $work/RANKS.losses.
losses() {
    run meshtf-plan estimate "$work/g.json" --precision f64 --machine cpu-host "$2" "$3" --mesh "$4" --layout "$5" \
        -o "$work/p.json"
    claim "$2 $3 on $1 ranks is estimated" exits 0
    run mpirun -n "$1" meshtf-run "$work/p.json" --data LICENSE --steps 5 --metrics "$work/m.jsonl"
    claim "it runs" exits 0
    sed 's/.*"loss": *\([0-9.]*\),"gradient_norm": *\([0-9.]*\).*/\1 \2/' "$work/m.jsonl" >"$work/$1.losses"
}

# agrees RANKS: what the last run of so many said.
agrees() {
    claim "memory is as predicted" grep -q 'memory a rank .* equal to the byte' "$work/out"
    claim "so are calls and bytes" says "every rank's calls and bytes equal the program's"
    # shellcheck disable=SC2016
    claim "losses and gradients are those of one rank to 1e-10" awk '
        NR == FNR { for (i = 1; i <= 2; i++) want[FNR, i] = $i; n++; next }
        { for (i = 1; i <= 2; i++) { d = $i / want[FNR, i] - 1; bad += d > 1e-10 || d < -1e-10 } m++ }
        END { exit bad > 0 || n != 5 || m != 5 }' "$work/1.losses" "$work/$1.losses"
}
