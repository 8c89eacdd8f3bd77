// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/calibrate_kernels.h"

#include "cost/curve_name.h"
#include "cost/kernel_curves.h"
#include "runtime/box_copy.h"
#include "runtime/kernel_trial.h"
#include "runtime/processor_clock.h"

#include <math.h>
#include <string.h>

/* Processor time given to the rounds of one set of trials. */
#define PATIENCE 0.05

/* Trials of one size, what they are samples of, and how many runs one of them holds. */
typedef struct {
    int n;
    MtfKernelTrial *trials;
    MtfSample *samples;
    double *runs;
} Set;

static void set_init(Set *set, int most) {
    set->n = 0;
    set->trials = g_new0(MtfKernelTrial, most);
    set->samples = g_new0(MtfSample, most);
    set->runs = g_new0(double, most);
}

static void set_clear(Set *set) {
    for (int i = 0; i < set->n; i++) {
        mtf_kernel_trial_clear(&set->trials[i]);
        g_free(set->samples[i].name);
    }
    g_free(set->trials);
    g_free(set->samples);
    g_free(set->runs);
}

/* Takes the trial; returns its index. */
static int set_add(Set *set, const MtfKernelTrial *trial, const MtfCurveName *name, double x,
                   double runs) {
    set->trials[set->n] = *trial;
    set->samples[set->n] = (MtfSample){ .name = mtf_curve_name_format(name), .x = x };
    set->runs[set->n] = runs;
    return set->n++;
}

static void add_sample(const Set *set, int i, double seconds, MtfSamples *samples) {
    mtf_samples_add(samples, set->samples[i].name, set->samples[i].x, seconds / set->runs[i]);
}

/* All trials in turn: what each touches was last touched a whole round ago. */
static void set_measure(const Set *set, MtfSamples *samples, bool (*wanted)(int kind)) {
    g_autofree double *seconds = g_new(double, (gsize)set->n);
    mtf_kernel_trials_measure(set->trials, set->n, PATIENCE, seconds);
    for (int i = 0; i < set->n; i++)
        if (wanted(mtf_graph_operation(set->trials[i].graph, 0)->kind))
            add_sample(set, i, seconds[i], samples);
}

/* The end of the trials from `first` on that touch at most `bytes`, at least one. */
static int chunk_end(const Set *set, int first, double bytes) {
    int end = first;
    double sum = 0;
    for (; end < set->n; end++) {
        sum += mtf_kernel_trial_instruction(&set->trials[end])->traffic_bytes;
        if (end > first && sum > bytes)
            break;
    }
    return end;
}

/* A few trials in turn: what each touches was touched shortly before. */
static void set_measure_in_chunks(const Set *set, MtfSamples *samples, double bytes,
                                  bool (*unwanted)(int kind)) {
    g_autofree double *seconds = g_new(double, (gsize)set->n);
    for (int first = 0, end; first < set->n; first = end) {
        end = chunk_end(set, first, bytes);
        mtf_kernel_trials_measure(&set->trials[first], end - first, PATIENCE / 10, seconds);
        for (int i = first; i < end; i++)
            if (unwanted == NULL || !unwanted(mtf_graph_operation(set->trials[i].graph, 0)->kind))
                add_sample(set, i, seconds[i - first], samples);
    }
}

/* ---- Operations ---------------------------------------------------------------------------- */

/* r rows of c columns, t as many as r; a table has as many rows as there are ids. Softmax runs over
 * q rows of k columns: as many elements in shorter rows; attention over h heads of d, e places that
 * look and f that are looked at. Where an operation has several forms, the
 * one that training steps spend most on. */
static const MtfTrialOperation operations[] = {
    { MTF_OP_EINSUM, { "qk", "qk" }, "q" },
    { MTF_OP_ADD, { "rc", "rc" }, NULL },
    { MTF_OP_SUBTRACT, { "rc", "rc" }, NULL },
    { MTF_OP_MULTIPLY, { "rc", "rc" }, NULL },
    { MTF_OP_DIVIDE, { "rc", "rc" }, NULL },
    { MTF_OP_MAXIMUM, { "rc", "rc" }, NULL },
    { MTF_OP_MINIMUM, { "rc", "rc" }, NULL },
    { MTF_OP_EQUAL, { "rc", "rc" }, NULL },
    { MTF_OP_SCALE, { "rc" }, NULL },
    { MTF_OP_RELU, { "rc" }, NULL },
    { MTF_OP_GELU, { "rc" }, NULL },
    { MTF_OP_SILU, { "rc" }, NULL },
    { MTF_OP_TANH, { "rc" }, NULL },
    { MTF_OP_SIGMOID, { "rc" }, NULL },
    { MTF_OP_EXP, { "rc" }, NULL },
    { MTF_OP_LOG, { "rc" }, NULL },
    { MTF_OP_SQRT, { "rc" }, NULL },
    { MTF_OP_RSQRT, { "rc" }, NULL },
    { MTF_OP_SQUARE, { "rc" }, NULL },
    { MTF_OP_NEGATE, { "rc" }, NULL },
    { MTF_OP_ABS, { "rc" }, NULL },
    { MTF_OP_SIGN, { "rc" }, NULL },
    { MTF_OP_REDUCE_SUM, { "rc" }, "c" },
    { MTF_OP_REDUCE_MEAN, { "rc" }, "r" },
    { MTF_OP_REDUCE_MAX, { "qk" }, "q" },
    { MTF_OP_RENAME, { "rc" }, NULL },
    { MTF_OP_TRANSPOSE, { "rc" }, "cr" },
    { MTF_OP_BROADCAST, { "c" }, "rc" },
    { MTF_OP_CAST, { "rc" }, NULL },
    { MTF_OP_STOP_GRADIENT, { "rc" }, NULL },
    { MTF_OP_CONSTANT, { NULL }, "rc" },
    { MTF_OP_RANGE, { NULL }, "c" },
    { MTF_OP_DROPOUT, { "rc" }, NULL },
    { MTF_OP_CAUSAL_MASK, { "qk" }, NULL },
    { MTF_OP_ATTENTION, { "hed", "hfd", "hfd" }, NULL },
    { MTF_OP_EMBEDDING, { "tc", "#r" }, "rc" },
    { MTF_OP_SUM_EXP, { "qk", "q" }, "q" },
    { MTF_OP_SOFTMAX_APPLY, { "qk", "q", "q" }, NULL },
    { MTF_OP_VARIANCE, { "rc", "r" }, "r" },
    { MTF_OP_NORMALIZE, { "rc", "r", "r", "c", "c" }, NULL },
    { MTF_OP_LABEL_LOGIT, { "rc", "#r" }, "r" },
    { MTF_OP_CROSS_ENTROPY, { "r", "r", "r" }, NULL },
    { MTF_OP_RELU_GRAD, { "rc", "rc" }, NULL },
    { MTF_OP_GELU_GRAD, { "rc", "rc" }, NULL },
    { MTF_OP_SILU_GRAD, { "rc", "rc" }, NULL },
    { MTF_OP_TANH_GRAD, { "rc", "rc" }, NULL },
    { MTF_OP_SIGMOID_GRAD, { "rc", "rc" }, NULL },
    { MTF_OP_CAUSAL_ZERO, { "qk" }, NULL },
    { MTF_OP_ATTENTION_GRAD, { "hed", "hfd", "hfd", "hed", "he", "hed" }, NULL },
    { MTF_OP_EMBEDDING_GRAD, { "#r", "rc" }, "tc" },
    { MTF_OP_SOFTMAX_GRAD, { "qk", "qk", "q" }, NULL },
    { MTF_OP_NORMALIZE_DOT, { "rc", "rc", "r", "r", "c" }, "r" },
    { MTF_OP_NORMALIZE_SCALE_GRAD, { "rc", "rc", "r", "r" }, "c" },
    { MTF_OP_NORMALIZE_GRAD, { "rc", "rc", "r", "r", "c", "r", "r" }, NULL },
    { MTF_OP_CROSS_ENTROPY_GRAD, { "rc", "#r", "r", "r", "r" }, NULL },
    { MTF_OP_ACCUMULATE, { "rc" }, NULL },
    { MTF_OP_CLIP_FACTOR, { "" }, NULL },
    { MTF_OP_LEARNING_RATE, { NULL }, "" },
    { MTF_OP_SGD, { "rc", "rc", "" }, NULL },
    { MTF_OP_MOMENTUM, { "rc", "rc", "rc", "" }, NULL },
    { MTF_OP_ADAM, { "rc", "rc", "rc", "rc", "" }, NULL },
    { MTF_OP_ADAFACTOR_MOMENT, { "rc", "rc" }, NULL },
    { MTF_OP_ADAFACTOR_DIRECTION, { "rc", "rc" }, NULL },
    { MTF_OP_ADAFACTOR_APPLY, { "rc", "rc", "", "" }, NULL },
};

/* In elements of four bytes; those of eight come in half as many rows. What an operation of a model
 * reads was mostly touched shortly before, so chunks stay in the caches that a processor's cores
 * share; what an optimizer updates was last touched a step ago, and comes from memory. */
#define CHUNK_BYTES (12.0 * (1 << 20))

static const struct {
    int64_t rows, columns;
} shapes[] = { { 2, 16 }, { 16, 64 }, { 64, 256 }, { 256, 256 }, { 1024, 256 }, { 2048, 256 } };

static int64_t rows_of(size_t shape, MtfDtype dtype) {
    return MAX(1, shapes[shape].rows * 4 / mtf_dtype_bytes(dtype));
}

bool mtf_calibrates_operation(int kind) {
    for (size_t i = 0; i < G_N_ELEMENTS(operations); i++)
        if (operations[i].kind == kind)
            return true;
    return false;
}

static bool add_operation(Set *set, const MtfTrialOperation *operation, MtfDtype dtype,
                          const int64_t *size_of, GError **error) {
    MtfKernelTrial trial;
    if (!mtf_kernel_trial_init(&trial, operation, dtype, size_of, error))
        return false;
    MtfCurveName name = { .kind = MTF_CURVE_OPERATION,
                          .operation = operation->kind,
                          .dtype = dtype };
    const MtfInstruction *instruction = mtf_kernel_trial_instruction(&trial);
    set_add(set, &trial, &name, mtf_kernel_curve_work(instruction), 1);
    return true;
}

static void fill_sizes(size_t shape, MtfDtype dtype, int64_t *size_of) {
    int64_t rows = rows_of(shape, dtype), columns = shapes[shape].columns;
    int64_t width = MIN(64, columns), places = CLAMP(rows * columns / width, 1, 128);
    memset(size_of, 0, 26 * sizeof *size_of);
    size_of['r' - 'a'] = size_of['t' - 'a'] = rows;
    size_of['c' - 'a'] = columns;
    size_of['q' - 'a'] = rows * 2;
    size_of['k' - 'a'] = columns / 2;
    size_of['d' - 'a'] = width;
    size_of['e' - 'a'] = size_of['f' - 'a'] = places;
    size_of['h' - 'a'] = MAX(1, rows * columns / width / places);
}

bool mtf_calibrate_operations(MtfSamples *samples, MtfDtype dtype, GError **error) {
    bool made = true;
    for (size_t s = 0; made && s < G_N_ELEMENTS(shapes); s++) {
        int64_t size_of[26];
        fill_sizes(s, dtype, size_of);
        Set set;
        set_init(&set, G_N_ELEMENTS(operations));
        for (size_t i = 0; made && i < G_N_ELEMENTS(operations); i++)
            made = add_operation(&set, &operations[i], dtype, size_of, error);
        if (made) {
            set_measure_in_chunks(&set, samples, CHUNK_BYTES, mtf_kernel_is_update);
            set_measure(&set, samples, mtf_kernel_is_update);
        }
        set_clear(&set);
    }
    return made;
}

/* ---- Products ------------------------------------------------------------------------------ */

static const int64_t sides[] = { 1, 4, 16, 64, 256, 1024 };

/* Products read weights that were touched a pass ago and activations that are new: chunks stay in
 * the shared cache of a large processor, and not of a small one. */
#define PRODUCT_CHUNK_BYTES (8.0 * (1 << 20))

/* Small products run many at a time, over operands of about so many bytes in all. */
#define BATCH_BYTES (INT64_C(1) << 19)
#define BATCH_MOST 1024

static bool add_products(Set *set, MtfDtype dtype, const MtfCurveName *name, int64_t k,
                         GError **error) {
    static const MtfTrialOperation products = { MTF_OP_EINSUM, { "bmk", "bkn" }, "bmn" };
    int64_t bytes = (name->m * k + k * name->n + name->m * name->n) * mtf_dtype_bytes(dtype);
    int64_t batch = CLAMP(BATCH_BYTES / bytes, 1, BATCH_MOST);
    int64_t size_of[26] = {
        ['b' - 'a'] = batch, ['m' - 'a'] = name->m, ['n' - 'a'] = name->n, ['k' - 'a'] = k
    };
    MtfKernelTrial trial;
    if (!mtf_kernel_trial_init(&trial, &products, dtype, size_of, error))
        return false;
    set_add(set, &trial, name, (double)k, (double)batch);
    return true;
}

/* What a call takes beside its products: that of one of 2 x 2 by 2 x 2, whose own work is nothing
 * beside it. */
static bool add_call(Set *set, MtfDtype dtype, GError **error) {
    static const MtfTrialOperation product = { MTF_OP_EINSUM, { "mk", "kn" }, "mn" };
    int64_t size_of[26] = { ['m' - 'a'] = 2, ['n' - 'a'] = 2, ['k' - 'a'] = 2 };
    MtfCurveName name = { .kind = MTF_CURVE_PRODUCT_CALL, .dtype = dtype };
    MtfKernelTrial trial;
    if (!mtf_kernel_trial_init(&trial, &product, dtype, size_of, error))
        return false;
    set_add(set, &trial, &name, 0, 1);
    return true;
}

bool mtf_calibrate_products(MtfSamples *samples, MtfDtype dtype, GError **error) {
    int n = G_N_ELEMENTS(sides);
    Set set;
    set_init(&set, n * n * n + 1);
    bool made = add_call(&set, dtype, error);
    for (int i = 0; made && i < n * n * n; i++) {
        MtfCurveName name = {
            .kind = MTF_CURVE_PRODUCT, .dtype = dtype, .m = sides[i / n / n], .n = sides[i / n % n]
        };
        made = add_products(&set, dtype, &name, sides[i % n], error);
    }
    if (made)
        set_measure_in_chunks(&set, samples, PRODUCT_CHUNK_BYTES, NULL);
    set_clear(&set);
    return made;
}

/* ---- Copies -------------------------------------------------------------------------------- */

#define COPIES_BYTES (INT64_C(64) << 20)

/* The left half of the columns of 2 x `columns` wide rows, packed: as a split dimension that is not
 * the outermost leaves them. */
static double copy_seconds(size_t shape, MtfDtype dtype, char *from, char *to) {
    int64_t rows = rows_of(shape, dtype), columns = shapes[shape].columns;
    MtfRange box[] = { { 0, rows }, { 0, columns } }, wide[] = { { 0, rows }, { 0, 2 * columns } };
    MtfBoxCopy copy;
    mtf_box_copy_init(&copy, 2, mtf_dtype_bytes(dtype), box, wide, box);
    double start = mtf_processor_seconds();
    mtf_box_copy_run(&copy, from, to);
    return mtf_processor_seconds() - start;
}

void mtf_calibrate_copies(MtfSamples *samples, MtfDtype dtype) {
    MtfCurveName name = { .kind = MTF_CURVE_CLASS, .class = MTF_CLASS_MOVE, .dtype = dtype };
    g_autofree char *text = mtf_curve_name_format(&name);
    g_autofree char *memory = g_malloc(COPIES_BYTES);
    memset(memory, 0, COPIES_BYTES);
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        int64_t bytes = rows_of(s, dtype) * shapes[s].columns * mtf_dtype_bytes(dtype);
        double least = INFINITY;
        /* Each copy elsewhere, so that what it reads was not touched for a while. */
        for (int64_t i = 0; i < 20; i++) {
            char *from = memory + i * 7 * bytes % (COPIES_BYTES - 3 * bytes) / 64 * 64;
            least = fmin(least, copy_seconds(s, dtype, from, from + 2 * bytes));
        }
        mtf_samples_add(samples, text, 2.0 * (double)bytes, least);
    }
}
