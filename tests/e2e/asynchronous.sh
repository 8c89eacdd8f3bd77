# SPDX-License-Identifier: GPL-3.0-or-later
# Asynchronous pipelines: four stages multiply by one number each, so that the losses of steps with delayed
# weights can be worked out by hand: loss = (x a b c d - y)^2 with x = 1, y = 1/4.
. tests/support/tap.sh

# npy FILE BYTES-OF-ONE-NUMBER: 64 equal float32 numbers, one an example.
npy() {
    header="{'descr': '<f4', 'fortran_order': False, 'shape': (64, 1), }"
    printf "\\223NUMPY\\001\\000v\\000%-117s\\n" "$header" >"$1"
    for _ in 1 2 3 4 5 6 7 8; do
        printf '%b' "$2$2$2$2$2$2$2$2"
    done >>"$1"
}

npy "$work/x.npy" '\0000\0000\0200\0077'
npy "$work/y.npy" '\0000\0000\0200\0076'
cat >"$work/chain.json" <<'EOF'
{"meshtf_graph": 1, "name": "chain", "dimensions": {"batch": 8, "one": 1},
 "inputs": [{"name": "x", "dims": ["batch", "one"], "feed": "features"},
            {"name": "y", "dims": ["batch", "one"], "feed": "targets"}],
 "variables": [{"name": "a", "dims": ["one"], "init": "ones"}, {"name": "b", "dims": ["one"], "init": "ones"},
               {"name": "c", "dims": ["one"], "init": "ones"}, {"name": "d", "dims": ["one"], "init": "ones"}],
 "operations": [{"name": "xa", "op": "multiply", "inputs": ["x", "a"], "stage": 1},
                {"name": "xab", "op": "multiply", "inputs": ["xa", "b"], "stage": 2},
                {"name": "xabc", "op": "multiply", "inputs": ["xab", "c"], "stage": 3},
                {"name": "xabcd", "op": "multiply", "inputs": ["xabc", "d"], "stage": 4},
                {"name": "e", "op": "subtract", "inputs": ["xabcd", "y"], "stage": 4},
                {"name": "ee", "op": "square", "inputs": ["e"], "stage": 4},
                {"name": "loss", "op": "reduce_mean", "inputs": ["ee"], "dims": [], "stage": 4}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.05}}
EOF

# expected DELAYS FIRST LAST [RESTART]: the losses of the formula in layouts/pipeline/pipeline_delay.h, from
# weights of one; the delays begin anew after step RESTART, where a checkpoint lets the pipeline run empty.
expected() {
    awk -v delays="$1" -v first="$2" -v last="$3" -v restart="${4:-0}" 'BEGIN {
        n = split(delays, delay, " ")
        for (s = 1; s <= n; s++) w[s, 0] = 1
        for (t = 1; t <= last; t++) {
            begun = t > restart ? restart : 0
            product = 1
            for (s = 1; s <= n; s++) {
                version[s] = t - 1 - delay[s] > begun ? t - 1 - delay[s] : begun
                product *= w[s, version[s]]
            }
            error = product - 0.25
            if (t >= first) printf "%.17g\n", error * error
            for (s = 1; s <= n; s++)
                w[s, t] = w[s, t - 1] - 0.05 * 2 * error * product / w[s, version[s]]
        }
    }'
}

# agrees METRICS DELAYS FIRST LAST [RESTART]
agrees() {
    metrics=$1
    shift
    sed 's/.*"loss": *\([-+.e0-9]*\).*/\1/' "$metrics" >"$work/got"
    expected "$@" >"$work/wanted"
    paste "$work/got" "$work/wanted" | awk -v n="$(($3 - $2 + 1))" '{ d = $1 - $2; if (d > 1e-12 || d < -1e-12) exit 1 }
        END { exit NR != n }'
}

plan() {
    run meshtf-plan search "$work/chain.json" --machine cpu-host --mesh rows:1 --precision f64 --stages 4 --microbatches "$2" \
        --schedule "$1" -o "$work/$1-$2.json"
    claim "$1 with $2 micro-batches is planned" exits 0
}

train() {
    name=$1
    shift
    run mpirun -n 4 meshtf-run "$work/$name.json" --data "$work/x.npy" --data "$work/y.npy" --metrics "$work/$name.metrics" "$@"
    claim "$name runs" exits 0
    claim "memory and transfers are those of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
}

plan 1f1b 2
train 1f1b-2 --steps 12
claim "without delays the losses are those of the formula" agrees "$work/1f1b-2.metrics" "0 0 0 0" 1 12
for others in "1 0 0 0" "0 0 0 1" "1 1 1 1"; do
    agrees "$work/1f1b-2.metrics" "$others" 1 12 && touch "$work/blind"
done
claim "and not those of delays" [ ! -e "$work/blind" ]
plan pipedream 2
train pipedream-2 --steps 12
claim "two micro-batches a step: stages lag by 2, 1, 1 and 0 steps" agrees "$work/pipedream-2.metrics" "2 1 1 0" 1 12
plan pipedream 4
train pipedream-4 --steps 12
claim "four: by 1, 1, 1 and 0" agrees "$work/pipedream-4.metrics" "1 1 1 0" 1 12
plan pipedream-2bw 4
train pipedream-2bw-4 --steps 12
claim "2BW: all stages by 1" agrees "$work/pipedream-2bw-4.metrics" "1 1 1 1" 1 12

plan pipedream 1
train pipedream-1 --steps 12
claim "each minibatch a step, as PipeDream has it: by 3, 2, 1 and 0" agrees "$work/pipedream-1.metrics" "3 2 1 0" 1 12

# A checkpoint lets the pipeline run empty, in the run that writes it as in the one that goes on.
train pipedream-2 --steps 12 --checkpoint "$work/check" --checkpoint-every 7
claim "delays begin anew behind a checkpoint" agrees "$work/pipedream-2.metrics" "2 1 1 0" 1 12 7
rm -r "$work/check"
train pipedream-2 --steps 7 --checkpoint "$work/check" --checkpoint-every 7
train pipedream-2 --steps 12 --checkpoint "$work/check" --checkpoint-every 7 --resume
claim "and a run that goes on has the same losses" agrees "$work/pipedream-2.metrics" "2 1 1 0" 1 12 7

rm -r "$work/check"
train pipedream-1 --steps 7 --checkpoint "$work/check" --checkpoint-every 7
train pipedream-1 --steps 12 --checkpoint "$work/check" --checkpoint-every 7 --resume
claim "nor others where each minibatch is a step" agrees "$work/pipedream-1.metrics" "3 2 1 0" 1 12 7

# Without --metrics only steps that are printed are looked at by all ranks; between these each runs as far ahead as its
# micro-batches let it. printed DELAYS LAST: the printed lines have the losses of the formula.
printed() {
    expected "$1" 1 "$2" >"$work/wanted"
    sed -n 's/^step *\([0-9]*\)\/.* loss \([.0-9]*\) .*/\1 \2/p' "$work/out" >"$work/got"
    awk 'NR == FNR { wanted[FNR] = $1; next } { d = $2 - wanted[$1]; n++; if (d > 5.1e-5 || d < -5.1e-5) exit 1 } END { exit n < 20 }' \
        "$work/wanted" "$work/got"
}
run mpirun -n 4 meshtf-run "$work/pipedream-1.json" --data "$work/x.npy" --data "$work/y.npy" --steps 90
claim "ranks that run ahead of one another compute the same" printed "3 2 1 0" 90
printed "0 0 0 0" 90 && touch "$work/unseen"
claim "and no delays would be seen" [ ! -e "$work/unseen" ]
sed 's/"rate": 0.05/"rate": 1e30/' "$work/chain.json" >"$work/high.json"
run meshtf-plan search "$work/high.json" --machine cpu-host --mesh rows:1 --precision f64 --stages 4 --microbatches 1 \
    --schedule pipedream -o "$work/high-plan.json"
run mpirun -n 4 meshtf-run "$work/high-plan.json" --data "$work/x.npy" --data "$work/y.npy" --steps 90 --checkpoint "$work/bad" \
    --checkpoint-every 40
claim "a loss that is not finite ends the run though ranks have gone on" exits 1
claim "it is told of the step that it belongs to" sh -c "grep -Eq 'the loss of step [2-9] is (infinite|not a number) \(that of step [1-8] was [0-9]' '$work/err'"
claim "and how to have its cause" says_error "a run with --metrics FILE says what was so first"
claim "and no checkpoint keeps what came of it" sh -c "! ls '$work/bad' 2>/dev/null | grep -q step"

# The second stage tells the first a mean for its update, which is not made where the loss is not finite: nobody waits for it.
cat >"$work/told.json" <<'EOF'
{"meshtf_graph": 1, "name": "told", "dimensions": {"batch": 8, "one": 1},
 "inputs": [{"name": "x", "dims": ["batch", "one"], "feed": "features"}],
 "variables": [{"name": "a", "dims": ["one"], "init": "ones"}, {"name": "b", "dims": ["one"], "init": "ones"},
               {"name": "m", "dims": ["one"], "init": "ones", "frozen": true}],
 "operations": [{"name": "xm", "op": "add", "inputs": ["x", "m"], "stage": 1},
                {"name": "xma", "op": "multiply", "inputs": ["xm", "a"], "stage": 1},
                {"name": "xmab", "op": "multiply", "inputs": ["xma", "b"], "stage": 2},
                {"name": "mean", "op": "reduce_mean", "inputs": ["xmab"], "dims": ["one"], "stage": 2},
                {"name": "square", "op": "square", "inputs": ["xmab"], "stage": 2},
                {"name": "loss", "op": "reduce_mean", "inputs": ["square"], "dims": [], "stage": 2},
                {"name": "next", "op": "scale", "inputs": ["mean"], "factor": 0.5}],
 "updates": [{"variable": "m", "value": "next"}], "loss": "loss", "optimizer": {"kind": "sgd", "rate": 1e30}}
EOF
for schedule in 1f1b pipedream; do
    run meshtf-plan search "$work/told.json" --machine cpu-host --mesh rows:1 --precision f64 --stages 2 --microbatches 4 --schedule "$schedule" \
        -o "$work/told-plan.json"
    run timeout 60 mpirun -n 2 meshtf-run "$work/told-plan.json" --steps 40 --metrics "$work/told.metrics"
    claim "$schedule: a loss that is not finite ends the run though an update is waited for" says_error 'the first result that is '
done
run mpirun -n 4 meshtf-run "$work/pipedream-1.json" --steps 2 --verify
claim "one processor has no weights that lag" says_error 'stages of "pipedream" compute with weights of earlier steps'
sed 's/"batch_dimension": "batch",//' "$work/pipedream-1.json" >"$work/whole.json"
run meshtf-plan check "$work/whole.json"
claim "one micro-batch names its dimension" says_error '"batch_dimension" must name what counts examples of "chain"'

run meshtf-plan search "$work/chain.json" --machine cpu-host --mesh rows:1 --stages 4 --microbatches 2 --schedule pipedream-2bw
claim "2BW needs micro-batches enough" says_error "which is enough with 3 micro-batches or more for 4 stages, not 2"
meshtf-plan model gpt --preset tiny -o "$work/tied.json" >"$work/out"
run meshtf-plan search "$work/tied.json" --machine cpu-host --mesh rows:1 --stages 2 --microbatches 2 --schedule pipedream
claim "shared variables are refused" says_error "which is sent once a step: only synchronous schedules can do that"
run meshtf-plan search "$work/chain.json" --machine cpu-host --mesh rows:1 --stages 4 --microbatches 4 --schedule auto
claim "nobody gets delays who does not ask for them" sh -c "! grep -q pipedream '$work/out'"
done_testing
