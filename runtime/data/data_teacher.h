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

#include "layouts/graph/random.h"

#include <stdint.h>

typedef struct MtfTeacher MtfTeacher;

/* For examples of `features` features and at most `outputs` outputs. */
MtfTeacher *mtf_teacher_new(int64_t features, int64_t outputs, uint64_t seed);
void mtf_teacher_free(MtfTeacher *teacher);

/* Feature `place` of an example of a step: uniform with mean 0 and variance 1. */
int64_t mtf_teacher_features(const MtfTeacher *teacher);
double mtf_teacher_feature(MtfTeacher *teacher, int64_t step, int64_t example, int64_t place);

/* Shows the teacher an example; then what it says of it: output `place`, and the place of the
 * largest of the first `outputs` outputs (the first of equals). */
void mtf_teacher_load(MtfTeacher *teacher, int64_t step, int64_t example);
double mtf_teacher_target(const MtfTeacher *teacher, int64_t place);
int64_t mtf_teacher_label(const MtfTeacher *teacher, int64_t outputs);

#endif
