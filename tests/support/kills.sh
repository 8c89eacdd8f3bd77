# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: GPL-3.0-or-later
# Kills runs at random moments and lets them go on, until so many kills have been survived. A test
# reads tap.sh and this, then says `survive KILLS SEED [SEARCH_OPTION…]`; without options ranks share one mesh.
#
#     start --resume ──►  step step checkpoint st    SIGKILL to a rank, SIGKILL to mpirun, or SIGTERM
#     start --resume ──►       step checkpoi         to mpirun, after 0.3 to 1.8 s
#     …                                              until all steps are done: then their losses must
#                                                    be those of the undisturbed run, bit for bit
#
# With a checkpoint after each step about half of the time goes into writing them.

kill_steps=400

# A run of two ranks with checkpoints every $1 steps in folder $2 and metrics in file $3.
killed_run() {
    mpirun -n 2 meshtf-run "$work/plan.json" --data LICENSE --steps $kill_steps --checkpoint "$2" \
        --checkpoint-every "$1" --resume --metrics "$3" >"$work/out" 2>"$work/err"
}

killed_losses() {
    sed 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/' "$1"
}

# make_killed_model SEARCH_OPTION…
make_killed_model() {
    meshtf-plan model transformer-lm --preset demo --layers 2 --batch 4 --length 16 --d-model 64 --d-ff 128 \
        --heads 2 --d-kv 32 --dropout 0.1 -o "$work/graph.json" >/dev/null
    meshtf-plan search "$work/graph.json" "$@" -o "$work/plan.json" >/dev/null 2>&1
    rm -rf "$work"/undisturbed* "$work"/killed.*
    run killed_run 100000 "$work/undisturbed" "$work/undisturbed.jsonl"
    claim "an undisturbed run" exits 0
}

# One of the ranks that process $1, mpirun, has started; nothing when there is none yet.
a_rank_of() {
    pgrep -P "$1" -x meshtf-run | head -n "$2" | tail -n 1
}

# strike PID DRAW: kills what the draw says.
strike() {
    rank=$(a_rank_of "$1" $(($2 / 4 % 2 + 1)))
    case $(($2 % 4)) in
    0 | 1) [ -z "$rank" ] || kill -KILL "$rank" 2>/dev/null ;;
    2) kill -KILL "$1" 2>/dev/null ;;
    3) kill -TERM "$1" 2>/dev/null ;;
    esac
}

# Waits for mpirun, process $1, to end; one that has not noticed after 20 s that its ranks are gone, as
# happens when they die while it starts them, is killed as well.
see_off() {
    for _ in $(seq 200); do
        kill -0 "$1" 2>/dev/null || return
        sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null
}

# survive KILLS SEED [SEARCH_OPTION…]
survive() {
    most=$1
    draw=$2
    shift 2
    [ $# -gt 0 ] || set -- --mesh 'rows:2'
    kills=0
    runs=0
    wrong=0
    starts=0
    make_killed_model "$@"
    while [ "$kills" -lt "$most" ] && [ "$starts" -lt $((5 * most + 20)) ]; do
        runs=$((runs + 1))
        folder=$work/killed.$runs
        every=$((runs % 2 * 6 + 1))
        until killed_losses "$folder.jsonl" 2>/dev/null | grep -q "^$kill_steps " ||
            [ "$starts" -ge $((5 * most + 20)) ]; do
            starts=$((starts + 1))
            killed_run $every "$folder" "$folder.jsonl" &
            shell=$!
            draw=$(((draw * 1103515245 + 12345) % 2147483648))
            sleep "$(awk -v draw=$draw 'BEGIN { print 0.3 + draw / 2147483648 * 1.5 }')"
            mpirun=$(pgrep -P $shell -x mpirun)
            if [ "$kills" -lt "$most" ] && [ -n "$mpirun" ]; then
                strike "$mpirun" $((draw / 65536))
                kills=$((kills + 1))
                see_off "$mpirun"
            fi
            wait $shell
        done
        [ "$(killed_losses "$folder.jsonl")" = "$(killed_losses "$work/undisturbed.jsonl")" ] || wrong=$((wrong + 1))
    done
    claim "$kills kills in $runs runs, and every resumed run reached the losses of the undisturbed one" \
        test "$wrong" = 0
}
