# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 120
# A dimension that is divided into two, and two that are merged to one, where their parts are not as many elements.
. tests/support/tap.sh

never_says() {
    ! says "$1"
}

cat >"$work/heads.json" <<'GRAPH'
{"meshtf_graph": 1, "name": "heads", "dimensions": {"b": 4, "d": 24, "h": 6, "k": 4, "e": 24},
 "inputs": [{"name": "x", "dims": ["b", "d"], "feed": "features"}],
 "variables": [{"name": "w", "dims": ["d"], "init": {"normal": 1}}, {"name": "v", "dims": ["h", "k"], "init": {"normal": 1}},
               {"name": "u", "dims": ["e"], "init": {"normal": 1}}],
 "operations": [{"name": "wx", "op": "multiply", "inputs": ["x", "w"], "dims": ["b", "d"]},
                {"name": "y", "op": "reshape", "inputs": ["wx"], "dims": ["b", "h", "k"]},
                {"name": "vy", "op": "multiply", "inputs": ["y", "v"], "dims": ["b", "h", "k"]},
                {"name": "bent", "op": "tanh", "inputs": ["vy"]},
                {"name": "z", "op": "reshape", "inputs": ["bent"], "dims": ["b", "e"]},
                {"name": "uz", "op": "multiply", "inputs": ["z", "u"], "dims": ["b", "e"]},
                {"name": "square", "op": "square", "inputs": ["uz"]},
                {"name": "loss", "op": "reduce_mean", "inputs": ["square"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
GRAPH
for ranks in 4 5; do
    mesh=a:$ranks
    run meshtf-plan estimate "$work/heads.json" --mesh "$mesh" --precision f64 --layout 'd:a;h:a;e:a' -o "$work/plan.json"
    claim "parts on $mesh read of their neighbours what they lack" says halo
    claim "and nothing is gathered on $mesh" never_says allgather
    run mpirun -n "$ranks" meshtf-run "$work/plan.json" --steps 5 --verify
    claim "divided and merged on $mesh it trains as on one processor" says "the same training as on one processor"
    claim "bytes on $mesh are those that were predicted" says "every rank's calls and bytes equal the program's"
    run mpirun -n "$ranks" meshtf-run "$work/plan.json" --steps 5 --verify --only-mpi
    claim "and so it does through MPI on $mesh" says "the same training as on one processor"
done

run meshtf-plan search "$work/heads.json" --mesh a:4 --precision f64 --layouts free --pin h:a -o "$work/plan.json"
claim "a search prices parts that are not as many elements" exits 0
run mpirun -n 4 meshtf-run "$work/plan.json" --steps 5 --verify
claim "as it splits the rest it trains as on one processor" says "the same training as on one processor"
done_testing
