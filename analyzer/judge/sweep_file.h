// SPDX-License-Identifier: GPL-3.0-or-later
/* Sweeps of one kernel or collective as benchmarks write them: numbers between spaces, tabs or commas,
 * a measurement a line; lines that do not begin with a number are passed over.
 *
 *     bytes seconds        (or what nccl-tests print, in microseconds) becomes the table "allreduce/8" of the machine (curve_name.h)
 *     m n k seconds        sets the share of the peak that products of a dtype reach */
#ifndef MTF_SWEEP_FILE_H
#define MTF_SWEEP_FILE_H

#include "cost/machine/machine.h"

/* Reads `argument`, "allreduce/8=FILE", and adds that table to the machine, its lines to `*rows`. Fails
 * where they are far from what the machine's prices say, as seconds in another unit are. */
bool mtf_sweep_add_collective(const char *argument, MtfMachine *machine, int *rows, GError **error);

/* Reads `argument`, "bf16=FILE", and sets the share so that half of the products take longer than the
 * tiles say, and half less; `*spread` is the mean absolute error that is left, `*rows` their number. Fails likewise, and above the peak. */
bool mtf_sweep_fit_products(const char *argument, MtfMachine *machine, int *rows, double *spread,
                            GError **error);

#endif
