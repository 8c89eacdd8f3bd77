#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Reading a prompt and generating behind it, GPT-2 small, one core: meshtf-run --serve beside eager PyTorch
# with a cache (Debian's python3-torch). Writes tests/bench/decode.txt.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "bench_decode: skipped, python3-torch is not installed"
    exit 0
fi
rows=$root/tests/bench/decode.txt
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{
    echo "# $(date -u +%Y-%m-%d), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores: ONLY=bench_decode make bench"
    echo "# processor milliseconds of a prompt of 128 tokens, and of a token behind it, all texts of the batch together; the least of 4 rounds"
    /usr/bin/python3 "$root/tests/bench/torch_decode.py" 4 "$folder"
} >"$rows.new"
mv "$rows.new" "$rows"
cat "$rows"
