// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/accuracy.h"

#include "layouts/graph/operation_table.h"
#include "runtime/kernels/base/slice.h"

enum { HIGHEST = 0, OF_LABEL = 2, MASK = 3 };

static bool compares_labels(const MtfGraph *graph, int operation) {
    return mtf_operation_row(mtf_graph_operation(graph, operation)->kind)->shown ==
           MTF_SHOWN_ACCURACY;
}

/* A network with a second head for training has more than one: the first is that of the last layer. */
static bool is_first(const MtfGraph *graph, int operation) {
    for (int i = 0; i < operation; i++)
        if (compares_labels(graph, i))
            return false;
    return compares_labels(graph, operation);
}

void mtf_accuracy_look(MtfAccuracy *accuracy, const MtfWorker *worker, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(worker->program, index);
    if (instruction->kind != MTF_INSTRUCTION_KERNEL ||
        !is_first(worker->program->graph, instruction->operation))
        return;
    const MtfKernelCall *call = &worker->calls[index];
    const MtfOperand *highest = &call->inputs[HIGHEST], *label = &call->inputs[OF_LABEL];
    const MtfOperand *mask = call->operation->n_inputs > MASK ? &call->inputs[MASK] : NULL;
    int64_t n = mtf_slice_elements(highest);
    /* A mask that repeats itself along some dimension is not looked through. */
    if (mtf_slice_elements(label) != n || (mask != NULL && mtf_slice_elements(mask) != n))
        return;
    for (int64_t i = 0; i < n; i++) {
        bool counts = mask == NULL || mtf_slice_get(mask, i) != 0;
        accuracy->all += counts;
        accuracy->right += counts && mtf_slice_get(label, i) >= mtf_slice_get(highest, i);
    }
}
