// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/price/schedule.h"

#include "cost/price/software_price.h"
#include "layouts/base/error.h"
#include "layouts/program/lifetimes.h"

#include <math.h>
#include <string.h>

/* Those of the network, to the host and from it. */
#define LINKS (MTF_NETWORK_AXES_MAX + 2)

static bool communicates(const MtfProgram *program, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    MtfCollectiveKind kind;
    return mtf_instruction_collective_kind(instruction, &kind);
}

/* ---- How long instructions take ---------------------------------------------------------------- */

/* Of the program's instructions: what the device takes for each, once, and what of a kind of communication
 * is seen under a software profile. */
typedef struct {
    int64_t *device;
    double shown[MTF_HIDDENS];
} Durations;

/* What a step has of each kind of communication, and the kernels that a framework runs beside it: those of
 * both passes, or, for what is exchanged once a step, of one micro-batch's. */
typedef struct {
    int64_t messages[MTF_HIDDENS], kernels, last_kernels;
} Work;

static MtfHidden kind_of(const MtfProgram *program, int index) {
    return mtf_software_hidden_kind(program, mtf_program_instruction(program, index));
}

static void add_work(const MtfProgram *program, int index, int64_t device, Work *work) {
    const MtfInstruction *instruction = mtf_program_instruction(program, index);
    const MtfOperation *op = mtf_graph_operation(program->graph, instruction->operation);
    int64_t all = mtf_program_times(program, index) * device;
    if (communicates(program, index))
        work->messages[kind_of(program, index)] += all;
    else if (!mtf_instruction_travels(program, index) && op->phase <= MTF_PHASE_BACKWARD) {
        work->kernels += all;
        work->last_kernels += index < program->n_repeated ? all / program->microbatches : all;
    }
}

/* Sums of activations, and tokens on their way to experts, hide in the products that they are taken apart
 * with. Gradients and weights travel beside whatever kernels there are, and slow those down meanwhile. None hides
 * beside more kernels than there are. */
static double shown_share(const MtfMachine *machine, const Work *work, MtfHidden kind) {
    bool inside = kind == MTF_HIDDEN_TENSOR || kind == MTF_HIDDEN_EXPERT;
    int64_t kernels = kind == MTF_HIDDEN_DATA ? work->last_kernels : work->kernels;
    if (work->messages[kind] == 0 || (!inside && !machine->overlap))
        return 1;
    double beside = (double)kernels / (double)work->messages[kind];
    double hidden = fmin(fmin(machine->software->hidden[kind], 1), beside);
    return 1 - hidden * (inside ? 1 : 1 - fmin(machine->software->contention, 1));
}

static Durations find_durations(const MtfPricer *pricer, const MtfProgram *program) {
    int n = mtf_program_length(program);
    bool as_it_stands = pricer->machine->software == NULL;
    Durations durations = { .device = g_new(int64_t, n + 1) };
    Work work = { 0 };
    for (int i = 0; i < n; i++) {
        durations.device[i] = mtf_price_device(pricer, program, i);
        if (!as_it_stands)
            add_work(program, i, durations.device[i], &work);
    }
    for (int kind = 0; kind < MTF_HIDDENS; kind++)
        durations.shown[kind] =
            as_it_stands ? 1 : shown_share(pricer->machine, &work, (MtfHidden)kind);
    return durations;
}

static int64_t duration_of(const Durations *durations, const MtfProgram *program, int index) {
    int64_t device = durations->device[index];
    if (communicates(program, index))
        device = (int64_t)(durations->shown[kind_of(program, index)] * (double)device);
    return mtf_program_times(program, index) * device;
}

/* ---- What runs beside what --------------------------------------------------------------------- */

/* Which of the two engines that copy to the host and back an instruction takes, a bit each. */
static unsigned engines_of(const MtfProgram *program, int index) {
    MtfHostCopy copy = mtf_instruction_host_copy(program, index);
    return copy == MTF_HOST_NOTHING ? 0 : 1U << (copy == MTF_HOST_TO ? 0 : 1);
}

/* The links that an instruction takes, a bit each, those engines behind the network's. */
static unsigned links_of(const MtfPricer *pricer, const MtfProgram *program, int index) {
    unsigned engines = engines_of(program, index);
    if (engines != 0)
        return engines << MTF_NETWORK_AXES_MAX;
    return mtf_mesh_map_links(&pricer->map, mtf_program_instruction(program, index)->reshard.axes);
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* What has been scheduled so far. */
typedef struct {
    const MtfPricer *pricer;
    const MtfProgram *program;
    Durations durations;
    int64_t *written, *read; /* one a storage: when the last writer, and the last reader, is done */
    int64_t *over;           /* one an instruction: when the collectives that must be over
                                before it are */
    int64_t kernel_start, kernel_end; /* of the last kernel */
    int64_t launched;                 /* when the host has launched all before */
    int64_t link_free[LINKS];
    bool copies_are_free; /* those to and from the host take no time */
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
    clock->kernel_start = MAX(ready, MAX(clock->kernel_end, clock->launched));
    clock->kernel_end = clock->kernel_start + duration;
    return clock->kernel_start;
}

/* What is seen of a collective under a software profile: no kernel runs beside it. */
static void block_kernels(Clock *clock, int64_t start, int64_t duration) {
    if (clock->pricer->machine->software != NULL)
        clock->kernel_end = MAX(clock->kernel_end, start) + duration;
}

static int64_t start_transfer(Clock *clock, unsigned links, int64_t ready, int64_t duration) {
    int64_t start = MAX(ready, MAX(clock->kernel_start, clock->launched));
    for (int d = 0; d < LINKS; d++)
        if (links >> d & 1)
            start = MAX(start, clock->link_free[d]);
    for (int d = 0; d < LINKS; d++)
        if (links >> d & 1)
            clock->link_free[d] = start + duration;
    return start;
}

/* What an instruction's time is counted to. */
static int64_t *sum_of(MtfSchedule *schedule, const MtfProgram *program, int index) {
    if (engines_of(program, index) != 0)
        return &schedule->host_copies;
    return communicates(program, index) ? &schedule->transfers : &schedule->compute;
}

static void schedule_instruction(MtfSchedule *schedule, Clock *clock, int index) {
    const MtfInstruction *instruction = mtf_program_instruction(clock->program, index);
    bool transfers = mtf_instruction_travels(clock->program, index);
    bool beside = transfers && clock->pricer->machine->overlap;
    bool free = clock->copies_are_free && engines_of(clock->program, index) != 0;
    int64_t duration = free ? 0 : duration_of(&clock->durations, clock->program, index);
    int64_t ready = operands_ready(clock, index), start;
    if (beside)
        start =
            start_transfer(clock, links_of(clock->pricer, clock->program, index), ready, duration);
    else
        start = start_kernel(clock, ready, duration);
    if (beside && communicates(clock->program, index))
        block_kernels(clock, start, duration);
    clock->launched += mtf_program_times(clock->program, index) *
                       mtf_price_host(clock->pricer, clock->program, index);
    schedule->starts[index] = start;
    schedule->ends[index] = start + duration;
    schedule->nanoseconds = MAX(schedule->nanoseconds, start + duration);
    int64_t all = mtf_program_times(clock->program, index) * clock->durations.device[index];
    *sum_of(schedule, clock->program, index) += free ? 0 : all;
    schedule->hidden += free ? 0 : all - duration;
    mark_operands(clock, instruction, start + duration);
    mark_finish(clock, index, start + duration);
}

/* What the host adds to a step, and what a step grows by with every doubling of nodes. */
static int64_t beside_program(const MtfPricer *pricer, int64_t nanoseconds) {
    const MtfSoftware *software = pricer->machine->software;
    const MtfNetwork *slice = &pricer->map.slice;
    if (software == NULL)
        return 0;
    double ranks = (double)mtf_network_ranks(slice);
    double inside = slice->switched ? (double)slice->axis[slice->axes - 1].size : ranks;
    return llround(1e9 * mtf_machine_step_seconds(pricer->machine) +
                   (double)nanoseconds * software->spread * log2(fmax(ranks / inside, 1)));
}

static MtfSchedule *make_schedule(const MtfPricer *pricer, const MtfProgram *program,
                                  bool copies_are_free) {
    MtfSchedule *schedule = g_new0(MtfSchedule, 1);
    Clock clock = { .pricer = pricer, .program = program, .copies_are_free = copies_are_free };
    clock.durations = find_durations(pricer, program);
    clock.written = g_new0(int64_t, program->buffers->len + 1);
    clock.read = g_new0(int64_t, program->buffers->len + 1);
    schedule->length = mtf_program_length(program);
    clock.over = g_new0(int64_t, schedule->length + 1);
    schedule->starts = g_new(int64_t, schedule->length + 1);
    schedule->ends = g_new(int64_t, schedule->length + 1);
    for (int i = 0; i < schedule->length; i++)
        schedule_instruction(schedule, &clock, i);
    schedule->nanoseconds = MAX(schedule->nanoseconds, MAX(clock.kernel_end, clock.launched));
    schedule->host = beside_program(pricer, schedule->nanoseconds);
    schedule->nanoseconds += schedule->host;
    g_free(clock.durations.device);
    g_free(clock.written);
    g_free(clock.read);
    g_free(clock.over);
    return schedule;
}

static int64_t exposed_host_copies(const MtfPricer *pricer, const MtfProgram *program,
                                   const MtfSchedule *schedule) {
    if (schedule->host_copies == 0)
        return 0;
    g_autoptr(MtfSchedule) without = make_schedule(pricer, program, true);
    return MAX(0, schedule->nanoseconds - without->nanoseconds);
}

MtfSchedule *mtf_schedule_new(const MtfPricer *pricer, const MtfProgram *program) {
    MtfSchedule *schedule = make_schedule(pricer, program, false);
    schedule->exposed_host_copies = exposed_host_copies(pricer, program, schedule);
    int64_t waits = schedule->nanoseconds - schedule->compute - schedule->exposed_host_copies;
    schedule->exposed = CLAMP(waits - schedule->host, 0, schedule->transfers - schedule->hidden);
    schedule->host = waits - schedule->exposed;
    return schedule;
}

void mtf_schedule_free(MtfSchedule *schedule) {
    if (schedule == NULL)
        return;
    g_free(schedule->starts);
    g_free(schedule->ends);
    g_free(schedule);
}

double mtf_schedule_most_hidden(const MtfMachine *machine) {
    const MtfSoftware *software = machine->software;
    double engines = machine->overlap && machine->host_bandwidth > 0 ? 2 : 0;
    if (software == NULL)
        return 1 + engines + (machine->overlap ? machine->network.axes : 0);
    double left_out =
        fmax(software->hidden[MTF_HIDDEN_TENSOR], software->hidden[MTF_HIDDEN_EXPERT]);
    return 1 / fmax(0, 1 - left_out) + (machine->overlap ? 2 : 0) + engines;
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
    bool a_transfers = mtf_instruction_travels(program, a),
         b_transfers = mtf_instruction_travels(program, b);
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

static bool check_all(const MtfPricer *pricer, const MtfProgram *program,
                      const MtfSchedule *schedule, const Durations *durations, GError **error) {
    for (int i = 0; i < schedule->length; i++) {
        if (schedule->ends[i] - schedule->starts[i] != duration_of(durations, program, i))
            return mtf_failure(error, "instruction %d does not take its time", i);
        if (schedule->starts[i] < 0 || schedule->ends[i] > schedule->nanoseconds)
            return mtf_failure(error, "instruction %d is outside the step", i);
        for (int k = 0; k < i; k++)
            if (!check_pair(pricer, program, schedule, k, i, error))
                return false;
    }
    return true;
}

bool mtf_schedule_check(const MtfPricer *pricer, const MtfProgram *program,
                        const MtfSchedule *schedule, GError **error) {
    Durations durations = find_durations(pricer, program);
    bool sound = check_all(pricer, program, schedule, &durations, error);
    g_free(durations.device);
    return sound;
}
