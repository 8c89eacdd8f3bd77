# SPDX-License-Identifier: GPL-3.0-or-later
# Every model type on one rank, on three and on four.
RANKS="1 3 4"
. tests/e2e/every_model_type.sh
