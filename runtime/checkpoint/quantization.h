// SPDX-License-Identifier: GPL-3.0-or-later
/* Weights that a file has in a float type and the model in int8, in units of a scale for each of the
 * dimensions that the variable `scale` names has (layouts/FORMATS.md). These lie together at one end
 * of the weight, so that element i is of channel
 *
 *     i mod n            [summed …, channels …]        or      i / (elements / n)      [channels …, summed …]
 *
 * All ranks look at all that they keep, then agree on the largest of each channel, so that scales
 * depend on no layout:  scale = largest / 127,  weight = value / scale to the nearest. */
#ifndef MTF_QUANTIZATION_H
#define MTF_QUANTIZATION_H

#include "runtime/checkpoint/stored_value.h"
#include "runtime/worker/worker.h"

#include <mpi.h>

typedef struct MtfQuantization MtfQuantization;

/* Elements [index, index + count) of a variable, row by row, as a file has them. */
typedef struct {
    int tensor;
    int64_t index, count;
    MtfStoredType type;
    const char *elements;
} MtfQuantizedRun;

/* Borrows the worker, whose scales it sets. */
MtfQuantization *mtf_quantization_new(const MtfWorker *worker);
void mtf_quantization_free(MtfQuantization *quantization); /* accepts NULL */

/* Whether a tensor's values are to be divided by a scale; NULL has none. */
bool mtf_quantization_has(const MtfQuantization *quantization, int tensor);

/* First all elements are measured, then, collectively, scales are settled, then elements stored from
 * `position` of their slice on. */
void mtf_quantization_measure(MtfQuantization *quantization, const MtfQuantizedRun *run);
void mtf_quantization_settle(MtfQuantization *quantization, MPI_Comm control);
void mtf_quantization_store(const MtfQuantization *quantization, const MtfQuantizedRun *run,
                            const MtfOperand *slice, int64_t position);

/* Adds the names of the variables that are scales of others to a set; they are the graph's. */
void mtf_quantization_add_scales(const MtfGraph *graph, GHashTable *names);

#endif
