# SPDX-License-Identifier: GPL-3.0-or-later
# Graphs cut into pipeline stages: the losses are those of the whole, memory and what is sent are those of
# the plan.
# seconds: 480
. tests/support/tap.sh

transformer=layouts/library/graphs/transformer-small.json
sizes='--dim batch=8 --dim length=16 --dim memory_length=16'
mlp=layouts/library/graphs/mlp.json

losses() { sed 's/.*"loss": *\([-+.e0-9]*\).*/\1/' "$1"; }

# same A B TOLERANCE: two runs of six steps whose losses differ by no more, relatively.
same() {
    losses "$1" >"$work/a"
    losses "$2" >"$work/b"
    paste "$work/a" "$work/b" | awk -v most="$3" '{ d = ($1 - $2) / $1; if (d > most || d < -most) exit 1 }
        END { exit NR != 6 }'
}

# same_norms A B: the norms of all six steps' gradients, too.
same_norms() {
    sed 's/.*"gradient_norm": *\([-+.e0-9]*\).*/\1/' "$1" >"$work/a"
    sed 's/.*"gradient_norm": *\([-+.e0-9]*\).*/\1/' "$2" >"$work/b"
    paste "$work/a" "$work/b" | awk '{ d = ($1 - $2) / $1; if (!(d < 1e-10 && d > -1e-10)) exit 1 }
        END { exit NR != 6 }'
}

# The kernels of all domains are those of the table.
kernels_add_up() {
    awk '$1 == "all" { all = $2 } / rank [0-9]+: stage/ { sub(/.*: stage( [0-9]+)+ /, ""); sum += $1 }
        END { exit !(all > 0 && all == sum) }' "$work/out"
}

# plan NAME GRAPH OPTION...: searches; train NAME RANKS OPTION...: six steps.
plan() {
    name=$1
    graph=$2
    shift 2
    run meshtf-plan search "$graph" --machine cpu-host "$@" -o "$work/$name.json"
    claim "$name is planned" exits 0
}

train() {
    name=$1
    ranks=$2
    shift 2
    run mpirun -n "$ranks" meshtf-run "$work/$name.json" --steps 6 --metrics "$work/$name.metrics" "$@"
    claim "$name runs on $ranks ranks" exits 0
}

plan whole "$mlp" --mesh rows:1 --microbatches 4 --precision f64
train whole 1
for schedule in 1f1b gpipe eager-1f1b; do
    for stages in 2 3; do
        [ "$schedule" != 1f1b ] && [ "$stages" = 3 ] && continue
        plan "$stages-$schedule" "$mlp" --mesh rows:1 --microbatches 4 --precision f64 --stages "$stages" --schedule "$schedule"
        train "$stages-$schedule" "$stages"
        claim "$stages stages of $schedule give the losses of the whole" same "$work/whole.metrics" "$work/$stages-$schedule.metrics" 1e-10
        claim "and the norms of its gradients" same_norms "$work/whole.metrics" "$work/$stages-$schedule.metrics"
        claim "memory and transfers are those of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
    done
done
run meshtf-plan search "$mlp" --machine cpu-host --mesh rows:1 --microbatches 4 --stages 2 --memory 100KiB
claim "where no stages fit it is said what would do" says_error "the smallest limit found that would do is"
run meshtf-plan search "$mlp" --machine cpu-host --devices 3 --microbatches 4 --stages 2 --memory 100KiB
claim "nor is it stages of unequal size that are missed" says_error "no cut into stages fits in 100.00 KiB a device"
run meshtf-plan search "$mlp" --machine cpu-host --devices 3 --microbatches 4 --stages 2 --schedule zb-v
claim "stages of several parts have equal devices" says_error "with 2 parts of the graph each, 2 stages have equal devices, and 3 do not divide so"
run meshtf-plan search "$mlp" --machine cpu-host --devices 3 --microbatches 4 --stages 2 --memory 100KiB
enough=$(sed -n 's/.*would do is .* (--memory \([0-9]*\)).*/\1/p' "$work/err")
run meshtf-plan search "$mlp" --machine cpu-host --devices 3 --microbatches 4 --stages 2 --memory "${enough:-1}"
claim "and what would do does" exits 0
run meshtf-plan search "$mlp" --machine cpu-host --mesh rows:1 --microbatches 4 --stages 2
claim "who gives the mesh of a stage has the cut searched, too" says "the cut is the best under layouts made by hand"
run meshtf-run "$work/3-1f1b.json" --dry-run
claim "--dry-run needs no other ranks and lowers all stages" says "  rank 2: "
claim "and says the step" says "is the bubble, as predicted"
sed 's/"program_sha256":[[:space:]]*"/&0/' "$work/3-1f1b.json" >"$work/changed.json"
run meshtf-run "$work/changed.json" --dry-run
claim "programs that are not the plan's are told" exits 2
run mpirun -n 2 meshtf-run "$work/3-1f1b.json" --steps 1
claim "to run it takes its ranks" says_error "the plan is for 3 ranks (3 stages), but there are 2"

# Weight gradients apart, several parts of the graph on a device, there and back.
for schedule in zb-h1 zb-2p interleaved zb-v v-min dualpipe-v; do
    plan "$schedule" "$mlp" --mesh rows:1 --microbatches 4 --precision f64 --stages 2 --schedule "$schedule"
    train "$schedule" 2
    claim "$schedule gives the losses of the whole" same "$work/whole.metrics" "$work/$schedule.metrics" 1e-10
    claim "and the norms of its gradients" same_norms "$work/whole.metrics" "$work/$schedule.metrics"
    claim "time is told by kernel and by domain" kernels_add_up
    claim "memory and transfers are those of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
done
plan fastest "$mlp" --mesh rows:1 --microbatches 4 --precision f64 --stages 2 --schedule auto
claim "the fastest schedule is said beside others" says "with 1f1b it takes"
train fastest 2
claim "and gives the losses of the whole" same "$work/whole.metrics" "$work/fastest.metrics" 1e-10

# Two parts on a device share its memory as they need it, and where 1F1B holds too much another does.
meshtf-plan model gpt --preset tiny --layers 16 --batch 64 --length 128 -o "$work/deep.json" >"$work/out"
deep="--machine cpu-host --mesh rows:1 --microbatches 16 --stages 8 --recompute none --memory 36MiB"
# shellcheck disable=SC2086
run meshtf-plan search "$work/deep.json" $deep --schedule 1f1b -o "$work/deep-1f1b.json"
claim "1F1B on eight stages fits where the first ones have little to do" exits 0
# shellcheck disable=SC2086
run meshtf-plan search "$work/deep.json" $deep --schedule auto -o "$work/deep-auto.json"
claim "a schedule that holds less is found" says "schedule v-min"
claim "which has shorter steps" [ "$(jq --slurpfile other "$work/deep-1f1b.json" \
    '.predicted.step_seconds < $other[0].predicted.step_seconds' "$work/deep-auto.json")" = true ]
claim "what it is in the field's words" says "parallelism    pipeline parallel"
claim "and that it fits" says "fits           yes"

# The embedding of the transformer is read by the first and the last stage.
# The sizes are split into words on purpose.
# shellcheck disable=SC2086
plan tied "$transformer" $sizes --mesh rows:1 --microbatches 4 --precision f64
train tied 1 --data LICENSE
# shellcheck disable=SC2086
plan tied-2x2 "$transformer" $sizes --mesh rows:2 --microbatches 4 --precision f64 --stages 2
train tied-2x2 4 --data LICENSE
claim "stages of two ranks with a tied embedding give the losses of the whole" same "$work/tied.metrics" "$work/tied-2x2.metrics" 1e-10
claim "and the norms that are clipped" same_norms "$work/tied.metrics" "$work/tied-2x2.metrics"
claim "their plan says what the model does as that of the whole" test "$(jq .predicted.model_flops "$work/tied-2x2.json")" = "$(jq .predicted.model_flops "$work/tied.json")"
claim "in as many tokens" test "$(jq .predicted.items_per_step "$work/tied-2x2.json")" = "$(jq .predicted.items_per_step "$work/tied.json")"
claim "and where the step goes, all of it" jq -e '.predicted | ((.shares | add) / .step_seconds - 1) | fabs < 1e-9' "$work/tied-2x2.json"
claim "every rank's collectives are those of its programs" says "every rank's calls and bytes equal its programs'"
claim "their memory and transfers are those of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
run mpirun -n 4 meshtf-run "$work/tied-2x2.json" --steps 6 --metrics "$work/by-mpi.metrics" --data LICENSE --only-mpi
claim "so do those that exchange by MPI alone" same "$work/tied.metrics" "$work/by-mpi.metrics" 1e-10
claim "which copy nothing out of arenas" says "equal to the byte on every rank, 0 B copied"
sed 's/"meshtf_pipeline_plan"/"transfers": {"mpi": [0], "gathered": [2, 3]}, &/' "$work/tied-2x2.json" >"$work/told.json"
train told 4 --data LICENSE
claim "a plan may say so of one transfer, and of others that receivers gather them" same "$work/tied.metrics" "$work/told.metrics" 1e-10
claim "to the byte as planned" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
claim "the others are copied" sh -c "grep -q 'on every rank, [1-9].* copied' '$work/out'"
# shellcheck disable=SC2086
plan again "$transformer" $sizes --mesh rows:1 --microbatches 2 --precision f64 --stages 3 --recompute layers
train again 3 --data LICENSE
claim "so do stages that compute layers again" same "$work/tied.metrics" "$work/again.metrics" 1e-10

# Stages of two ranks, each with two parts of the graph, which clip by one norm.
# shellcheck disable=SC2086
plan zb-v-2x2 "$transformer" $sizes --mesh rows:2 --microbatches 4 --precision f64 --stages 2 --schedule zb-v
train zb-v-2x2 4 --data LICENSE
claim "zb-v on stages of two ranks gives the losses of the whole" same "$work/tied.metrics" "$work/zb-v-2x2.metrics" 1e-10
claim "memory and transfers are those of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"

# In bfloat16 the embedding goes to the last stage as it is stored, once a step. Most is sent by the last stage: 64 KiB of the
# embedding's gradient, and for each micro-batch the gradient of 2 x 32 x 64 activations, 8 KiB: what the stage's operations
# add to it is summed before it goes.
meshtf-plan model gpt --preset tiny --layers 4 -o "$work/gpt.json" >"$work/out"
plan narrow "$work/gpt.json" --mesh rows:1 --microbatches 4 --precision bf16
train narrow 1 --data LICENSE
plan narrow-cut "$work/gpt.json" --mesh rows:1 --microbatches 4 --precision bf16 --stages 2
train narrow-cut 2 --data LICENSE
claim "stages in bfloat16 with a tied embedding give the losses of the whole" same "$work/narrow.metrics" "$work/narrow-cut.metrics" 1e-4
claim "what they send is what it was planned to be" says "sent to stages      96.00 KiB"

# Encoder and decoder: what the encoder makes goes to every later stage, two tables are read by several.
meshtf-plan model transformer --preset tiny -o "$work/translator-graph.json" >"$work/out"
for i in 1 2 3 4 5 6 7 8 9; do printf 'the house %d is here\tla maison %d est ici\n' "$i" "$i"; done >"$work/pairs.tsv"
plan translator "$work/translator-graph.json" --mesh rows:1 --microbatches 4 --precision f64
train translator 1 --data "$work/pairs.tsv"
plan translator-cut "$work/translator-graph.json" --mesh rows:1 --microbatches 4 --precision f64 --stages 3 --schedule zb-v
train translator-cut 3 --data "$work/pairs.tsv"
claim "a cut encoder and decoder gives the losses of the whole" same "$work/translator.metrics" "$work/translator-cut.metrics" 1e-10
claim "memory and transfers are those of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"

run meshtf-plan search "$work/translator-graph.json" --machine cpu-host --devices 2 --stages 2
claim "the search cuts it, too, though its loss ends in numbers that are divided behind all micro-batches" exits 0

# Networks with loops: each is run by one stage, its gradients of inputs and of weights apart.
meshtf-plan model lstm-lm --preset tiny --batch 4 --length 6 -o "$work/loops.json" >"$work/out"
plan recurrent "$work/loops.json" --mesh rows:1 --microbatches 2 --precision f64
train recurrent 1 --data LICENSE
plan recurrent-cut "$work/loops.json" --devices 2 --microbatches 2 --precision f64 --stages 2 --schedule zb-h1
train recurrent-cut 2 --data LICENSE
claim "stages of loops give the losses of the whole" same "$work/recurrent.metrics" "$work/recurrent-cut.metrics" 1e-10
claim "memory and transfers are those of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"

held_out() { sed -n 's/.*"held_out_loss": *\([-+.e0-9]*\).*/\1/p' "$1"; }
run mpirun -n 1 meshtf-run "$work/tied.json" --data LICENSE --steps 2 --eval-every 2 --eval-batches 2 --metrics "$work/one.metrics"
run mpirun -n 4 meshtf-run "$work/zb-v-2x2.json" --data LICENSE --steps 2 --eval-every 2 --eval-batches 2 --metrics "$work/four.metrics"
claim "evaluation goes through the stages" exits 0
held_out "$work/one.metrics" >"$work/a"
held_out "$work/four.metrics" >"$work/b"
claim "to the same loss of held out data" sh -c "paste '$work/a' '$work/b' |
    awk '{ d = (\$1 - \$2) / \$1; if (d > 1e-10 || d < -1e-10) exit 1 } END { exit NR != 1 }'"
claim "and is not counted" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"

# Checkpoints know nothing of stages: one of two stages goes on without stages, and the other way round.
run mpirun -n 4 meshtf-run "$work/tied-2x2.json" --data LICENSE --steps 3 --checkpoint "$work/cut"
claim "a pipeline writes checkpoints" exits 0
run mpirun -n 3 meshtf-run "$work/again.json" --data LICENSE --steps 6 --checkpoint "$work/cut" --resume --metrics "$work/resumed.metrics"
claim "another cut goes on from it" exits 0
tail -n 3 "$work/tied.metrics" >"$work/tail.metrics"
claim "to the losses of the whole" sh -c "[ \$(wc -l <'$work/resumed.metrics') = 3 ]"
losses "$work/resumed.metrics" >"$work/a"
losses "$work/tail.metrics" >"$work/b"
claim "which the resumed run repeats" sh -c "paste '$work/a' '$work/b' |
    awk '{ d = (\$1 - \$2) / \$1; if (d > 1e-10 || d < -1e-10) exit 1 } END { exit NR != 3 }'"
run mpirun -n 1 meshtf-run "$work/tied.json" --data LICENSE --steps 8 --checkpoint "$work/cut" --resume
claim "and so does a plan without stages" exits 0
run mpirun -n 4 meshtf-run "$work/zb-v-2x2.json" --data LICENSE --steps 10 --checkpoint "$work/cut" --resume
claim "and one that goes there and back" exits 0
run mpirun -n 1 meshtf-run "$work/tied.json" --data LICENSE --steps 11 --checkpoint "$work/cut" --resume
claim "whose checkpoint is whole" exits 0

# A loss that is no number: with this rate the second product is the first that overflows, which is the last stage's.
sed 's/"rate": *[0-9.e-]*/"rate": 1e30/' "$mlp" >"$work/steep.json"
for schedule in interleaved pipedream-2bw; do
    plan "steep-$schedule" "$work/steep.json" --mesh rows:1 --microbatches 4 --stages 2 --schedule "$schedule"
    run mpirun -n 2 meshtf-run "$work/steep-$schedule.json" --metrics "$work/steep.metrics"
    claim "a loss that is no number ends the run" exits 1
    # Infinite or not a number, as the order of a processor's sums has it.
    claim "what made it first is named, with its stage" says_error \
        'is that of "product2" (einsum) on rank 1, in stage '
done

run mpirun -n 2 meshtf-run "$work/tied-2x2.json" --data LICENSE --steps 1
claim "other numbers of ranks are bad input" exits 2
claim "the sentence says how many" says_error "the plan is for 4 ranks (2 stages)"
run mpirun -n 2 meshtf-run "$work/zb-v.json" --steps 2 --trace 2 --trace-file "$work/trace.json"
claim "pipelines are traced" exits 0
claim "pass by pass" sh -c "[ \$(grep -c '\"cat\":\"pass\"' '$work/trace.json') = 48 ]"
claim "a row a rank" sh -c "[ \$(grep -c thread_name '$work/trace.json') = 2 ]"
run mpirun -n 4 meshtf-run "$work/zb-v-2x2.json" --data LICENSE --steps 3 --verify
claim "every variable of a pipeline is that of the whole" says "verdict     the same training as on one processor"
run meshtf-plan check "$work/2-1f1b.json"
claim "a pipeline's plan is checked like any other" says "kind                           plan of a pipeline"
claim "with its stages" says "stages                         2"
run meshtf-plan search "$mlp" --machine a100 --software megatron-core --devices 2 --stages 2 --chunks 2 --schedule interleaved \
    --microbatches 4 --json
claim "what the host adds to a step comes once, not with every part of a domain" sh -c \
    "jq -e '.step_seconds > 0.05 and .step_seconds < 0.1 and all(.stages[]; .once_seconds < 0.01)' '$work/out'"
claim "what a search prints has the members of one without stages" \
    jq -e '.machine == "a100" and .predicted.step_seconds == .step_seconds and .search.stages == 4 and .search.memory_limit > 0' "$work/out"
sed 's/"schedule": *"1f1b"/"schedule": 7/' "$work/2-1f1b.json" >"$work/wrong.json"
run meshtf-plan check "$work/wrong.json"
claim "and a wrong one refused" bad_input
run meshtf-plan explain "$work/2-1f1b.json" w1
claim "a variable of a stage is explained, with the stage" says "stage 0 (of 0 to 1), device 0: they work "
claim "and what else would cost" says "longer  with"
run meshtf-plan explain "$work/2-1f1b.json" loss --json
claim "the last operation is that of the last stage" says '"stage": 1'
run meshtf-plan explain "$work/2-1f1b.json" nowhere
claim "an operation of no stage is bad input" bad_input
run meshtf-plan search "$mlp" --mesh rows:1 --stages 2 --microbatches 3
claim "micro-batches that do not divide the batch are bad input" bad_input
run meshtf-plan search "$mlp" --mesh rows:1 --stages 2 --schedule frobnicate --microbatches 4
claim "an unknown schedule is bad input" bad_input
run meshtf-plan search "$mlp" --mesh rows:1 --stages 2 --schedule interleaved --chunks 65 --microbatches 4
claim "more parts on a device than can be are bad input" bad_input
run meshtf-plan search "$mlp" --mesh rows:1 --stages 2 --microbatches 4 --frontier 4
claim "options that pipelines do not have are bad input" says_error "--frontier does not go with --stages yet"
run meshtf-plan search "$mlp" --mesh rows:1 --stages 2 --microbatches 4 --memory 1KiB
claim "stages that fit nowhere are status 3" exits 3
run meshtf-plan search "$mlp" --devices 1 --stages 2
claim "fewer devices than stages are bad input" bad_input
run meshtf-plan search "$mlp" --devices 5 --stages 2 --exportable megatron
claim "and so are unequal stages for Megatron-LM" bad_input
sed 's/0F0,/0F1,/' "$work/2-gpipe.json" >"$work/broken.json"
run mpirun -n 2 meshtf-run "$work/broken.json" --steps 1
claim "an order that misses a pass is bad input" exits 2

# The page of a pipeline: a box for each pass, a link to the page of each stage.
run meshtf-plan report "$work/zb-v.json" -o "$work/page"
claim "pipelines have a page" exits 0
if command -v xmllint >/dev/null; then
    claim "it is well formed" xmllint --noout "$work/page/index.html"
fi
claim "its picture has every pass" sh -c "[ \$(grep -o '<title>stage [0-9]*, micro-batch' '$work/page/index.html' | wc -l) = 48 ]"
claim "the whole graph is drawn with a frame a stage" sh -c "[ \$(grep -c 'label=\"stage [0-3] · device' '$work/page/graph.dot') = 4 ]"
claim "and on its page" grep -q 'id="cut-n0"' "$work/page/index.html"
claim "the devices are drawn with their domains" sh -c "[ \$(grep -c '<title>device [0-9]*: stage' '$work/page/index.html') = 2 ]"
claim "and links that bound transfers are named" grep -q '<td>out of device 0</td>' "$work/page/index.html"
claim "and every stage a page of its own" sh -c "for s in 0 1 2 3; do [ -s '$work'/page/stage-\$s/index.html ] || exit 1; done"
run meshtf-plan report "$work/zb-v.json" --metrics "$work/zb-v.metrics" --trace "$work/trace.json" -o "$work/page"
claim "what a run measured goes beside it" exits 0
claim "memory is what was planned" grep -q '<td>memory of rank 0</td>.*equal to the byte' "$work/page/index.html"
claim "and every pass is drawn as it ran, too" sh -c "[ \$(grep -o '<title>stage [0-9]*, micro-batch' '$work/page/index.html' | wc -l) = 96 ]"
if command -v xmllint >/dev/null; then
    claim "the page stays well formed" xmllint --noout "$work/page/index.html"
fi
run meshtf-plan report "$work/2-1f1b.json" --trace "$work/trace.json" -o "$work/page"
claim "a trace of another pipeline is no picture of this one" grep -q "The trace lacks passes of this pipeline" "$work/page/index.html"

# The search may choose cuts and devices of the stages itself.
plan searched "$mlp" --devices 4 --microbatches 4 --precision f64 --stages 2
claim "it says what its cut was chosen by" says "the cut is the best under layouts made by hand"
train searched 4
claim "a cut that was searched for gives the losses of the whole" same "$work/whole.metrics" "$work/searched.metrics" 1e-10
plan uneven "$mlp" --devices 3 --microbatches 4 --precision f64 --stages 2
claim "stages may have unequal devices" says "pipeline       2 stages on 3 devices"
train uneven 3
claim "which give the losses of the whole" same "$work/whole.metrics" "$work/uneven.metrics" 1e-10
claim "with the plan's memory and transfers" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
run meshtf-plan compare "$work/searched.json" "$work/uneven.json" "$work/whole.json"
claim "pipelines are compared with each other and with one mesh" says "2 stages on 3 devices, schedule 1f1b, 4 micro-batches"
claim "by their bubbles" says "bubble  "
run meshtf-plan compare "$work/searched.json" "$work/uneven.json" "$work/whole.json" -o "$work/beside"
claim "and as a page" grep -q '<h1>3 plans side by side</h1>' "$work/beside/index.html"
claim "with both schedules, on one scale" sh -c "xmllint --noout '$work/beside/index.html' &&
    [ \$(grep -o '<h3>[AB]: 1f1b</h3>' '$work/beside/index.html' | wc -l) = 2 ] &&
    [ \$(grep -o 'text-anchor=\"end\">[0-9.]* [a-z]*</text></svg>' '$work/beside/index.html' | sort -u | wc -l) = 1 ]"
claim "and what has no stages beside them" grep -q '<td>no stages, mesh' "$work/beside/index.html"
run meshtf-plan compare "$work/searched.json" "$work/whole.json" --json
claim "the whole has no stages" sh -c "jq -e '.[0].stages == 2 and .[0].bubble > 0 and (.[1] | has(\"stages\") or has(\"bubble\") | not)' '$work/out'"
run meshtf-plan search "$mlp" --machine cpu-host --devices 4 --stages auto --json
claim "the number of stages is searched for" exits 0
run meshtf-plan search "$mlp" --machine cpu-host --devices 2 --stages 2 --microbatches 4 --report "$work/alone"
claim "a stage of one device has no mesh" says "stage 0        device 0: "
claim "nor on its page" grep -q "<td>device 1</td>" "$work/alone/index.html"
claim "which says why it is cut so" grep -q 'The busiest domain computes for .* The cut is the best of ' "$work/alone/index.html"
claim "where tensors come and go whole" grep -q '<td class="mono">whole</td>' "$work/alone/index.html"
meshtf-plan model gpt --preset tiny --layers 8 --batch 16 --length 32 -o "$work/eight.json" >"$work/out"
plan one "$work/eight.json" --mesh rows:1 --microbatches 4 --precision f64
train one 1 --data LICENSE
plan chunks "$work/eight.json" --devices 4 --microbatches 4 --precision f64 --stages 2 --schedule interleaved
claim "domains of several parts are cut by the search, too" says "dynamic programming over stages"
claim "of two parts each" says "pipeline       4 stages on 4 devices"
train chunks 4 --data LICENSE
claim "and give the losses of the whole" same "$work/one.metrics" "$work/chunks.metrics" 1e-10
plan partly "$work/eight.json" --devices 2 --microbatches 4 --precision f64 --stages 2 --recompute layers:2
train partly 2 --data LICENSE
claim "so do stages that compute two of their layers again" same "$work/one.metrics" "$work/partly.metrics" 1e-10
claim "whose memory is that of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"

# What each stage recomputes is its own matter: the first stages hold the most micro-batches. Four stages hold
# 5.8, 5.2, 3.4, 2.0 MiB where all is kept, the first 2.5 where its layers are recomputed.
meshtf-plan model gpt --preset tiny --layers 8 --batch 16 --length 64 --d-model 32 --d-ff 128 --heads 2 --d-kv 16 -o "$work/narrow.json" >"$work/out"
plan kept "$work/narrow.json" --mesh rows:1 --microbatches 8 --precision f64 --recompute none
train kept 1 --data LICENSE
for case in "2 4500KiB layers,none" "4 4000KiB layers,layers,none,none"; do
    # shellcheck disable=SC2086
    set -- $case
    plan "own-$1" "$work/narrow.json" --devices "$1" --stages "$1" --microbatches 8 --precision f64 --memory "$2" --schedule 1f1b
    claim "early stages alone recompute" says "recomputation of each stage its own"
    claim "which is said of each" says "recomputation layers"
    train "own-$1" "$1" --data LICENSE
    claim "losses are those of one processor that keeps all" same "$work/kept.metrics" "$work/own-$1.metrics" 1e-10
    claim "memory and transfers are those of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
    run meshtf-plan check "$work/own-$1.json" --json
    claim "check says what each stage recomputes" [ "$(jq -r .recompute "$work/out")" = "$3" ]
    run meshtf-plan search "$work/narrow.json" --machine cpu-host --devices "$1" --stages "$1" --microbatches 8 --precision f64 --memory "$2" \
        --schedule 1f1b --recompute layers --json
    claim "all stages doing so take longer" [ "$(jq --slurpfile own "$work/own-$1.json" '.step_seconds > $own[0].predicted.step_seconds' "$work/out")" = true ]
done
# The user may say it of each stage, and of each of several parts that a domain has.
plan listed "$work/narrow.json" --devices 2 --stages 2 --microbatches 8 --precision f64 --recompute none,layers
claim "each stage recomputes what it is told" sh -c "[ \"\$(meshtf-plan check '$work/listed.json' --json | jq -r .recompute)\" = none,layers ]"
train listed 2 --data LICENSE
claim "to the losses of one processor that keeps all" same "$work/kept.metrics" "$work/listed.metrics" 1e-10
claim "with memory and transfers of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
plan listed-parts "$work/narrow.json" --devices 2 --stages 2 --microbatches 8 --precision f64 --schedule interleaved --recompute layers,none,none,cheap
claim "each part of a domain, too" sh -c "[ \"\$(meshtf-plan check '$work/listed-parts.json' --json | jq -r .recompute)\" = layers,none,none,cheap ]"
train listed-parts 2 --data LICENSE
claim "to the same losses" same "$work/kept.metrics" "$work/listed-parts.metrics" 1e-10
claim "as much memory as planned" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
plan listed-mesh "$work/narrow.json" --mesh rows:1 --stages 2 --microbatches 8 --recompute layers,none
claim "and stages of equal work" says "recomputation of each stage its own"
run meshtf-plan search "$work/narrow.json" --machine cpu-host --devices 2 --stages 2 --recompute layers,none,none
claim "a list of another length is bad input" says_error "says of 3 what is recomputed, and there are 2 stages"
run meshtf-plan search "$work/narrow.json" --machine cpu-host --devices 2 --stages auto --recompute layers,none
claim "so is a list without a number of stages" says_error "as many stages as --stages N says"
plan own-float "$work/narrow.json" --devices 4 --stages 4 --microbatches 8 --precision f32 --memory 2000KiB --schedule 1f1b
claim "so it is in float32" says "recomputation of each stage its own"
run meshtf-plan export "$work/own-float.json" --to megatron
claim "Megatron's flags say one thing for all stages" says_error "runs all stages alike; stage"
run meshtf-plan report "$work/own-4.json" -o "$work/own-page"
claim "the page says what each recomputes" [ "$(grep -c '<td>layers</td></tr>' "$work/own-page/index.html")" = 2 ]

run meshtf-plan export "$work/interleaved.json" --to torch-pipelining -o "$work/order.csv"
claim "the order goes to PyTorch" exits 0
run meshtf-plan schedule "$work/order.csv"
claim "and is read back as an order of two domains" exits 0
run meshtf-plan export "$work/interleaved.json" --to jax
claim "forms without pipelines say so" says_error "only to torch-pipelining, megatron"
run meshtf-plan search "$mlp" --machine cpu-host --devices 4 --stages none
claim "stages are a number or auto" bad_input
run meshtf-plan search "$mlp" --machine cpu-host --devices 4 --stages 2 --exportable jax
claim "stages are searched for Megatron-LM alone" says_error "--exportable (but megatron) does not go with --stages yet"
for option in --even "--seed 1" "--collectives ring" "--dump-after lower"; do
    # shellcheck disable=SC2086
    run meshtf-plan search "$mlp" --machine cpu-host --devices 4 --stages 2 $option
    claim "$option is not passed over silently" says_error "${option%% *} does not go with --stages yet"
done
# The best of stages and none: a loop's steps are short, matrices over slow links long.
step() { sed -n 's/^step  *\([0-9.]* [a-z]*\).*/\1/p' "$work/out"; }
meshtf-plan model lstm-lm -o "$work/lstm.json" >"$work/out"
run meshtf-plan search "$work/lstm.json" --devices 16 --machine a100
alone=$(step)
run meshtf-plan search "$work/lstm.json" --devices 16 --machine a100 --stages auto -o "$work/lstm.plan"
claim "auto keeps one mesh where stages take longer" [ "$(step)" = "$alone" ]
claim "and says what they would take" says "stages         none: in "
meshtf-plan report "$work/lstm.plan" -o "$work/page" >"$work/out"
claim "so does the page" grep -q "none: in .* micro-batches) a step takes" "$work/page/index.html"
meshtf-plan model mlp --hidden 8192 --features 8192 --layers 8 --batch 4096 -o "$work/wide.json" >"$work/out"
run meshtf-plan search "$work/wide.json" --devices 8 --machine p3.8xlarge --software meshtf --precision f32
alone=$(step)
claim "a search without stages says when they may be worth it" says "a pipeline may save some: --stages auto"
run meshtf-plan search "$work/wide.json" --devices 8 --machine p3.8xlarge --software meshtf --precision f32 --stages auto --schedule auto --report "$work/page"
claim "auto cuts where that is faster" says "stages on 8 devices, schedule"
claim "and says what the step takes without" says "without stages $alone a step"
claim "as its page does" grep -q "Without stages a step takes $alone" "$work/page/index.html"
run meshtf-plan search "$mlp" --machine cpu-host --devices 4 --stages auto --memory 64KiB
claim "where nothing fits the limit that would do is said" says_error "the smallest limit found that would do"
run meshtf-plan search "$mlp" --machine tpu-v4 --devices 7 --stages auto
claim "stages add up to devices that are no slice" says "stages on 7 devices, schedule"
run meshtf-plan search "$mlp" --machine cpu-host --mesh rows:2 --stages auto
claim "auto wants the devices" bad_input

# What a stage sends moves while it computes: in one of six steps at least, the second stage has ended its first pass
# before the first stage ended its last one, though messages are far above what MPI sends at once.
meshtf-plan model transformer-lm --preset tiny --d-model 128 --length 64 --batch 32 -o "$work/wide.json" >/dev/null
run meshtf-plan search "$work/wide.json" --devices 2 --stages 2 --microbatches 8 --schedule gpipe --machine cpu-host -o "$work/p.json"
run mpirun -n 2 meshtf-run "$work/p.json" --data LICENSE --steps 6 --trace 1:6 --trace-file "$work/moving.trace"
claim "messages move while stages compute" sh -c "jq -e '[.traceEvents[] | select(.cat == \"pass\")] |
    [.[] | select(.name == \"1F0\") | .ts + .dur] as \$first | [.[] | select(.name == \"0F7\") | .ts + .dur] as \$last |
    (\$first | length) == 6 and ([range(6) | select(\$first[.] < \$last[.])] | length) > 0' '$work/moving.trace'"
done_testing
