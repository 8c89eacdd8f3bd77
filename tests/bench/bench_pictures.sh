#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Convolutional networks beside PyTorch (Debian's python3-torch and python3-torchvision) on one core:
# seconds a step, resident memory, losses from equal weights. BENCH_MODELS="unet-3d" takes one of them.
# Writes tests/bench/pictures.txt.
. tests/bench/bench.sh
needs torch torchvision
{
    today_here
    /usr/bin/python3 "$root/tests/bench/pictures.py"
} >"$rows.new"
keep
