// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data_teacher.h"

#include <math.h>

#define TEACHER_WIDTH 8
#define TEACHER_SEED 0x7ea0c4e5

struct MtfTeacher {
    int64_t features;
    uint64_t seed;
    double *in;                   /* U, row-major */
    double *out;                  /* V, row-major */
    double hidden[TEACHER_WIDTH]; /* tanh(U x) of the example shown last */
    MtfRandom random;             /* the features' stream at the step asked about last */
    int64_t block;                /* of it, the four words at hand; -1 = none */
    uint32_t words[4];
};

/* `rows` times `columns` normal numbers of variance 1 / columns. */
static double *draw_weights(const char *name, int64_t rows, int64_t columns) {
    MtfRandom random = mtf_random_stream(TEACHER_SEED, name, 0);
    double *weights = g_new(double, (gsize)(rows * columns));
    for (int64_t i = 0; i < rows * columns; i++)
        weights[i] = mtf_random_normal(&random, i) / sqrt((double)columns);
    return weights;
}

MtfTeacher *mtf_teacher_new(int64_t features, int64_t outputs, uint64_t seed) {
    MtfTeacher *teacher = g_new0(MtfTeacher, 1);
    teacher->features = features;
    teacher->seed = seed;
    teacher->in = draw_weights("teacher/in", TEACHER_WIDTH, features);
    teacher->out = draw_weights("teacher/out", outputs, TEACHER_WIDTH);
    teacher->block = -1;
    return teacher;
}

void mtf_teacher_free(MtfTeacher *teacher) {
    if (teacher == NULL)
        return;
    g_free(teacher->in);
    g_free(teacher->out);
    g_free(teacher);
}

static void begin_step(MtfTeacher *teacher, int64_t step) {
    if (teacher->block >= 0 && teacher->random.step == (uint64_t)step)
        return;
    teacher->random = mtf_random_stream(teacher->seed, "data/features", (uint64_t)step);
    teacher->block = -1;
}

/* Uniform in [-sqrt 3, sqrt 3): variance 1. Neighbours share a block of four words. */
static double draw_feature(MtfTeacher *teacher, int64_t index) {
    if (index / 4 != teacher->block)
        mtf_random_block(&teacher->random, index / 4, teacher->words);
    teacher->block = index / 4;
    return (teacher->words[index % 4] * 0x1p-31 - 1) * sqrt(3);
}

double mtf_teacher_feature(MtfTeacher *teacher, int64_t step, int64_t example, int64_t place) {
    begin_step(teacher, step);
    return draw_feature(teacher, example * teacher->features + place);
}

void mtf_teacher_load(MtfTeacher *teacher, int64_t step, int64_t example) {
    double sums[TEACHER_WIDTH] = { 0 };
    begin_step(teacher, step);
    for (int64_t f = 0; f < teacher->features; f++) {
        double x = draw_feature(teacher, example * teacher->features + f);
        for (int h = 0; h < TEACHER_WIDTH; h++)
            sums[h] += teacher->in[h * teacher->features + f] * x;
    }
    for (int h = 0; h < TEACHER_WIDTH; h++)
        teacher->hidden[h] = tanh(sums[h]);
}

double mtf_teacher_target(const MtfTeacher *teacher, int64_t place) {
    double sum = 0;
    for (int h = 0; h < TEACHER_WIDTH; h++)
        sum += teacher->out[place * TEACHER_WIDTH + h] * teacher->hidden[h];
    return sum;
}

int64_t mtf_teacher_label(const MtfTeacher *teacher, int64_t outputs) {
    int64_t best = 0;
    for (int64_t k = 1; k < outputs; k++)
        if (mtf_teacher_target(teacher, k) > mtf_teacher_target(teacher, best))
            best = k;
    return best;
}
