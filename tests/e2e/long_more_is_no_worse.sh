# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 1800
# Who allows a search for stages more, or gives it more, gets no longer step: more devices, memory, schedules, numbers
# of micro-batches, of stages and places to cut. Drawn networks and machines, seeds FIRST (1) to SEEDS (60), each with
# one of these; what a stage's search may miss of its optimum (half a percent) is allowed for. Plans use all devices
# that they are given, so that more of them must be no farther away: within a host.
. tests/support/tap.sh

# draw N: 0 … N-1 in $drawn, by a linear congruence.
state=0
draw() {
    state=$(((state * 1103515245 + 12345) % 2147483648))
    drawn=$((state / 65536 % $1))
}

# one_of WORD...: one of them in $word.
one_of() {
    draw $#
    shift "$drawn"
    word=$1
}

draw_network() {
    one_of gpt transformer-lm mlp
    family=$word
    one_of 2 3 4
    layers=$word
    one_of 8 16
    batch=$word
    one_of 32 64
    width=$word
    if [ "$family" = mlp ]; then
        set -- --layers $((2 * layers)) --batch $((16 * batch)) --hidden $((8 * width)) --features 256
    else
        set -- --preset tiny --layers "$layers" --batch "$batch" --length 32 --d-model "$width" --d-ff 128 --heads 2 --d-kv 16
    fi
    run meshtf-plan model "$family" "$@" -o "$work/graph.json"
    network="$family $*"
}

# step OPTION...: what the plan takes in $seconds; infinity where nothing fits.
step() {
    run meshtf-plan search "$work/graph.json" --machine "$machine" --json "$@"
    case $status in
    0) seconds=$(jq '.step_seconds // .predicted.step_seconds' "$work/out") ;;
    3) seconds=1e99 ;;
    *) seconds=none ;;
    esac
}

# no_longer MORE LESS
no_longer() {
    awk -v more="$1" -v less="$2" 'BEGIN { exit !(more + 0 > 0 && less + 0 > 0 && more <= 1.005 * less) }'
}

# Fills $less and $more, the options of both searches.
draw_case() {
    one_of 2 4
    devices="--devices $word"
    twice="--devices $((2 * word))"
    auto='--stages auto --microbatches 4'
    one_of devices memory schedules microbatches stages cuts
    kind=$word
    case $kind in
    devices) less="$devices $auto" more="$twice $auto" ;;
    memory) less="$devices $auto --memory $((layers * width * 16))KiB" more="$devices $auto --memory $((layers * width * 24))KiB" ;;
    schedules) less="$devices $auto --schedule 1f1b" more="$devices $auto --schedule auto" ;;
    microbatches) less="$devices $auto" more="$devices --stages auto" ;;
    stages) less="$devices --stages 2 --microbatches 4" more="$devices --stages auto" ;;
    cuts) less="$devices --stages 2 --microbatches 4 --cut layers" more="$devices --stages 2 --microbatches 4" ;;
    esac
}

seed=${FIRST:-1}
while [ "$seed" -le "${SEEDS:-60}" ]; do
    state=$((seed * 7919))
    draw_network
    one_of cpu-host a100 p3.8xlarge
    machine=$word
    draw_case
    [ "$kind" != devices ] || machine=a100
    [ "$kind $family" != 'cuts mlp' ] || less=$more
    # The options are split on purpose.
    # shellcheck disable=SC2086
    step $less
    before=$seconds
    # shellcheck disable=SC2086
    step $more
    claim "more $kind, no longer step: seed $seed, $network on $machine, $less ($before s), $more ($seconds s)" no_longer "$seconds" "$before"
    seed=$((seed + 1))
done
done_testing
