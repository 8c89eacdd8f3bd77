# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 300
# A few kills at random moments by mpirun and under it; long_kills.sh does fifty.
. tests/support/tap.sh
. tests/support/kills.sh

survive 6 1
claim "the plan joins small exchanges" grep -q '"bucket_bytes": *[1-9]' "$work/plan.json"
survive 4 3 --devices 2 --stages 2 --microbatches 2
claim "the plan is a pipeline" grep -q meshtf_pipeline_plan "$work/plan.json"

done_testing
