// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/executor/executor.h"

#include "layouts/graph/loops.h"
#include "layouts/program/fused_groups.h"
#include "runtime/kernels/base/kernel_nest.h"
#include "runtime/support/processor_clock.h"

static double now(const MtfExecutor *executor) {
    return executor->trace != NULL ? MPI_Wtime() : 0;
}

static void note(MtfExecutor *executor, int64_t step, int index, bool ended, double begin) {
    if (executor->trace != NULL)
        mtf_step_trace_add(executor->trace, step, index, ended, begin, MPI_Wtime());
}

static void end_oldest(MtfExecutor *executor, MtfExchanges *under_way, int64_t step) {
    double begin = now(executor);
    int index = mtf_collective_end_oldest(&executor->transport, under_way);
    mtf_worker_end_move(executor->worker, index);
    note(executor, step, index, true, begin);
}

/* Whether an exchange that is under way must be over before instruction `index`. */
static bool any_is_due(const MtfExecutor *executor, const MtfExchanges *under_way, int index) {
    const MtfProgram *program = executor->worker->program;
    for (int k = 0; k < under_way->n; k++)
        if (mtf_program_instruction(program, under_way->exchanges[k].index)->wait_before <= index)
            return true;
    return false;
}

/* A collective: begun where the program gives it room, else from beginning to end. */
static void run_collective(MtfExecutor *executor, MtfExchanges *under_way, int index) {
    const MtfMove *move = &executor->worker->moves[index];
    MtfTrafficEntry *counted = &executor->counted->entries[executor->counted->entry_of[index]];
    if (mtf_program_instruction(executor->worker->program, index)->wait_before > 0) {
        mtf_collective_begin(&executor->transport, under_way, index, move, counted);
        return;
    }
    mtf_collective_issue(&executor->transport, under_way, index, move, counted);
    mtf_worker_end_move(executor->worker, index);
}

/* A kernel that copies to the host or back has moved what it wrote. */
static void count_host_copy(MtfExecutor *executor, int index) {
    const MtfWorker *worker = executor->worker;
    if (mtf_instruction_host_copy(worker->program, index) == MTF_HOST_NOTHING)
        return;
    const MtfOperand *moved = &worker->calls[index].outputs[0];
    executor->counted->host_bytes += mtf_operand_elements(moved) * mtf_dtype_bytes(moved->dtype);
}

static void run_instruction(MtfExecutor *executor, MtfExchanges *under_way, int index,
                            int64_t step) {
    double begin = now(executor);
    if (executor->norm != NULL)
        mtf_gradient_norm_look(executor->norm, index);
    if (executor->accuracy != NULL)
        mtf_accuracy_look(executor->accuracy, executor->worker, index);
    if (mtf_program_instruction(executor->worker->program, index)->kind == MTF_INSTRUCTION_KERNEL) {
        mtf_worker_run_kernel(executor->worker, index, step);
        count_host_copy(executor, index);
        if (executor->dropped != NULL)
            mtf_dropped_look(executor->dropped, executor->worker, index);
    } else {
        mtf_worker_begin_move(executor->worker, index);
        if (mtf_reshard_row(executor->worker->moves[index].kind)->collective)
            run_collective(executor, under_way, index);
        else
            mtf_worker_end_move(executor->worker, index);
    }
    note(executor, step, index, false, begin);
}

/* What is under way goes on. */
static void progress(const MtfExecutor *executor, MtfExchanges *under_way) {
    mtf_collectives_progress(&executor->transport, under_way);
    if (executor->stages != NULL)
        mtf_stage_transfers_progress(executor->stages);
}

/* The progress hook of a kernel, while exchanges or messages between stages are under way. */
typedef struct {
    const MtfExecutor *executor;
    MtfExchanges *under_way;
    double seconds; /* of the processor, in the hook */
} Progressing;

static void progress_exchanges(void *user) {
    Progressing *progressing = user;
    double begin = progressing->executor->times != NULL ? mtf_processor_seconds() : 0;
    progress(progressing->executor, progressing->under_way);
    if (progressing->executor->times != NULL)
        progressing->seconds += mtf_processor_seconds() - begin;
}

static void run_timed(MtfExecutor *executor, MtfExchanges *under_way, int index, int64_t step) {
    Progressing progressing = { executor, under_way, 0 };
    MtfProgressHook hook = { progress_exchanges, &progressing };
    double begin = executor->times != NULL ? mtf_processor_seconds() : 0;
    executor->worker->progress = under_way->n > 0 || executor->stages != NULL ? &hook : NULL;
    run_instruction(executor, under_way, index, step);
    executor->worker->progress = NULL;
    if (executor->times != NULL)
        mtf_kernel_times_add(executor->times, index,
                             mtf_processor_seconds() - begin - progressing.seconds);
}

/* A fused group, each kernel noted as if it had run behind those before it, as long as it took. */
static void run_fused(MtfExecutor *executor, int index, int64_t step) {
    int kernels = mtf_program_instruction(executor->worker->program, index)->fused.kernels;
    double seconds[MTF_FUSED_KERNELS] = { 0 }, begin = now(executor);
    bool timed = executor->times != NULL || executor->trace != NULL;
    mtf_worker_run_fused(executor->worker, index, step, timed ? seconds : NULL);
    for (int i = 0; i < kernels; i++) {
        if (executor->times != NULL)
            mtf_kernel_times_add(executor->times, index + i, seconds[i]);
        if (executor->trace != NULL)
            mtf_step_trace_add(executor->trace, step, index + i, false, begin, begin + seconds[i]);
        begin += seconds[i];
    }
}

/* Once through instructions that are in one loop, or in none. */
static void run_through(MtfExecutor *executor, int from, int to, int64_t step) {
    MtfExchanges under_way = { 0 };
    if (executor->trace != NULL)
        mtf_step_trace_turn_to(executor->trace, executor->worker->program);
    for (int i = from, next; i < to; i = next) {
        int kernels = mtf_program_instruction(executor->worker->program, i)->fused.kernels;
        bool alone = executor->accuracy != NULL || executor->look != NULL;
        bool row = kernels > 0 && i + kernels <= to && !alone;
        next = row ? i + kernels : i + 1;
        while (any_is_due(executor, &under_way, next - 1))
            end_oldest(executor, &under_way, step);
        if (row)
            run_fused(executor, i, step);
        else
            run_timed(executor, &under_way, i, step);
        while (executor->at_once && under_way.n > 0)
            end_oldest(executor, &under_way, step);
        progress(executor, &under_way);
    }
    while (under_way.n > 0)
        end_oldest(executor, &under_way, step);
}

/* Whether iterations beyond this one would change something. A bool that each rank holds a part of, or a
 * copy, is true where one of them is. */
static bool goes_on(const MtfExecutor *executor, int condition) {
    if (condition < 0)
        return true;
    const MtfOperand *state = mtf_worker_tensor(executor->worker, condition);
    bool here = state->data != NULL && *(const uint8_t *)state->data != 0;
    const MtfCommunicators *communicators = executor->transport.communicators;
    return communicators != NULL ? mtf_communicators_any(communicators, here) : here;
}

/* Instructions [begin, end) of a loop, or of none, as often as it runs. */
static void run_iterations(MtfExecutor *executor, MtfRange part, int64_t step) {
    const MtfProgram *program = executor->worker->program;
    int loop = mtf_program_instruction(program, (int)part.begin)->loop;
    int condition = loop > 0 ? mtf_loop_condition(program->graph, loop) : -1;
    int64_t count = mtf_loop_count(program->graph, loop), k = 0;
    bool more = true;
    for (; k < count && more; k++) {
        executor->worker->iteration = k;
        run_through(executor, (int)part.begin, (int)part.end, step);
        more = k + 1 == count || goes_on(executor, condition);
    }
    executor->worker->iteration = 0;
    if (condition >= 0) {
        executor->counted->iterations += k;
        mtf_traffic_spare(executor->counted, program, executor->worker->rank, &part, count - k);
    }
}

static void look_at(const MtfExecutor *executor, int from, int to) {
    for (int i = from; executor->look != NULL && i < to; i++)
        executor->look->seen(executor->worker, i, executor->look->user);
}

void mtf_executor_run(MtfExecutor *executor, int from, int to, int64_t step) {
    const MtfProgram *program = executor->worker->program;
    for (int begin = from, end; begin < to; begin = end) {
        int loop = mtf_program_instruction(program, begin)->loop;
        for (end = begin + 1; end < to && mtf_program_instruction(program, end)->loop == loop;)
            end++;
        if (executor->look != NULL && loop == 0)
            end = begin + 1;
        run_iterations(executor, (MtfRange){ begin, end }, step);
        look_at(executor, begin, end);
    }
}

void mtf_executor_begin_microbatch(MtfExecutor *executor, int microbatch, int64_t batch,
                                   GError **failure) {
    mtf_worker_set_microbatch(executor->worker, microbatch);
    if (executor->data != NULL && *failure == NULL)
        mtf_data_fill_inputs(executor->data, executor->worker, batch, failure);
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
