#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The formulas of collectives against the link-level simulator on 500 random tori, collectives and
# sizes: median and worst ratio by algorithm. Writes tests/bench/collectives.txt.
. tests/bench/bench.sh
{
    echo "# $(date -u +%Y-%m-%d), any machine (the simulator is exact arithmetic): meshtf-plan simulate --random 500"
    meshtf-plan simulate --random 500
} >"$rows.new"
keep
