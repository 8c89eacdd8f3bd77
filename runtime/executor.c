// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor.h"

#include "runtime/processor_clock.h"

static void run_move(MtfExecutor *executor, int index) {
    const MtfMove *move = &executor->worker->moves[index];
    mtf_worker_begin_move(executor->worker, index);
    if (mtf_step_is_collective(move->kind))
        mtf_collective_issue(&executor->transport, index, move,
                             &executor->counted->entries[executor->counted->entry_of[index]]);
    mtf_worker_end_move(executor->worker, index);
}

static void run_instruction(MtfExecutor *executor, int index, int64_t step) {
    double begin = executor->trace != NULL ? MPI_Wtime() : 0;
    if (executor->norm != NULL)
        mtf_gradient_norm_look(executor->norm, index);
    if (mtf_program_instruction(executor->worker->program, index)->kind == MTF_INSTRUCTION_KERNEL)
        mtf_worker_run_kernel(executor->worker, index, step);
    else
        run_move(executor, index);
    if (executor->trace != NULL)
        mtf_step_trace_add(executor->trace, step, index, begin, MPI_Wtime());
}

void mtf_executor_run(MtfExecutor *executor, int from, int to, int64_t step) {
    double last = mtf_processor_seconds();
    for (int i = from; i < to; i++) {
        run_instruction(executor, i, step);
        if (executor->times == NULL)
            continue;
        double now = mtf_processor_seconds();
        mtf_kernel_times_add(executor->times, i, now - last);
        last = now;
    }
}

/* After a failure the inputs stay as they are. */
static void run_microbatch(MtfExecutor *executor, int microbatch, int64_t step, GError **failure) {
    mtf_worker_set_microbatch(executor->worker, microbatch);
    if (microbatch > 0 && *failure == NULL)
        mtf_data_fill_inputs(executor->data, executor->worker, step, failure);
    mtf_executor_run(executor, 0, executor->worker->program->n_repeated, step);
}

/* Whether the instruction writes a variable. */
static bool updates(const MtfProgram *program, const MtfInstruction *instruction) {
    for (int k = 0; k < instruction->n_outputs; k++) {
        int storage = mtf_program_buffer(program, instruction->outputs[k])->storage;
        if (mtf_program_buffer(program, storage)->persistent)
            return true;
    }
    return false;
}

int mtf_executor_first_update(const MtfProgram *program) {
    int first = program->n_repeated;
    while (first < mtf_program_length(program) &&
           !updates(program, mtf_program_instruction(program, first)))
        first++;
    return first;
}

bool mtf_executor_compute(MtfExecutor *executor, int64_t step, GError **error) {
    const MtfProgram *program = executor->worker->program;
    GError *failure = NULL;
    for (int k = 0; k < program->microbatches; k++)
        run_microbatch(executor, k, step, &failure);
    mtf_worker_set_microbatch(executor->worker, 0);
    mtf_executor_run(executor, program->n_repeated, mtf_executor_first_update(program), step);
    if (failure != NULL)
        g_propagate_error(error, failure);
    return failure == NULL;
}

void mtf_executor_update(MtfExecutor *executor, int64_t step) {
    const MtfProgram *program = executor->worker->program;
    mtf_executor_run(executor, mtf_executor_first_update(program), mtf_program_length(program),
                     step);
}

bool mtf_executor_step(MtfExecutor *executor, int64_t step, GError **error) {
    bool done = mtf_executor_compute(executor, step, error);
    mtf_executor_update(executor, step);
    return done;
}
