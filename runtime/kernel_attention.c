// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernel_attention.h"

#include "layouts/kernel_scratch.h"
#include "runtime/kernel_math.h"
#include "runtime/kernel_nest.h"
#include "runtime/kernel_product.h"

#include <string.h>

#define LANES MTF_ATTENTION_LANES

/* What the kernels need of an element type. */
typedef struct {
    double (*dot)(const void *left, const void *right, int64_t n);
    double (*largest)(const void *row, int64_t n);
    double (*powers)(void *row, double largest, int64_t n);
    void (*fill)(void *row, double value, int64_t from, int64_t to);
    void (*scale)(void *row, double factor, int64_t n);
    void (*slopes)(void *scores, void *slopes, double lse, double dot, double factor, int64_t n);
    double (*load)(const void *data, int64_t i);
    void (*store)(void *data, int64_t i, double value);
} Rows;

#define T float
#define NAME(name) name##_f32
#include "runtime/kernel_attention.inc"
#undef T
#undef NAME

#define T double
#define NAME(name) name##_f64
#include "runtime/kernel_attention.inc"
#undef T
#undef NAME

/* The operands of the nest over examples and heads; only the first five going forward. */
enum { Q, K, V, O, LSE, DO, DQ, DK, DV, OPERANDS };

typedef struct {
    const MtfOperand *operand[OPERANDS];
    const Rows *rows;
    MtfDtype dtype;
    int64_t element_bytes;
    int64_t queries, keys, features; /* of the slices */
    int64_t first_query, first_key;  /* in the whole tensors */
    int64_t stride[OPERANDS];        /* from one query or position of memory to the next */
    double factor;
    bool causal;
    char *scores, *slopes; /* scratch */
    MtfNest nest;
    int64_t at[OPERANDS]; /* where the example's head begins, in elements */
} Attention;

/* A block of queries against a block of memory. Its rows in scratch are filled up to whole lanes:
 *
 *     # # # # # 0 0 0    # seen by the query      0 not seen: no share, no slope
 *     # # # # # # # 0    n_keys of them           up to `stride`, a multiple of LANES */
typedef struct {
    int64_t query, n_queries, key, n_keys, stride;
} Block;

static int64_t whole_lanes(int64_t n) {
    return (n + LANES - 1) / LANES * LANES;
}

static int64_t size_along(const MtfOperand *operand, int dim) {
    return operand->size[mtf_operand_find(operand, dim)];
}

static int64_t begin_along(const MtfOperand *operand, int dim) {
    return operand->begin[mtf_operand_find(operand, dim)];
}

static bool follows_memory(int operand) {
    return operand == K || operand == V || operand == DK || operand == DV;
}

/* Everything but the operands, which are set. */
static void attention_init(Attention *a, const MtfKernelCall *call, int n_operands) {
    const MtfAttributes *attributes = &call->operation->attributes;
    const MtfOperand *q = a->operand[Q], *k = a->operand[K];
    a->dtype = q->dtype;
    a->rows = q->dtype == MTF_F64 ? &rows_f64 : &rows_f32;
    a->element_bytes = mtf_dtype_bytes(q->dtype);
    a->queries = size_along(q, attributes->query);
    a->keys = size_along(k, attributes->memory);
    a->features = size_along(q, attributes->dimension);
    a->first_query = begin_along(q, attributes->query);
    a->first_key = begin_along(k, attributes->memory);
    a->factor = attributes->factor;
    a->causal = attributes->causal != 0;
    a->scores = call->scratch;
    a->slopes = a->scores + MIN(a->queries, MTF_ATTENTION_QUERIES) *
                                whole_lanes(MIN(a->keys, MTF_ATTENTION_KEYS)) * a->element_bytes;
    for (int i = 0; i < n_operands; i++) {
        int dim = follows_memory(i) ? attributes->memory : attributes->query;
        a->stride[i] = mtf_operand_stride(a->operand[i], mtf_operand_find(a->operand[i], dim));
    }
    /* One loop for each dimension of lse but the queries', which stay at their first. */
    MtfOperand rest = *a->operand[LSE];
    int at = mtf_operand_find(&rest, attributes->query);
    for (int i = at; i + 1 < rest.rank; i++) {
        rest.dims[i] = rest.dims[i + 1];
        rest.size[i] = rest.size[i + 1];
    }
    rest.rank--;
    mtf_nest_init(&a->nest);
    mtf_nest_add_loops(&a->nest, &rest);
    for (int i = 0; i < n_operands; i++)
        mtf_nest_add(&a->nest, a->operand[i]);
}

static char *row_of(const Attention *a, int operand, int64_t row) {
    return mtf_operand_at(a->operand[operand], a->at[operand] + row * a->stride[operand]);
}

/* The rows of an operand that the block's queries or positions of memory have. */
static MtfMatrix rows_of(const Attention *a, int operand, const Block *b) {
    bool keys = follows_memory(operand);
    return (MtfMatrix){ .data = row_of(a, operand, keys ? b->key : b->query),
                        .rows = keys ? b->n_keys : b->n_queries,
                        .columns = a->features,
                        .stride = a->stride[operand] };
}

static MtfMatrix block_of(char *scratch, const Block *b) {
    return (MtfMatrix){ scratch, b->n_queries, b->n_keys, b->stride, false };
}

static MtfMatrix turned(MtfMatrix matrix) {
    matrix.turned = !matrix.turned;
    return matrix;
}

/* c = alpha a b + beta c */
static void multiply(const Attention *at, double alpha, MtfMatrix a, MtfMatrix b, double beta,
                     MtfMatrix c) {
    mtf_matrix_product(at->dtype, alpha, &a, &b, beta, &c);
}

static char *block_row(const Attention *a, char *block, const Block *b, int64_t row) {
    return block + row * b->stride * a->element_bytes;
}

/* How many of the block's keys the row's query looks at. */
static int64_t keys_seen(const Attention *a, const Block *b, int64_t row) {
    if (!a->causal)
        return b->n_keys;
    int64_t query = a->first_query + b->query + row;
    return CLAMP(query - (a->first_key + b->key) + 1, 0, b->n_keys);
}

/* The block of memory that comes after `b`, or the first when it has none yet; false when no query
 * of the block looks so far. */
static bool next_keys(const Attention *a, Block *b) {
    b->key += b->n_keys;
    int64_t end = a->keys;
    if (a->causal)
        end = MIN(end, a->first_query + b->query + b->n_queries - a->first_key);
    b->n_keys = MIN(MTF_ATTENTION_KEYS, end - b->key);
    b->stride = whole_lanes(b->n_keys);
    return b->n_keys > 0;
}

static void score(const Attention *a, const Block *b) {
    multiply(a, a->factor, rows_of(a, Q, b), turned(rows_of(a, K, b)), 0, block_of(a->scores, b));
}

/* Gives what lies behind the last key seen the value that whole lanes turn into 0, and zero to the
 * lanes after it. Returns the elements of the lanes. */
static int64_t fill_up(const Attention *a, const Block *b, char *row, int64_t seen, double value) {
    int64_t lanes = whole_lanes(seen);
    a->rows->fill(row, value, seen, lanes);
    a->rows->fill(row, 0, lanes, b->n_keys);
    return lanes;
}

/* ---- Forward ------------------------------------------------------------------------------- */

/* Of each query of a block, over the memory so far. */
typedef struct {
    double largest[MTF_ATTENTION_QUERIES], sum[MTF_ATTENTION_QUERIES];
} Statistics;

/* Turns scores into powers under the largest score so far, and what was added up before as well. */
static void soften_row(const Attention *a, const Block *b, Statistics *s, int64_t row) {
    char *scores = block_row(a, a->scores, b, row);
    int64_t seen = keys_seen(a, b, row);
    int64_t lanes = fill_up(a, b, scores, seen, -INFINITY);
    if (seen == 0)
        return;
    double largest = fmax(s->largest[row], a->rows->largest(scores, lanes));
    if (b->key > 0 && largest > s->largest[row]) {
        double shrink = exp(s->largest[row] - largest);
        a->rows->scale(row_of(a, O, b->query + row), shrink, a->features);
        s->sum[row] *= shrink;
    }
    s->largest[row] = largest;
    s->sum[row] += a->rows->powers(scores, largest, lanes);
}

/* A query that looks at nothing gets 0 from it. */
static void finish_row(const Attention *a, const Block *b, const Statistics *s, int64_t row) {
    char *o = row_of(a, O, b->query + row);
    if (s->sum[row] > 0)
        a->rows->scale(o, 1 / s->sum[row], a->features);
    else
        a->rows->fill(o, 0, 0, a->features);
    a->rows->store(row_of(a, LSE, b->query + row), 0, s->largest[row] + log(s->sum[row]));
}

static void attend(const Attention *a, int64_t query) {
    Block b = { .query = query, .n_queries = MIN(MTF_ATTENTION_QUERIES, a->queries - query) };
    Statistics s;
    for (int64_t row = 0; row < b.n_queries; row++) {
        s.largest[row] = -INFINITY;
        s.sum[row] = 0;
    }
    while (next_keys(a, &b)) {
        score(a, &b);
        for (int64_t row = 0; row < b.n_queries; row++)
            soften_row(a, &b, &s, row);
        multiply(a, 1, block_of(a->scores, &b), rows_of(a, V, &b), b.key > 0 ? 1 : 0,
                 rows_of(a, O, &b));
    }
    for (int64_t row = 0; row < b.n_queries; row++)
        finish_row(a, &b, &s, row);
}

/* ---- Backward ------------------------------------------------------------------------------ */

/* Turns the scores into shares, and their gradients by the shares into those by the scores. */
static void slope_row(const Attention *a, const Block *b, const double *dots, int64_t row) {
    char *scores = block_row(a, a->scores, b, row), *slopes = block_row(a, a->slopes, b, row);
    int64_t seen = keys_seen(a, b, row);
    double lse = a->rows->load(row_of(a, LSE, b->query + row), 0);
    fill_up(a, b, slopes, seen, 0);
    a->rows->slopes(scores, slopes, lse, dots[row], a->factor,
                    fill_up(a, b, scores, seen, -INFINITY));
}

static void spread(const Attention *a, const Block *b, const double *dots) {
    MtfMatrix scores = block_of(a->scores, b), slopes = block_of(a->slopes, b);
    score(a, b);
    multiply(a, 1, rows_of(a, DO, b), turned(rows_of(a, V, b)), 0, slopes);
    for (int64_t row = 0; row < b->n_queries; row++)
        slope_row(a, b, dots, row);
    multiply(a, 1, turned(scores), rows_of(a, DO, b), 1, rows_of(a, DV, b));
    multiply(a, 1, turned(slopes), rows_of(a, Q, b), 1, rows_of(a, DK, b));
    multiply(a, 1, slopes, rows_of(a, K, b), b->key > 0 ? 1 : 0, rows_of(a, DQ, b));
}

static void attend_back(const Attention *a, int64_t query) {
    Block b = { .query = query, .n_queries = MIN(MTF_ATTENTION_QUERIES, a->queries - query) };
    double dots[MTF_ATTENTION_QUERIES];
    for (int64_t row = 0; row < b.n_queries; row++)
        dots[row] =
            a->rows->dot(row_of(a, DO, query + row), row_of(a, O, query + row), a->features);
    bool looks = next_keys(a, &b);
    for (int64_t row = 0; !looks && row < b.n_queries; row++)
        a->rows->fill(row_of(a, DQ, query + row), 0, 0, a->features);
    for (; looks; looks = next_keys(a, &b))
        spread(a, &b, dots);
}

/* ---- Examples and heads -------------------------------------------------------------------- */

static void each_head(Attention *a, int n_operands, void (*work)(const Attention *, int64_t)) {
    for (bool more = mtf_nest_first(&a->nest); more; more = mtf_nest_next(&a->nest))
        for (int64_t turn = 0; turn < a->nest.count; turn++) {
            for (int i = 0; i < n_operands; i++)
                a->at[i] = a->nest.offset[i] + turn * a->nest.step[i];
            for (int64_t query = 0; query < a->queries; query += MTF_ATTENTION_QUERIES)
                work(a, query);
        }
}

void mtf_kernel_attention(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs, *out = call->outputs;
    Attention a = { .operand = { &in[0], &in[1], &in[2], &out[0], &out[1] } };
    attention_init(&a, call, DO);
    each_head(&a, DO, attend);
}

void mtf_kernel_attention_grad(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs, *out = call->outputs;
    Attention a = { .operand = { &in[0], &in[1], &in[2], &in[3], &in[4], &in[5], &out[0], &out[1],
                                 &out[2] } };
    attention_init(&a, call, OPERANDS);
    for (int k = 1; k < 3; k++)
        memset(out[k].data, 0, (size_t)(mtf_operand_elements(&out[k]) * a.element_bytes));
    each_head(&a, OPERANDS, attend_back);
}
