# SPDX-License-Identifier: GPL-3.0-or-later
# Fifty kills at random moments, by mpirun and under it, checkpoint writing included.
. tests/support/tap.sh
. tests/support/kills.sh

survive 50 20
survive 30 7 --devices 2 --stages 2 --microbatches 2 --schedule zb-v

done_testing
