# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 120
# Sorting along a split dimension: by exchanges of columns where these are less than all elements.
. tests/support/tap.sh

never_says() {
    ! says "$1"
}

cat >"$work/sorting.json" <<'GRAPH'
{"meshtf_graph": 1, "name": "sorting", "dimensions": {"b": 4, "n": 1001},
 "inputs": [{"name": "x", "dims": ["b", "n"], "feed": "features"}],
 "variables": [{"name": "w", "dims": ["n"], "init": {"normal": 1}}, {"name": "v", "dims": ["n"], "init": {"normal": 1}}],
 "operations": [{"name": "wx", "op": "multiply", "inputs": ["x", "w"], "dims": ["b", "n"]},
                {"name": "y", "op": "sort", "inputs": ["wx"], "dimension": "n"},
                {"name": "vy", "op": "multiply", "inputs": ["y", "v"], "dims": ["b", "n"]},
                {"name": "bent", "op": "tanh", "inputs": ["vy"]},
                {"name": "loss", "op": "reduce_mean", "inputs": ["bent"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
GRAPH
for n in 8 6; do
    run meshtf-plan estimate "$work/sorting.json" --mesh a:$n --precision f64 --layout n:a -o "$work/plan.json"
    claim "what is sorted in $n parts is exchanged" says all-to-all
    claim "and its elements go to neighbours in $n parts" says halo
    claim "and nothing is gathered in $n parts" never_says allgather
    run mpirun -n $n meshtf-run "$work/plan.json" --steps 5 --verify
    claim "sorted in $n parts it trains as on one processor" says "the same training as on one processor"
    claim "bytes in $n parts are those that were predicted" says "every rank's calls and bytes equal the program's"
    run mpirun -n $n meshtf-run "$work/plan.json" --steps 5 --verify --only-mpi
    claim "and so it does through MPI in $n parts" says "the same training as on one processor"
done

run meshtf-plan estimate "$work/sorting.json" --mesh a:3 --precision f64 --layout n:a -o "$work/plan.json"
claim "three parts get all elements, which are less than columns with their places" says allgather
run mpirun -n 3 meshtf-run "$work/plan.json" --steps 5 --verify
claim "sorted in three parts it trains as on one processor" says "the same training as on one processor"

# The 5 largest of 4 rows of 1001 in 6 parts: 6 parts' 5 candidates in float64 and their places in int32 are gathered,
# 4 x 30 x (8 + 4) bytes, where 4 x 1001 elements would be. Their gradients go back to the parts that have them.
sed 's/"n": 1001}/"n": 1001, "k": 5}/; s/"v", "dims": \["n"\]/"v", "dims": ["k"]/; s/"op": "sort", "inputs": \["wx"\], "dimension": "n"/"op": "top_k", "inputs": ["wx"], "from": "n", "to": "k"/; s/\["y", "v"\], "dims": \["b", "n"\]/["y", "v"], "dims": ["b", "k"]/' \
    "$work/sorting.json" >"$work/choosing.json"
run meshtf-plan estimate "$work/choosing.json" --mesh a:6 --precision f64 --layout n:a -o "$work/plan.json"
claim "candidates of 6 parts are gathered and nothing else travels" says "allgather          a                  2          240     1.41 KiB"
run mpirun -n 6 meshtf-run "$work/plan.json" --steps 5 --verify
claim "the largest of parts train as on one processor" says "the same training as on one processor"
claim "candidates' bytes are those that were predicted" says "every rank's calls and bytes equal the program's"

run meshtf-plan search "$work/sorting.json" --mesh a:8 --precision f64 --layouts free --pin n:a -o "$work/plan.json"
claim "a search prices what is sorted in parts" exits 0
run mpirun -n 8 meshtf-run "$work/plan.json" --steps 5 --verify
claim "as it splits the rest it trains as on one processor" says "the same training as on one processor"
done_testing
