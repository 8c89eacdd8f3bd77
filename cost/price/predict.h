// SPDX-License-Identifier: GPL-3.0-or-later
/* What is predicted of a training step, from its program and a machine: the `predicted` object of
 * plan files and of `estimate --json`, and the same as tables for people.
 *
 *     {"step_seconds", "compute_seconds", "communication_seconds",
 *      "exposed_communication_seconds", "flops", "multiply_adds", "peak_memory_bytes",
 *      "memory": {kind: bytes, …, "gaps"},
 *      "collectives": [{"kind", "reduction", "axes", "group", "calls", "elements", "bytes", "link_bytes", "seconds"}]}
 *
 * `exposed_communication_seconds` is the part of the communication that no computation overlaps: the step
 * takes compute_seconds and that, and under a software profile "host_seconds". Flops, multiply_adds and
 * traffic are those of the rank with the most of each. `peak_memory_bytes` is the arena's size; `memory`
 * splits it by kind at the instruction where most is live, and what rounding and gaps of the packing add is
 * "gaps", so that the kinds add up to the peak. Where something waits with the host, "host_memory_bytes" are
 * what it takes there, "host_copy_bytes" what the largest rank copies there and back, "host_copy_seconds" how
 * long that takes and "exposed_host_copy_seconds" how much shorter the step would be if it took no time: that
 * comes to the step, too. */
#ifndef MTF_PREDICT_H
#define MTF_PREDICT_H

#include "cost/price/price.h"

#include <cjson/cJSON.h>

/* All collectives of a program that agree in kind, reduction, axes and group. */
typedef struct {
    MtfReshardKind kind;
    MtfReduction reduction; /* MTF_REDUCE_NONE where nothing is reduced */
    unsigned axes;
    MtfTrafficGroup group;
    int64_t calls;
    int64_t elements, bytes; /* payload, see cost/machine/collective_kind.h */
    double link_bytes;       /* what one rank puts on links, mean over ranks */
    int64_t nanoseconds;
} MtfTrafficRow;

/* The program's collectives (MtfTrafficRow), sorted by group, kind, reduction and axes: with `rank`
 * >= 0 what that rank calls and passes, exactly; with -1 what the largest does. */
GArray *mtf_predict_traffic(const MtfPricer *pricer, const MtfProgram *program, int rank);

/* The whole `predicted` object; the caller owns the tree. */
cJSON *mtf_predict(const MtfPricer *pricer, const MtfProgram *program);

/* The object as tables, readable without the machine at hand; free with g_free. `predicted` is what
 * mtf_predict returned or a plan holds. */
char *mtf_predicted_format(const cJSON *predicted);

#endif
