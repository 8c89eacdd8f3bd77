#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Recurrent, routed and encoder-decoder networks beside PyTorch (Debian's python3-torch) on one core: processor
# seconds a step and resident memory. BENCH_MODELS="lstm-2x512" takes one of them. Writes tests/bench/texts.txt.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "bench_texts: skipped, python3-torch is not installed"
    exit 0
fi
PATH=$root/${MTF_BUILD:-build/release}:$PATH
rows=$root/tests/bench/texts.txt
{
    echo "# $(date -u +%Y-%m-%d), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores: ONLY=bench_texts make bench"
    /usr/bin/python3 "$root/tests/bench/texts.py"
} >"$rows.new"
mv "$rows.new" "$rows"
cat "$rows"
