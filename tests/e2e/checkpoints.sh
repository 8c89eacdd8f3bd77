# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 300
# Runs under mpirun that are stopped, killed and led astray, as users and queueing systems do it.
. tests/support/tap.sh

folder=$work/checkpoints
plan=$work/plan.json
other=$work/other.json
metrics=$work/metrics.jsonl

own_lines() {
    grep -c '^meshtf-run: ' "$work/err"
}

refuses() {
    exits 2 && [ "$(own_lines)" = 1 ]
}

# losses FILE: steps and losses alone.
losses() {
    sed 's/^{"step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/' "$1"
}

files() {
    find "$folder" -name 'step-*' | wc -l
}

# wait_for FILE: until it is there, at most 30 s.
wait_for() {
    for _ in $(seq 300); do
        [ -e "$1" ] && return 0
        sleep 0.1
    done
    return 1
}

# wait_for_text TEXT: until the run has said it, at most 20 s. What the run before said is wiped before
# a run begins: its own shell may do so too late.
wait_for_text() {
    for _ in $(seq 200); do
        grep -q "$1" "$work/out" && return 0
        sleep 0.1
    done
    return 1
}

# newest: the step of the newest checkpoint.
newest() {
    find "$folder" -name 'step-*.safetensors' | sort | tail -n 1 | sed 's/.*step-0*\([0-9]*\).*/\1/'
}

# within RATIO FILE FILE: the same steps, and losses that differ by no more than the ratio.
within() {
    losses "$2" >"$work/left"
    losses "$3" >"$work/right"
    [ -s "$work/left" ] && paste -d ' ' "$work/left" "$work/right" | awk -v ratio="$1" '
        $1 != $3 || ($2 - $4) ^ 2 > (ratio * $2) ^ 2 { wrong = 1 } END { exit wrong }'
}

# same FILE FILE: losses equal to the last digit.
same() {
    [ -s "$1" ] && [ "$(losses "$1")" = "$(losses "$2")" ]
}

# With dropout, whose choices must go on as well.
meshtf-plan model transformer-lm --preset demo --layers 2 --batch 4 --length 16 --d-model 64 --d-ff 128 \
    --heads 2 --d-kv 32 --dropout 0.1 -o "$work/graph.json" >/dev/null
meshtf-plan search "$work/graph.json" --mesh 'rows:2' --layouts rule -o "$plan" >/dev/null 2>&1
meshtf-plan search "$work/graph.json" --mesh 'rows:3' -o "$other" >/dev/null 2>&1
train() {
    run mpirun -n 2 meshtf-run "$plan" --data LICENSE "$@"
}

train --steps 40 --metrics "$work/undisturbed.jsonl"
claim "an undisturbed run" exits 0

train --steps 25 --checkpoint "$folder" --checkpoint-every 10 --metrics "$metrics"
claim "a run that writes checkpoints" exits 0
claim "it says how many and where" says "3 checkpoints in $folder, the last of step 25"
claim "the newest two are kept" test "$(files)" = 2
cp -r "$folder" "$work/copy"
train --steps 40 --checkpoint "$folder"
claim "a folder with checkpoints is not written to without --resume" refuses
train --steps 40 --checkpoint "$folder" --resume --metrics "$metrics"
claim "--resume goes on" says "goes on from step 25, $folder/step-00000025.safetensors, written by the same program"
claim "to the same losses, bit for bit" same "$metrics" "$work/undisturbed.jsonl"
train --steps 40 --checkpoint "$folder" --resume
claim "nothing is left to train after the last step" says "nothing is left to train"

run mpirun -n 3 meshtf-run "$other" --data LICENSE --steps 40 --checkpoint "$work/copy" --resume --metrics "$work/three.jsonl"
claim "three ranks go on from what two wrote" says "written under another layout"
tail -n 15 "$work/undisturbed.jsonl" >"$work/tail.jsonl"
claim "to the same losses but for rounding" within 1e-4 "$work/tail.jsonl" "$work/three.jsonl"

train --steps 40 --seed 1 --checkpoint "$folder" --resume
claim "another seed is refused" refuses
run mpirun -n 2 meshtf-run "$plan" --data README.md --steps 50 --checkpoint "$folder" --resume
claim "other data is refused" refuses
claim "the sentence says how to go on" says_error "--new-data"
cp -r "$folder" "$work/more"
run mpirun -n 2 meshtf-run "$plan" --data README.md --steps 42 --checkpoint "$work/more" --resume --new-data
claim "--new-data goes on with other data" says "goes on from step 40"
run mpirun -n 2 meshtf-run "$plan" --data README.md --steps 43 --checkpoint "$work/more" --resume
claim "which the next checkpoint knows" says "goes on from step 42"
train --resume
claim "--resume without a folder is refused" refuses
train --steps 3 --init "$folder/step-00000040.safetensors" --metrics "$work/init.jsonl"
claim "a checkpoint's weights serve as initial ones" exits 0
claim "from which the loss is low" awk "BEGIN { exit !($(losses "$work/init.jsonl" | sed -n '1s/.* //p') < 4.5) }"
train --init "$plan"
claim "something else does not" refuses

# Damage: the newest good one wins, and every other is named.
truncate -s -100 "$folder/step-00000040.safetensors"
train --steps 41 --checkpoint "$folder" --resume
claim "a truncated checkpoint is passed over" says_error "skipped: $folder/step-00000040.safetensors"
claim "in one sentence" test "$(own_lines)" = 1
claim "for the newest good one" says "goes on from step 25"
for file in "$folder"/step-*; do
    printf 'damage' | dd of="$file" bs=1 seek=40000 conv=notrunc 2>/dev/null
done
train --steps 50 --checkpoint "$folder" --resume
claim "a folder without a good checkpoint is refused" exits 2
claim "in a sentence" says_error "none of its 2 checkpoints is good"

# Signals. Ranks that are asked agree on a step, so the run can go on from there as if nothing was.
rm -rf "$folder"
long="mpirun -n 2 meshtf-run $plan --data LICENSE --steps 100000 --checkpoint $folder --checkpoint-every 40"
: >"$work/out"
$long >"$work/out" 2>"$work/err" &
pid=$!
wait_for "$folder/step-00000040.safetensors"
kill -USR1 $pid
wait_for_text 'as a signal asked'
claim "SIGUSR1 to mpirun gives a checkpoint" says "checkpoint, as a signal asked"
claim "and the run goes on" kill -0 $pid
kill -USR2 $pid
wait $pid
status=$?
claim "SIGUSR2 to mpirun ends the run with status 75" exits 75
claim "with a checkpoint of the step it stopped at" says "step $(newest): checkpoint, as a signal asked"

: >"$work/out"
$long --resume >"$work/out" 2>"$work/err" &
pid=$!
wait_for_text 'goes on from'
for rank in $(pgrep -P $pid -x meshtf-run); do
    kill -TERM "$rank"
done
wait $pid
status=$?
claim "SIGTERM to the ranks ends the run with status 75" exits 75
claim "it says that it will" says_error "asked to end: it will after this step"

# OpenBLAS starts threads before the program does, one a core where nothing else is asked for: a signal that
# reaches one of them is heard all the same. Which thread it reaches is chance: some thirty signals a rank.
: >"$work/out"
# shellcheck disable=SC2086
env -u OPENBLAS_NUM_THREADS -u OMP_NUM_THREADS $long --resume >"$work/out" 2>"$work/err" &
pid=$!
wait_for_text 'goes on from'
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    for rank in $(pgrep -P $pid -x meshtf-run); do
        kill -USR1 "$rank"
        kill -USR1 "$rank"
    done
done
kill -USR2 $pid
wait $pid
status=$?
claim "no thread of a library takes a signal for the end" exits 75

# A rank that is stopped keeps the other in its step, where the second signal finds it.
: >"$work/out"
$long --resume >"$work/out" 2>"$work/err" &
pid=$!
wait_for_text 'goes on from'
before=$(newest)
kill -STOP "$(pgrep -P $pid -x meshtf-run | tail -n 1)"
waits=$(pgrep -P $pid -x meshtf-run | head -n 1)
kill -TERM "$waits"
sleep 0.3
kill -TERM "$waits"
wait $pid
status=$?
claim "a second SIGTERM to a rank ends the run at once" exits 1
claim "it says that nothing is kept" says_error "a second signal to end: gone without a checkpoint"
claim "the checkpoint before it stays" test "$(newest)" -ge "$before"

: >"$work/out"
$long --resume >"$work/out" 2>"$work/err" &
pid=$!
wait_for_text 'goes on from'
kill -TERM $pid
wait $pid
status=$?
claim "SIGTERM to mpirun ends the run with status 1" exits 1
claim "it says what to send instead" says_error "send it SIGUSR2"
step=$(newest)
train --steps $((step + 1)) --checkpoint "$folder" --resume
claim "the last good checkpoint survives it" says "goes on from step $step"

run mpirun -n 2 meshtf-run "$plan" --data LICENSE --steps 2 --checkpoint /proc/checkpoints
claim "a folder that cannot be written to is refused" refuses

# A disk that takes no more: 200 blocks of 512 bytes, less than a checkpoint, and than what MPI shares in memory.
rm -rf "$folder"
train --steps 5 --checkpoint "$folder"
run env OMPI_MCA_btl=self,tcp mpirun -n 2 sh -c "ulimit -f 200; exec meshtf-run '$plan' --data LICENSE --steps 10 --checkpoint '$folder' --resume"
claim "a checkpoint that the disk does not take is a failure" exits 1
claim "in one sentence" test "$(own_lines)" = 1
claim "that says which" says_error "the checkpoint $folder/step-00000010.safetensors.partial of"
claim "and leaves no part of it" test "$(files)" = 1
train --steps 10 --checkpoint "$folder" --resume
claim "the one before it is good" says "goes on from step 5"

# A rank that is killed takes the others with it; mpirun says which it was.
: >"$work/out"
mpirun -n 2 meshtf-run "$plan" --data LICENSE --steps 100000 --checkpoint "$work/killed" >"$work/out" 2>"$work/err" &
pid=$!
wait_for "$work/killed/step-00000100.safetensors"
rank=$(pgrep -P $pid -x meshtf-run | tail -n 1)
kill -KILL "$rank"
wait $pid
status=$?
claim "a killed rank ends the run" test "$status" -ne 0
claim "every rank is gone" test -z "$(pgrep -P $pid -x meshtf-run)"
claim "mpirun names it" says_error "exited on signal 9"
claim "and so do we, in one sentence" [ "$(grep -c '^meshtf-run: ' "$work/err")" = 1 ]
claim "with its process" says_error "rank 1 is gone (process $rank)"

done_testing
