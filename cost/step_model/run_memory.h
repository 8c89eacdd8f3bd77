// SPDX-License-Identifier: GPL-3.0-or-later
/* The memory that a training run takes on its fullest device, as its framework uses it:
 *
 *     weights, gradients, optimizer   of its parameters, whole or shared out over dp
 *     kept       what the backward pass reads, of all layers and of all micro-batches in flight
 *     working    one layer made again or gathered, logits
 *     beside     the allocator's slack, the driver's context, buffers of messages
 *
 * In flight on the first of p stages are min(m, p) micro-batches; with v chunks a device
 * p (1 + (p - 1) / (p v)); twice as many where weight gradients wait (zero bubble, 2p). */
#ifndef MTF_RUN_MEMORY_H
#define MTF_RUN_MEMORY_H

#include "cost/step_model/training_run.h"

/* Bytes; they add up to `total`, of which the allocator has `reserved`. Where gradients come as
 * activations go, `working` is what most of both together is more or less than their sum. */
typedef struct {
    double weights, gradients, optimizer, kept, working, beside, total, reserved;
} MtfRunMemory;

/* Bytes by kind on the run's fullest device, as the framework keeps them. */
MtfRunMemory mtf_run_memory(const MtfTrainingRun *run, const MtfSoftware *software);

#endif
