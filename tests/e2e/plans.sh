# SPDX-License-Identifier: GPL-3.0-or-later
# What a plan says of itself, first and honestly: command lines as strangers type them, each ending in
# a plan or in one clear sentence.
. tests/support/tap.sh
graph=layouts/library/graphs/transformer-small.json

run meshtf-plan model gpt --preset gpt2-small -o "$work/gpt2.json"
run meshtf-plan search "$work/gpt2.json" --devices 8 --machine h100 --layouts rule -o "$work/gpt2.plan"
claim "gpt2-small on eight h100 is planned in bf16 unasked" says "precision      bf16 (the machine's own"
claim "in the field's words" says "parallelism    data parallel 8"
claim "with tokens a second and MFU" grep -q '^speed .* tokens/s, MFU [0-9.]* %' "$work/out"
claim "and the memory against the limit" grep -q '^fits  *yes: .* of 67.65 GiB a device' "$work/out"
claim "and what bounds the step" grep -q '^bound by  *[a-z ]* [0-9.]* %' "$work/out"
shares() { # of the step, by what they go to, beside the step
    step=$(sed -n 's/.*"step_seconds": *\([0-9.e-]*\).*/\1/p' "$1" | head -n 1)
    tr -d '\n' <"$1" | sed 's/.*"shares": *{\([^}]*\)}.*/\1/' | tr ',' '\n' | awk -F: -v step="$step" '
        { sum += $NF } END { exit !(NR > 1 && sum / step > 0.999999 && sum / step < 1.000001) }'
}
claim "shares add up to the step, with what the host takes" shares "$work/gpt2.plan"
claim "costs have SI prefixes" sh -c "! grep -qE '[0-9]{4,} ns' '$work/out'"
run meshtf-plan search "$work/gpt2.json" --devices 8 --machine h100 --layouts rule --json
claim "JSON says the same" says '"parallelism": "data parallel 8'
claim "and the MFU" says '"mfu": 0.'
run meshtf-plan report "$work/gpt2.plan" -o "$work/page"
claim "and so does the page" grep -q 'data parallel 8' "$work/page/index.html"

run meshtf-plan estimate "$work/gpt2.json" --machine v100 --mesh data:8 --layout batch:data
claim "on V100 in two bytes, too, at the rate of its tensor cores" says "precision      bf16, at the rate of fp16 (the machine's own"
claim "which is what its peak is of" says "peak 125 TFLOP/s in fp16"
run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' -o "$work/small.json"
claim "without a machine the first line says so" sh -c "head -n 1 '$work/out' | grep -q 'no --machine given'"
claim "the next best kind of plan has its price" grep -q '^next best .*% longer' "$work/out"
run meshtf-plan estimate "$work/gpt2.json" --machine h100 --mesh 'data:4;model:2' --dim batch=4096 --layout 'batch:data;heads:model;d_ff:model;vocab:model' -o "$work/large.json"
claim "what does not fit is still estimated" exits 0
claim "and said not to fit" says "fits           NO"
claim "tensor parallelism is called so" says "data parallel 4 x tensor parallel 2"
run meshtf-plan check "$work/large.json"
claim "check says so, too" says "fits                           NO: "
claim "and warns" says_error "this plan does not fit: it needs"

sed 's/"operations": \[/"operations": [{"name": "idle", "op": "relu", "inputs": ["x"]},/; s/"variables": \[/"variables": [{"name": "spare", "dims": ["batch"], "init": "ones"},/' \
    layouts/library/graphs/mlp.json >"$work/dead.json"
run meshtf-plan check "$work/dead.json"
claim "dead operations are named by check" says "idle (not executed)"
claim "and unused variables" says "spare (not executed)"
run meshtf-plan search "$work/dead.json" --mesh all:2 -o "$work/dead.plan"
claim "neither is in a plan" sh -c "! grep -qE '\"(idle|spare)\"' '$work/dead.plan'"
run meshtf-plan compare "$work/dead.plan" "$work/small.json"
claim "plans of different models are compared with a warning" says_error "plans of different models"

run mpirun -n 2 meshtf-run "$work/dead.plan" --steps 3 --verify
claim "--verify ends with a verdict" sh -c "tail -n 1 '$work/out' | grep -q 'verdict  *the same training as on one processor'"

run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --even -o "$work/even.json"
claim "layouts of equal shards are searched" exits 0
if command -v python3 >/dev/null; then
    for form in jax dtensor; do
        meshtf-plan export "$work/even.json" --to "$form" -o "$work/module.py"
        run python3 tests/support/published/run_export.py "$work/even.json" "$work/module.py"
        claim "the $form module runs and places every tensor" says "tensors placed"
    done
else
    skip "no Python here to run exported modules"
fi
run meshtf-plan export "$work/even.json" --to onnx-text
claim "an even plan is annotated as ONNX has it" says "num_shards: 4"
meshtf-plan export "$work/even.json" --to slurm -o "$work/job.sh"
run bash -n "$work/job.sh"
claim "a batch script for Slurm is one" exits 0
run meshtf-plan estimate "$work/gpt2.json" --machine h100 --mesh all:8 --layout vocab:all --even
claim "an uneven layout is refused where even ones are asked for" bad_input
claim "and the dimension is named" says_error '"vocab" of 50257'
run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --exportable megatron -o "$work/megatron.json"
claim "a plan that Megatron-LM can run is found" exits 0
run meshtf-plan export "$work/megatron.json" --to megatron
claim "and exported with its flags" says "--tensor-model-parallel-size"
run meshtf-plan export "$work/megatron.json" --to deepspeed
claim "such a plan is DeepSpeed's, too" says '"train_micro_batch_size_per_gpu"'
run meshtf-plan export "$work/megatron.json" --to maxtext
claim "and MaxText's" says "ici_tensor_parallelism="
meshtf-plan estimate "$graph" --mesh all:4 --layout batch:all --recompute layers -o "$work/again.json" >/dev/null
run meshtf-plan export "$work/again.json" --to maxtext
claim "what an estimated plan recomputes is exported" says "remat_policy=full"
run meshtf-plan export "$work/again.json" --to torchtitan
claim "to torchtitan, too" says "--activation_checkpoint.mode full"
run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --exportable torchtitan -o "$work/titan.json"
claim "a plan that torchtitan can run is found" exits 0
run meshtf-plan export "$work/titan.json" --to torchtitan
claim "and exported with its flags" says "--parallelism.data_parallel_shard_degree"
if command -v python3 >/dev/null; then
    for options in '--mesh rows:2;cols:2 --layout batch:rows;heads:cols;d_ff:cols;vocab:cols' \
        '--mesh all:2 --layout batch:all --microbatches 2' '--mesh all:4 --layout batch:all --recompute layers'; do
        # shellcheck disable=SC2086  # options, apart on purpose
        meshtf-plan estimate "$graph" $options -o "$work/framework.json" >/dev/null
        for form in deepspeed maxtext torchtitan; do
            # Tensor parallelism that keeps activations whole is none of torchtitan's.
            case $form$options in torchtitan*heads*) continue ;; esac
            meshtf-plan export "$work/framework.json" --to "$form" -o "$work/settings"
            run python3 tests/support/published/check_framework_config.py "$form" "$work/framework.json" "$work/settings"
            claim "$form can read what it is given for $options" says "takes a batch of 16 on"
        done
    done
else
    skip "no Python here to read exported settings"
fi
run meshtf-plan search "$graph" --mesh 'rows:2;cols:2' --exportable excel
claim "an unknown system is bad input" bad_input
run meshtf-plan search "$graph" --devicse 4
claim "a misspelt option is asked about" says_error "did you mean --devices?"
printf 'PAR1' >"$work/data.parquet"
echo '{"text": "a"}' >"$work/data.jsonl"
for form in parquet jsonl; do
    run mpirun -n 4 meshtf-run "$work/even.json" --data "$work/data.$form" --steps 1
    claim "data as $form is refused" exits 2
    claim "with a word on what to do" grep -qE "jq -r|numpy.save" "$work/err"
done
done_testing
