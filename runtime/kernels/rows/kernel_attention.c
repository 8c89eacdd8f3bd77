// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/rows/kernel_attention.h"

#include "layouts/kernel_work/kernel_scratch.h"
#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/kernel_random.h"
#include "runtime/kernels/rows/attention_loops.h"

#define LANES MTF_ATTENTION_LANES

/* The operands of the nest over examples and heads; only the first five going forward. */
enum { Q, K, V, O, LSE, DO, DQ, DK, DV, OPERANDS };

/* What is added to scores, at most: what is learned, say, and what hides. */
#define BIASES 2

typedef struct {
    const MtfOperand *operand[OPERANDS];
    int n_operands;
    const MtfAttentionLoops *loops;
    int64_t element_bytes;            /* in scratch */
    bool narrow;                      /* the operands are bfloat16, but for LSE */
    int64_t queries, keys, features;  /* of the slices */
    int64_t key_lanes, feature_lanes; /* filled up to whole lanes */
    int64_t first_query, first_key;   /* in the whole tensors */
    int64_t stride[OPERANDS];         /* from one query or position of memory to the next */
    double factor, softcap;
    bool causal;
    const MtfOperand *bias[BIASES]; /* added to scores */
    int n_biases;
    int64_t bias_stride[BIASES];     /* from one query to the next */
    const MtfOperand *bias_gradient; /* of the first, of the type of scratch; or NULL */
    int64_t bias_gradient_stride;
    int64_t window; /* positions that a query looks at, its own the last; 0: all */
    /* Scratch. Of a head's memory, with features in rows and with positions in rows: */
    char *keys_transposed, *values_transposed, *keys_packed, *values_packed, *dk, *dv;
    char *upcast; /* of narrow memory: as it lies, to be turned */
    /* Of a block of queries: */
    char *query_rows, *result_rows, *do_rows, *scores, *ds;
    MtfNest nest;
    int64_t at[OPERANDS];                      /* where the example's head begins, in elements */
    int64_t bias_at[BIASES], bias_gradient_at; /* likewise */
    /* Of attention to a cache, else NULL: where an example's queries begin (int32), and where these
     * slices would if that were 0; then `keys` are those up to the last query. */
    const MtfOperand *position;
    int64_t own_query, all_keys;
    int64_t part_keys;    /* of memory in parts, those of a part, else 0 */
    int64_t part;         /* at hand: behind part p queries are p times as many positions further */
    int64_t part_queries; /* of queries in parts, those of a part, else 0 */
    int placing; /* the nest's operand that says which part it is, or where positions are */
    /* Of dropped shares, else `rate` is 0: */
    double rate;
    MtfRandom random;
    MtfOperand heads;      /* their examples and heads, as they are numbered */
    int numbering;         /* the nest's operand that numbers them */
    int64_t head;          /* the one at hand */
    int64_t score_rows[2]; /* of a head, queries and the scores of each */
    int64_t turn;  /* with parts of queries: each meets the part of keys `turn` before it … */
    int64_t parts; /* … modulo `parts` */
    bool striped;  /* position i of part p is number i parts + p, not p part_keys + i */
    const MtfOperand *before, *lse_before; /* results of other memory, as O and LSE; or NULL */
    const MtfProgressHook *progress;
} Attention;

/* A block of queries against a block of memory. Its rows in scratch are filled up to whole lanes:
 *
 *     # # # # # 0 0 0    # seen by the query      0 not seen: no probability, no gradient
 *     0 # # # # # # 0    n_keys of them           up to `stride`, a multiple of LANES
 *
 * A query sees the keys [from, to) of the block. */
typedef struct {
    int64_t query, n_queries, key, n_keys, stride;
    int64_t first_key; /* of the first block of memory that these queries look at */
} Block;

typedef struct {
    int64_t from, to;
} Seen;

static int64_t whole_lanes(int64_t n) {
    return (n + LANES - 1) / LANES * LANES;
}

/* ---- Operands and scratch ------------------------------------------------------------------ */

static int64_t begin_along(const MtfOperand *operand, int dim) {
    return operand->begin[mtf_operand_find(operand, dim)];
}

static int64_t global_along(const MtfOperand *operand, int dim) {
    return operand->global[mtf_operand_find(operand, dim)];
}

static bool follows_memory(int operand) {
    return operand == K || operand == V || operand == DK || operand == DV;
}

/* Loops over examples and heads, those that memory has outside, so that what shares one memory
 * comes one after the other. */
static void nest_init(Attention *a, const MtfAttributes *attributes) {
    MtfOperand memory = mtf_operand_without(a->operand[K], attributes->memory);
    memory.rank--; /* the features, which come last */
    MtfOperand rest = mtf_operand_without(a->operand[LSE], attributes->query);
    mtf_nest_init(&a->nest);
    mtf_nest_add_loops(&a->nest, &memory);
    mtf_nest_add_loops(&a->nest, &rest);
    for (int i = 0; i < a->n_operands; i++)
        mtf_nest_add(&a->nest, a->operand[i]);
    for (int i = 0; i < a->n_biases; i++)
        mtf_nest_add(&a->nest, a->bias[i]);
    if (a->bias_gradient != NULL)
        mtf_nest_add(&a->nest, a->bias_gradient);
    if (a->position != NULL)
        a->placing = mtf_nest_add(&a->nest, a->position);
    if (a->part_keys > 0)
        a->placing = mtf_nest_add_position(&a->nest, a->operand[K], attributes->parts);
    if (a->rate > 0)
        a->numbering = mtf_nest_add_element_number(&a->nest, &a->heads);
}

/* Hands out the scratch that mtf_operation_scratch_bytes counts. */
static void take_scratch(Attention *a, char *next) {
    int64_t memory = a->key_lanes * a->feature_lanes * a->element_bytes;
    int64_t rows = MTF_ATTENTION_QUERIES * a->feature_lanes * a->element_bytes;
    int64_t block =
        MTF_ATTENTION_QUERIES * MIN(a->key_lanes, MTF_ATTENTION_KEYS) * a->element_bytes;
    bool back = a->n_operands == OPERANDS;
    char **const memories[] = { &a->keys_transposed,
                                &a->values_packed,
                                &a->values_transposed,
                                &a->keys_packed,
                                &a->dk,
                                &a->dv };
    char **const blocks[] = { &a->query_rows, &a->result_rows, &a->do_rows };
    for (int i = 0; i < (back ? 6 : 2); i++, next += memory)
        *memories[i] = next;
    for (int i = 0; i < (back ? 3 : 2); i++, next += rows)
        *blocks[i] = next;
    a->upcast = next;
    next += a->narrow ? memory : 0;
    a->scores = next;
    a->ds = next + block;
}

/* Shares are dropped in training alone. */
static void begin_dropping(Attention *a, const MtfKernelCall *call) {
    const MtfAttributes *attributes = &call->operation->attributes;
    const MtfOperand *lse = a->operand[LSE], *k = a->operand[K];
    const char *name = attributes->stream != NULL ? attributes->stream : call->operation->name;
    a->rate = a->position == NULL && call->step > 0 ? attributes->rate : 0;
    if (a->rate == 0)
        return;
    a->random = mtf_random_stream(call->seed, name,
                                  mtf_random_step((uint64_t)call->step - 1, call->element));
    a->heads = mtf_operand_without(lse, attributes->query);
    a->score_rows[0] = global_along(lse, attributes->query);
    a->score_rows[1] = global_along(k, attributes->memory);
    if (attributes->parts < 0)
        return;
    a->heads = mtf_operand_without(&a->heads, attributes->parts);
    a->score_rows[0] *= a->part_queries > 0 ? a->parts : 1;
    a->score_rows[1] *= a->parts;
}

/* From one query to the next of what is added to scores; 0 where it is alike for all, or not there. */
static int64_t stride_of_queries(const MtfOperand *bias, const MtfAttributes *attributes) {
    int along = bias != NULL ? mtf_operand_find(bias, attributes->query) : -1;
    return along >= 0 ? mtf_operand_stride(bias, along) : 0;
}

/* Everything but the operands, which are set. */
static void attention_init(Attention *a, const MtfKernelCall *call) {
    const MtfAttributes *attributes = &call->operation->attributes;
    const MtfOperand *q = a->operand[Q], *k = a->operand[K];
    a->loops = q->dtype == MTF_F64 ? &mtf_attention_loops_f64 : &mtf_attention_loops_f32;
    a->progress = call->progress;
    a->element_bytes = mtf_dtype_bytes(mtf_dtype_wide(q->dtype));
    a->narrow = mtf_operand_is_narrow(q);
    a->queries = mtf_operand_size_along(q, attributes->query);
    a->keys = mtf_operand_size_along(k, attributes->memory);
    a->features = mtf_operand_size_along(q, attributes->dimension);
    a->key_lanes = whole_lanes(a->keys);
    a->feature_lanes = whole_lanes(a->features);
    a->first_query = begin_along(q, attributes->query);
    a->first_key = begin_along(k, attributes->memory);
    a->factor = attributes->factor;
    a->softcap = attributes->softcap;
    a->causal = attributes->causal != 0 || a->position != NULL;
    a->own_query = a->first_query;
    a->all_keys = a->keys;
    a->part_keys = attributes->parts >= 0 ? global_along(k, attributes->memory) : 0;
    a->window = (int64_t)attributes->window;
    a->turn = (int64_t)attributes->turn;
    a->striped = attributes->striped != 0;
    a->parts = attributes->parts >= 0 ? global_along(k, attributes->parts) : 0;
    a->part_queries = a->turn > 0 ? global_along(q, attributes->query) : 0;
    for (int i = 0; i < a->n_operands; i++) {
        int dim = follows_memory(i) ? attributes->memory : attributes->query;
        a->stride[i] = mtf_operand_stride(a->operand[i], mtf_operand_find(a->operand[i], dim));
    }
    for (int i = 0; i < a->n_biases; i++)
        a->bias_stride[i] = stride_of_queries(a->bias[i], attributes);
    a->bias_gradient_stride = stride_of_queries(a->bias_gradient, attributes);
    take_scratch(a, call->scratch);
    begin_dropping(a, call);
    nest_init(a, attributes);
}

static char *row_of(const Attention *a, int operand, int64_t row) {
    return mtf_operand_at(a->operand[operand], a->at[operand] + row * a->stride[operand]);
}

/* Element (row, column) of rows in scratch that lie `stride` elements apart. */
static char *element(const Attention *a, char *rows, int64_t stride, int64_t row, int64_t column) {
    return rows + (row * stride + column) * a->element_bytes;
}

static MtfAttentionRows rows_of(const Attention *a, int operand, int64_t row, int64_t n) {
    return (MtfAttentionRows){ row_of(a, operand, row), n, a->features, a->stride[operand] };
}

static void pack_upcast(const Attention *a, char *to, const MtfAttentionRows *rows, double factor) {
    for (int64_t row = 0; row < rows->rows; row++) {
        char *out = element(a, to, a->feature_lanes, row, 0);
        const uint16_t *in = (const uint16_t *)rows->data + row * rows->stride;
        mtf_bf16_widen((float *)(gpointer)out, in, rows->columns, 1);
        if (factor != 1)
            a->loops->scale(out, out, factor, rows->columns);
        a->loops->fill(out, 0, rows->columns, a->feature_lanes);
    }
}

/* Copies rows of an operand, times `factor`, to scratch and fills them up with 0. */
static void pack(const Attention *a, char *to, const MtfAttentionRows *rows, double factor) {
    MtfAttentionTarget target = { to, a->feature_lanes, a->feature_lanes };
    if (a->narrow)
        pack_upcast(a, to, rows, factor);
    else
        a->loops->copy(&target, rows, factor);
}

/* A row of features from scratch to the operand's own. */
static void round_row(const Attention *a, int operand, int64_t row, const char *from) {
    mtf_bf16_round((uint16_t *)(gpointer)row_of(a, operand, row),
                   (const float *)(gconstpointer)from, a->features);
}

static void unpack(const Attention *a, int operand, int64_t row, int64_t n, char *from) {
    for (int64_t i = 0; a->narrow && i < n; i++)
        round_row(a, operand, row + i, element(a, from, a->feature_lanes, i, 0));
    if (a->narrow)
        return;
    MtfAttentionRows rows = { from, n, a->features, a->feature_lanes };
    MtfAttentionTarget target = { row_of(a, operand, row), a->features, a->stride[operand] };
    a->loops->copy(&target, &rows, 1);
}

/* Copies a head's memory to scratch so that a row there is one feature of all positions. */
static void pack_transposed(const Attention *a, char *to, int operand) {
    MtfAttentionRows rows = rows_of(a, operand, 0, a->keys);
    MtfAttentionTarget target = { to, a->key_lanes, a->key_lanes };
    if (a->narrow) {
        pack_upcast(a, a->upcast, &rows, 1);
        rows = (MtfAttentionRows){ a->upcast, a->keys, a->features, a->feature_lanes };
    }
    a->loops->transpose(&target, &rows);
}

/* ---- Products ------------------------------------------------------------------------------ */

/* The tiles of c's rows `from` … `to` in one strip of columns; `tile` stands at row 0. */
static void strip(const Attention *a, MtfAttentionTile tile, int64_t from, int64_t to) {
    tile.a = (const char *)tile.a + from * tile.a_row * a->element_bytes;
    tile.c = (char *)tile.c + from * tile.c_row * a->element_bytes;
    int64_t rows = MTF_ATTENTION_TILE_ROWS;
    for (int64_t row = from; row < to; row += rows) {
        rows = to - row < MTF_ATTENTION_TILE_ROWS ? 1 : MTF_ATTENTION_TILE_ROWS;
        (rows == 1 ? a->loops->tile_row : a->loops->tile)(&tile);
        tile.a = (const char *)tile.a + rows * tile.a_row * a->element_bytes;
        tile.c = (char *)tile.c + rows * tile.c_row * a->element_bytes;
    }
}

/* How many of the block's keys the row's query looks at. */
static int64_t keys_seen(const Attention *a, const Block *b, int64_t row) {
    if (!a->causal)
        return b->n_keys;
    int64_t query = a->first_query + b->query + row;
    return CLAMP(query - (a->first_key + b->key) + 1, 0, b->n_keys);
}

/* The same as a range: with a window it does not begin at the block's first key. */
static Seen keys_in_window(const Attention *a, const Block *b, int64_t row) {
    Seen seen = { 0, keys_seen(a, b, row) };
    int64_t query = a->first_query + b->query + row;
    if (a->window > 0)
        seen.from = MAX(0, query - a->window + 1 - (a->first_key + b->key));
    return seen.from < seen.to ? seen : (Seen){ 0, 0 };
}

/* The first row of the block whose query looks at key `key` of the block. */
static int64_t first_looking(const Attention *a, const Block *b, int64_t key) {
    if (!a->causal)
        return 0;
    return CLAMP(a->first_key + b->key + key - (a->first_query + b->query), 0, b->n_queries);
}

/* block = rows times what is turned, where a query of the tile looks. */
static void score(const Attention *a, const Block *b, char *block, char *rows, char *transposed) {
    MtfAttentionTile tile = { .a_row = a->feature_lanes,
                              .a_step = 1,
                              .b_step = a->key_lanes,
                              .c_row = b->stride,
                              .steps = a->features };
    for (int64_t column = 0; column < b->stride; column += a->loops->tile_columns()) {
        tile.a = rows;
        tile.b = element(a, transposed, a->key_lanes, 0, b->key + column);
        tile.c = element(a, block, b->stride, 0, column);
        strip(a, tile,
              first_looking(a, b, column) / MTF_ATTENTION_TILE_ROWS * MTF_ATTENTION_TILE_ROWS,
              b->n_queries);
    }
}

/* Whether the block's queries have results already. */
static bool goes_on(const Attention *a, const Block *b) {
    return a->before != NULL || b->key > b->first_key;
}

/* rows += block times packed memory: of each tile, the keys that its last query looks at. */
static void accumulate_output(const Attention *a, const Block *b, char *rows, char *block,
                              char *packed) {
    MtfAttentionTile tile = { .a_row = b->stride,
                              .a_step = 1,
                              .b_step = a->feature_lanes,
                              .c_row = a->feature_lanes,
                              .adds = goes_on(a, b) };
    for (int64_t column = 0; column < a->feature_lanes; column += a->loops->tile_columns())
        for (int64_t row = 0; row < b->n_queries; row += MTF_ATTENTION_TILE_ROWS) {
            int64_t end = MIN(row + MTF_ATTENTION_TILE_ROWS, b->n_queries);
            tile.a = block;
            tile.b = element(a, packed, a->feature_lanes, b->key, column);
            tile.c = element(a, rows, a->feature_lanes, 0, column);
            tile.steps = keys_seen(a, b, end - 1);
            strip(a, tile, row, end);
        }
}

/* memory += block' times rows: of each tile, the queries that look at its first key. */
static void accumulate_transposed(const Attention *a, const Block *b, char *memory, char *block,
                                  char *rows) {
    MtfAttentionTile tile = { .a_row = 1,
                              .a_step = b->stride,
                              .b_step = a->feature_lanes,
                              .c_row = a->feature_lanes,
                              .adds = true };
    for (int64_t column = 0; column < a->feature_lanes; column += a->loops->tile_columns())
        for (int64_t key = 0; key < b->n_keys; key += MTF_ATTENTION_TILE_ROWS) {
            int64_t first = first_looking(a, b, key);
            tile.a = element(a, block, b->stride, first, 0);
            tile.b = element(a, rows, a->feature_lanes, first, column);
            tile.c = element(a, memory, a->feature_lanes, b->key, column);
            tile.steps = b->n_queries - first;
            strip(a, tile, key, MIN(key + MTF_ATTENTION_TILE_ROWS, b->n_keys));
        }
}

/* ---- Blocks -------------------------------------------------------------------------------- */

/* Where the memory begins that the block's queries look at, down to a whole lane, behind which the
 * turned memory of whole lanes does not end. */
static int64_t first_key_seen(const Attention *a, const Block *b) {
    int64_t key = a->first_query + b->query - a->window + 1 - a->first_key;
    return a->window > 0 ? CLAMP(key, 0, a->keys) / LANES * LANES : 0;
}

/* The block of memory that comes after `b`, or the first when it has none yet; false when no query
 * of the block looks so far. */
static bool next_keys(const Attention *a, Block *b) {
    b->key += b->n_keys;
    if (b->n_keys == 0)
        b->key = b->first_key = first_key_seen(a, b);
    int64_t end = a->keys;
    if (a->causal)
        end = MIN(end, a->first_query + b->query + b->n_queries - a->first_key);
    b->n_keys = MIN(MTF_ATTENTION_KEYS, end - b->key);
    b->stride = whole_lanes(b->n_keys);
    return b->n_keys > 0;
}

static char *block_row(const Attention *a, char *block, const Block *b, int64_t row) {
    return element(a, block, b->stride, row, 0);
}

/* Gives what lies before the first and behind the last key seen the value that whole lanes turn
 * into 0, and zero to the lanes after it. Returns the elements of the lanes. */
static int64_t fill_up(const Attention *a, const Block *b, char *row, Seen seen, double value) {
    int64_t lanes = whole_lanes(seen.to);
    a->loops->fill(row, value, 0, seen.from);
    a->loops->fill(row, value, seen.to, lanes);
    a->loops->fill(row, 0, lanes, b->stride);
    return lanes;
}

#define PIECE 256

/* Adds a query's bias `i`, times `by`, to its scores of the keys that it looks at. */
static void add_bias(const Attention *a, const Block *b, int i, char *scores, int64_t row,
                     double by) {
    Seen seen = keys_in_window(a, b, row);
    int64_t at = a->bias_at[i] + (b->query + row) * a->bias_stride[i] + b->key;
    float wide[PIECE];
    for (int64_t key = seen.from; key < seen.to; key += PIECE) {
        int64_t n = MIN(PIECE, seen.to - key);
        const void *bias = mtf_operand_at(a->bias[i], at + key);
        if (a->narrow)
            mtf_bf16_widen(wide, bias, n, 1);
        a->loops->add(element(a, scores, 0, 0, key), a->narrow ? wide : bias, by, n);
    }
}

static void add_biases(const Attention *a, const Block *b, char *scores, int64_t row, double by) {
    for (int i = 0; i < a->n_biases; i++)
        add_bias(a, b, i, scores, row, by);
}

/* The part of memory that the one at hand is, or that its queries meet. */
static int64_t part_of_memory(const Attention *a) {
    return a->turn == 0 ? a->part : (a->part + a->parts - a->turn) % a->parts;
}

/* Which of the shares that a query sees are kept: keep[i] of the block's key i. They are numbered as those of
 * attention that is whole. */
static void draw_kept(const Attention *a, const Block *b, int64_t row, Seen seen, uint8_t *keep) {
    int64_t query =
        a->head * a->score_rows[0] + a->part * a->part_queries + a->own_query + b->query + row;
    int64_t key = part_of_memory(a) * a->part_keys + a->first_key + b->key + seen.from;
    mtf_kernel_random_keep(&a->random, a->rate, query * a->score_rows[1] + key, seen.to - seen.from,
                           keep + seen.from);
}

/* A query's shares, or their gradients, where they are kept. */
static void drop(const Attention *a, char *row, Seen seen, const uint8_t *keep) {
    a->loops->drop(element(a, row, 0, 0, seen.from), keep + seen.from, 1 / (1 - a->rate),
                   seen.to - seen.from);
}

/* Of each query of a block, over the memory so far. */
typedef struct {
    double largest[MTF_ATTENTION_QUERIES], sum[MTF_ATTENTION_QUERIES];
} Statistics;

/* Online softmax: turns scores into exponentials under the largest score so far, and what was added up before
 * as well. */
static void online_softmax_row(const Attention *a, const Block *b, Statistics *s, int64_t row) {
    char *scores = block_row(a, a->scores, b, row);
    Seen seen = keys_in_window(a, b, row);
    if (a->softcap > 0)
        a->loops->cap(scores, a->softcap, whole_lanes(seen.to));
    add_biases(a, b, scores, row, 1);
    int64_t lanes = fill_up(a, b, scores, seen, -INFINITY);
    if (seen.to == 0)
        return;
    double known = s->largest[row], largest = a->loops->largest(scores, lanes);
    if (known > largest || isnan(known))
        largest = known;
    if (largest <= MTF_MASKED_SCORE) { /* the query has looked at nothing yet */
        a->loops->fill(scores, 0, 0, b->stride);
        return;
    }
    if (goes_on(a, b) && largest > s->largest[row]) {
        double shrink = exp(s->largest[row] - largest);
        char *o = element(a, a->result_rows, a->feature_lanes, row, 0);
        a->loops->scale(o, o, shrink, a->feature_lanes);
        s->sum[row] *= shrink;
    }
    s->largest[row] = largest;
    s->sum[row] += a->loops->exp_row(scores, largest, lanes);
    if (a->rate == 0)
        return;
    uint8_t keep[MTF_ATTENTION_KEYS];
    draw_kept(a, b, row, seen, keep);
    drop(a, scores, seen, keep);
}

/* A query that looks at nothing gets 0 from it. */
static void finish_row(const Attention *a, const Block *b, const Statistics *s, int64_t row) {
    char *packed = element(a, a->result_rows, a->feature_lanes, row, 0);
    char *o = a->narrow ? packed : row_of(a, O, b->query + row);
    if (s->sum[row] == 0)
        a->loops->fill(o, 0, 0, a->features);
    else
        a->loops->scale(o, packed, 1 / s->sum[row], a->features);
    if (a->narrow)
        round_row(a, O, b->query + row, packed);
    a->loops->store(row_of(a, LSE, b->query + row), 0, s->largest[row] + log(s->sum[row]));
}

/* Where attention to other memory came to: as if all of it were one key of that score, with o its value. */
static void begin_rows(const Attention *a, const Block *b, Statistics *s) {
    for (int64_t row = 0; row < b->n_queries; row++) {
        s->largest[row] = -INFINITY;
        s->sum[row] = 0;
    }
    if (a->before == NULL)
        return;
    MtfAttentionRows o = { mtf_operand_at(a->before, a->at[O] + b->query * a->stride[O]),
                           b->n_queries, a->features, a->stride[O] };
    pack(a, a->result_rows, &o, 1);
    for (int64_t row = 0; row < b->n_queries; row++) {
        int64_t at = a->at[LSE] + (b->query + row) * a->stride[LSE];
        double lse = a->loops->load(a->lse_before->data, at);
        s->largest[row] = lse <= MTF_MASKED_SCORE ? -INFINITY : lse;
        s->sum[row] = lse <= MTF_MASKED_SCORE ? 0 : 1;
    }
}

static void attend(const Attention *a, int64_t query) {
    Block b = { .query = query, .n_queries = MIN(MTF_ATTENTION_QUERIES, a->queries - query) };
    Statistics s;
    begin_rows(a, &b, &s);
    MtfAttentionRows q = rows_of(a, Q, query, b.n_queries);
    pack(a, a->query_rows, &q, a->factor);
    while (next_keys(a, &b)) {
        score(a, &b, a->scores, a->query_rows, a->keys_transposed);
        for (int64_t row = 0; row < b.n_queries; row++)
            online_softmax_row(a, &b, &s, row);
        accumulate_output(a, &b, a->result_rows, a->scores, a->values_packed);
    }
    for (int64_t row = 0; row < b.n_queries; row++)
        finish_row(a, &b, &s, row);
}

/* Adds `by` times the gradients of a query's scores to that of its bias, if it has one. */
static void add_bias_gradient(const Attention *a, const Block *b, int64_t row, char *gradients,
                              double by) {
    Seen seen = keys_in_window(a, b, row);
    int64_t at = a->bias_gradient_at + (b->query + row) * a->bias_gradient_stride + b->key;
    if (a->bias_gradient != NULL)
        a->loops->add(mtf_operand_at(a->bias_gradient, at + seen.from),
                      element(a, gradients, 0, 0, seen.from), by, seen.to - seen.from);
}

/* Turns the scores into probabilities, and their gradients by the shares into those by the scores: where a bias
 * is added before they are scaled, these are `factor` times those of the bias. */
static void softmax_gradient_row(const Attention *a, const Block *b, double dot, int64_t row) {
    char *scores = block_row(a, a->scores, b, row), *ds = block_row(a, a->ds, b, row);
    Seen seen = keys_in_window(a, b, row);
    double lse = a->loops->load(row_of(a, LSE, b->query + row), 0);
    if (lse <= MTF_MASKED_SCORE) {
        a->loops->fill(scores, 0, 0, b->stride);
        a->loops->fill(ds, 0, 0, b->stride);
        return;
    }
    MtfSoftmaxGradient gradient = { lse, dot, a->factor, a->softcap };
    uint8_t keep[MTF_ATTENTION_KEYS];
    if (a->rate > 0) {
        draw_kept(a, b, row, seen, keep);
        drop(a, ds, seen, keep);
    }
    int64_t lanes = whole_lanes(seen.to);
    if (a->softcap > 0) {
        double added[MTF_ATTENTION_KEYS]; /* of the type of scratch */
        a->loops->fill(added, 0, 0, lanes);
        add_biases(a, b, (char *)added, row, 1);
        a->loops->capped_softmax_gradient(scores, ds, added, &gradient, lanes);
        add_bias_gradient(a, b, row, (char *)added, 1);
    } else {
        add_biases(a, b, scores, row, 1 / a->factor);
        a->loops->softmax_gradient(scores, ds, &gradient, lanes);
        add_bias_gradient(a, b, row, ds, 1 / a->factor);
    }
    if (a->rate > 0)
        drop(a, scores, seen, keep);
    a->loops->fill(scores, 0, 0, seen.from);
    a->loops->fill(ds, 0, 0, seen.from);
    a->loops->fill(scores, 0, seen.to, b->stride);
    a->loops->fill(ds, 0, seen.to, b->stride);
}

/* do.o of each query of a block, whose rows of do are packed. Rows of o are, for the moment, where
 * the result's are going to be. */
static void find_dots(const Attention *a, const Block *b, double *dots) {
    MtfAttentionRows o = rows_of(a, O, b->query, b->n_queries);
    pack(a, a->result_rows, &o, 1);
    for (int64_t row = 0; row < b->n_queries; row++)
        dots[row] = a->loops->dot(element(a, a->result_rows, a->feature_lanes, row, 0),
                                  element(a, a->do_rows, a->feature_lanes, row, 0), a->features);
}

static void attend_back(const Attention *a, int64_t query) {
    Block b = { .query = query, .n_queries = MIN(MTF_ATTENTION_QUERIES, a->queries - query) };
    double dots[MTF_ATTENTION_QUERIES];
    MtfAttentionRows q = rows_of(a, Q, query, b.n_queries), ds = rows_of(a, DO, query, b.n_queries);
    pack(a, a->query_rows, &q, 1);
    pack(a, a->do_rows, &ds, 1);
    find_dots(a, &b, dots);
    a->loops->fill(a->result_rows, 0, 0, b.n_queries * a->feature_lanes);
    while (next_keys(a, &b)) {
        score(a, &b, a->scores, a->query_rows, a->keys_transposed);
        score(a, &b, a->ds, a->do_rows, a->values_transposed);
        for (int64_t row = 0; row < b.n_queries; row++)
            softmax_gradient_row(a, &b, dots[row], row);
        accumulate_transposed(a, &b, a->dv, a->scores, a->do_rows);
        accumulate_transposed(a, &b, a->dk, a->ds, a->query_rows);
        accumulate_output(a, &b, a->result_rows, a->ds, a->keys_packed);
    }
    unpack(a, DQ, query, b.n_queries, a->result_rows);
}

/* ---- Examples and heads -------------------------------------------------------------------- */

/* Whether queries are taken one by one as they lie, which pays where memory has one query to serve. */
static bool goes_directly(const Attention *a) {
    return a->position != NULL && a->queries == 1 &&
           a->all_keys <= MTF_ATTENTION_QUERIES * MTF_ATTENTION_KEYS;
}

/* How far queries are, seen from part `at` of memory, or of their own from the part `turn` before, which for
 * the first ones is one of the last; a turn of all parts leads to their own. Between stripes d apart lie i' - i
 * times all of them and d: a query that is before its memory, d < 0, looks at one position less. */
static int64_t distance_of_part(const Attention *a, int64_t at) {
    int64_t parts = a->turn == 0 ? -at : at >= a->turn ? a->turn : a->turn - a->parts;
    if (a->striped)
        return parts < 0 ? -1 : 0;
    return parts * a->part_keys;
}

/* Puts the queries where their text is, at element `at` of the positions, or seen from part `at`. */
static void place_queries(Attention *a, int64_t at) {
    a->part = at;
    if (!a->causal)
        return;
    a->first_query = a->own_query + (a->position != NULL ? ((const int32_t *)a->position->data)[at]
                                                         : distance_of_part(a, at));
    a->keys = CLAMP(a->first_query + a->queries - a->first_key, 0, a->all_keys);
    a->key_lanes = whole_lanes(a->keys);
}

/* One query: its scores in a row, their exponentials, and the values that these weigh. Memory is
 * read as it lies, or from scratch where it is narrow. */
static void attend_directly(const Attention *a) {
    const MtfAttentionLoops *l = a->loops;
    MtfAttentionRows k = { a->keys_transposed, a->keys, a->features, a->feature_lanes };
    MtfAttentionRows v = { a->values_packed, a->keys, a->features, a->feature_lanes };
    MtfAttentionRows q = rows_of(a, Q, 0, 1);
    if (!a->narrow) {
        k = rows_of(a, K, 0, a->keys);
        v = rows_of(a, V, 0, a->keys);
    }
    pack(a, a->query_rows, &q, a->factor);
    int64_t from =
        a->window > 0 ? CLAMP(a->first_query - a->window + 1 - a->first_key, 0, a->keys) : 0;
    int64_t lanes = whole_lanes(a->keys);
    l->dot_rows(a->scores, a->query_rows, &k);
    if (a->softcap > 0)
        l->cap(a->scores, a->softcap, a->keys);
    l->fill(a->scores, -INFINITY, 0, from);
    l->fill(a->scores, -INFINITY, a->keys, lanes);
    Block b = { .n_queries = 1 };
    Statistics s = { .largest = { a->keys > from ? l->largest(a->scores, lanes) : -INFINITY } };
    if (a->keys > from)
        s.sum[0] = l->exp_row(a->scores, s.largest[0], lanes);
    l->weigh_rows(a->result_rows, a->scores, &v);
    finish_row(a, &b, &s, 0);
}

static void begin_memory(const Attention *a) {
    MtfAttentionRows k = rows_of(a, K, 0, a->keys), v = rows_of(a, V, 0, a->keys);
    if (goes_directly(a)) {
        if (a->narrow) {
            pack(a, a->keys_transposed, &k, 1);
            pack(a, a->values_packed, &v, 1);
        }
        return;
    }
    pack_transposed(a, a->keys_transposed, K);
    if (a->n_operands < OPERANDS) {
        pack(a, a->values_packed, &v, 1);
        return;
    }
    pack_transposed(a, a->values_transposed, V);
    pack(a, a->keys_packed, &k, 1);
    a->loops->fill(a->dk, 0, 0, a->all_keys * a->feature_lanes);
    a->loops->fill(a->dv, 0, 0, a->all_keys * a->feature_lanes);
}

/* What no query sees has a gradient as well: 0. */
static void end_memory(const Attention *a) {
    if (a->n_operands < OPERANDS)
        return;
    unpack(a, DK, 0, a->all_keys, a->dk);
    unpack(a, DV, 0, a->all_keys, a->dv);
}

static void attend_head(const Attention *a) {
    if (goes_directly(a)) {
        attend_directly(a);
        return;
    }
    for (int64_t query = 0; query < a->queries; query += MTF_ATTENTION_QUERIES)
        (a->n_operands == OPERANDS ? attend_back : attend)(a, query);
}

static int64_t at_turn(const MtfNest *nest, int operand, int64_t turn) {
    return nest->offset[operand] + turn * nest->step[operand];
}

static void each_head(Attention *a) {
    int64_t memory = -1; /* where the memory at hand begins */
    const MtfNest *nest = &a->nest;
    for (bool more = mtf_nest_first(&a->nest); more; more = mtf_nest_next(&a->nest))
        for (int64_t turn = 0; turn < a->nest.count; turn++) {
            int64_t begin = at_turn(nest, K, turn);
            if (memory >= 0 && memory != begin)
                end_memory(a);
            for (int i = 0; i < a->n_operands; i++)
                a->at[i] = at_turn(nest, i, turn);
            for (int i = 0; i < a->n_biases; i++)
                a->bias_at[i] = at_turn(nest, a->n_operands + i, turn);
            if (a->bias_gradient != NULL)
                a->bias_gradient_at = at_turn(nest, a->n_operands + a->n_biases, turn);
            if (a->rate > 0)
                a->head = at_turn(nest, a->numbering, turn);
            int64_t packed = a->keys;
            if (a->position != NULL || a->part_keys > 0)
                place_queries(a, at_turn(nest, a->placing, turn));
            if (memory != begin || a->keys != packed)
                begin_memory(a);
            memory = begin;
            attend_head(a);
            mtf_progress_hook_run(a->progress);
        }
    if (memory >= 0)
        end_memory(a);
}

/* What is added: inputs `first` and on. */
static void take_biases(Attention *a, const MtfKernelCall *call, int first) {
    for (int k = first; k < call->operation->n_inputs; k++)
        a->bias[a->n_biases++] = &call->inputs[k];
}

static void attention_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs, *out = call->outputs;
    Attention a = { .operand = { &in[0], &in[1], &in[2], &out[0], &out[1] }, .n_operands = DO };
    take_biases(&a, call, 3);
    attention_init(&a, call);
    each_head(&a);
}

static void attention_further_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs, *out = call->outputs;
    Attention a = { .operand = { &in[0], &in[1], &in[2], &out[0], &out[1] },
                    .n_operands = DO,
                    .before = &in[3],
                    .lse_before = &in[4] };
    take_biases(&a, call, 5);
    attention_init(&a, call);
    each_head(&a);
}

/* (q, k, v, position): k and v hold what was said so far, and room for more. */
static void cached_attention_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs, *out = call->outputs;
    Attention a = { .operand = { &in[0], &in[1], &in[2], &out[0], &out[1] },
                    .n_operands = DO,
                    .position = &in[3] };
    attention_init(&a, call);
    each_head(&a);
}

/* Memory that no head of this processor reads still has a gradient here: 0. A bias's adds up over all that
 * share it. */
static void attention_grad_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs, *out = call->outputs;
    Attention a = { .operand = { &in[0], &in[1], &in[2], &in[3], &in[4], &in[5], &out[0], &out[1],
                                 &out[2] },
                    .n_operands = OPERANDS,
                    .bias_gradient = call->operation->n_outputs > 3 ? &out[3] : NULL };
    take_biases(&a, call, 6);
    attention_init(&a, call);
    for (int k = 1; k < 3 && mtf_operand_elements(&in[4]) == 0; k++)
        mtf_operand_clear(&out[k], 0, mtf_operand_elements(&out[k]));
    if (a.bias_gradient != NULL)
        mtf_operand_clear(a.bias_gradient, 0, mtf_operand_elements(a.bias_gradient));
    each_head(&a);
}

const MtfKernelRow mtf_attention_kernels[] = {
    { .kind = MTF_OP_ATTENTION, .kernel = attention_kernel },
    { .kind = MTF_OP_ATTENTION_FURTHER, .kernel = attention_further_kernel },
    { .kind = MTF_OP_ATTENTION_GRAD, .kernel = attention_grad_kernel },
    { .kind = MTF_OP_ATTENTION_BIAS_GRAD, .kernel = attention_grad_kernel },
    { .kind = MTF_OP_CACHED_ATTENTION, .kernel = cached_attention_kernel },
    { .kernel = NULL },
};
