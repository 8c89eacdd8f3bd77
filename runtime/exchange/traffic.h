// SPDX-License-Identifier: GPL-3.0-or-later
/* How many calls and bytes of each collective, over each set of axes: as the program predicts them
 * for one rank, and as they are counted where they are issued.
 *
 *     instruction  entry      kind            axes   calls  bytes
 *          0        -1        allreduce       rows       3   1048
 *          1         0        allgather       cols       1    512
 *          …                  …
 */
#ifndef MTF_TRAFFIC_H
#define MTF_TRAFFIC_H

#include "layouts/program/program.h"

typedef struct {
    MtfReshardKind kind;
    unsigned axes;
    int64_t calls, bytes;
    int64_t copied; /* of those bytes that went from one rank's arena into another's, without a
                       message: counted only */
    int64_t sent;   /* in messages of algorithms that are made of them (collective_messages.h) */
    int64_t spared_calls, spared_bytes; /* counted only: of iterations that a loop ended before */
    double seconds;                     /* counted only; waiting for the others included */
} MtfTrafficEntry;

typedef struct {
    int n_entries;
    MtfTrafficEntry *entries; /* by axes, then kind */
    int n_instructions;
    int *entry_of;              /* one an instruction; -1 where nothing is sent */
    int64_t host_bytes;         /* copied to the host's memory and back */
    int64_t iterations, spared; /* counted only: of loops with a condition, those run and not run */
} MtfTraffic;

/* All entries that the program has, with nothing counted yet. */
MtfTraffic *mtf_traffic_new(const MtfProgram *program);
void mtf_traffic_free(MtfTraffic *traffic);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfTraffic, mtf_traffic_free)

/* What the program predicts for one step on `rank`. */
MtfTraffic *mtf_traffic_predict(const MtfProgram *program, int rank);

/* Counts what `times` iterations of instructions [begin, end) would have sent on `rank`. */
void mtf_traffic_spare(MtfTraffic *counted, const MtfProgram *program, int rank,
                       const MtfRange *instructions, int64_t times);

#endif
