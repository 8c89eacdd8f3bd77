# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 300
# Drawn models whose steps may be divided, in micro-batches, recomputed, with the host, laid out as drawn on 1 to 8 ranks,
# and some in pipeline stages, also cut anywhere with drawn layouts on meshes of their own sizes, by asynchronous schedules, too: losses are those of one processor that takes the batch whole, also behind a checkpoint of it,
# and bytes and memory what plans say.
. tests/support/tap.sh
. tests/support/together.sh

count=3 several=0 drawn=
[ -z "${MTF_LONG:-}" ] || count=60
first=$((${MTF_SEED:-0} * 10000))
for ranks in 1 2 3 4 6 8; do
    mkdir "$work/$ranks"
    run "$build/tests/e2e/drawn_models" "$work/$ranks" $ranks $((first + 200 * ranks)) $((first + 200 * ranks + count))
    claim "models are drawn for $ranks ranks" exits 0
    for plan in "$work/$ranks"/*-drawn.plan; do
        name=${plan%-drawn.plan}
        seed=$(basename "$name")
        drawn="$drawn $name-drawn"
        together "model $seed trains as a whole" 1 "$name-whole.plan" --steps 4 --metrics "$name-whole.losses"
        if [ $((seed % 3)) = 0 ]; then
            together "model $seed writes a checkpoint" 1 "$name-whole.plan" --steps 2 --checkpoint "$name.checkpoint"
            together "model $seed goes on from it on $ranks ranks" $ranks "$plan" --steps 4 --only-mpi --metrics "$name-drawn.losses" \
                --checkpoint "$name.checkpoint" --resume
        else
            together "model $seed trains on $ranks ranks" $ranks "$plan" --steps 4 --only-mpi --metrics "$name-drawn.losses" --verify
        fi
        [ $ranks = 1 ] || several=$((several + 1))
    done
done

# staged RANKS SEED OPTION…: the model of those RANKS in stages of a rank each, as many.
staged() {
    ranks=$1 name=$work/$1/$2
    shift 2
    [ -e "$name.json" ] || return 0 # no variable leads to its loss
    run meshtf-plan search "$name.json" --batch-dim batch --machine cpu-host --precision f64 --mesh rows:1 --stages "$ranks" --seconds 2 \
        "$@" -o "$name-staged.plan"
    claim "model $(basename "$name") is cut into $ranks stages" exits 0
    drawn="$drawn $name-staged"
    together "model $(basename "$name") trains in $ranks stages" "$ranks" "$name-staged.plan" --steps 4 --only-mpi \
        --metrics "$name-staged.losses" --verify
}

# Those of float64.
staged 2 $((first + 401)) --schedule 1f1b --microbatches 4
staged 2 $((first + 402)) --schedule zb-v --microbatches 6 --recompute layers
staged 3 $((first + 601)) --schedule gpipe --microbatches 3 --recompute cheap
staged 4 $((first + 802)) --schedule zb-h1 --microbatches 12
if [ -n "${MTF_LONG:-}" ]; then
    seed=$((first + 403))
    for schedule in gpipe 1f1b eager-1f1b interleaved zb-h1 zb-h2 zb-1p zb-2p zb-auto zb-v v-half v-min dualpipe-v; do
        for parts in 4 12; do
            case $((seed % 16)) in
            0 | 4 | 8 | 10 | 12) seed=$((seed + 1)) ;;
            esac
            staged 2 $seed --schedule $schedule --microbatches $parts
            seed=$((seed + 1))
        done
    done
fi

# Cut anywhere, each stage laid out as drawn on a mesh of its own.
for ranks in 2 3 4 6 7 8; do
    folder=$work/stages-$ranks
    mkdir "$folder"
    run "$build/tests/e2e/drawn_stages" "$folder" $ranks $((first + 200 * ranks + 100)) $((first + 200 * ranks + 99 + (count + 1) / 2))
    claim "models are cut for $ranks ranks" exits 0
    for plan in "$folder"/*-staged.plan; do
        [ -e "$plan" ] || continue
        name=${plan%-staged.plan} several=$((several + 1)) drawn="$drawn ${plan%.plan}"
        together "model $(basename "$name") trains as a whole" 1 "$name-whole.plan" --steps 4 --metrics "$name-whole.losses"
        together "model $(basename "$name") trains in stages on $ranks ranks" $ranks "$plan" --steps 4 --only-mpi --metrics "$name-staged.losses"
    done
done

# Asynchronous ones: weights lag in the same stages of one processor each as much, as losses on wider meshes show.
for ranks in 3 4 6; do
    folder=$work/asynchronous-$ranks
    mkdir "$folder"
    run "$build/tests/e2e/drawn_stages" "$folder" $ranks $((first + 200 * ranks + 100)) $((first + 200 * ranks + 100 + 2 * count)) asynchronous
    claim "models whose weights lag are cut for $ranks ranks" exits 0
    for plan in "$folder"/*-staged.plan; do
        [ -e "$plan" ] || continue
        name=${plan%-staged.plan} several=$((several + 1)) drawn="$drawn ${plan%.plan}"
        together "model $(basename "$name") trains in stages of one rank" "$(jq '.stages | length' "$name-whole.plan")" "$name-whole.plan" \
            --steps 4 --metrics "$name-whole.losses"
        together "model $(basename "$name") trains as far behind on $ranks ranks" $ranks "$plan" --steps 4 --only-mpi --metrics "$name-staged.losses"
    done
done
are_run

# Whether steps' losses are those of the model as a whole, as far as its precision goes.
loses_alike() {
    name=${1%-*}
    jq -r 'select(.loss != null) | "\(.step) \(.loss)"' "$name-whole.losses" >"$work/whole"
    jq -r 'select(.loss != null) | "\(.step) \(.loss)"' "$1.losses" | sort -k1,1 >"$work/own"
    last=$(tail -n 1 "$work/own")
    # In bfloat16 each sum that a layout splits is rounded a few times more (tests/support/losses/layout_losses.h).
    case $(jq -r .precision "$name-whole.plan") in
    bf16) within=0.015625 ;;
    f32) within=1e-4 ;;
    *) within=1e-10 ;;
    esac
    [ "${last%% *}" = 4 ] && sort -k1,1 "$work/whole" | join "$work/own" - |
        awk -v within="$within" '{ d = $2 - $3; if (d < 0) d = -d; if (!(d <= within * ($3 < 0 ? -$3 : $3))) bad++ } END { exit !(NR >= 2 && bad == 0) }'
}
for one in $drawn; do
    claim "$(basename "$one") has the losses of the whole batch on one processor" loses_alike "$one"
done
name=$work/2/$((first + 401))
sed 's/"loss":[0-9.]*/"loss":9/' "$name-staged.losses" >"$name-wrong.losses"
differs() { ! loses_alike "$name-wrong"; }
claim "losses that differ are found" differs
says_equal=$(grep -l "every rank's calls and bytes equal" "$work"/run-*.out | wc -l)
says_other=$(grep -l "are NOT the program's" "$work"/run-*.out | wc -l)
claim "all send what they say" [ "$says_other" = 0 ]
claim "nine of ten of those on several ranks send something" [ $((10 * says_equal)) -ge $((9 * several)) ]
claim "all in the memory that they say" [ "$(grep -L 'equal to the byte' "$work"/run-*.out | wc -l)" = 0 ]

done_testing
