# SPDX-License-Identifier: GPL-3.0-or-later
# What `export --to slurm` writes, run by Slurm itself: Debian's munge, slurmctld and slurmd, of one node that is this
# host, with keys, sockets, ports and states of their own. A signal ends the job with a checkpoint, it goes back into the
# queue, goes on from there and ends.
. tests/support/tap.sh

for needed in munged slurmctld slurmd sbatch; do
    if ! command -v "$needed" >/dev/null || [ "$(id -u)" != 0 ]; then
        skip "$needed is not installed (slurmctld, slurmd and munge, which root may start)"
        done_testing
    fi
done

cluster=$work/cluster
mkdir -p "$cluster/munge" "$cluster/saved" "$cluster/spool"
chmod 755 "$work" # munge asks for a socket that all reach
export SLURM_CONF="$cluster/slurm.conf"
cat >"$SLURM_CONF" <<CONF
ClusterName=here
SlurmctldHost=$(hostname -s)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
StateSaveLocation=$cluster/saved
SlurmdSpoolDir=$cluster/spool
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd.log
SlurmctldPort=26817
SlurmdPort=26818
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$(hostname -s) CPUs=$(getconf _NPROCESSORS_ONLN)
PartitionName=all Nodes=ALL Default=YES
CONF
dd if=/dev/urandom of="$cluster/munge/munge.key" bs=1024 count=1 2>/dev/null
chmod 600 "$cluster/munge/munge.key"

end_cluster() {
    for daemon in slurmd.pid slurmctld.pid munge/pid; do
        [ -s "$cluster/$daemon" ] && kill "$(cat "$cluster/$daemon")" 2>/dev/null
    done
    sleep 2
    rm -rf "$work"
}
trap end_cluster EXIT
munged --key-file="$cluster/munge/munge.key" --socket="$cluster/munge/socket" --pid-file="$cluster/munge/pid" \
    --log-file="$cluster/munge/log" --seed-file="$cluster/munge/seed"
slurmctld -c && slurmd

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
    left=$1
    shift
    until "$@" || [ "$left" = 0 ]; do
        left=$((left - 1))
        sleep 1
    done
    "$@"
}

node_is_idle() {
    sinfo -h -o %t 2>/dev/null | grep -q idle
}

job_is() {
    scontrol show job "$job" | grep -q "JobState=$1"
}

output_says() {
    grep -qE -- "$1" "$work/job.out" 2>/dev/null
}

if ! wait_for 30 node_is_idle; then
    skip "Slurm does not start here"
    done_testing
fi

meshtf-plan search gpt-small --devices 2 --machine cpu-host -o "$work/plan.json" >/dev/null
meshtf-plan export "$work/plan.json" --to slurm -o "$work/job.sh"
submit() {
    MESHTF_CHECKPOINT=$work/$1 sbatch --parsable --output="$work/job.out" --time=60 "$work/job.sh" "$work/plan.json" \
        --data LICENSE --steps "$2" --checkpoint-every 1000000
}

job=$(submit run 1000000)
claim "Slurm runs the ranks of a plan" wait_for 120 output_says '^step +[0-9]+/1000000'
scancel --signal=USR1 --batch "$job"
claim "the signal before the time limit sends the job back into the queue" wait_for 60 job_is PENDING
claim "with a checkpoint" sh -c "ls '$work/run/'step-*.safetensors >/dev/null"
last=$(find "$work/run" -name 'step-*.safetensors' | sed 's/.*step-0*//; s/[.].*//')
scontrol update JobId="$job" StartTime=now
claim "it goes on behind the step of the checkpoint" wait_for 120 output_says "^step +$((last + 1))/1000000"
scancel "$job"
wait_for 60 job_is CANCELLED

: >"$work/job.out"
job=$(submit short 3)
claim "a job that has made all its steps is over" wait_for 120 job_is COMPLETED
claim "and has said so" output_says '^step +3/3'
done_testing
