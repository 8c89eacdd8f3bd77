// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/price/schedule.h"

#include "layouts/base/error.h"
#include "layouts/program/lifetimes.h"

#include <string.h>

static bool communicates(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    MtfCollectiveKind kind;
    return mtf_instruction_collective_kind(instruction, &kind);
}

static int64_t duration_of(const MtfPricer *pricer, const MtfProgram *program, int index) {
    return mtf_program_times(program, index) * mtf_price_instruction(pricer, program, index);
}

static unsigned links_of(const MtfPricer *pricer, const MtfProgram *program, int index) {
    return mtf_mesh_map_links(&pricer->map, mtf_program_instruction(program, index)->reshard.axes);
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* What has been scheduled so far. */
typedef struct {
    const MtfPricer *pricer;
    const MtfProgram *program;
    int64_t *written, *read; /* one a storage: when the last writer, and the last reader, is done */
    int64_t *over;           /* one an instruction: when the collectives that must be over
                                before it are */
    int64_t kernel_start, kernel_end; /* of the last kernel */
    int64_t link_free[MTF_NETWORK_AXES_MAX];
} Clock;

static int storage_of(const Clock *clock, int buffer) {
    return mtf_program_buffer(clock->program, buffer)->storage;
}

/* When the operands of an instruction are ready: inputs written, outputs neither read nor written
 * by anything older; and the collectives over that must be. */
static int64_t operands_ready(const Clock *clock, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(clock->program, index);
    int64_t ready = clock->over[index];
    for (int k = 0; k < instruction->n_inputs; k++)
        ready = MAX(ready, clock->written[storage_of(clock, instruction->inputs[k])]);
    for (int k = 0; k < instruction->n_outputs; k++) {
        int storage = storage_of(clock, instruction->outputs[k]);
        ready = MAX(ready, MAX(clock->written[storage], clock->read[storage]));
    }
    return ready;
}

static void mark_operands(Clock *clock, const MtfInstruction *instruction, int64_t end) {
    for (int k = 0; k < instruction->n_inputs; k++) {
        int64_t *read = &clock->read[storage_of(clock, instruction->inputs[k])];
        *read = MAX(*read, end);
    }
    for (int k = 0; k < instruction->n_outputs; k++)
        clock->written[storage_of(clock, instruction->outputs[k])] = end;
}

/* A collective is over before the instruction it must make way for. */
static void mark_finish(Clock *clock, int index, int64_t end) {
    int finish = mtf_program_instruction(clock->program, index)->wait_before;
    if (finish > 0)
        clock->over[finish] = MAX(clock->over[finish], end);
    clock->over[index + 1] = MAX(clock->over[index + 1], clock->over[index]);
}

static int64_t start_kernel(Clock *clock, int64_t ready, int64_t duration) {
    clock->kernel_start = MAX(ready, clock->kernel_end);
    clock->kernel_end = clock->kernel_start + duration;
    return clock->kernel_start;
}

static int64_t start_collective(Clock *clock, unsigned links, int64_t ready, int64_t duration) {
    int64_t start = MAX(ready, clock->kernel_start);
    for (int d = 0; d < MTF_NETWORK_AXES_MAX; d++)
        if (links >> d & 1)
            start = MAX(start, clock->link_free[d]);
    for (int d = 0; d < MTF_NETWORK_AXES_MAX; d++)
        if (links >> d & 1)
            clock->link_free[d] = start + duration;
    return start;
}

static void schedule_instruction(MtfSchedule *schedule, Clock *clock, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(clock->program, index);
    bool transfers = communicates(clock->program, index);
    bool beside = transfers && clock->pricer->machine->overlap;
    int64_t duration = duration_of(clock->pricer, clock->program, index);
    int64_t ready = operands_ready(clock, index), start;
    if (beside)
        start = start_collective(clock, links_of(clock->pricer, clock->program, index), ready,
                                 duration);
    else
        start = start_kernel(clock, ready, duration);
    schedule->starts[index] = start;
    schedule->ends[index] = start + duration;
    schedule->nanoseconds = MAX(schedule->nanoseconds, start + duration);
    *(transfers ? &schedule->transfers : &schedule->compute) += duration;
    mark_operands(clock, instruction, start + duration);
    mark_finish(clock, index, start + duration);
}

MtfSchedule *mtf_schedule_new(const MtfPricer *pricer, const MtfProgram *program) {
    MtfSchedule *schedule = g_new0(MtfSchedule, 1);
    Clock clock = { .pricer = pricer, .program = program };
    clock.written = g_new0(int64_t, program->buffers->len + 1);
    clock.read = g_new0(int64_t, program->buffers->len + 1);
    schedule->length = mtf_program_length(program);
    clock.over = g_new0(int64_t, schedule->length + 1);
    schedule->starts = g_new(int64_t, schedule->length + 1);
    schedule->ends = g_new(int64_t, schedule->length + 1);
    for (int i = 0; i < schedule->length; i++)
        schedule_instruction(schedule, &clock, i);
    schedule->exposed = schedule->nanoseconds - schedule->compute;
    g_free(clock.written);
    g_free(clock.read);
    g_free(clock.over);
    return schedule;
}

void mtf_schedule_free(MtfSchedule *schedule) {
    if (schedule == NULL)
        return;
    g_free(schedule->starts);
    g_free(schedule->ends);
    g_free(schedule);
}

/* ---- Checking -------------------------------------------------------------------------------- */

/* Whether instruction `late` may not start before `early` is over. */
static bool waits(const MtfProgram *program, int early, int late) {
    const MtfInstruction *first = mtf_program_instruction(program, early);
    return (first->wait_before > 0 && late >= first->wait_before) ||
           mtf_instruction_depends(program, first, mtf_program_instruction(program, late));
}

/* Whether the two may never run at once. */
static bool compete(const MtfPricer *pricer, const MtfProgram *program, int a, int b) {
    bool a_transfers = communicates(program, a), b_transfers = communicates(program, b);
    if (!pricer->machine->overlap)
        return true;
    if (a_transfers != b_transfers)
        return false;
    return !a_transfers || (links_of(pricer, program, a) & links_of(pricer, program, b)) != 0;
}

static bool check_pair(const MtfPricer *pricer, const MtfProgram *program,
                       const MtfSchedule *schedule, int early, int late, GError **error) {
    bool apart = schedule->ends[early] <= schedule->starts[late] ||
                 schedule->ends[late] <= schedule->starts[early];
    if (!apart && compete(pricer, program, early, late))
        return mtf_failure(error, "instructions %d and %d run at once", early, late);
    bool after = schedule->starts[late] >= schedule->ends[early];
    return after || !waits(program, early, late) ||
           mtf_failure(error, "instruction %d does not wait for %d", late, early);
}

bool mtf_schedule_check(const MtfPricer *pricer, const MtfProgram *program,
                        const MtfSchedule *schedule, GError **error) {
    for (int i = 0; i < schedule->length; i++) {
        if (schedule->ends[i] - schedule->starts[i] != duration_of(pricer, program, i))
            return mtf_failure(error, "instruction %d does not take its time", i);
        if (schedule->starts[i] < 0 || schedule->ends[i] > schedule->nanoseconds)
            return mtf_failure(error, "instruction %d is outside the step", i);
        for (int k = 0; k < i; k++)
            if (!check_pair(pricer, program, schedule, k, i, error))
                return false;
    }
    return true;
}
