// SPDX-License-Identifier: GPL-3.0-or-later
/* Generated examples: features drawn at random, and a teacher that says what belongs to them,
 *
 *     y = V tanh(U x)      U[hidden, features] ~ N(0, 1 / features), V[outputs, hidden] ~ N(0, 1 /
 * 8)
 *
 * with 8 hidden units, so that a network can learn it and one example costs little. U and V are the
 * same for every seed. */
#ifndef MTF_DATA_TEACHER_H
#define MTF_DATA_TEACHER_H

#include <stdint.h>

typedef struct MtfTeacher MtfTeacher;

/* For examples of `features` features and at most `outputs` outputs, of which a step has `batch`. */
MtfTeacher *mtf_teacher_new(int64_t features, int64_t outputs, int64_t batch, uint64_t seed);
void mtf_teacher_free(MtfTeacher *teacher);

/* Shows the teacher `example` of a step, the first of `n` that are asked about in turn: it draws some at a time, and
 * remembers what it makes of each until it sees that example of another step. */
void mtf_teacher_show(MtfTeacher *teacher, int64_t step, int64_t example, int64_t n);

/* How many features an example has, and those of this one, uniform with mean 0 and variance 1: the teacher's, and
 * good until the next example is shown. */
int64_t mtf_teacher_n_features(const MtfTeacher *teacher);
const double *mtf_teacher_features(MtfTeacher *teacher);

/* What the teacher says of it, all outputs, as good for as long; and the place of the largest of the first `outputs`
 * (the first of equals). */
const double *mtf_teacher_targets(MtfTeacher *teacher);
int64_t mtf_teacher_label(MtfTeacher *teacher, int64_t outputs);

#endif
