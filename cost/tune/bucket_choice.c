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

bool mtf_layout_choose_bucket(const MtfGraph *graph, MtfLayout *layout, MtfProgram **program,
                              const MtfPricer *pricer, int64_t limit, int64_t only) {
    g_assert(layout->execution.bucket_bytes == 0);
    if (!has_small(*program))
        return false;
    g_autoptr(MtfProgram) best = NULL;
    int64_t shortest = nanoseconds_of(pricer, *program), chosen = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        if (only > 0 && sizes[i] != only)
            continue;
        layout->execution.bucket_bytes = sizes[i];
        g_autoptr(MtfProgram) joined = mtf_lower(graph, layout);
        if (mtf_program_length(joined) == mtf_program_length(*program))
            continue;
        int64_t nanoseconds = nanoseconds_of(pricer, joined);
        if (nanoseconds >= shortest)
            continue;
        if (mtf_arena_fits(joined, limit) || mtf_arena_fits(joined, arena_bytes(*program))) {
            shortest = nanoseconds;
            chosen = sizes[i];
            mtf_program_free(best);
            best = g_steal_pointer(&joined);
        }
    }
    layout->execution.bucket_bytes = chosen;
    if (best != NULL) {
        mtf_program_free(*program);
        *program = g_steal_pointer(&best);
    }
    return chosen > 0;
}
