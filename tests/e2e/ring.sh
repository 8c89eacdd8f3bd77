# SPDX-License-Identifier: GPL-3.0-or-later
# Attention whose keys and values go round a ring of processors: estimated, run, counted, searched, refused.
# seconds: 300
. tests/support/tap.sh
. tests/support/attention_parts.sh

along() { echo "length:$1;memory_length:$1;length/parts:$1;length/turned:$1"; }
losses 1 --ring 1 '' ''
for ranks in 2 3 4; do
    case $ranks in
    2) losses 2 --ring 2 'ring:2' "$(along ring)" ;;
    3) losses 3 --ring 8 'ring:3' "$(along ring)" ;; # 2, 3 and 3 parts
    *) losses 4 --ring 2 'ring:2;heads:2' "$(along ring);heads:heads" ;;
    esac
    claim "keys and values go round" grep -q '"kind": *"permute"' "$work/p.json"
    agrees $ranks
done

# One text of 8192 positions on 8 ranks, gathered and by a ring.
meshtf-plan model transformer-lm --preset tiny --attention blockwise --length 8192 --batch 1 -o "$work/long.json" >/dev/null
estimate() { run meshtf-plan estimate "$work/long.json" --machine cpu-host --mesh 'r:8' "$@"; }
estimate --layout 'length:r' -o "$work/gathered.json"
estimate --ring 8 --layout "$(along r)" -o "$work/ring.json"
claim "a ring takes less than half the memory" awk \
    "BEGIN { exit !($(number peak_memory_bytes "$work/ring.json") < 0.5 * $(number peak_memory_bytes "$work/gathered.json")) }"
search() { run meshtf-plan search "$work/long.json" --mesh 'r:8' --machine cpu-host "$@"; }
search --ring 1 -o "$work/whole.json"
search -o "$work/auto.json"
claim "the search cuts a long text by itself" says 'recompute none, rings of 8'
claim "its plan says so" grep -q '"ring": *8' "$work/auto.json"
run meshtf-plan report "$work/auto.json" -o "$work/page"
claim "so does its page" grep -q 'attention in rings of 8 parts' "$work/page/index.html"
claim "the step is shorter than with whole attention" awk \
    "BEGIN { exit !($(number step_seconds "$work/auto.json") < $(number step_seconds "$work/whole.json")) }"
search --memory 11MiB -o "$work/small.json"
claim "rings fit" says 'rings of 8'
search --ring 1 --memory 11MiB
claim "where whole attention does not" exits 3

# On two axes rings may have as many parts as one of them or both, and the search tries all.
for parts in auto 2 4 8; do
    search --mesh 'x:2;y:4' --ring $parts -o "$work/axes-$parts.json"
    number step_seconds "$work/axes-$parts.json"
done >"$work/steps"
# shellcheck disable=SC2016
claim "rings of each axis and of both are tried" awk '
    NR == 1 { found = $1 } NR > 1 && (NR == 2 || $1 < best) { best = $1 }
    END { exit !(NR == 4 && found > 0 && found <= best) }' "$work/steps"

search --ring 3
claim "parts that do not divide the text are bad input" bad_input
claim "the sentence says so" says_error 'no attention whose queries and memory 3 parts divide'
search --ring 1000
claim "so are more than there may be" bad_input
claim "the sentence says how many" says_error 'must be auto or 1 to 256'
run meshtf-plan search "$work/g.json" --devices 4 --stages 2 --machine cpu-host --ring 2 --exportable megatron
claim "Megatron's flags have no rings" bad_input

# Queries and memory of different lengths, the later ones of which some queries or nobody sees.
cat >"$work/lengths.json" <<'EOF'
{"meshtf_graph": 1, "name": "lengths", "dimensions": {"b": 2, "h": 2, "length": 24, "memory_length": 12, "d": 8}, "variables": [
  {"name": "q", "dims": ["b", "length", "h", "d"], "dtype": "float64", "init": {"normal": 1}},
  {"name": "k", "dims": ["b", "memory_length", "d"], "dtype": "float64", "init": {"normal": 1}},
  {"name": "v", "dims": ["b", "memory_length", "d"], "dtype": "float64", "init": {"normal": 1}}], "operations": [
  {"name": "y", "op": "attention", "inputs": ["q", "k", "v"], "query": "length", "memory": "memory_length", "dimension": "d", "factor": 0.7, "causal": 1},
  {"name": "s", "op": "square", "inputs": ["y"]}, {"name": "loss", "op": "reduce_mean", "inputs": ["s"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 5}}
EOF
of_lengths() { # GRAPH PARTS LAYOUT: losses of four steps
    meshtf-plan estimate "$1" --machine cpu-host --precision f64 --mesh "r:$2" --ring "$2" --layout "$3" -o "$work/l.plan" >/dev/null
    mpirun -n "$2" meshtf-run "$work/l.plan" --steps 4 --metrics "$work/l.jsonl" >/dev/null
    sed 's/.*"loss": *\([0-9.e-]*\).*/\1/' "$work/l.jsonl"
}
sed 's/"length": 24, "memory_length": 12/"length": 12, "memory_length": 24/' "$work/lengths.json" >"$work/longer.json"
# A learned bias of every pair, of which each part takes what belongs to the keys it meets: it stays with its queries,
# so that memory is split in parts alone.
pairs='{"name": "w", "dims": ["h", "length", "memory_length"], "dtype": "float64", "init": {"normal": 1}}'
sed "s/^  {\"name\": \"v\"/  $pairs,&/; s/\"v\"\], \"query\"/\"v\", \"w\"], \"query\"/" \
    "$work/longer.json" >"$work/biased.json"
for graph in lengths longer biased; do
    layout=$(along r)
    [ $graph != biased ] || layout='length:r;length/parts:r;length/turned:r'
    of_lengths "$work/$graph.json" 1 '' >"$work/whole.losses"
    of_lengths "$work/$graph.json" 3 "$layout" >"$work/turned.losses"
    claim "$graph: rings give the losses of the whole" sh -c "test \$(wc -l <'$work/whole.losses') = 4 &&
        paste '$work/whole.losses' '$work/turned.losses' | awk '{ d = \$1 / \$2 - 1; if (d > 1e-10 || d < -1e-10) exit 1 }'"
done

# Rings inside the stages of a pipeline: one head, so that positions are what is left to split.
meshtf-plan model transformer-lm --preset tiny --attention blockwise --length 2048 --batch 2 --heads 1 -o "$work/one.json" >/dev/null
pipeline() { # PLAN RANKS OPTION...
    plan=$work/$1.json ranks=$2
    shift 2
    run meshtf-plan search "$work/one.json" --machine cpu-host --precision f64 --microbatches 2 -o "$plan" "$@"
    claim "a plan with $*" exits 0
    run mpirun -n "$ranks" meshtf-run "$plan" --data LICENSE --steps 3 --metrics "$work/m.jsonl"
    sed 's/.*"loss": *\([0-9.]*\).*/\1/' "$work/m.jsonl" >"$plan.losses"
}
pipeline alone 1 --mesh a:1
pipeline stages 4 --devices 4 --stages 2 --ring 2
claim "its stages split parts" grep -q '"all": *"length/parts"' "$work/stages.json"
claim "memory of stages is as predicted" says 'equal to the byte on every rank'
claim "losses of a pipeline with rings are those of one rank" sh -c "test \$(wc -l <'$work/alone.json.losses') = 3 &&
    paste '$work/alone.json.losses' '$work/stages.json.losses' | awk '{ d = \$1 / \$2 - 1; if (d > 1e-10 || d < -1e-10) exit 1 }'"
number step_seconds "$work/stages.json" >"$work/given"
run meshtf-plan search "$work/one.json" --machine cpu-host --precision f64 --microbatches 2 --devices 4 --stages 2 --ring auto -o "$work/found.json"
claim "rings in stages are found" says 'rings of 2'
number step_seconds "$work/found.json" >"$work/auto"
claim "the same that were asked for" cmp "$work/given" "$work/auto"
done_testing
