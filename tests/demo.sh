#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The whole chain on real input: write the graph of a byte-level Transformer, search its layout on a
# 2x2 mesh, draw it, and train it on this project's own source text with four MPI ranks.
set -eu
steps=${DEMO_STEPS:-120}
out=build/demo
mkdir -p "$out"

say() {
    printf '\n\033[1m$ %s\033[0m\n' "$*" | if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then cat; else
        sed 's/\x1b\[[0-9;]*m//g'; fi
    "$@"
}

# shellcheck disable=SC2046 # the names hold no spaces
cat $(find analyzer cost layouts reports runtime tests -name '*.[ch]' | LC_ALL=C sort) > "$out/source.txt"

say meshtf-plan model transformer-lm --preset demo -o "$out/graph.json"
say meshtf-plan search "$out/graph.json" --mesh 'rows:2;cols:2' --machine cpu-host \
    -o "$out/plan.json" --report "$out/report"

export OPENBLAS_NUM_THREADS=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
say mpirun --oversubscribe -n 4 "$(command -v meshtf-run)" "$out/plan.json" \
    --data "$out/source.txt" --steps "$steps" --metrics "$out/metrics.jsonl" \
    --trace 2:3 --trace-file "$out/trace.json"

say meshtf-plan report "$out/plan.json" --metrics "$out/metrics.jsonl" --trace "$out/trace.json" -o "$out/report"

printf '\nThe pages are in %s/report: open index.html\n' "$out"
