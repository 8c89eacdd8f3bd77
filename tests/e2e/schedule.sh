# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Pipeline schedules from the shell.
. tests/support/tap.sh

schedule() {
    run meshtf-plan schedule "$@"
}

schedule 1F1B --stages 4 --micro-batches 8 --json
claim "a schedule is simulated" exits 0
claim "1F1B takes 3 (8 + 3)" says '"makespan": 33'
claim "a third of what it takes is bubble, 3/11" says '"bubble": 0.2727272727272727'

schedule zb-h2 --stages 4 --micro-batches 8 --times 1,1,1,0 --json
claim "a span may be shorter than the makespan" says '"span": 24'

schedule interleaved --stages 4 --micro-batches 8 --chunks 2
claim "people get a picture" says "11 in flight"

schedule gpipe --stages 2 --micro-batches 2 --csv "$work/gpipe.csv" --messages
claim "an order is written" exits 0
schedule "$work/gpipe.csv" --stages 2 --micro-batches 2 --json
claim "and read again, with its messages" says '"makespan": 9'
claim "PyTorch counts its steps" says '"steps": '
run meshtf-plan search mlp --devices 2 --stages 2 --schedule "$work/gpipe.csv" --machine cpu-host
claim "no plan has it" says_error "orders in files are simulated by \"meshtf-plan schedule $work/gpipe.csv\", no plan has them"
run meshtf-plan search mlp --devices 5 --mesh a:2 --stages 2 --machine cpu-host
claim "stages take the devices of their meshes" says_error "2 stages, each on mesh \"a:2\", take 4 devices together, not the 5"

schedule search --stages 4 --micro-batches 8 --memory 4 --json
claim "a search within 1F1B's memory reaches the bound, a ninth of bubble" says '"span": 27'
claim "and says that it is the best" says '"optimal": true'
schedule search --stages 4 --micro-batches 12 --times 5,6,4,0 --memory 8 --csv "$work/found.csv"
claim "an order that was found is written" exits 0
schedule "$work/found.csv" --times 5,6,4,0 --memory 8 --json
claim "and simulates to what the search said, shorter than the heuristic's 186" says '"span": 185'
schedule search --stages 2 --micro-batches 4 --chunks 2 --memory 1
claim "a cap below one micro-batch does not fit" exits 3

schedule "$work/gpipe.csv" --stages 3
claim "a file of other numbers is refused" bad_input
schedule interleaved --stages 4 --micro-batches 9
claim "micro-batches that make no rounds are refused" bad_input
schedule 1f1b --stages 0 --micro-batches 9
claim "no stages are refused" says_error "--stages 0 is not between 1 and 65536"
schedule 1f1b --stages 4 --micro-batches 8 --chunks 0
claim "and so are no chunks" says_error "--chunks 0 is not between 1 and 65536"
schedule 1f1b --stages 4
claim "missing micro-batches are refused" bad_input
schedule 1f1b --stages 4 --micro-batches 8 --times 1,2
claim "two times are refused" bad_input
schedule 1f1b --stages 4 --micro-batches 8 --times 1,-2,3
claim "negative times are refused" bad_input
schedule zb-h9 --stages 4 --micro-batches 8
claim "an unknown schedule is refused with the list" says_error "zb-h1"
printf '0F0,0B0,0F1,0B1\n1F1,1F0,1B1,1B0\n' >"$work/circle.csv"
schedule "$work/circle.csv"
claim "an order that deadlocks is refused" bad_input
claim "the circle is named" says_error "rank 0 at 0B0 waits for rank 1, rank 1 at 1F1 waits for rank 0"
schedule 1f1b --stages 4 --micro-batches 8 --memory 3
claim "a schedule that holds too much does not fit" exits 3

if [ -e ../shared/data/pipelines/pytorch_schedules.txt ]; then
    grep '^[0-9,]' ../shared/data/pipelines/pytorch_schedules.txt >"$work/both"
    head -n 2 "$work/both" >"$work/zb1p.csv"
    tail -n 4 "$work/both" >"$work/dualpipev.csv"
    schedule "$work/zb1p.csv" --stages 2 --micro-batches 8 --chunks 2 --json
    claim "PyTorch's zb1p takes 113 steps with sends and receives" says '"steps": 113'
    schedule "$work/dualpipev.csv" --stages 4 --micro-batches 10 --csv "$work/again.csv"
    claim "PyTorch's DualPipeV is read" exits 0
    claim "and written to the same bytes" cmp -s "$work/dualpipev.csv" "$work/again.csv"
    schedule dualpipe-v --stages 4 --micro-batches 10 --csv "$work/made.csv"
    claim "and made" cmp -s "$work/dualpipev.csv" "$work/made.csv"
else
    skip "PyTorch's artifacts are not here"
fi
done_testing
