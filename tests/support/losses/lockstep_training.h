// SPDX-License-Identifier: GPL-3.0-or-later
/* Training in lockstep, to compare what different programs of one model come to, bit by bit. */
#ifndef MTF_TESTS_LOCKSTEP_TRAINING_H
#define MTF_TESTS_LOCKSTEP_TRAINING_H

#include "tests/support/losses/lockstep.h"

/* What is the same, bit by bit. */
enum { MTF_SAME_LOSSES = 1, MTF_SAME_VARIABLES = 2, MTF_SAME_ALL = 3 };

/* Trains both for so many steps from the same initial values, on the text in a file or (NULL) on
 * generated data. Returns MTF_SAME_ALL where every loss, and every variable of a's graph, which b's
 * numbers alike, has the same bits. */
int mtf_train_both(const MtfProgram *a, const MtfProgram *b, const char *text, uint64_t seed,
                   int steps);

#endif
