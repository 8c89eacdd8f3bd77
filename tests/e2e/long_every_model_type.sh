# SPDX-License-Identifier: GPL-3.0-or-later
# Every model type on one rank and on three.
RANKS="1 3"
. tests/e2e/every_model_type.sh
