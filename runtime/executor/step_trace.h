// SPDX-License-Identifier: GPL-3.0-or-later
/* What every rank did in some steps, instruction by instruction, as a Chrome trace with one row a
 * rank (open it in Perfetto or chrome://tracing):
 *
 *     rank 0   |------------------------- step 5 -------------------------|
 *              |einsum|einsum|    allreduce rows    |einsum| … |adam|adam|
 *     rank 1   |------------------------- step 5 -------------------------|
 *              |einsum|einsum      |allreduce rows  |einsum| … |adam|adam|
 *
 * In a pipeline passes stand between: "2F1", forward pass of stage 2 for micro-batch 1, each stage in
 * a colour of its own.
 *
 * Times are seconds since all ranks met before the first step; on several hosts they are as good as
 * that meeting. */
#ifndef MTF_STEP_TRACE_H
#define MTF_STEP_TRACE_H

#include "layouts/program/program.h"

#include <mpi.h>

typedef struct MtfStepTrace MtfStepTrace;

typedef struct {
    char letter;
    int stage, microbatch;
} MtfStepPass;

/* Collective over `control`. Has room for steps `from` … `to`, each of at most `spans` spans. */
MtfStepTrace *mtf_step_trace_new(MPI_Comm control, int64_t spans, int64_t from, int64_t to);
void mtf_step_trace_free(MtfStepTrace *trace);

/* The spans of one step of a program. */
int64_t mtf_step_trace_spans(const MtfProgram *program);

/* What is noted from now on are instructions of that program, which must outlive the trace. */
void mtf_step_trace_turn_to(MtfStepTrace *trace, const MtfProgram *program);

/* Notes that this rank ran a pass of a stage from `begin` to now (MPI_Wtime); `letter` as in PyTorch's
 * schedules: F, B, I, W. What it ran since then was noted before. */
void mtf_step_trace_pass(MtfStepTrace *trace, int64_t step, const MtfStepPass *pass, double begin);

/* Whether a step is among those traced. */
bool mtf_step_trace_wants(const MtfStepTrace *trace, int64_t step);

/* Notes that this rank ran an instruction of a step from `begin` to `end` (MPI_Wtime); `ended`:
 * that it ended a collective which had begun before, called "allreduce rows, end" in the trace. */
void mtf_step_trace_add(MtfStepTrace *trace, int64_t step, int instruction, bool ended,
                        double begin, double end);

/* Collective: rank 0 writes what all ranks noted to `path`. */
bool mtf_step_trace_write(const MtfStepTrace *trace, const char *path, GError **error);

#endif
