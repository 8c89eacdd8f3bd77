// SPDX-License-Identifier: GPL-3.0-or-later
/* What layers have in the place of attention, and what they are written in. */
#ifndef MTF_MIXER_PARTS_H
#define MTF_MIXER_PARTS_H

#include "analyzer/models/architecture_parts.h"

/* One of the stack's matrices from x's features to `out`, or the part of one that begins with output number
 * `begin` of `total` (0: all of it), with the mixer's biases. */
typedef struct {
    const char *name, *file;
    int out;
    int64_t begin, total;
} MtfMixerInput;
int mtf_mixer_input(MtfAssembly *m, const MtfMixerInput *input, int x);

/* The matrix back to the model's width from the dimensions `in`. */
int mtf_mixer_output(MtfAssembly *m, MtfShape in, int x);

/* A convolution of each feature `dim` of x [batch, length, dim] by itself that reads `taps` places, the last its
 * own:
 *
 *     y[t] = sum over j of w[j] x[t + j - taps + 1]
 */
int mtf_mixer_convolve(MtfAssembly *m, int dim, int x);

/* Gates around a short convolution (Liquid AI, LFM2, 2025): out(c conv(b x)), where b, c and x are the thirds of what
 * `in` makes. */
int mtf_mixer_short_convolution(MtfAssembly *m, int x);

#endif
