// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/base/kernel_map.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/base/kernel_nest.h"

/* Elements of a block: the arrays of all inputs, and what is asked for ahead, fit the nearest
 * cache.
 */
#define BLOCK 512
#define LANES 32
#define CACHE_LINE 64

/* What the walk needs of an element type. */
typedef struct {
    double lowest; /* a maximum over nothing */
    double (*sum)(const void *block, int64_t n);
    double (*max)(const void *block, int64_t n);
    void (*add_to)(void *out, const void *block, int64_t n, int64_t step);
    void (*raise_to)(void *out, const void *block, int64_t n, int64_t step);
    void (*fill)(void *out, double value, int64_t n);
    double (*load)(const void *x);
    void (*gather)(void *out, const void *in, int64_t n, int64_t step);
    void (*repeat)(void *out, const void *in, int64_t n);
    void (*from_truths)(void *out, const uint8_t *in, int64_t n, int64_t step);
    void (*to_truths)(uint8_t *out, const void *in, int64_t n);
    void (*divide)(void *out, double divisor, int64_t n);
} Reductions;

#define T float
#define LOWEST (-INFINITY)
#define NAME(name) name##_f32
#include "runtime/kernels/base/kernel_reductions.inc"
#undef T
#undef LOWEST
#undef NAME

#define T double
#define LOWEST (-INFINITY)
#define NAME(name) name##_f64
#include "runtime/kernels/base/kernel_reductions.inc"
#undef T
#undef LOWEST
#undef NAME

#define T int32_t
#define LOWEST (INT32_MIN)
#define NAME(name) name##_i32
#include "runtime/kernels/base/kernel_reductions.inc"
#undef T
#undef LOWEST
#undef NAME

#define T int64_t
#define LOWEST (INT64_MIN)
#define NAME(name) name##_i64
#include "runtime/kernels/base/kernel_reductions.inc"
#undef T
#undef LOWEST
#undef NAME

#define T uint8_t
#define LOWEST (0)
#define NAME(name) name##_bool
#include "runtime/kernels/base/kernel_reductions.inc"
#undef T
#undef LOWEST
#undef NAME

/* Of the types that are computed with. */
static const Reductions *const reductions_of[MTF_DTYPES] = { [MTF_F32] = &reductions_f32,
                                                             [MTF_F64] = &reductions_f64,
                                                             [MTF_I32] = &reductions_i32,
                                                             [MTF_I64] = &reductions_i64,
                                                             [MTF_BOOL] = &reductions_bool };

static MtfMap map_of(const MtfMapRow *row, MtfDtype dtype) {
    return dtype == MTF_F64   ? row->f64
           : dtype == MTF_I32 ? row->i32
           : dtype == MTF_I64 ? row->i64
                              : row->f32;
}

/* The type that a map computes in: that of its first operand that is not bool, widened; int32 for bools
 * alone. */
static MtfDtype map_dtype(const MtfElementMap *mapping) {
    for (int k = 0; k < mapping->n_inputs; k++)
        if (mapping->in[k]->dtype != MTF_BOOL)
            return mtf_dtype_wide(mapping->in[k]->dtype);
    return mapping->n_inputs > 0 ? MTF_I32 : mtf_dtype_wide(mapping->out[0]->dtype);
}

/* Element `offset` of an operand. */
static double load_element(const MtfOperand *operand, int64_t offset) {
    const void *element = mtf_operand_at(operand, offset);
    return mtf_operand_is_narrow(operand) ? (double)mtf_bf16_wide(*(const uint16_t *)element)
                                          : reductions_of[operand->dtype]->load(element);
}

double mtf_operand_scalar(const MtfOperand *operand) {
    return load_element(operand, 0);
}

static void divide_by(const MtfOperand *operand, double divisor) {
    const Reductions *reductions = reductions_of[operand->dtype];
    reductions->divide(operand->data, divisor, mtf_operand_elements(operand));
}

/* The row's map on all inputs and outputs of a call. */
static void map_init(MtfElementMap *mapping, const MtfMapRow *row, const MtfKernelCall *call) {
    const MtfOperation *operation = call->operation;
    mapping->continues = mapping->wide = false;
    mapping->n_inputs = row->arrays > 0 ? row->arrays : operation->n_inputs;
    mapping->n_outputs = operation->n_outputs;
    for (int k = 0; k < mapping->n_inputs; k++)
        mapping->in[k] = &call->inputs[k];
    for (int k = 0; k < mapping->n_outputs; k++)
        mapping->out[k] = &call->outputs[k];
    mapping->map = map_of(row, map_dtype(mapping));
    if (row->parameters != NULL)
        row->parameters(call, mapping->parameters);
}

/* Where an operand's elements are, looked up once a walk: rows may be short. */
typedef struct {
    char *data;
    int64_t bytes; /* of an element */
    MtfDtype dtype;
    bool converts; /* between its type and the walk's */
} Place;

static Place place_of(const MtfOperand *operand, MtfDtype wide) {
    return (Place){ operand->data, mtf_dtype_bytes(operand->dtype), operand->dtype,
                    operand->dtype != wide };
}

static void *element_at(const Place *place, int64_t offset) {
    return place->data + offset * place->bytes;
}

/* The walk: loops, and an array for each input that does not lie in memory as a block wants it.
 * Outputs are the nest's first operands. */
typedef struct {
    const MtfElementMap *mapping;
    MtfDtype wide; /* that blocks are of */
    const Reductions *reductions;
    Place in[MTF_MAP_INPUTS], out[MTF_MAX_OUTPUTS];
    MtfNest nest;
    int64_t repeated_at[MTF_MAP_INPUTS]; /* which element array k repeats … */
    int64_t repeated[MTF_MAP_INPUTS];    /* … and how often */
    _Alignas(64) char array[MTF_MAP_INPUTS][BLOCK * sizeof(double)];
    _Alignas(64) char result[MTF_MAX_OUTPUTS][BLOCK * sizeof(double)]; /* of outputs that convert */
} Walk;

static bool walk_first(Walk *walk) {
    for (int k = 0; k < walk->mapping->n_outputs; k++) {
        mtf_nest_add(&walk->nest, walk->mapping->out[k]);
        walk->out[k] = place_of(walk->mapping->out[k], walk->wide);
    }
    for (int k = 0; k < walk->mapping->n_inputs; k++) {
        mtf_nest_add(&walk->nest, walk->mapping->in[k]);
        walk->in[k] = place_of(walk->mapping->in[k], walk->wide);
    }
    bool any = mtf_nest_first(&walk->nest);
    for (int k = 0; k < walk->mapping->n_inputs; k++)
        walk->repeated[k] = 0;
    return any;
}

/* Asks for the block behind this one: processors look ahead within small pages only, and while a
 * map computes. */
static void expect_next(const Place *in, int64_t offset, int64_t n) {
    const char *next = element_at(in, offset + n);
    for (int64_t i = 0; i < n * in->bytes; i += CACHE_LINE)
        __builtin_prefetch(next + i);
}

static void widen(const Walk *walk, const Place *in, void *array, int64_t offset, int64_t n,
                  int64_t step) {
    const void *from = element_at(in, offset);
    if (in->dtype == MTF_BF16)
        mtf_bf16_widen(array, from, n, step);
    else
        walk->reductions->from_truths(array, from, n, step);
}

static void narrow(const Walk *walk, int k, int64_t at, int64_t n) {
    void *to = element_at(&walk->out[k], walk->nest.offset[k] + at);
    if (walk->out[k].dtype == MTF_BF16)
        mtf_bf16_round(to, (const float *)(gconstpointer)walk->result[k], n);
    else
        walk->reductions->to_truths(to, walk->result[k], n);
}

/* `n` times the element. */
static void repeat(const Walk *walk, int k, void *array, int64_t offset, int64_t n) {
    if (walk->in[k].converts)
        walk->reductions->fill(array, load_element(walk->mapping->in[k], offset), n);
    else
        walk->reductions->repeat(array, element_at(&walk->in[k], offset), n);
}

/* Input `k` of the block of `n` elements that begins at turn `at`. */
static const void *block_input(Walk *walk, int k, int64_t at, int64_t n) {
    const Place *in = &walk->in[k];
    int64_t step = walk->nest.step[walk->mapping->n_outputs + k];
    int64_t offset = walk->nest.offset[walk->mapping->n_outputs + k] + at * step;
    if (step == 1)
        expect_next(in, offset, n);
    if (step == 1 && !in->converts)
        return element_at(in, offset);
    if (step != 0) {
        if (in->converts)
            widen(walk, in, walk->array[k], offset, n, step);
        else
            walk->reductions->gather(walk->array[k], element_at(in, offset), n, step);
        return walk->array[k];
    }
    if (walk->repeated[k] < n || walk->repeated_at[k] != offset) {
        repeat(walk, k, walk->array[k], offset, n);
        walk->repeated[k] = n;
        walk->repeated_at[k] = offset;
    }
    return walk->array[k];
}

static void block_fill(Walk *walk, MtfMapBlock *block, int64_t at, int64_t n) {
    block->n = n;
    for (int k = 0; k < walk->mapping->n_inputs; k++)
        block->in[k] = block_input(walk, k, at, n);
}

static MtfMapBlock block_of(const Walk *walk) {
    MtfMapBlock block = { .n_inputs = walk->mapping->n_inputs,
                          .parameters = walk->mapping->parameters };
    for (int k = 0; k < walk->mapping->n_inputs; k++)
        if (walk->nest.step[walk->mapping->n_outputs + k] == 0)
            block.uniform |= 1U << k;
    return block;
}

static void apply_row(Walk *walk, MtfMapBlock *block) {
    const MtfElementMap *mapping = walk->mapping;
    for (int64_t at = 0; at < walk->nest.count; at += BLOCK) {
        block_fill(walk, block, at, MIN(BLOCK, walk->nest.count - at));
        for (int k = 0; k < mapping->n_outputs; k++)
            block->out[k] = walk->out[k].converts
                                ? (void *)walk->result[k]
                                : element_at(&walk->out[k], walk->nest.offset[k] + at);
        mapping->map(block);
        for (int k = 0; k < mapping->n_outputs; k++)
            if (walk->out[k].converts)
                narrow(walk, k, at, block->n);
    }
}

void mtf_element_map_apply(const MtfElementMap *mapping) {
    Walk walk; /* too large to be cleared for every call */
    walk.mapping = mapping;
    walk.wide = map_dtype(mapping);
    walk.reductions = reductions_of[walk.wide];
    mtf_nest_init(&walk.nest);
    mtf_nest_add_loops(&walk.nest, mapping->out[0]);
    bool more = walk_first(&walk);
    MtfMapBlock block = more ? block_of(&walk) : (MtfMapBlock){ 0 };
    for (; more; more = mtf_nest_next(&walk.nest))
        apply_row(&walk, &block);
}

/* Loops in the order of the largest input's memory, those it lacks outside. */
static void add_reduce_loops(MtfNest *nest, const MtfElementMap *mapping) {
    const MtfOperand *lead = mapping->in[0];
    for (int k = 1; k < mapping->n_inputs; k++)
        if (mtf_operand_elements(mapping->in[k]) > mtf_operand_elements(lead))
            lead = mapping->in[k];
    for (int k = 0; k < mapping->n_inputs; k++)
        mtf_nest_add_loops_lacking(nest, mapping->in[k], lead);
    mtf_nest_add_loops(nest, lead);
}

/* Blocks of one row, all of them into one element of the output. */
static void reduce_row(Walk *walk, MtfMapBlock *block, bool sums, void *result, char *out) {
    double (*reduce)(const void *, int64_t) = sums ? walk->reductions->sum : walk->reductions->max;
    double total = walk->reductions->load(out);
    for (int64_t at = 0; at < walk->nest.count; at += BLOCK) {
        block_fill(walk, block, at, MIN(BLOCK, walk->nest.count - at));
        if (walk->mapping->map != NULL)
            walk->mapping->map(block);
        double part = reduce(walk->mapping->map != NULL ? result : block->in[0], block->n);
        total = sums ? total + part : MAX(total, part);
    }
    walk->reductions->fill(out, total, 1);
}

/* A block of one row whose elements each have one of their own in the output. */
static void add_row(Walk *walk, MtfMapBlock *block, bool sums, void *result, char *out) {
    int64_t step = walk->nest.step[0];
    int64_t bytes = walk->out[0].bytes;
    for (int64_t at = 0; at < walk->nest.count; at += BLOCK) {
        block_fill(walk, block, at, MIN(BLOCK, walk->nest.count - at));
        if (walk->mapping->map != NULL)
            walk->mapping->map(block);
        (sums ? walk->reductions->add_to : walk->reductions->raise_to)(
            out + at * step * bytes, walk->mapping->map != NULL ? result : block->in[0], block->n,
            step);
    }
}

MTF_EACH_VECTOR_UNIT static void add_widened(double *sums, const float *block, int64_t n,
                                             int64_t step) {
    if (step == 1)
        for (int64_t i = 0; i < n; i++)
            sums[i] += (double)block[i];
    else
        for (int64_t i = 0; i < n; i++)
            sums[i * step] += (double)block[i];
}

/* Blocks of one row of floats, into one double or each element into its own. */
static void sum_row_widened(Walk *walk, MtfMapBlock *block, void *result, double *sums) {
    int64_t step = walk->nest.step[0];
    for (int64_t at = 0; at < walk->nest.count; at += BLOCK) {
        block_fill(walk, block, at, MIN(BLOCK, walk->nest.count - at));
        if (walk->mapping->map != NULL)
            walk->mapping->map(block);
        const void *terms = walk->mapping->map != NULL ? result : block->in[0];
        if (step == 0)
            *sums += walk->reductions->sum(terms, block->n);
        else
            add_widened(sums + at * step, terms, block->n, step);
    }
}

static void fold_row(Walk *walk, MtfMapBlock *block, bool sums, void *result) {
    char *out = element_at(&walk->out[0], walk->nest.offset[0]);
    if (walk->mapping->wide)
        sum_row_widened(walk, block, result, (double *)(void *)out);
    else if (walk->nest.step[0] == 0 && walk->wide != MTF_I64) /* which double may not hold */
        reduce_row(walk, block, sums, result, out);
    else
        add_row(walk, block, sums, result, out);
}

void mtf_element_map_reduce(const MtfElementMap *mapping, MtfReduction reduction) {
    const MtfOperand *out = mapping->out[0];
    const Reductions *folds = reductions_of[out->dtype];
    bool sums = reduction != MTF_REDUCE_MAX;
    _Alignas(64) char result[BLOCK * sizeof(double)];
    Walk walk; /* too large to be cleared for every call */
    walk.mapping = mapping;
    walk.wide = mapping->wide ? MTF_F32 : out->dtype;
    walk.reductions = reductions_of[walk.wide];
    if (!mapping->continues)
        folds->fill(out->data, sums ? 0 : folds->lowest, mtf_operand_elements(out));
    mtf_nest_init(&walk.nest);
    add_reduce_loops(&walk.nest, mapping);
    bool more = walk_first(&walk);
    MtfMapBlock block = more ? block_of(&walk) : (MtfMapBlock){ 0 };
    block.out[0] = result;
    for (; more; more = mtf_nest_next(&walk.nest))
        fold_row(&walk, &block, sums, result);
}

void mtf_kernel_map(const MtfKernelCall *call) {
    MtfElementMap mapping;
    map_init(&mapping, mtf_map_row(call->operation->kind), call);
    mtf_element_map_apply(&mapping);
}

static void reduce_to(const MtfKernelCall *call, const MtfOperand *sums) {
    MtfElementMap mapping;
    map_init(&mapping, mtf_map_row(call->operation->kind), call);
    mapping.out[0] = sums;
    mapping.continues = call->continues;
    mapping.wide = sums->dtype != mtf_dtype_wide(call->outputs[0].dtype);
    mtf_element_map_reduce(&mapping, mtf_operation_row(call->operation->kind)->reduction);
}

void mtf_kernel_reduce(const MtfKernelCall *call) {
    MtfOperand sums = mtf_kernel_sums(call);
    reduce_to(call, &sums);
    mtf_kernel_store_sums(call, &sums);
}

void mtf_kernel_mean(const MtfKernelCall *call) {
    MtfOperand sums = mtf_kernel_sums(call);
    reduce_to(call, &sums);
    divide_by(&sums, mtf_kernel_mean_count(call, &call->inputs[0], &sums));
    mtf_kernel_store_sums(call, &sums);
}

/* One more term; the output carries what has no room any longer. */
static void add_term(MtfElementMap *mapping, const MtfOperand *in) {
    if (mapping->n_inputs == MTF_MAP_INPUTS) {
        mtf_element_map_apply(mapping);
        mapping->in[0] = mapping->out[0];
        mapping->n_inputs = 1;
    }
    mapping->in[mapping->n_inputs++] = in;
}

/* The inputs whose memory the output takes come first, since only the first pass may read them. */
void mtf_kernel_add(const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0];
    MtfElementMap mapping = { .map = map_of(mtf_map_row(MTF_OP_ADD), mtf_dtype_wide(out->dtype)),
                              .n_outputs = 1,
                              .out = { out } };
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < call->operation->n_inputs; k++)
            if ((call->inputs[k].data == out->data) == (pass == 0))
                add_term(&mapping, &call->inputs[k]);
    mtf_element_map_apply(&mapping);
}

/* The first micro-batch writes, the others add. */
void mtf_kernel_accumulate(const MtfKernelCall *call) {
    const MtfOperand *out = &call->outputs[0];
    MtfElementMap mapping = { .map = map_of(mtf_map_row(MTF_OP_ADD), mtf_dtype_wide(out->dtype)),
                              .n_outputs = 1,
                              .out = { out } };
    if (call->microbatch > 0)
        add_term(&mapping, out);
    add_term(&mapping, &call->inputs[0]);
    mtf_element_map_apply(&mapping);
}
