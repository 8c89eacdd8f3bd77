// SPDX-License-Identifier: GPL-3.0-or-later
/* The arithmetic of one chunk of one head (layouts/kernel_work/linear_work.h), in float32 and in float64. All
 * matrices lie dense in scratch, row by row. */
#ifndef MTF_LINEAR_CHUNKS_H
#define MTF_LINEAR_CHUNKS_H

#include "layouts/kernel_work/linear_work.h"

/* A chunk of `n` places at hand. Of a chunk's logarithms `sum` are those up to each place; going backward `dsum`
 * are their gradients, `dbeta` those of beta. */
typedef struct {
    void *piece[MTF_LINEAR_PIECES];
    int n, keys, values;
    bool corrects;
    double sum[MTF_LINEAR_CHUNK], beta[MTF_LINEAR_CHUNK];
    double dsum[MTF_LINEAR_CHUNK], dbeta[MTF_LINEAR_CHUNK];
    void *dq, *dk; /* this chunk's */
} MtfLinearChunk;

/* What is done with rows that are loaded. */
typedef struct {
    /* v becomes u. */
    void (*correct)(const MtfLinearChunk *c);
    /* o, from u. */
    void (*tell)(const MtfLinearChunk *c);
    /* The state behind the chunk, from u. */
    void (*hand_on)(const MtfLinearChunk *c);
    /* From do, the gradient of the state behind the chunk and v: du becomes dv, dq and dk grow, the gradient of
     * the state is that of the state before. */
    void (*back)(MtfLinearChunk *c);
    /* By element, at place i of the chunk: the state becomes that behind it, and o is told. */
    void (*step)(const MtfLinearChunk *c, int i);
    /* The state is that before the place and `after` the one behind it: the gradients of v, into du, of the step, of
     * queries, keys and rates, and of the state before it. */
    void (*step_back)(const MtfLinearChunk *c, int i, const void *after);
} MtfLinearLoops;

extern const MtfLinearLoops mtf_linear_loops_f32, mtf_linear_loops_f64;

#endif
