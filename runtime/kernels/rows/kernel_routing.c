// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/kernels/rows/kernel_routing.h"

#include "runtime/kernels/base/kernel_bfloat16.h"
#include "runtime/kernels/base/kernel_math.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/kernels/base/slice.h"

#include <string.h>

/* Elements of a token that are added up at once. */
#define SUM_BLOCK 256

typedef struct {
    void (*add_scaled)(void *out, int64_t step, const void *in, int64_t in_step, double factor,
                       int64_t n);
    void (*gather)(void *sum, const void *in, int64_t in_step, double factor, int64_t n);
    void (*store)(void *out, int64_t step, const void *sum, int64_t n);
    double (*dot)(const void *left, int64_t a_step, const void *right, int64_t b_step, int64_t n);
} Loops;

#define LOOPS "runtime/kernels/rows/kernel_routes.inc"
#include "runtime/kernels/rows/kernel_float_types.inc"

static int32_t *integer_at(const MtfOperand *operand, int64_t offset) {
    return mtf_operand_at(operand, offset);
}

static int64_t stride_along(const MtfOperand *operand, int dim) {
    int position = mtf_operand_find(operand, dim);
    return position < 0 ? 0 : mtf_operand_stride(operand, position);
}

/* ---- Who gets which place -------------------------------------------------------------------- */

/* An operand of one group: its first element, and the way to the next token and the next choice. */
typedef struct {
    const MtfOperand *operand;
    int64_t first, token, choice;
} Column;

typedef struct {
    const MtfAttributes *attributes;
    int64_t tokens, choices, experts, capacity; /* capacity -1: none */
    Column chosen, gate, slot;
    int32_t *count, *start; /* by expert: places taken, the first place */
    int32_t *order;         /* choices, token * choices + choice, in the order they are served */
} Group;

static int64_t column_at(const Column *column, const Group *g, int32_t i) {
    return column->first + i / g->choices * column->token + i % g->choices * column->choice;
}

static int32_t *slot_of(const Group *g, int32_t i) {
    return integer_at(g->slot.operand, column_at(&g->slot, g, i));
}

/* The expert of choice `i`; -1 where it is none. */
static int32_t chosen_by(const Group *g, int32_t i) {
    int32_t id = *integer_at(g->chosen.operand, column_at(&g->chosen, g, i));
    return id >= 0 && id < g->experts ? id : -1;
}

static double gate_of(const Group *g, int32_t i) {
    return mtf_slice_get(g->gate.operand, column_at(&g->gate, g, i));
}

/* By gates, where these say who comes first. */
static bool is_served_before(const Group *g, int32_t i, int32_t j) {
    int32_t n = (int32_t)g->choices;
    bool by_token = g->attributes->priority == 2;
    if (by_token && g->attributes->queue == 1 && i % n != j % n)
        return i % n < j % n;
    double a = gate_of(g, by_token ? i - i % n : i), b = gate_of(g, by_token ? j - j % n : j);
    return a > b || (a == b && i < j);
}

/* Of a heap whose top is served last. */
static void sift_down(const Group *g, int64_t at, int64_t n) {
    for (int64_t child = 2 * at + 1; child < n; at = child, child = 2 * at + 1) {
        if (child + 1 < n && is_served_before(g, g->order[child], g->order[child + 1]))
            child++;
        if (!is_served_before(g, g->order[at], g->order[child]))
            return;
        int32_t swap = g->order[at];
        g->order[at] = g->order[child];
        g->order[child] = swap;
    }
}

static void sort_by_gates(const Group *g, int64_t n) {
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift_down(g, i, n);
    for (int64_t last = n - 1; last > 0; last--) {
        int32_t top = g->order[0];
        g->order[0] = g->order[last];
        g->order[last] = top;
        sift_down(g, 0, last);
    }
}

static void decide_order(const Group *g, int64_t n) {
    bool by_choice = g->attributes->queue == 1;
    for (int64_t i = 0; i < n; i++)
        g->order[i] = (int32_t)(by_choice ? i % g->tokens * g->choices + i / g->tokens : i);
    if (g->attributes->priority != 0)
        sort_by_gates(g, n);
}

/* The first place of each expert: its capacity apart, or behind all choices of those before it. */
static void decide_starts(const Group *g, int64_t n) {
    memset(g->count, 0, (size_t)g->experts * sizeof *g->count);
    for (int32_t i = 0; i < n && g->capacity < 0; i++) {
        int32_t e = chosen_by(g, i);
        if (e >= 0)
            g->count[e]++;
    }
    int64_t start = 0;
    for (int64_t e = 0; e < g->experts; e++) {
        g->start[e] = (int32_t)start;
        start += g->capacity < 0 ? g->count[e] : g->capacity;
    }
}

/* Gives places in the order of service; then, where gates decided, in the order of tokens among
 * those who got one. */
static void give_slots(const Group *g, int64_t n) {
    memset(g->count, 0, (size_t)g->experts * sizeof *g->count);
    for (int64_t i = 0; i < n; i++) {
        int32_t e = chosen_by(g, g->order[i]);
        bool held = e >= 0 && (g->capacity < 0 || g->count[e] < g->capacity);
        *slot_of(g, g->order[i]) = held ? g->start[e] + g->count[e]++ : -1;
    }
    if (g->attributes->priority != 1)
        return;
    memset(g->count, 0, (size_t)g->experts * sizeof *g->count);
    for (int32_t i = 0; i < n; i++)
        if (*slot_of(g, i) >= 0) {
            int32_t e = chosen_by(g, i);
            *slot_of(g, i) = g->start[e] + g->count[e]++;
        }
}

static Column column_of(const MtfOperand *operand, const MtfAttributes *a) {
    return (Column){ operand, 0, stride_along(operand, a->dimension),
                     stride_along(operand, a->choices) };
}

/* Stands at group number `group` of the slots' further dimensions. */
static void enter_group(Group *g, int64_t group) {
    const MtfOperand *slot = g->slot.operand;
    Column *columns[] = { &g->chosen, &g->gate, &g->slot };
    for (int c = 0; c < 3; c++)
        columns[c]->first = 0;
    for (int i = slot->rank - 1; i >= 0; i--) {
        int dim = slot->dims[i];
        if (dim == g->attributes->dimension || dim == g->attributes->choices)
            continue;
        for (int c = 0; c < 3; c++)
            columns[c]->first += group % slot->size[i] * stride_along(columns[c]->operand, dim);
        group /= slot->size[i];
    }
}

static void slots_kernel(const MtfKernelCall *call) {
    const MtfAttributes *a = &call->operation->attributes;
    const MtfOperand *out = &call->outputs[0], *in = call->inputs;
    bool gated = call->operation->n_inputs > 1;
    Group g = { .attributes = a,
                .tokens = mtf_operand_size_along(out, a->dimension),
                .choices = mtf_operand_size_along(out, a->choices),
                .experts = mtf_graph_size(call->graph, a->experts),
                .capacity = a->capacity < 0 ? -1 : mtf_graph_size(call->graph, a->capacity),
                .chosen = column_of(&in[0], a),
                .gate = column_of(&in[gated ? 1 : 0], a),
                .slot = column_of(out, a),
                .count = call->scratch };
    g.start = g.count + g.experts;
    g.order = g.start + g.experts;
    int64_t n = g.tokens * g.choices, groups = n > 0 ? mtf_operand_elements(out) / n : 0;
    for (int64_t group = 0; group < groups; group++) {
        enter_group(&g, group);
        decide_order(&g, n);
        decide_starts(&g, n);
        give_slots(&g, n);
    }
}

/* ---- Moving by slots ------------------------------------------------------------------------- */

/* The dimensions of a tensor that are places. */
typedef struct {
    const MtfOperand *operand;
    int n;
    int position[MTF_MAX_RANK];
} Places;

static Places places_of(const MtfOperand *operand, const MtfOperand *slot,
                        const MtfOperand *tokens) {
    Places places = { .operand = operand };
    for (int i = 0; i < operand->rank; i++)
        if (mtf_operand_find(slot, operand->dims[i]) < 0 &&
            mtf_operand_find(tokens, operand->dims[i]) < 0)
            places.position[places.n++] = i;
    return places;
}

/* Where the place of a slot lies behind the first one held; -1 where it is not held. */
static int64_t place_at(const Places *places, int64_t slot) {
    const MtfOperand *o = places->operand;
    int64_t offset = 0;
    for (int i = places->n - 1; i >= 0 && slot >= 0; i--) {
        int p = places->position[i];
        int64_t at = slot % o->global[p] - o->begin[p];
        if (at < 0 || at >= o->size[p])
            return -1;
        offset += at * mtf_operand_stride(o, p);
        slot /= o->global[p];
    }
    return slot == 0 ? offset : -1;
}

static double weight_at(const MtfKernelCall *call, int k, int64_t offset) {
    return call->operation->n_inputs > k ? mtf_slice_get(&call->inputs[k], offset) : 1;
}

static void slot_ids_kernel(const MtfKernelCall *call) {
    const MtfOperand *chosen = &call->inputs[0], *slot = &call->inputs[1], *out = call->outputs;
    Places places = places_of(out, slot, slot);
    for (int64_t i = 0; i < mtf_operand_elements(out); i++)
        *integer_at(out, i) = -1;
    MtfNest nest;
    mtf_nest_over(&nest, slot, 3, (const MtfOperand *[]){ slot, chosen, out });
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest))
        for (int64_t i = 0; i < nest.count; i++) {
            int64_t place = place_at(&places, *integer_at(slot, mtf_nest_at(&nest, 0, i)));
            if (place >= 0)
                *integer_at(out, place + mtf_nest_at(&nest, 2, i)) =
                    *integer_at(chosen, mtf_nest_at(&nest, 1, i));
        }
}

/* Through all slots, outermost, and the elements of a token or place `row`. */
static void begin_moving(MtfNest *nest, const MtfOperand *slot, const MtfOperand *row,
                         const MtfOperand *operands[4]) {
    mtf_nest_init(nest);
    mtf_nest_add_loops(nest, slot);
    mtf_nest_add_loops(nest, row);
    for (int k = 0; k < 4; k++)
        mtf_nest_add(nest, operands[k]);
}

/* (x, slot[, gate]): operands slot, gate, x, places; one slot for a row of elements, or for each. */
static void dispatch_kernel(const MtfKernelCall *call) {
    const MtfOperand *x = &call->inputs[0], *slot = &call->inputs[1], *out = &call->outputs[0];
    const MtfOperand *gate = call->operation->n_inputs > 2 ? &call->inputs[2] : slot;
    const Loops *loops = loops_of(out);
    Places places = places_of(out, slot, x);
    MtfNest nest;
    mtf_operand_clear(out, 0, mtf_operand_elements(out));
    begin_moving(&nest, slot, x, (const MtfOperand *[]){ slot, gate, x, out });
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest)) {
        int64_t run = mtf_nest_still(&nest, 0, 0), at[MTF_NEST_OPERANDS];
        for (int64_t i = 0; i < nest.count; i += run) {
            mtf_nest_all_at(&nest, i, at);
            int64_t place = place_at(&places, *integer_at(slot, at[0]));
            if (place >= 0)
                loops->add_scaled(mtf_operand_at(out, place + at[3]), nest.step[3],
                                  mtf_operand_at(x, at[2]), nest.step[2], weight_at(call, 2, at[1]),
                                  run);
        }
    }
}

/* What `combine` goes through. */
typedef struct {
    const MtfKernelCall *call;
    const Loops *loops;
    Places places;
    int64_t choices, slot_step, gate_step; /* of a token: how many, from one to the next */
} Combining;

/* Elements of one token: the sum over its choices, at once for a block of elements. Operands out,
 * slot, gate, y stand at `at` and go on by `step`. */
static void combine_run(const Combining *c, const int64_t at[4], const int64_t step[4],
                        int64_t run) {
    const MtfKernelCall *call = c->call;
    double sums[SUM_BLOCK];
    for (int64_t from = 0; from < run; from += SUM_BLOCK) {
        int64_t n = MIN(SUM_BLOCK, run - from);
        memset(sums, 0, (size_t)n * sizeof *sums);
        for (int64_t k = 0; k < c->choices; k++) {
            int64_t place =
                place_at(&c->places, *integer_at(&call->inputs[1], at[1] + k * c->slot_step));
            if (place >= 0)
                c->loops->gather(sums,
                                 mtf_operand_at(&call->inputs[0], place + at[3] + from * step[3]),
                                 step[3], weight_at(call, 2, at[2] + k * c->gate_step), n);
        }
        c->loops->store(mtf_operand_at(&call->outputs[0], at[0] + from * step[0]), step[0], sums,
                        n);
    }
}

/* The one dimension of the slots that tokens lack. */
static int choices_of(const MtfOperand *slot, const MtfOperand *tokens) {
    int i = 0;
    while (mtf_operand_find(tokens, slot->dims[i]) >= 0)
        i++;
    return i;
}

static void combine_kernel(const MtfKernelCall *call) {
    const MtfOperand *y = &call->inputs[0], *slot = &call->inputs[1], *out = &call->outputs[0];
    const MtfOperand *gate = call->operation->n_inputs > 2 ? &call->inputs[2] : slot;
    int k = choices_of(slot, out);
    Combining combining = { call,
                            loops_of(out),
                            places_of(y, slot, out),
                            slot->size[k],
                            stride_along(slot, slot->dims[k]),
                            stride_along(gate, slot->dims[k]) };
    MtfNest nest;
    mtf_nest_over(&nest, out, 4, (const MtfOperand *[]){ out, slot, gate, y });
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest)) {
        int64_t run = mtf_nest_still(&nest, 1, 2), at[MTF_NEST_OPERANDS];
        for (int64_t i = 0; i < nest.count; i += run) {
            mtf_nest_all_at(&nest, i, at);
            combine_run(&combining, at, nest.step, run);
        }
    }
}

/* (y, dy, slot): operands slot, gradient, y, dy. */
static void combine_gate_grad_kernel(const MtfKernelCall *call) {
    const MtfOperand *y = &call->inputs[0], *dy = &call->inputs[1], *slot = &call->inputs[2];
    const MtfOperand sums = mtf_kernel_sums(call), *out = &sums;
    const Loops *loops = loops_of(y);
    Places places = places_of(y, slot, dy);
    MtfNest nest;
    mtf_operand_clear(out, 0, mtf_operand_elements(out));
    begin_moving(&nest, slot, dy, (const MtfOperand *[]){ slot, out, y, dy });
    for (bool more = mtf_nest_first(&nest); more; more = mtf_nest_next(&nest)) {
        int64_t run = mtf_nest_still(&nest, 0, 1), at[MTF_NEST_OPERANDS];
        for (int64_t i = 0; i < nest.count; i += run) {
            mtf_nest_all_at(&nest, i, at);
            int64_t place = place_at(&places, *integer_at(slot, at[0]));
            if (place >= 0)
                mtf_slice_set(out, at[1],
                              mtf_slice_get(out, at[1]) +
                                  loops->dot(mtf_operand_at(y, place + at[2]), nest.step[2],
                                             mtf_operand_at(dy, at[3]), nest.step[3], run));
        }
    }
    mtf_kernel_store_sums(call, out);
}

const MtfKernelRow mtf_routing_kernels[] = {
    MTF_TIMED_KERNEL(MTF_OP_SLOTS, slots_kernel, { "#ro" }, NULL, MTF_SLOW),
    MTF_TIMED_KERNEL(MTF_OP_SLOT_IDS, slot_ids_kernel, { "#ro", "#ro" }, "t", MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_DISPATCH, dispatch_kernel, { "rc", "#ro" }, "tc", MTF_NOTHING_FRESH),
    MTF_TIMED_KERNEL(MTF_OP_COMBINE, combine_kernel, { "tc", "#ro", "ro" }, "rc", MTF_FIRST_KEPT),
    MTF_TIMED_KERNEL(MTF_OP_COMBINE_GATE_GRAD, combine_gate_grad_kernel, { "tc", "rc", "#ro" },
                     "ro", MTF_BOTH_KEPT),
    { .kernel = NULL },
};
