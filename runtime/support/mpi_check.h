// SPDX-License-Identifier: GPL-3.0-or-later
/* Every MPI call of the runtime is checked. Communicators return their errors (MPI_ERRORS_RETURN);
 * a call that failed leaves no way to agree with the other ranks, so its rank says what happened
 * and ends the whole job: nobody waits for ever. */
#ifndef MTF_MPI_CHECK_H
#define MTF_MPI_CHECK_H

#include <mpi.h>

/* Does nothing when `code` is MPI_SUCCESS; otherwise prints "meshtf-run: rank R: CALL: what MPI
 * says" and aborts the job with status 1. */
void mtf_mpi_require(int code, const char *call);

#endif
