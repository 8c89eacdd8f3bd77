#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# meshtf-plan stages, as a user types it.
. tests/support/tap.sh
profiles=../shared/data/pipelines

# seconds_at_most LIMIT: the "seconds" of the last --json are no more, and no less than 0.99 of it.
seconds_at_most() {
    sed -n 's/^ *"seconds": *\([-0-9.e]*\),.*/\1/p' "$work/out" | head -n 1 |
        awk -v limit="$1" '{ found = 1; exit !($1 <= limit * 1.00001 && $1 >= limit * 0.99) } END { if (!found) exit 1 }'
}

printf 'name seconds\na 4\nb 7\nc 3\nd 6\ne 5\nf 5\n' >"$work/table"
run meshtf-plan stages "$work/table" --devices 8 --batch 32 --overhead 0.5 --json
claim "a table of layers is divided as Alpa would" seconds_at_most 164.5
claim "the plan lists its nodes" says '"nodes":["a","b","c"]'
run meshtf-plan stages "$work/table" --devices 8 --batch 32 --overhead 0.5
claim "without --json there is a table" says "164.5, at least 164.5"

cat >"$work/graph.txt" <<'X'
node1 -- Input -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=8.0, parameter_size=0.0
node2 -- Conv2d(3, 64) -- forward_compute_time=10.0, backward_compute_time=20.0, activation_size=8.0, parameter_size=0.0
node3 -- Linear(1, 2) -- forward_compute_time=10.0, backward_compute_time=20.0, activation_size=8.0, parameter_size=40000000.0
	node1 -- node2
	node2 -- node3
X
run meshtf-plan stages "$work/graph.txt" --devices 2 --json
claim "a profile of PipeDream is divided, inputs are free" seconds_at_most 0.030
run meshtf-plan stages "$work/graph.txt" --devices 2x1 --bandwidth 1e9,1e8 --json
claim "devices may be grouped in machines" seconds_at_most 0.030
run meshtf-plan stages "$work/graph.txt" --devices 2 --memory 10
claim "nothing fits in ten bytes" says_error "no division into stages fits in 10 B a device"
printf 'name seconds stash\na 4 5e9\nb 3 4e9\n' >"$work/stashes"
run meshtf-plan stages "$work/stashes" --devices 2 --memory 4GB
claim "it is said what limit would do: half of both layers" says_error "would do is 4.19 GiB (--memory 4500000000)"
run meshtf-plan stages "$work/stashes" --devices 2 --memory 4500000000
claim "which does" exits 0
run meshtf-plan stages "$work/table" --devices 8 --batch 0
claim "a batch has at least one micro-batch" says_error "--batch 0 is not at least 1"
run meshtf-plan stages "$work/graph.txt"
claim "without devices it is bad input" bad_input
run meshtf-plan stages "$work/graph.txt" --devices 0
claim "zero devices are bad input" bad_input
run meshtf-plan stages "$work/graph.txt" --devices 2 --bandwidth fast
claim "a bandwidth without a number is bad input" bad_input
run meshtf-plan stages "$work/graph.txt" --devices 2 --bandwidth 1e9,1e9
claim "two bandwidths want two levels" bad_input
printf 'node1 -- x -- forward_compute_time=a\n' >"$work/bad.txt"
run meshtf-plan stages "$work/bad.txt" --devices 2
claim "a bad profile is refused in one sentence" bad_input
claim "the sentence gives the line" says_error "line 1"
printf '{"nodes": 3}' >"$work/bad.json"
run meshtf-plan stages "$work/bad.json" --devices 2
claim "bad JSON of Piper is refused in one sentence" bad_input

if [ -d "$profiles" ]; then
    run meshtf-plan stages "$profiles/pipedream_vgg16.txt" --devices 8 --bandwidth 10e9 --json
    claim "VGG-16 on 8 is as fast as PipeDream's plan" seconds_at_most 0.0899265
    run meshtf-plan stages "$profiles/pipedream_resnet50.txt" --devices 8 --bandwidth 10e9 --json
    claim "ResNet-50 on 8 is as fast as PipeDream's plan" seconds_at_most 0.0559150
    run meshtf-plan stages "$profiles/pipedream_vgg16.txt" --devices 4x4 --bandwidth 10e9,1e9 --json
    claim "VGG-16 on 4x4 is as fast as PipeDream's plan" seconds_at_most 0.0443459
    # Piper's own runs take 25 GiB/s (algo.cpp, single).
    for case in 8:0.1658558 64:0.02020055 512:0.002561128; do
        run meshtf-plan stages "$profiles/piper_bert32.json" --devices "${case%:*}" --memory 8GiB \
            --bandwidth 25GiB/s --batch 1920 --json
        claim "BERT-32 on ${case%:*} is as fast as Piper's plan" seconds_at_most "${case#*:}"
    done
else
    skip "the profiles of PipeDream and Piper are not there"
fi
done_testing
