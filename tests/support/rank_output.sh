#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# rank_output.sh FILE COMMAND...: runs COMMAND as one rank of an MPI job. Rank 0 speaks for all; what
# the others print goes to FILE.RANK, which is shown when the test fails.
file=$1
shift
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
[ "$rank" = 0 ] || exec "$@" >"$file.$rank" 2>&1
exec "$@"
