#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Recurrent, routed and encoder-decoder networks beside PyTorch (Debian's python3-torch) on one core: processor
# seconds a step and resident memory. BENCH_MODELS="lstm-2x512" takes one of them. Writes tests/bench/texts.txt.
. tests/bench/bench.sh
needs torch
{
    today_here
    /usr/bin/python3 "$root/tests/bench/texts.py"
} >"$rows.new"
keep
