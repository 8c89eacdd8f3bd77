# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 180
# Convolutions and pools split over space, with halo exchanges before them: searched, run, reported.
. tests/support/tap.sh

never_says() {
    ! says "$1"
}

run meshtf-plan estimate convnet-small --mesh 'rows:3' --precision f64 \
    --layout 'height:rows;height_1:rows;height_2:rows;height_3:rows;height_4:rows' -o "$work/plan.json"
claim "space can be split by rules" exits 0
claim "the halos stand among the collectives" says halo

run mpirun -n 3 meshtf-run "$work/plan.json" --steps 20 --verify
claim "the plan runs on three ranks" exits 0
claim "its losses are those of one processor" says "the same training as on one processor"

run mpirun -n 3 meshtf-run "$work/plan.json" --steps 20 --verify --only-mpi
claim "and so they are through MPI" says "the same training as on one processor"

run meshtf-plan model unet --preset tiny --batch 1 -o "$work/unet.json"
run meshtf-plan search "$work/unet.json" --mesh all:4 --precision f64 --layouts free \
    --pin rows_8:all --pin other_rows_8:all -o "$work/unet-plan.json"
claim "the search splits the rows of volumes" says halo
run mpirun -n 4 meshtf-run "$work/unet-plan.json" --steps 5 --verify
claim "and trains as on one processor" says "the same training as on one processor"

# Of 64 elements in 4 parts, 62 from the second on, and those behind two others: elements near the edges
# of parts change hands.
cat >"$work/shifts.json" <<'GRAPH'
{"meshtf_graph": 1, "name": "shifts", "dimensions": {"n": 64, "m": 62, "k": 64, "b": 8},
 "inputs": [{"name": "x", "dims": ["b", "n"], "feed": "features"}],
 "variables": [{"name": "w", "dims": ["n"], "init": {"normal": 1}}],
 "operations": [{"name": "y", "op": "multiply", "inputs": ["x", "w"], "dims": ["b", "n"]},
                {"name": "sliced", "op": "slice", "inputs": ["y"], "from": "n", "to": "m", "start": 1},
                {"name": "padded", "op": "pad", "inputs": ["sliced"], "from": "m", "to": "k", "before": 2},
                {"name": "bent", "op": "tanh", "inputs": ["padded"]},
                {"name": "loss", "op": "reduce_mean", "inputs": ["bent"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
GRAPH
run meshtf-plan estimate "$work/shifts.json" --mesh a:4 --precision f64 --layout 'n:a;m:a;k:a' -o "$work/shifts-plan.json"
claim "what slices and pads move goes by halos" says halo
claim "and nothing is gathered for them" never_says allgather
run mpirun -n 4 meshtf-run "$work/shifts-plan.json" --steps 5 --verify
claim "a graph of slices trains as on one processor" says "the same training as on one processor"

# A third of a dimension, its end backwards, and all of it backwards, in 4 parts.
cat >"$work/pieces.json" <<'GRAPH'
{"meshtf_graph": 1, "name": "pieces", "dimensions": {"b": 8, "n": 33, "m": 11, "k": 7},
 "inputs": [{"name": "x", "dims": ["b", "n"], "feed": "features"}],
 "variables": [{"name": "w", "dims": ["n"], "init": {"normal": 1}}],
 "operations": [{"name": "y", "op": "multiply", "inputs": ["x", "w"], "dims": ["b", "n"]},
                {"name": "turned", "op": "reverse", "inputs": ["y"], "dimension": "n"},
                {"name": "bent", "op": "tanh", "inputs": ["turned"]},
                {"name": "third", "op": "slice", "inputs": ["bent"], "from": "n", "to": "m", "start": 11},
                {"name": "end", "op": "slice", "inputs": ["bent"], "from": "n", "to": "k", "start": 32, "stride": -1},
                {"name": "first", "op": "reduce_mean", "inputs": ["third"], "dims": []},
                {"name": "second", "op": "reduce_mean", "inputs": ["end"], "dims": []},
                {"name": "loss", "op": "add", "inputs": ["first", "second"]}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
GRAPH
run meshtf-plan estimate "$work/pieces.json" --mesh a:4 --precision f64 --layout 'n:a;m:a;k:a;turned/turned:a' -o "$work/pieces-plan.json"
claim "short pieces, and what is turned round, go by halos, too" says halo
claim "and are not gathered" never_says allgather
run mpirun -n 4 meshtf-run "$work/pieces-plan.json" --steps 5 --verify
claim "a graph of them trains as on one processor" says "the same training as on one processor"

# Of 33 elements every third, of these every second from the end on, in 4 parts: so go their gradients, with gaps.
cat >"$work/strides.json" <<'GRAPH'
{"meshtf_graph": 1, "name": "strides", "dimensions": {"b": 8, "n": 33, "m": 11, "k": 5},
 "inputs": [{"name": "x", "dims": ["b", "n"], "feed": "features"}],
 "variables": [{"name": "w", "dims": ["n"], "init": {"normal": 1}}],
 "operations": [{"name": "y", "op": "multiply", "inputs": ["x", "w"], "dims": ["b", "n"]},
                {"name": "thirds", "op": "slice", "inputs": ["y"], "from": "n", "to": "m", "start": 1, "stride": 3},
                {"name": "bent", "op": "tanh", "inputs": ["thirds"]},
                {"name": "halves", "op": "slice", "inputs": ["bent"], "from": "m", "to": "k", "start": 9, "stride": -2},
                {"name": "loss", "op": "reduce_mean", "inputs": ["halves"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
GRAPH
for mesh in a:4 'a:2;b:2' a:3; do
    split=a
    [ "$mesh" = a:4 ] || [ "$mesh" = a:3 ] || split=b
    run meshtf-plan estimate "$work/strides.json" --mesh "$mesh" --precision f64 --layout "n:$split;m:$split;k:$split" -o "$work/strides-plan.json"
    claim "every third element on $mesh goes by halos" says halo
    claim "and neither it nor its gradient is gathered" never_says allgather
    run mpirun --oversubscribe -n "$(echo "$mesh" | sed 's/[a-z]://g; s/;/*/' | bc)" meshtf-run "$work/strides-plan.json" --steps 5 --verify
    claim "a graph of strides on $mesh trains as on one processor" says "the same training as on one processor"
    claim "its bytes are those that were predicted" says "every rank's calls and bytes equal the program's"
done

# What turns or goes by another name on the way back to its own lies as that does, without a rule of its own; and so
# do scans.
for op in '"roll", "dimension": "n", "shift": 5' '"reverse", "dimension": "n"' '"cumulative_max", "dimension": "n"' \
    '"cumulative_sum", "dimension": "n"' '"cumulative_sum", "dimension": "n", "reverse": 1, "exclusive": 1'; do
    cat >"$work/passing.json" <<GRAPH
{"meshtf_graph": 1, "name": "passing", "dimensions": {"b": 8, "n": 35},
 "inputs": [{"name": "x", "dims": ["b", "n"], "feed": "features"}],
 "variables": [{"name": "w", "dims": ["n"], "init": {"normal": 1}}],
 "operations": [{"name": "y", "op": "multiply", "inputs": ["x", "w"], "dims": ["b", "n"]},
                {"name": "z", "inputs": ["y"], "op": $op},
                {"name": "bent", "op": "tanh", "inputs": ["z"]},
                {"name": "loss", "op": "reduce_mean", "inputs": ["bent"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
GRAPH
    run meshtf-plan estimate "$work/passing.json" --mesh a:4 --precision f64 --layout n:a -o "$work/passing-plan.json"
    claim "a rule for n alone splits $op" exits 0
    claim "$op is not gathered" never_says allgather
    run mpirun -n 4 meshtf-run "$work/passing-plan.json" --steps 5 --verify
    claim "$op in parts trains as on one processor" says "the same training as on one processor"
    claim "bytes of $op are those that were predicted" says "every rank's calls and bytes equal the program's"
done

# 40 elements before 21, in 3 parts. Held are 0, 13, 26, 40 of x and 0, 7, 14, 21 of y, made are 0, 20, 40, 61: of
# x 7 and 14 go one part down, of y 7 and 7 to the last, of the gradient of x 7 and 14 one part up. The most
# that one rank sends, 14 + 7 + 14 of 8 examples in float64, is 2240 bytes.
cat >"$work/joined.json" <<'GRAPH'
{"meshtf_graph": 1, "name": "joined", "dimensions": {"u": 40, "v": 21, "t": 61, "b": 8, "o": 5},
 "inputs": [{"name": "x", "dims": ["b", "u"], "feed": "features"}, {"name": "y", "dims": ["b", "v"], "feed": "targets"}],
 "variables": [{"name": "w", "dims": ["u"], "init": {"normal": 1}}, {"name": "m", "dims": ["t", "o"], "init": {"normal": 1}}],
 "operations": [{"name": "wx", "op": "multiply", "inputs": ["x", "w"], "dims": ["b", "u"]},
                {"name": "z", "op": "concat", "inputs": ["wx", "y"], "dims": ["b", "t"]},
                {"name": "p", "op": "einsum", "inputs": ["z", "m"], "dims": ["b", "o"]},
                {"name": "bent", "op": "tanh", "inputs": ["p"]},
                {"name": "loss", "op": "reduce_mean", "inputs": ["bent"], "dims": []}],
 "loss": "loss", "optimizer": {"kind": "sgd", "rate": 0.1}}
GRAPH
for n in 3 2 5 8; do
    run meshtf-plan estimate "$work/joined.json" --mesh a:$n --precision f64 --layout 'u:a;v:a;t:a' -o "$work/joined-plan.json"
    claim "what is joined in $n parts goes by halos" says halo
    claim "and nothing is gathered for it in $n parts" never_says allgather
    [ $n -ne 3 ] || claim "as many bytes as counted by hand" says '3          280     2.19 KiB'
    run mpirun -n $n meshtf-run "$work/joined-plan.json" --steps 5 --verify
    claim "joined in $n parts it trains as on one processor" says "the same training as on one processor"
    claim "bytes in $n parts are those that were predicted" says "every rank's calls and bytes equal the program's"
done

run meshtf-plan report "$work/plan.json" -o "$work/report"
claim "a report is drawn" exits 0
done_testing
