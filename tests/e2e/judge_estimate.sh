# SPDX-License-Identifier: GPL-3.0-or-later
# Three witnesses of one step: estimate prices the program that a graph lowers to, kernel by kernel; judge
# makes the run's program from its columns, and predicts it in closed form from its sizes as well. Same machine,
# same prices of kernels and collectives, same software profile, so they must meet within a few percent.
. tests/support/tap.sh

run meshtf-plan model gpt --layers 8 --d-model 2048 --d-ff 8192 --heads 32 --d-kv 64 --vocab 51200 --batch 64 --length 2048 --attention blockwise -o "$work/gpt.json"
claim "a GPT is written" exits 0

# meets SOFTWARE DATA MODEL RECOMPUTE POLICY [MACHINE]: whether judge's plan is within 5 % of estimate's, and its closed form within 8 %.
meets() {
    machine=${6:-a100}
    meshtf-plan estimate "$work/gpt.json" --machine "$machine" --software "$1" --mesh "data:$2;model:$3" --precision bf16 --recompute "$4" --json \
        --layout 'batch:data;d_ff:model;heads:model;vocab:model' >"$work/estimate.json" || return 1
    seconds=$(sed -n 's/.*"step_seconds": *\([0-9.e-]*\).*/\1/p' "$work/estimate.json" | head -n 1)
    {
        echo "id hardware devices layers d_model heads d_head d_ff seq_len vocab global_batch micro_batch tp pp dp sharding recompute precision software measured_quantity measured_value" | tr ' ' '\t'
        echo "run $machine $(($2 * $3)) 8 2048 32 64 8192 2048 51200 64 $((64 / $2)) $3 1 $2 ddp $5 bf16 $1 s_per_step $seconds" | tr ' ' '\t'
    } >"$work/runs.tsv"
    meshtf-plan judge "$work/runs.tsv" --software "$1" --json >"$work/out" &&
        [ "$(jq '.rows[0] | [.predicted, .closed_form] | map(. / $measured - 1 | fabs) | .[0] < 0.05 and .[1] < 0.08' --argjson measured "$seconds" "$work/out")" = true ]
}

claim "data parallel" meets meshtf 8 1 none none
claim "data parallel, layers redone" meets meshtf 8 1 layers full
claim "tensor parallel" meets meshtf 1 8 none none
claim "both, layers redone" meets meshtf 2 4 layers full
claim "over nodes" meets meshtf 64 1 layers full
for software in megatron-2021 megatron-core torchtitan maxtext alpa; do
    claim "as $software runs it" meets $software 8 1 none none
    claim "as $software runs it, split, layers redone" meets $software 2 4 layers full
done
claim "as PyTorch runs it operation by operation" meets pytorch-eager 8 1 none none h100
claim "and split, layers redone" meets pytorch-eager 2 4 layers full h100
claim "as torchtitan runs it without its compiler" meets torchtitan-eager 8 1 none none
claim "on another machine" meets megatron-core 8 1 layers full h100
done_testing
