// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/calibrate/calibrate_kernels.h"

#include "cost/machine/curve_name.h"
#include "cost/price/kernel_curves.h"
#include "layouts/kernel_work/row_length.h"
#include "runtime/calibrate/kernel_benchmark.h"
#include "runtime/support/processor_clock.h"
#include "runtime/worker/box_copy.h"

#include <math.h>
#include <string.h>

/* Processor time given to the rounds of one chunk of trials. */
#define PATIENCE 0.005

/* What a step reads, other than what it has just computed, was touched within the step, or is the
 * weights, touched a pass ago: trials run in chunks that touch CHUNK_BYTES between two runs of
 * one, which a small model stays below and a large one exceeds. Chunks of small trials touch less: a step
 * goes round in an arena of some dozens of tensors of a size, as the operands of CHUNK_MOST trials are. Chunks
 * of large ones touch more: CHUNK_LEAST have some fifteen tensors, of which a step has as many too; two or three trials go
 * round in what a cache keeps for them alone. What an optimizer updates was last touched a step ago: SWEPT_BYTES of other memory are read in between. */
#define CHUNK_BYTES (24.0 * (1 << 20))
#define CHUNK_LEAST 6
#define CHUNK_MOST 24
#define SWEPT_BYTES (INT64_C(160) << 20)

/* Trials of one size, what they are samples of, how many runs one of them holds, and where the arenas of
 * those lie that are measured in turn. */
typedef struct {
    int n;
    MtfKernelBenchmark *trials;
    MtfSample *samples;
    double *runs;
    MtfArenaMemory memory;
} Set;

static void set_init(Set *set, int most) {
    set->n = 0;
    set->trials = g_new0(MtfKernelBenchmark, most);
    set->samples = g_new0(MtfSample, most);
    set->runs = g_new0(double, most);
    set->memory = (MtfArenaMemory){ 0 };
}

static void set_clear(Set *set) {
    for (int i = 0; i < set->n; i++) {
        mtf_kernel_benchmark_clear(&set->trials[i]);
        g_free(set->samples[i].name);
    }
    g_free(set->trials);
    g_free(set->samples);
    g_free(set->runs);
    mtf_arena_memory_clear(&set->memory);
}

/* Takes the trial. */
static void set_add(Set *set, const MtfKernelBenchmark *trial, const MtfCurveName *name, double x,
                    double runs) {
    set->trials[set->n] = *trial;
    set->samples[set->n] = (MtfSample){ .name = mtf_curve_name_format(name), .x = x };
    set->runs[set->n++] = runs;
}

/* The end of the trials from `first` on that touch at most `bytes`, from `least` to CHUNK_MOST of them; and the rest of
 * the set, where that is fewer than `least`. */
static int chunk_end(const Set *set, int first, int least, double bytes) {
    int end = first;
    double sum = 0;
    for (; end < set->n && end - first < CHUNK_MOST; end++) {
        sum += mtf_kernel_benchmark_instruction(&set->trials[end])->traffic_bytes;
        if (end >= first + least && sum > bytes)
            break;
    }
    return set->n - end < least ? set->n : end;
}

/* Trials [first, end) in turn. */
static bool measure_chunk(Set *set, int first, int end, const MtfArenaMemory *swept,
                          MtfSamples *samples, GError **error) {
    int n = end - first;
    g_autofree double *seconds = g_new(double, (gsize)n);
    MtfKernelBenchmark *trials = &set->trials[first];
    if (!mtf_kernel_benchmarks_open(trials, n, &set->memory, error))
        return false;
    mtf_kernel_benchmarks_measure(trials, n, PATIENCE, swept, seconds);
    mtf_kernel_benchmarks_close(trials, n);
    for (int i = 0; i < n; i++) {
        const MtfSample *sample = &set->samples[first + i];
        mtf_samples_add(samples, sample->name, sample->x, seconds[i] / set->runs[first + i]);
    }
    return true;
}

/* A few trials at a time: what each touches was touched shortly before, except what is swept away.
 */
static bool set_measure(Set *set, const MtfArenaMemory *swept, MtfSamples *samples,
                        GError **error) {
    bool measured = true;
    for (int first = 0, end; measured && first < set->n; first = end) {
        end = chunk_end(set, first, swept != NULL ? 1 : CHUNK_LEAST, CHUNK_BYTES);
        measured = measure_chunk(set, first, end, swept, samples, error);
    }
    return measured;
}

/* ---- Operations ---------------------------------------------------------------------------- */

/* Of kernels' rows (kernel.h): r rows of c columns, t as many as r, o a few, k as c; h squares of q by k, so that a
 * mask hides half; a table has as many rows as there are ids. In elements of four bytes; those of eight come in half as many rows.
 * Vectors of f features at p positions, c at each. Of a convolution the places of both sides, yx and ji, as
 * many as r, windows of uv, and s and d channels, half of c. */
static const struct {
    int64_t rows, columns;
    bool short_rows; /* as many elements are measured in short rows, too */
} shapes[] = {
    { 2, 16, false },   { 16, 64, true },     { 64, 64, false },   { 64, 256, false },
    { 256, 256, true }, { 1024, 256, false }, { 2048, 256, true }, { 8192, 256, false }
};

#define FEATURES INT64_C(32)
#define WIDTH INT64_C(16) /* places of a convolution that are in a row, at most */
#define WINDOW 3

/* The most rows of operations that take so long for an element that memory is no matter: what more
 * take is in proportion. */
#define SLOW_ROWS 1024

static int64_t rows_of(size_t shape, MtfDtype dtype) {
    return MAX(1, shapes[shape].rows * 4 / mtf_dtype_bytes(dtype));
}

/* With short rows (a length) those operations alone that have rows. */
static void add_operation(Set *set, const MtfBenchmarkOperation *operation, MtfDtype dtype,
                          const int64_t *size_of, int64_t short_row) {
    MtfKernelBenchmark trial;
    mtf_kernel_benchmark_init(&trial, operation, dtype, size_of);
    MtfCurveName name = {
        .kind = MTF_CURVE_OPERATION, .operation = operation->kind, .dtype = dtype, .m = short_row
    };
    const MtfInstruction *instruction = mtf_kernel_benchmark_instruction(&trial);
    if (short_row > 0 && instruction->row_length != (double)short_row) {
        mtf_kernel_benchmark_clear(&trial);
        return;
    }
    set_add(set, &trial, &name, mtf_kernel_curve_work(instruction), 1);
}

/* With a length of rows, as many elements in such rows. */
static void fill_sizes(size_t shape, MtfDtype dtype, int64_t short_row, int64_t *size_of) {
    int64_t rows = rows_of(shape, dtype), columns = shapes[shape].columns;
    if (short_row > 0) {
        rows = MAX(1, rows * columns / short_row);
        columns = short_row;
    }
    memset(size_of, 0, 26 * sizeof *size_of);
    size_of['r' - 'a'] = size_of['t' - 'a'] = rows;
    size_of['c' - 'a'] = columns;
    size_of['o' - 'a'] = MIN(rows, 2);
    size_of['q' - 'a'] = MIN(rows, columns);
    size_of['h' - 'a'] = rows / MIN(rows, columns);
    size_of['k' - 'a'] = columns;
    size_of['f' - 'a'] = FEATURES;
    size_of['p' - 'a'] = MAX(1, rows / FEATURES);
    size_of['x' - 'a'] = size_of['i' - 'a'] = MIN(rows, WIDTH);
    size_of['y' - 'a'] = size_of['j' - 'a'] = MAX(1, rows / WIDTH);
    size_of['u' - 'a'] = size_of['v' - 'a'] = WINDOW;
    size_of['s' - 'a'] = size_of['d' - 'a'] = columns / MTF_CHANNEL_ELEMENTS;
}

/* The operations of one size, either those that update what is kept between steps, with other
 * memory swept in between, or the others. */
static bool measure_shape(MtfSamples *samples, MtfDtype dtype, size_t shape,
                          const MtfArenaMemory *swept, GError **error) {
    int64_t long_of[26], short_of[26];
    fill_sizes(shape, dtype, 0, long_of);
    fill_sizes(shape, dtype, MTF_SHORT_ROW, short_of);
    Set set;
    set_init(&set, 2 * MTF_OPERATIONS);
    for (int kind = 0; kind < MTF_OPERATIONS; kind++) {
        const MtfKernelTrial *operands = mtf_kernel_trial(kind);
        if (operands == NULL || mtf_kernel_is_update(kind) != (swept != NULL) ||
            (operands->is_slow && shapes[shape].rows > SLOW_ROWS))
            continue;
        MtfBenchmarkOperation operation = { kind, *operands };
        add_operation(&set, &operation, dtype, long_of, 0);
        if (shapes[shape].short_rows)
            add_operation(&set, &operation, dtype, short_of, MTF_SHORT_ROW);
    }
    bool measured = set_measure(&set, swept, samples, error);
    set_clear(&set);
    return measured;
}

bool mtf_calibrate_operations(MtfSamples *samples, MtfDtype dtype, GError **error) {
    MtfArenaMemory swept;
    if (!mtf_arena_memory_init(&swept, SWEPT_BYTES, false, error))
        return false;
    memset(swept.base, 1, SWEPT_BYTES);
    bool measured = true;
    for (size_t s = 0; measured && s < G_N_ELEMENTS(shapes); s++)
        measured = measure_shape(samples, dtype, s, NULL, error) &&
                   measure_shape(samples, dtype, s, &swept, error);
    mtf_arena_memory_clear(&swept);
    return measured;
}

/* ---- Products ------------------------------------------------------------------------------ */

static const int64_t sides[] = { 1, 4, 16, 64, 256, 1024 };
static const int64_t places[] = { 16, 32, 128, 512 }, widths[] = { 16, 32, 64, 128 };

/* Small products are measured many at a time, over operands of about this many bytes together. */
#define BATCH_BYTES (INT64_C(1) << 19)
#define BATCH_MOST 1024
#define HEADS 4

/* As attention's heads lie where there are several products: b examples of h heads, of which all
 * rows of one place are neighbours. Attention finds queries, keys and values just computed, its gradient that of
 * the result. */
static const MtfBenchmarkOperation products[MTF_PRODUCT_FORMS] = {
    [MTF_PRODUCT_NN] = { MTF_OP_EINSUM, { { "bhmk", "bkhn" }, "bmhn", MTF_FIRST_KEPT } },
    [MTF_PRODUCT_NT] = { MTF_OP_EINSUM, { { "bmhk", "bnhk" }, "bhmn", MTF_FIRST_KEPT } },
    [MTF_PRODUCT_TN] = { MTF_OP_EINSUM, { { "bhkm", "bkhn" }, "bmhn", MTF_SECOND_KEPT } },
    [MTF_PRODUCT_ATTENTION] = { MTF_OP_ATTENTION,
                                { { "bmhk", "bnhk", "bnhk" }, NULL, 7, true, false } },
    [MTF_PRODUCT_ATTENTION_GRAD] = { MTF_OP_ATTENTION_GRAD,
                                     { { "bmhk", "bnhk", "bnhk", "bmhk", "bmh", "bmhk" },
                                       NULL,
                                       1 << 5,
                                       true,
                                       false } },
};

static bool is_product(int kind) {
    for (size_t i = 0; i < G_N_ELEMENTS(products); i++)
        if (products[i].kind == kind)
            return true;
    return false;
}

bool mtf_goes_by_rates(int kind) {
    const MtfOperationRow *row = mtf_operation_row(kind);
    bool pools = row->windows != MTF_WINDOWS_NONE && row->products != MTF_PRODUCTS_CONV;
    return (pools && !row->samples) || row->loop != MTF_LOOP_NOTHING ||
           row->host != MTF_HOST_NOTHING;
}

/* Products of experts, of matrices in int8 and of linear attention go by the tables of einsum's, attention to a cache and
 * gradients with that of a bias by those of attention. */
bool mtf_calibrates_operation(int kind) {
    MtfProductsKind kinds = mtf_operation_row(kind)->products;
    return kinds == MTF_PRODUCTS_LINEAR_ATTENTION || kinds == MTF_PRODUCTS_LINEAR_ATTENTION_GRAD ||
           kinds == MTF_PRODUCTS_EXPERTS || kinds == MTF_PRODUCTS_QUANTIZED ||
           kinds == MTF_PRODUCTS_ATTENTION || kinds == MTF_PRODUCTS_ATTENTION_GRAD ||
           mtf_kernel_trial(kind) != NULL || is_product(kind);
}

static void add_products(Set *set, const MtfCurveName *name, int64_t k) {
    int64_t bytes = (name->m * k + k * name->n + name->m * name->n) * mtf_dtype_bytes(name->dtype);
    int64_t batch = CLAMP(BATCH_BYTES / bytes, 1, BATCH_MOST), heads = MIN(batch, HEADS);
    int64_t size_of[26] = { ['b' - 'a'] = batch / heads,
                            ['h' - 'a'] = heads,
                            ['m' - 'a'] = name->m,
                            ['n' - 'a'] = name->n,
                            ['k' - 'a'] = k };
    MtfKernelBenchmark trial;
    mtf_kernel_benchmark_init(&trial, &products[name->form], name->dtype, size_of);
    set_add(set, &trial, name, (double)k, (double)(batch / heads * heads));
}

/* What a call takes beside its products: that of one of 2 x 2 by 2 x 2, whose own work is nothing
 * beside it. */
static void add_call(Set *set, MtfDtype dtype) {
    static const MtfBenchmarkOperation product = { MTF_OP_EINSUM,
                                                   { { "mk", "kn" }, "mn", MTF_NOTHING_FRESH } };
    int64_t size_of[26] = { ['m' - 'a'] = 2, ['n' - 'a'] = 2, ['k' - 'a'] = 2 };
    MtfCurveName name = { .kind = MTF_CURVE_PRODUCT_CALL, .dtype = dtype };
    MtfKernelBenchmark trial;
    mtf_kernel_benchmark_init(&trial, &product, dtype, size_of);
    set_add(set, &trial, &name, 0, 1);
}

static bool measure_form(MtfSamples *samples, MtfDtype dtype, MtfProductForm form, GError **error) {
    bool attends = form >= MTF_PRODUCT_ATTENTION;
    const int64_t *side = attends ? places : sides, *depth = attends ? widths : sides;
    int n = attends ? G_N_ELEMENTS(places) : G_N_ELEMENTS(sides);
    Set set;
    set_init(&set, n * n * n + 1);
    if (form == MTF_PRODUCT_NN)
        add_call(&set, dtype);
    for (int i = 0; i < n * n * n; i++) {
        MtfCurveName name = { .kind = MTF_CURVE_PRODUCT,
                              .dtype = dtype,
                              .form = form,
                              .m = side[i / n / n],
                              .n = side[i / n % n] };
        add_products(&set, &name, depth[i % n]);
    }
    bool measured = set_measure(&set, NULL, samples, error);
    set_clear(&set);
    return measured;
}

bool mtf_calibrate_products(MtfSamples *samples, MtfDtype dtype, GError **error) {
    bool made = true;
    for (int form = 0; made && form < MTF_PRODUCT_FORMS; form++)
        made = measure_form(samples, dtype, (MtfProductForm)form, error);
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
    double clock = mtf_kernel_benchmark_clock();
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        int64_t bytes = rows_of(s, dtype) * shapes[s].columns * mtf_dtype_bytes(dtype);
        int64_t turns = MIN(CHUNK_MOST, COPIES_BYTES / (3 * bytes));
        double least = INFINITY;
        /* Over memory as the trials of a chunk touch it, and of the second time round. */
        for (int64_t i = 0; i < 2 * turns; i++) {
            char *from = memory + i % turns * 3 * bytes;
            double seconds = copy_seconds(s, dtype, from, from + 2 * bytes);
            least = i < turns ? least : fmin(least, seconds);
        }
        mtf_samples_add(samples, text, 2.0 * (double)bytes, fmax(least - clock, 1e-9));
    }
}
