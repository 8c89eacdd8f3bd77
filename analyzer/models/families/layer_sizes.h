// SPDX-License-Identifier: GPL-3.0-or-later
/* Lists of sizes in the settings of model families, and the perceptrons that they describe:
 *
 *     "512-256-16"    x[batch, in] ─► [512] ─relu─► [256] ─relu─► [16]        with biases
 *     "1460,583x2"    two tables of these numbers of rows; an example has two of the second                                                */
#ifndef MTF_LAYER_SIZES_H
#define MTF_LAYER_SIZES_H

#include "analyzer/models/model_parts.h"

#define MTF_MOST_LAYER_SIZES 64

typedef struct {
    int n;
    int64_t sizes[MTF_MOST_LAYER_SIZES];
    int64_t times[MTF_MOST_LAYER_SIZES]; /* "40000000x3": 3; else 1 */
} MtfLayerSizes;

/* Reads sizes of 1 to 10^9 between commas or dashes. Fails (bad input) naming the option. */
bool mtf_layer_sizes_read(const char *option, const char *text, MtfLayerSizes *layers,
                          GError **error);

/* x, whose dimensions but the first (the batch) are summed, through a layer of each size with its
 * bias. Each but the last ends with `activation`; so does the last where `last_active`. The
 * dimensions made are called "PREFIX0", "PREFIX1", …. */
int mtf_parts_perceptron(MtfParts *p, const char *prefix, int x, const MtfLayerSizes *layers,
                         const char *activation, bool last_active);

#endif
