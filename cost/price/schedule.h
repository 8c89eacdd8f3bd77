// SPDX-License-Identifier: GPL-3.0-or-later
/* The schedule of a program: when each instruction starts and ends, on the rank with most to do.
 *
 * A machine whose collectives make no progress by themselves ("overlap": false), such as the ranks
 * of one host, which copy what they exchange, runs one instruction after the other, and the step's
 * length is the sum of the prices.
 *
 * Where they do, instructions are issued in the order of the program, kernels and local copies run
 * one after the other, and a collective runs beside them:
 *
 *     compute   [ k0 ][ k1 ][ k2 ]   waits   [ k4, needs c3 ]
 *     links x         [ c1 ]  [ c3            ]
 *     links y               [ c2 ]
 *
 *   - it starts when what it reads is there, nobody reads what it writes over any more, its links
 *     are free, and the kernel before it in the program has started: so it is fetched ahead by one
 *     kernel at most, and memory is not filled with what is needed much later;
 *   - it is over before the instruction that the program names (layouts/program/overlap_windows.h): until
 *     then what it reads and writes is kept, in the packed arena as well;
 *   - collectives over physical axes in common take their turns; over others they run at once;
 *   - kernels go on until one needs the result.
 *
 * Copies between the device's memory and the host's run beside both on such a machine, by the same
 * rules: one after the other in each direction, as if that were a link.
 *
 * A software profile (software_price.h) says what share of a collective frameworks run beside kernels,
 * wherever the program has it: of gradients, which travel beside the last micro-batch, and of weights in
 * pieces, which travel beside all passes and slow their kernels down; of sums of activations the share is taken
 * apart with the product beside it, which loses nothing. None is hidden beside more kernels than there are; what is
 * left runs alone:
 *
 *     seen = messages - (1 - contention) min(share x messages, kernels)
 *
 * The host launches in order and runs ahead; an instruction starts no sooner than that.
 *
 * An instruction that every micro-batch runs appears once, as long
 * as all its repetitions together, so that sums over instructions are sums over the step; the
 * additive cost in price.h stays, and no schedule is longer. */
#ifndef MTF_SCHEDULE_H
#define MTF_SCHEDULE_H

#include "cost/price/price.h"

typedef struct {
    int length;
    int64_t *starts, *ends;      /* nanoseconds, one an instruction */
    int64_t nanoseconds;         /* of the whole step */
    int64_t compute, transfers;  /* sums over kernels and local copies, and over collectives */
    int64_t hidden;              /* of `transfers`: what the software hides */
    int64_t host_copies;         /* … over copies to and from the host's memory */
    int64_t exposed_host_copies; /* by how much the step would be shorter if they took no time */
    int64_t exposed;             /* of `transfers`: while nothing computes */
    int64_t host; /* of a software profile: what it adds to a step, and waiting for launches;
                     nanoseconds are compute, exposed, exposed_host_copies and host */
} MtfSchedule;

/* Times of the whole step as the pricer prices its instructions; the caller frees it. */
MtfSchedule *mtf_schedule_new(const MtfPricer *pricer, const MtfProgram *program);
void mtf_schedule_free(MtfSchedule *schedule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfSchedule, mtf_schedule_free)

/* The largest ratio of a program's additive cost to the length of its schedule, on any mesh of the machine:
 * kernels run one at a time, and so do copies to the host, copies from it, and the collectives on each of the
 * network's n axes:
 *
 *     cost = kernels + copies + collectives <= length + 2 length + n length
 *
 * Under a software profile what is seen of collectives runs alone: a share h of sums of activations and of
 * tokens sent to experts is not, nor more of gradients and of weights than there are kernels:
 *
 *     cost <= kernels + copies + seen / (1 - h) + 2 kernels <= (1 / (1 - h) + 2 + 2) length
 *
 * INFINITY where all of that is left out. */
double mtf_schedule_most_hidden(const MtfMachine *machine);

/* Checks a schedule against the program and the prices alone, by comparing all pairs of
 * instructions: durations, what is read or written over waits for what stands before it in the
 * program, and neither kernels nor collectives with links in common run at once. Names the
 * instructions that are wrong. Takes time quadratic in the instructions. */
bool mtf_schedule_check(const MtfPricer *pricer, const MtfProgram *program,
                        const MtfSchedule *schedule, GError **error);

#endif
