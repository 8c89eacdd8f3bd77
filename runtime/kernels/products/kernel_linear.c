// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/products/kernel_linear.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/products/linear_chunks.h"

#include <string.h>

/* The operands of the nest over heads, those that the operation has; of scans steps are LOG. */
enum { V, Q, K, LOG, BETA, DO, BEFORE, O, DQ, DK, DLOG, DBETA, BEHIND, RATE, DRATE, OPERANDS };

typedef struct {
    const MtfOperand *operand[OPERANDS]; /* or NULL */
    const MtfLinearLoops *loops;
    int dimension; /* places */
    MtfLinearHead head;
    int64_t element_bytes; /* in scratch */
    MtfLinearChunk chunk;
    MtfNest nest;
    int number[OPERANDS]; /* in the nest */
    int64_t at[OPERANDS]; /* where the head begins */
    const MtfProgressHook *progress;
} Linear;

/* ---- Rows of operands ---------------------------------------------------------------------------- */

/* `n` rows of an operand from place `first` on: where row i begins, and its width, 1 of numbers. */
typedef struct {
    const MtfOperand *operand;
    int64_t at, stride, width;
    int n;
} Rows;

static Rows rows_of(const Linear *l, int which, int64_t first, int n) {
    const MtfOperand *x = l->operand[which];
    int along = mtf_operand_find(x, l->dimension);
    int64_t stride = mtf_operand_stride(x, along);
    bool numbers =
        which == BETA || which == DBETA || ((which == LOG || which == DLOG) && !l->head.by_element);
    return (Rows){ x, l->at[which] + first * stride, stride, numbers ? 1 : x->size[x->rank - 1],
                   n };
}

/* To rows of scratch, one behind the other, and from there. */
static void load(const Rows *r, void *to) {
    for (int i = 0; i < r->n; i++) {
        const void *from = mtf_operand_at(r->operand, r->at + i * r->stride);
        if (mtf_operand_is_narrow(r->operand))
            mtf_bf16_widen((float *)to + i * r->width, from, r->width, 1);
        else
            memcpy((char *)to + i * r->width * mtf_dtype_bytes(r->operand->dtype), from,
                   (size_t)(r->width * mtf_dtype_bytes(r->operand->dtype)));
    }
}

static void store(const Rows *r, const void *from) {
    for (int i = 0; i < r->n; i++) {
        void *to = mtf_operand_at(r->operand, r->at + i * r->stride);
        if (mtf_operand_is_narrow(r->operand))
            mtf_bf16_round(to, (const float *)from + i * r->width, r->width);
        else
            memcpy(to, (const char *)from + i * r->width * mtf_dtype_bytes(r->operand->dtype),
                   (size_t)(r->width * mtf_dtype_bytes(r->operand->dtype)));
    }
}

static void load_numbers(const Rows *r, double *to) {
    for (int i = 0; i < r->n; i++) {
        const void *from = mtf_operand_at(r->operand, r->at + i * r->stride);
        to[i] = r->operand->dtype == MTF_F64   ? *(const double *)from
                : r->operand->dtype == MTF_F32 ? (double)*(const float *)from
                                               : (double)mtf_bf16_wide(*(const uint16_t *)from);
    }
}

static void store_numbers(const Rows *r, const double *from) {
    for (int i = 0; i < r->n; i++) {
        void *to = mtf_operand_at(r->operand, r->at + i * r->stride);
        if (r->operand->dtype == MTF_F64)
            *(double *)to = from[i];
        else if (r->operand->dtype == MTF_F32)
            *(float *)to = (float)from[i];
        else
            *(uint16_t *)to = mtf_bf16_rounded((float)from[i]);
    }
}

/* ---- A head ------------------------------------------------------------------------------------ */

static char *piece(const Linear *l, MtfLinearPiece which, int64_t element) {
    return (char *)l->chunk.piece[which] + element * l->element_bytes;
}

static void load_rows(const Linear *l, int which, MtfLinearPiece to, int64_t first) {
    Rows rows = rows_of(l, which, first, l->chunk.n);
    load(&rows, l->chunk.piece[to]);
}

/* The rows of chunk `number`, and sums of its logarithms. */
static void begin_chunk(Linear *l, int64_t number) {
    int64_t first = number * MTF_LINEAR_CHUNK;
    MtfLinearChunk *c = &l->chunk;
    c->n = (int)MIN(MTF_LINEAR_CHUNK, l->head.places - first);
    load_rows(l, V, MTF_LINEAR_V, first);
    load_rows(l, Q, MTF_LINEAR_Q, first);
    load_rows(l, K, MTF_LINEAR_K, first);
    if (l->head.by_element) {
        load_rows(l, LOG, MTF_LINEAR_STEP, first);
        return;
    }
    Rows logs = rows_of(l, LOG, first, c->n);
    load_numbers(&logs, c->sum);
    for (int i = 1; i < c->n; i++)
        c->sum[i] += c->sum[i - 1];
    if (!c->corrects)
        return;
    Rows betas = rows_of(l, BETA, first, c->n);
    load_numbers(&betas, c->beta);
}

static void begin_state(const Linear *l) {
    size_t bytes = (size_t)(l->head.keys * l->head.values * l->element_bytes);
    if (l->operand[BEFORE] != NULL)
        memcpy(l->chunk.piece[MTF_LINEAR_STATE], mtf_operand_at(l->operand[BEFORE], l->at[BEFORE]),
               bytes);
    else
        memset(l->chunk.piece[MTF_LINEAR_STATE], 0, bytes);
}

/* The chunk place by place, whose states stay where `places` says. */
static void step_over(Linear *l, bool places) {
    int64_t size = l->head.keys * l->head.values;
    for (int i = 0; i < l->chunk.n; i++) {
        l->loops->step(&l->chunk, i);
        if (places)
            memcpy(piece(l, MTF_LINEAR_PLACES, i * size), l->chunk.piece[MTF_LINEAR_STATE],
                   (size_t)(size * l->element_bytes));
    }
}

/* What the chunk tells, and the state behind it where that is `wanted`. */
static void tell_chunk(Linear *l, int64_t number, bool wanted) {
    begin_chunk(l, number);
    if (l->head.by_element) {
        step_over(l, false);
        return;
    }
    l->loops->correct(&l->chunk);
    l->loops->tell(&l->chunk);
    if (wanted)
        l->loops->hand_on(&l->chunk);
}

static void forward(Linear *l) {
    begin_state(l);
    for (int64_t number = 0; number < l->head.chunks; number++) {
        tell_chunk(l, number, l->operand[BEHIND] != NULL || number + 1 < l->head.chunks);
        Rows told = rows_of(l, O, number * MTF_LINEAR_CHUNK, l->chunk.n);
        store(&told, l->chunk.piece[MTF_LINEAR_O]);
    }
    if (l->operand[BEHIND] != NULL)
        memcpy(mtf_operand_at(l->operand[BEHIND], l->at[BEHIND]), l->chunk.piece[MTF_LINEAR_STATE],
               (size_t)(l->head.keys * l->head.values * l->element_bytes));
}

/* The state before each chunk. */
static void find_states(Linear *l) {
    int64_t size = l->head.keys * l->head.values;
    begin_state(l);
    for (int64_t number = 0; number < l->head.chunks; number++) {
        memcpy(piece(l, MTF_LINEAR_STATES, number * size), l->chunk.piece[MTF_LINEAR_STATE],
               (size_t)(size * l->element_bytes));
        if (number + 1 == l->head.chunks)
            return;
        begin_chunk(l, number);
        if (l->head.by_element) {
            step_over(l, false);
            continue;
        }
        l->loops->correct(&l->chunk);
        l->loops->hand_on(&l->chunk);
    }
}

/* The chunk backward, place by place, from the state before it. */
static void step_back_over(Linear *l, int64_t number) {
    int64_t size = l->head.keys * l->head.values;
    void *state = l->chunk.piece[MTF_LINEAR_STATE];
    memcpy(state, piece(l, MTF_LINEAR_STATES, number * size), (size_t)(size * l->element_bytes));
    step_over(l, true);
    for (int i = l->chunk.n - 1; i >= 0; i--) {
        l->chunk.piece[MTF_LINEAR_STATE] = i > 0 ? piece(l, MTF_LINEAR_PLACES, (i - 1) * size)
                                                 : piece(l, MTF_LINEAR_STATES, number * size);
        l->loops->step_back(&l->chunk, i, piece(l, MTF_LINEAR_PLACES, i * size));
    }
    l->chunk.piece[MTF_LINEAR_STATE] = state;
}

/* Gradients of the logarithms from those of their sums, or of steps; and of beta. */
static void store_number_gradients(Linear *l, int64_t first) {
    MtfLinearChunk *c = &l->chunk;
    if (l->head.by_element) {
        Rows steps = rows_of(l, DLOG, first, c->n);
        store(&steps, c->piece[MTF_LINEAR_DSTEP]);
        return;
    }
    for (int i = c->n - 1; i > 0; i--)
        c->dsum[i - 1] += c->dsum[i];
    Rows logs = rows_of(l, DLOG, first, c->n);
    store_numbers(&logs, c->dsum);
    if (!c->corrects)
        return;
    Rows betas = rows_of(l, DBETA, first, c->n);
    store_numbers(&betas, c->dbeta);
}

static void backward(Linear *l) {
    int64_t size = l->head.keys * l->head.values;
    MtfLinearChunk *c = &l->chunk;
    void *state = c->piece[MTF_LINEAR_STATE];
    find_states(l);
    memset(c->piece[MTF_LINEAR_DSTATE], 0, (size_t)(size * l->element_bytes));
    for (int64_t number = l->head.chunks - 1; number >= 0; number--) {
        int64_t first = number * MTF_LINEAR_CHUNK;
        begin_chunk(l, number);
        load_rows(l, DO, MTF_LINEAR_DO, first);
        c->dq = piece(l, MTF_LINEAR_DQ, first * l->head.keys);
        c->dk = piece(l, MTF_LINEAR_DK, first * l->head.keys);
        if (l->head.by_element) {
            step_back_over(l, number);
        } else {
            c->piece[MTF_LINEAR_STATE] = piece(l, MTF_LINEAR_STATES, number * size);
            l->loops->back(c);
        }
        c->piece[MTF_LINEAR_STATE] = state;
        Rows dv = rows_of(l, O, first, c->n);
        store(&dv, c->piece[MTF_LINEAR_DU]);
        store_number_gradients(l, first);
    }
}

/* ---- All heads --------------------------------------------------------------------------------- */

/* Gradients of queries and keys begin with 0, and are told when all heads that share them are done. */
static void begin_queries(const Linear *l) {
    size_t bytes = (size_t)(l->head.places * l->head.keys * l->element_bytes);
    memset(l->chunk.piece[MTF_LINEAR_DQ], 0, bytes);
    memset(l->chunk.piece[MTF_LINEAR_DK], 0, bytes);
}

static void end_queries(const Linear *l) {
    int n = (int)l->head.places;
    Rows dq = rows_of(l, DQ, 0, n), dk = rows_of(l, DK, 0, n);
    store(&dq, l->chunk.piece[MTF_LINEAR_DQ]);
    store(&dk, l->chunk.piece[MTF_LINEAR_DK]);
}

static bool goes_back(const Linear *l) {
    return l->operand[DQ] != NULL;
}

/* Over heads that queries have outside, so that those that share them come one after the other. */
static void nest_init(Linear *l) {
    MtfOperand queries = mtf_operand_without(l->operand[Q], l->dimension);
    queries.rank--; /* the keys, which come last */
    MtfOperand heads = mtf_operand_without(l->operand[V], l->dimension);
    heads.rank--;
    mtf_nest_init(&l->nest);
    mtf_nest_add_loops(&l->nest, &queries);
    mtf_nest_add_loops(&l->nest, &heads);
    for (int i = 0; i < OPERANDS; i++)
        if (l->operand[i] != NULL)
            l->number[i] = mtf_nest_add(&l->nest, l->operand[i]);
}

static void linear_init(Linear *l, const MtfKernelCall *call) {
    const MtfOperand *v = l->operand[V], *q = l->operand[Q];
    int64_t begins[MTF_LINEAR_PIECES];
    l->dimension = call->operation->attributes.dimension;
    l->loops = v->dtype == MTF_F64 ? &mtf_linear_loops_f64 : &mtf_linear_loops_f32;
    l->element_bytes = mtf_dtype_bytes(mtf_dtype_wide(v->dtype));
    l->head = mtf_linear_head_of(mtf_operand_size_along(v, l->dimension), q->size[q->rank - 1],
                                 v->size[v->rank - 1]);
    l->head.back = goes_back(l);
    l->head.by_element = l->operand[RATE] != NULL;
    l->chunk.corrects = l->operand[BETA] != NULL;
    l->chunk.keys = (int)l->head.keys;
    l->chunk.values = (int)l->head.values;
    l->progress = call->progress;
    mtf_linear_pieces(&l->head, begins);
    for (int i = 0; i < (l->head.back ? MTF_LINEAR_PIECES : MTF_LINEAR_STATES); i++)
        l->chunk.piece[i] = (char *)call->scratch + begins[i] * l->element_bytes;
    nest_init(l);
    if (l->operand[RATE] != NULL)
        memcpy(l->chunk.piece[MTF_LINEAR_RATE], l->operand[RATE]->data,
               (size_t)(l->head.keys * l->head.values * l->element_bytes));
    if (l->operand[DRATE] != NULL)
        memset(l->chunk.piece[MTF_LINEAR_DRATE], 0,
               (size_t)(l->head.keys * l->head.values * l->element_bytes));
}

static void each_head(Linear *l) {
    int64_t queries = -1; /* where those at hand begin */
    for (bool more = mtf_nest_first(&l->nest); more; more = mtf_nest_next(&l->nest))
        for (int64_t turn = 0; turn < l->nest.count; turn++) {
            int64_t begin = mtf_nest_at(&l->nest, l->number[Q], turn);
            if (goes_back(l) && queries >= 0 && queries != begin)
                end_queries(l);
            for (int i = 0; i < OPERANDS; i++)
                l->at[i] = l->operand[i] != NULL ? mtf_nest_at(&l->nest, l->number[i], turn) : 0;
            if (goes_back(l) && queries != begin)
                begin_queries(l);
            queries = begin;
            (goes_back(l) ? backward : forward)(l);
            mtf_progress_hook_run(l->progress);
        }
    if (goes_back(l) && queries >= 0)
        end_queries(l);
    if (l->operand[DRATE] != NULL)
        memcpy(l->operand[DRATE]->data, l->chunk.piece[MTF_LINEAR_DRATE],
               (size_t)(l->head.keys * l->head.values * l->element_bytes));
}

static bool scans_of(const MtfKernelCall *call) {
    return mtf_operation_row((int)call->operation->kind)->scans;
}

static void linear_attention_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs;
    bool more = call->operation->n_inputs > 4, scans = scans_of(call);
    Linear l = { .operand = { [V] = &in[0],
                              [Q] = &in[1],
                              [K] = &in[2],
                              [LOG] = &in[3],
                              [BETA] = more && !scans ? &in[4] : NULL,
                              [RATE] = scans ? &in[4] : NULL,
                              [O] = &call->outputs[0] } };
    linear_init(&l, call);
    each_head(&l);
}

static void kept_linear_attention_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs;
    bool more = call->operation->n_inputs > 5, scans = scans_of(call);
    Linear l = { .operand = { [V] = &in[0],
                              [Q] = &in[1],
                              [K] = &in[2],
                              [LOG] = &in[3],
                              [BEFORE] = &in[4],
                              [BETA] = more && !scans ? &in[5] : NULL,
                              [RATE] = scans ? &in[5] : NULL,
                              [O] = &call->outputs[0],
                              [BEHIND] = &call->outputs[1] } };
    linear_init(&l, call);
    each_head(&l);
}

/* Where this processor has no values, or no head that reads them, queries and keys have gradients all the same: 0. */
static void linear_attention_grad_kernel(const MtfKernelCall *call) {
    const MtfOperand *in = call->inputs, *out = call->outputs;
    bool more = call->operation->n_inputs > 5, scans = scans_of(call);
    Linear l = { .operand = { [V] = &in[0],
                              [Q] = &in[1],
                              [K] = &in[2],
                              [LOG] = &in[3],
                              [DO] = &in[4],
                              [BETA] = more && !scans ? &in[5] : NULL,
                              [RATE] = scans ? &in[5] : NULL,
                              [O] = &out[0],
                              [DQ] = &out[1],
                              [DK] = &out[2],
                              [DLOG] = &out[3],
                              [DBETA] = more && !scans ? &out[4] : NULL,
                              [DRATE] = scans ? &out[4] : NULL } };
    if (mtf_operand_elements(&in[0]) == 0) {
        for (int i = 1; i < call->operation->n_outputs; i++)
            mtf_operand_clear(&out[i], 0, mtf_operand_elements(&out[i]));
        return;
    }
    linear_init(&l, call);
    each_head(&l);
}

const MtfKernelRow mtf_linear_kernels[] = {
    { .kind = MTF_OP_LINEAR_ATTENTION, .kernel = linear_attention_kernel },
    { .kind = MTF_OP_LINEAR_ATTENTION_GRAD, .kernel = linear_attention_grad_kernel },
    { .kind = MTF_OP_DELTA_RULE_GRAD, .kernel = linear_attention_grad_kernel },
    { .kind = MTF_OP_KEPT_LINEAR_ATTENTION, .kernel = kept_linear_attention_kernel },
    { .kind = MTF_OP_SELECTIVE_SCAN, .kernel = linear_attention_kernel },
    { .kind = MTF_OP_SELECTIVE_SCAN_GRAD, .kernel = linear_attention_grad_kernel },
    { .kind = MTF_OP_KEPT_SELECTIVE_SCAN, .kernel = kept_linear_attention_kernel },
    { .kernel = NULL },
};
