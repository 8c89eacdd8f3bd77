# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 300
# Free layouts that the search found train under mpirun as one processor does.
. tests/support/tap.sh
. tests/support/searched_layouts.sh

transformer=layouts/library/graphs/transformer-small.json
tiny='--dim batch=8 --dim length=8 --dim memory_length=8 --dim d_model=16 --dim heads=4 --dim d_kv=4 --dim d_ff=32'

searched_trains layouts/library/graphs/mlp.json 'all:2' ''
searched_trains $transformer 'all:3' "$tiny"
searched_trains $transformer 'rows:2;cols:2' "$tiny"
searched_trains_in_little_memory $transformer 'rows:2;cols:2' "$tiny"

done_testing
