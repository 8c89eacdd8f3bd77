// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session/forward_part.h"

MtfForwardPart mtf_forward_part(const MtfProgram *program) {
    int last = mtf_program_length(program) - 1;
    while (last > 0 && !mtf_program_writes_loss(program, last))
        last--;
    if (last < program->n_repeated)
        return (MtfForwardPart){ .repeated = last + 1, .once = program->n_repeated };
    MtfForwardPart part = { .once = last + 1 };
    while (part.repeated < program->n_repeated &&
           mtf_graph_operation(program->graph,
                               mtf_program_instruction(program, part.repeated)->operation)
                   ->phase == MTF_PHASE_FORWARD)
        part.repeated++;
    return part;
}

bool mtf_forward_run(const MtfExecutor *executor, const MtfForwardPart *part, MtfTraffic *uncounted,
                     int64_t batch, GError **error) {
    MtfExecutor own = *executor;
    const MtfProgram *program = own.worker->program;
    GError *failure = NULL;
    own.counted = uncounted;
    own.times = NULL;
    own.trace = NULL;
    own.norm = NULL;
    for (int k = 0; k < program->microbatches; k++) {
        mtf_worker_set_microbatch(own.worker, k);
        if (failure == NULL)
            mtf_data_fill_inputs(own.data, own.worker, batch, &failure);
        mtf_executor_run(&own, 0, part->repeated, 0);
    }
    mtf_worker_set_microbatch(own.worker, 0);
    mtf_executor_run(&own, program->n_repeated, part->once, 0);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}
