// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/cases/random_order.h"

/* Variables are written again and again under several buffers; other buffers are values. */
static bool same_value(const MtfProgram *program, int a, int b) {
    int x = mtf_program_buffer(program, a)->storage, y = mtf_program_buffer(program, b)->storage;
    return a == b || (x == y && mtf_program_buffer(program, x)->persistent);
}

static bool meet(const MtfProgram *program, const int *a, int n, const int *b, int m) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++)
            if (same_value(program, a[i], b[k]))
                return true;
    return false;
}

bool mtf_must_follow(const MtfProgram *program, int early, int late) {
    const MtfInstruction *a = mtf_program_instruction(program, early);
    const MtfInstruction *b = mtf_program_instruction(program, late);
    return meet(program, a->outputs, a->n_outputs, b->inputs, b->n_inputs) ||
           meet(program, a->inputs, a->n_inputs, b->outputs, b->n_outputs) ||
           meet(program, a->outputs, a->n_outputs, b->outputs, b->n_outputs);
}

static bool is_forward(const MtfProgram *program, int index) {
    int operation = mtf_program_instruction(program, index)->operation;
    return mtf_graph_operation(program->graph, operation)->phase == MTF_PHASE_FORWARD;
}

static bool writes_loss(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    for (int k = 0; k < instruction->n_outputs; k++)
        if (mtf_program_buffer(program, instruction->outputs[k])->tensor == program->graph->loss)
            return true;
    return false;
}

/* Whether it is worked out once for all gradients together. */
static bool is_for_clipping(const MtfProgram *program, int index) {
    const MtfOperation *op =
        mtf_graph_operation(program->graph, mtf_program_instruction(program, index)->operation);
    return index >= program->n_repeated && op->phase == MTF_PHASE_CLIP &&
           op->origin != MTF_ORIGIN_GRADIENT;
}

/* Whether another stage waits for what it makes. */
static bool is_for_others(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    for (int k = 0; k < instruction->n_outputs && index >= program->n_repeated; k++) {
        int tensor = mtf_program_buffer(program, instruction->outputs[k])->tensor;
        if (tensor >= 0 && mtf_graph_tensor(program->graph, tensor)->is_sent &&
            mtf_graph_tensor(program->graph, tensor)->source == MTF_SOURCE_OPERATION)
            return true;
    }
    return false;
}

int mtf_part_of_step(const MtfProgram *program, int instruction) {
    bool forward = true, before_loss = false, asked = false;
    for (int i = 0; i <= instruction; i++)
        forward &= is_forward(program, i);
    for (int i = instruction; i < mtf_program_length(program); i++)
        asked |= is_for_clipping(program, i) || is_for_others(program, i);
    for (int i = instruction; i < mtf_program_length(program); i++)
        before_loss |= program->graph->loss >= 0 && writes_loss(program, i);
    return (forward ? 0 : 1) + (before_loss ? 0 : 2) + (instruction < program->n_repeated ? 0 : 4) +
           (asked ? 0 : 8);
}

/* Whether nothing may go from one side of a pair of neighbours to the other: parts end between them, or one is
 * of a loop, whose instructions stay as they are. */
static bool are_parted(const MtfProgram *program, const int *parts, int i) {
    return parts[i] != parts[i + 1] || mtf_program_instruction(program, i)->loop > 0 ||
           mtf_program_instruction(program, i + 1)->loop > 0;
}

int *mtf_random_order(GRand *random, const MtfProgram *program) {
    int n = mtf_program_length(program);
    int *order = g_new(int, (gsize)n + 1);
    g_autofree bool *done = g_new0(bool, (gsize)n + 1);
    g_autofree int *parts = g_new(int, (gsize)n + 1);
    for (int i = 0; i < n; i++)
        parts[i] = mtf_part_of_step(program, i);
    for (int p = 0; p < n; p++) {
        g_autoptr(GArray) ready = g_array_new(FALSE, FALSE, sizeof(int));
        int first = 0;
        while (done[first])
            first++;
        for (int i = first; i < n && (i == first || !are_parted(program, parts, i - 1)); i++) {
            bool waits = done[i];
            for (int k = first; k < i && !waits; k++)
                waits = !done[k] && mtf_must_follow(program, k, i);
            if (!waits)
                g_array_append_val(ready, i);
        }
        order[p] = g_array_index(ready, int, g_rand_int_range(random, 0, (gint32)ready->len));
        done[order[p]] = true;
    }
    return order;
}
