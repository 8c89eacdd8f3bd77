// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/delayed_updates.h"

#include "layouts/program/lifetimes.h"
#include "layouts/program/program_order.h"

/* The new order while it is made. */
typedef struct {
    const MtfProgram *program;
    const int64_t *live; /* in the old order, one an instruction */
    int64_t most;
    int n_ordered, exchanges; /* instructions placed so far, and collectives among them */
    int *order;
    int recent[MTF_UPDATES_BEHIND]; /* the collectives placed last, a ring */
    int first_waiting, n_waiting;   /* a queue: no update overtakes another */
    int *waiting, *since;           /* instructions, and `exchanges` when they came */
    int *writer,
        *user;    /* of each storage: behind the last in the queue that writes it, or uses it */
    int64_t held; /* bytes that would be free here if nothing waited */
    int64_t *released; /* what is to be held from behind that instruction on */
} Order;

static const MtfInstruction *instruction_at(const Order *order, int index) {
    return mtf_program_instruction(order->program, index);
}

static void place(Order *order, int index) {
    order->order[order->n_ordered++] = index;
    if (mtf_instruction_is_collective(instruction_at(order, index)))
        order->recent[order->exchanges++ % MTF_UPDATES_BEHIND] = index;
}

static int storage_of(const Order *order, int buffer) {
    return mtf_program_buffer(order->program, buffer)->storage;
}

/* While an update waits, the bytes that it reads are held from when they would be free: `sign` 1 when it
 * begins to wait at instruction `index`, -1 when it is placed there. Shared ones count once for each that
 * waits for them, which errs on the safe side. */
static void hold_inputs(Order *order, int waiting, int index, int sign) {
    const MtfInstruction *instruction = instruction_at(order, waiting);
    for (int k = 0; k < instruction->n_inputs; k++) {
        const MtfBuffer *owner =
            mtf_program_buffer(order->program, storage_of(order, instruction->inputs[k]));
        int64_t *bytes = owner->last < index ? &order->held : &order->released[owner->last];
        *bytes += sign * mtf_buffer_aligned_bytes(owner);
    }
}

static void place_first_waiting(Order *order, int index) {
    int first = order->waiting[order->first_waiting++];
    hold_inputs(order, first, index, -1);
    place(order, first);
}

static void begin_waiting(Order *order, int index) {
    const MtfInstruction *instruction = instruction_at(order, index);
    order->since[order->n_waiting] = order->exchanges;
    order->waiting[order->n_waiting++] = index;
    hold_inputs(order, index, index, 1);
    for (int k = 0; k < instruction->n_inputs; k++)
        order->user[storage_of(order, instruction->inputs[k])] = order->n_waiting;
    for (int k = 0; k < instruction->n_outputs; k++) {
        int storage = storage_of(order, instruction->outputs[k]);
        order->user[storage] = order->writer[storage] = order->n_waiting;
    }
}

/* The place in the queue behind the last instruction that `index` depends on (mtf_instruction_depends); its
 * front when there is none. */
static int last_needed(const Order *order, int index) {
    const MtfInstruction *instruction = instruction_at(order, index);
    int last = order->first_waiting;
    for (int k = 0; k < instruction->n_inputs; k++)
        last = MAX(last, order->writer[storage_of(order, instruction->inputs[k])]);
    for (int k = 0; k < instruction->n_outputs; k++)
        last = MAX(last, order->user[storage_of(order, instruction->outputs[k])]);
    return last;
}

/* Whether a collective that has only just begun brings what the instruction reads. */
static bool reads_recent(const Order *order, int index) {
    for (int k = 0; k < MIN(order->exchanges, MTF_UPDATES_BEHIND); k++)
        if (mtf_instruction_depends(order->program, instruction_at(order, order->recent[k]),
                                    instruction_at(order, index)))
            return true;
    return false;
}

static bool updates(const Order *order, int index) {
    int operation = instruction_at(order, index)->operation;
    return mtf_graph_operation(order->program->graph, operation)->phase == MTF_PHASE_UPDATE;
}

static bool first_is_ripe(const Order *order, int index) {
    return order->exchanges - order->since[order->first_waiting] >= MTF_UPDATES_BEHIND ||
           order->live[index] + order->held > order->most;
}

/* No update waits across the first or last instruction of a loop. */
static bool begins_or_ends_loop(const Order *order, int index) {
    return index > 0 &&
           instruction_at(order, index - 1)->loop != instruction_at(order, index)->loop;
}

static void order_instruction(Order *order, int index) {
    order->held += index > 0 ? order->released[index - 1] : 0;
    int needed = begins_or_ends_loop(order, index) ? order->n_waiting : last_needed(order, index);
    if (updates(order, index) && (needed > order->first_waiting || reads_recent(order, index))) {
        begin_waiting(order, index);
        return;
    }
    while (order->first_waiting < needed)
        place_first_waiting(order, index);
    while (order->first_waiting < order->n_waiting && first_is_ripe(order, index))
        place_first_waiting(order, index);
    place(order, index);
}

/* The order in which updates wait for exchanges, of a program whose buffers are aliased; NULL when it is the
 * one there is. */
static int *find_order(const MtfProgram *program) {
    int n = mtf_program_length(program);
    g_autofree int64_t *live = mtf_program_live(program);
    g_autofree int *waiting = g_new(int, n + 1);
    g_autofree int *since = g_new(int, n + 1);
    g_autofree int *writer = g_new0(int, program->buffers->len + 1);
    g_autofree int *user = g_new0(int, program->buffers->len + 1);
    g_autofree int64_t *released = g_new0(int64_t, n + 1);
    Order order = { .program = program,
                    .live = live,
                    .most = mtf_program_most_live(program),
                    .order = g_new(int, n + 1),
                    .waiting = waiting,
                    .since = since,
                    .writer = writer,
                    .user = user,
                    .released = released };
    for (int i = 0; i < n; i++)
        order_instruction(&order, i);
    while (order.first_waiting < order.n_waiting)
        place_first_waiting(&order, n);
    for (int i = 0; i < n; i++)
        if (order.order[i] != i)
            return order.order;
    g_free(order.order);
    return NULL;
}

/* The order that undoes `order`. */
static int *inverse_of(const int *order, int n) {
    int *inverse = g_new(int, n + 1);
    for (int i = 0; i < n; i++)
        inverse[order[i]] = i;
    return inverse;
}

static void alias_in_order(MtfProgram *program, const int *order) {
    mtf_program_reorder(program, order);
    mtf_program_alias_buffers(program);
}

void mtf_program_delay_updates(MtfProgram *program) {
    int64_t most = mtf_program_most_live(program);
    g_autofree int *order = find_order(program);
    if (order == NULL)
        return;
    alias_in_order(program, order);
    if (mtf_program_most_live(program) <= most)
        return;
    g_autofree int *back = inverse_of(order, mtf_program_length(program));
    alias_in_order(program, back);
}
