// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor.h"

static void run_move(MtfExecutor *executor, int index) {
    const MtfMove *move = &executor->worker->moves[index];
    mtf_worker_begin_move(executor->worker, index);
    if (mtf_step_is_collective(move->kind))
        mtf_collective_issue(&executor->transport, index, move,
                             &executor->counted->entries[executor->counted->entry_of[index]]);
    mtf_worker_end_move(executor->worker, index);
}

void mtf_executor_step(MtfExecutor *executor, int64_t step) {
    const MtfProgram *program = executor->worker->program;
    double last = mtf_kernel_times_now();
    for (int i = 0; i < mtf_program_length(program); i++) {
        if (mtf_program_instruction(program, i)->kind == MTF_INSTRUCTION_KERNEL)
            mtf_worker_run_kernel(executor->worker, i, step);
        else
            run_move(executor, i);
        if (executor->times == NULL)
            continue;
        double now = mtf_kernel_times_now();
        mtf_kernel_times_add(executor->times, i, now - last);
        last = now;
    }
}
