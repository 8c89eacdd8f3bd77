// SPDX-License-Identifier: GPL-3.0-or-later
#include "layouts/program/kernel_traffic.h"

#include "layouts/graph/microbatches.h"

/* Bytes read and written of an operation that adds to an input, as much of it as the others have.
 */
static double adding_traffic(const MtfProgram *program, const MtfInstruction *instruction,
                             int addend) {
    double others = 0, whole = (double)mtf_program_buffer(program, instruction->outputs[0])->bytes;
    for (int k = 0; k < instruction->n_inputs; k++)
        if (k != addend)
            others += (double)mtf_program_buffer(program, instruction->inputs[k])->bytes;
    return others + 2 * MIN(whole, others);
}

/* Of experts' matrices as much as their products read: not those that nobody chose. */
static double matrix_bytes(const MtfProgram *program, const MtfInstruction *instruction, int k) {
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    int64_t element = mtf_dtype_bytes(mtf_graph_tensor(program->graph, op->inputs[k])->dtype);
    return instruction->products.calls * instruction->products.n * instruction->products.k *
           (double)element;
}

/* Attention's values that are its keys, too, are read once. */
static bool are_keys(const MtfOperation *op, const MtfOperationRow *row, int k) {
    return row->products == MTF_PRODUCTS_ATTENTION && k == 2 && op->inputs[1] == op->inputs[2];
}

double mtf_kernel_traffic(const MtfProgram *program, const MtfInstruction *instruction) {
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    const MtfOperationRow *row = mtf_operation_row(op->kind);
    double output_bytes = 0, input_bytes = 0;
    if (row->addend > 0 && row->addend < op->n_inputs)
        return adding_traffic(program, instruction, row->addend);
    if (mtf_operation_loop_part(program->graph, instruction->operation) == MTF_LOOP_STACKS)
        return 2 * (double)mtf_program_buffer(program, instruction->inputs[0])->bytes;
    for (int k = 0; k < instruction->n_outputs; k++)
        output_bytes += (double)mtf_program_buffer(program, instruction->outputs[k])->bytes;
    for (int k = 0; k < instruction->n_inputs; k++) {
        double bytes = (double)mtf_program_buffer(program, instruction->inputs[k])->bytes;
        if (row->products == MTF_PRODUCTS_EXPERTS && k == 1)
            bytes = MIN(bytes, matrix_bytes(program, instruction, k));
        if (!are_keys(op, row, k))
            input_bytes += row->gathers && k == 0 ? MIN(bytes, output_bytes) : bytes;
    }
    bool adds = mtf_operation_accumulates(program->graph, instruction->operation);
    return input_bytes + output_bytes * (adds ? 2 : 1);
}
