// SPDX-License-Identifier: GPL-3.0-or-later
/* Sweeps of one kernel or collective as benchmarks write them: numbers between spaces, tabs or commas,
 * a measurement a line; lines that do not begin with a number are passed over.
 *
 *     bytes seconds        (or what nccl-tests print, in microseconds) becomes the table "allreduce/8" of the machine (curve_name.h)
 *     m n k seconds        sets the share of the peak that products of a dtype reach
 *     features queries seen heads forward backward
 *                          fused attention of `heads` heads (of all sequences), each query with `seen` keys
 *                          on average; sets the shares of all widths
 *     bytes seconds        sets the share of the memory's bandwidth of passes: "elementwise", "rows",
 *                          "update" (the optimizer), "gather" */
#ifndef MTF_SWEEP_FILE_H
#define MTF_SWEEP_FILE_H

#include "cost/machine/machine.h"

/* Reads `argument`, "allreduce/8=FILE", and adds that table to the machine, its lines to `*rows`. Fails
 * where they are far from what the machine's prices say, as seconds in another unit are. */
bool mtf_sweep_add_collective(const char *argument, MtfMachine *machine, int *rows, GError **error);

typedef enum {
    MTF_SWEEP_PRODUCTS,
    MTF_SWEEP_ATTENTION,
    MTF_SWEEP_PASSES,
    MTF_SWEEP_KINDS
} MtfSweepKind;

typedef struct {
    int rows;
    double error; /* sum of the absolute errors that are left */
} MtfSweepFit;

/* Reads `argument`, "bf16=FILE" or "update=FILE", and sets the shares of the machine's kernels so that half
 * of the lines take longer than the machine says, and half less; adds to `fit`. Fails as above, and where a
 * share would be above 1. */
bool mtf_sweep_fit(MtfSweepKind kind, const char *argument, MtfMachine *machine, MtfSweepFit *fit,
                   GError **error);

#endif
