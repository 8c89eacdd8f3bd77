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
} Order;

static const MtfInstruction *instruction_at(const Order *order, int index) {
    return mtf_program_instruction(order->program, index);
}

static void place(Order *order, int index) {
    order->order[order->n_ordered++] = index;
    if (mtf_instruction_is_collective(instruction_at(order, index)))
        order->recent[order->exchanges++ % MTF_UPDATES_BEHIND] = index;
}

static void place_first_waiting(Order *order) {
    place(order, order->waiting[order->first_waiting++]);
}

/* The place in the queue behind the last instruction that `index` depends on; its front when there
 * is none. */
static int last_needed(const Order *order, int index) {
    int w = order->n_waiting;
    while (w > order->first_waiting &&
           !mtf_instruction_depends(order->program, instruction_at(order, order->waiting[w - 1]),
                                    instruction_at(order, index)))
        w--;
    return w;
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

/* Bytes that would be free at instruction `index` if nothing waited. Shared ones count once for
 * each that waits for them, which errs on the safe side. */
static int64_t held(const Order *order, int index) {
    int64_t bytes = 0;
    for (int w = order->first_waiting; w < order->n_waiting; w++) {
        const MtfInstruction *waiting = instruction_at(order, order->waiting[w]);
        for (int k = 0; k < waiting->n_inputs; k++) {
            int storage = mtf_program_buffer(order->program, waiting->inputs[k])->storage;
            const MtfBuffer *owner = mtf_program_buffer(order->program, storage);
            bytes += owner->last < index ? mtf_buffer_aligned_bytes(owner) : 0;
        }
    }
    return bytes;
}

static bool first_is_ripe(const Order *order, int index) {
    return order->exchanges - order->since[order->first_waiting] >= MTF_UPDATES_BEHIND ||
           order->live[index] + held(order, index) > order->most;
}

/* No update waits across the first or last instruction of a loop. */
static bool begins_or_ends_loop(const Order *order, int index) {
    return index > 0 &&
           instruction_at(order, index - 1)->loop != instruction_at(order, index)->loop;
}

static void order_instruction(Order *order, int index) {
    int needed = begins_or_ends_loop(order, index) ? order->n_waiting : last_needed(order, index);
    if (updates(order, index) && (needed > order->first_waiting || reads_recent(order, index))) {
        order->since[order->n_waiting] = order->exchanges;
        order->waiting[order->n_waiting++] = index;
        return;
    }
    while (order->first_waiting < needed)
        place_first_waiting(order);
    while (order->first_waiting < order->n_waiting && first_is_ripe(order, index))
        place_first_waiting(order);
    place(order, index);
}

/* The order in which updates wait for exchanges, of a program whose buffers are aliased; NULL when it is the one
 * there is. */
static int *find_order(const MtfProgram *program) {
    int n = mtf_program_length(program);
    g_autofree int64_t *live = mtf_program_live(program);
    g_autofree int *waiting = g_new(int, n + 1);
    g_autofree int *since = g_new(int, n + 1);
    Order order = { .program = program,
                    .live = live,
                    .most = mtf_program_most_live(program),
                    .order = g_new(int, n + 1),
                    .waiting = waiting,
                    .since = since };
    for (int i = 0; i < n; i++)
        order_instruction(&order, i);
    while (order.first_waiting < order.n_waiting)
        place_first_waiting(&order);
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
