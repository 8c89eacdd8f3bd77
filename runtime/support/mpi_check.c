// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/support/mpi_check.h"

#include <stdio.h>

void mtf_mpi_require(int code, const char *call) {
    if (code == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length;
    int rank = 0;
    MPI_Error_string(code, text, &length);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "meshtf-run: rank %d: %s: %s\n", rank, call, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
