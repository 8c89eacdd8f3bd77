// SPDX-License-Identifier: GPL-3.0-or-later
/* Drawing one token from scores. Of their softmax at a temperature the `top_k` highest stay, and of
 * these the fewest highest that hold `top_p` of it together; the place that a number `share` of
 * [0, 1) falls on is the token:
 *
 *     token       0     1        2     3  4
 *               ├─────┼────────┼─────┼──┼──┤
 *     share     0        ▲                 1       token 1
 *
 * So what is drawn depends on scores and share alone. */
#ifndef MTF_SAMPLING_H
#define MTF_SAMPLING_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double temperature; /* 0: the highest score, the first of equals */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
} MtfSampling;

/* The token drawn from n >= 1 scores. */
int64_t mtf_sampling_draw(const MtfSampling *sampling, const double *scores, int64_t n,
                          double share);

/* The same with the share that belongs to token `number` of choice `choice` of a seed. */
int64_t mtf_sampling_draw_at(const MtfSampling *sampling, const double *scores, int64_t n,
                             int64_t seed, int64_t choice, int64_t number);

#endif
