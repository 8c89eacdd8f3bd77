// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/rows/kernel_lookup.h"

#include "layouts/graph/random.h"
#include "layouts/kernel_work/kernel_scratch.h"
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_map.h"
#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/kernel_random.h"
#include "runtime/kernels/base/slice.h"

#include <math.h>
#include <string.h>

/* How many elements dropout decides on at once. */
#define DROPOUT_BLOCK 256

typedef struct {
    void (*take)(void *out, const void *table, bool held, int64_t n, int64_t step);
    void (*add_to)(void *out, int64_t step, const void *in, int64_t in_step, int64_t n);
    void (*take_away)(void *out, const void *weight, const void *mask);
    void (*keep_causal)(void *out, const void *in, int64_t n, const int64_t *position,
                        const int64_t *step, double other);
    void (*keep_scaled)(void *out, const void *in, const uint8_t *keep, double scale, int64_t n);
} Loops;

#define LOOPS "runtime/kernels/rows/kernel_lookups.inc"
#include "runtime/kernels/rows/kernel_float_types.inc"

/* Whole numbers are looked up alone: nothing is scaled, hidden or added there. */
#define WHOLE_NUMBERS(T, suffix)                                                                  \
    static void take_##suffix(void *out, const void *table, bool held, int64_t n, int64_t step) { \
        T *y = out;                                                                               \
        for (int64_t i = 0; i < n; i++)                                                           \
            y[i] = held ? ((const T *)table)[i * step] : 0;                                       \
    }                                                                                             \
    static const Loops loops_##suffix = { .take = take_##suffix };

WHOLE_NUMBERS(int32_t, i32)
WHOLE_NUMBERS(int64_t, i64)

static const Loops *lookup_loops(const MtfOperand *operand) {
    return operand->dtype == MTF_I32   ? &loops_i32
           : operand->dtype == MTF_I64 ? &loops_i64
                                       : loops_of(operand);
}

/* A table whose rows along one dimension are chosen by ids. */
typedef struct {
    const MtfOperand *operand;
    int64_t begin, end; /* ids held here */
    int64_t stride;     /* from one id's elements to the next's */
} Table;

static Table table_of(const MtfOperand *operand, int position) {
    return (Table){ operand, operand->begin[position],
                    operand->begin[position] + operand->size[position],
                    mtf_operand_stride(operand, position) };
}

static bool holds(const Table *table, int32_t id) {
    return id >= table->begin && id < table->end;
}

/* The element `offset` on from the first of row `id`; NULL if that is not held. */
static void *table_at(const Table *table, int32_t id, int64_t offset) {
    if (!holds(table, id))
        return NULL;
    return mtf_operand_at(table->operand, (id - table->begin) * table->stride + offset);
}

static int32_t id_at(const MtfOperand *ids, int64_t offset) {
    return *(const int32_t *)mtf_operand_at(ids, offset);
}

/* For each element of the output, the table's at the id: operands out, ids, table. */
static void look_up(const MtfOperand *out, const MtfOperand *ids, const Table *table) {
    const Loops *loops = lookup_loops(out);
    MtfNest nest;
    mtf_nest_over(&nest, out, 3, (const MtfOperand *[]){ out, ids, table->operand });
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest)) {
        /* One id for a row of elements, or one for each. */
        int64_t run = mtf_nest_still(&nest, 1, 1);
        for (int64_t i = 0; i < nest.count; i += run) {
            int32_t id = id_at(ids, mtf_nest_at(&nest, 1, i));
            const void *row = table_at(table, id, mtf_nest_at(&nest, 2, i));
            loops->take(mtf_operand_at(out, nest.offset[0] + i), row, row != NULL, run,
                        nest.step[2]);
        }
    }
}

static void embedding_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs;
    Table table = table_of(&in[0], mtf_operand_find_lacking(&in[0], &call->outputs[0]));
    look_up(&call->outputs[0], &in[1], &table);
}

static void label_logit_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs;
    Table table = table_of(&in[0], mtf_operand_find_lacking(&in[0], &in[1]));
    look_up(&call->outputs[0], &in[1], &table);
}

static MtfTerm term_of(const MtfOperand *operand) {
    MtfTerm term = { .rank = operand->rank };
    memcpy(term.dims, operand->dims, sizeof term.dims);
    memcpy(term.size, operand->size, sizeof term.size);
    return term;
}

/* What a strip is added to: zero, or the third input. */
static void begin_strip(const MtfKernelCall *call, int64_t from, int64_t columns, float *sums) {
    int64_t rows = call->outputs[0].size[0], width = call->outputs[0].size[1];
    if (call->operation->n_inputs < 3)
        memset(sums, 0, (size_t)(rows * columns) * sizeof *sums);
    for (int64_t row = 0; call->operation->n_inputs == 3 && row < rows; row++)
        mtf_bf16_widen(sums + row * columns, mtf_operand_at(&call->inputs[2], row * width + from),
                       columns, 1);
}

/* Columns `from` … `from` + `columns` of a gradient in bfloat16: added up in float32, rounded once.
 */
static void embedding_grad_strip(const MtfKernelCall *call, int64_t from, int64_t columns) {
    const MtfOperand *ids = &call->inputs[0], *dy = &call->inputs[1], *out = &call->outputs[0];
    int64_t rows = out->size[0], width = out->size[1], n = mtf_operand_elements(ids);
    Table table = table_of(out, 0);
    float *sums = call->scratch;
    begin_strip(call, from, columns, sums);
    for (int64_t i = 0; i < n; i++) {
        int32_t id = id_at(ids, i);
        if (holds(&table, id))
            loops_bf16.add_to(sums + (id - table.begin) * columns, 1,
                              mtf_operand_at(dy, i * width + from), 1, columns);
    }
    for (int64_t row = 0; row < rows; row++)
        mtf_bf16_round(mtf_operand_at(out, row * width + from), sums + row * columns, columns);
}

static bool has_strips(const MtfKernelCall *call) {
    MtfTerm ids = term_of(&call->inputs[0]), dy = term_of(&call->inputs[1]);
    MtfTerm table = term_of(&call->outputs[0]);
    return mtf_operand_is_narrow(&call->outputs[0]) && mtf_table_has_strips(&ids, &dy, &table);
}

static void embedding_grad_strips(const MtfKernelCall *call) {
    int64_t width = call->outputs[0].size[1];
    for (int64_t from = 0; from < width; from += MTF_GRADIENT_STRIP)
        embedding_grad_strip(call, from, MIN(MTF_GRADIENT_STRIP, width - from));
}

/* What the gradient is added to, where it does not lie there already; or zero. */
static void begin_sums(const MtfKernelCall *call, const MtfOperand *sums) {
    if (call->operation->n_inputs < 3)
        mtf_operand_clear(sums, 0, mtf_operand_elements(sums));
    else if (call->inputs[2].data != sums->data)
        mtf_operand_convert(sums, &call->inputs[2]);
}

/* (ids, dy[, more]): operands dy, ids, gradient. */
static void embedding_grad_kernel(const MtfKernelCall *call) {
    if (has_strips(call)) {
        embedding_grad_strips(call);
        return;
    }
    const MtfOperand *ids = &call->inputs[0], *dy = &call->inputs[1];
    const MtfOperand sums = mtf_kernel_sums(call), *out = &sums;
    const Loops *loops = loops_of(dy);
    Table table = table_of(out, mtf_operand_find_lacking(out, dy));
    MtfNest nest;
    begin_sums(call, out);
    mtf_nest_over(&nest, dy, 3, (const MtfOperand *[]){ dy, ids, out });
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest)) {
        int64_t run = mtf_nest_still(&nest, 1, 1);
        for (int64_t i = 0; i < nest.count; i += run) {
            int32_t id = id_at(ids, mtf_nest_at(&nest, 1, i));
            void *row = table_at(&table, id, mtf_nest_at(&nest, 2, i));
            if (row != NULL)
                loops->add_to(row, nest.step[2], mtf_operand_at(dy, nest.offset[0] + i),
                              nest.step[0], run);
        }
    }
    mtf_kernel_store_sums(call, out);
}

/* Takes dy mask from the gradient at each label: operands labels, dy, mask, gradient. */
static void take_labels_away(const MtfOperand *out, const MtfOperand *labels, const MtfOperand *dy,
                             const MtfOperand *mask) {
    const Loops *loops = loops_of(out);
    Table table = table_of(out, mtf_operand_find_lacking(out, labels));
    MtfNest nest;
    mtf_nest_over(&nest, labels, 4,
                  (const MtfOperand *[]){ labels, dy, mask != NULL ? mask : dy, out });
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest))
        for (int64_t i = 0; i < nest.count; i++) {
            int64_t at[MTF_NEST_OPERANDS];
            mtf_nest_all_at(&nest, i, at);
            void *gradient = table_at(&table, id_at(labels, at[0]), at[3]);
            if (gradient != NULL)
                loops->take_away(gradient, mtf_operand_at(dy, at[1]),
                                 mask != NULL ? mtf_operand_at(mask, at[2]) : NULL);
        }
}

/* The operands of a call of cross_entropy_grad (logits, labels, max, sum, dy[, mask]). */
typedef struct {
    const MtfOperand *logits, *labels, *max, *sum, *dy, *mask;
    const MtfOperand *out;
} CrossEntropy;

/* Calls `visit` with the label's element of `of`, if it is held, for each label in the labels'
 * order; `at` holds the offsets of labels, max, sum, dy and mask, `i` counts labels. */
static void visit_labels(const CrossEntropy *c, const MtfOperand *of, float *kept,
                         void (*visit)(const CrossEntropy *c, uint16_t *element, const int64_t *at,
                                       float *kept)) {
    Table table = table_of(of, mtf_operand_find_lacking(of, c->labels));
    const MtfOperand *mask = c->mask != NULL ? c->mask : c->dy;
    MtfNest nest;
    mtf_nest_over(&nest, c->labels, 6,
                  (const MtfOperand *[]){ c->labels, c->max, c->sum, c->dy, mask, of });
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest))
        for (int64_t i = 0; i < nest.count; i++, kept++) {
            int64_t at[MTF_NEST_OPERANDS];
            mtf_nest_all_at(&nest, i, at);
            uint16_t *element = table_at(&table, id_at(c->labels, at[0]), at[5]);
            if (element != NULL)
                visit(c, element, at, kept);
        }
}

static float wide_at(const MtfOperand *operand, int64_t offset) {
    return *(const float *)mtf_operand_at(operand, offset);
}

/* (softmax - 1) dy mask, before the output takes the logits' memory. */
static void keep_label(const CrossEntropy *c, uint16_t *logit, const int64_t *at, float *kept) {
    float max = mtf_bf16_wide(*(const uint16_t *)mtf_operand_at(c->max, at[1]));
    float softmax = mtf_exp_f32(mtf_bf16_wide(*logit) - max) / wide_at(c->sum, at[2]);
    float weight = wide_at(c->dy, at[3]) * (c->mask != NULL ? wide_at(c->mask, at[4]) : 1);
    *kept = (softmax - 1) * weight;
}

static void put_label(const CrossEntropy *c, uint16_t *gradient, const int64_t *at, float *kept) {
    (void)c, (void)at;
    *gradient = mtf_bf16_rounded(*kept);
}

static void softmax_weighted(const CrossEntropy *c) {
    const MtfMapRow *row = &mtf_map_softmax_weighted;
    MtfElementMap mapping = { .map = c->out->dtype == MTF_F64 ? row->f64 : row->f32,
                              .n_inputs = c->mask != NULL ? 5 : 4,
                              .n_outputs = 1,
                              .in = { c->logits, c->max, c->sum, c->dy, c->mask },
                              .out = { c->out } };
    mtf_element_map_apply(&mapping);
}

/* softmax dy mask, less dy mask at the label. */
static void cross_entropy_grad_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs;
    CrossEntropy c = { .logits = &in[0],
                       .labels = &in[1],
                       .max = &in[2],
                       .sum = &in[3],
                       .dy = &in[4],
                       .mask = call->operation->n_inputs > 5 ? &in[5] : NULL,
                       .out = &call->outputs[0] };
    if (!mtf_operand_is_narrow(c.out)) {
        softmax_weighted(&c);
        take_labels_away(c.out, c.labels, c.dy, c.mask);
        return;
    }
    visit_labels(&c, c.logits, call->scratch, keep_label);
    softmax_weighted(&c);
    visit_labels(&c, c.out, call->scratch, put_label);
}

/* Operands out, in, position of the query, position of the memory. */
static void keep_causal(const MtfKernelCall *call, double other) {
    const MtfOperand *out = &call->outputs[0], *in = &call->inputs[0];
    const MtfAttributes *a = &call->operation->attributes;
    const Loops *loops = loops_of(out);
    MtfNest nest;
    mtf_nest_over(&nest, out, 2, (const MtfOperand *[]){ out, in });
    mtf_nest_add_position(&nest, out, a->query);
    mtf_nest_add_position(&nest, out, a->memory);
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest))
        loops->keep_causal(mtf_operand_at(out, nest.offset[0]), mtf_operand_at(in, nest.offset[1]),
                           nest.count, &nest.offset[2], &nest.step[2], other);
}

static void causal_mask_kernel(const MtfKernelCall *call) {
    keep_causal(call, -1e30);
}

static void causal_zero_kernel(const MtfKernelCall *call) {
    keep_causal(call, 0);
}

/* keep[i] for the elements number first, first + step, … */
static void decide(const MtfRandom *random, double rate, int64_t first, int64_t step, int64_t n,
                   uint8_t *keep) {
    if (step == 1)
        mtf_kernel_random_keep(random, rate, first, n, keep);
    else
        for (int64_t i = 0; i < n; i++)
            keep[i] = mtf_random_keeps(random, rate, first + i * step);
}

/* Operands out, in, number of the element. */
static void dropout_kernel(const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0], *in = &call->inputs[0];
    const MtfAttributes *a = &call->operation->attributes;
    const char *name = a->stream != NULL ? a->stream : call->operation->name;
    double rate = call->step > 0 ? a->rate : 0;
    MtfRandom random = mtf_random_stream(call->seed, name,
                                         mtf_random_step((uint64_t)call->step - 1, call->element));
    const Loops *loops = loops_of(out);
    uint8_t keep[DROPOUT_BLOCK];
    MtfNest nest;
    mtf_nest_over(&nest, out, 2, (const MtfOperand *[]){ out, in });
    mtf_nest_add_element_number(&nest, out);
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest))
        for (int64_t at = 0; at < nest.count; at += DROPOUT_BLOCK) {
            int64_t n = MIN(DROPOUT_BLOCK, nest.count - at);
            decide(&random, rate, mtf_nest_at(&nest, 2, at), nest.step[2], n, keep);
            loops->keep_scaled(mtf_operand_at(out, nest.offset[0] + at),
                               mtf_operand_at(in, nest.offset[1] + at), keep, 1 / (1 - rate), n);
        }
}

/* The formulas stand in operation_table.h. */
double mtf_learning_rate(const MtfAttributes *a, double t) {
    const char *schedule = a->schedule != NULL ? a->schedule : "constant";
    double ramp = a->warmup > 0 ? MIN(1, t / a->warmup) : 1;
    if (strcmp(schedule, "constant") == 0)
        return a->rate;
    if (strcmp(schedule, "linear_warmup") == 0)
        return a->rate * ramp;
    if (strcmp(schedule, "inverse_sqrt") == 0)
        return a->rate * MIN(ramp, sqrt(MAX(a->warmup, 1) / t));
    if (strcmp(schedule, "step") == 0)
        return a->rate * ramp * pow(a->drop, floor(MAX(t - a->warmup, 0) / a->period));
    if (strcmp(schedule, "wsd") == 0)
        return a->rate * ramp *
               (a->final + (1 - a->final) * MIN(1, MAX(a->total - t, 0) / a->cooldown));
    double p = a->total > a->warmup ? CLAMP((t - a->warmup) / (a->total - a->warmup), 0, 1) : 1;
    double left = strcmp(schedule, "cosine") == 0       ? (1 + cos(G_PI * p)) / 2
                  : strcmp(schedule, "polynomial") == 0 ? pow(1 - p, a->power)
                                                        : 1 - p;
    return a->rate * ramp * (a->final + (1 - a->final) * left);
}

static void learning_rate_kernel(const MtfKernelCall *call) {
    mtf_slice_set(&call->outputs[0], 0,
                  mtf_learning_rate(&call->operation->attributes, (double)call->step));
}

const MtfKernelRow mtf_lookup_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_DROPOUT, dropout_kernel, { "rc" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_CAUSAL_MASK, causal_mask_kernel, { "hqk" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_EMBEDDING, embedding_kernel, { "tc", "#r" }, "rc", MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_LABEL_LOGIT, label_logit_kernel, { "rc", "#r" }, "r",
                     MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_CAUSAL_ZERO, causal_zero_kernel, { "hqk" }, NULL, MTF_FIRST_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_EMBEDDING_GRAD, embedding_grad_kernel, { "#r", "rc" }, "tc",
                     MTF_SECOND_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_CROSS_ENTROPY_GRAD, cross_entropy_grad_kernel,
                     { "rc", "#r", "r", "r", "r" }, NULL, MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_LEARNING_RATE, learning_rate_kernel, { NULL }, "", MTF_NOTHING_FRESH),
    { .kernel = NULL },
};
