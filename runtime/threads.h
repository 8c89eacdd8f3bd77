// SPDX-License-Identifier: GPL-3.0-or-later
/* Threads of matrix products. OpenBLAS would start one a core in every rank, so that four ranks on
 * four cores run sixteen: the number is set explicitly, from the cores that the ranks of one host
 * may use together. */
#ifndef MTF_THREADS_H
#define MTF_THREADS_H

#include <mpi.h>

/* Collective over `control`. Sets this rank's threads to max(1, allowed cores / ranks of this
 * host), unless OPENBLAS_NUM_THREADS or OMP_NUM_THREADS says otherwise, and returns a line that
 * says so: "4 ranks on 2 cores, 1 thread each …"; free with g_free. */
char *mtf_threads_set(MPI_Comm control);

#endif
