// SPDX-License-Identifier: GPL-3.0-or-later
/* What each rank of a run did and when: the Chrome trace of `meshtf-run --trace`, read back.
 *
 *     rank 0   |-embed-|-norm-|--allgather--|----einsum----|…      complete events ("ph": "X")
 *     rank 1   |-embed-|-norm-|-----allgather---|--einsum--|…
 *
 * A rank is a process of the trace where there are several or one is called "rank …", else a
 * thread. An event that holds others (a step, a phase) is what they are in, and no work of its own.
 * An event is a collective when its name begins with that of one. One that ends in ", end" is the
 * end of a collective that had begun before. */
#ifndef MTF_RUN_TRACE_H
#define MTF_RUN_TRACE_H

#include "layouts/base/json_reader.h"
#include "layouts/placement/reshard.h"

typedef struct {
    int rank;
    int kind;  /* an MtfReshardKind of a collective; -1 = work on the rank itself */
    bool ends; /* what had begun before: not a further call */
    double start, seconds;
} MtfRunEvent;

/* A pass of a pipeline's stage over a micro-batch, which holds what it ran. */
typedef struct {
    int rank, stage, microbatch;
    char letter; /* F, B, I, W as in PyTorch's schedules */
    double start, seconds;
} MtfRunPass;

typedef struct {
    int ranks;      /* the largest and one */
    double seconds; /* from the first event's start, which is 0, to the last one's end */
    GArray *events; /* MtfRunEvent, by rank and start */
    GArray *passes; /* MtfRunPass, by rank and start; none of plans without stages */
} MtfRunTrace;

/* Fails, naming the place, on a file that is no trace or holds no complete event. */
MtfRunTrace *mtf_run_trace_load(const char *path, GError **error);
MtfRunTrace *mtf_run_trace_from_json(const MtfJson *root, GError **error);
void mtf_run_trace_free(MtfRunTrace *trace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MtfRunTrace, mtf_run_trace_free)

/* The seconds a rank spends in events of a kind. */
double mtf_run_trace_seconds(const MtfRunTrace *trace, int rank, int kind);

/* How often a rank takes part in a collective of a kind. */
int mtf_run_trace_calls(const MtfRunTrace *trace, int rank, int kind);

#endif
