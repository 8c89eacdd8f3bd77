// SPDX-License-Identifier: GPL-3.0-or-later
/* What a step's time goes to: a kernel counts whole as what its price is made of most, a collective
 * for as long as nothing computes beside it, and what is left is waiting for the host that launches them
 * (of a software profile), so that the shares add up to the step. */
#ifndef MTF_STEP_SHARES_H
#define MTF_STEP_SHARES_H

#include "cost/price/schedule.h"

typedef struct {
    char *name; /* "arithmetic", "memory traffic", "starting kernels", "network over rows" */
    int64_t nanoseconds;
} MtfStepShare;

/* Nanoseconds of the step that each instruction takes: of kernels and copies their own, of
 * collectives while nothing computes. Free with g_free. */
int64_t *mtf_step_wall(const MtfSchedule *schedule, const MtfProgram *program);

/* The shares (MtfStepShare *), the largest first, those without time left out; free with
 * g_ptr_array_unref. `wall` is what mtf_step_wall returned. */
GPtrArray *mtf_step_shares_of(const MtfPricer *pricer, const MtfProgram *program,
                              const MtfSchedule *schedule, const int64_t *wall);

#endif
