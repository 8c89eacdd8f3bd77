// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/data_teacher.h"

#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/base/kernel_random.h"

#include <math.h>
#include <string.h>

#define TEACHER_WIDTH 8
#define TEACHER_SEED 0x7ea0c4e5
#define DRAWN 4 /* examples at a time, whose sums do not wait for one another */
#define WORDS 512
#define BLOCK 16 /* values made at a time: what holds values has room for one more */
#define NOBODY INT64_C(-1)

/* Half of the weights that a feature has. */
#define HALF (TEACHER_WIDTH / 2)
typedef double Half __attribute__((vector_size(HALF * sizeof(double)), aligned(sizeof(double))));

struct MtfTeacher {
    int64_t features, outputs, batch;
    uint64_t seed;
    Half *in; /* U', row-major: a feature's weights side by side */
    double *
        out; /* V, a block of outputs after another: a hidden unit's weights of a block side by side */
    int64_t step, example;

    /* The features of some examples of a step: `drawn` of them from `first` on, 0: none. */
    double *x;
    int64_t drawn_step, first, drawn;

    /* tanh(U x) of each example, of the step that it was last drawn for, or NOBODY. */
    double *hidden;
    int64_t *hidden_step;

    /* What it says of the example that was asked about last, of step NOBODY before. */
    double *y;
    int64_t said_step, said_example;
};

/* Weight `row`, `column` of a matrix: normal, of variance 1 / columns. */
static double weight(const MtfRandom *random, int64_t columns, int64_t row, int64_t column) {
    return mtf_random_normal(random, row * columns + column) / sqrt((double)columns);
}

static Half *draw_in(int64_t features) {
    MtfRandom random = mtf_random_stream(TEACHER_SEED, "teacher/in", 0);
    Half *in = g_new(Half, (gsize)(2 * features));
    for (int64_t f = 0; f < features; f++)
        for (int h = 0; h < TEACHER_WIDTH; h++)
            in[2 * f + h / HALF][h % HALF] = weight(&random, features, h, f);
    return in;
}

static double *draw_out(int64_t outputs) {
    MtfRandom random = mtf_random_stream(TEACHER_SEED, "teacher/out", 0);
    double *out = g_new0(double, (gsize)((outputs + BLOCK) * TEACHER_WIDTH));
    for (int64_t k = 0; k < outputs; k++)
        for (int h = 0; h < TEACHER_WIDTH; h++)
            out[(k / BLOCK * TEACHER_WIDTH + h) * BLOCK + k % BLOCK] =
                weight(&random, TEACHER_WIDTH, k, h);
    return out;
}

MtfTeacher *mtf_teacher_new(int64_t features, int64_t outputs, int64_t batch, uint64_t seed) {
    MtfTeacher *teacher = g_new0(MtfTeacher, 1);
    teacher->features = features;
    teacher->outputs = outputs;
    teacher->batch = batch;
    teacher->seed = seed;
    teacher->in = draw_in(features);
    teacher->out = draw_out(outputs);
    teacher->x = g_new(double, (gsize)(MIN(DRAWN, batch) * features + BLOCK));
    teacher->hidden = g_new(double, (gsize)(batch * TEACHER_WIDTH));
    teacher->hidden_step = g_new(int64_t, (gsize)batch);
    for (int64_t i = 0; i < batch; i++)
        teacher->hidden_step[i] = NOBODY;
    teacher->y = g_new(double, (gsize)(outputs + BLOCK));
    teacher->said_step = NOBODY;
    return teacher;
}

void mtf_teacher_free(MtfTeacher *teacher) {
    if (teacher == NULL)
        return;
    g_free(teacher->in);
    g_free(teacher->out);
    g_free(teacher->x);
    g_free(teacher->hidden);
    g_free(teacher->hidden_step);
    g_free(teacher->y);
    g_free(teacher);
}

/* ---- Drawing ------------------------------------------------------------------------------- */

/* Uniform in [-sqrt 3, sqrt 3): variance 1. */
MTF_INLINE double feature_of(uint32_t word) {
    return (word * 0x1p-31 - 1) * sqrt(3);
}

/* Of whole blocks. */
MTF_EACH_VECTOR_UNIT static void features_of(const uint32_t *restrict words, int64_t n,
                                             double *restrict x) {
    for (int64_t i = 0; i < n; i += BLOCK)
        for (int j = 0; j < BLOCK; j++)
            x[i + j] = feature_of(words[i + j]);
}

/* sums[e] = U x[e] of four examples, each sum in the order of the features. */
MTF_EACH_VECTOR_UNIT static void add_features(const Half *in, int64_t features,
                                              const double *const *x, Half (*sums)[2]) {
    Half a_low = { 0 }, b_low = a_low, c_low = a_low, d_low = a_low;
    Half a_high = a_low, b_high = a_low, c_high = a_low, d_high = a_low;
    for (int64_t f = 0; f < features; f++) {
        Half low = in[2 * f], high = in[2 * f + 1];
        a_low += low * x[0][f];
        a_high += high * x[0][f];
        b_low += low * x[1][f];
        b_high += high * x[1][f];
        c_low += low * x[2][f];
        c_high += high * x[2][f];
        d_low += low * x[3][f];
        d_high += high * x[3][f];
    }
    const Half all[DRAWN][2] = {
        { a_low, a_high }, { b_low, b_high }, { c_low, c_high }, { d_low, d_high }
    };
    memcpy(sums, all, sizeof all);
}

static void keep_hidden(MtfTeacher *teacher, int64_t example, const Half *sums) {
    for (int h = 0; h < TEACHER_WIDTH; h++)
        teacher->hidden[example * TEACHER_WIDTH + h] = tanh(sums[h / HALF][h % HALF]);
    teacher->hidden_step[example] = teacher->drawn_step;
}

/* What the teacher makes of those just drawn; where there are fewer than four, of the last ones again. */
static void show_drawn(MtfTeacher *teacher) {
    const double *x[DRAWN];
    Half sums[DRAWN][2];
    for (int64_t e = 0; e < DRAWN; e++)
        x[e] = teacher->x + MIN(e, teacher->drawn - 1) * teacher->features;
    add_features(teacher->in, teacher->features, x, sums);
    for (int64_t e = 0; e < teacher->drawn; e++)
        keep_hidden(teacher, teacher->first + e, sums[e]);
}

static bool is_drawn(const MtfTeacher *teacher) {
    int64_t place = teacher->example - teacher->first;
    return teacher->drawn_step == teacher->step && place >= 0 && place < teacher->drawn;
}

/* The features of the example at hand and of the next `n - 1`. */
static void draw(MtfTeacher *teacher, int64_t n) {
    MtfRandom random = mtf_random_stream(teacher->seed, "data/features", (uint64_t)teacher->step);
    teacher->drawn_step = teacher->step;
    teacher->first = teacher->example;
    teacher->drawn = CLAMP(n, 1, MIN(DRAWN, teacher->batch - teacher->example));
    uint32_t words[WORDS] = { 0 };
    int64_t begin = teacher->first * teacher->features, all = teacher->drawn * teacher->features;
    for (int64_t i = 0; i < all; i += WORDS) {
        int64_t count = MIN(all - i, WORDS);
        mtf_kernel_random_words(&random, begin + i, count, words);
        features_of(words, count, teacher->x + i);
    }
}

void mtf_teacher_show(MtfTeacher *teacher, int64_t step, int64_t example, int64_t n) {
    teacher->step = step;
    teacher->example = example;
    if (is_drawn(teacher) || teacher->hidden_step[example] == step)
        return;
    draw(teacher, n);
    show_drawn(teacher);
}

/* ---- Asking -------------------------------------------------------------------------------- */

int64_t mtf_teacher_n_features(const MtfTeacher *teacher) {
    return teacher->features;
}

const double *mtf_teacher_features(MtfTeacher *teacher) {
    if (!is_drawn(teacher))
        draw(teacher, 1);
    return teacher->x + (teacher->example - teacher->first) * teacher->features;
}

/* y = V tanh(U x), each sum in the order of the hidden units. */
MTF_EACH_VECTOR_UNIT static void add_units(const double *restrict out, int64_t outputs,
                                           const double *restrict hidden, double *restrict y) {
    for (int64_t i = 0; i < outputs; i += BLOCK, out += BLOCK * TEACHER_WIDTH) {
        double sums[BLOCK] = { 0 };
        for (int h = 0; h < TEACHER_WIDTH; h++)
            for (int j = 0; j < BLOCK; j++)
                sums[j] += out[h * BLOCK + j] * hidden[h];
        memcpy(y + i, sums, sizeof sums);
    }
}

const double *mtf_teacher_targets(MtfTeacher *teacher) {
    const double *hidden = teacher->hidden + teacher->example * TEACHER_WIDTH;
    if (teacher->said_example != teacher->example || teacher->said_step != teacher->step)
        add_units(teacher->out, teacher->outputs, hidden, teacher->y);
    teacher->said_example = teacher->example;
    teacher->said_step = teacher->step;
    return teacher->y;
}

int64_t mtf_teacher_label(MtfTeacher *teacher, int64_t outputs) {
    const double *y = mtf_teacher_targets(teacher);
    int64_t best = 0;
    for (int64_t k = 1; k < outputs; k++)
        if (y[k] > y[best])
            best = k;
    return best;
}
