#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Reading a prompt and generating behind it, GPT-2 small, one core: meshtf-run --serve beside eager PyTorch
# with a cache (Debian's python3-torch). Writes tests/bench/decode.txt.
. tests/bench/bench.sh
needs torch
{
    today_here
    echo "# processor milliseconds of a prompt of 128 tokens, and of a token behind it, all texts of the batch together; the least of 4 rounds"
    /usr/bin/python3 "$root/tests/bench/torch_decode.py" 4 "$work"
} >"$rows.new"
keep
