# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 60
# Convolutions and pools split over space, with halo exchanges before them: searched, run, reported.
. tests/support/tap.sh

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

run meshtf-plan report "$work/plan.json" -o "$work/report"
claim "a report is drawn" exits 0
done_testing
