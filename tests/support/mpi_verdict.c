// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/mpi_verdict.h"

#include "runtime/exchange/communicators.h"

#include <stdio.h>

static int complaints;

void mtf_expect(bool good, const char *format, ...) {
    if (good)
        return;
    int rank;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (complaints++ < 10)
        printf("# rank %d: %s\n", rank, text);
}

bool mtf_verdict(void) {
    int total = complaints;
    PMPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    complaints = 0;
    return total == 0;
}

MPI_Comm mtf_mpi_tests_begin(int *argc, char ***argv, int *rank, int *ranks) {
    MPI_Init(argc, argv);
    MPI_Comm control = mtf_control_new(MPI_COMM_WORLD);
    MPI_Comm_rank(control, rank);
    MPI_Comm_size(control, ranks);
    return control;
}

int mtf_mpi_tests_end(MPI_Comm control, int failed) {
    MPI_Comm_free(&control);
    MPI_Finalize();
    return failed;
}
