# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 3000
# Every schedule gives the losses that the model has without stages, over 50 steps: a decoder, an encoder beside a decoder, a
# U-Net with skips and a decoder with experts, in float64, on two to four ranks.
. tests/support/tap.sh
for i in 1 2 3 4 5 6 7 8 9; do printf 'the house %d is here\tla maison %d est ici\n' "$i" "$i"; done >"$work/pairs.tsv"
data_of() {
    case $1 in
    transformer) echo --data "$work/pairs.tsv" ;;
    unet) ;;
    *) echo --data LICENSE ;;
    esac
}

# losses PLAN RANKS FAMILY: of 50 steps, a line each.
losses() {
    # The words are split on purpose.
    # shellcheck disable=SC2046
    mpirun -n "$2" meshtf-run "$work/$1.json" $(data_of "$3") --steps 50 --metrics "$work/$1.jsonl" >"$work/out" 2>&1 &&
        jq -r 'select(.loss != null) | .loss' "$work/$1.jsonl" >"$work/$1.losses" && [ "$(wc -l <"$work/$1.losses")" = 50 ]
}

alike() { # PLAN WHOLE
    paste "$work/$1.losses" "$work/$2.losses" |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= 1e-10 * $2)) bad++ } END { exit !(NR == 50 && bad == 0) }'
}

for family in transformer-lm transformer unet mixtral; do
    meshtf-plan model $family --preset tiny --batch 16 -o "$work/$family.json" >/dev/null
    plan() { # NAME OPTION…
        name=$1
        shift
        run meshtf-plan search "$work/$family.json" --machine cpu-host --microbatches 8 --precision f64 "$@" -o "$work/$name.json"
    }
    plan whole --mesh rows:1
    claim "$family without stages" losses whole 1 $family
    for schedule in gpipe 1f1b eager-1f1b interleaved zb-h1 zb-h2 zb-1p zb-2p zb-auto zb-v v-half v-min dualpipe-v; do
        plan staged --mesh rows:1 --stages 2 --schedule $schedule
        if says_error "layers" && [ "$schedule" != 1f1b ]; then
            continue
        fi
        claim "$family is planned for $schedule" exits 0
        claim "$family by $schedule runs 50 steps on two ranks" losses staged 2 $family
        claim "$family by $schedule has the losses without stages" alike staged whole
    done
    for schedule in 1f1b zb-v; do
        plan staged --mesh rows:2 --stages 2 --schedule $schedule
        claim "$family is planned for $schedule and two ranks a stage" exits 0
        claim "$family by $schedule runs 50 steps on four ranks" losses staged 4 $family
        claim "$family by $schedule and data parallelism has the losses without stages" alike staged whole
    done
done
sed 's/^\(.\)/9\1/;q' "$work/whole.losses" >"$work/wrong" && sed 1d "$work/whole.losses" >>"$work/wrong"
mv "$work/wrong" "$work/staged.losses"
differs() { ! alike staged whole; }
claim "a first loss that differs is found" differs
done_testing
