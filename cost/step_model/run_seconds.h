// SPDX-License-Identifier: GPL-3.0-or-later
/* The seconds of a training run's step, from those of its layers:
 *
 *     pass     max(device, host); hidden messages beside kernels, the rest after them
 *     stage    its layers, and embedding or head at the ends
 *     step     (m - 1) of the slowest stage + all stages once (their bubble over the chunks of a
 *              device) + gradients + optimizer + the host's part
 *
 * A closed form: the full path (cost/price, programs lowered from a graph) prices the same kernels
 * and messages one by one where it can express the run. */
#ifndef MTF_RUN_SECONDS_H
#define MTF_RUN_SECONDS_H

#include "cost/step_model/layer_seconds.h"

/* Where a step's seconds go; they add up to `step`. */
typedef struct {
    double step;
    double compute;  /* kernels of the busiest device */
    double redone;   /* of them run again, with their messages */
    double tensor;   /* exposed sums of tensor groups */
    double context;  /* exposed exchanges of keys and values */
    double expert;   /* exposed exchanges of tokens */
    double pipeline; /* between stages, and waiting in the bubble */
    double data;     /* exposed gradients and weights */
    double optimizer;
    double host; /* launches that kernels wait for, and what the host adds */
} MtfRunSeconds;

/* Seconds of a step, by what they go to. */
MtfRunSeconds mtf_run_seconds(const MtfRunDevice *device);

#endif
