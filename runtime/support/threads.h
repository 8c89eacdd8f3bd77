// SPDX-License-Identifier: GPL-3.0-or-later
/* Threads of matrix products. OpenBLAS would start one a core in every rank, so that four ranks on
 * four cores run sixteen: the number is set explicitly, from the cores that the ranks of one host
 * may use together. */
#ifndef MTF_THREADS_H
#define MTF_THREADS_H

#include <mpi.h>
#include <stdbool.h>

typedef struct {
    int ranks,
        cores;  /* of this host: all ranks, and the cores that one of them or another may use */
    int each;   /* BLAS threads of a rank */
    bool asked; /* the environment says how many */
} MtfThreads;

/* Collective over `control`, and before any worker is made: oneDNN makes code for as many threads
 * as there are then. Sets this rank's threads to max(1, cores / ranks), at most the cores it is
 * bound to, unless OPENBLAS_NUM_THREADS or OMP_NUM_THREADS says otherwise. */
MtfThreads mtf_threads_set(MPI_Comm control);

/* "4 ranks of this host on 2 cores, 1 BLAS thread each; they take turns"; free with g_free. */
char *mtf_threads_format(const MtfThreads *threads);

#endif
