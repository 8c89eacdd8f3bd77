#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Convolutional networks beside PyTorch (Debian's python3-torch and python3-torchvision) on one core:
# seconds a step, resident memory, losses from equal weights. BENCH_MODELS="unet-3d" takes one of them.
# Writes tests/bench/pictures.txt.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! /usr/bin/python3 -c 'import torch, torchvision' 2>/dev/null; then
    echo "bench_pictures: skipped, python3-torch or python3-torchvision is not installed"
    exit 0
fi
rows=$root/tests/bench/pictures.txt
{
    echo "# $(date -u +%Y-%m-%d), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores: ONLY=bench_pictures make bench"
    /usr/bin/python3 "$root/tests/bench/pictures.py"
} >"$rows.new"
mv "$rows.new" "$rows"
cat "$rows"
