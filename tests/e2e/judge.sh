# SPDX-License-Identifier: GPL-3.0-or-later
# Predicted beside measured for tables of training runs.
. tests/support/tap.sh

columns="id source hardware devices device_topology model layers d_model heads kv_heads d_head d_ff gated_ffn vocab seq_len global_batch micro_batch tp pp vp cp ep dp sharding sequence_parallel recompute precision software measured_quantity measured_value memory_GiB_per_device notes"
table=$work/runs.tsv
header() {
    echo "$columns" | tr ' ' '\t' >"$table"
}

# row ID HARDWARE TP DP RECOMPUTE SECONDS: GPT of 22 billion, as Korthikanti et al. (2205.05198) ran it.
row() {
    printf '%s\tpaper\t%s\t8\t8 x HDR 200 Gb/s IB per node\tGPT-22B\t48\t6144\t64\t64\t96\t24576\t0\t51200\t2048\t4\t4\t%s\t1\t1\t1\t1\t%s\tddp\t0\t%s\tfp16 mixed\tmegatron-lm 2022\ts_per_step\t%s\t\ttrust A\n' \
        "$@" >>"$table"
}

matches() {
    grep -q -- "$1" "$work/out"
}

absent() {
    ! matches "$1"
}

header
row full a100-80g-sxm 8 1 full 1.42
row wrong a100-80g-sxm 8 2 full 1.42
row abacus abacus 8 1 full 1.42
run meshtf-plan judge "$table"
claim "a table is judged" exits 0
claim "the layer-by-layer recomputed run is within 20 %" matches '^full .* 1\.42 *[+-]1\{0,1\}[0-9]\.[0-9] %'
claim "a layout of another number of devices is told" says "tp 8 x pp 1 x cp 1 x dp 2 are 16 devices, not 8"
claim "unknown hardware is told" says "no machine of the library is like this hardware"
claim "the last line sums up" says "rows 3, expressed 1, mean error"

row unsaid a100-80g-sxm 8 1 '' 1.42
awk -F'\t' -v OFS='\t' '$1 == "unsaid" { $16 = $17 = 1 } { print }' "$table" >"$work/small.tsv"
run meshtf-plan judge --json "$work/small.tsv"
claim "what is not said to be recomputed is not" matches '"assumed": *"[^"]*recompute none'
run meshtf-plan judge --json "$table"
claim "unless the run fits with it only" matches '"assumed": *"[^"]*recompute selective'
header
row stages a100-80g-sxm 8 1 full 1.42
awk -F'\t' -v OFS='\t' '$1 == "stages" { $4 = 64; $16 = 8; $17 = 1; $19 = 8; $20 = "" } { print }' "$table" >"$work/once.tsv"
sed 's/trust A$/trust A; vp 6 in the recipe/' "$work/once.tsv" >"$work/noted.tsv"
awk -F'\t' -v OFS='\t' '$1 == "stages" { $20 = 6 } { print }' "$work/once.tsv" >"$work/stated.tsv"
run meshtf-plan judge --json "$work/once.tsv"
claim "chunks that are not said are one a device" matches '"assumed": *"[^"]*vp 1'
run meshtf-plan judge "$work/stated.tsv"
cp "$work/out" "$work/stated.out"
run meshtf-plan judge "$work/noted.tsv"
claim "chunks that only the notes name are those of the column" cmp -s "$work/out" "$work/stated.out"
run meshtf-plan judge --json "$work/noted.tsv"
claim "and not assumed" absent '"assumed": *"[^"]*vp'

# Small ones with stages: 8 layers of 512 on 4 devices.
# staged "COLUMN=VALUE...": that run with those cells in place of two stages of two micro-batches and more.
header
row small a100-80g-sxm 1 2 none 1
awk -F'\t' -v OFS='\t' 'NR > 1 { $4 = 4; $7 = 8; $8 = 512; $9 = $10 = 8; $11 = 64; $12 = 2048; $15 = 512; $16 = 16; $17 = 1; $19 = 2; $20 = 1 } { print }' \
    "$table" >"$work/pair.tsv"
staged() {
    awk -F'\t' -v OFS='\t' -v sets="$1" 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; n = split(sets, set, " ") }
        NR > 1 { for (i = 1; i <= n; i++) { split(set[i], pair, "="); $column[pair[1]] = pair[2] } } { print }' "$work/pair.tsv" >"$work/staged.tsv"
    run meshtf-plan judge --json "$work/staged.tsv"
}
by_plan() {
    staged "$1" && exits 0 && [ "$(jq '.rows[0] | .no_plan == null and .closed_form > 0 and .predicted != .closed_form' "$work/out")" = true ]
}
in_closed_form() {
    staged "$1" && exits 0 && [ "$(jq --arg why "$2" '.rows[0] | (.no_plan | contains($why)) and .predicted == .closed_form' "$work/out")" = true ]
}
claim "a run with stages is predicted by its plan" by_plan ""
claim "so are chunks" by_plan "vp=2"
claim "zero bubbles" by_plan "software=megatron-lm_ZB-1p"
claim "shared keys and gates, tensor and sequence parallel" by_plan "kv_heads=4 gated_ffn=1 tp=2 dp=1 sequence_parallel=1"
claim "a single micro-batch" by_plan "global_batch=2"
claim "and a sharded optimizer" by_plan "sharding=zero1"
claim "layers that do not fill the stages are told" in_closed_form "layers=9 vp=4" "9 layers are not cut into 8 stages"
claim "so are parts of a sequence" in_closed_form "cp=2 dp=1" "cp"
claim "so are products of 8 bits" in_closed_form "hardware=h100 precision=fp8" "8 bits"
claim "a line without a plan says so" [ "$(meshtf-plan judge "$work/staged.tsv" | grep -c '^small .*  in closed form: plans have no products of 8 bits$')" = 1 ]
staged ""
once=$(jq '.rows[0].predicted' "$work/out")
claim "a host that waits for kernels takes longer" [ "$(sed 's/trust A$/trust A; CUDA_LAUNCH_BLOCKING=1/' "$work/pair.tsv" >"$work/blocking.tsv"
    meshtf-plan judge --json "$work/blocking.tsv" | jq --argjson once "$once" '.rows[0] | .no_plan == null and .predicted > 1.2 * $once')" = true ]

header
row full a100-80g-sxm 8 1 full 1.42
row wrong a100-80g-sxm 8 2 full 1.42

run meshtf-plan judge --json "$table"
claim "JSON holds rows and a summary" says '"summary"'
claim "the summary counts" matches '"expressed": *1'

run meshtf-plan judge --software torchtitan "$table"
claim "another profile may be asked for" exits 0
run meshtf-plan judge --software abacus "$table"
claim "an unknown profile is bad input" exits 2

header
row again a100-80g-sxm 8 1 full 1.42
row selective a100-80g-sxm 8 1 selective 1.15
row none a100-80g-sxm 8 1 none 1.10
run meshtf-plan judge "$table"
claim "layouts of one model are judged by their order" matches '^layouts of GPT-22B on 8, paper: rows 3, rank correlation 1.000, regret 0.0 %, rank correlation of a second measurement 0'
run meshtf-plan judge --json "$table"
claim "in JSON, too" matches '"rank_remeasured": *0'

header
row short a100-80g-sxm 8 1 full quick
run meshtf-plan judge "$table"
claim "a cell that is no number is bad input" exits 2
claim "line and column are named" says_error 'line 2, column measured_value: "quick" is not a number'
header
printf 'lonely\tcell\n' >>"$table"
run meshtf-plan judge "$table"
claim "a line of two cells is bad input" exits 2
claim "its place is named" says_error "line 2, column 3: 2 cells stand under 32 columns"
printf 'id\tname\n' >"$table"
run meshtf-plan judge "$table"
claim "a table without the columns is bad input" exits 2
claim "the missing column is named" says_error 'column "hardware" is missing'

header
row full a100-80g-sxm 8 1 full 1.42
printf '\357\273\277' | cat - "$table" | sed 's/$/\r/' >"$work/sheet.tsv"
run meshtf-plan judge "$work/sheet.tsv"
claim "a spreadsheet's mark and ends of lines do no harm" says "rows 1, expressed 1"
sed '1s/.*/\U&/; s/\t/ \t /g' "$table" >"$work/sheet.tsv"
run meshtf-plan judge "$work/sheet.tsv"
claim "nor do capitals in names of columns, and blanks around cells" says "rows 1, expressed 1"
tr '\t' ',' <"$table" >"$work/commas.tsv"
run meshtf-plan judge "$work/commas.tsv"
claim "commas between cells are bad input" bad_input
claim "which is said" says_error "tabs are expected"
run meshtf-plan judge --machine abacus "$table"
claim "an unknown machine that is asked for is bad input" bad_input

# with_cells "COLUMN=VALUE...": judges the one run with those cells, in which ~ stands for a blank.
with_cells() {
    awk -F'\t' -v OFS='\t' -v sets="$1" 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; n = split(sets, set, " ") }
        NR > 1 { for (i = 1; i <= n; i++) { split(set[i], pair, "="); gsub("~", " ", pair[2]); $column[pair[1]] = pair[2] } } { print }' "$table" >"$work/cells.tsv"
    run meshtf-plan judge "$work/cells.tsv"
}
refuses() {
    with_cells "$1"
    bad_input && says_error "$2"
}
doubts() {
    with_cells "$1"
    exits 0 && matches "$2" && matches "expressed 0, mean error -, worst error -"
}
claim "half a device is refused" refuses tp=2.5 'line 2, column tp: "2.5" is no whole number'
claim "a number too large for any run is refused" refuses dp=1e15 "column dp"
claim "a flag is 0 or 1" refuses sequence_parallel=2 '"2" is neither 0 nor 1'
claim "a stage without layers cannot be" doubts "pp=8 devices=64 layers=3" "fewer layers than stages"
claim "nor a micro-batch beyond the batch" doubts micro_batch=8 "global_batch is smaller"
claim "nor micro-batches that do not fill the batch" doubts "micro_batch=3" "global_batch is no multiple"
claim "a word that is none leaves its row out alone" doubts "sharding=ZeRO++" 'sharding "ZeRO++" is none of ddp, zero1'
claim "likewise of recomputation" doubts "recompute=often" 'recompute "often" is none of none, selective and full'
claim "and of what was measured" doubts "measured_quantity=mfu" 'measured_quantity "mfu" is none of s_per_step'
claim "no step in float32 is priced as one in bfloat16" doubts "precision=fp32" 'steps in "fp32" are not priced'
claim "a card with another name in its own is none of that" doubts "hardware=GH200" "no machine of the library"
claim "nor one beside a network that is called after it" doubts "hardware=V900 device_topology=DGX~A100" "no machine of the library"
claim "nor is one on PCIe" doubts "hardware=a100-80g-pcie" "cards on PCIe"
claim "nor is an NVL" doubts "hardware=H100~NVL" "cards on PCIe"
# Whatever has accelerators in the library can be named by a table; eight devices of a size that all have.
all_are_named() {
    for machine in layouts/library/machines/*.json; do
        name=$(basename "$machine" .json)
        case $name in cpu-*) continue ;; esac
        with_cells "hardware=$name"
        matches '^[^ ]* .*no machine of the library' && echo "$name" && return 1
    done
    with_cells "hardware=AWS~p4d.24xlarge~(A100-SXM4-40GB)" && run meshtf-plan judge --json "$work/cells.tsv" && [ "$(jq -r '.rows[0].machine' "$work/out")" = p4d ]
}
claim "every machine of the library is hardware that a table may name" all_are_named
claim "nor may a token choose more experts than there are" doubts "notes=8~experts~top-9" "more experts than there are"
claim "nor ranks share an expert" doubts "notes=8~experts~top-2 ep=16 dp=16 devices=128 global_batch=64" "not divided evenly"
same() {
    with_cells "$1" && cp "$work/out" "$work/first" && with_cells "$2" && cmp "$work/first" "$work/out"
}
claim "words may be spelt otherwise" same "sharding=FULL_SHARD measured_quantity=ms/iteration measured_value=1420" "sharding=zero3/fsdp"
claim "nor more keys' heads than heads" doubts kv_heads=128 "more kv_heads than heads"

header
row full a100-80g-sxm 8 1 full 1.42
row selective a100-80g-sxm 8 1 selective 1.15
run meshtf-plan fit "$table" --machine a100 -o "$work/mine.json"
claim "a machine is fitted to runs" exits 0
claim "the errors are told" says "fitted from a100 to 2 runs, mean error"
claim "and that of runs left out" says "of runs left out"
claim "what runs do not determine is told" says_error 'these runs do not determine "attention"'
run meshtf-plan machines "$work/mine.json"
claim "it is a machine of that name" says '"name": "mine"'
run meshtf-plan judge --machine "$work/mine.json" "$table"
claim "which predicts the runs" exits 0
run meshtf-plan judge --fit-on "$table" --leave-out model "$table"
claim "judge fits by itself" exits 0
run meshtf-plan judge --grades Z "$table"
claim "a table of which no row is left is refused" bad_input
head -n 1 "$work/runs.tsv" >"$work/columns.tsv"
run meshtf-plan judge "$work/columns.tsv"
claim "and one that has none" bad_input
claim "in other words" says_error 'has columns and no rows'

# 512 chips of v5e are two slices, whether the table says so or not.
{
    echo "id hardware devices device_topology layers d_model heads d_head d_ff seq_len vocab global_batch micro_batch tp pp dp sharding recompute precision software measured_quantity measured_value" | tr ' ' '\t'
    for topology in '2 x v5e-256' ''; do
        printf 'a\ttpu-v5e\t512\t%s\t8\t2048\t16\t128\t8192\t2048\t32000\t1024\t2\t1\t1\t512\tzero3/fsdp\tfull\tbf16\tmaxtext\ts_per_step\t1\n' "$topology"
    done
} >"$work/slices.tsv"
run meshtf-plan judge "$work/slices.tsv" --json
claim "runs on several slices are priced alike without a topology" [ "$(jq '[.rows[].predicted] | .[0] == .[1]' "$work/out")" = true ]
claim "and it is said that this is assumed" [ "$(jq -r '[.rows[].assumed] | join("|")' "$work/out")" = 'kv_heads 16|kv_heads 16, 2 slices' ]
printf '1048576 9.2e-05\n1073741824 0.0082\n' >"$work/sum.txt"
printf '8192 8192 8192 0.00435\n4096 4096 4096 0.00058\n' >"$work/products.txt"
run meshtf-plan fit --machine a100 --collective "allreduce/8=$work/sum.txt" --products "bf16=$work/products.txt" -o "$work/sweeps.json"
claim "sweeps alone fit a machine" exits 0
claim "products are counted" says "products to 2 measurements within"
claim "and collectives" says "collectives as in 2 measurements"
run meshtf-plan fit --machine a100 --products "bf16=$work/products.txt" -o -
claim "on standard output it is called after the one it began with" says '"name": "a100-fitted"'
run meshtf-plan collective allreduce --machine "$work/sweeps.json" --devices 8 --bytes 1GiB
claim "which commands take" exits 0

# nccl HEADER WORDS COLLECTIVE: two lines of nccl-tests whose first times are 92 and 8200 us; the curve that they become.
nccl() {
    {
        echo "# nThread 1 nGpus 8 minBytes 8 maxBytes 1073741824 step: 2(factor)"
        printf '#\n#%s\n#        (B)    (elements)\n' "$1"
        echo "     1048576        262144   $2    92.00   11.40   19.95      0    95.02   11.04   19.31      0"
        echo "  1073741824     268435456   $2     8200  130.94  229.15      0     8201  130.93  229.12      0"
        echo "# Avg bus bandwidth    : 200.1"
    } >"$work/nccl.txt"
    meshtf-plan fit --machine a100 --collective "$3/8=$work/nccl.txt" -o "$work/nccl.json" >"$work/out" 2>&1
}
nccl '       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong'  'float     sum      -1' allreduce
cp "$work/nccl.json" "$work/newest.json"
took() {
    [ "$(jq ".curves.\"$1/8\" == [[1048576, 9.2e-05], [1073741824, 0.0082]]" "$work/nccl.json")" = true ]
}
claim "lines of nccl-tests with a root are read" took allreduce
nccl '       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error'  'float     sum' allreduce
claim "older ones have none, and mean the same" cmp "$work/nccl.json" "$work/newest.json"
nccl '       size         count      type     time   algbw   busbw  error     time   algbw   busbw  error' float allgather
claim "gathers had no operation either" took allgather
printf '8192 8192 quick\n' >"$work/products.txt"
run meshtf-plan fit --machine a100 --products "bf16=$work/products.txt" -o "$work/bad.json"
claim "a sweep that is none is bad input" bad_input
claim "its place is named" says_error "line 1, column 3: 4 numbers above 0 are expected"
printf '1048576 92\n' >"$work/sum.txt"
run meshtf-plan fit --machine a100 --collective "allreduce/8=$work/sum.txt" -o "$work/bad.json"
claim "microseconds that should be seconds are bad input" bad_input
claim "and asked about" says_error "are these seconds?"
printf '8192 8192 8192 0.0032\n' >"$work/products.txt"
run meshtf-plan fit --machine a100 --products "bf16=$work/products.txt" -o "$work/bad.json"
claim "products faster than the peak are bad input" says_error "times as fast as the peak"
run meshtf-plan fit "$table" --machine cpu-host -o "$work/bad.json"
claim "a machine without kernels cannot be fitted" bad_input

# Kernels of an H200, measured (tests/golden/h200/README.md): the library's figures of it, and a fit to them.
set -- --machine h200
for sweep in products:bf16 products:fp8 products:f32 attention:bf16 passes:elementwise passes:rows passes:update; do
    set -- "$@" "--${sweep%:*}" "${sweep#*:}=tests/golden/h200/${sweep%:*}.${sweep#*:}.txt"
done
run meshtf-plan fit "$@" -o "$work/h200.json" --json
claim "a machine is fitted to sweeps of all its kernels" exits 0
claim "products are within 9 % of its tiles" [ "$(jq '.product_rows > 150 and .product_error < 0.09' "$work/out")" = true ]
claim "attention within 16 %" [ "$(jq '.attention_rows > 70 and .attention_error < 0.16' "$work/out")" = true ]
claim "passes over memory within 8 %" [ "$(jq '.pass_rows > 20 and .pass_error < 0.08' "$work/out")" = true ]
meshtf-plan machines h200 >"$work/library.json"
for figure in .products.fp8 .products.f32 .attention[1][1] .attention[1][2] .sweeps.elementwise .sweeps.rows .sweeps.update; do
    claim "the library's figure $figure is what was measured, to 6 %" [ "$(jq -n --slurpfile a "$work/library.json" \
        --slurpfile b "$work/h200.json" "(\$a[0].kernels$figure / \$b[0].kernels$figure - 1 | fabs) < 0.06")" = true ]
done
claim "products of hours are slower than those in bursts, and faster than a second without rest, 0.656" [ "$(jq -n \
    --slurpfile a "$work/library.json" --slurpfile b "$work/h200.json" \
    '$a[0].kernels.products.bf16 | . > 0.656 and . < $b[0].kernels.products.bf16')" = true ]
sed 's/\tddp\t/\tnone\t/' tests/bench/h200_steps.tsv >"$work/none.tsv"
run meshtf-plan judge "$work/none.tsv"
claim "runs that shard nothing may say so" says "rows 8, expressed 8"
run meshtf-plan judge tests/bench/h200_steps.tsv
claim "training steps of that H200 are expressed" says "rows 8, expressed 8"
claim "and predicted within 5 % on average" [ "$(sed -n 's/.*mean error \([0-9]*\).*/\1/p' "$work/out")" -lt 5 ]
run meshtf-plan fit --machine h200 --passes "moves=tests/golden/h200/passes.rows.txt" -o "$work/bad.json"
claim "passes of no kind are bad input" says_error "no passes \"moves\" over memory (elementwise, rows, update, gather)"

runs=../shared/data/measured/published_runs.tsv
if [ -e "$runs" ]; then
    # judged OPTION...: "profile machine runs error" of all rows judged so, a line each, and of any profile.
    judged() {
        meshtf-plan judge --json "$@" >"$work/json"
        echo $? >"$work/judge_status"
        jq -r '[.rows[] | select(.reason == null) | .error |= fabs]
            | (group_by([.software, .machine])[] | [.[0].software, .[0].machine, length, ([.[].error] | add / length)]),
              (group_by(.machine)[] | ["-", .[0].machine, length, ([.[].error] | add / length)])
            | "\(.[0]) \(.[1]) \(.[2]) \(.[3] * 1000 | round / 1000)"' "$work/json"
    }
    # Of one run nothing follows for a machine; e2e/measured_networks judges PyTorch without its compiler.
    judged --grades AB "$runs" | grep -v '^- h200 1 ' >"$work/judged"
    claim "the published runs are judged" [ "$(cat "$work/judge_status")" = 0 ]
    claim "more than 200 of them" [ "$(jq '.rows | length' "$work/json")" -gt 200 ]
    # "closed form, plan, measured" of runs with stages that are predicted by their plan.
    jq -r '.rows[] | select(.closed_form and .no_plan == null) | "\(.closed_form) \(.predicted) \(.measured)"' "$work/json" >"$work/plans"
    claim "most runs with stages are predicted by their plans" [ "$(wc -l <"$work/plans")" -gt 95 ]
    claim "all others say why not" [ "$(jq '[.rows[] | select(.closed_form and .no_plan != null and .predicted != .closed_form)] | length' "$work/json")" = 0 ]
    # shellcheck disable=SC2016  # awk's fields
    claim "the closed form meets the plans within 3 % on average, within 12 % in all" awk '
        { d = $1 / $2 - 1; d = d < 0 ? -d : d; sum += d; worst = d > worst ? d : worst } END { exit !(sum / NR < 0.03 && worst < 0.12) }' "$work/plans"
    # shellcheck disable=SC2016  # awk's fields
    claim "and the plans are nearer to what was measured" awk '
        { c = $1 / $3 - 1; p = $2 / $3 - 1; form += c < 0 ? -c : c; plan += p < 0 ? -p : p } END { exit !(plan < form) }' "$work/plans"
    for card in h100 h200; do judged "tests/bench/${card}_steps.tsv"; done | grep -v '^-\|^pytorch-eager' >>"$work/judged"
    judged --grades ABC --models moe "$runs" | grep '^[^-].* [0-9][0-9] ' | sed 's/^/experts /' >>"$work/judged"
    sort "$work/judged" >"$work/judged.sorted"
    {
        jq -r 'select(.judged) | "- \(.name) \(.judged.runs) \(.judged.error)"' layouts/library/machines/*.json
        jq -r '.name as $name | select($name != "pytorch-eager") | (.judged // {} | to_entries[] | "\($name) \(.key) \(.value[0]) \(.value[1])"),
            (.judged_experts // {} | to_entries[] | "experts \($name) \(.key) \(.value[0]) \(.value[1])")' layouts/library/software/*.json
    } | sort >"$work/said"
    claim "the library says of each machine and profile how well its runs were predicted" cmp "$work/judged.sorted" "$work/said"
    # shellcheck disable=SC2016  # awk's fields
    claim "a profile's figure that is off by one in a thousand is found" \
        [ "$(awk 'NR == 1 { $NF += 0.001 } { print }' "$work/said" | cmp -s - "$work/judged.sorted"; echo $?)" = 1 ]
else
    echo "# $runs is not there: the published runs are not judged"
fi
# cells COLUMN=VALUE...: one run on an A100, with those cells in place of what it says; blank is -.
cells() {
    awk -v cells="$*" 'BEGIN { n = split(cells, cell, " ")
            OFS = "\t"; $0 = "id a100 8 8 1024 16 64 4096 512 32000 64 8 1 1 8 ddp none bf16 megatron-core s_per_step 0.1"
            m = split("id hardware devices layers d_model heads d_head d_ff seq_len vocab global_batch micro_batch tp pp dp sharding recompute precision software measured_quantity measured_value", name, " ")
            for (k = 1; k <= m; k++) printf "%s%s", name[k], k < m ? OFS : "\n"
            for (i = 1; i <= n; i++) { split(cell[i], part, "="); for (k = 1; k <= m; k++) if (name[k] == part[1]) $k = part[2] == "-" ? "" : part[2] }
            $1 = $1; print }' >"$work/cells.tsv"
}
cells micro_batch=- precision=fp17
run meshtf-plan judge "$work/cells.tsv"
claim "what was taken as is usual is told, and in how many runs" says 'not said, and taken as is usual (--json tells how): kv_heads in 1, micro_batch in 1, precision in 1'
cells measured_value=-
run meshtf-plan judge "$work/cells.tsv"
claim "of a run without a measurement none is told" matches '^id  *-  *-  nothing was measured$'
cells layers=1000000
run timeout 20 meshtf-plan judge "$work/cells.tsv"
claim "a million layers take no time" says "in closed form: plans of runs have at most 1000 layers"
cells devices=1000000000 dp=1000000000 global_batch=1000000000 micro_batch=1
run timeout 20 meshtf-plan judge "$work/cells.tsv"
claim "nor do a billion devices" says "in closed form: a mesh has at most 16777216 devices"
cells
run meshtf-plan fit "$work/cells.tsv" --machine h100 -o "$work/strange.json"
claim "a machine fitted to other hardware's runs is warned of" says_error "1 of these runs name other hardware and count as runs of h100"
run meshtf-plan fit "$work/cells.tsv" --machine a100 -o "$work/strange.json"
claim "one fitted to its own is not" [ "$(grep -c 'other hardware' "$work/err")" = 0 ]
done_testing
