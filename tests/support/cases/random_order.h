// SPDX-License-Identifier: GPL-3.0-or-later
/* Random legal orders of a program's instructions. What depends on what is found by comparing all
 * pairs, and not by mtf_dependences_new, so that the two are witnesses of each other. */
#ifndef MTF_TESTS_RANDOM_ORDER_H
#define MTF_TESTS_RANDOM_ORDER_H

#include "layouts/program/program.h"

/* Whether instruction `late` of a program must stay behind the earlier instruction `early`. */
bool mtf_must_follow(const MtfProgram *program, int early, int late);

/* The part of the step that an instruction belongs to: it stays in its part. */
int mtf_part_of_step(const MtfProgram *program, int instruction);

/* An order drawn instruction by instruction from those that are ready. The program is in the order
 * of its operations, and those of loops stay in theirs. Free with g_free. */
int *mtf_random_order(GRand *random, const MtfProgram *program);

#endif
