// SPDX-License-Identifier: GPL-3.0-or-later
/* The schedule of a program: when each instruction starts and ends on the rank that waits for all.
 * Ranks execute the program as it is written and each collective blocks, so instructions follow one
 * another and the step's length is the sum of the prices. What micro-batches repeat is drawn with
 * all its repetitions in one piece, so that sums over instructions are sums over the step. Whatever
 * comes to overlap communication with computation changes this file alone; the additive cost in
 * price.h stays. */
#ifndef MTF_SCHEDULE_H
#define MTF_SCHEDULE_H

#include "cost/price.h"

typedef struct {
    int length;
    int64_t *starts, *ends; /* nanoseconds, one an instruction */
    int64_t nanoseconds;    /* of the whole step */
} MtfSchedule;

MtfSchedule *mtf_schedule_new(const MtfPricer *pricer, const MtfProgram *program);
void mtf_schedule_free(MtfSchedule *schedule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfSchedule, mtf_schedule_free)

#endif
