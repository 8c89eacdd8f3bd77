// SPDX-License-Identifier: GPL-3.0-or-later
/* Training in lockstep, to compare what different programs of one model come to, bit by bit. */
#ifndef MTF_TESTS_LOCKSTEP_TRAINING_H
#define MTF_TESTS_LOCKSTEP_TRAINING_H

#include "tests/support/lockstep.h"

/* Trains for so many steps from initial values, on the text in a file or (NULL) on generated data;
 * losses[s] is that of step s. Free the answer, which stands after the last step, with
 * mtf_lockstep_free; the program must outlive it. */
MtfLockstep *mtf_train_in_lockstep(const MtfProgram *program, const char *text, uint64_t seed,
                                   int steps, double *losses);

/* Whether all slices of the variables of a's graph, which b's graph numbers alike, are equal. */
bool mtf_same_variables(const MtfLockstep *a, const MtfLockstep *b);

#endif
