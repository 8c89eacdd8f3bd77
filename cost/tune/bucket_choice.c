// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/tune/bucket_choice.h"

#include "cost/memory/arena.h"
#include "cost/price/schedule.h"

static const int64_t sizes[] = { 16 << 10, 128 << 10, 1 << 20 };

/* Whether there are two collectives that could travel together, if what is between them lets them.
 */
static bool has_small(const MtfProgram *program) {
    int n_small = 0;
    for (int i = 0; i < mtf_program_length(program); i++) {
        const MtfInstruction *instruction = mtf_program_instruction(program, i);
        n_small += mtf_instruction_is_collective(instruction) &&
                   instruction->payload_bytes <= sizes[G_N_ELEMENTS(sizes) - 1];
    }
    return n_small > 1;
}

static int64_t nanoseconds_of(const MtfPricer *pricer, const MtfProgram *program) {
    g_autoptr(MtfSchedule) schedule = mtf_schedule_new(pricer, program);
    return schedule->nanoseconds;
}

static int64_t arena_bytes(const MtfProgram *program) {
    g_autoptr(MtfArena) arena = mtf_arena_pack(program);
    return arena->bytes;
}

/* The choice among the sizes. */
typedef struct {
    const MtfGraph *graph;
    MtfLayout *layout;
    const MtfPricer *pricer;
    /* Of the schedule with each size; INT64_MAX: out of question. */
    int64_t nanoseconds[G_N_ELEMENTS(sizes)];
    MtfProgram *shortest; /* the layout's with the first of the shortest, if it is kept */
    int64_t bytes;        /* the size that was taken last */
} Choice;

/* The first of the shortest; -1: none is left. */
static int shortest_of(const Choice *choice) {
    int best = -1;
    int64_t least = INT64_MAX;
    for (int i = 0; i < (int)G_N_ELEMENTS(sizes); i++)
        if (choice->nanoseconds[i] < least) {
            least = choice->nanoseconds[i];
            best = i;
        }
    return best;
}

static MtfProgram *lower_with(const Choice *choice, int size) {
    choice->layout->execution.bucket_bytes = sizes[size];
    return mtf_lower(choice->graph, choice->layout);
}

/* Schedules all sizes, or `only` one, that shorten the schedule of `program`, and keeps the program of the shortest. */
static void time_sizes(Choice *choice, const MtfProgram *program, int64_t only) {
    int64_t alone = nanoseconds_of(choice->pricer, program);
    for (int i = 0; i < (int)G_N_ELEMENTS(sizes); i++)
        choice->nanoseconds[i] = INT64_MAX;
    for (int i = 0; i < (int)G_N_ELEMENTS(sizes); i++) {
        if (only > 0 && sizes[i] != only)
            continue;
        g_autoptr(MtfProgram) joined = lower_with(choice, i);
        if (mtf_program_length(joined) == mtf_program_length(program))
            continue;
        int64_t nanoseconds = nanoseconds_of(choice->pricer, joined);
        choice->nanoseconds[i] = nanoseconds < alone ? nanoseconds : INT64_MAX;
        if (shortest_of(choice) != i)
            continue;
        mtf_program_free(choice->shortest);
        choice->shortest = g_steal_pointer(&joined);
    }
}

/* The program with a size. */
static MtfProgram *take_program(Choice *choice, int size) {
    choice->bytes = sizes[size];
    return choice->shortest != NULL ? g_steal_pointer(&choice->shortest) : lower_with(choice, size);
}

bool mtf_layout_choose_bucket(const MtfGraph *graph, MtfLayout *layout, MtfProgram **program,
                              const MtfPricer *pricer, int64_t limit, int64_t only) {
    g_assert(layout->execution.bucket_bytes == 0);
    if (!has_small(*program))
        return false;
    Choice choice = { .graph = graph, .layout = layout, .pricer = pricer };
    int64_t plain = 0; /* bytes of the program's arena, where somebody asks */
    bool found = false;
    time_sizes(&choice, *program, only);
    for (int i = shortest_of(&choice); i >= 0 && !found; i = shortest_of(&choice)) {
        g_autoptr(MtfProgram) joined = take_program(&choice, i);
        found = mtf_arena_fits(joined, limit);
        if (!found && plain == 0)
            plain = arena_bytes(*program);
        found = found || mtf_arena_fits(joined, plain);
        choice.nanoseconds[i] = INT64_MAX;
        if (found) {
            mtf_program_free(*program);
            *program = g_steal_pointer(&joined);
        }
    }
    mtf_program_free(choice.shortest);
    layout->execution.bucket_bytes = found ? choice.bytes : 0;
    return found;
}
