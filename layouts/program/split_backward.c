// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/split_backward.h"

#include "layouts/graph/microbatches.h"
#include "layouts/program/program_order.h"

/* Whether an instruction makes the copy of a tensor that other stages are sent. */
static bool makes_sent(const MtfProgram *program, const MtfInstruction *instruction) {
    for (int k = 0; k < instruction->n_outputs; k++) {
        int tensor = mtf_program_buffer(program, instruction->outputs[k])->tensor;
        if (tensor >= 0 && mtf_graph_tensor(program->graph, tensor)->is_sent &&
            program->tensor_buffers[tensor] == instruction->outputs[k])
            return true;
    }
    return false;
}

/* Sums over micro-batches are sent when the last of them is done, so they do not hurry. */
static bool is_sum(const MtfProgram *program, const MtfInstruction *instruction) {
    return instruction->kind == MTF_INSTRUCTION_KERNEL &&
           mtf_operation_accumulates(program->graph, instruction->operation);
}

/* Whether the instructions of a loop, which ends before `end`, lead: its iterations stay whole, so one
 * that does is enough. `begin` is set to its first. */
static bool loop_leads(const MtfProgram *program, const bool *leads, int end, int *begin) {
    int loop = mtf_program_instruction(program, end - 1)->loop;
    bool any = false;
    for (*begin = end; *begin > 0; (*begin)--) {
        const MtfInstruction *instruction = mtf_program_instruction(program, *begin - 1);
        if (*begin < end && (loop == 0 || instruction->loop != loop))
            break;
        any |= leads[*begin - 1] ||
               (makes_sent(program, instruction) && !is_sum(program, instruction));
    }
    return any;
}

/* leads[i]: some tensor that is sent in the backward pass, from `forward` on, depends on i. */
static bool *find_leading(const MtfProgram *program, int forward) {
    g_autoptr(MtfDependences) waits = mtf_dependences_new(program);
    bool *leads = g_new0(bool, program->n_repeated + 1);
    for (int end = program->n_repeated, begin; end > forward; end = begin) {
        bool lead = loop_leads(program, leads, end, &begin);
        for (int i = begin; i < end; i++) {
            leads[i] = lead;
            for (int k = waits->begins[i]; lead && k < waits->begins[i + 1]; k++)
                leads[waits->before[k]] = true;
        }
    }
    return leads;
}

/* Those of the backward pass that lead, or that do not; returns where the order goes on. */
static int append_half(const MtfProgram *program, const bool *leads, bool half, int *order,
                       int next) {
    for (int i = mtf_program_forward(program); i < program->n_repeated; i++)
        if (leads[i] == half)
            order[next++] = i;
    return next;
}

void mtf_program_split_backward(MtfProgram *program) {
    program->weight_gradients = program->n_repeated;
    if (!program->layout->execution.stage.splits_backward)
        return;
    int n = mtf_program_length(program), forward = mtf_program_forward(program);
    g_autofree bool *leads = find_leading(program, forward);
    g_autofree int *order = g_new(int, n + 1);
    for (int i = 0; i < n; i++)
        order[i] = i;
    program->weight_gradients = append_half(program, leads, true, order, forward);
    append_half(program, leads, false, order, program->weight_gradients);
    mtf_program_reorder(program, order);
}
