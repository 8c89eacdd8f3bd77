// SPDX-License-Identifier: GPL-3.0-or-later
/* An independent witness of what a run sends: wrappers around MPI's functions, which the linker
 * puts in their place, count every call and its payload by function and communicator, and pass it
 * on to PMPI. They know nothing of programs; which mesh axes a communicator covers, its name tells
 * (runtime/exchange/communicators.h). Traffic on the control communicator is left out. */
#ifndef MTF_TESTS_PMPI_WITNESS_H
#define MTF_TESTS_PMPI_WITNESS_H

#include "layouts/placement/reshard.h"

typedef struct {
    int64_t calls, bytes;
} MtfWitnessed;

/* Forgets everything. */
void mtf_witness_reset(void);

/* What was called since then for a collective over a set of mesh axes. */
MtfWitnessed mtf_witness_get(MtfReshardKind kind, unsigned axes);

/* Bytes that this rank sent in messages of MPI_Isend, over any set of axes, to `rank` of
 * MPI_COMM_WORLD. */
int64_t mtf_witness_sent(int rank);

/* Calls of other functions that carry data, and of any on a communicator without a name of ours. */
int64_t mtf_witness_strangers(void);

#endif
