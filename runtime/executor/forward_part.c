// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/forward_part.h"

MtfForwardPart mtf_forward_part(const MtfProgram *program) {
    int last = mtf_program_length(program) - 1;
    while (last >= 0 && !mtf_program_writes_loss(program, last))
        last--;
    int forward = MIN(mtf_program_forward(program), program->n_repeated);
    bool repeats = last < program->n_repeated;
    return (MtfForwardPart){ .repeated = repeats ? MAX(last + 1, forward) : forward,
                             .once = repeats ? program->n_repeated : last + 1 };
}
