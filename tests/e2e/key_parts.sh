# SPDX-License-Identifier: GPL-3.0-or-later
# Attention whose keys and values stay split along their positions: estimated, run, counted, searched, refused.
# seconds: 200
. tests/support/tap.sh
. tests/support/attention_parts.sh

losses 1 --key-parts 1 '' ''
split='memory_length/parts:keys;memory_length:keys'
for ranks in 2 3 4; do
    case $ranks in
    2) losses 2 --key-parts 2 'keys:2' "$split" ;;
    3) losses 3 --key-parts 4 'keys:3' "$split" ;; # 1, 1 and 2 parts
    *) losses 4 --key-parts 4 'keys:2;queries:2' "$split;length:queries" ;;
    esac
    agrees $ranks
done

# 32 learned queries look at 8192 positions: what travels along an axis of positions is of the size of the queries.
cat >"$work/reader.json" <<'JSON'
{"meshtf_graph": 1, "name": "reader",
 "dimensions": {"batch": 1, "queries": 32, "memory": 8192, "d_model": 64, "heads": 2, "d_kv": 32},
 "inputs": [{"name": "text", "dims": ["batch", "memory", "d_model"], "feed": "features"}],
 "variables": [
   {"name": "asked", "dims": ["queries", "d_model"], "init": {"normal": 1}},
   {"name": "wq", "dims": ["d_model", "heads", "d_kv"], "init": {"normal": 0.1}},
   {"name": "wk", "dims": ["d_model", "heads", "d_kv"], "init": {"normal": 0.1}},
   {"name": "wv", "dims": ["d_model", "heads", "d_kv"], "init": {"normal": 0.1}}],
 "operations": [
   {"name": "q", "op": "einsum", "inputs": ["asked", "wq"], "dims": ["queries", "heads", "d_kv"]},
   {"name": "each", "op": "broadcast", "inputs": ["q"], "dims": ["batch", "queries", "heads", "d_kv"]},
   {"name": "k", "op": "einsum", "inputs": ["text", "wk"], "dims": ["batch", "memory", "heads", "d_kv"]},
   {"name": "v", "op": "einsum", "inputs": ["text", "wv"], "dims": ["batch", "memory", "heads", "d_kv"]},
   {"name": "y", "op": "attention", "inputs": ["each", "k", "v"], "query": "queries", "memory": "memory", "dimension": "d_kv", "factor": 0.25},
   {"name": "s", "op": "square", "inputs": ["y"]},
   {"name": "loss", "op": "reduce_mean", "inputs": ["s"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
JSON
search() { run meshtf-plan search "$work/reader.json" --mesh 'all:4' --machine cpu-host "$@"; }
search --key-parts 1 -o "$work/whole.json"
search -o "$work/auto.json"
claim "the search splits a long memory by itself" says 'recompute none, 4 key parts'
claim "its plan says so" grep -q '"key_parts": *4' "$work/auto.json"
claim "the step is shorter than with memory in one piece" awk \
    "BEGIN { exit !($(number step_seconds "$work/auto.json") < $(number step_seconds "$work/whole.json")) }"
run mpirun -n 4 meshtf-run "$work/auto.json" --steps 3
claim "it runs" exits 0
claim "memory is as predicted" grep -q 'memory a rank .* equal to the byte' "$work/out"
claim "so are calls and bytes" says "every rank's calls and bytes equal the program's"

search --key-parts 5
claim "memory that so many parts do not divide is bad input" bad_input
claim "the sentence says so" says_error 'no attention whose memory 5 parts divide'
search --key-parts many
claim "so is a word for a number" bad_input

# Stages want micro-batches, which a batch of one has none of; and have memory in parts, too.
run meshtf-plan search "$work/reader.json" --devices 4 --stages 2 --machine cpu-host --key-parts 2
claim "a batch of one makes no pipeline" bad_input
claim "the sentence says so" says_error 'a batch of 1 cannot be divided into micro-batches for 2 stages'
run meshtf-plan search "$work/reader.json" --devices 4 --stages auto --machine cpu-host
claim "it has one mesh where stages are open" exits 0
run meshtf-plan search "$work/reader.json" --dim batch=2 --devices 4 --stages 2 --machine cpu-host --key-parts 2
claim "stages have memory in parts" says '2 key parts'
done_testing
