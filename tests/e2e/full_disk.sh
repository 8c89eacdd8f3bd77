# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 240
# Runs whose disk is full or becomes read-only, for real: on a file system of a few MiB, mounted where
# only this test sees it. checkpoints.sh has what can be tried without being allowed to mount.
# What is run where the disk is mounted is expanded there.
# shellcheck disable=SC2016,SC2154
. tests/support/tap.sh

if ! unshare -rm mount -t tmpfs -o size=1m none "$work" 2>/dev/null; then
    skip "this user may not mount a file system of its own"
    done_testing
fi

disk=$work/disk
plan=$work/plan.json
mkdir "$disk"
meshtf-plan model transformer-lm --preset demo --layers 2 --batch 4 --length 16 --d-model 64 --d-ff 128 \
    --heads 2 --d-kv 32 -o "$work/graph.json" >/dev/null
meshtf-plan search "$work/graph.json" --mesh 'rows:2' --layouts rule -o "$plan" >/dev/null 2>&1

# mounted SCRIPT: runs it in $disk, 8 MiB that end with it; a checkpoint is 1.2 MB.
mounted() {
    run unshare -rm sh -c "
        mount -t tmpfs -o size=8m none '$disk' && cd '$disk' || exit 9
        train() { mpirun -n 2 meshtf-run '$plan' --data '$PWD/LICENSE' --checkpoint run \"\$@\"; }
        fill() { cat /dev/zero >filler 2>/dev/null; true; }
        files() { ls run; }
        $1"
}

own_lines() {
    grep -c '^meshtf-run: ' "$work/err"
}

# fails: a failure, one sentence from one rank.
fails() {
    exits 1 && [ "$(own_lines)" = 1 ]
}

mounted 'train --steps 2 && fill && train --steps 4 --resume; status=$?; files; exit $status'
claim "a checkpoint that a full disk does not take is a failure in one sentence" fails
claim "which says why" says_error "No space left on device"
claim "and which" says_error "the checkpoint run/step-00000004.safetensors.partial of"
claim "the one before it stays" says "step-00000002.safetensors"
claim "and no part of the new one" test "$(grep -c '^step-' "$work/out")" = 1

mounted 'train --steps 2 && fill && train --steps 4 --resume; rm filler; train --steps 4 --resume'
claim "when there is room again, the run goes on" exits 0
claim "from the last good one" says "goes on from step 2"

mounted 'train --steps 2 && fill && train --steps 30 --resume --checkpoint-every 1000 --metrics metrics.jsonl'
claim "metrics that a full disk does not take are a failure in one sentence" fails
claim "which names the file" says_error "metrics.jsonl cannot be written: No space left on device"

mounted 'train --steps 2 && mount -o remount,ro . && train --steps 4 --resume; status=$?; files; exit $status'
claim "a folder that is read-only is refused" exits 2
claim "in one sentence" test "$(own_lines)" = 1
claim "which says why" says_error "Read-only file system"
claim "and its checkpoint stays" says "step-00000002.safetensors"

mounted 'train --steps 100000 --checkpoint-every 20 & pid=$!
    until ls run/*.safetensors >/dev/null 2>&1; do sleep 0.1; kill -0 $pid || exit 9; done
    while kill -0 $pid 2>/dev/null; do cat /dev/zero >>filler 2>/dev/null; sleep 0.1; done
    wait $pid; status=$?; files; exit $status'
claim "a disk that fills up during a run is a failure in one sentence" fails
claim "which says why" says_error "No space left on device"
claim "and the last good checkpoint stays" says ".safetensors"

done_testing
