// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/overlap_windows.h"

#include "layouts/program/combine_collectives.h"
#include "layouts/program/lifetimes.h"
#include "layouts/program/program_order.h"

#include <string.h>

static bool touches(const MtfProgram *program, const int *buffers, int n, int storage) {
    for (int k = 0; k < n; k++)
        if (mtf_program_buffer(program, buffers[k])->storage == storage)
            return true;
    return false;
}

bool mtf_instruction_depends(const MtfProgram *program, const MtfInstruction *early,
                             const MtfInstruction *late) {
    for (int k = 0; k < late->n_inputs; k++)
        if (touches(program, early->outputs, early->n_outputs,
                    mtf_program_buffer(program, late->inputs[k])->storage))
            return true;
    for (int k = 0; k < late->n_outputs; k++) {
        int storage = mtf_program_buffer(program, late->outputs[k])->storage;
        if (touches(program, early->outputs, early->n_outputs, storage) ||
            touches(program, early->inputs, early->n_inputs, storage))
            return true;
    }
    return false;
}

static bool is_collective(const MtfInstruction *instruction) {
    return instruction->kind == MTF_INSTRUCTION_RESHARD &&
           mtf_reshard_is_collective(instruction->reshard.kind);
}

/* ---- Updates that wait --------------------------------------------------------------------- */

/* The new order while it is made. */
typedef struct {
    const MtfProgram *program;
    const int64_t *live; /* in the old order, one an instruction */
    int64_t most;
    int n_ordered, exchanges; /* instructions placed so far, and collectives among them */
    int *order;
    int recent[MTF_EXCHANGES_AHEAD]; /* the collectives placed last, a ring */
    int first_waiting, n_waiting;    /* a queue: no update overtakes another */
    int *waiting, *since;            /* instructions, and `exchanges` when they came */
} Order;

static const MtfInstruction *instruction_at(const Order *order, int index) {
    return mtf_program_instruction(order->program, index);
}

static void place(Order *order, int index) {
    order->order[order->n_ordered++] = index;
    if (is_collective(instruction_at(order, index)))
        order->recent[order->exchanges++ % MTF_EXCHANGES_AHEAD] = index;
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
    for (int k = 0; k < MIN(order->exchanges, MTF_EXCHANGES_AHEAD); k++)
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
    return order->exchanges - order->since[order->first_waiting] >= MTF_EXCHANGES_AHEAD ||
           order->live[index] + held(order, index) > order->most;
}

static void order_instruction(Order *order, int index) {
    int needed = last_needed(order, index);
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

/* The order in which updates wait for exchanges, of a settled program; NULL when it is the one
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

/* Settles the program with its instructions, a copy of `instructions`, in `order`, from the buffers
 * as they were emitted. */
static void alias_in_order(MtfProgram *program, const MtfInstruction *instructions,
                           const MtfBuffer *buffers, const int *order) {
    for (int i = 0; i < mtf_program_length(program); i++)
        *mtf_program_instruction(program, i) = instructions[order != NULL ? order[i] : i];
    memcpy(program->buffers->data, buffers, sizeof *buffers * program->buffers->len);
    mtf_program_alias_buffers(program);
}

static void delay_updates(MtfProgram *program) {
    g_autofree MtfInstruction *instructions =
        g_memdup2(program->instructions->data, sizeof *instructions * program->instructions->len);
    g_autofree MtfBuffer *buffers =
        g_memdup2(program->buffers->data, sizeof *buffers * program->buffers->len);
    mtf_program_alias_buffers(program);
    int64_t most = mtf_program_most_live(program);
    g_autofree int *order = find_order(program);
    if (order == NULL)
        return;
    alias_in_order(program, instructions, buffers, order);
    if (mtf_program_most_live(program) > most)
        alias_in_order(program, instructions, buffers, NULL);
}

/* ---- Where collectives must be over -------------------------------------------------------- */

static void add_owner(const MtfProgram *program, GPtrArray *owners, int buffer) {
    MtfBuffer *owner = mtf_program_buffer(program, mtf_program_buffer(program, buffer)->storage);
    if (!g_ptr_array_find(owners, owner, NULL))
        g_ptr_array_add(owners, owner);
}

/* The storages of a collective, MtfBuffer, each once. */
static GPtrArray *owners_of(const MtfProgram *program, const MtfInstruction *instruction) {
    GPtrArray *owners = g_ptr_array_new();
    for (int k = 0; k < instruction->n_inputs; k++) {
        add_owner(program, owners, instruction->inputs[k]);
        add_owner(program, owners, instruction->outputs[k]);
    }
    if (instruction->scratch >= 0)
        add_owner(program, owners, instruction->scratch);
    return owners;
}

/* Bytes that are not live at instruction `index` any more, but would be kept. */
static int64_t kept(const GPtrArray *owners, int index) {
    int64_t bytes = 0;
    for (guint k = 0; k < owners->len; k++) {
        const MtfBuffer *owner = owners->pdata[k];
        bytes += owner->last < index ? mtf_buffer_aligned_bytes(owner) : 0;
    }
    return bytes;
}

static void keep(const GPtrArray *owners, int index) {
    for (guint k = 0; k < owners->len; k++) {
        MtfBuffer *owner = owners->pdata[k];
        owner->last = MAX(owner->last, index);
    }
}

/* Lets collective `index` be under way beside the instructions behind it, before `end`. */
static void open_overlap_window(MtfProgram *program, int index, int end, int64_t *live,
                                int64_t most) {
    MtfInstruction *collective = mtf_program_instruction(program, index);
    g_autoptr(GPtrArray) owners = owners_of(program, collective);
    int wait_before = index + 1;
    for (int begun = 0; wait_before < end; wait_before++) {
        const MtfInstruction *next = mtf_program_instruction(program, wait_before);
        begun += is_collective(next);
        if (begun == MTF_EXCHANGES_UNDER_WAY ||
            mtf_instruction_depends(program, collective, next) ||
            live[wait_before] + kept(owners, wait_before) > most)
            break;
        live[wait_before] += kept(owners, wait_before);
        keep(owners, wait_before);
    }
    collective->wait_before = wait_before > index + 1 ? wait_before : 0;
}

void mtf_program_run_passes(MtfProgram *program) {
    const int *order = program->layout->order;
    if (order != NULL)
        mtf_program_reorder(program, order);
    if (program->layout->bucket_bytes > 0)
        mtf_program_combine_collectives(program, program->layout->bucket_bytes);
    int n = mtf_program_length(program), collectives = 0;
    for (int i = 0; i < n; i++)
        collectives += is_collective(mtf_program_instruction(program, i));
    if (collectives == 0) {
        mtf_program_alias_buffers(program);
        return;
    }
    if (order != NULL)
        mtf_program_alias_buffers(program);
    else
        delay_updates(program);
    g_autofree int64_t *live = mtf_program_live(program);
    int64_t most = mtf_program_most_live(program);
    for (int i = 0; i < n; i++)
        if (is_collective(mtf_program_instruction(program, i)))
            open_overlap_window(program, i, mtf_program_part_end(program, i), live, most);
}
