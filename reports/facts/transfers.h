// SPDX-License-Identifier: GPL-3.0-or-later
/* The collectives of a program by what they move and what asked for them, layers taken together:
 * the costliest transfers of a step, each with the operation that causes it. */
#ifndef MTF_TRANSFERS_H
#define MTF_TRANSFERS_H

#include "reports/facts/step_facts.h"

typedef struct {
    const MtfInstruction *instruction; /* the first of them; owned by the program */
    char *collective;                  /* "allreduce", "allreduce max" */
    char *axes;                        /* "rows,cols" */
    char *tensor, *operation;          /* starred */
    int count;
    int64_t bytes;       /* payload of all together, on the largest rank */
    int64_t nanoseconds; /* of all together */
} MtfTransfer;

/* All transfers (MtfTransfer *), the costliest first; free with g_ptr_array_unref. */
GPtrArray *mtf_transfers_new(const MtfStepFacts *facts);

#endif
