# SPDX-License-Identifier: GPL-3.0-or-later
# seconds: 300
# A few kills at random moments by mpirun and under it; long_kills.sh does fifty.
. tests/support/tap.sh
. tests/support/kills.sh

survive 8 1

done_testing
