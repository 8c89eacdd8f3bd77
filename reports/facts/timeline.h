// SPDX-License-Identifier: GPL-3.0-or-later
/* The priced step as a Chrome trace, which Perfetto opens. One process, the rank that waits for
 * all, with three threads and a counter:
 *
 *     step      |------------------- step -------------------|
 *               |---- forward ----|---- backward ----|-update-|      nested in the step
 *     compute   |-h-|   |-softmax-|  …                               kernels and local copies
 *     network       |--|              allreduce …                    collectives
 *     memory    live bytes by kind, at the start of each instruction where they change         */
#ifndef MTF_TIMELINE_H
#define MTF_TIMELINE_H

#include "reports/facts/step_facts.h"

/* The trace's text; free with g_free. */
char *mtf_timeline_print(const MtfStepFacts *facts);

#endif
