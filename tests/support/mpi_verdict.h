// SPDX-License-Identifier: GPL-3.0-or-later
/* A cmocka assertion that fails on one rank leaves the others waiting in the next collective. So a
 * test under MPI collects its complaints, reduces the verdict over all ranks, and then judges, on
 * all ranks alike. */
#ifndef MTF_TESTS_MPI_VERDICT_H
#define MTF_TESTS_MPI_VERDICT_H

#include <glib.h>
#include <mpi.h>
#include <stdbool.h>

/* Prints "rank R: …" where `good` is false. */
void mtf_expect(bool good, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Collective over MPI_COMM_WORLD: whether all expectations of all ranks since the last verdict were
 * met. */
bool mtf_verdict(void);

/* Starts MPI for a test program: returns the control communicator and tells rank and size. */
MPI_Comm mtf_mpi_tests_begin(int *argc, char ***argv, int *rank, int *ranks);

/* Ends it; returns `failed`, for main. */
int mtf_mpi_tests_end(MPI_Comm control, int failed);

#endif
