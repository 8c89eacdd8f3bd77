# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 7200
# Many searched layouts: graphs, meshes and memory limits.
. tests/support/tap.sh
. tests/support/searched_layouts.sh

for sizes in '' '--dim batch=12' '--dim hidden=48 --dim batch=10'; do
    for mesh in 'all:2' 'all:3' 'rows:2;cols:2' 'rows:3;cols:2' 'planes:2;rows:2;cols:2'; do
        searched_trains layouts/library/graphs/mlp.json "$mesh" "$sizes"
        searched_trains_in_little_memory layouts/library/graphs/mlp.json "$mesh" "$sizes"
    done
done
tiny='--dim d_model=16 --dim heads=4 --dim d_kv=4 --dim d_ff=32'
for sizes in '--dim batch=8 --dim length=8 --dim memory_length=8' '--dim batch=6 --dim length=12 --dim memory_length=12'; do
    for mesh in 'all:2' 'all:3' 'all:4' 'rows:2;cols:2' 'rows:2;cols:3'; do
        searched_trains layouts/library/graphs/transformer-small.json "$mesh" "$tiny $sizes"
        searched_trains_in_little_memory layouts/library/graphs/transformer-small.json "$mesh" "$tiny $sizes"
    done
done

done_testing
