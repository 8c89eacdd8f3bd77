// SPDX-License-Identifier: GPL-3.0-or-later
/* All processors of a mesh in one process: instruction i runs for every worker in turn, and the
 * exchanges of collectives are loops over the workers of each group. What ranks do under MPI,
 * without MPI, so that a property test can afford thousands of programs. */
#ifndef MTF_TESTS_LOCKSTEP_H
#define MTF_TESTS_LOCKSTEP_H

#include "runtime/data/data.h"

typedef struct {
    int n;
    MtfWorker **workers; /* by rank */
    MtfArena *arena;
    MtfData *data;   /* borrowed: fills micro-batches beyond the first; NULL where there are none */
    bool *under_way; /* by instruction: an exchange that has begun and is not over */
    bool late;       /* exchanges take place as late as the program allows; else at once */
} MtfLockstep;

/* Workers for every processor of the program's mesh, with poisoning on. The program must outlive
 * it. */
MtfLockstep *mtf_lockstep_new(const MtfProgram *program, uint64_t seed, GError **error);
void mtf_lockstep_free(MtfLockstep *lockstep);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfLockstep, mtf_lockstep_free)

/* Runs one instruction of step `step` (the first is 1) on every processor. */
void mtf_lockstep_instruction(MtfLockstep *lockstep, int index, int64_t step);

/* Makes the late exchanges that must be over before instruction `index`; those that run into the
 * end of the program with its length. */
void mtf_lockstep_end_due(MtfLockstep *lockstep, int index);

/* Runs a whole step; the inputs of the first micro-batch have been filled. */
void mtf_lockstep_step(MtfLockstep *lockstep, int64_t step);

/* A scalar result that the program keeps, reduced over the axes on which it is partial. */
double mtf_lockstep_scalar(const MtfLockstep *lockstep, int tensor);

#endif
