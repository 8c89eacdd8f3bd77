#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Every operation, every family's tiny preset and the networks of tests/golden/networks beside PyTorch (Debian's python3-torch): results, gradients,
# losses of some steps, with a word where something is too far or fails. Writes tests/bench/operations.txt where all could be
# run; BENCH_CASES="conv" only prints those with such a name. Fails where f32 differs by more than 1e-5 (families:
# 1e-4), or f64 by more than 1e-12 (1e-10).
. tests/bench/bench.sh
needs torch
# Programs of its own: a build beside it would take them away for a moment.
mkdir "$work/bin"
cp "$programs/meshtf-plan" "$programs/meshtf-run" "$work/bin"
export PATH="$work/bin:$PATH" MESHTF_LIBRARY="${MESHTF_LIBRARY:-$root/layouts/library}"
status=0
{
    today "torch $(/usr/bin/python3 -c 'import torch; print(torch.__version__)')"
    echo "# largest |ours - PyTorch's| / max(1, largest |PyTorch's|), PyTorch in f64; gradients of families relative to the tensor's largest"
    /usr/bin/python3 "$root/tests/bench/torch_operations.py" "$root/layouts/FORMATS.md" "$work"
} >"$work/rows" || status=$?
cat "$work/rows"
[ -z "${BENCH_CASES:-}" ] || exit $status
if [ "$status" -gt 1 ] || grep -q ' FAILED ' "$work/rows"; then
    echo "bench_operations: not all could be run, so operations.txt is left as it was"
    exit 1
fi
cp "$work/rows" "$rows"
exit $status
