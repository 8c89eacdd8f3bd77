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
    own.counted = uncounted;
    own.times = NULL;
    own.trace = NULL;
    own.norm = NULL;
    own.dropped = NULL;
    MtfMicrobatchLoop loop = { .repeated = part->repeated, .once = part->once, .batch = batch };
    return mtf_executor_loop(&own, &loop, error);
}
