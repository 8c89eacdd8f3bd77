// SPDX-License-Identifier: GPL-3.0-or-later
#include "cost/schedule.h"

MtfSchedule *mtf_schedule_new(const MtfPricer *pricer, const MtfProgram *program) {
    MtfSchedule *schedule = g_new0(MtfSchedule, 1);
    schedule->length = mtf_program_length(program);
    schedule->starts = g_new(int64_t, schedule->length + 1);
    schedule->ends = g_new(int64_t, schedule->length + 1);
    for (int i = 0; i < schedule->length; i++) {
        schedule->starts[i] = schedule->nanoseconds;
        schedule->nanoseconds +=
            mtf_program_times(program, i) * mtf_price_instruction(pricer, program, i);
        schedule->ends[i] = schedule->nanoseconds;
    }
    return schedule;
}

void mtf_schedule_free(MtfSchedule *schedule) {
    if (schedule == NULL)
        return;
    g_free(schedule->starts);
    g_free(schedule->ends);
    g_free(schedule);
}
