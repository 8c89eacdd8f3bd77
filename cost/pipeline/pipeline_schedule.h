// SPDX-License-Identifier: GPL-3.0-or-later
/* Pipeline schedules: one table, a row a schedule, each of which makes an order (pipeline_order.h).
 *
 *     name        chunks places  what it is
 *     gpipe            1 loop    all forwards, then all backwards
 *     1f1b             1 loop    forward and backward take turns; p - s micro-batches in flight
 *     eager-1f1b       1 loop    the same with 2(p - s) - 1 in flight, so that transfers overlap
 *     interleaved    any loop    1F1B over chunks
 *     zb-h1, zb-h2     1 loop    weight gradients fill the bubble, with as much memory as 1F1B, or 2 x
 *     zb-1p, zb-2p     1 loop    the zero-bubble heuristic under the memory of p, or 2p micro-batches
 *     zb-auto          1 loop    the same under the cap alone
 *     zb-v             2 V       zero bubble there and back
 *     v-half, v-min    2 V       half and a third of 1F1B's memory
 *     dualpipe-v       2 V       two directions meet; forward and backward overlap
 *
 * p = ranks, s = rank, in flight as in mtf_pipeline_in_flight. zb-1p, zb-2p, zb-auto and zb-v weigh
 * the case's times and memory; the others look at the numbers alone. */
#ifndef MTF_PIPELINE_SCHEDULE_H
#define MTF_PIPELINE_SCHEDULE_H

#include "cost/pipeline/pipeline_run.h"

/* What a schedule is made for. Stages are numbered along the network: chunks * ranks of them. */
typedef struct {
    int ranks, microbatches, chunks;
    const MtfStageTimes *times;   /* [chunks * ranks] */
    const MtfStageMemory *memory; /* [chunks * ranks] */
    double cap; /* the most that a rank may hold, in memory's unit; INFINITY: no cap */
} MtfPipelineCase;

typedef struct MtfPipelineSchedule {
    const char *name;
    const char *summary;
    int chunks; /* that it needs on a rank; 0: any number */
    MtfStagePlaces places;
    /* Makes the order; NULL and an error where these numbers do not suit the schedule. */
    MtfPipelineOrder *(*make)(const MtfPipelineCase *the_case, GError **error);
} MtfPipelineSchedule;

/* The rows in the order of the table above, ended by one without a name. */
const MtfPipelineSchedule *mtf_pipeline_schedules(void);

/* The row of that name ("zb-h1"); case, spaces, dashes and underscores do not matter, and "interleaved
 * 1F1B" and "eager" are understood. NULL and an error that lists the names. */
const MtfPipelineSchedule *mtf_pipeline_schedule(const char *name, GError **error);

/* The chunks a rank has where nobody says how many: what the schedule needs, of any number 2. */
int mtf_pipeline_schedule_chunks(const MtfPipelineSchedule *schedule);

/* Makes, checks and returns the order of a row. Fails with a bad-input error where the case's numbers
 * do not suit it, and with MTF_ERROR_FIT where a rank would hold more than the cap. */
MtfPipelineOrder *mtf_pipeline_schedule_make(const MtfPipelineSchedule *schedule,
                                             const MtfPipelineCase *the_case, GError **error);

/* The same for stages that all take one unit of time for each of F, I and W and no time for
 * transfers, without a cap: what an executor asks that only wants the order. */
MtfPipelineOrder *mtf_pipeline_schedule_order(const char *name, int ranks, int microbatches,
                                              int chunks, GError **error);

/* Fails with MTF_ERROR_FIT, naming the first rank, unless no rank holds more than the case's cap. */
bool mtf_pipeline_fits(const MtfPipelineOrder *order, const MtfPipelineCase *the_case,
                       const char *name, GError **error);

#endif
