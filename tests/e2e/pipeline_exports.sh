# SPDX-License-Identifier: GPL-3.0-or-later
# Plans of pipelines in the words of other tools, read back; and what stands in the way of those that have none.
# seconds: 240
. tests/support/tap.sh

meshtf-plan model transformer-lm --preset demo --layers 8 --batch 16 --length 16 -o "$work/g.json" >/dev/null

search() { # NAME OPTION...
    name=$1
    shift
    run meshtf-plan search "$work/g.json" --machine cpu-host --microbatches 4 --precision f32 "$@" -o "$work/$name.json"
    claim "$name is planned" exits 0
}

export_to() { # FORM NAME
    run meshtf-plan export "$work/$2.json" --to "$1" -o "$work/text"
}

refused() { # FORM NAME SENTENCE
    export_to "$1" "$2"
    claim "$1 cannot say $2" exits 2
    claim "  one sentence says what stands in the way" says_error "$3"
}

# layers_of NAME: the layers of each stage, "2 3 3", counted in the plan's graph.
layers_of() {
    jq -r '[.graph.operations[] | select(.iteration != null and (.phase // "forward") == "forward") | [.stage, .iteration]] | unique |
        group_by(.[0]) | map(length | tostring) | join(" ")' "$work/$1.json"
}

search even --mesh rows:1 --stages 4 --recompute none
search unequal --devices 3 --stages 3 --recompute none --cut layers
jq '(.operations | length) as $n | .operations |= [to_entries[] | .value + {stage: (1 + (.key * 3 / $n | floor))}]' "$work/g.json" >"$work/own.json"
run meshtf-plan search "$work/own.json" --machine cpu-host --microbatches 4 --mesh rows:1 --stages 3 -o "$work/within.json"
claim "stages of a graph's own may begin within layers" exits 0
search chunks --mesh rows:1 --stages 2 --schedule interleaved --recompute layers
search zero-bubble --mesh rows:1 --stages 2 --schedule zb-h1 --recompute none

export_to megatron unequal
claim "stages of other sizes are a layout of Megatron-Core" grep -qF -- "--pipeline-model-parallel-size 3 --pipeline-model-parallel-layout" "$work/text"
# The layout, expanded and counted.
sed 's/.*layout "\([^"]*\)".*/\1/' "$work/text" | tr '|' '\n' |
    awk '{ n = 0; while (match($0, /t(\*[0-9]+)?/)) { t = substr($0, RSTART, RLENGTH); n += t == "t" ? 1 : substr(t, 3); $0 = substr($0, RSTART + RLENGTH) }
           printf "%s%d", (NR > 1 ? " " : ""), n } END { print "" }' >"$work/layers"
claim "with as many layers a stage as the plan has" [ "$(cat "$work/layers")" = "$(layers_of unequal)" ]
claim "that begins with the embedding and ends with the loss" grep -qE 'layout "Et[^"]*L"' "$work/text"
export_to megatron chunks
claim "chunks are exported" exits 0
claim "with what is recomputed" grep -qF -- "--recompute-granularity full" "$work/text"
claim "their batch is four micro-batches of four" grep -qF -- "--micro-batch-size 4 --global-batch-size 16" "$work/text"
case "$(layers_of chunks)" in
"2 2 2 2") claim "as layers a virtual stage" grep -qF -- "--num-layers-per-virtual-pipeline-stage 2" "$work/text" ;;
*) claim "as a layout of four" [ "$(tr -cd '|' <"$work/text")" = '|||' ] ;;
esac
search some --devices 2 --stages 2 --recompute layers:3
claim "every stage says that its first layers are recomputed" \
    [ "$(jq -c '[.stages[].execution.recompute]' "$work/some.json")" = '["layers:3","layers:3"]' ]
claim "and the graph is the one that is trained" [ "$(jq '[.graph.operations[].origin] | index("clone")' "$work/some.json")" = null ]
export_to megatron some
claim "which Megatron-LM is told" grep -qF -- "--recompute-method block --recompute-num-layers 3" "$work/text"
search cheap --mesh rows:1 --stages 2 --recompute cheap
export_to megatron cheap
claim "cheap results are, where the execution says so" grep -qF -- "--recompute-granularity selective" "$work/text"
refused deepspeed some "compute all layers again or none"
refused alpa some "Alpa computes all layers again or none; stage 0"
run meshtf-plan search "$work/g.json" --machine cpu-host --devices 2 --stages 2 --microbatches 4 --recompute layers:9
claim "more layers than a stage has are bad input" says_error "repeats 4 layers in a stage"
refused megatron zero-bubble "runs 1f1b or interleaved, and the plan's schedule is zb-h1"
refused torchtitan zero-bubble "dualpipe-v, and the plan's schedule is zb-h1"
refused torchtitan unequal "divide layers evenly; stage"
export_to torchtitan even
claim "torchtitan takes equal stages" grep -qxF -- "--parallelism.pipeline_parallel_layers_per_stage 2" "$work/text"
claim "their schedule by its name in PyTorch" grep -qxF -- "--parallelism.pipeline_parallel_schedule 1F1B" "$work/text"
claim "and the batch of all their micro-batches" grep -qxF -- "--training.local_batch_size 16" "$work/text"
export_to torchtitan chunks
claim "chunks, too, all recomputed" [ "$(grep -c "Interleaved1F1B\|mode full" "$work/text")" = 2 ]
refused deepspeed zero-bubble "run 1f1b, and the plan's schedule is zb-h1"
refused alpa zero-bubble "schedule is zb-h1"
refused deepspeed unequal "divides layers evenly; stage"
refused megatron within "cuts pipelines between layers; layer 2 lies in stages 0 and 1"
search anywhere --devices 3 --stages 3 --recompute none
claim "what may be cut within layers is no slower" [ "$(jq --slurpfile layers "$work/unequal.json" \
    '.predicted.step_seconds <= $layers[0].predicted.step_seconds' "$work/anywhere.json")" = true ]
run meshtf-plan search "$work/g.json" --machine cpu-host --devices 3 --stages 3 --cut here
claim "other places to cut are bad input" says_error '--cut "here" must be any or layers'
run meshtf-plan search "$work/g.json" --machine cpu-host --devices 40 --stages 40 --cut layers
claim "so are more stages than begin with layers" says_error '40 stages that begin with layers need 40 such parts'
run meshtf-plan search "$work/g.json" --machine cpu-host --mesh rows:1 --stages 3 --cut layers
claim "stages on a mesh may begin with layers" says "3 stages on 3 devices"
run meshtf-plan search "$work/g.json" --machine cpu-host --devices 3 --schedule zb-h1
claim "and what pipelines have where there is none" says_error "--schedule is for pipelines: with --stages S"
refused jax even "only to torch-pipelining, megatron, deepspeed, torchtitan, alpa, onnx, slurm or rankfile"
# Two stages of eight devices on nodes of eight: the second starts where the first ends.
run meshtf-plan search "$work/g.json" --machine h100 --devices 16 --stages 2 --microbatches 4 -o "$work/nodes.json"
export_to slurm nodes
claim "Slurm starts each stage on its nodes" grep -qxF "places=(0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1)" "$work/text"
claim "of which there are two" grep -qxF -- "#SBATCH --nodes=2" "$work/text"
run meshtf-plan export "$work/nodes.json" --to rankfile --hosts a,b
claim "a rankfile names the last device" says "rank 15=b slot=7"
run meshtf-plan export "$work/nodes.json" --to rankfile --hosts a
claim "and asks for as many names as there are nodes" says_error "the plan needs 2"

# Searched for Megatron-LM: one way for all stages, cut between layers.
search megatron --devices 4 --stages 2 --exportable megatron
export_to megatron megatron
claim "what is searched for Megatron-LM is exported" grep -qE -- "^--tensor-model-parallel-size [124] --pipeline-model-parallel-size 2 --micro-batch-size" "$work/text"
run mpirun -n 4 meshtf-run "$work/megatron.json" --steps 3 --data LICENSE --metrics "$work/megatron.metrics"
claim "and runs" exits 0
claim "with memory and transfers of the plan" sh -c "[ \$(grep -c 'equal to the byte on every rank' '$work/out') = 2 ]"
search megatron-chunks --devices 4 --stages 2 --exportable megatron --schedule interleaved
export_to megatron megatron-chunks
claim "chunks of equal layers are flags" grep -qF -- "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2" "$work/text"
search megatron-three --devices 6 --stages 3 --exportable megatron --schedule auto
export_to megatron megatron-three
claim "eight layers on three ranks are a layout" grep -qE -- "--pipeline-model-parallel-size 3 .*layout \"Et[^\"]*L\"" "$work/text"
meshtf-plan model gpt --layers 4 --batch 8 --length 32 --d-model 256 --d-ff 1024 --heads 4 --d-kv 64 --vocab 512 -o "$work/tied.json" >/dev/null
run meshtf-plan search "$work/tied.json" --machine a100 --devices 8 --stages 2 --exportable megatron -o "$work/tied-plan.json"
claim "tied embeddings in both stages are planned" exits 0
export_to megatron tied-plan
claim "and exported" grep -qF -- "--pipeline-model-parallel-size 2" "$work/text"
# GPT-2's vocabulary of 50257 divides by no axis, and bf16 keeps master weights: neither may make a plan that Megatron-LM has not.
meshtf-plan model gpt --preset gpt2-small --layers 4 --batch 64 --length 1024 -o "$work/odd.json" >/dev/null
for precision in f32 bf16; do
    run meshtf-plan search "$work/odd.json" --machine a100 --devices 8 --stages 2 --microbatches 8 --precision $precision --exportable megatron -o "$work/odd-$precision.json"
    cp "$work/out" "$work/odd-$precision.said"
    export_to megatron odd-$precision
    claim "an odd vocabulary in $precision is planned as Megatron-LM has it" grep -qF -- "--use-distributed-optimizer" "$work/text"
done
claim "master weights that are whole are told" grep -qF "optimizer sharded (ZeRO-1) but for the master weights" "$work/odd-bf16.said"

meant() { # SENTENCE OPTION...
    sentence=$1
    shift
    run meshtf-plan search "$work/g.json" --machine cpu-host --stages 2 --exportable megatron "$@"
    claim "refused: $*" says_error "$sentence"
}
meant "runs 1f1b or interleaved, not zb-h1" --devices 4 --schedule zb-h1
meant "give --devices, no --mesh" --mesh rows:2
meant "--recompute with one word" --devices 4 --recompute layers,none
meant "no cut into stages fits in 1.00 MiB" --devices 4 --memory 1MiB
meshtf-plan model t5 -o "$work/t5.json" >/dev/null
run meshtf-plan search "$work/t5.json" --machine cpu-host --devices 4 --stages 2 --exportable megatron
claim "two kinds of layers are no chain" says_error "the graph has 2 kinds of layers"

export_to deepspeed even
if [ "$(layers_of even)" = "2 2 2 2" ]; then
    claim "DeepSpeed's configuration has the stages" [ "$(jq -c '[.pipeline.stages, .pipeline.activation_checkpoint_interval]' "$work/text")" = '[4,0]' ]
    claim "and batches that multiply" \
        [ "$(jq '.train_batch_size == .train_micro_batch_size_per_gpu * .gradient_accumulation_steps' "$work/text")" = true ]
fi

python=/usr/bin/python3
mkdir "$work/stubs"
cat >"$work/stubs/alpa.py" <<'STUB'
def PipeshardParallel(*, num_micro_batches, pipeline_schedule, layer_option, stage_option, default_auto_sharding_option):
    assert pipeline_schedule in ("1f1b", "gpipe", "inference")
    print(num_micro_batches, layer_option, [len(ids) for ids in stage_option[0]])
    assert sum(stage_option[0], []) == list(range(layer_option)), stage_option
    for physical, logical, options in zip(*stage_option[1:]):
        assert physical[0] * physical[1] == logical[0] * logical[1]
        assert set(options) <= {"force_batch_dim_to_mesh_dim"}
def AutoLayerOption(*, layer_num, remat_mode="none"):
    return layer_num
def AutoShardingOption(*, prefer_reduce_scatter):
    return prefer_reduce_scatter
def ManualStageOption(*, forward_stage_layer_ids, submesh_physical_shapes, submesh_logical_shapes, submesh_autosharding_option_dicts):
    return forward_stage_layer_ids, submesh_physical_shapes, submesh_logical_shapes, submesh_autosharding_option_dicts
STUB
if [ -x "$python" ]; then
    export_to alpa unequal
    run env PYTHONPATH="$work/stubs" $python "$work/text"
    claim "Alpa's stages have the plan's layers" [ "$(cat "$work/out")" = "4 8 [$(layers_of unequal | sed 's/ /, /g')]" ]
    search wide --mesh rows:2 --stages 2 --schedule zb-v
    run meshtf-plan export "$work/wide.json" --to onnx -o "$work/wide.onnx"
    claim "a pipeline there and back is an ONNX file" exits 0
    run $python tests/support/published/onnx_stages.py "$work/wide.onnx"
    claim "of four devices" says "devices 4"
    claim "whose nodes all have stages on their domain's devices" [ "$(tail -n +2 "$work/out" | tr '\n' ';')" = "0 0,1;1 2,3;2 2,3;3 0,1;" ]
else
    skip "$python is not installed"
fi
run meshtf-plan export "$work/even.json" --to onnx --weights "$work/nothing" -o "$work/x.onnx"
claim "weights that are not there are bad input" exits 2
done_testing
