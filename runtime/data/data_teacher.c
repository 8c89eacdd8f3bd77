// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_teacher.h"

#include "runtime/kernels/base/kernel_random.h"

#include <math.h>

#define TEACHER_WIDTH 8
#define TEACHER_SEED 0x7ea0c4e5

struct MtfTeacher {
    int64_t features;
    uint64_t seed;
    double *in;                   /* U', row-major: a feature's weights side by side */
    double *out;                  /* V, row-major */
    double hidden[TEACHER_WIDTH]; /* tanh(U x) of the example shown last */
    int64_t step, example;        /* whose features are at hand; example -1: none */
    uint32_t *words;              /* what they are drawn from */
};

/* `rows` times `columns` normal numbers of variance 1 / columns. */
static double *draw_weights(const char *name, int64_t rows, int64_t columns) {
    MtfRandom random = mtf_random_stream(TEACHER_SEED, name, 0);
    double *weights = g_new(double, (gsize)(rows * columns));
    for (int64_t i = 0; i < rows * columns; i++)
        weights[i] = mtf_random_normal(&random, i) / sqrt((double)columns);
    return weights;
}

static double *transposed(double *matrix, int64_t rows, int64_t columns) {
    double *turned = g_new(double, (gsize)(rows * columns));
    for (int64_t i = 0; i < rows * columns; i++)
        turned[i % columns * rows + i / columns] = matrix[i];
    g_free(matrix);
    return turned;
}

MtfTeacher *mtf_teacher_new(int64_t features, int64_t outputs, uint64_t seed) {
    MtfTeacher *teacher = g_new0(MtfTeacher, 1);
    teacher->features = features;
    teacher->seed = seed;
    double *in = draw_weights("teacher/in", TEACHER_WIDTH, features);
    teacher->in = transposed(in, TEACHER_WIDTH, features);
    teacher->out = draw_weights("teacher/out", outputs, TEACHER_WIDTH);
    teacher->words = g_new(uint32_t, (gsize)features);
    teacher->example = -1;
    return teacher;
}

void mtf_teacher_free(MtfTeacher *teacher) {
    if (teacher == NULL)
        return;
    g_free(teacher->in);
    g_free(teacher->out);
    g_free(teacher->words);
    g_free(teacher);
}

/* Draws the features of an example, which are asked for one after another. */
static void draw_example(MtfTeacher *teacher, int64_t step, int64_t example) {
    if (teacher->example == example && teacher->step == step)
        return;
    MtfRandom random = mtf_random_stream(teacher->seed, "data/features", (uint64_t)step);
    mtf_kernel_random_words(&random, example * teacher->features, teacher->features,
                            teacher->words);
    teacher->step = step;
    teacher->example = example;
}

/* Uniform in [-sqrt 3, sqrt 3): variance 1. */
static double feature_of(uint32_t word) {
    return (word * 0x1p-31 - 1) * sqrt(3);
}

int64_t mtf_teacher_features(const MtfTeacher *teacher) {
    return teacher->features;
}

double mtf_teacher_feature(MtfTeacher *teacher, int64_t step, int64_t example, int64_t place) {
    draw_example(teacher, step, example);
    return feature_of(teacher->words[place]);
}

void mtf_teacher_load(MtfTeacher *teacher, int64_t step, int64_t example) {
    double sums[TEACHER_WIDTH] = { 0 };
    draw_example(teacher, step, example);
    for (int64_t f = 0; f < teacher->features; f++) {
        double x = feature_of(teacher->words[f]);
        for (int h = 0; h < TEACHER_WIDTH; h++)
            sums[h] += teacher->in[f * TEACHER_WIDTH + h] * x;
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
